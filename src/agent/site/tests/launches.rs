//! Launches of this host that get slots of the site, or wait for them.

use std::{
    collections::BTreeSet,
    sync::{Arc, mpsc::channel},
    time::{Duration, Instant},
};

use super::stage::{Stage, deleted, done, holding, request, saved, slot};
use crate::{
    acquire::{PlaceInLine, PlaceInTable},
    agent::{
        AWAY, AcquireRequest, Blocked, Event, Session,
        ledger::state::State,
        site::{
            AgentId, Command, Compare, Done, Key, Operation, PATIENCE, Presence, Report, SlotRecord,
            TicketRecord, Value, etcd::EtcdError, record::bytes,
        },
        tests::{ending, overdue, take},
    },
    judge::terms::{Demand, ElapsedFrom, Group, Location, Pause, Seats, TooSoon, table_of_site},
    keeper::{
        Class, Number,
        agent::message::{Answer, Refused, WaitState},
    },
    sys::process,
};

/// The number under which it waits.
const NUMBER: u64 = 8 << 24;

fn ticket() -> Key {
    Key::Ticket("seats".to_owned(), NUMBER)
}

/// A host that grants slots, with a launch.
fn with_a_launch() -> (Stage, u64) {
    let mut stage = Stage::open(|_| ());
    let launch = stage.local.add_session(Session::default());
    (stage, launch)
}

fn session(stage: &Stage, launch: u64) -> &Session {
    stage.local.session(launch).expect("a launch")
}

/// A place in the queue under this number.
fn place(stage: &Stage, number: u64) -> PlaceInLine {
    let classes = vec![Class { generation: 0, capacity: 3 }];
    let place = PlaceInTable { table: stage.table(), classes, longest: Duration::ZERO, wants: None };
    PlaceInLine::again(Number(number), None, &[place])
}

/// The launch waits in the queue, which has a maximum length if `is_bounded`. It has looked at this revision,
/// in the etcd of this generation.
fn waits(stage: &mut Stage, launch: u64, is_bounded: bool, looked: (u64, i64)) {
    let line = place(stage, NUMBER);
    let session = stage.local.session_mut(launch).expect("a launch");
    session.place.line = line;
    session.place.begins.lines = is_bounded.then(|| "seats".to_owned()).into_iter().collect();
    session.place.begins.looked = looked;
    let refused = Refused { obstacles: Vec::new(), tables: Vec::new(), has_waited: false };
    session.on(Event::WaitsOn(request(), WaitState { refused, ahead: 0 }));
    stage.site.write_tickets(&mut stage.local, launch);
}

/// The launch got slot 2 in memory. Returns the transaction that proves it, with its number.
fn proves(stage: &mut Stage, launch: u64) -> (u64, Vec<Compare>, Vec<Operation>) {
    let held = stage.table().take(&[2]).expect("it is free");
    stage.site.prove(&mut stage.local, launch, request(), holding(saved(&[2]), held));
    let (number, asked) = stage.asks().expect("it is proved");
    (number, asked.compares, asked.operations)
}

/// A proof shows that the slot is free, the limit is kept, no older launch has come, the host's key is as it
/// was written, the tables belong to this etcd, and hosts whose launches are passed over are still absent.
/// The ticket goes in the same step.
#[test]
fn a_proof_has_all_of_its_conditions() {
    let (mut stage, launch) = with_a_launch();
    let older = r#"{"host":"lab9","agent":"","pid":1,"uid":1,"command":"","classes":[],"is_away":false}"#;
    let older: TicketRecord = serde_json::from_str(older).expect("a record");
    let older = stage.pair(&Key::Ticket("seats".to_owned(), 7 << 24), 9, bytes(&older));
    stage.sees(vec![(older, true)]);
    waits(&mut stage, launch, false, (1, 9));
    let (number, asked) = stage.asks().expect("its ticket is written");
    let put = |asked: &[Operation]| match asked {
        [Operation::Put(name, _)] => Some(name.clone()),
        _ => None,
    };
    assert_eq!(put(&asked.operations), Some(stage.site.keys.name(&ticket())));
    stage.hears(Report::Done(number, Ok(done(10))));
    let (number, compares, operations) = proves(&mut stage, launch);
    let keys = &stage.site.keys;
    let conditions = [
        Compare::Absent(keys.name(&slot(2))),
        Compare::UnchangedSince(keys.slots_above("seats", 3), 9),
        Compare::UnchangedSince(keys.line_before("seats", NUMBER), 9),
        Compare::ChangedAt(keys.name(&Key::Host(stage.site.host.clone())), 8),
        Compare::ChangedAt(keys.name(&Key::Cluster), 5),
        Compare::Absent(keys.name(&Key::Host("lab9".to_owned()))),
    ];
    assert_eq!(compares, conditions);
    assert_eq!(put(&operations[..1]), Some(keys.name(&slot(2))));
    assert_eq!(operations[1..], [Operation::Delete(keys.name(&ticket()))]);
    assert!(session(&stage, launch).is_proving());
    stage.hears(Report::Done(number, Ok(done(11))));
    assert!(!stage.site.own.places.contains_key(&launch), "it waits no longer");
    assert_eq!(stage.asks(), None, "nothing else is to be changed");
}

/// A launch is checked for this. Returns its number, the bounded queues that it needs, and when it looked.
fn checks(stage: &mut Stage, launch: u64, asked: &AcquireRequest) -> (u64, Vec<String>, (u64, i64)) {
    stage.site.prepare(&mut stage.local, launch, asked);
    let place = &session(stage, launch).place;
    let number = place.line.number().expect("a number").0;
    (number, place.begins.lines.iter().cloned().collect(), place.begins.looked)
}

