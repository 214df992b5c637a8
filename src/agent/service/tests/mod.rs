//! The loop of the agent: when it sleeps, what it answers, and which launches have their turn.

mod endings;

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
};

use tempfile::TempDir;

use super::*;
use crate::{
    acquire::{PlaceInLine, PlaceInTable},
    agent::{
        Blocked, Caller, Load,
        ledger::state::{SavedHolding, SavedNumber, SavedPlace, SavedSlots, State, at_millis},
        tests::{HOUR, claim, holding, needs, place, saved, slots, take},
    },
    judge::terms::{Amount, Claim, Demand, Hold, Queue, Setting, Slots, Wait},
    keeper::{
        Waiter,
        agent::message::{Refused, Table as Shown, WaitState},
    },
    launch::SystemNames,
    policy::AgentLimits,
    sys::{PidFd, Process, own_pid},
};

/// An agent, and its directories: of its state, and of its socket.
fn service() -> (Service, [TempDir; 2]) {
    service_after(|_| ())
}

/// The same after another agent that has left this state.
fn service_after(prepare: impl FnOnce(&State)) -> (Service, [TempDir; 2]) {
    service_within(AgentLimits::default(), prepare)
}

/// The same with these quotas.
fn service_within(limits: AgentLimits, prepare: impl FnOnce(&State)) -> (Service, [TempDir; 2]) {
    service_of(&AgentFile { limits, ..AgentFile::default() }, prepare)
}

/// The same with these settings.
fn service_of(settings: &AgentFile, prepare: impl FnOnce(&State)) -> (Service, [TempDir; 2]) {
    let [state, run] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    prepare(&State::open(state.path()).expect("it is new"));
    let listener = Listener::at(&run.path().join("socket")).expect("a free path");
    let service = Service::new(listener, state.path(), settings, &SystemNames);
    (service.expect("an agent"), [state, run])
}

/// When this process started.
fn own_start() -> u64 {
    Process::find(own_pid()).expect("it runs").started
}

/// This process has slot 1, or what has its FIFO.
fn holds(hold: Hold) -> SavedHolding {
    let tables = vec![slots("seats", vec![1])];
    SavedHolding { start: own_start(), tables, ..saved(own_pid(), hold) }
}

/// The same saved as holding 7.
fn leave(state: &State, holder: &SavedHolding) {
    if holder.hold > Hold::Process {
        drop(state.new_fifo(7).expect("a FIFO"));
    }
    state.write(7, holder).expect("there is room");
}

/// Connection 1 is that of this process for this user, as far as sessions are concerned.
fn calls(service: &mut Service, uid: u32) -> &mut Session {
    let caller = Caller { pid: own_pid(), started: own_start(), uid, ..Caller::default() };
    service.local.sessions.insert(1, Session::new(caller));
    service.local.sessions.get_mut(&1).expect("it is connected")
}

/// What a launch with slots hears.
fn granted() -> Granted {
    Granted { slots: Vec::new(), without: Vec::new(), hold: Hold::Process, has_waited: false, joined: None }
}

/// How many places are saved.
fn saved_places(service: &Service) -> usize {
    service.local.ledger.state().read().expect("it is whole").places.len()
}

/// Does what is due, until this is so, or nothing more is to be expected. Returns whether it is so.
fn does_until(service: &mut Service, is_so: impl Fn(&Service) -> bool) -> bool {
    (0..100).any(|_| {
        service.do_what_is_due(Instant::now());
        is_so(service)
    })
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
        let table = service.local.ledger.store().table("seats");
        assert_eq!(table.sessions().contains(&2), waits, "{pid}");
        let is_known = |waiter: &Waiter| waiter.process.command.as_deref() == Some("matlab");
        assert_eq!(table.waiters().iter().any(is_known), waits, "{pid}");
    }
}

