//! Never one program too many, never a slot lost, never a deadlock, nobody overtaken: the protocol of
//! mutexes, places, lines and slots as a small model, every state of which is visited. Up to four processes,
//! two repositories, limits of one and two, of which one may do; a policy that changes in the middle,
//! launches that do not wait, death at any step, and processes that are frozen at any step and may go on
//! later.
//!
//! A model proves something of the program only as far as its steps are the program's. So each step names the
//! function that it stands for, and a test finds that function in the sources. Time counts only where
//! somebody is frozen: nobody else is found by a look, so whoever is served was woken. And each rule of the
//! protocol, left out, must be missed.

mod plan;
mod protocol;
mod search;
mod state;
mod steps;

use std::{
    collections::BTreeSet,
    env, fs,
    io::{Write as _, stderr},
    path::Path,
};

use self::{
    plan::{Hold, Plan, Variant},
    protocol::Broken,
    search::{Report, explore},
    steps::STEPS,
};
use crate::support::Dice;

/// Small plans that between them need every rule.
fn plans() -> Vec<Plan> {
    vec![
        // Two of a kind, both of which may die.
        Plan::of(&[[1, 1], [1, 1]]).deaths(2),
        Plan::of(&[[1, 1], [1, 2]]).deaths(2),
        // Wishes that overlap.
        Plan::of(&[[1, 0], [1, 0], [1, 0]]).deaths(1),
        Plan::of(&[[0, 1], [0, 1], [1, 1]]),
        Plan::of(&[[1, 0], [0, 1], [1, 1]]),
        // Limits that differ by rule, and limits that a new policy has changed.
        Plan::of(&[[1, 0], [2, 0], [2, 0]]),
        Plan::of(&[[1, 0], [1, 0], [1, 0]]).changing(&[[2, 0], [2, 0], [2, 0]]),
        Plan::of(&[[1, 0], [1, 0], [0, 1]]).changing(&[[1, 0], [1, 1], [0, 1]]),
        // One of two will do.
        Plan::of(&[[1, 0], [0, 1], [1, 1]]).any(&[2]),
        Plan::of(&[[1, 1], [0, 1], [0, 1]]).any(&[0]).deaths(1),
        Plan::of(&[[1, 0], [0, 1], [1, 1]]).any(&[2]).endless(&[0]),
        // Launches that do not wait.
        Plan::of(&[[1, 0], [1, 0], [2, 0]]).newcomers(&[2]),
        Plan::of(&[[1, 0], [1, 0], [1, 0]]).newcomers(&[2]).freezes(1, 0),
        // Lines that end.
        Plan::of(&[[1, 0], [1, 0], [1, 0], [1, 0]]).queue([1, 0]),
        Plan::of(&[[1, 0], [1, 0], [2, 0]]).queue([1, 0]).deaths(1),
        // Launches that are frozen for good, and launches that go on.
        Plan::of(&[[1, 0], [1, 0], [1, 0]]).freezes(1, 0),
        Plan::of(&[[1, 0], [1, 0], [1, 0]]).freezes(1, 1),
        Plan::of(&[[1, 1], [1, 0], [0, 1]]).freezes(1, 0),
    ]
}

/// As many plans as wanted, each with some of everything.
fn random_plans(count: u64) -> Vec<Plan> {
    (0..count).map(random_plan).collect()
}

fn random_plan(seed: u64) -> Plan {
    let mut dice = Dice::new(seed + 1);
    let mut roll = |bound: usize| u8::try_from(dice.below(bound)).expect("a small number");
    let launches = 2 + usize::from(roll(8) > 1) + usize::from(roll(8) == 0);
    let mut limits = || -> Vec<[u8; 2]> {
        let limit = |roll: &mut dyn FnMut(usize) -> u8| [1 + roll(2), 1 + roll(2)];
        (0..launches)
            .map(|_| match (roll(5), limit(&mut roll)) {
                (0 | 1, [first, _]) => [first, 0],
                (2, [_, second]) => [0, second],
                (_, both) => both,
            })
            .collect()
    };
    let (before, after) = (limits(), limits());
    let mut plan = Plan::of(&before);
    let events = u8::from(launches < 4);
    match roll(5) {
        0 => plan = plan.deaths(events * (1 + u8::from(launches == 2))),
        1 => plan = plan.freezes(events, 0),
        2 => plan = plan.freezes(events, events),
        3 if launches < 4 => plan = plan.changing(&after),
        _ => {}
    }
    let several = (0..launches).filter(|_| roll(3) == 0).collect::<Vec<_>>();
    plan = plan.any(&several);
    if roll(3) == 0 {
        plan = plan.newcomers(&[launches - 1]);
    }
    Plan { moves: roll(3), hold: if roll(2) == 0 { Hold::Process } else { Hold::Descriptor }, ..plan }
}

