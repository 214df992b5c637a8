//! What is written of holders, places and last uses, and read again.

use std::os::unix::fs::MetadataExt;

use super::*;
use crate::{
    agent::tests::{saved, slots, take},
    sys::own_pid,
    text::visible,
};

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

/// A place is saved again if its number, its FIFO, or a queue with its classes, is another one. For how long
/// the launch has waited changes nothing.
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
        opened: None,
        lines,
    };
    let before = place(1, vec![line("seats", 1, 5)]);
    assert!(before.is_where(&place(1, vec![line("seats", 1, 9)])));
    for other in [
        place(2, vec![line("seats", 1, 5)]),
        place(1, vec![line("other", 1, 5)]),
        place(1, vec![line("seats", 2, 5)]),
        place(1, vec![line("seats", 1, 5), line("other", 1, 5)]),
        SavedPlace { opened: Some(5), ..before.clone() },
    ] {
        assert!(!before.is_where(&other));
    }
}

/// The slots of a group stay taken after the end of the program for as long as the repository says. When
/// those of one table are free, those of another stay for their own time.
#[test]
fn slots_linger_as_long_as_their_repository_says() {
    let of = |table: &str, group: Option<&str>, seconds: Option<u64>| SavedSlots {
        group: group.map(str::to_owned),
        linger: seconds.map(Duration::from_secs),
        ..slots(table, vec![1])
    };
    let (alone, endless) = (of("alone", None, Some(90)), of("endless", Some("games"), None));
    let tables =
        vec![of("short", Some("games"), Some(10)), alone, of("long", Some("games"), Some(60)), endless];
    let holder = SavedHolding { tables, is_given_back: true, ..saved(1, Hold::Tree) };
    assert_eq!(holder.lingers_on("long"), None, "its program runs");
    let before = process::since_boot().expect("a clock");
    let mut ended = holder.lingering().expect("slots stay taken");
    let after = process::since_boot().expect("a clock");
    assert_eq!(ended.tables.iter().map(|of| of.table.as_str()).collect::<Vec<_>>(), ["short", "long"]);
    assert_eq!((ended.hold, ended.is_given_back), (Hold::Process, false));
    let [short, long] = ["short", "long"].map(|table| ended.lingers_on(table).expect("it has ended"));
    assert_eq!((ended.lingers_until, long), (Some(long), short + Duration::from_secs(50)));
    assert!((before..=after).contains(&long.saturating_sub(Duration::from_secs(60))));
    ended.give_up(|of| of.table == "long");
    assert_eq!((ended.lingers_until, ended.lingers_on("short")), (Some(short), Some(short)));
    ended.give_up(|_| true);
    assert_eq!((ended.tables.len(), ended.lingers_until), (0, None));
    let tables = holder.tables.into_iter().filter(|of| ["alone", "endless"].contains(&of.table.as_str()));
    assert!(SavedHolding { tables: tables.collect(), ..saved(1, Hold::Tree) }.lingering().is_none());
}

/// A process that has the number of a recorded one is another one if it has started at another time.
#[test]
fn a_process_with_the_same_number_may_be_another_one() {
    let start = Process::find(own_pid()).expect("it runs").started;
    for (pid, start, runs) in [(own_pid(), start, true), (own_pid(), start - 1, false), (-1, start, false)] {
        assert_eq!(SavedHolding { start, ..saved(pid, Hold::Process) }.runs(), runs);
    }
}

/// The number of a launch in the queues is that of the same launch alone. How long it may wait does not
/// matter.
#[test]
fn a_number_is_that_of_one_launch() {
    let number = SavedNumber::of(Number(3), &take());
    assert!(number.is_for(&take()) && number.is_for(&Take { wait: None, is_again: true, ..take() }));
    assert!(!number.is_for(&Take { typed: "octave".into(), ..take() }));
}

