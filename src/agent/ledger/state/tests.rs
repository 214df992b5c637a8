//! What is written of holders, places and last uses, and read again.

use super::*;
use crate::agent::tests::{saved, take};

/// A program of one user ends after another user has started one: the last start is that of the latter.
#[test]
fn the_user_of_the_last_end_is_not_that_of_the_last_start() {
    let table = memory::Store::default().table("sync");
    table.set_stamps(Some(UNIX_EPOCH), None, None);
    assert_eq!(SavedStamps::of(&table, 7).started_by, Some(7), "nothing else is known");
    table.set_stamps(Some(UNIX_EPOCH), Some(UNIX_EPOCH), Some(1000));
    assert_eq!(SavedStamps::of(&table, 7).started_by, Some(1000));
}

/// A remaining file would be a holding for the next agent.
#[test]
fn nothing_is_left_of_a_holding_that_is_forgotten() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    for starts in [vec![false], vec![true], vec![true, false]] {
        for is_started in starts {
            fs::write(state.holding(7, is_started), "{}").expect("there is room");
        }
        fs::write(state.fifo(7), "").expect("there is room");
        state.forget(7);
        assert_eq!(state.names("holdings").expect("it is there"), []);
    }
}

/// A file that was damaged is not of another boot, not even if it is as long as the id of one.
#[test]
fn only_an_id_is_that_of_another_boot() {
    assert!(is_boot_id("0a9f0000-0000-4000-8000-00000000000f"));
    for damaged in ["", "another", &"\0".repeat(36), &"0".repeat(35), &"0".repeat(37)] {
        assert!(!is_boot_id(damaged));
    }
}

/// The file of a program that has started counts, where there is another one of its holding.
#[test]
fn of_two_files_of_a_holding_that_of_its_start_counts() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    for number in 0..20 {
        for is_started in [false, true] {
            let holding = SavedHolding { is_started, ..saved(1, Hold::Process) };
            state.write(number, &holding).expect("there is room");
        }
    }
    let found = state.read().expect("it is whole").holdings;
    assert_eq!((found.len(), found.values().all(|saved| saved.is_started)), (20, true));
}

/// What was not finished is removed when the agent starts. The FIFO of a holding stays.
#[test]
fn what_was_not_finished_is_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    state.write(7, &saved(1, Hold::Descriptor)).expect("there is room");
    let unfinished = state.directory.join("holdings/.9.json.4711");
    for path in [state.fifo(7), state.fifo(8), unfinished] {
        fs::write(path, "").expect("there is room");
    }
    assert_eq!(state.read().expect("it is whole").holdings.len(), 1);
    let names = state.names("holdings").expect("it is there");
    let mut names: Vec<String> = names.into_iter().filter_map(|(name, _)| name.into_string().ok()).collect();
    names.sort_unstable();
    assert_eq!(names, ["7.fifo", "7.json"]);
}

/// Of the launches for which the site was asked, those with a holding were answered. The others are
/// returned once.
#[test]
fn a_launch_with_a_holding_was_answered() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    let of = |pid| saved(pid, Hold::Process);
    for (number, pid) in [(7, 1), (8, 2)] {
        state.write(number, &of(pid)).expect("there is room");
    }
    for (launch, pid) in [(1, 2), (2, 3)] {
        state.write_unproved(launch, &of(pid)).expect("there is room");
    }
    let unproved =
        || -> Vec<i32> { state.read().expect("it is whole").unproved.iter().map(|of| of.pid).collect() };
    assert_eq!(unproved(), [3]);
    assert_eq!(unproved(), [0; 0]);
}

/// A place is saved again if its number, or a queue with its classes, is another one. For how long the
/// launch has waited changes nothing.
#[test]
fn a_place_is_where_its_number_and_its_queues_are() {
    let line = |table: &str, capacity, begun| SavedLine {
        table: table.to_owned(),
        classes: vec![(0, capacity)],
        begun,
        stood: None,
        wants: None,
    };
    let place = |number, lines| SavedPlace {
        pid: 1,
        start: 1,
        uid: 1000,
        command: "matlab".to_owned(),
        number: SavedNumber::of(Number(number), &take()),
        since: None,
        lines,
    };
    let before = place(1, vec![line("seats", 1, 5)]);
    assert!(before.is_where(&place(1, vec![line("seats", 1, 9)])));
    for other in [
        place(2, vec![line("seats", 1, 5)]),
        place(1, vec![line("other", 1, 5)]),
        place(1, vec![line("seats", 2, 5)]),
        place(1, vec![line("seats", 1, 5), line("other", 1, 5)]),
    ] {
        assert!(!before.is_where(&other));
    }
}