/// The protocol as it is. Where `RUNGATE_MODEL` is set, a hundred random plans more, or as many as it says.
#[test]
fn no_state_of_the_protocol_breaks_a_promise() {
    let mut plans = plans();
    if env::var_os("RUNGATE_MODEL").is_some() {
        let more = env::var("RUNGATE_MODEL").ok().and_then(|count| count.parse().ok());
        plans.extend(random_plans(more.unwrap_or(100)));
    }
    let mut total = Report::default();
    for plan in &plans {
        total.add(explore(plan));
        assert!(total.violation.is_none(), "{plan:?}: {}", total.story());
    }
    let Report { states, steps, depth, taken, largest, .. } = total;
    let figures = format!("{states} states, {steps} steps, depth {depth}, the largest {largest}");
    let _ = writeln!(stderr(), "{} plans, {figures}", plans.len());
    let missed = STEPS.iter().filter(|step| !taken.contains(step.name)).map(|step| step.name);
    assert_eq!(missed.collect::<Vec<_>>(), [""; 0], "steps that no process ever took");
}

/// In this plan the protocol without this rule breaks this promise, and with it none.
#[track_caller]
fn is_missed(variant: Variant, expected: Broken, plan: Plan) {
    let report = explore(&plan);
    assert!(report.violation.is_none(), "{}", report.story());
    let report = explore(&plan.with(variant));
    let broken = report.violation.as_ref().map(|(broken, _)| *broken);
    assert_eq!(broken, Some(expected), "{variant:?}: {}", report.story());
}

/// Take the mutexes in that order; decide all; take: without them two launches prove their room by the same
/// free slot.
#[test]
fn without_the_mutex_one_too_many_is_let_in() {
    let plan = Plan { hold: Hold::Descriptor, ..Plan::of(&[[1, 0], [1, 0]]) };
    let report = explore(&plan.with(Variant::WithoutMutex));
    assert!(report.violation.is_some_and(|(broken, _)| broken == Broken::OverTheCap));
}

/// Who would stand behind 20 is refused: where nobody can join a line meanwhile, because the tables are
/// locked, none ever gets longer than it may.
#[test]
fn a_line_that_does_not_end_gets_too_long() {
    let plan = Plan::of(&[[1, 0], [1, 0], [1, 0]]).running(&[0]).queue([1, 0]);
    is_missed(Variant::LinesDoNotEnd, Broken::LineTooLong, plan);
}

/// Closing *any* descriptor of a file drops all of the process's POSIX locks on it.
#[test]
fn a_second_descriptor_drops_a_slot() {
    is_missed(Variant::SecondDescriptor, Broken::SlotLost, Plan::of(&[[1, 0], [1, 0]]));
}

/// It locks that place in all of them …: t is the same everywhere, … each wait points to a smaller one: no
/// circles.
#[test]
fn numbers_of_each_file_make_a_circle() {
    let before = [[1, 0], [0, 1], [1, 0], [0, 1]];
    let after = [[1, 0], [0, 1], [1, 1], [1, 1]];
    let plan = Plan { moves: 0, ..Plan::of(&before).changing(&after).running(&[0, 1]) };
    is_missed(Variant::NumbersOfEachFile, Broken::NobodyWakes, plan);
}

/// One more than the highest place in *any* of its files.
#[test]
fn a_place_only_where_it_is_blocked_is_overtaken() {
    let plan = Plan::of(&[[1, 1], [1, 0], [0, 1], [1, 1]]).running(&[1]);
    is_missed(Variant::PlacesWhereBlocked, Broken::Overtaken, plan);
}

/// Every waiter decides again … and stays where it is.
#[test]
fn a_place_that_is_given_up_meanwhile_is_lost() {
    let plan = Plan::of(&[[1, 0], [1, 0], [1, 0]]).running(&[0]).changing(&[[1, 0], [1, 0], [1, 0]]);
    is_missed(Variant::PlaceGivenUp, Broken::Overtaken, plan);
}