/// What is kept at the site is found by its name there. An ancestor's slots are not the launch's own.
#[test]
fn slots_of_the_site_are_found_by_their_names_there() {
    let of = |table: &str, slot, is_shared| SavedSlots { is_shared, ..slots(table, vec![slot]) };
    let tables = vec![
        of("seats", 1, false),
        of("site/shared", 2, true),
        of("site/a", 3, false),
        of("site/b", 4, false),
    ];
    let paced_at_site = ["site/b", "site/shared"].map(str::to_owned).to_vec();
    let holder = SavedHolding { paced_at_site, tables, ..saved(1, Hold::Process) };
    let paced: Vec<_> = holder.paced_at_site().map(|(name, of)| (name, of.slots[0])).collect();
    assert_eq!(paced, [("b", 4)]);
    assert_eq!((holder.rule_on("a"), holder.rule_on("seats")), ("seats", ""));
    assert_eq!(holder.on_site("b").map(|of| of.slots[0]), Some(4));
    assert_eq!(holder.own_slots().collect::<Vec<_>>(), [("seats", 1), ("site/a", 3), ("site/b", 4)]);
}

/// The slots that a nested launch uses are those of launches of its user. What is known of them stays.
#[test]
fn a_nested_launch_uses_slots_of_its_own_user() {
    let of = |uid, slot| {
        let tables = vec![slots("seats", vec![slot])];
        SavedHolding { uid, tables, ..saved(1, Hold::Process) }
    };
    let all = BTreeMap::from([(3, of(1000, 1)), (4, of(1001, 2)), (5, of(1000, 3))]);
    let shared = SavedSlots { is_shared: true, ..slots("seats", vec![1, 2, 3]) };
    let tables = vec![shared, slots("other", vec![2])];
    let mut below = SavedHolding { tables, ..saved(1, Hold::Process) };
    for all in [all, BTreeMap::new()] {
        below.note_owners(&all);
        let noted = below.tables.iter().map(|of| (of.slots.as_slice(), of.owners.as_slice()));
        assert_eq!(noted.collect::<Vec<_>>(), [(&[1, 3][..], &[3, 5][..]), (&[2], &[])]);
    }
}

/// For how long a launch has waited in a queue counts on over a restart, and for a queue that it has left it
/// stays the same.
#[test]
fn the_time_in_a_queue_counts_on_over_a_restart() {
    let (store, longest) = (memory::Store::default(), Duration::from_secs(5));
    let now = process::since_boot().expect("a clock");
    for (classes, waits) in [(vec![Class { generation: 7, capacity: 3 }], true), (Vec::new(), false)] {
        let table = store.table("seats");
        let line = SavedLine::of(&PlaceInTable { table, classes, longest, wants: Some(2) }, now);
        assert_eq!(Duration::from_millis(line.begun).as_secs(), now.saturating_sub(longest).as_secs());
        let place = line.to_place(store.table("seats"));
        assert!(place.longest >= longest && (waits || place.longest == longest));
        assert_eq!((place.classes.len(), place.wants), (usize::from(waits), Some(2)));
        assert!(place.classes.iter().all(|class| (class.generation, class.capacity) == (7, 3)));
    }
}

/// The state of this boot is kept, and that of another boot is removed. If it is unclear of which boot the
/// holders are, the agent does not start. It does not read what an agent has written that is newer by more
/// than one version.
#[test]
fn only_the_state_of_this_boot_is_kept() {
    let (own, other) = (process::boot_id().expect("an id"), "0a9f0000-0000-4000-8000-00000000000f");
    for (boot, format, has_holdings, left) in [
        (own, FORMAT, true, Some(1)),
        (own, FORMAT + 1, true, Some(1)),
        (own, FORMAT + 2, true, None),
        (other, FORMAT, true, Some(0)),
        (other, FORMAT + 2, true, Some(0)),
        ("damaged", FORMAT, true, None),
        ("damaged", FORMAT, false, Some(0)),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let state = State::open(directory.path()).expect("it is new");
        if has_holdings {
            state.write(7, &saved(1, Hold::Process)).expect("there is room");
        }
        fs::write(state.directory.join("boot"), boot).expect("there is room");
        fs::write(state.format_file(), format!("{format}\n")).expect("there is room");
        let opened = State::open(directory.path()).ok();
        let count = opened.map(|state| {
            // What a newer one saved remains of its format.
            assert_eq!(state.format(), Some(if boot == own { format } else { FORMAT }));
            state.read().expect("it is whole").holdings.len()
        });
        assert_eq!(count, left, "{boot} {format} {has_holdings}");
    }
}