/// A launch that needs slots of the site has a number of the mirror's revision at its last check, and keeps
/// it while it waits. What it finds in bounded queues counts as of its last check.
#[test]
fn a_launch_has_a_number_of_the_revision_at_its_last_check() {
    let (mut stage, launch) = with_a_launch();
    let (number, lines, looked) = checks(&mut stage, launch, &bounded());
    assert_eq!((number >> 24, lines, looked), (8, vec!["seats".to_owned()], (1, 8)));
    let own = stage.own_key(9);
    stage.sees(vec![(own, true)]);
    let mut empty = request();
    for claim in empty.demands.iter_mut().flat_map(Demand::claims_mut) {
        claim.amount.limit = 0;
    }
    assert_eq!(checks(&mut stage, launch, &empty).0 >> 24, 9, "a table may have no slots");
    let (number, lines, looked) = checks(&mut stage, launch, &request());
    assert_eq!((number >> 24, lines, looked), (9, Vec::new(), (1, 9)));
    let newcomer = stage.local.add_session(Session::default());
    assert!(checks(&mut stage, newcomer, &request()).0 > number, "it comes later");
    waits(&mut stage, launch, false, (1, 9));
    assert_eq!(checks(&mut stage, launch, &request()).0, NUMBER, "it waits");
}

/// What a launch needs whose queue has a maximum length.
fn bounded() -> AcquireRequest {
    let mut bounded = request();
    for claim in bounded.demands.iter_mut().flat_map(Demand::claims_mut) {
        claim.queue.most = Some(3);
    }
    bounded
}

/// Only the check of a newcomer looks whether a bounded queue has room. So a launch whose proof failed proves
/// again that no other launch has joined since that check, whatever it saw later.
#[test]
fn a_launch_that_joins_later_proves_what_it_saw_when_it_came() {
    let (mut stage, launch) = with_a_launch();
    checks(&mut stage, launch, &bounded());
    waits(&mut stage, launch, true, (1, 8));
    let (number, joins) = stage.asks().expect("it joins");
    let not_reached = stage.site.client.keep_alive(1).expect_err("no member listens");
    stage.hears(Report::Done(number, Err(not_reached)));
    let other = r#"{"host":"lab9","agent":"","pid":1,"uid":1,"command":"","classes":[],"is_away":false}"#;
    let other = stage.pair(&Key::Ticket("seats".to_owned(), 7 << 24), 9, other.as_bytes().to_vec());
    stage.sees(vec![(other, true)]);
    assert_eq!(stage.site.mirror.revision(), 9);
    assert_eq!(checks(&mut stage, launch, &bounded()).2, (1, 8));
    // The keys were last looked at long ago.
    stage.site.looked = None;
    stage.hears(Report::Tick);
    let (number, asked) = stage.asks().expect("it joins again");
    let since = Compare::UnchangedSince(stage.site.keys.line("seats"), 8);
    assert!(asked == joins && asked.compares.contains(&since));
    // That fails, because the other one has joined. It looks again as a newcomer.
    stage.hears(Report::Done(number, Ok(Done { holds: false, ..done(10) })));
    assert_eq!(checks(&mut stage, launch, &bounded()).2, (1, 9));
}

/// A slot above the limit, such as one that is reserved, needs one free slot within the limit, and no more.
#[test]
fn a_slot_above_the_limit_needs_a_free_one_within_it() {
    let (mut stage, launch) = with_a_launch();
    let held = stage.table().take(&[5]).expect("it is free");
    stage.site.prove(&mut stage.local, launch, request(), holding(saved(&[5]), held));
    let (_, asked) = stage.asks().expect("it is proved");
    let absent = [5, 1, 2].map(|number| Compare::Absent(stage.site.keys.name(&slot(number))));
    assert_eq!(absent.map(|one| asked.compares.contains(&one)), [true, true, false]);
}

