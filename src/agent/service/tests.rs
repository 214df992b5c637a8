//! When the agent sleeps, for how long, and which launches have their turn.

use std::os::unix::net::UnixStream;

use tempfile::TempDir;

use super::*;
use crate::{
    acquire::{PlaceInLine, PlaceInTable},
    agent::{
        Blocked, Caller, Load,
        ledger::state::{SavedSlots, State, at_millis},
        tests::{HOUR, claim, ending, needs, overdue, saved, slots},
    },
    judge::terms::{Amount, Claim, Demand, ExpireKill, Hold, Queue, Setting, Slots, Wait},
    keeper::agent::message::Refused,
    launch::SystemNames,
    sys::{Process, own_pid},
};

/// An agent, and its directories: of its state, and of its socket.
fn service() -> (Service, [TempDir; 2]) {
    service_after(|_| ())
}

/// The same after another agent that has left this state.
fn service_after(prepare: impl FnOnce(&State)) -> (Service, [TempDir; 2]) {
    let [state, run] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    prepare(&State::open(state.path()).expect("it is new"));
    let listener = Listener::at(&run.path().join("socket")).expect("a free path");
    let service = Service::new(listener, state.path(), &AgentFile::default(), &SystemNames);
    (service.expect("an agent"), [state, run])
}

/// A holder of slot 1 whose program has ended now, and whose slot lingers for this long.
fn ended(linger: Duration) -> SavedHolding {
    let of = SavedSlots {
        group: Some("games".to_owned()),
        is_of_heirs: true,
        linger: Some(linger),
        ..slots("seats", vec![1])
    };
    let lingers_until = process::since_boot().map(|now| now + linger);
    let saved = saved(own_pid(), Hold::Process);
    SavedHolding { lingers_until, taken: Some(1), tables: vec![of], ..saved }
}

/// A launch waits in a queue until this moment.
fn waits_until(service: &mut Service, number: u64, next: Instant) {
    let sessions = &mut service.local.sessions;
    sessions.insert(number, Session::new(Caller::default()));
    let refused = Refused { obstacles: Vec::new(), tables: Vec::new(), has_waited: false };
    let blocked = Blocked { refused, waits: true, ahead: 0, next: Some(next), evictions: Vec::new() };
    let session = sessions.get_mut(&number).expect("it is connected");
    session.on(Event::Blocked(needs(Vec::new()), blocked, true, true));
    while sessions.next_change().is_some() {}
}

/// Launch 1 is in the queue of a table. It is the process with this number.
fn stands(service: &mut Service, pid: i32) {
    waits_until(service, 1, Instant::now() + HOUR);
    let table = service.local.ledger.store().table("seats");
    let classes = vec![Class { generation: 0, capacity: 1 }];
    let place = PlaceInTable { table, classes, longest: Duration::ZERO, wants: None };
    let session = service.local.sessions.get_mut(&1).expect("it waits");
    session.peer.pid = pid;
    session.place.line = PlaceInLine::again(Number(1), None, &[place]);
    session.place.line.serve_in(1);
}

/// The agent sleeps until the first thing is due, and no longer than a second while a launch waits. With
/// pending work it does not sleep.
#[test]
fn the_agent_sleeps_until_the_first_thing_is_due() {
    let (mut service, [_state, run]) = service();
    assert_eq!(service.longest_wait(), None, "there is nothing to do");
    let now = Instant::now();
    for (number, hours) in [(1, 2), (2, 1), (3, 3)] {
        waits_until(&mut service, number, now + HOUR * hours);
    }
    let longest = service.longest_wait().expect("something is due");
    assert!(longest <= HOUR && longest > HOUR / 2);
    let _client = UnixStream::connect(run.path().join("socket")).expect("it listens");
    assert!(matches!(service.local.connections.on_accept(9), Accepted::Caller(_)));
    let waits = Load { places: 1, ..Load::default() };
    assert!(service.local.connections.set_load(9, waits).is_ok());
    assert_eq!(service.longest_wait(), Some(LONGEST_WAIT));
    service.local.work.look_again([1]);
    assert_eq!(service.longest_wait(), Some(Duration::ZERO));
}

/// Slots that linger wake the agent when their time is over, and launches wake it when theirs is.
#[test]
fn the_agent_wakes_for_slots_that_linger_and_for_launches() {
    for (waits, lingers) in [(1, 3), (3, 1)] {
        let holder = ended(HOUR * lingers);
        let (mut service, _directories) =
            service_after(|state| state.write(7, &holder).expect("there is room"));
        waits_until(&mut service, 1, Instant::now() + HOUR * waits);
        let longest = service.longest_wait().expect("something is due");
        assert!(longest <= HOUR && longest > HOUR / 2, "{waits} {lingers}: {}", longest.as_secs());
    }
}

/// A launch that did not respond is checked again when its turn comes: one that responds by now has its turn.
/// One that does not respond is passed over, also if that was not known before.
#[test]
fn a_launch_has_its_turn_if_it_responds_by_now() {
    for (pid, was_away, has_turn) in
        [(own_pid(), false, true), (own_pid(), true, true), (0, true, false), (0, false, false)]
    {
        let (mut service, _directories) = service();
        stands(&mut service, pid);
        let session = service.local.sessions.get_mut(&1).expect("it waits");
        session.place.line.set_away(was_away);
        session.place.was_away = was_away;
        // It needs nothing any more, so it starts when it has its turn.
        service.serve_queue("seats", Instant::now() + HOUR);
        let places = service.local.sessions.get(&1).map(|session| session.load().places);
        assert_eq!(places, Some(usize::from(!has_turn)), "{pid} {was_away}");
        let is_known = service.local.ledger.store().known("seats").is_some();
        assert_eq!(is_known, !has_turn, "a table that no launch needs is forgotten");
    }
}