/// A launch that keeps waiting by an older policy is judged again: newcomers wait behind it, although they
/// may have room. Its launcher has the time between two heartbeats to ask again itself.
#[test]
fn a_launch_that_keeps_waiting_by_an_older_policy_is_judged_again() {
    let ago = Instant::now().checked_sub(AWAY).expect("a moment");
    for (judged, is_older, is_judged) in [
        (ago, true, true),
        (ago, false, false),
        // It was judged just now.
        (Instant::now() + HOUR, true, false),
    ] {
        let (mut service, _directories) = service();
        service.local.judges.have_read("[repository.seats]\nlimit = 1\n");
        let now = service.local.judges.policies().generation().expect("it was read");
        let _held = service.local.ledger.store().table("seats").take(&[1]).expect("it is free");
        let claim = Claim {
            amount: Amount::plain(Slots::Number(1), 1),
            wait: Setting { bound: None, default: Some(Wait::Forever) },
            ..claim("seats")
        };
        let demands = vec![Demand::One(claim)];
        let generation = if is_older { now + 1 } else { now };
        calls(&mut service, 1000);
        service.decide(1, AcquireRequest { generation, judged, ..needs(demands) }, false);
        // Whether it is judged after each of these.
        let mut after = |event| {
            service.local.on(1, event);
            service.run_effects();
            let session = service.local.sessions.get(&1).expect("it is connected");
            let is_judged = session.load().is_busy;
            assert_eq!((session.is_queued(), session.load().places), (!is_judged, 1));
            is_judged
        };
        let found = [after(Event::Turn), after(Event::Beats), after(Event::Turn), after(Event::Beats)];
        assert_eq!(found, [false, false, false, is_judged], "{is_older}");
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
    let counted = |service: &Service| service.local.connections.work().holding;
    assert_eq!(counted(&service), 1);
    service.release(7, true);
    assert_eq!((service.holding(), counted(&service)), (0, 0));
    assert!(matches!(service.local.work.next(), Some(Next::Serve(table)) if table == "seats"));
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

/// After a standstill of the agent, all launches have their full time again: those that wait, and those that
/// have not come back yet.
#[test]
fn a_standstill_gives_all_launches_their_full_time() {
    let (mut service, _directories) =
        service_after(|state| state.write_place(9, &place(own_pid())).expect("there is room"));
    assert!(service.longest_wait().is_some_and(|longest| longest <= AWAY), "it may come back late");
    waits_until(&mut service, 1, Instant::now() + HOUR);
    let session = service.local.sessions.get_mut(&1).expect("it waits");
    session.place.beaten = Instant::now().checked_sub(AWAY * 3 / 2);
    assert!(session.is_away(|| false));
    let begun = Instant::now();
    service.local.ledger.wait_for_recovered(begun);
    service.on_stall();
    assert!(service.local.sessions.get(&1).expect("it waits").place.beaten >= Some(begun));
    let (due, _) = service.local.ledger.next_recovered().expect("it may come back");
    assert!(begun + AWAY <= due && due <= Instant::now() + AWAY);
}

/// A launch that comes back has the lowest of its numbers again. Another launch of its process has none of
/// them, and they are given up. Another user has none either.
#[test]
fn only_the_same_launch_has_its_number_again() {
    for (typed, uid, number, left) in
        [("matlab", 1000, Some(Number(3)), 1), ("octave", 1000, None, 1), ("matlab", 1001, None, 2)]
    {
        let (mut service, _directories) = service_after(|state| {
            for (file, number) in [(8, 5), (9, 3)] {
                let number = SavedNumber::of(Number(number), &take());
                let place = SavedPlace { number, ..place(own_pid()) };
                state.write_place(file, &place).expect("there is room");
            }
        });
        calls(&mut service, uid);
        service.on_take(1, Take { typed: typed.into(), ..take() });
        let session = service.local.sessions.get(&1).expect("it is connected");
        assert_eq!(session.place.line.number(), number, "{typed} {uid}");
        assert_eq!(service.local.ledger.recovered().len(), left, "{typed} {uid}");
        let has_saved = left + usize::from(number.is_some());
        assert_eq!(saved_places(&service), has_saved, "{typed} {uid}");
        let is_left = matches!(service.local.work.next(), Some(Next::Serve(table)) if table == "seats");
        assert_eq!(is_left, typed == "octave", "those behind it are checked");
        // It has a number, so it takes no other one.
        service.come_back(1);
        assert_eq!(service.local.ledger.recovered().len(), if typed == "octave" { 0 } else { left });
    }
}

/// A launch that asks again takes up the slots that it was given and has not used, with its number. Another
/// connection of its process does not have them any more. If that one waits under the number, it keeps it.
#[test]
fn unused_slots_are_taken_up_by_their_launch() {
    let taken_up = |number: Option<u64>| (vec![7], number.map(|number| (Number(number), None)));
    for (typed, is_again, is_started, pid, stands, expected) in [
        ("matlab", true, false, own_pid(), false, taken_up(Some(3))),
        ("octave", true, false, own_pid(), false, taken_up(None)),
        ("matlab", true, false, own_pid(), true, taken_up(None)),
        ("matlab", false, false, own_pid(), false, (Vec::new(), None)),
        ("matlab", true, true, own_pid(), false, (Vec::new(), None)),
        ("matlab", true, false, -1, false, (Vec::new(), None)),
    ] {
        let served_as = Some(SavedNumber::of(Number(3), &take()));
        let holder = SavedHolding { is_started, served_as, ..holds(Hold::Process) };
        let (mut service, _directories) = service_after(|state| leave(state, &holder));
        calls(&mut service, 1000).peer.pid = pid;
        let caller = Caller { pid: own_pid(), started: own_start(), uid: 1000, ..Caller::default() };
        let mut other = Session::new(caller);
        other.on(Event::Granted(Some(7), granted(), None));
        if stands {
            other.place.line.come_as(Number(3));
        }
        service.local.sessions.insert(2, other);
        let again = Take { typed: typed.into(), is_again, ..take() };
        let is_lost = !expected.0.is_empty();
        assert_eq!(service.take_up_unused(1, &again), expected, "{typed} {is_again} {is_started} {pid}");
        let holding = service.local.sessions.get(&2).and_then(Session::holding);
        assert_eq!(holding, (!is_lost).then_some(7));
    }
}

/// A launch that starts nothing has its number again for a minute after it first got slots under it, also
/// over a restart of the agent. The slots that it takes again are as old.
#[test]
fn a_number_is_valid_for_a_minute_after_the_first_slots() {
    for (seconds, is_valid) in [(30, true), (70, false)] {
        for is_again in [true, false] {
            let now = process::since_boot().expect("a clock");
            let taken = u64::try_from(now.saturating_sub(Duration::from_secs(seconds)).as_millis()).ok();
            let served_as = Some(SavedNumber::of(Number(3), &take()));
            let holder = SavedHolding { taken, served_as, ..holds(Hold::Process) };
            let (mut service, _directories) = service_after(|state| leave(state, &holder));
            let session = calls(&mut service, 1000);
            if !is_again {
                session.on(Event::Granted(Some(7), granted(), None));
            }
            let expected = is_valid.then_some((Number(3), taken));
            let taken_up = service.take_up_unused(1, &Take { is_again, ..take() });
            assert_eq!(taken_up, (vec![7], expected), "{seconds} {is_again}");
        }
    }
}

/// A launch that gives slots back keeps its number if it has not used them, and has had them for a minute at
/// most.
#[test]
fn a_number_is_kept_by_who_gives_back_new_and_unused_slots() {
    for (seconds, is_started, has_run, is_kept) in [
        (30, false, false, true),
        (70, false, false, false),
        (30, true, false, false),
        (30, false, true, false),
    ] {
        let now = process::since_boot().expect("a clock");
        let taken = u64::try_from(now.saturating_sub(Duration::from_secs(seconds)).as_millis()).ok();
        let holder = SavedHolding { taken, is_started, ..holds(Hold::Process) };
        let (mut service, _directories) = service_after(|state| leave(state, &holder));
        let session = calls(&mut service, 1000);
        session.place.line.come_as(Number(3));
        session.on(Event::Granted(Some(7), granted(), None));
        assert!(service.on_request(1, Request::GiveBack(has_run)).is_ok());
        let session = service.local.sessions.get(&1).expect("it is connected");
        let number = session.place.line.number();
        assert_eq!(number, is_kept.then_some(Number(3)), "{seconds} {is_started} {has_run}");
    }
}

/// Slots that only the descriptor of a program keeps are free when the program starts without it.
#[test]
fn a_program_that_starts_without_its_descriptor_has_no_slots() {
    for hold in [Hold::Descriptor, Hold::Process] {
        let (mut service, _directories) = service_after(|state| leave(state, &holds(hold)));
        calls(&mut service, 1000).on(Event::Granted(Some(7), granted(), None));
        assert_eq!(service.holding(), 1);
        assert!(service.on_request(1, Request::Started).is_ok());
        assert_eq!(service.holding(), usize::from(hold == Hold::Process), "{hold}");
    }
}

/// A supervisor gives back its slots to an agent that has started since, over another connection. Before its
/// program has ended, and for a launch, that connection has none.
#[test]
fn a_supervisor_gives_back_its_slots_to_a_new_agent() {
    for (hold, has_run, is_given_back) in
        [(Hold::Supervisor, true, true), (Hold::Supervisor, false, false), (Hold::Process, true, false)]
    {
        let (mut service, _directories) = service_after(|state| leave(state, &holds(hold)));
        calls(&mut service, 1000);
        assert!(service.on_request(1, Request::GiveBack(has_run)).is_ok());
        assert_eq!(service.local.answers(), [Answer::Done(is_given_back)]);
        assert_eq!(service.holding(), usize::from(!is_given_back), "{hold}");
    }
}

/// A connection releases slots that no program has used, nor that of a nested launch, and no others.
#[test]
fn only_unused_slots_are_released_with_a_request() {
    for (is_started, is_used_below) in [(true, false), (false, true), (false, false)] {
        let holder = SavedHolding { is_started, ..holds(Hold::Process) };
        let (mut service, _directories) = service_after(|state| leave(state, &holder));
        let table = service.local.ledger.store().table("seats");
        let below = if is_used_below { table.share_again(&[1]) } else { None };
        assert_eq!(below.is_some(), is_used_below);
        service.carry_out(1, Effect::ReleaseUnused(7));
        assert_eq!(service.holding(), usize::from(is_started || is_used_below));
        drop(below);
        service.carry_out(1, Effect::Release(7, true));
        assert_eq!(service.holding(), 0);
    }
}

/// Slots of a script are free if the command that asked for them has ended before it said that it has them,
/// and everything that it said was heard. Those of a program stay: its process has them.
#[test]
fn slots_that_a_script_does_not_know_of_are_free() {
    let frame = Request::Started.frame().expect("it is short");
    let (nothing, started): (&[u8], &[u8]) = (&[], &frame);
    for (opened, is_started, said, has_closed, is_free) in [
        (Some(5), false, nothing, true, true),
        (Some(5), false, started, true, false),
        (Some(5), false, nothing, false, false),
        (Some(5), true, nothing, true, false),
        (None, false, nothing, true, false),
    ] {
        let holder = SavedHolding { is_started, ..holds(Hold::Process) };
        let (mut service, [_state, run]) = service_after(|state| leave(state, &holder));
        let mut client = Some(UnixStream::connect(run.path().join("socket")).expect("it listens"));
        service.on_accept();
        let number = *service.local.sessions.iter().next().expect("it is connected").0;
        service.local.on(number, Event::Asks(Take { opened, ..take() }, Vec::new()));
        service.local.on(number, Event::Granted(Some(7), granted(), None));
        client.as_mut().expect("a client").write_all(said).expect("it is open");
        if has_closed {
            drop(client.take());
        }
        service.hang_up(number);
        assert_eq!(service.holding(), usize::from(!is_free), "{is_started} {has_closed}");
    }
}

#[test]
fn the_place_of_a_launch_is_saved_while_it_waits() {
    let (mut service, _directories) = service();
    stands(&mut service, own_pid());
    let session = service.local.sessions.get_mut(&1).expect("it waits");
    session.on(Event::Asks(take(), Vec::new()));
    service.carry_out(1, Effect::WritePlace);
    assert_eq!(saved_places(&service), 1);
    service.local.sessions.get_mut(&1).expect("it waits").place.line.leave();
    service.carry_out(1, Effect::WritePlace);
    assert_eq!(saved_places(&service), 0);
}

/// When the connection of a launch is closed, it has no place any more, and those behind it are checked.
#[test]
fn a_launch_that_hangs_up_has_no_place() {
    let (mut service, _directories) = service();
    stands(&mut service, own_pid());
    service.local.sessions.get_mut(&1).expect("it waits").on(Event::Asks(take(), Vec::new()));
    service.carry_out(1, Effect::WritePlace);
    assert_eq!(saved_places(&service), 1);
    service.hang_up(1);
    assert_eq!((saved_places(&service), service.local.sessions.get(&1).is_none()), (0, true));
    assert!(matches!(service.local.work.next(), Some(Next::Serve(table)) if table == "seats"));
}

/// A client that sends something else than messages hears so, and its connection is closed.
#[test]
fn a_client_that_sends_no_messages_is_closed() {
    let (mut service, [_state, run]) = service();
    let mut client = UnixStream::connect(run.path().join("socket")).expect("it listens");
    service.on_accept();
    client.write_all(&[9, 0, 0, 0, 99]).expect("it is open");
    service.on_readable(1);
    assert!(matches!(service.local.work.next(), Some(Next::HangUp(1))));
    service.hang_up(1);
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).expect("an answer");
    let why = b"it does not support version 99";
    assert!(bytes.windows(why.len()).any(|part| part == why));
}

/// When the time of a slot is over that lingers, it is for launches that wait.
#[test]
fn a_slot_is_for_others_when_its_time_is_over() {
    for linger in [Duration::ZERO, HOUR] {
        let holder = SavedHolding { tables: ended(linger).tables, ..holds(Hold::Process) };
        let (mut service, _directories) = service_after(|state| leave(state, &holder));
        service.release(7, true);
        while service.local.work.next().is_some() {}
        assert_eq!(service.local.ledger.lingering().len(), 1);
        let (is_over, is_free) = (linger.is_zero(), |of: &Service| of.local.ledger.lingering().is_empty());
        assert_eq!(does_until(&mut service, is_free), is_over);
        let is_served = matches!(service.local.work.next(), Some(Next::Serve(table)) if table == "seats");
        assert_eq!(is_served, is_over);
    }
}

/// Every user may look at tables, and at the agent. Only root may let tables forget their last use, and ask
/// for the programs that have ended.
#[test]
fn some_questions_are_for_root_alone() {
    for (uid, is_root) in [(0, true), (1000, false)] {
        let (mut service, _directories) = service();
        let [table, _other] = ["seats", "other"].map(|name| service.local.ledger.store().table(name));
        table.set_stamps(at_millis(5), None, None);
        calls(&mut service, uid);
        let mut answer = |request| {
            assert!(service.on_request(1, request).is_ok());
            let [answer] = <[Answer; 1]>::try_from(service.local.answers()).expect("one answer");
            answer
        };
        let Answer::Tables(shown) = answer(Request::Look(vec!["seats".to_owned()])) else {
            panic!("it shows tables")
        };
        assert_eq!(shown, [Shown::of("seats", &table, usize::MAX, usize::MAX, 0)]);
        assert!(matches!(answer(Request::Look(Vec::new())), Answer::Tables(all) if all.len() == 2));
        assert!(matches!(answer(Request::About), Answer::About(about) if about.site.is_none()));
        assert_eq!(answer(Request::Keeps(5)), Answer::Done(false));
        let ends = answer(Request::Ends);
        assert_eq!(ends == Answer::Ended(Vec::new()), is_root);
        assert_eq!(matches!(ends, Answer::Failed(_)), !is_root);
        let tables = || Request::Reset(["seats", "other"].map(str::to_owned).to_vec());
        let reset = answer(tables());
        assert_eq!((reset == Answer::Done(true), table.stamps().0.is_none()), (is_root, is_root));
        assert_eq!(answer(tables()) == Answer::Done(false), is_root, "there is nothing to forget");
        assert!(service.on_request(1, Request::Response(7)).is_err(), "it was not asked");
    }
}

/// The FIFOs of scripts that wait are in use, also if the scripts have not called a new agent again.
#[test]
fn the_fifos_of_waiting_scripts_are_in_use() {
    let (mut service, _directories) = service_after(|state| {
        for (number, uid, opened) in [(7, 1000, Some(5)), (8, 1001, Some(6)), (9, 1000, None)] {
            let place = SavedPlace { uid, opened, ..place(own_pid()) };
            state.write_place(number, &place).expect("there is room");
        }
    });
    for (number, uid, opened) in [(11, 1000, Some(3)), (12, 1001, Some(4)), (13, 1000, None)] {
        let mut session = Session::new(Caller { uid, ..Caller::default() });
        session.on(Event::Asks(Take { opened, ..take() }, Vec::new()));
        service.local.sessions.insert(number, session);
    }
    let in_use =
        [1000, 1001, 1002].map(|uid| service.local.fifos_in_use(uid).into_iter().collect::<Vec<_>>());
    assert_eq!(in_use, [vec![3, 5], vec![4, 6], vec![]]);
}

/// The position of a script is saved with its FIFO.
#[test]
fn a_position_is_saved_with_its_fifo() {
    for opened in [None, Some(5)] {
        let (mut service, _directories) = service();
        stands(&mut service, own_pid());
        let session = service.local.sessions.get_mut(&1).expect("it waits");
        session.take = Some(Arc::new(Take { opened, ..take() }));
        service.local.write_place(1);
        let saved = service.local.ledger.state().read().expect("it is whole").places;
        assert_eq!(saved.into_values().map(|place| place.opened).collect::<Vec<_>>(), [opened]);
    }
}

/// A launch beyond a quota of its user is refused, with the setting that says so.
#[test]
fn a_launch_beyond_a_quota_is_refused() {
    let default = AgentLimits::default();
    for (limits, setting) in [
        (AgentLimits { launches: 1, ..default }, "[agent] launches"),
        (AgentLimits { members: 1, ..default }, "[agent] members"),
    ] {
        let (mut service, _directories) = service_within(limits, |state| leave(state, &holds(Hold::Process)));
        calls(&mut service, 1000);
        service.decide(1, needs(vec![Demand::One(claim("other"))]), true);
        let answers = service.local.answers();
        let [Answer::Failed(why)] = answers.as_slice() else { panic!("it is refused") };
        assert!(why.contains(setting), "{why}");
        assert!(service.local.ledger.store().known("other").is_none());
    }
}

/// A launch that asks again keeps its place when other users leave no memory, unless its request has become
/// larger. A newcomer is refused then.
#[test]
fn a_launch_that_asks_again_needs_no_more_memory() {
    for (length, has_asked, is_accepted) in
        [(1, true, true), (0, true, true), (100, true, false), (1, false, false)]
    {
        let (mut service, [_state, run]) = service();
        let of = |length| Take { arguments: vec!["x".repeat(length).into()], ..take() };
        let _other = UnixStream::connect(run.path().join("socket")).expect("it listens");
        assert!(matches!(service.local.connections.on_accept(9), Accepted::Caller(_)));
        calls(&mut service, 1000);
        if has_asked {
            service.on_take(1, of(1));
            assert!(service.local.answers().is_empty());
        }
        let table = service.local.ledger.store().table("seats");
        let classes = vec![Class { generation: 0, capacity: 1 }];
        let place = PlaceInTable { table, classes, longest: Duration::ZERO, wants: None };
        let session = service.local.sessions.get_mut(&1).expect("it is connected");
        session.place.line = PlaceInLine::again(Number(1), None, &[place]);
        // As much as there is for the requests of all users together.
        let everything = Load { question: 48 * 1024 * 1024, ..Load::default() };
        assert!(service.local.connections.set_load(9, everything).is_ok());
        service.on_take(1, of(length));
        let answers = service.local.answers();
        let is_declined = |answer: &Answer| matches!(answer, Answer::Failed(why) if why.contains("memory"));
        assert_eq!(answers.iter().any(is_declined), !is_accepted, "{length} {has_asked}");
        let load = service.local.sessions.get(&1).expect("it is connected").load();
        // The judges have its request.
        assert_eq!(load.is_busy, is_accepted, "{length} {has_asked}");
        // Another launch has no place.
        assert_eq!(load.places, usize::from(is_accepted && length == 1), "{length} {has_asked}");
    }
}

/// A launch with which its user would have too many slots gets none of them.
#[test]
fn a_launch_with_too_many_slots_gets_none() {
    let limits = AgentLimits { slots: 2, ..AgentLimits::default() };
    for (wanted, is_granted) in [(vec![1], true), (vec![1, 2], false)] {
        let (mut service, _directories) = service_within(limits, |state| leave(state, &holds(Hold::Process)));
        calls(&mut service, 1000);
        let table = service.local.ledger.store().table("other");
        let tables = vec![slots("other", wanted.clone())];
        let process = PidFd::open(own_pid()).ok();
        let mut launch = holding(SavedHolding { tables, ..holds(Hold::Process) }, process);
        launch.held = table.take(&wanted).into_iter().collect();
        assert_eq!(service.local.grant(1, launch).is_ok(), is_granted);
        assert_eq!((table.used() > 0, service.holding()), (is_granted, 1 + usize::from(is_granted)));
        assert_eq!(service.local.connections.work().holding, 1 + u64::from(is_granted));
        let answers = service.local.answers();
        let is_refused =
            |answer: &Answer| matches!(answer, Answer::Failed(why) if why.contains("[agent] slots"));
        assert_eq!(answers.iter().any(is_refused), !is_granted);
        assert_eq!(answers.iter().any(|answer| matches!(answer, Answer::Granted(_))), is_granted);
    }
}

/// Tables that are not needed any more make room for others. Without a site, its tables have no entries
/// elsewhere.
#[test]
fn tables_that_are_not_needed_make_room() {
    let limits = AgentLimits { members: 1, ..AgentLimits::default() };
    let (mut service, _directories) = service_within(limits, |_| ());
    service.local.ledger.store_of(Some(1000)).table("site/old").set_stamps(at_millis(5), None, None);
    assert_eq!(service.local.ledger.store().count_of(1000), 1);
    calls(&mut service, 1000);
    service.decide(1, needs(vec![Demand::One(claim("seats"))]), true);
    assert!(service.local.ledger.store().known("site/old").is_none());
}

/// Slots that are free again are for launches that wait for them, and for those that end holders.
#[test]
fn free_slots_are_for_launches_that_end_holders() {
    let (mut service, _directories) = service();
    calls(&mut service, 0).on(Event::Evicts);
    service.run_effects();
    let held = service.local.ledger.store().table("seats").take(&[1]).expect("it is free");
    service.free_lingering(vec![held]);
    assert!(matches!(service.local.work.next(), Some(Next::Serve(table)) if table == "seats"));
    assert!(matches!(service.local.work.next(), Some(Next::Look(1))));
    assert!(service.local.work.next().is_none());
}

/// A launch that has been silent for too long is passed over from then on, and those behind it are checked.
#[test]
fn a_launch_that_falls_silent_is_passed_over() {
    for is_silent in [true, false] {
        let (mut service, _directories) = service();
        stands(&mut service, own_pid());
        let session = service.local.sessions.get_mut(&1).expect("it waits");
        let now = Instant::now();
        session.place.beaten = if is_silent { now.checked_sub(AWAY * 3 / 2) } else { Some(now + HOUR) };
        service.run_effects();
        let was_away =
            |service: &Service| service.local.sessions.get(&1).is_some_and(|session| session.place.was_away);
        assert_eq!(does_until(&mut service, was_away), is_silent);
        let table = service.local.ledger.store().table("seats");
        assert_eq!(table.next_to_look(None, &[]).is_none(), is_silent);
        let is_served = matches!(service.local.work.next(), Some(Next::Serve(table)) if table == "seats");
        assert_eq!(is_served, is_silent);
    }
}

/// When a launch of a queue could not be judged for too long, the others there are judged, except those that
/// were judged recently, or do not respond.
#[test]
fn behind_a_launch_that_cannot_be_judged_the_others_are_judged() {
    let ago = Instant::now().checked_sub(AWAY * 3 / 2);
    for (is_late, is_fresh, is_away, is_judged) in [
        (true, false, false, true),
        (false, false, false, false),
        (true, true, false, false),
        (true, false, true, false),
    ] {
        let (mut service, _directories) = service();
        let table = service.local.ledger.store().table("seats");
        let mut stands = |number: u64| {
            let mut session = Session::new(Caller { pid: own_pid(), uid: 1000, ..Caller::default() });
            let classes = vec![Class { generation: 0, capacity: 1 }];
            let place = PlaceInTable { table: table.clone(), classes, longest: Duration::ZERO, wants: None };
            session.place.line = PlaceInLine::again(Number(number), None, &[place]);
            session.place.line.serve_in(number);
            session.on(Event::Asks(take(), Vec::new()));
            session.on(Event::Accepted(None));
            service.local.sessions.insert(number, session);
        };
        stands(1);
        stands(2);
        stands(3);
        let judged = if is_fresh { Instant::now() + HOUR } else { ago.expect("a moment") };
        let refused = Refused { obstacles: Vec::new(), tables: Vec::new(), has_waited: true };
        let request = AcquireRequest { judged, ..needs(Vec::new()) };
        service.local.on(3, Event::WaitsOn(request, WaitState { refused, ahead: 2 }));
        service.run_effects();
        service.local.sessions.get_mut(&3).expect("it waits").place.was_away = is_away;
        // One that does not respond is ahead of all.
        let stopped = service.local.sessions.get_mut(&1).expect("it waits");
        let stopped = &mut stopped.place;
        stopped.line.set_away(true);
        (stopped.was_away, stopped.unjudged) = (true, Some(Instant::now() + HOUR));
        let first = service.local.sessions.get_mut(&2).expect("it is judged");
        first.place.unjudged = if is_late { ago } else { Some(Instant::now() + HOUR) };
        service.run_effects();
        service.do_what_is_due(Instant::now());
        let is_queued = service.local.sessions.get(&3).is_some_and(Session::is_queued);
        assert_eq!(is_queued, !is_judged, "{is_late} {is_fresh} {is_away}");
    }
}

/// The time from a request to its first answer is measured. A client that hangs up is forgotten.
#[test]
fn the_time_to_the_first_answer_is_measured() {
    let (mut service, [_state, run]) = service();
    let mut client = UnixStream::connect(run.path().join("socket")).expect("it listens");
    service.on_accept();
    let measured = |service: &Service| {
        let decisions = service.local.connections.work().decisions;
        decisions.counts.iter().sum::<u64>() + decisions.longer
    };
    service.local.connections.answer(1, &Answer::Done(true), None);
    assert_eq!(measured(&service), 0, "no launch has asked");
    service.on_take(1, take());
    for _ in 0..2 {
        service.local.connections.answer(1, &Answer::Done(true), None);
    }
    assert_eq!(measured(&service), 1);
    assert_eq!(service.local.connections.work().connections, 1);
    service.hang_up(1);
    assert!(service.local.sessions.get(&1).is_none());
    assert_eq!(service.local.connections.work().connections, 0);
    assert!(client.read_to_end(&mut Vec::new()).is_ok());
}

/// An agent that keeps no tables with other hosts is not confirmed by them.
#[test]
fn an_agent_without_a_site_has_no_confirmation() {
    let (service, _directories) =
        service_after(|state| state.write_confirmation(HOUR).expect("there is room"));
    assert_eq!(service.local.ledger.state().confirmation(), None);
}

/// A session that is checked answers at once. A client that has gone is not answered: its connection is
/// closed.
#[test]
fn a_session_that_is_checked_answers_at_once() {
    let (mut service, [_state, run]) = service();
    let mut client = UnixStream::connect(run.path().join("socket")).expect("it listens");
    client.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    service.on_accept();
    service.local.on(1, Event::Evicts);
    service.run_effects();
    service.local.work.look_again([1]);
    while !service.local.work.is_empty() {
        service.work_off(Instant::now());
    }
    // On an older kernel it is asked who it is.
    let expected = Answer::Done(true).frame();
    let mut bytes = Vec::new();
    while !bytes.ends_with(&expected) {
        let mut more = [0; 256];
        let count = client.read(&mut more).expect("an answer");
        assert!(count > 0, "it is closed");
        bytes.extend_from_slice(&more[..count]);
    }
    drop(client);
    let until = Instant::now() + Duration::from_secs(30);
    // A process that another test starts may have a copy of its end for a moment.
    while service.local.work.is_empty() {
        assert!(Instant::now() < until, "it can still be answered");
        service.local.connections.answer(1, &Answer::Done(true), None);
        service.run_effects();
    }
    assert!(matches!(service.local.work.next(), Some(Next::HangUp(1))));
}

/// A launch that needs nothing starts at once, and learns without which slots.
#[test]
fn a_launch_that_needs_nothing_starts_at_once() {
    let (mut service, _directories) = service();
    calls(&mut service, 1000);
    let without = vec!["site/seats".to_owned()];
    service.decide(1, AcquireRequest { without: without.clone(), ..needs(Vec::new()) }, true);
    assert_eq!(service.local.answers(), [Answer::Granted(Granted { without, ..granted() })]);
    assert_eq!(service.local.sessions.get(&1).and_then(Session::holding), None);
}