/// A different g means strict order of arrival.
#[test]
fn a_raised_limit_lets_newcomers_pass_without_the_generation() {
    let plan = Plan::of(&[[1, 0], [1, 0], [1, 0]]).running(&[0]).changing(&[[2, 0], [2, 0], [2, 0]]);
    is_missed(Variant::WithoutGeneration, Broken::Overtaken, plan);
    is_missed(Variant::WithoutGeneration, Broken::Overtaken, plan.newcomers(&[2]));
}

/// It stands in every line of every demand that is not met.
#[test]
fn a_launch_that_two_could_serve_starves_in_one_line() {
    let plan = Plan::of(&[[1, 0], [0, 1], [1, 1], [0, 1]]).any(&[2]).running(&[0, 1]);
    is_missed(Variant::OneLineForAny, Broken::Overtaken, plan);
}

/// Newcomers … are behind everybody.
#[test]
fn a_newcomer_that_does_not_look_overtakes() {
    let plan = Plan::of(&[[1, 0], [1, 0], [1, 0]]).newcomers(&[2]);
    is_missed(Variant::NewcomersPass, Broken::Overtaken, plan);
}

/// Where only the line is in its way it looks for up to three seconds.
#[test]
fn a_newcomer_is_not_refused_because_of_the_silent() {
    let plan = Plan::of(&[[1, 0], [1, 0], [1, 0]]).newcomers(&[2]).freezes(1, 0);
    is_missed(Variant::NewcomersDoNotLook, Broken::RefusedInVain, plan);
}

/// A waiter that does not answer is passed over.
#[test]
fn a_silent_waiter_would_block_the_line() {
    let plan = Plan::of(&[[1, 0], [1, 0], [1, 0]]).running(&[0]).freezes(1, 0);
    is_missed(Variant::WithoutSilence, Broken::NobodyWakes, plan);
}

/// The last of them under the mutex.
#[test]
fn a_waiter_that_goes_on_in_time_is_not_passed() {
    let plan = Plan::of(&[[1, 0], [1, 0], [1, 0]]).running(&[0]).freezes(1, 1);
    is_missed(Variant::JudgedBeforeTheMutex, Broken::Overtaken, plan);
}

/// Looks are counted, not seconds, so a pause of the machine proves nothing.
#[test]
fn a_pause_of_the_machine_proves_nothing() {
    let plan = Plan::of(&[[1, 0], [1, 0], [1, 0]]).running(&[0]).freezes(2, 2);
    is_missed(Variant::SecondsAreCounted, Broken::Overtaken, plan);
}

/// The holders' pidfds, opened before one more look.
#[test]
fn whoever_watches_too_late_is_not_woken() {
    is_missed(Variant::WatchedTooLate, Broken::NobodyWakes, Plan::of(&[[1, 0], [1, 0]]));
}

/// A full attempt follows each second.
#[test]
fn whoever_stands_in_several_lines_looks_around() {
    let limits = [[1, 0], [0, 1], [0, 1], [1, 1]];
    let plan = Plan::of(&limits).any(&[3]).running(&[0, 1]).endless(&[0]);
    is_missed(Variant::NoLooksAround, Broken::NobodyWakes, plan);
}

/// A stuck mutex of one repository is no reason to keep that of another.
#[test]
fn whoever_waits_for_a_stuck_mutex_keeps_no_other() {
    let plan = Plan::of(&[[0, 1], [1, 1], [1, 0]]).freezes(1, 0);
    is_missed(Variant::MutexesKept, Broken::NobodyWakes, plan);
}

/// What a step stands for is there.
#[test]
fn the_steps_are_functions_of_the_program() {
    let names: BTreeSet<_> = STEPS.iter().map(|step| step.name).collect();
    assert_eq!(names.len(), STEPS.len(), "two steps have one name");
    for step in STEPS.iter().filter(|step| !step.file.is_empty()) {
        let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(step.file));
        let source = source.unwrap_or_else(|error| panic!("{}: {error}", step.file));
        for function in step.functions {
            let is_there = ["(", "<"].iter().any(|after| source.contains(&format!("fn {function}{after}")));
            assert!(is_there, "{} has no function {function} any more: {:?}", step.file, step.name);
        }
    }
}