/// A launch that does not respond takes no place in a full queue: a newcomer waits instead of being refused.
#[test]
fn a_full_queue_has_room_beside_a_launch_that_does_not_respond() {
    for (pid, waits) in [(0, true), (own_pid(), false)] {
        let (mut service, _directories) = service();
        let _held = service.local.ledger.store().table("seats").take(&[1]).expect("it is free");
        stands(&mut service, pid);
        let claim = Claim {
            amount: Amount::plain(Slots::Number(1), 1),
            queue: Queue { most: Some(1), ..Queue::default() },
            wait: Setting { bound: None, default: Some(Wait::Forever) },
            ..claim("seats")
        };
        let newcomer = Session::new(Caller { pid: own_pid(), ..Caller::default() });
        service.local.sessions.insert(2, newcomer);
        service.decide(2, needs(vec![Demand::One(claim)]), true);
        assert_eq!(service.local.sessions.get(&2).map(Session::is_queued), Some(waits), "{pid}");
    }
}

/// A launch is checked when the time of a claim is over, also if it says nothing then.
#[test]
fn a_launch_is_checked_when_its_time_is_over() {
    let (mut service, _directories) = service();
    waits_until(&mut service, 1, Instant::now());
    // It needs nothing any more, so it starts when it is checked.
    let is_checked = (0..100).any(|_| {
        service.do_what_is_due(Instant::now());
        !service.local.sessions.get(&1).is_some_and(Session::is_queued)
    });
    assert!(is_checked && service.local.sessions.next_timer().is_none());
}

/// New launches and holders have numbers above all that were saved.
#[test]
fn new_numbers_are_above_those_that_were_saved() {
    let holder = ended(HOUR);
    let (mut service, _directories) = service_after(|state| state.write(7, &holder).expect("there is room"));
    assert_eq!((service.local.number(), service.local.number()), (8, 9));
    let (mut service, _directories) = self::service();
    assert_eq!(service.local.number(), 1, "0 is that of the listener");
}

/// The launches that wait for a table are checked when a slot of it is free.
#[test]
fn a_free_slot_is_for_those_that_wait() {
    let start = Process::find(own_pid()).expect("it runs").started;
    let tables = vec![slots("seats", vec![1])];
    let holder = SavedHolding { start, tables, ..saved(own_pid(), Hold::Process) };
    let (mut service, _directories) = service_after(|state| state.write(7, &holder).expect("there is room"));
    assert!(service.holding() == 1 && service.local.work.is_empty());
    service.release(7, true);
    assert_eq!(service.holding(), 0);
    assert!(matches!(service.local.work.next(), Some(Next::Serve(table)) if table == "seats"));
}

/// Root frees a slot that lingers. Its user cannot, whatever program asks for that user.
#[test]
fn only_root_frees_a_slot_that_lingers() {
    for (uid, is_freed) in [(0, true), (1000, false)] {
        let holder = ended(HOUR);
        let (mut service, _directories) =
            service_after(|state| state.write(7, &holder).expect("there is room"));
        service.local.sessions.insert(1, Session::new(Caller { uid, ..Caller::default() }));
        let since = at_millis(holder.since).expect("a moment");
        let which = Which::These(vec![Chosen { slot: 1, pid: holder.pid, since }]);
        let (table, grace, kill) = ("seats".to_owned(), HOUR, ExpireKill::Process);
        service.evict_for(1, &Evict { table, which, grace, kill });
        assert_eq!(service.local.ledger.lingering().is_empty(), is_freed, "{uid}");
        let is_for_others = matches!(service.local.work.next(), Some(Next::Serve(table)) if table == "seats");
        assert_eq!(is_for_others, is_freed, "{uid}");
    }
}

/// A holder that has ended is one of those that are ended for a launch: the others are ended further.
#[test]
fn the_end_of_a_holder_is_not_that_of_another() {
    let (mut service, _directories) = service();
    let mut session = Session::new(Caller::default());
    session.on(Event::Evicts);
    session.evictions = vec![ending(1, overdue(2, None)), ending(3, overdue(4, None))];
    service.local.sessions.insert(1, session);
    assert!(service.local.sessions.get_mut(&1).is_some());
    service.run_effects();
    for (holding, left) in [(5, &[1, 3][..]), (1, &[3]), (3, &[])] {
        service.local.on_released(holding);
        let session = service.local.sessions.get(&1).expect("it is connected");
        assert_eq!(session.evictions.iter().map(|eviction| eviction.holding).collect::<Vec<_>>(), left);
    }
}

/// An agent that did not run for much longer than it wanted to wait has stood still. It says so once.
/// An agent with nothing to wait for may sleep for any time.
#[test]
fn a_standstill_is_a_longer_gap_than_the_agent_wanted() {
    let seconds = Duration::from_secs;
    let since = |ago| StallDetector(Instant::now().checked_sub(seconds(ago)).expect("a moment"));
    let mut stalls = since(10_000);
    assert!(stalls.check_stall(Some(seconds(5000))));
    assert!(!stalls.check_stall(Some(seconds(5000))), "it ran since");
    assert!(!since(10_000).check_stall(Some(seconds(20_000))));
    assert!(!since(10_000).check_stall(None));
}
