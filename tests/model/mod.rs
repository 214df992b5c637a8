//! "Never one program too many, never a slot lost, never a deadlock": the protocol of mutexes, tickets and slots as a small
//! model, every state of which is visited. Three processes, two repositories, limits of one and two, and death at any step.
//!
//! A model proves something of the program only as far as its steps are the program's. So each step names the function that it
//! stands for, and a test finds that function in the sources. Time is left out on purpose: nobody here looks around once a
//! second, so whoever is served was woken. And three versions of the protocol that are wrong must be found to be wrong.

mod protocol;
mod search;
mod state;
mod steps;

use std::{
    collections::BTreeSet,
    fs,
    io::{Write as _, stderr},
    path::Path,
};

use self::{
    protocol::{Broken, Hold, Plan, Variant},
    search::{Report, explore},
    steps::STEPS,
};

/// What the three processes want of the two repositories: the limit that counts for each there, 0 for nothing.
type Wants = [[u8; 2]; 3];

/// Every plan: which repositories each process wants, and the limits, which may differ from process to process as those of a
/// rule with a ceiling do.
fn plans(variant: Variant, deaths: u8) -> Vec<Plan> {
    let wishes = [[true, false], [false, true], [true, true]];
    let limits: [Wants; 6] = [
        [[1, 1]; 3],
        [[1, 2]; 3],
        [[2, 1]; 3],
        [[2, 2]; 3],
        [[1, 2], [2, 2], [2, 2]],
        [[1, 1], [2, 2], [2, 2]],
    ];
    let mut plans = Vec::new();
    for (first, second, third) in
        (0..3).flat_map(|a| (0..3).flat_map(move |b| (0..3).map(move |c| (a, b, c))))
    {
        for (kind, limits) in limits.iter().enumerate() {
            // Where all have the same limits it does not matter who wants what, only how many do.
            if kind < 4 && !(first <= second && second <= third) || kind >= 4 && second > third {
                continue;
            }
            for hold in [Hold::Process, Hold::Descriptor] {
                let wish = |process: usize, index: usize| {
                    [0, 1].map(|file| if wishes[index][file] { limits[process][file] } else { 0 })
                };
                let wants = [wish(0, first), wish(1, second), wish(2, third)];
                plans.push(Plan { wants, hold, deaths, moves: 1, variant });
            }
        }
    }
    plans
}

/// The protocol as it is, with one death at any step; with two, and more of the plans, where `RUNGATE_MODEL` is set.
#[test]
fn no_state_of_the_protocol_breaks_a_promise() {
    let all = std::env::var_os("RUNGATE_MODEL").is_some();
    let mut plans = plans(Variant::AsItIs, if all { 2 } else { 1 });
    if !all {
        // Three processes that want both have as many states as all the others together.
        plans.retain(|plan| plan.wants.iter().flatten().filter(|limit| **limit > 0).count() < 6);
    }
    let mut total = Report::default();
    for plan in &plans {
        total.add(explore(plan));
        assert!(total.violation.is_none(), "{plan:?}: {}", total.story());
    }
    let Report { states, steps, depth, taken, .. } = total;
    let _ = writeln!(stderr(), "{} plans, {states} states, {steps} steps, depth {depth}", plans.len());
    let missed = STEPS.iter().filter(|step| !taken.contains(step.name)).map(|step| step.name);
    assert_eq!(missed.collect::<Vec<_>>(), [""; 0], "steps that no process ever took");
}

/// The first plan in which this variant breaks this promise.
#[track_caller]
fn is_found(variant: Variant, moves: u8, expected: Broken) {
    for plan in plans(variant, 0) {
        let report = explore(&Plan { moves, ..plan });
        if report.violation.is_some_and(|(broken, _)| broken == expected) {
            return;
        }
    }
    panic!("the model does not see that {variant:?} is wrong");
}

/// "Take the mutexes in that order; decide all; take": without them two launches prove their room by the same free slot.
#[test]
fn without_the_mutex_one_too_many_is_let_in() {
    is_found(Variant::WithoutMutex, 1, Broken::OverTheCap);
}

/// "Numbers given out by each file for itself did deadlock: A before B here, B before A there."
#[test]
fn numbers_of_each_file_make_a_circle() {
    is_found(Variant::NumbersOfEachFile, 0, Broken::NobodyWakes);
}

/// "Closing *any* descriptor of a file drops all of the process's POSIX locks on it."
#[test]
fn a_second_descriptor_drops_a_slot() {
    is_found(Variant::SecondDescriptor, 1, Broken::SlotLost);
}

/// What a step stands for is there.
#[test]
fn the_steps_are_functions_of_the_program() {
    let names: BTreeSet<_> = STEPS.iter().map(|step| step.name).collect();
    assert_eq!(names.len(), STEPS.len(), "two steps have one name");
    for step in STEPS {
        let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(step.file));
        let source = source.unwrap_or_else(|error| panic!("{}: {error}", step.file));
        for function in step.functions {
            let is_there = ["(", "<"].iter().any(|after| source.contains(&format!("fn {function}{after}")));
            assert!(is_there, "{} has no function {function} any more: {:?}", step.file, step.name);
        }
    }
}
