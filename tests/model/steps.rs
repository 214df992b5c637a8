//! What a process can do, and which function of the program each of it stands for.

/// One kind of step.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: &'static str,
    /// The source file and the functions in it that do this.
    pub(super) file: &'static str,
    pub(super) functions: &'static [&'static str],
}

const fn step(name: &'static str, file: &'static str, functions: &'static [&'static str]) -> Step {
    Step { name, file, functions }
}

/// A launch that nothing but older ones blocked looks once more: a line is left without the mutex.
pub(super) const AGAIN: &str = "look again, because only the line was in the way";

/// Every step of the protocol.
pub(super) const STEPS: &[Step] = &[
    step("arrive", "src/repository/line.rs", &["now"]),
    step("lock a mutex", "src/repository/mutex.rs", &["lock", "wait"]),
    step("look for room", "src/repository/admission.rs", &["room", "look_for_room"]),
    step(AGAIN, "src/repository/blocking.rs", &["blocked", "by_the_line_alone"]),
    step("take a slot", "src/repository/held.rs", &["take"]),
    step("stand in line", "src/repository/waiting.rs", &["stand_in_line", "take_ticket"]),
    step("ask who is ahead", "src/repository/line.rs", &["nearest_older"]),
    step("give the mutexes back", "src/repository/mutex.rs", &["drop"]),
    step("wake behind one who left", "src/repository/line.rs", &["sleep_behind"]),
    step("watch who was not watched yet", "src/repository/waiting.rs", &["sleep", "keepers"]),
    step("wake when a holder ends", "src/sys/pidfd.rs", &["wait_for_any"]),
    step("leave the line", "src/repository/line.rs", &["drop"]),
    step("start the program", "src/repository/admitted.rs", &["keep_across_exec"]),
    step("end", "src/launch/start.rs", &["start"]),
    step("be killed", "src/repository/waiting.rs", &["acquire_in_turn"]),
    step("close a file", "src/repository/file.rs", &["open_to_lock"]),
];