/// An agent that finds another one in its directory removes nothing there, not even the state of another
/// boot. When the other one has ended, it starts.
#[test]
fn two_agents_do_not_use_one_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    state.write(7, &saved(1, Hold::Process)).expect("there is room");
    fs::write(state.directory.join("boot"), "0a9f0000-0000-4000-8000-00000000000f").expect("there is room");
    drop(state);
    // A lock of a description excludes this process as that of another process would.
    let other = File::options().write(true).open(directory.path().join(LOCK)).expect("it is there");
    let is_locked = record_lock::try_lock(other.as_fd(), &LOCKED, Mode::Write, Ownership::Description);
    assert_eq!(is_locked, Ok(true));
    let refused = State::open(directory.path()).err().map(|fatal| fatal.to_string());
    let in_use =
        format!("another agent uses the state directory {}: end it first", visible(directory.path()));
    assert_eq!(refused, Some(in_use));
    assert!(directory.path().join("holdings/7.json").exists());
    record_lock::unlock(other.as_fd(), &LOCKED, Ownership::Description).expect("it is locked");
    let state = State::open(directory.path()).expect("it is free");
    assert_eq!(state.names("holdings").expect("it is there"), []);
}

/// Only root can read what the agent saves. The last uses of its own tables, and of those of the site, are
/// read again under their names until they are forgotten.
#[test]
fn what_is_saved_is_for_root_alone_and_has_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    let table = memory::Store::default().table("any");
    table.set_stamps(Some(UNIX_EPOCH), None, Some(7));
    let stamps = SavedStamps::of(&table, 7);
    for name in ["seats", "site/seats"] {
        state.write_stamps(name, &stamps).expect("there is room");
    }
    state.write(7, &saved(1, Hold::Process)).expect("there is room");
    assert_eq!(state.names("holdings").expect("it is there").len(), 1);
    let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!(mode(directory.path()), 0o700);
    for name in
        ["boot", "format", "lock", "holdings/7.json", "tables/seats.json", "tables-of-site/seats.json"]
    {
        assert_eq!(mode(&state.directory.join(name)), 0o600, "{name}");
    }
    let found = state.read().expect("it is whole").stamps;
    assert_eq!(found, [("seats".to_owned(), stamps), ("site/seats".to_owned(), stamps)]);
    state.forget_stamps("site/seats");
    assert_eq!(state.read().expect("it is whole").stamps.len(), 1);
}

/// What is saved of the site is there until it is forgotten. A damaged confirmation was long ago, and the
/// agent does not invent another identity.
#[test]
fn what_is_saved_of_the_site_is_read_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    let (seconds, site) = (Duration::from_secs, state.directory.join(SITE));
    let silence = SavedSilence { ttl: seconds(9), margin: seconds(2) };
    assert_eq!((state.confirmation(), state.silence()), (None, None));
    state.write_confirmation(seconds(5)).expect("there is room");
    state.write_silence(&silence).expect("there is room");
    assert_eq!((state.confirmation(), state.silence()), (Some(seconds(5)), Some(silence)));
    fs::write(site.join(CONFIRMED), "x").expect("there is room");
    assert_eq!(state.confirmation(), Some(Duration::ZERO));
    state.forget_confirmation();
    assert_eq!((state.confirmation(), state.silence()), (None, None));
    let identity = state.identity().expect("a number");
    assert_eq!(state.identity().expect("the same number"), identity);
    fs::write(site.join(IDENTITY), "x").expect("there is room");
    assert!(state.identity().is_err());
}

/// A user with too many unused FIFOs loses the oldest. Those that scripts wait with stay, however old.
#[test]
fn a_user_with_too_many_fifos_loses_the_oldest() {
    let end = || std::io::stderr().as_fd().try_clone_to_owned().expect("a descriptor");
    let count = u64::try_from(MOST_UNUSED).expect("a number");
    let mut unused: VecDeque<Unused> = (0..count + 4).map(|number| (number, end())).collect();
    // No user has this number, so none of these FIFOs exists.
    limit_unused(u32::MAX - 1, &mut unused, &BTreeSet::from([0, 2]));
    let left: Vec<u64> = unused.iter().map(|(number, _)| *number).collect();
    let expected: Vec<u64> = [0, 2].into_iter().chain(4..count + 4).collect();
    assert_eq!((left, expected.len()), (expected, MOST_UNUSED + 2));
}
