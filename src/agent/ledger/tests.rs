//! What the agent keeps, over its own restarts: numbers, places and ends.

use std::{
    path::Path,
    process::{Child, Command},
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    CheckOutcome, Ledger, MOST_ENDS,
    state::{SavedHolding, SavedPlace, SavedSlots, State, at},
};
use crate::{
    agent::{
        Session,
        tests::{HOUR, claim, holding, needs, saved, slots},
    },
    judge::terms::{Claim, Demand, ElapsedFrom, Hold, Pace, Pause, TooSoon},
    keeper::{Number, agent::message::End},
    sys::{Failure, PidFd, Poller, Process, Signal, own_pid, process},
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
        let (pid, start) = (self.pid(), Process::find(self.pid()).expect("it runs").started);
        let lines = r#"[{"table":"seats","classes":[[0,1]],"begun":1}]"#;
        let number = r#"{"number":1,"launch":[0,0]}"#;
        let text = format!(r#"{{"pid":{pid},"start":{start},"uid":1000,"number":{number},"lines":{lines}}}"#);
        serde_json::from_str(&text).expect("a place")
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
    assert!(due > first);
    ledger.wait_for_recovered(second);
    assert_eq!(ledger.next_recovered(), Some((due, 9)));
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

/// The FIFO of a script keeps slots once, also if two requests for it are decided at the same time. That of
/// another user with the same number is another one.
#[test]
fn a_fifo_of_a_script_keeps_slots_once() {
    let (directory, _state) = state();
    let (mut ledger, _) = ledger(directory.path());
    let of = |uid, opened| {
        let saved = SavedHolding { uid, opened: Some(opened), ..saved(own_pid(), Hold::Descriptor) };
        holding(saved, None)
    };
    ledger.holdings.insert(1, of(1000, 5));
    let taken = [(1000, 5), (1001, 5), (1000, 6)].map(|(uid, opened)| ledger.is_taken(uid, opened));
    assert_eq!(taken, [true, false, false]);
    let refused = ledger.grant(2, of(1000, 5)).map_err(|(_, why)| why).expect_err("it is taken");
    assert_eq!(refused, "the descriptor keeps slots already");
    assert_eq!(ledger.holdings().len(), 1);
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
        let below = SavedHolding { start, tables: vec![shared], ..saved(own_pid(), Hold::Process) };
        for (number, holding) in [(1, above), (2, below)] {
            state.write(number, &holding).expect("there is room");
        }
        let (ledger, _) = ledger(directory.path());
        let used = |name| ledger.store().known(name).map_or(0, |table| table.used());
        let (count, each) = if lives { (2, 1) } else { (0, 0) };
        assert_eq!((ledger.holdings().len(), used("other"), used("seats")), (count, each, each));
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
