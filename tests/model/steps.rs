//! What a process can do, and which function of the program each of it stands for.

/// One kind of step.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    /// The source file and the functions in it that do this; none for what is done to a process from outside.
    pub(super) file: &'static str,
    pub(super) functions: &'static [&'static str],
}

const fn step(name: &'static str, file: &'static str, functions: &'static [&'static str]) -> Step {
    Step { name, file, functions }
}

/// Every step of the protocol.
pub(super) const STEPS: &[Step] = &[
    step("arrive", "src/launch/run/launch_wait.rs", &["begin"]),
    step("lock a mutex", "src/keeper/file/mutex.rs", &["lock", "wait"]),
    step("give back what it has of the mutexes", "src/acquire/acquisition.rs", &["lock"]),
    step("look for room", "src/acquire/room.rs", &["room"]),
    step("find a line at its end", "src/acquire/wait_check.rs", &["end_of_line"]),
    step("take a slot", "src/keeper/file/held.rs", &["take"]),
    step("ask for the highest place", "src/keeper/file/line.rs", &["highest_place"]),
    step("take a place", "src/acquire/place_in_line.rs", &["take_places", "places_under"]),
    step("stand in line", "src/acquire/place_in_line.rs", &["stand"]),
    step("give the mutexes back", "src/keeper/file/mutex.rs", &["drop"]),
    step("ask who is ahead", "src/acquire/liveness.rs", &["nearest_ahead", "passes"]),
    step("wake behind one who left", "src/keeper/file/line.rs", &["sleep_behind"]),
    step("pass one who does not beat", "src/acquire/liveness.rs", &["is_silent"]),
    step("beat, and look who else does", "src/acquire/liveness.rs", &["look_ahead"]),
    step("look around", "src/acquire/waiting.rs", &["may_go_on"]),
    step("watch who was not watched yet", "src/acquire/liveness.rs", &["watch", "keepers"]),
    step("wake when a holder ends", "src/sys/process.rs", &["wait_for_any"]),
    step("see nobody alive in the way", "src/acquire/blocked.rs", &["is_by_others_alone"]),
    step("see somebody alive in the way", "src/acquire/acquisition.rs", &["look_ahead"]),
    step("see the policy change", "src/policy/mod.rs", &["is_stale"]),
    step("decide anew", "src/acquire/waiting.rs", &["in_turn"]),
    step("leave the line", "src/acquire/place_in_line.rs", &["leave", "keep"]),
    step("start the program", "src/acquire/grant.rs", &["keep_across_exec"]),
    step("end", "src/launch/start.rs", &["start"]),
    step("be killed", "", &[]),
    step("be frozen", "", &[]),
    step("go on, and beat", "src/keeper/file/line.rs", &["beat"]),
    step("close a file", "src/keeper/file/file.rs", &["open_to_lock"]),
];
