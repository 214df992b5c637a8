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
    search::{Report, explore, explore_from},
    state::{At, Process, Seen, State},
    steps::STEPS,
};

/// What the processes want of the two repositories: the limit that counts for each there, 0 for nothing.
type Wants = [[u8; 2]; 4];

/// Every plan: which repositories each process wants, and the limits, which may differ from process to process as those of a
/// rule with a ceiling do. Where all have the same limits it does not matter who wants what, only how many do.
fn plans(variant: Variant, hold: Hold, deaths: u8) -> Vec<Plan> {
    let alike: [Wants; 4] = [[[1, 1]; 4], [[1, 2]; 4], [[2, 1]; 4], [[2, 2]; 4]];
    let unlike: [Wants; 2] = [[[1, 2], [2, 2], [2, 2], [0, 0]], [[1, 1], [2, 2], [2, 2], [0, 0]]];
    let mut plans = Vec::new();
    for (limits, are_alike) in
        alike.iter().map(|limits| (limits, true)).chain(unlike.iter().map(|limits| (limits, false)))
    {
        for wishes in 0..27 {
            let wishes = [wishes / 9, wishes / 3 % 3, wishes % 3];
            if wishes[1] > wishes[2] || are_alike && wishes[0] > wishes[1] {
                continue;
            }
            // The first repository, the second, or both.
            let wants = |process: usize, file: usize| wishes[process] == 2 || wishes[process] == file;
            let limit =
                |process: usize, file: usize| if wants(process, file) { limits[process][file] } else { 0 };
            let wants = [0, 1, 2].map(|process| [0, 1].map(|file| limit(process, file)));
            let wants = [wants[0], wants[1], wants[2], [0, 0]];
            if plans.iter().all(|plan: &Plan| plan.wants != wants) {
                plans.push(Plan { wants, hold, deaths, moves: 1, variant });
            }
        }
    }
    plans
}

/// The protocol as it is: two processes, of which both may die at any step, and three in the plans with the most to wait for. Where
/// `RUNGATE_MODEL` is set, every plan of three, of which one may die at any step.
#[test]
fn no_state_of_the_protocol_breaks_a_promise() {
    let plan =
        |wants, deaths| Plan { wants, hold: Hold::Process, deaths, moves: 1, variant: Variant::AsItIs };
    let plans = if std::env::var_os("RUNGATE_MODEL").is_some() {
        plans(Variant::AsItIs, Hold::Process, 1)
    } else {
        vec![
            plan([[1, 1], [1, 1], [0, 0], [0, 0]], 2),
            plan([[1, 1], [1, 2], [0, 0], [0, 0]], 2),
            plan([[1, 0], [1, 1], [0, 0], [0, 0]], 2),
            plan([[0, 1], [0, 1], [1, 1], [0, 0]], 0),
            plan([[1, 0], [0, 1], [1, 1], [0, 0]], 0),
        ]
    };
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
fn is_found(variant: Variant, hold: Hold, moves: u8, expected: Broken) {
    for plan in plans(variant, hold, 0) {
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
    is_found(Variant::WithoutMutex, Hold::Descriptor, 1, Broken::OverTheCap);
}

/// "Numbers given out by each file for itself did deadlock: A before B here, B before A there." The first runs with the slot of
/// the first repository, and the third, which wants both, stands in line for that; before it wakes, the second may take the
/// slot of the other repository, for which the fourth then stands in line alone.
#[test]
fn numbers_of_each_file_make_a_circle() {
    let circle = |variant| {
        let wants = [[1, 0], [0, 1], [1, 1], [1, 1]];
        let mut state = State::first(wants, 0);
        state.clock = 2;
        let [holder, _, waiter, _] = &mut state.processes;
        *holder = Process { at: At::Running, number: 1, slots: [1, 0], ..*holder };
        let (tickets, seen) = ([2, 0], [Seen::Full, Seen::Free(1)]);
        *waiter = Process { at: At::Watching, number: 2, tickets, seen, holders: 1, watched: 1, ..*waiter };
        explore_from(&Plan { wants, hold: Hold::Process, deaths: 0, moves: 0, variant }, state)
    };
    let violation = circle(Variant::NumbersOfEachFile).violation;
    assert_eq!(violation.map(|(broken, _)| broken), Some(Broken::NobodyWakes));
    let report = circle(Variant::AsItIs);
    assert!(report.violation.is_none(), "{}", report.story());
}

/// "Closing *any* descriptor of a file drops all of the process's POSIX locks on it."
#[test]
fn a_second_descriptor_drops_a_slot() {
    is_found(Variant::SecondDescriptor, Hold::Process, 1, Broken::SlotLost);
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