/// If a pause counts, the proof shows that the table was not used since, and records its start in the same
/// step.
#[test]
fn a_start_is_proved_and_recorded_with_the_slots() {
    for is_used in [false, true] {
        let (mut stage, launch) = with_a_launch();
        let key = Key::Stamps("seats".to_owned());
        if is_used {
            let used = stage.pair(&key, 9, br#"{"last_start":null,"last_end":null,"started_by":0}"#.to_vec());
            stage.sees(vec![(used, true)]);
        }
        let mut asked = request();
        for claim in asked.demands.iter_mut().flat_map(Demand::claims_mut) {
            let (length, from, too_soon) = (Duration::from_secs(60), ElapsedFrom::Start, TooSoon::Refuse);
            claim.pace.pause = Some(Pause { length, from, too_soon });
        }
        let mut saved = saved(&[2]);
        saved.paced_at_site = vec![table_of_site("seats")];
        let held = stage.table().take(&[2]).expect("it is free");
        stage.site.prove(&mut stage.local, launch, asked, holding(saved, held));
        let (_, asked) = stage.asks().expect("it is proved");
        let name = stage.site.keys.name(&key);
        let since = Compare::ChangedAt(name.clone(), if is_used { 9 } else { 0 });
        assert!(asked.compares.contains(&since));
        let is_start = |of: &&Operation| matches!(of, Operation::Put(written, _) if *written == name);
        assert_eq!(asked.operations.iter().filter(is_start).count(), 1);
        // An agent that is started again takes the start back if it was in vain.
        assert_eq!(stage.local.ledger().state().read().expect("it is whole").unproved.len(), 1);
    }
}

/// A launch has its slots when they are proved. If a condition did not hold, it has none, and is checked
/// again as soon as something has changed.
#[test]
fn a_launch_has_its_slots_only_when_they_are_proved() {
    for holds in [true, false] {
        let (mut stage, launch) = with_a_launch();
        let (number, ..) = proves(&mut stage, launch);
        assert_eq!(stage.local.ledger().holdings().len(), 0);
        stage.site.presence.note(EtcdError::replaced());
        drop(stage.local.served());
        stage.hears(Report::Done(number, Ok(Done { holds, ..done(9) })));
        assert_eq!(stage.local.served(), [table_of_site("seats")], "others check again");
        assert_eq!(stage.site.presence.trouble().is_none(), holds, "etcd works again");
        assert_eq!(session(&stage, launch).holding().is_some(), holds);
        assert_eq!(stage.local.ledger().holdings().len(), usize::from(holds));
        assert!(stage.local.ledger().holdings().values().all(|of| of.launch != 0), "it has a number");
        assert_eq!(stage.table().used(), u64::from(holds));
        assert_eq!(session(&stage, launch).is_proving(), !holds);
        assert_eq!(stage.asks(), None);
        let own = stage.own_key(8);
        stage.sees(vec![(own, true)]);
        assert!(!session(&stage, launch).is_proving() && stage.site.resting.is_empty());
        if holds {
            let record = Value::Slot(stage.record(&saved(&[2]), 1)).bytes();
            let taken = stage.pair(&slot(2), 9, record);
            stage.sees(vec![(taken, true)]);
            assert_eq!(stage.asks(), None, "the slot stays");
        }
    }
}

/// A launch that rests while its slot is being proved gets that slot. It is not checked once more after that.
#[test]
fn a_launch_that_rests_gets_the_slot_that_is_being_proved() {
    let (mut stage, launch) = with_a_launch();
    let (number, ..) = proves(&mut stage, launch);
    stage.site.rest_without(&mut stage.local, launch, request());
    assert!(stage.site.resting.contains_key(&launch));
    stage.hears(Report::Done(number, Ok(done(9))));
    assert!(session(&stage, launch).holding().is_some() && stage.site.resting.is_empty());
}

/// The launch makes a request, which the judges have then. Returns its number.
fn asks(stage: &mut Stage, launch: u64) -> u64 {
    stage.local.on(launch, Event::Asks(take(), Vec::new()));
    stage.local.on(launch, Event::Accepted(None));
    drop(stage.local.answers());
    session(stage, launch).question
}

/// Whether the launch waits for the judgement of this request.
fn is_judged(stage: &mut Stage, launch: u64, question: u64) -> bool {
    let refused = Answer::Failed("no".to_owned());
    stage.local.on(launch, Event::Judged(question, Err(refused.clone().into())));
    stage.local.answers() == [refused]
}

/// A launch that asks again while the slots of its first request are being proved, or while it rests, is
/// judged. Its first request is not answered any more.
#[test]
fn an_earlier_request_decides_nothing_about_a_later_one() {
    let late = Instant::now().checked_sub(PATIENCE * 3 / 2);
    let fails: fn(&mut Stage, u64) = |stage, number| {
        stage.hears(Report::Done(number, Ok(Done { holds: false, ..done(9) })));
    };
    let succeeds: fn(&mut Stage, u64) = |stage, number| stage.hears(Report::Done(number, Ok(done(9))));
    let changes: fn(&mut Stage, u64) = |stage, _| {
        let own = stage.own_key(8);
        stage.sees(vec![(own, true)]);
    };
    let ticks: fn(&mut Stage, u64) = |stage, _| stage.hears(Report::Tick);
    let cases = [
        (true, None, fails),
        (true, None, succeeds),
        (true, late, ticks),
        (false, None, changes),
        (false, late, ticks),
    ];
    for (case, (is_proved, since, ends)) in cases.into_iter().enumerate() {
        let (mut stage, launch) = with_a_launch();
        let first = asks(&mut stage, launch);
        stage.local.session_mut(launch).expect("a launch").place.resting = since;
        let number = if is_proved {
            proves(&mut stage, launch).0
        } else {
            stage.site.rest_without(&mut stage.local, launch, request());
            0
        };
        let second = asks(&mut stage, launch);
        assert_ne!(first, second);
        ends(&mut stage, number);
        assert!(stage.local.answers().is_empty() && stage.local.ledger().holdings().is_empty(), "{case}");
        assert!(is_judged(&mut stage, launch, second), "{case}");
    }
}

/// The slots that were proved for an earlier request of a launch are given back, and its ticket is put back
/// in the same step. What it asks for now is decided as if it were its first request.
#[test]
fn slots_of_an_earlier_request_are_given_back() {
    for rests in [true, false] {
        let (mut stage, launch) = with_a_launch();
        asks(&mut stage, launch);
        waits(&mut stage, launch, false, (1, 8));
        let (number, written) = stage.asks().expect("its ticket is written");
        stage.hears(Report::Done(number, Ok(done(9))));
        let (earlier, ..) = proves(&mut stage, launch);
        asks(&mut stage, launch);
        let later = if rests {
            stage.site.rest_without(&mut stage.local, launch, request());
            None
        } else {
            let held = stage.table().take(&[3]).expect("it is free");
            stage.site.prove(&mut stage.local, launch, request(), holding(saved(&[3]), held));
            stage.asks()
        };
        stage.hears(Report::Done(earlier, Ok(done(10))));
        assert!(session(&stage, launch).holding().is_none() && stage.local.ledger().holdings().is_empty());
        let (_, asked) = stage.asks().expect("the slot is given back");
        // The second proof deletes the ticket.
        let put = written.operations.into_iter().filter(|_| rests);
        let gone = Operation::Delete(stage.site.keys.name(&slot(2)));
        assert_eq!(asked.operations, put.chain([gone]).collect::<Vec<_>>());
        if let Some((number, _)) = later {
            stage.hears(Report::Done(number, Ok(done(11))));
            assert!(session(&stage, launch).holding().is_some());
            let here = table_of_site("seats");
            let holdings = stage.local.ledger().holdings();
            assert!(holdings.len() == 1 && holdings.values().all(|of| of.has(&here, 3) && !of.has(&here, 2)));
        }
    }
}

/// A launch that cannot be saved gets nothing, although its slot is proved. The slot is deleted again.
#[test]
fn a_launch_that_cannot_be_saved_has_no_slot() {
    let (mut stage, launch) = with_a_launch();
    let (number, ..) = proves(&mut stage, launch);
    stage.cannot_save();
    stage.hears(Report::Done(number, Ok(done(9))));
    assert!(matches!(stage.local.answers().as_slice(), [Answer::Failed(_)]));
    let asked = stage.asks().map(|(_, asked)| asked);
    assert_eq!(asked, Some(stage.kept(8, &[deleted(slot(2), 9)])));
}

/// Whether a launch has got its slot is seen at the key, if no answer came: it has the number of the
/// admission. The slot may also be that of an earlier launch of the same process.
#[test]
fn a_slot_of_an_earlier_launch_of_the_process_is_not_granted() {
    for (later, is_granted) in [(0, true), (1, false)] {
        let (mut stage, launch) = with_a_launch();
        let (number, ..) = proves(&mut stage, launch);
        let admission = stage.site.pending.admissions_mut().next().expect("it is proved").launch;
        stage.hears(Report::Done(number, Err(EtcdError::replaced())));
        stage.writes_its_key(12);
        let record = Value::Slot(stage.record(&saved(&[2]), admission + later)).bytes();
        let (taken, own) = (stage.pair(&slot(2), 9, record), stage.own_key(12));
        stage.sees(vec![(taken, true), (own, true)]);
        assert_eq!(session(&stage, launch).holding().is_some(), is_granted);
    }
}

/// What was decided on another etcd is not granted, although the slot is also there: the launch is checked
/// again.
#[test]
fn what_was_decided_on_another_etcd_is_not_granted() {
    let (mut stage, launch) = with_a_launch();
    let (number, ..) = proves(&mut stage, launch);
    let admission = stage.site.pending.admissions_mut().next().expect("it is proved").launch;
    let record = Value::Slot(stage.record(&saved(&[2]), admission)).bytes();
    let pairs = vec![stage.id(5, "two"), stage.pair(&slot(2), 6, record)];
    stage.reads_of(2, "two", 20, pairs);
    stage.hears(Report::Done(number, Ok(done(9))));
    // Its key is written once more when all slots are there.
    stage.registers(21);
    stage.registers(22);
    assert!(stage.site.is_open());
    let session = session(&stage, launch);
    assert!(session.holding().is_none() && !session.is_proving());
}

/// A launch whose slots are not proved in time has an answer nevertheless. If they are proved after that,
/// they are deleted.
#[test]
fn a_launch_whose_slots_are_not_proved_has_an_answer_in_time() {
    let (mut stage, launch) = with_a_launch();
    let since = Instant::now().checked_sub(PATIENCE * 3 / 2);
    stage.local.session_mut(launch).expect("a launch").place.resting = since;
    let (number, ..) = proves(&mut stage, launch);
    assert!(stage.local.answers().is_empty());
    stage.hears(Report::Tick);
    let why = "the site is overloaded: no transaction succeeded for 4 s. Try again";
    assert!(matches!(stage.local.answers().as_slice(), [Answer::Failed(text)] if text == why));
    stage.hears(Report::Done(number, Ok(done(9))));
    assert!(stage.local.ledger().holdings().is_empty());
    let asked = stage.asks().map(|(_, asked)| asked);
    assert_eq!(asked, Some(stage.kept(8, &[deleted(slot(2), 9)])));
}

/// A program is started only if its host may grant slots when the answer comes: otherwise it would have to be
/// ended at once. The slot is deleted again.
#[test]
fn no_program_starts_on_a_host_that_is_almost_lost() {
    let (mut stage, launch) = with_a_launch();
    let (number, ..) = proves(&mut stage, launch);
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    let seconds = Duration::from_secs;
    let now = process::since_boot().expect("a clock");
    let mut presence = Presence::new(seconds(40), Duration::ZERO, channel().0, &state);
    presence.on_registered(8, now);
    presence.confirm(now.saturating_sub(seconds(35)), &state);
    stage.site.presence = presence;
    stage.hears(Report::Done(number, Ok(done(9))));
    assert!(session(&stage, launch).holding().is_none());
    let asked = stage.asks().map(|(_, asked)| asked);
    assert_eq!(asked, Some(stage.kept(8, &[deleted(slot(2), 9)])));
}

/// A launch joins a queue that has a maximum length by one proof: that its number is free, and that no launch
/// has joined since it looked. What it saw in another etcd proves nothing.
#[test]
fn a_launch_joins_a_bounded_queue_by_a_proof() {
    for (looked, since) in [((1, 7), 7), ((0, 7), 0)] {
        let (mut stage, launch) = with_a_launch();
        waits(&mut stage, launch, true, looked);
        let (number, asked) = stage.asks().expect("it joins");
        let keys = &stage.site.keys;
        let conditions = [
            Compare::ChangedAt(keys.name(&Key::Host(stage.site.host.clone())), 8),
            Compare::Absent(keys.name(&ticket())),
            Compare::UnchangedSince(keys.line("seats"), since),
        ];
        assert_eq!(asked.compares, conditions);
        stage.site.write_tickets(&mut stage.local, launch);
        assert_eq!(stage.asks(), None, "it has no answer yet");
        assert!(!session(&stage, launch).place.has_waited);
        assert!(!stage.site.has_begun_to_wait(&stage.local, launch));
        stage.hears(Report::Done(number, Ok(done(9))));
        assert!(stage.site.has_begun_to_wait(&stage.local, launch));
        assert!(session(&stage, launch).place.has_waited && stage.site.own.is_in(launch, &ticket()));
        assert_eq!(stage.asks(), None, "its ticket is there");
    }
}

/// A launch that did not join a bounded queue looks again, and comes under another number. It keeps its
/// number and asks again if the host's key was written meanwhile: then that is the reason.
#[test]
fn a_launch_that_did_not_join_a_bounded_queue_looks_again() {
    for is_registered_again in [false, true] {
        let (mut stage, launch) = with_a_launch();
        waits(&mut stage, launch, true, (1, 7));
        let (number, _) = stage.asks().expect("it joins");
        if is_registered_again {
            stage.writes_its_key(12);
        }
        let commands = stage.site.presence.recorded();
        stage.hears(Report::Done(number, Ok(Done { holds: false, ..done(9) })));
        assert_eq!(commands.try_iter().next(), Some(Command::Look), "another host may have its name");
        let session = session(&stage, launch);
        assert_eq!(session.place.line.number().is_some(), is_registered_again);
        assert_eq!((session.is_queued(), session.is_proving()), (is_registered_again, !is_registered_again));
        assert_eq!(stage.site.resting.contains_key(&launch), !is_registered_again);
        let again = stage.asks().map(|(_, asked)| asked.compares[0].clone());
        let own = stage.site.keys.name(&Key::Host(stage.site.host.clone()));
        assert_eq!(again, is_registered_again.then_some(Compare::ChangedAt(own, 12)));
    }
}

/// No two launches of the site have one number. If another host was faster, the launch looks again, and comes
/// under another number.
#[test]
fn a_launch_whose_number_another_host_has_comes_under_another_one() {
    let (mut stage, launch) = with_a_launch();
    waits(&mut stage, launch, false, (1, 8));
    let (number, _) = stage.asks().expect("its ticket is written");
    let other = r#"{"host":"lab9","agent":"","pid":1,"uid":1,"command":"","classes":[],"is_away":false}"#;
    let taken = stage.pair(&ticket(), 9, other.as_bytes().to_vec());
    stage.sees(vec![(taken, true)]);
    stage.hears(Report::Done(number, Ok(Done { holds: false, ..done(9) })));
    stage.hears(Report::Tick);
    let session = session(&stage, launch);
    assert!(session.is_proving() && session.place.line.number().is_none());
    assert!(!stage.site.own.places.contains_key(&launch));
    assert_eq!(stage.asks(), None);
}

/// If it is unknown whether a launch has joined its queue, it comes under another number: under that one it
/// can join once only.
#[test]
fn a_launch_that_may_have_joined_comes_under_another_number() {
    let (mut stage, launch) = with_a_launch();
    stage.local.session_mut(launch).expect("a launch").take = Some(Arc::new(take()));
    waits(&mut stage, launch, true, (1, 7));
    let (number, _) = stage.asks().expect("it joins");
    stage.local.write_place(launch);
    let saved = |stage: &Stage| stage.local.ledger().state().read().expect("it is whole").places.len();
    assert_eq!(saved(&stage), 1);
    stage.hears(Report::Done(number, Err(EtcdError::replaced())));
    assert_eq!(saved(&stage), 0, "the next agent does not know the number");
    let session = session(&stage, launch);
    assert!(session.is_proving() && session.place.line.number().is_none());
}

/// A launch that has another number by then keeps that one, also if it is unknown whether it has joined under
/// the former.
#[test]
fn a_launch_keeps_its_number_after_an_answer_about_another_one() {
    let (mut stage, launch) = with_a_launch();
    waits(&mut stage, launch, true, (1, 7));
    let (number, _) = stage.asks().expect("it joins");
    let line = place(&stage, NUMBER + 1);
    stage.local.session_mut(launch).expect("a launch").place.line = line;
    stage.site.write_tickets(&mut stage.local, launch);
    stage.hears(Report::Done(number, Err(EtcdError::replaced())));
    let session = session(&stage, launch);
    assert!(session.is_queued() && session.place.line.number() == Some(Number(NUMBER + 1)));
}

/// A launch that is being checked when its place is proved hears after that whether it waits.
#[test]
fn a_launch_that_is_being_checked_is_not_told_that_it_waits() {
    let (mut stage, launch) = with_a_launch();
    waits(&mut stage, launch, true, (1, 7));
    let (number, _) = stage.asks().expect("it joins");
    stage.local.on(launch, Event::Beats);
    stage.hears(Report::Done(number, Ok(done(9))));
    assert!(stage.site.own.is_in(launch, &ticket()) && !session(&stage, launch).place.has_waited);
}

/// A launch that has another number when it is proved that it has joined its queue has not joined it under
/// that one. The ticket with the former number is deleted.
#[test]
fn a_launch_that_has_another_number_by_now_joins_again() {
    let (mut stage, launch) = with_a_launch();
    waits(&mut stage, launch, true, (1, 7));
    let (number, _) = stage.asks().expect("it joins");
    let line = place(&stage, NUMBER + 1);
    stage.local.session_mut(launch).expect("a launch").place.line = line;
    stage.site.write_tickets(&mut stage.local, launch);
    assert_eq!(stage.asks(), None, "it has no answer yet");
    stage.hears(Report::Done(number, Ok(done(9))));
    assert!(!session(&stage, launch).place.has_waited);
    let asked = stage.asks().map(|(_, asked)| asked);
    assert_eq!(asked, Some(stage.kept(8, &[deleted(ticket(), 9)])));
    let (number, asked) = stage.asks().expect("it joins again");
    let again = stage.site.keys.name(&Key::Ticket("seats".to_owned(), NUMBER + 1));
    assert!(asked.compares.contains(&Compare::Absent(again)));
    stage.hears(Report::Done(number, Ok(done(10))));
    assert!(session(&stage, launch).place.has_waited);
}

/// A launch that waits keeps its number in an etcd that was restored, which may be at a lower revision.
#[test]
fn a_launch_that_waits_keeps_its_number_in_a_restored_etcd() {
    let (mut stage, launch) = with_a_launch();
    waits(&mut stage, launch, false, (1, 8));
    let (number, _) = stage.asks().expect("its ticket is written");
    stage.hears(Report::Done(number, Ok(done(9))));
    let id = stage.id(2, "two");
    stage.reads_of(2, "two", 3, vec![id]);
    // Its key is written once more when all slots are there.
    stage.registers(4);
    stage.registers(5);
    let (_, asked) = stage.asks().expect("its ticket is put back");
    assert!(asked.compares.contains(&Compare::ChangedAt(stage.site.keys.name(&ticket()), 0)));
    assert!(session(&stage, launch).is_queued());
}

/// A launch that shares the slot of its group proves that the slot is still this host's. It needs no room,
/// and waits behind no other launch. The key of the slot does not change until the answer comes: if the
/// others have ended meanwhile and the launch does not get it, it is deleted then.
#[test]
fn a_launch_that_shares_a_slot_proves_that_it_is_still_there() {
    let (mut stage, launch) = with_a_launch();
    let (table, group) = (stage.table(), Group::of("root"));
    let taken = |shared, free| table.take_with(&Seats { shared, free }, Some(&group)).expect("it is free");
    let first = taken(vec![], vec![2]);
    let value = Value::Slot(stage.record(&saved(&[2]), 1));
    stage.site.own.want(slot(2), value.clone());
    let written = stage.pair(&slot(2), 9, value.bytes());
    stage.sees(vec![(written, true)]);
    assert_eq!(stage.asks(), None);
    let second = holding(saved(&[2]), taken(vec![2], vec![]));
    stage.site.prove(&mut stage.local, launch, request(), second);
    let (number, asked) = stage.asks().expect("it is proved");
    let keys = &stage.site.keys;
    let conditions = [
        Compare::ChangedAt(keys.name(&slot(2)), 9),
        Compare::ChangedAt(keys.name(&Key::Host(stage.site.host.clone())), 8),
        Compare::ChangedAt(keys.name(&Key::Cluster), 5),
    ];
    assert_eq!((asked.compares.as_slice(), asked.operations.len()), (conditions.as_slice(), 0));
    stage.site.give_back(&mut stage.local, vec![first]);
    assert_eq!(stage.asks(), None);
    stage.hears(Report::Done(number, Ok(Done { holds: false, ..done(10) })));
    let asked = stage.asks().map(|(_, asked)| asked);
    assert_eq!(asked, Some(stage.kept(8, &[deleted(slot(2), 9)])));
}

/// A launch that uses the slot of an ancestor proves nothing of that slot, besides its own ones.
#[test]
fn the_slot_of_an_ancestor_needs_no_proof() {
    let (mut stage, launch) = with_a_launch();
    let table = stage.table();
    let _ancestor = table.take(&[1]).expect("it is free");
    let mut holding = holding(saved(&[2]), table.take(&[2]).expect("it is free"));
    holding.held.push(table.share_again(&[1]).expect("an ancestor has it"));
    stage.site.prove(&mut stage.local, launch, request(), holding);
    let (_, asked) = stage.asks().expect("it is proved");
    let absent = [1, 2].map(|number| Compare::Absent(stage.site.keys.name(&slot(number))));
    assert_eq!(absent.map(|one| asked.compares.contains(&one)), [false, true]);
}

/// A launch is not refused while its own host takes slots, or gives them back: it is checked again soon.
#[test]
fn a_launch_is_not_refused_for_what_its_own_host_does() {
    let (mut stage, launch) = with_a_launch();
    let next = stage.local.add_session(Session::default());
    let (mut of_both, mut of_other) = (request(), request());
    for claim in of_other.demands.iter_mut().flat_map(Demand::claims_mut) {
        claim.location = Location::Memory(table_of_site("other"));
    }
    of_both.demands.extend(of_other.demands.clone());
    let may_change =
        |stage: &Stage| [&of_both, &of_other].map(|of| stage.site.may_change_soon(&stage.local, next, of));
    assert_eq!(may_change(&stage), [false, false]);
    let (number, ..) = proves(&mut stage, launch);
    assert_eq!(may_change(&stage), [true, false], "it takes one");
    stage.local.on(launch, Event::Gone);
    stage.hears(Report::Done(number, Ok(done(9))));
    assert_eq!(may_change(&stage), [true, false], "it gives one back");
    let (number, _) = stage.asks().expect("the slot is deleted");
    stage.hears(Report::Done(number, Ok(done(10))));
    assert_eq!(may_change(&stage), [false, false]);
}

/// A launch that has rested for a while is refused, although its own host still takes slots or gives them
/// back: if that never ended, it would count as a site that is not reached.
#[test]
fn a_launch_is_refused_although_its_own_host_always_changes_something() {
    let now = Instant::now();
    let (later, before) = (now.checked_add(PATIENCE * 1000), now.checked_sub(PATIENCE * 3 / 4));
    for (since, is_refused) in [(None, false), (later, false), (before, true)] {
        let (mut stage, other) = with_a_launch();
        let launch = stage.local.add_session(Session::default());
        let may_change = |stage: &Stage| stage.site.may_change_soon(&stage.local, launch, &request());
        stage.local.session_mut(launch).expect("a launch").place.resting = since;
        let (number, ..) = proves(&mut stage, other);
        assert_eq!(may_change(&stage), !is_refused, "it takes one");
        stage.local.on(other, Event::Gone);
        stage.hears(Report::Done(number, Ok(done(9))));
        assert_eq!(may_change(&stage), !is_refused, "it gives one back");
        assert_eq!(session(&stage, launch).place.resting, since);
    }
}

/// The slots of a program that has ended are deleted at once, not only when the agent looks at all keys. If a
/// pause counts, the end is written in the same step.
#[test]
fn the_slots_of_an_ended_program_are_deleted_at_once() {
    for is_paced in [false, true] {
        let mut stage = Stage::open(|_| ());
        let mut saved = saved(&[2]);
        saved.paced_at_site = if is_paced { vec![table_of_site("seats")] } else { Vec::new() };
        let held = stage.table().take(&[2]).expect("it is free");
        let value = Value::Slot(stage.record(&saved, 1));
        stage.site.own.want(slot(2), value.clone());
        let written = stage.pair(&slot(2), 9, value.bytes());
        stage.sees(vec![(written, true)]);
        assert_eq!(stage.asks(), None);
        stage.site.free(&mut stage.local, holding(saved, held), true);
        let (_, asked) = stage.asks().expect("it is deleted");
        let end = stage.site.keys.name(&Key::Stamps("seats".to_owned()));
        let is_end = |of: &&Operation| matches!(of, Operation::Put(name, _) if *name == end);
        assert_eq!(asked.operations.iter().filter(is_end).count(), usize::from(is_paced));
        assert_eq!(asked.operations.last(), Some(&Operation::Delete(stage.site.keys.name(&slot(2)))));
    }
}

/// A launch that waits in several queues needs the proof if one of them has a maximum length.
#[test]
fn one_bounded_queue_of_several_needs_a_proof() {
    let (mut stage, launch) = with_a_launch();
    let other = stage.local.ledger().store().table(&table_of_site("other"));
    let places = [stage.table(), other].map(|table| {
        let classes = vec![Class { generation: 0, capacity: 3 }];
        PlaceInTable { table, classes, longest: Duration::ZERO, wants: None }
    });
    let session = stage.local.session_mut(launch).expect("a launch");
    session.place.line = PlaceInLine::again(Number(NUMBER), None, &places);
    session.place.begins.lines = BTreeSet::from(["seats".to_owned()]);
    session.place.begins.looked = (1, 8);
    stage.site.write_tickets(&mut stage.local, launch);
    let (_, asked) = stage.asks().expect("it joins");
    let keys = &stage.site.keys;
    assert!(asked.compares.contains(&Compare::UnchangedSince(keys.line("seats"), 8)));
    assert!(!asked.compares.contains(&Compare::UnchangedSince(keys.line("other"), 8)));
    assert_eq!((asked.operations.len(), stage.asks()), (2, None));
}

/// If it is certain that a launch did not join its queue, because no member was reached, it keeps its number
/// and asks again some time later.
#[test]
fn a_launch_that_could_not_ask_joins_its_queue_later() {
    let (mut stage, launch) = with_a_launch();
    waits(&mut stage, launch, true, (1, 8));
    let (number, joins) = stage.asks().expect("it joins");
    let not_reached = stage.site.client.keep_alive(1).expect_err("no member listens");
    stage.hears(Report::Done(number, Err(not_reached)));
    assert_eq!(stage.asks(), None, "it would fail again");
    // The keys were last looked at long ago.
    stage.site.looked = None;
    stage.hears(Report::Tick);
    assert_eq!(stage.asks().map(|(_, asked)| asked), Some(joins));
}

/// A launch that begins to wait has an answer in time, also if its ticket is not proved: it is refused then.
#[test]
fn a_launch_whose_ticket_is_not_proved_has_an_answer_in_time() {
    let now = Instant::now();
    let (later, before) = (now.checked_add(PATIENCE * 1000), now.checked_sub(PATIENCE * 3 / 2));
    for (since, is_refused) in [(None, false), (later, false), (before, true)] {
        let (mut stage, launch) = with_a_launch();
        waits(&mut stage, launch, true, (1, 8));
        let refused = Refused { obstacles: Vec::new(), tables: Vec::new(), has_waited: false };
        let blocked = Blocked { refused, waits: true, ahead: 0, next: None, evictions: Vec::new() };
        let session = stage.local.session_mut(launch).expect("a launch");
        session.on(Event::Blocked(request(), blocked, true, false));
        session.place.resting = since;
        assert!(stage.local.answers().is_empty());
        stage.hears(Report::Tick);
        let answers = stage.local.answers();
        assert_eq!(matches!(answers.as_slice(), [Answer::Failed(_)]), is_refused);
        assert_eq!(self::session(&stage, launch).load().places, usize::from(!is_refused));
    }
}

/// While no slots are granted, a launch that has waited in a queue waits on there. Every other one waits for
/// the site, until its connection is closed.
#[test]
fn a_launch_that_has_waited_keeps_its_place_while_no_slots_are_granted() {
    for (is_open, has_waited, waits_on) in
        [(true, false, false), (true, true, false), (false, false, false), (false, true, true)]
    {
        let mut stage = if is_open { Stage::open(|_| ()) } else { Stage::new(|_| ()) };
        let launch = stage.local.add_session(Session::default());
        let place = &mut stage.local.session_mut(launch).expect("a launch").place;
        (place.has_waited, place.is_owed) = (has_waited, true);
        stage.site.rest_without(&mut stage.local, launch, request());
        let answers = stage.local.answers();
        let is_told = |of: &Answer| matches!(of, Answer::Waits(WaitState { ahead: 0, .. }));
        assert_eq!((answers.len(), answers.iter().all(is_told)), (usize::from(waits_on), true));
        let session = session(&stage, launch);
        assert_eq!((session.is_queued(), session.is_proving()), (waits_on, !waits_on));
        assert_eq!(stage.site.resting.contains_key(&launch), !waits_on);
        stage.site.forget(launch);
        assert!(stage.site.resting.is_empty());
    }
}

/// A launch that waits for the site is checked again when something has changed, if slots are granted then.
/// It is answered in time. One that has waited in a queue waits on there.
#[test]
fn a_launch_that_waits_for_the_site_has_an_answer_in_time() {
    for (is_open, is_late, has_waited, waits) in [
        (false, false, false, true),
        (false, true, false, false),
        (true, false, false, false),
        (true, true, false, false),
        (true, true, true, false),
    ] {
        let mut stage = if is_open { Stage::open(|_| ()) } else { Stage::new(|_| ()) };
        let launch = stage.local.add_session(Session::default());
        let now = Instant::now();
        let place = &mut stage.local.session_mut(launch).expect("a launch").place;
        place.has_waited = has_waited;
        place.resting =
            if is_late { now.checked_sub(PATIENCE * 3 / 2) } else { now.checked_add(PATIENCE * 1000) };
        stage.site.rest_without(&mut stage.local, launch, request());
        assert!(stage.local.answers().is_empty());
        if is_late {
            stage.hears(Report::Tick);
        } else {
            let own = stage.own_key(8);
            stage.sees(vec![(own, true)]);
        }
        assert_eq!(session(&stage, launch).is_proving(), waits);
        assert_eq!(stage.site.resting.contains_key(&launch), waits);
        let is_refused = matches!(stage.local.answers().as_slice(), [Answer::Failed(_)]);
        assert_eq!(is_refused, is_late && !has_waited);
        assert_eq!(session(&stage, launch).is_queued(), has_waited);
    }
}

/// A launch does not wait for the site while holders are ended for it. So each wait for the site, until the
/// keys of such a holder are deleted, has its full time.
#[test]
fn a_launch_does_not_wait_for_the_site_while_holders_are_ended_for_it() {
    for is_ending in [false, true] {
        let (mut stage, launch) = with_a_launch();
        asks(&mut stage, launch);
        let session = stage.local.session_mut(launch).expect("a launch");
        session.place.resting = Instant::now().checked_sub(PATIENCE * 3 / 2);
        if is_ending {
            session.evictions.push(ending(1, overdue(2, Some(Duration::ZERO))));
            let refused = Refused { obstacles: Vec::new(), tables: Vec::new(), has_waited: false };
            let blocked = Blocked { refused, waits: false, ahead: 0, next: None, evictions: Vec::new() };
            session.on(Event::Blocked(request(), blocked, false, true));
            assert!(session.is_ending() && session.place.resting.is_none());
        }
        stage.site.rest_without(&mut stage.local, launch, request());
        stage.hears(Report::Tick);
        let is_refused = matches!(stage.local.answers().as_slice(), [Answer::Failed(_)]);
        assert_eq!(is_refused, !is_ending);
    }
}

/// A launch that does not respond is marked in its ticket, so that other hosts pass it over too.
#[test]
fn a_launch_that_does_not_respond_is_marked_for_all_hosts() {
    let (mut stage, launch) = with_a_launch();
    waits(&mut stage, launch, false, (1, 8));
    let (number, _) = stage.asks().expect("its ticket is written");
    stage.hears(Report::Done(number, Ok(done(9))));
    let place = &mut stage.local.session_mut(launch).expect("a launch").place;
    (place.has_waited, place.beaten) = (true, Instant::now().checked_sub(AWAY * 2));
    // The keys were last looked at long ago.
    stage.site.looked = None;
    stage.hears(Report::Tick);
    let (_, asked) = stage.asks().expect("it is written again");
    let [Operation::Put(_, value)] = asked.operations.as_slice() else { panic!("one ticket") };
    let record: TicketRecord = serde_json::from_slice(value).expect("a record");
    assert!(record.is_away);
}

/// The message says for how long etcd was not reached, which members were tried, and what is to be done.
#[test]
fn a_launch_is_told_why_no_slots_are_granted() {
    let mut stage = Stage::open(|_| ());
    let not_reached = stage.site.client.keep_alive(1).expect_err("no member listens");
    stage.site.presence.note(not_reached);
    let why = stage.site.why();
    assert!(why.starts_with("the site has not been reached for ") && !why.contains("for 0 s"), "{why}");
    assert!(why.contains(" s, trying http://127.0.0.1:1: "), "{why}");
    assert!(why.contains("\nCheck that a majority"), "{why}");
}

/// A launch that waits on hears who has slots and who waits: sixteen of each.
#[test]
fn a_launch_that_waits_on_hears_of_some_holders() {
    let mut stage = Stage::new(|_| ());
    let (host, agent) = ("lab9".to_owned(), AgentId::default());
    let held = Value::Slot(SlotRecord { host, agent, ..stage.record(&saved(&[1]), 1) }).bytes();
    let waits =
        r#"{"host":"lab9","agent":"","pid":1,"uid":1,"command":"","classes":[[0,3]],"is_away":false}"#;
    let keys = |number: u64| [slot(number), Key::Ticket("seats".to_owned(), number << 24)];
    let pairs = (1..=17).map(keys).flat_map(|[slot, ticket]| {
        [stage.pair(&slot, 6, held.clone()), stage.pair(&ticket, 6, waits.as_bytes().to_vec())]
    });
    let pairs = pairs.collect();
    stage.reads(7, pairs);
    let launch = stage.local.add_session(Session::default());
    let place = &mut stage.local.session_mut(launch).expect("a launch").place;
    (place.has_waited, place.is_owed) = (true, true);
    stage.site.rest_without(&mut stage.local, launch, request());
    let answers = stage.local.answers();
    let [Answer::Waits(WaitState { refused, .. })] = answers.as_slice() else { panic!("it waits") };
    assert_eq!((refused.tables[0].holders.len(), refused.tables[0].waiting.len()), (16, 16));
}
