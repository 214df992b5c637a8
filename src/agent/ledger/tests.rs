//! What the agent keeps, over its own restarts: numbers, places and ends.

mod failures;
mod nested;
mod scripts;

use std::{
    collections::VecDeque,
    io,
    os::fd::AsFd,
    path::Path,
    process::{Child, Command},
    rc::Rc,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tempfile::TempDir;

use super::{
    AWAY, CheckOutcome, FIFO, Holding, KINDS, LONGEST_ABSENCE, Ledger, MOST_ENDS, PROCESS, RECOVERED,
    state::{SavedHolding, SavedPlace, SavedSlots, SavedStamps, State, at},
};
use crate::{
    agent::{
        Caller, Session,
        tests::{HOUR, claim, ending, holding, needs, overdue, place, saved, slots},
    },
    judge::terms::{
        Amount, Claim, Demand, ElapsedFrom, Expiry, Group, Hold, Pace, Pause, Seats, Slots, TooSoon,
    },
    keeper::{Holder, Number, agent::message::End, memory},
    sys::{Failure, Fifo, PidFd, Poller, Process, Signal, own_pid, process},
};

/// An agent that starts with this state, and its first unused number.
fn ledger(directory: &Path) -> (Ledger, u64) {
    let poller = Rc::new(Poller::new().expect("a poller"));
    Ledger::open(poller, directory).expect("a state")
}

/// A new state directory.
fn state() -> (TempDir, State) {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    (directory, state)
}

/// A process that does nothing, until this is dropped.
struct Idle(Child);

impl Idle {
    fn begin() -> Self {
        Self(Command::new("sleep").arg("600").spawn().expect("sleep(1)"))
    }

    fn pid(&self) -> i32 {
        self.0.id().try_into().expect("a PID")
    }

    /// Its place in the queue of a table, as it is saved.
    fn place(&self) -> SavedPlace {
        place(self.pid())
    }

    /// Stops it, or continues it.
    fn stop(&self, is_stopped: bool) {
        let signal = if is_stopped { Signal::SIGSTOP } else { Signal::SIGCONT };
        PidFd::open(self.pid()).expect("it runs").signal(signal).expect("it is ours");
        while Process::find(self.pid()).is_some_and(|process| process.is_stopped()) != is_stopped {
            thread::yield_now();
        }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A launch that waited when the agent failed is passed over if it does not come back in time. After its time
/// to come back late, it has lost its place, unless its process is stopped, or was until then.
#[test]
fn a_launch_that_does_not_come_back_loses_its_place_unless_it_is_stopped() {
    let (waiter, (directory, state)) = (Idle::begin(), state());
    state.write_place(9, &waiter.place()).expect("there is room");
    let (mut ledger, _) = ledger(directory.path());
    let table = ledger.store().known("seats").expect("a table");
    assert_eq!(table.first_waiters(1)[0].process.pid, Some(waiter.pid()));
    assert_eq!(table.next_to_look(None, &[]), Some(Number(1)));
    // The number of its queues, and whether it has more time.
    let mut pass_over = || {
        let before = ledger.next_recovered();
        let tables = ledger.pass_over(9).map(|tables| tables.len());
        tables.map(|count| (count, ledger.next_recovered() > before))
    };
    assert_eq!(pass_over(), Some((1, true)));
    assert_eq!(table.next_to_look(None, &[]), None, "it is passed over");
    waiter.stop(true);
    assert_eq!(pass_over(), Some((0, true)));
    waiter.stop(false);
    assert_eq!(pass_over(), Some((0, true)), "it was stopped until now");
    assert_eq!(pass_over(), None);
}

/// After a standstill of the agent, launches that are not passed over yet have their full time to come back.
#[test]
fn a_standstill_gives_time_to_come_back() {
    let (waiter, (directory, state)) = (Idle::begin(), state());
    state.write_place(9, &waiter.place()).expect("there is room");
    let (mut ledger, _) = ledger(directory.path());
    let [first, second] = [1, 2].map(|hours| Instant::now() + HOUR * hours);
    ledger.wait_for_recovered(first);
    assert_eq!(ledger.next_recovered(), Some((first, 9)));
    assert!(ledger.pass_over(9).is_some());
    let (due, _) = ledger.next_recovered().expect("it may still come back");
    assert_eq!(due, first + LONGEST_ABSENCE.saturating_sub(AWAY));
    ledger.wait_for_recovered(second);
    assert_eq!(ledger.next_recovered(), Some((due, 9)));
    let begun = Instant::now();
    assert!(ledger.pass_over(9).is_none());
    let (due, _) = ledger.next_recovered().expect("it is still known");
    assert!(begun + LONGEST_ABSENCE <= due && due <= Instant::now() + LONGEST_ABSENCE);
}

/// The first number of an agent is above all that are saved, of holders and of places.
#[test]
fn numbers_begin_above_all_that_are_saved() {
    for (holder, place, next) in [(3, 9, 10), (9, 3, 10)] {
        let (idle, (directory, state)) = (Idle::begin(), state());
        let start = Process::find(idle.pid()).expect("it runs").started;
        let holding = SavedHolding { start, ..saved(idle.pid(), Hold::Process) };
        state.write(holder, &holding).expect("there is room");
        state.write_place(place, &idle.place()).expect("there is room");
        let (ledger, first) = ledger(directory.path());
        assert_eq!((ledger.holdings().len(), ledger.recovered().len()), (1, 1));
        assert_eq!(first, next);
    }
}

/// A slot that lingers is free when its time is over, also if no agent ran then: the time does not begin
/// again.
#[test]
fn a_time_that_is_over_does_not_begin_again() {
    for is_over in [false, true] {
        let (directory, state) = state();
        let now = process::since_boot().expect("a clock");
        let until = if is_over { now.saturating_sub(Duration::from_secs(1)) } else { now + HOUR };
        let group = Some("games".to_owned());
        let of = SavedSlots { group, is_of_heirs: true, linger: Some(HOUR), ..slots("seats", vec![1]) };
        let ended =
            SavedHolding { lingers_until: Some(until), tables: vec![of], ..saved(own_pid(), Hold::Process) };
        state.write(9, &ended).expect("there is room");
        let (ledger, _) = ledger(directory.path());
        let used = ledger.store().known("seats").map_or(0, |table| table.used());
        assert_eq!((ledger.lingering().len(), used), if is_over { (0, 0) } else { (1, 1) });
        assert_eq!(state.read().expect("it is whole").holdings.is_empty(), is_over, "it is forgotten");
    }
}

/// The time of a slot whose program ended while no agent ran counts from the start of the agent. It is
/// saved.
#[test]
fn the_time_after_an_unseen_end_is_saved() {
    let (directory, state) = state();
    let start = Process::find(own_pid()).expect("it runs").started;
    let group = Some("games".to_owned());
    let of = SavedSlots { group, is_of_heirs: true, linger: Some(HOUR), ..slots("seats", vec![1]) };
    // A later process has the number of this one.
    let ended = SavedHolding { start: start - 1, tables: vec![of], ..saved(own_pid(), Hold::Process) };
    state.write(9, &ended).expect("there is room");
    let now = process::since_boot().expect("a clock");
    let (ledger, _) = ledger(directory.path());
    assert_eq!((ledger.holdings().len(), ledger.lingering().len()), (0, 1));
    let found = state.read().expect("it is whole").holdings;
    assert!(found[&9].lingers_until >= Some(now + HOUR));
}

/// The last use of a table is saved on this host, unless other hosts keep the table, too.
#[test]
fn a_last_use_is_saved_where_its_table_is_kept() {
    let paced = |table: &str| {
        let (from, too_soon) = (ElapsedFrom::Start, TooSoon::Refuse);
        let pause = Some(Pause { length: HOUR, from, too_soon });
        Demand::One(Claim { pace: Pace { pause, expiry: None }, ..claim(table) })
    };
    let plain = Demand::One(claim("other"));
    let request = needs(vec![paced("seats"), paced("site/seats"), plain]);
    for (is_shared, here, at_site) in
        [(true, &["seats"][..], &["site/seats"][..]), (false, &["seats", "site/seats"], &[])]
    {
        let (directory, _state) = state();
        let (ledger, _) = ledger(directory.path());
        let process = || PidFd::open(own_pid()).map_err(Failure::of("pidfd_open"));
        let outcome = ledger.look(7, &mut Session::default(), &request, is_shared, process);
        let CheckOutcome::Granted(holding) = outcome else { panic!("there is room") };
        assert_eq!(holding.saved.paced, here);
        assert_eq!(holding.saved.paced_at_site, at_site);
        let pauses = ["seats", "other"].map(|name| ledger.store().table(name).longest_pause());
        assert_eq!(pauses, [HOUR, Duration::ZERO]);
    }
}

/// Slots that a nested launch uses stay taken when their own launch has ended, also over a restart, and with
/// them the others of that launch.
#[test]
fn a_slot_that_is_used_below_stays_taken_over_a_restart() {
    let start = Process::find(own_pid()).expect("it runs").started;
    for lives in [true, false] {
        let (directory, state) = state();
        let tables = vec![slots("other", vec![1]), slots("seats", vec![1])];
        // A later process has the number of this one.
        let above = SavedHolding { start: start - 1, tables, ..saved(own_pid(), Hold::Process) };
        let shared = SavedSlots { is_shared: true, ..slots("seats", vec![1]) };
        let start = if lives { start } else { start - 1 };
        let tables = vec![slots("third", vec![1]), shared];
        let below = SavedHolding { start, tables, ..saved(own_pid(), Hold::Process) };
        for (number, holding) in [(1, above), (2, below)] {
            state.write(number, &holding).expect("there is room");
        }
        let (mut ledger, _) = ledger(directory.path());
        let used = |name| ledger.store().known(name).map_or(0, |table| table.used());
        let (count, each) = if lives { (2, 1) } else { (0, 0) };
        assert_eq!((ledger.holdings().len(), used("other"), used("seats")), (count, each, each));
        let shared = |of: &Holding| of.held.iter().filter(|held| held.is_shared()).count();
        let shared: Vec<_> = ledger.holdings().values().map(shared).collect();
        assert_eq!(shared, if lives { vec![0, 1] } else { Vec::new() });
        assert_eq!(ledger.left_over(), None);
        drop(ledger.release(2, true));
        assert_eq!(ledger.left_over(), lives.then_some(1), "nothing uses its slots any more");
    }
}

/// Nothing is saved any more of a launch that has given back its slots, whether its program had them or not.
#[test]
fn nothing_is_saved_of_slots_that_are_given_back() {
    let start = Process::find(own_pid()).expect("it runs").started;
    for has_run in [true, false] {
        let (directory, state) = state();
        let tables = vec![slots("seats", vec![1])];
        let holder = SavedHolding { start, tables, ..saved(own_pid(), Hold::Process) };
        state.write(9, &holder).expect("there is room");
        let (mut ledger, _) = ledger(directory.path());
        assert_eq!(ledger.holdings().len(), 1);
        drop(ledger.release(9, has_run));
        assert!(state.read().expect("it is whole").holdings.is_empty());
    }
}

/// When a nested launch ends that used the slot of another one, the program of that has not ended: no pause
/// begins.
#[test]
fn the_end_of_a_nested_launch_begins_no_pause() {
    for is_shared in [true, false] {
        let (directory, _state) = state();
        let (mut ledger, _) = ledger(directory.path());
        let table = ledger.store().table("seats");
        let own = table.take(&[1]).expect("it is free");
        let shared = if is_shared { table.share_again(&[1]) } else { None };
        let (held, _above) = match shared {
            Some(shared) => (shared, Some(own)),
            None => (own, None),
        };
        let tables = vec![SavedSlots { is_shared, ..slots("seats", vec![1]) }];
        let mut launch = holding(SavedHolding { tables, ..saved(1, Hold::Process) }, None);
        launch.held = vec![held];
        ledger.holdings.insert(9, launch);
        drop(ledger.release(9, true));
        assert_eq!(table.stamps().1.is_none(), is_shared);
    }
}

/// A launch counts as heard from its first check on, and not again with each check.
#[test]
fn a_launch_is_heard_from_its_first_check_on() {
    let (directory, _state) = state();
    let (ledger, _) = ledger(directory.path());
    let (mut session, request) = (Session::default(), needs(vec![Demand::One(claim("seats"))]));
    let mut checked = || {
        let process = || PidFd::open(own_pid()).map_err(Failure::of("pidfd_open"));
        let _granted = ledger.look(7, &mut session, &request, false, process);
        session.place.beaten
    };
    let begun = Instant::now();
    let first = checked();
    assert!(first >= Some(begun));
    assert_eq!(checked(), first);
}

/// A launch that takes slots again has had them since the first time, and another one from now on.
#[test]
fn a_holder_has_had_its_slots_since_the_first_time() {
    let (directory, _state) = state();
    let (ledger, _) = ledger(directory.path());
    let request = needs(vec![Demand::One(claim("seats"))]);
    let begun = process::since_boot().expect("a clock").as_millis();
    for taken in [Some(5), None] {
        let mut session = Session::default();
        session.place.taken = taken;
        let process = || PidFd::open(own_pid()).map_err(Failure::of("pidfd_open"));
        let outcome = ledger.look(7, &mut session, &request, false, process);
        let CheckOutcome::Granted(holding) = outcome else { panic!("there is room") };
        let is_new = holding.saved.taken.is_some_and(|taken| u128::from(taken) >= begun);
        assert_eq!((holding.saved.taken == Some(5), is_new), (taken.is_some(), taken.is_none()));
    }
}

/// If there are too many ends of programs, the user who has most of them loses the oldest.
#[test]
fn the_user_with_most_ends_loses_the_oldest() {
    let (directory, _state) = state();
    let (mut ledger, _) = ledger(directory.path());
    let one = saved(1, Hold::Process);
    let of = |uid, pid| SavedHolding { pid, uid, ..one.clone() };
    ledger.remember_end(&of(1, -1));
    let many = i32::try_from(MOST_ENDS).expect("a small number");
    for pid in 1..many {
        ledger.remember_end(&of(2, pid));
    }
    let remembered = |ledger: &Ledger, pid| ledger.ends().iter().any(|end| end.pid == pid);
    assert!(remembered(&ledger, 1), "there is room for all");
    ledger.remember_end(&of(3, -3));
    assert!(!remembered(&ledger, 1));
    assert!([-1, 2, many - 1, -3].into_iter().all(|pid| remembered(&ledger, pid)));
    assert_eq!(ledger.ends().len(), MOST_ENDS);
}

/// The ends of all users are in the order of time.
#[test]
fn ends_are_in_the_order_of_time() {
    let (directory, _state) = state();
    let (mut ledger, _) = ledger(directory.path());
    for (uid, seconds) in [(1, [2, 5]), (2, [1, 4]), (3, [3, 6])] {
        let end = |pid: i32| {
            let until = at(Duration::from_secs(pid.unsigned_abs().into())).expect("a moment");
            End { pid, since: until, until }
        };
        ledger.ends.insert(uid, seconds.map(end).into());
    }
    assert_eq!(ledger.ends().iter().map(|end| end.pid).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
}

/// The agent hears of the end of a process that has slots. When these are given back, it hears nothing of
/// that process any more, also if something else has it open.
#[test]
fn the_end_of_a_process_with_slots_is_heard() {
    let (directory, _state) = state();
    let (mut ledger, _) = ledger(directory.path());
    for (is_released, expected) in [(false, vec![9 * KINDS + PROCESS]), (true, Vec::new())] {
        let mut idle = Idle::begin();
        let process = PidFd::open(idle.pid()).expect("it runs");
        let _copy = process.try_clone().expect("a descriptor");
        let launch = holding(saved(idle.pid(), Hold::Process), Some(process));
        assert!(ledger.grant(9, launch).is_ok());
        if is_released {
            drop(ledger.release(9, false));
        }
        idle.0.kill().expect("it is ours");
        idle.0.wait().expect("it has ended");
        assert_eq!(ledger.poller.wait(Some(Duration::ZERO)), Ok(expected));
        drop(ledger.release(9, true));
    }
}

/// The agent hears of the end of a launch that has not come back, until it has come back.
#[test]
fn the_end_of_a_launch_that_does_not_come_back_is_heard() {
    for (comes_back, expected) in [(false, vec![9 * KINDS + RECOVERED]), (true, Vec::new())] {
        let (mut waiter, (directory, state)) = (Idle::begin(), state());
        state.write_place(9, &waiter.place()).expect("there is room");
        let (mut ledger, _) = ledger(directory.path());
        let _back = comes_back.then(|| ledger.take_recovered(9).expect("it waits"));
        waiter.0.kill().expect("it is ours");
        waiter.0.wait().expect("it has ended");
        assert_eq!(ledger.poller.wait(Some(Duration::ZERO)), Ok(expected));
    }
}

/// The last use of a table is saved when a launch has slots of it, and when they are free again. It is known
/// after a restart.
#[test]
fn the_last_use_of_a_table_is_known_after_a_restart() {
    let (directory, state) = state();
    let (mut ledger, _) = ledger(directory.path());
    let table = ledger.store().table("seats");
    let (paced, tables) = (vec!["seats".to_owned()], vec![slots("seats", vec![1])]);
    let saved = SavedHolding { paced, tables, ..saved(own_pid(), Hold::Process) };
    let mut launch = holding(saved, PidFd::open(own_pid()).ok());
    launch.held = table.take(&[1]).into_iter().collect();
    table.started(&[1], SystemTime::now());
    table.pauses_for(HOUR);
    assert!(ledger.grant(9, launch).is_ok());
    assert!(state.read().expect("it is whole").holdings.contains_key(&9));
    let stamps = || state.read().expect("it is whole").stamps;
    assert_eq!(stamps(), [("seats".to_owned(), SavedStamps::of(&table, 1000))]);
    assert_eq!(table.stamps().1, None);
    drop(ledger.release(9, true));
    assert!(table.stamps().1.is_some());
    assert_eq!(stamps(), [("seats".to_owned(), SavedStamps::of(&table, 1000))]);
    let (ledger, _) = self::ledger(directory.path());
    let restored = ledger.store().known("seats").expect("it was used");
    assert_eq!((restored.stamps(), restored.longest_pause()), (table.stamps(), HOUR));
    assert_eq!(ledger.store().count_of(1000), 1, "it counts for the user");
}

/// Root makes a table forget its last use. There is nothing to forget of one that was not used.
#[test]
fn a_last_use_is_forgotten_once() {
    let (directory, state) = state();
    let (ledger, _) = ledger(directory.path());
    assert!(!ledger.reset("seats"));
    let table = ledger.store().table("seats");
    table.set_stamps(None, Some(UNIX_EPOCH), None);
    state.write_stamps("seats", &SavedStamps::of(&table, 1000)).expect("there is room");
    assert!(ledger.reset("seats") && !ledger.reset("seats"));
    assert!(state.read().expect("it is whole").stamps.is_empty() && ledger.store().known("seats").is_none());
    // So is that of a table which is not needed any more, when its user needs others.
    for (is_of_site, left) in [(true, 1), (false, 0)] {
        let table = ledger.store_of(Some(1000)).table("site/seats");
        table.set_stamps(None, Some(UNIX_EPOCH), None);
        state.write_stamps("site/seats", &SavedStamps::of(&table, 1000)).expect("there is room");
        ledger.forget_idle(1000, |_| is_of_site);
        assert_eq!(state.read().expect("it is whole").stamps.len(), left);
        assert_eq!(ledger.store().known("site/seats").is_some(), is_of_site);
    }
}

/// Each program that runs is counted after a restart, also if two of them have the same slot.
#[test]
fn each_program_that_runs_is_counted_after_a_restart() {
    let (directory, state) = state();
    let start = Process::find(own_pid()).expect("it runs").started;
    for number in [1, 2] {
        let tables = vec![slots("seats", vec![1])];
        let holder = SavedHolding { start, tables, ..saved(own_pid(), Hold::Process) };
        state.write(number, &holder).expect("there is room");
    }
    let (ledger, _) = ledger(directory.path());
    assert_eq!(ledger.store().known("seats").map(|table| table.used()), Some(2));
    assert_eq!(ledger.holdings()[&2].saved.tables[0].slots, [2]);
    assert!(ledger.holdings().values().all(|of| of.launch == 0), "no admission of this agent");
}

/// The number of a launch that runs is not given again after a restart: the launch may come back with it.
#[test]
fn the_number_of_a_launch_that_runs_is_used_after_a_restart() {
    let (idle, (directory, state)) = (Idle::begin(), state());
    let start = Process::find(idle.pid()).expect("it runs").started;
    let tables = vec![slots("seats", vec![1])];
    let served_as = serde_json::from_str(r#"{"number":7,"launch":[0,0]}"#).expect("a number");
    let holder =
        SavedHolding { start, is_started: true, tables, served_as, ..saved(idle.pid(), Hold::Process) };
    state.write(2, &holder).expect("there is room");
    let (ledger, _) = ledger(directory.path());
    let table = ledger.store().known("seats").expect("a table");
    assert_eq!((table.used(), table.highest_number()), (1, Some(Number(7))));
}

/// What has the FIFO of a holder keeps its slots over a restart, although the process that asked has ended.
#[test]
fn a_fifo_keeps_slots_over_a_restart() {
    for is_held in [true, false] {
        let (directory, state) = state();
        let tables = vec![slots("seats", vec![1])];
        let holder = SavedHolding { is_started: true, tables, ..saved(own_pid(), Hold::Descriptor) };
        let _reader = state.new_fifo(7).expect("a FIFO");
        state.write(7, &holder).expect("there is room");
        let writer = is_held.then(|| Fifo::writer(&state.fifo(7)).expect("a FIFO"));
        let (mut ledger, _) = ledger(directory.path());
        assert_eq!((ledger.holdings().len(), state.fifo(7).exists()), (usize::from(is_held), is_held));
        assert!(!ledger.on_end(7, false), "the FIFO is open, or there is no holder");
        drop(writer);
        if is_held {
            // A process that another test starts may have a copy of its end for a moment.
            let happened = ledger.poller.wait(Some(Duration::from_secs(30)));
            assert_eq!(happened, Ok(vec![7 * KINDS + FIFO]));
        }
        assert_eq!(ledger.on_end(7, true), is_held);
    }
}

/// Slots linger after a program had them, and only then. A program that takes over the slot of an earlier one
/// leaves one entry.
#[test]
fn slots_linger_after_a_program_had_them() {
    let (directory, state) = state();
    let (mut ledger, _) = ledger(directory.path());
    let (table, group) = (ledger.store().table("seats"), Group::of_heirs("games"));
    for (number, has_run, expected) in [(1, false, &[][..]), (2, true, &[2]), (3, true, &[3])] {
        let of = SavedSlots {
            group: Some(group.text().to_owned()),
            is_of_heirs: true,
            linger: Some(HOUR),
            ..slots("seats", vec![1])
        };
        let mut launch = holding(SavedHolding { tables: vec![of], ..saved(1, Hold::Process) }, None);
        launch.held = table.restore(&[1], Some(&group)).into_iter().collect();
        ledger.holdings.insert(number, launch);
        drop(ledger.release(number, has_run));
        assert_eq!(ledger.lingering().keys().copied().collect::<Vec<_>>(), expected);
        assert_eq!((table.used(), table.stamps().1.is_some()), (u64::from(has_run), has_run));
        assert_eq!(state.read().expect("it is whole").holdings.len(), usize::from(has_run));
    }
    let (_, next) = ledger.next_lingering().expect("it lingers");
    assert_eq!(next, 3);
    for (table, slot) in [("seats", 2), ("other", 1)] {
        assert!(ledger.end_lingering_at(table, slot).is_empty());
    }
    assert!(ledger.end_lingering(3, Duration::ZERO).is_empty(), "its time is not over");
    assert_eq!(ledger.end_lingering_at("seats", 1).len(), 1);
    assert_eq!((table.used(), ledger.next_lingering()), (0, None));
    assert!(state.read().expect("it is whole").holdings.is_empty());
}

/// Slots of several repositories linger each for its own time. What is left of them is saved.
#[test]
fn slots_of_several_repositories_linger_for_their_own_times() {
    let (directory, state) = state();
    let (mut ledger, _) = ledger(directory.path());
    let group = Group::of_heirs("games");
    let tables = ["long", "short"].map(|table| {
        let linger = Some(if table == "long" { HOUR * 2 } else { HOUR });
        let group = Some(group.text().to_owned());
        SavedSlots { group, is_of_heirs: true, linger, ..slots(table, vec![1]) }
    });
    let mut launch = holding(SavedHolding { tables: tables.to_vec(), ..saved(1, Hold::Process) }, None);
    let held = ["long", "short"].map(|table| ledger.store().table(table).restore(&[1], Some(&group)));
    launch.held = held.into_iter().flatten().collect();
    ledger.holdings.insert(9, launch);
    drop(ledger.release(9, true));
    let until = ledger.lingering()[&9].next();
    let over = ledger.end_lingering(9, until);
    assert_eq!(over.iter().map(|held| held.table().name()).collect::<Vec<_>>(), ["short"]);
    let found = state.read().expect("it is whole").holdings;
    let left = &found[&9];
    assert_eq!((left.tables.len(), left.lingers_on("long")), (1, Some(until + HOUR)));
    assert_eq!(ledger.lingering()[&9].next(), until + HOUR);
}

/// A holder that ended while a nested launch used its slot is left over as soon as that launch does not use
/// it any more, whether it has ended or got nothing. A holder whose process runs is not.
#[test]
fn a_holder_that_only_a_nested_launch_kept_is_left_over() {
    let (directory, _state) = state();
    let (mut ledger, _) = ledger(directory.path());
    let [table, other] = ["seats", "other"].map(|name| ledger.store().table(name));
    let of = |hold, process, held: [Option<memory::Held>; 2]| {
        let held = held.into_iter().flatten().collect();
        Holding { held, ..holding(saved(own_pid(), hold), process) }
    };
    let own = PidFd::open(own_pid()).ok();
    // Its FIFO was closed.
    ledger.holdings.insert(7, of(Hold::Tree, own, [table.take(&[1]), None]));
    ledger.holdings.insert(8, of(Hold::Process, None, [table.take(&[2]), other.take(&[2])]));
    ledger.holdings.insert(9, of(Hold::Process, None, [table.take(&[3]), other.share_again(&[2])]));
    let [below_the_first, below_the_last] =
        [1, 3].map(|slot| table.share_again(&[slot]).expect("it is held"));
    assert!(!ledger.on_end(7, true) && !ledger.on_end(8, false) && !ledger.on_end(9, false));
    assert_eq!(ledger.left_over(), None, "their slots are used");
    drop(below_the_first);
    assert_eq!(ledger.left_over(), None, "its process runs");
    drop(below_the_last);
    for number in [9, 8] {
        assert_eq!(ledger.left_over(), Some(number));
        drop(ledger.release(number, true));
    }
    assert_eq!((ledger.left_over(), ledger.holdings().len(), table.used()), (None, 1, 1));
}

/// The same where a program starts without the descriptor that kept its slot.
#[test]
fn a_holder_that_started_without_its_descriptor_is_left_over() {
    let (directory, _state) = state();
    let (mut ledger, _) = ledger(directory.path());
    let table = ledger.store().table("seats");
    let mut launch = holding(saved(own_pid(), Hold::Descriptor), PidFd::open(own_pid()).ok());
    launch.held = table.take(&[1]).into_iter().collect();
    ledger.holdings.insert(9, launch);
    let below = table.share_again(&[1]).expect("it is held");
    assert!(!ledger.on_end(9, true), "its program has not started");
    drop(below);
    assert_eq!(ledger.left_over(), None, "it may ask for its slot again");
    let below = table.share_again(&[1]).expect("it is held");
    assert!(!ledger.on_start(9), "it is used below");
    drop(below);
    assert_eq!(ledger.left_over(), Some(9));
}

/// A supervisor that lost its connection is known by its process and its user.
#[test]
fn a_supervisor_is_known_by_its_process() {
    let (directory, _state) = state();
    let (mut ledger, _) = ledger(directory.path());
    ledger.holdings.insert(8, holding(saved(7, Hold::Process), None));
    ledger.holdings.insert(9, holding(saved(7, Hold::Supervisor), None));
    for (pid, start, uid, found) in
        [(7, 1, 1000, Some(9)), (8, 1, 1000, None), (7, 2, 1000, None), (7, 1, 1001, None)]
    {
        assert_eq!(ledger.supervised_by((pid, start, uid)), found);
    }
    ledger.holdings.remove(&9);
    assert_eq!(ledger.supervised_by((7, 1, 1000)), None, "it is no supervisor");
    assert!(ledger.is_unused(8) && !ledger.is_unused(9));
}

/// The program of a supervisor is saved, so that it is known after a restart. No other process is its
/// program.
#[test]
fn the_program_of_a_supervisor_is_saved() {
    let (idle, (directory, state)) = (Idle::begin(), state());
    let (mut ledger, _) = ledger(directory.path());
    ledger.holdings.insert(9, holding(saved(own_pid(), Hold::Supervisor), None));
    let saved = || state.read().expect("it is whole").holdings.get(&9).and_then(|saved| saved.program);
    ledger.runs_as(8, idle.pid());
    ledger.runs_as(9, own_pid());
    assert!(saved().is_none() && ledger.holdings()[&9].saved.program.is_none());
    ledger.runs_as(9, idle.pid());
    assert_eq!((saved(), ledger.holdings()[&9].saved.program), (Some(idle.pid()), Some(idle.pid())));
}

/// The place of a launch is saved when it is another one, in the same file, and forgotten when it is left.
#[test]
fn a_place_has_one_file() {
    let (idle, (directory, state)) = (Idle::begin(), state());
    let (ledger, _) = ledger(directory.path());
    let place = |number: u64| {
        let mut place = idle.place();
        place.number.number = number;
        place
    };
    let saved = || {
        let places = state.read().expect("it is whole").places.into_iter();
        places.map(|(file, place)| (file, place.number.number, place.pid)).collect::<Vec<_>>()
    };
    let mut written = None;
    ledger.write_place(5, &mut written, None);
    assert!(saved().is_empty());
    for (file, number) in [(5, 1), (6, 2)] {
        ledger.write_place(file, &mut written, Some(place(number)));
        assert_eq!(saved(), [(5, number, idle.pid())]);
    }
    ledger.write_place(5, &mut written, Some(SavedPlace { pid: -1, ..place(2) }));
    assert_eq!(saved(), [(5, 2, idle.pid())], "it is the same place");
    ledger.write_place(5, &mut written, None);
    assert!(saved().is_empty() && written.is_none());
}

/// A launch that has ended while no agent ran has lost its place, also if another process has its number.
#[test]
fn a_launch_that_has_ended_has_no_place() {
    let (idle, (directory, state)) = (Idle::begin(), state());
    let place = idle.place();
    state.write_place(9, &SavedPlace { start: place.start - 1, ..place }).expect("there is room");
    let (ledger, _) = ledger(directory.path());
    assert!(ledger.recovered().is_empty() && state.read().expect("it is whole").places.is_empty());
}

/// Of the launches that may come back, the one is next whose time is over first.
#[test]
fn the_first_time_that_is_over_is_the_next() {
    let (waiter, (directory, state)) = (Idle::begin(), state());
    for file in [7, 8, 9] {
        let mut place = waiter.place();
        place.number.number = file;
        state.write_place(file, &place).expect("there is room");
    }
    let (mut ledger, _) = ledger(directory.path());
    let now = Instant::now();
    for (file, hours) in [(7, 2), (8, 1), (9, 3)] {
        ledger.recovered.get_mut(&file).expect("it waits").due = now + HOUR * hours;
    }
    assert_eq!(ledger.next_recovered(), Some((now + HOUR, 8)));
}

/// A launch ends overdue holders: none of its own ancestors, none that it has tried, and none besides those
/// that are being ended and make room.
#[test]
fn a_launch_ends_only_the_holders_that_it_needs() {
    let (idle, (directory, _state)) = (Idle::begin(), state());
    let (ledger, _) = ledger(directory.path());
    let table = ledger.store().table("seats");
    let held = [1, 2].map(|slot| table.take(&[slot]).expect("it is free"));
    let pace = Pace { pause: None, expiry: Some(Expiry::AT_REQUEST) };
    let seats = Claim { amount: Amount::plain(Slots::Number(1), 2), pace, ..claim("seats") };
    let request = needs(vec![Demand::One(seats)]);
    // The first is the longest overdue. Returns whom it ends, and whether another one that it ends rests.
    let ends = |holders: [i32; 2], tried: &[i32], ended: Option<i32>| {
        for ((held, holder), taken) in held.iter().zip(holders).zip(0..) {
            let saved = SavedHolding { taken: Some(taken), ..saved(holder, Hold::Process) };
            held.describe(saved.holder("seats"));
        }
        let mut session = Session::new(Caller { pid: own_pid(), ..Caller::default() });
        session.tried = tried.to_vec();
        session.evictions.extend(ended.map(|pid| ending(5, overdue(pid, Some(Duration::ZERO)))));
        let process = || PidFd::open(own_pid()).map_err(Failure::of("pidfd_open"));
        match ledger.look(7, &mut session, &request, false, process) {
            CheckOutcome::Blocked(blocked) => {
                let overdue = blocked.evictions.iter().flat_map(|eviction| &eviction.overdue);
                let begun: Vec<i32> = overdue.map(|overdue| overdue.pid).collect();
                (begun, session.evictions.first().map(|eviction| eviction.rests))
            }
            _ => panic!("there is no room"),
        }
    };
    let (first, own) = (idle.pid(), own_pid());
    assert_eq!(ends([first, own], &[], None), (vec![first], None));
    assert_eq!(ends([own, first], &[], None), (vec![first], None), "it is the launch itself");
    assert_eq!(ends([first, own], &[first], None), (vec![], None), "it was tried");
    assert_eq!(ends([first, 6], &[6], Some(6)), (vec![], Some(false)), "another one is being ended");
    assert_eq!(ends([first, own], &[6], Some(6)), (vec![first], Some(true)), "that one has no slot here");
}

/// The end of a holder rests while it would make no room: because of a second table, or because its group is
/// not overdue any more.
#[test]
fn the_end_of_a_holder_rests_while_it_would_be_in_vain() {
    let (directory, _state) = state();
    let (ledger, _) = ledger(directory.path());
    let now = process::since_boot().expect("a time");
    let after = Duration::from_millis(1);
    let pace = Pace { pause: None, expiry: Some(Expiry { after, ..Expiry::AT_REQUEST }) };
    let expires = |name| Claim { amount: Amount::plain(Slots::Number(1), 1), pace, ..claim(name) };
    let request = needs(vec![Demand::One(expires("seats")), Demand::One(expires("spare"))]);
    let mut session = Session::new(Caller { pid: own_pid(), ..Caller::default() });
    session.evictions = vec![ending(5, overdue(6, Some(Duration::ZERO)))];
    let mut rests = || {
        let process = || PidFd::open(own_pid()).map_err(Failure::of("pidfd_open"));
        match ledger.look(7, &mut session, &request, false, process) {
            CheckOutcome::Blocked(blocked) => {
                assert!(!blocked.ends_others());
                session.evictions[0].rests
            }
            _ => panic!("there is no room"),
        }
    };
    let holder = |pid, taken| Holder { taken: Some(taken), ..saved(pid, Hold::Process).holder("seats") };
    // No pause of the machine makes the latter overdue.
    let (old, young) = (holder(6, Duration::ZERO), holder(8, now + HOUR));
    let (table, group) = (ledger.store().table("seats"), Group::of("ann"));
    let held = table.take_with(&Seats { shared: Vec::new(), free: vec![1] }, Some(&group));
    let held = held.expect("it is free");
    held.describe(old);
    assert!(!rests());
    let second = ledger.store().table("spare").take(&[1]).expect("it is free");
    second.describe(young.clone());
    assert!(rests(), "the second is full");
    drop(second);
    assert!(!rests());
    let joined = table.take_with(&Seats { shared: vec![1], free: Vec::new() }, Some(&group));
    let joined = joined.expect("the group has it");
    joined.describe(young);
    assert!(rests(), "a member of its group is not overdue");
    drop(joined);
    assert!(!rests());
}

/// A slot is not kept for a nested launch that does not run any more.
#[test]
fn a_slot_is_not_kept_for_a_nested_launch_that_has_ended() {
    let (directory, state) = state();
    let start = Process::find(own_pid()).expect("it runs").started;
    // A later process has the number of this one.
    let tables = vec![slots("seats", vec![1])];
    let above = SavedHolding { start: start - 1, tables, ..saved(own_pid(), Hold::Process) };
    // Its process lives, and has closed the descriptor that kept the slot.
    let tables = vec![SavedSlots { is_shared: true, ..slots("seats", vec![1]) }];
    let below = SavedHolding { start, is_started: true, tables, ..saved(own_pid(), Hold::Descriptor) };
    drop(state.new_fifo(2).expect("a FIFO"));
    for (number, holding) in [(1, above), (2, below)] {
        state.write(number, &holding).expect("there is room");
    }
    let (ledger, _) = ledger(directory.path());
    let used = ledger.store().known("seats").map_or(0, |table| table.used());
    assert_eq!((ledger.holdings().len(), used), (0, 0));
}

/// The site learns once of programs that have ended while no agent ran, and of launches that it was asked
/// for.
#[test]
fn what_has_happened_without_an_agent_is_told_to_the_site() {
    let (directory, state) = state();
    let ended = |paced_at_site| SavedHolding { paced_at_site, ..saved(own_pid(), Hold::Process) };
    state.write(1, &ended(vec!["site/seats".to_owned()])).expect("there is room");
    state.write(2, &ended(Vec::new())).expect("there is room");
    state.write_unproved(3, &saved(-1, Hold::Process)).expect("there is room");
    let (mut ledger, _) = ledger(directory.path());
    assert_eq!((ledger.take_ended_unseen().len(), ledger.take_unproved().len()), (1, 1));
    assert_eq!((ledger.take_ended_unseen().len(), ledger.take_unproved().len()), (0, 0));
}

/// Of the slots that linger, those are next that are free first.
#[test]
fn the_slots_that_are_free_first_are_next() {
    for (first, second, next) in [(HOUR, HOUR * 2, 1), (HOUR * 2, HOUR, 2)] {
        let (directory, _state) = state();
        let (mut ledger, _) = ledger(directory.path());
        let group = Group::of_heirs("games");
        for (number, table, linger) in [(1, "one", first), (2, "other", second)] {
            let (text, linger) = (Some(group.text().to_owned()), Some(linger));
            let of = SavedSlots { group: text, is_of_heirs: true, linger, ..slots(table, vec![1]) };
            let mut launch = holding(SavedHolding { tables: vec![of], ..saved(1, Hold::Process) }, None);
            launch.held = ledger.store().table(table).restore(&[1], Some(&group)).into_iter().collect();
            ledger.holdings.insert(number, launch);
            drop(ledger.release(number, true));
        }
        assert_eq!(ledger.next_lingering().map(|(_, number)| number), Some(next));
    }
}

/// While something else keeps its slots, a process that has ended is not shown as the one that keeps them. Of
/// what has ended nothing more is heard.
#[test]
fn what_has_ended_is_not_heard_again() {
    for is_fifo in [false, true] {
        let (directory, state) = state();
        let (mut ledger, _) = ledger(directory.path());
        let mut idle = Idle::begin();
        let tables = vec![slots("seats", vec![1])];
        let process = PidFd::open(idle.pid()).expect("it runs");
        let mut launch = holding(SavedHolding { tables, ..saved(idle.pid(), Hold::Tree) }, Some(process));
        let table = ledger.store().table("seats");
        launch.held = table.take(&[1]).into_iter().collect();
        launch.describe(|_| true);
        let keeper = || table.holders(&table.occupancy())[0].keeper;
        assert_eq!(keeper(), Some(idle.pid()));
        let Ok(Some(writer)) = ledger.grant(9, launch) else { panic!("there is a FIFO") };
        assert!(state.fifo(9).exists());
        let mut writer = Some(writer);
        if is_fifo {
            writer = None;
        } else {
            idle.0.kill().expect("it is ours");
            idle.0.wait().expect("it has ended");
        }
        let what = if is_fifo { FIFO } else { PROCESS };
        // A process that another test starts may have a copy of its end for a moment.
        assert_eq!(ledger.poller.wait(Some(Duration::from_secs(30))), Ok(vec![9 * KINDS + what]));
        assert!(!ledger.on_end(9, is_fifo), "the other one keeps the slots");
        assert_eq!(ledger.poller.wait(Some(Duration::ZERO)), Ok(Vec::new()));
        assert_eq!(keeper(), is_fifo.then_some(idle.pid()));
        drop(writer);
    }
}

/// A launch that is refused hears whether it has waited.
#[test]
fn a_refused_launch_is_told_whether_it_has_waited() {
    let (directory, _state) = state();
    let (ledger, _) = ledger(directory.path());
    let _held = ledger.store().table("seats").take(&[1]).expect("it is free");
    let seats = Claim { amount: Amount::plain(Slots::Number(1), 1), ..claim("seats") };
    let request = needs(vec![Demand::One(seats)]);
    for has_waited in [true, false] {
        let mut session = Session::default();
        session.place.has_waited = has_waited;
        let process = || PidFd::open(own_pid()).map_err(Failure::of("pidfd_open"));
        let CheckOutcome::Blocked(blocked) = ledger.look(7, &mut session, &request, false, process) else {
            panic!("there is no room")
        };
        assert_eq!((blocked.waits, blocked.refused.has_waited, blocked.ahead), (false, has_waited, 0));
    }
}
