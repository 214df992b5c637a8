//! What a host asks of etcd, and what it makes of the answers.

use std::{
    collections::BTreeMap,
    hint, iter, slice,
    sync::{Arc, mpsc::channel},
    time::{Duration, Instant, SystemTime},
};

use super::stage::{Stage, deleted, done, done_in, holding, of_host, request, saved, slot, was_confirmed};
use crate::{
    agent::{
        Session,
        ledger::state::{SavedHolding, SavedStamps, at},
        site::{
            Admission, AgentId, Change, ClusterRecord, Command, Compare, Done, HostRecord, Key, Operation,
            PATIENCE, Range, Report, Reporter, SlotRecord, Transaction, Value, Work,
            etcd::{
                EtcdError, Pair,
                tests::{committed, member},
            },
            pending::Pending,
            proof::transaction,
            record::bytes,
        },
    },
    judge::terms::table_of_site,
    keeper::{Number, agent::message::Answer},
    sys::{Bell, process},
};

/// One transaction at a time changes the keys of this host. After a failure the next one is sent when some
/// time has passed, with everything that is still to be changed.
#[test]
fn the_keys_of_a_host_are_changed_by_one_transaction_after_the_other() {
    for is_reached in [true, false] {
        let mut stage = Stage::open(|state| state.write(1, &saved(&[1])).expect("there is room"));
        let record = stage.record(&saved(&[1]), 0);
        let put = Change { key: slot(1), at: 0, value: Some(Value::Slot(record.clone())) };
        let (first, asked) = stage.asks().expect("the slot is put back");
        assert_eq!(asked, stage.kept(8, slice::from_ref(&put)));
        // A slot of this agent that no launch has.
        let left = stage.pair(&slot(2), 9, Value::Slot(SlotRecord { pid: 1, ..record }).bytes());
        stage.sees(vec![(left, true)]);
        assert_eq!(stage.asks(), None, "the first one has no answer yet");
        let not_reached = stage.site.client.keep_alive(1).expect_err("no member listens");
        let failed = if is_reached { Ok(Done { holds: false, ..done(9) }) } else { Err(not_reached) };
        let commands = stage.site.presence.recorded();
        stage.hears(Report::Done(first, failed));
        // The key of the host may have changed.
        assert_eq!(commands.try_iter().next(), is_reached.then_some(Command::Look));
        assert_eq!(stage.asks(), None, "it would fail again");
        stage.hears(Report::Tick);
        let (second, asked) = stage.asks().expect("it is tried again");
        assert_eq!(asked, stage.kept(8, &[put, deleted(slot(2), 9)]));
        stage.hears(Report::Done(second, Ok(done(10))));
        assert_eq!(stage.asks(), None, "nothing is left to be changed");
    }
}

/// The number of the admission.
const LAUNCH: u64 = 77;

/// A launch that is gone wants slot 1 of the site that has just been opened.
fn admission(stage: &Stage, saved: SavedHolding) -> Admission {
    let held = stage.table().take(&[1]).expect("it is free");
    let record = stage.record(&saved, LAUNCH);
    Admission {
        session: 0,
        question: 0,
        order: None,
        since: Instant::now(),
        holding: holding(saved, held),
        launch: LAUNCH,
        generation: 1,
        registration: 8,
        writes: vec![(slot(1), Some(Value::Slot(record)))],
        joined: Vec::new(),
    }
}

/// The host asks for something. Returns the number of that.
fn sends(stage: &mut Stage, work: Work) -> u64 {
    stage.site.send(work, Transaction::default());
    stage.asks().expect("it is sent").0
}

/// The launch that is gone has asked for its slot.
fn asks_for_a_slot(stage: &mut Stage, saved: SavedHolding) -> u64 {
    let admission = admission(stage, saved);
    sends(stage, Work::Take(Box::new(admission)))
}

/// A slot that was proved for a launch that is gone is deleted immediately, before the mirror shows it. It is
/// free in memory when its key is deleted, also while the mirror still shows that key. Then launches that
/// wait for it check again.
#[test]
fn a_slot_that_no_launch_needs_any_more_is_deleted_before_the_mirror_has_it() {
    for is_shown in [false, true] {
        let mut stage = Stage::open(|_| ());
        let _waits = stage.table().take_place(Number(1)).expect("no launch has it");
        let asked_for = asks_for_a_slot(&mut stage, saved(&[1]));
        assert_eq!(stage.asks(), None);
        stage.hears(Report::Done(asked_for, Ok(done(9))));
        let (sent, asked) = stage.asks().expect("it is deleted");
        assert_eq!(asked, stage.kept(8, &[deleted(slot(1), 9)]));
        if is_shown {
            let record = Value::Slot(stage.record(&saved(&[1]), LAUNCH)).bytes();
            let taken = stage.pair(&slot(1), 9, record);
            stage.sees(vec![(taken, true)]);
        }
        assert_eq!(stage.table().used(), 1);
        drop(stage.local.served());
        stage.hears(Report::Done(sent, Ok(done(10))));
        assert_eq!((stage.table().used(), stage.asks()), (0, None));
        assert_eq!(stage.local.served(), [table_of_site("seats")]);
    }
}

/// A slot that is given back is free as soon as etcd does not have it, also if no answer told that.
#[test]
fn a_slot_whose_deletion_had_no_answer_is_free_when_it_is_gone() {
    let mut stage = Stage::open(|_| ());
    let number = asks_for_a_slot(&mut stage, saved(&[1]));
    stage.hears(Report::Done(number, Ok(done(9))));
    let (number, _) = stage.asks().expect("it is deleted");
    stage.hears(Report::Done(number, Err(EtcdError::replaced())));
    stage.writes_its_key(12);
    assert_eq!(stage.table().used(), 1);
    let (gone, own) = (stage.pair(&slot(1), 10, Vec::new()), stage.own_key(12));
    stage.sees(vec![(gone, false), (own, true)]);
    assert_eq!((stage.table().used(), stage.asks()), (0, None));
}

/// A launch whose connection was closed while its slot was being proved gets nothing. The slot is deleted.
#[test]
fn a_launch_that_has_hung_up_has_no_slot() {
    let mut stage = Stage::open(|_| ());
    let admission = Admission { order: Some(request()), ..admission(&stage, saved(&[1])) };
    let number = sends(&mut stage, Work::Take(Box::new(admission)));
    stage.hears(Report::Done(number, Ok(done(9))));
    let asked = stage.asks().map(|(_, asked)| asked);
    assert_eq!(asked, Some(stage.kept(8, &[deleted(slot(1), 9)])));
    assert!(stage.local.ledger().holdings().is_empty());
}

/// If it is unknown whether a transaction was carried out, the key of the host is written again, so that it
/// cannot be any more. If it is certain that it was not, the key stays as it is: slots are granted as before.
#[test]
fn the_key_of_a_host_is_written_again_only_if_it_is_unknown_what_was_done() {
    let works: [fn(&Stage) -> Work; 3] = [
        |_| Work::Keep(Vec::new()),
        |stage| Work::Take(Box::new(admission(stage, saved(&[1])))),
        |_| Work::Join { launch: 1, under: 8, tickets: BTreeMap::new() },
    ];
    for (index, work) in works.into_iter().enumerate() {
        for is_certain in [true, false] {
            let mut stage = Stage::open(|_| ());
            let not_reached = stage.site.client.keep_alive(1).expect_err("no member listens");
            assert!(not_reached.is_definite());
            let error = if is_certain { not_reached } else { EtcdError::replaced() };
            let work = work(&stage);
            let number = sends(&mut stage, work);
            stage.hears(Report::Done(number, Err(error)));
            let presence = &stage.site.presence;
            assert_eq!(presence.registration(), is_certain.then_some(8), "{index}");
            assert!(presence.trouble().is_some(), "{index}: it is trouble");
        }
    }
}

/// An answer that comes after the key of the host was written again proves nothing, and neither does none:
/// other hosts may have deleted the slot meanwhile. It is decided when the mirror has the new key. A slot
/// that another host has is not this launch's, also if that host has given its launch the same number.
#[test]
fn what_was_proved_under_an_earlier_key_is_looked_up() {
    for is_answered in [true, false] {
        for (is_there, is_own) in [(true, true), (true, false), (false, false)] {
            let mut stage = Stage::open(|_| ());
            let number = asks_for_a_slot(&mut stage, saved(&[1]));
            if is_answered {
                stage.writes_its_key(12);
                stage.hears(Report::Done(number, Ok(done(9))));
            } else {
                stage.hears(Report::Done(number, Err(EtcdError::replaced())));
                assert_eq!(stage.site.presence.registration(), None, "it may still be carried out");
                stage.writes_its_key(12);
            }
            assert!(stage.site.pending.is_in_proof(&slot(1)) && !stage.site.pending.is_in_proof(&slot(2)));
            assert_eq!((stage.table().used(), stage.asks()), (1, None));
            let own = stage.record(&saved(&[1]), LAUNCH);
            let other = SlotRecord { host: "lab9".to_owned(), agent: AgentId::default(), ..own.clone() };
            let record = Value::Slot(if is_own { own } else { other }).bytes();
            let (taken, own) = (stage.pair(&slot(1), 9, record), stage.own_key(12));
            stage.sees(if is_there { vec![(taken, true), (own, true)] } else { vec![(own, true)] });
            assert!(!stage.site.pending.is_in_proof(&slot(1)));
            let asked = stage.asks().map(|(_, asked)| asked);
            assert_eq!(asked, is_own.then(|| stage.kept(12, &[deleted(slot(1), 9)])));
            assert_eq!(stage.table().used(), u64::from(is_there));
        }
    }
}

/// The keys below a prefix are those that begin with it, and no others beside them.
#[test]
fn a_range_has_the_keys_that_begin_with_its_prefix() {
    let below = Range::below("/r/");
    for key in ["/r/", "/r/0", "/r/s/seats/0000001", "/r/~"] {
        assert!(below.contains(key), "{key}");
    }
    for key in ["/r", "/r.", "/r0", "/r0/s", "/q/s", "/s/"] {
        assert!(!below.contains(key), "{key}");
    }
}

/// What was sent before another etcd was noticed proves nothing. What is sent from then on does, once.
#[test]
fn an_answer_of_the_etcd_before_is_none() {
    let (mut pending, asked) = Pending::recorded();
    pending.send(Work::Aside(Key::Cluster), 1, Transaction::default());
    pending.begin_anew();
    pending.send(Work::Aside(Key::Cluster), 2, Transaction::default());
    assert!(pending.is_busy_with(&Key::Cluster) && !pending.is_busy_with(&Key::Host("lab9".to_owned())));
    let numbers = [(); 2].map(|()| asked().expect("it is sent").0);
    let answers = numbers.map(|number| pending.answered(number, Ok(done(9))).map(|(_, answer)| answer));
    assert_eq!(answers, [Some(Err(EtcdError::replaced())), Some(Ok(done(9)))]);
    assert!(pending.answered(numbers[1], Ok(done(9))).is_none());
    assert!(!pending.is_busy_with(&Key::Cluster));
}

/// A transaction that is carried out in another etcd than it is meant for proves nothing.
#[test]
fn an_answer_of_another_etcd_is_none() {
    let (client, _member) = member(&[committed(8), committed(9)]);
    let (reports, heard) = channel();
    let reporter = Reporter { reports, bell: Arc::new(Bell::new().expect("a bell")) };
    let mut pending = Pending::start(&client, &reporter);
    for (generation, answer) in [(0, Ok(done_in(0, 8))), (1, Err(EtcdError::replaced()))] {
        pending.send(Work::Aside(Key::Cluster), generation, Transaction::default());
        let report = heard.recv_timeout(Duration::from_secs(60)).expect("an answer");
        assert!(matches!(report, Report::Done(_, said) if said == answer), "for {generation}");
    }
}

/// The last use that a transaction writes first.
fn use_in(stage: &Stage, asked: &Transaction) -> Option<SavedStamps> {
    let key = stage.site.keys.name(&Key::Stamps("seats".to_owned()));
    let [Operation::Put(name, value), ..] = asked.operations.as_slice() else { return None };
    serde_json::from_slice(value).ok().filter(|_| *name == key)
}

/// The last end that it writes.
fn end_in(stage: &Stage, asked: &Transaction) -> Option<Duration> {
    use_in(stage, asked)?.last_end
}

/// A launch with slots of a table whose last use counts.
fn paced() -> SavedHolding {
    SavedHolding { paced_at_site: vec![table_of_site("seats")], ..saved(&[1]) }
}

/// A launch for which the site was asked is saved until the answer comes, and no longer: the next agent would
/// take back its start.
#[test]
fn what_the_site_has_answered_is_forgotten() {
    for (holds, is_saved) in [(None, true), (Some(true), false), (Some(false), false)] {
        let mut stage = Stage::open(|_| ());
        let state = |stage: &Stage| stage.local.ledger().state().read().expect("it is whole").unproved.len();
        stage.local.ledger().state().write_unproved(LAUNCH, &paced()).expect("there is room");
        let number = asks_for_a_slot(&mut stage, paced());
        drop(stage.local.served());
        if let Some(holds) = holds {
            stage.hears(Report::Done(number, Ok(Done { holds, ..done(9) })));
        }
        assert_eq!(state(&stage), usize::from(is_saved));
        if holds == Some(false) {
            assert_eq!(stage.local.served(), [table_of_site("seats")], "the slot is free for others");
        }
    }
}

/// A program that ended while no agent ran begins the pause of its table for all hosts.
#[test]
fn an_end_that_no_agent_saw_is_told_to_all_hosts() {
    for ago in [0, 1] {
        // A later process has the number of one that has ended.
        let holding = SavedHolding { start: paced().start - ago, uid: 7, ..paced() };
        let stage = Stage::open(|state| state.write(1, &holding).expect("there is room"));
        let (_, asked) = stage.asks().expect("a change");
        assert_eq!(end_in(&stage, &asked).is_some(), ago == 1);
        let user = use_in(&stage, &asked).and_then(|of| of.started_by);
        assert_eq!(user, (ago == 1).then_some(7));
    }
}

/// A start is recorded together with the slots. If no program starts, the last start is the one before: for
/// all hosts, if they know of it.
#[test]
fn a_start_without_a_program_begins_no_pause() {
    let second = Duration::from_secs;
    for holds in [true, false] {
        let mut stage = Stage::open(|_| ());
        let mut saved = paced();
        saved.started = Some(second(20));
        saved.tables[0].before = Some(second(10));
        stage.table().set_stamps(at(second(20)), None, None);
        let number = asks_for_a_slot(&mut stage, saved);
        stage.hears(Report::Done(number, Ok(Done { holds, ..done(9) })));
        assert_eq!(stage.table().stamps().0, at(second(10)));
        let told = stage.asks().and_then(|(_, asked)| use_in(&stage, &asked)?.last_start);
        assert_eq!(told, Some(second(10)).filter(|_| holds));
    }
}

/// A program that ends while the end of another one is being written is sent to the other hosts, too: its
/// pause is the longer one.
#[test]
fn an_end_that_comes_while_another_is_written_is_written_next() {
    let mut stage = Stage::open(|_| ());
    stage.site.note_end(&stage.local, &paced());
    stage.site.reconcile(&mut stage.local);
    let (number, asked) = stage.asks().expect("the end is written");
    let first = end_in(&stage, &asked).expect("an end");
    let until = stage.table().stamps().1.expect("an end");
    while SystemTime::now() <= until {
        hint::spin_loop();
    }
    stage.site.note_end(&stage.local, &paced());
    stage.hears(Report::Done(number, Ok(done(9))));
    let (number, asked) = stage.asks().expect("the next end is written");
    assert!(end_in(&stage, &asked).expect("an end") > first);
    let at = Compare::ChangedAt(stage.site.keys.name(&Key::Stamps("seats".to_owned())), 9);
    assert!(asked.compares.contains(&at));
    stage.hears(Report::Done(number, Ok(done(10))));
    stage.hears(Report::Tick);
    assert_eq!(stage.asks(), None, "the other hosts know all");
    let reset = stage.pair(&Key::Stamps("seats".to_owned()), 11, Vec::new());
    stage.sees(vec![(reset, false)]);
    assert_eq!(stage.asks(), None, "what another host has reset is not told again");
}

/// A start, and no end.
fn start() -> SavedStamps {
    let last_start = Some(Duration::from_secs(20));
    SavedStamps { last_start, last_end: None, started_by: None, longest_pause: Duration::MAX }
}

/// An end that the other hosts do not know yet is not forgotten when another host uses the table.
#[test]
fn an_end_that_is_not_told_yet_outlasts_the_start_of_another_host() {
    let mut stage = Stage::open(|_| ());
    stage.site.note_end(&stage.local, &paced());
    let used = stage.pair(&Key::Stamps("seats".to_owned()), 9, Value::Stamps(start()).bytes());
    stage.sees(vec![(used, true)]);
    assert!(stage.site.shows("seats"), "the site knows a use");
    let (_, asked) = stage.asks().expect("the end is written");
    let both = use_in(&stage, &asked).map(|of| (of.last_start, of.last_end.is_some()));
    assert_eq!(both, Some((start().last_start, true)));
}

/// The same if the end is written at the moment at which the other start is heard of.
#[test]
fn an_end_is_written_together_with_the_start_of_another_host() {
    let mut stage = Stage::open(|_| ());
    let number = asks_for_a_slot(&mut stage, saved(&[1]));
    stage.site.note_end(&stage.local, &paced());
    let used = stage.pair(&Key::Stamps("seats".to_owned()), 9, Value::Stamps(start()).bytes());
    stage.hears_together(vec![Report::Changes(vec![(used, true)]), Report::Done(number, Ok(done(10)))]);
    let (_, asked) = stage.asks().expect("the end is written");
    let both = use_in(&stage, &asked).map(|of| (of.last_start, of.last_end.is_some()));
    assert_eq!(both, Some((start().last_start, true)));
}

/// An agent dies while it asks for slots, and there is no program: the start that was recorded with them is
/// taken back by the next agent.
#[test]
fn a_start_that_no_agent_has_answered_is_taken_back() {
    let mut stage = Stage::open(|state| {
        let mut asked = SavedHolding { started: start().last_start, ..paced() };
        asked.tables[0].before = Some(Duration::from_secs(10));
        state.write_unproved(LAUNCH, &asked).expect("there is room");
    });
    let used = stage.pair(&Key::Stamps("seats".to_owned()), 9, Value::Stamps(start()).bytes());
    stage.sees(vec![(used, true)]);
    let told = stage.asks().and_then(|(_, asked)| use_in(&stage, &asked)?.last_start);
    assert_eq!(told, Some(Duration::from_secs(10)));
}

/// `rungate reset` makes all hosts forget the last use of a table, also one that this host has not told yet.
/// It is answered when that is certain. Only the known last use is deleted: a later start begins a pause.
#[test]
fn a_reset_forgets_what_the_others_do_not_know_yet() {
    for is_known in [true, false] {
        let mut stage = Stage::open(|_| ());
        let root = stage.local.add_session(Session::default());
        let key = Key::Stamps("seats".to_owned());
        if is_known {
            let used = stage.pair(&key, 9, Value::Stamps(start()).bytes());
            stage.sees(vec![(used, true)]);
        }
        stage.site.note_end(&stage.local, &paced());
        stage.site.reset(&mut stage.local, root, vec![table_of_site("seats")]);
        if is_known {
            let (number, asked) = stage.asks().expect("it is deleted");
            assert_eq!(asked, stage.kept(8, &[deleted(key, 9)]));
            stage.hears(Report::Tick);
            assert_eq!((stage.local.answers(), stage.asks()), (Vec::new(), None), "it is not certain yet");
            stage.hears(Report::Done(number, Ok(done(10))));
        }
        assert_eq!(stage.local.answers(), [Answer::Done(true)]);
        assert_eq!(stage.table().stamps(), (None, None));
        stage.hears(Report::Tick);
        assert_eq!(stage.asks(), None, "the end is not told");
        stage.site.reset(&mut stage.local, root, vec![table_of_site("seats")]);
        assert_eq!(stage.local.answers(), [Answer::Done(false)], "there is nothing to forget");
        // The next end is written.
        stage.site.note_end(&stage.local, &paced());
        stage.hears(Report::Tick);
        let (_, asked) = stage.asks().expect("the end is written");
        assert!(end_in(&stage, &asked).is_some());
    }
}

/// A last use that is being written when a reset is requested is forgotten too.
#[test]
fn a_reset_forgets_what_is_being_written() {
    let mut stage = Stage::open(|_| ());
    let root = stage.local.add_session(Session::default());
    stage.site.note_end(&stage.local, &paced());
    stage.site.reconcile(&mut stage.local);
    let (number, asked) = stage.asks().expect("the end is written");
    assert!(end_in(&stage, &asked).is_some());
    stage.site.reset(&mut stage.local, root, vec![table_of_site("seats")]);
    assert_eq!((stage.local.answers(), stage.asks()), (Vec::new(), None));
    stage.hears(Report::Done(number, Ok(done(9))));
    let (number, asked) = stage.asks().expect("it is deleted");
    assert_eq!(asked, stage.kept(8, &[deleted(Key::Stamps("seats".to_owned()), 9)]));
    assert_eq!(stage.local.answers(), []);
    stage.hears(Report::Done(number, Ok(done(10))));
    assert_eq!(stage.local.answers(), [Answer::Done(true)]);
}

/// While etcd cannot be reached, or was not read yet, a reset is not done. It fails after some time, and says
/// why. Then nothing is forgotten.
#[test]
fn a_reset_that_is_not_done_fails() {
    for (is_read, is_late) in [(true, true), (false, true), (false, false)] {
        let mut stage = if is_read { Stage::open(|_| ()) } else { Stage::new(|_| ()) };
        let root = stage.local.add_session(Session::default());
        let key = Key::Stamps("seats".to_owned());
        let used = stage.pair(&key, 6, Value::Stamps(start()).bytes());
        if is_read {
            stage.sees(vec![(Pair { revision: 9, ..used.clone() }, true)]);
        }
        stage.site.reset(&mut stage.local, root, vec![table_of_site("seats")]);
        let sent = stage.asks();
        assert_eq!(sent.is_some(), is_read);
        let not_reached = stage.site.client.keep_alive(1).expect_err("no member listens");
        match sent {
            Some((number, _)) => stage.hears(Report::Done(number, Err(not_reached))),
            None => stage.hears(Report::Unreached(not_reached)),
        }
        assert_eq!((stage.local.answers(), stage.asks()), (Vec::new(), None));
        if is_late {
            let late = Instant::now().checked_sub(PATIENCE * 3 / 2).expect("a moment");
            stage.site.own.resets[0].since = late;
            stage.hears(Report::Tick);
            let answers = stage.local.answers();
            let [Answer::Failed(why)] = answers.as_slice() else { panic!("it fails") };
            assert!(why.starts_with("the site has not been reached for "), "{why}");
            assert_eq!((stage.table().stamps().0.is_some(), stage.asks()), (is_read, None));
        }
        if !is_read {
            stage.reads(7, vec![used]);
            stage.registers(8);
            let asked = stage.asks().map(|(_, asked)| asked);
            assert_eq!(asked, (!is_late).then(|| stage.kept(8, &[deleted(key, 6)])));
        }
    }
}

/// The id that a transaction writes, and the revision at which the key must be.
fn id_in(stage: &Stage, asked: &Transaction) -> Option<(ClusterRecord, i64)> {
    let key = stage.site.keys.name(&Key::Cluster);
    let ([Compare::ChangedAt(compared, at)], [Operation::Put(name, value)]) =
        (asked.compares.as_slice(), asked.operations.as_slice())
    else {
        return None;
    };
    let record = serde_json::from_slice(value).ok()?;
    (*compared == key && *name == key).then_some((record, *at))
}

/// An etcd without an id has lost all slots if another one was known before. So nothing is granted: its id is
/// in doubt, and for all other hosts too.
#[test]
fn an_empty_etcd_instead_of_the_known_one_lets_no_launch_in() {
    let mut stage = Stage::open(|_| ());
    assert!(stage.site.is_open());
    let commands = stage.site.presence.recorded();
    stage.reads_of(2, "two", 3, Vec::new());
    assert_eq!(stage.site.presence.registration(), None);
    assert_eq!(commands.try_iter().next(), Some(Command::Anew), "its key is written there");
    let (number, asked) = stage.asks().expect("the id is written");
    let doubt = ClusterRecord { cluster: String::new() };
    assert_eq!(id_in(&stage, &asked), Some((doubt, 0)));
    stage.hears(Report::Done(number, Ok(done_in(2, 4))));
    let id = stage.id(4, "");
    stage.sees(vec![(id, true)]);
    stage.registers(5);
    assert!(!stage.site.is_open() && stage.site.is_held_back().is_some());
    assert_eq!(stage.asks(), None);
    // The time counts from the first moment on.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(2) {
        hint::spin_loop();
    }
    stage.hears(Report::Tick);
    assert!(stage.site.is_held_back().is_some_and(|(lasts, _)| lasts >= Duration::from_millis(2)));
}

/// What was written to another etcd is not in this one, whatever the revisions are: it is put back. An answer
/// that comes later is also that of the other one.
#[test]
fn what_another_etcd_had_is_put_back() {
    for is_late in [false, true] {
        let mut stage = Stage::open(|state| state.write(1, &saved(&[1])).expect("there is room"));
        let (number, _) = stage.asks().expect("the slot is put back");
        if !is_late {
            stage.hears(Report::Done(number, Ok(done(9))));
        }
        assert_eq!(stage.asks(), None);
        let id = stage.id(2, "two");
        stage.reads_of(2, "two", 3, vec![id]);
        if is_late {
            stage.hears(Report::Done(number, Ok(done(9))));
        }
        stage.registers(4);
        let (_, asked) = stage.asks().expect("it is put back there, too");
        let put = Change { key: slot(1), at: 0, value: Some(Value::Slot(stage.record(&saved(&[1]), 0))) };
        assert_eq!(asked, stage.kept(4, &[put]));
    }
}

/// The first host that reads an etcd without an id writes it. Nothing is missing there.
#[test]
fn a_new_etcd_gets_its_id() {
    let mut stage = Stage::new(|_| ());
    stage.reads_of(1, "one", 7, Vec::new());
    let (_, asked) = stage.asks().expect("the id is written");
    assert_eq!(id_in(&stage, &asked), Some((ClusterRecord { cluster: "one".to_owned() }, 0)));
    assert!(stage.site.is_held_back().is_none());
}

/// After a restore, the longest ttl of all hosts counts, also that of a host that is missing in the backup.
#[test]
fn the_longest_ttl_counts_after_a_restore() {
    let mut stage = Stage::open(|_| ());
    let (agent, version, repositories) = (AgentId::default(), "0".to_owned(), BTreeMap::new());
    let record = HostRecord { agent, version, ttl: 600_000, repositories, lease: 0 };
    let long = stage.pair(&Key::Written("lab9".to_owned()), 9, bytes(&record));
    let short = stage.pair(&Key::Written("lab8".to_owned()), 9, of_host(&AgentId::default()));
    stage.sees(vec![(long, true), (short, true)]);
    let id = stage.id(5, "one");
    stage.reads_of(2, "two", 20, vec![id]);
    let (_, left) = stage.site.is_held_back().expect("the tables may be incomplete");
    assert!(left > Duration::from_secs(300), "{}", left.as_secs());
    assert!(stage.site.why_held_back().is_some_and(|text| !text.contains("about 1 s")));
}

/// When the time after a restore is over and etcd cannot be reached, the messages are about that.
#[test]
fn an_etcd_that_is_lost_after_a_restore_is_reported() {
    for (ttl, are_about_etcd) in [(0, true), (600, false)] {
        let mut stage = Stage::new(|_| ());
        stage.site.ttl = Duration::from_secs(ttl);
        stage.reads(7, Vec::new());
        let backup = stage.id(5, "one");
        stage.reads_of(2, "two", 20, vec![backup]);
        let told = |stage: &Stage| {
            [stage.site.why(), stage.site.about().trouble.expect("no slots are granted").text]
        };
        let restored = "etcd was restored from a backup or replaced, or its keys were deleted: no slots are granted for about ";
        assert!(told(&stage).iter().all(|text| text.starts_with(restored)), "etcd works");
        let not_reached = stage.site.client.keep_alive(1).expect_err("no member listens");
        let error = not_reached.to_string();
        stage.site.presence.note(not_reached);
        let is_about_etcd = told(&stage).map(|text| text.contains(&error) && !text.contains(restored));
        assert_eq!(is_about_etcd, [are_about_etcd; 2], "{ttl}");
        let is_about_restore = told(&stage).map(|text| text.starts_with(restored));
        assert_eq!(is_about_restore, [!are_about_etcd; 2], "{ttl}");
    }
}

/// Each restore begins the time in which no slots are granted: until it, a host could put back its slots in
/// the etcd before it, and was confirmed there. The next one may be of the same cluster, or of another one.
#[test]
fn a_second_restore_begins_the_time_again() {
    for cluster in ["two", "three"] {
        let mut stage = Stage::open(|_| ());
        let backup = stage.id(5, "one");
        stage.reads_of(2, "two", 20, vec![backup.clone()]);
        assert!(stage.site.is_held_back().is_some());
        let now = || process::since_boot().expect("a clock");
        let first = now();
        while now() < first + Duration::from_millis(2) {
            hint::spin_loop();
        }
        let second = now();
        stage.reads_of(3, cluster, 20, vec![backup]);
        let since = (0..100).map(|_| {
            let (lasts, _) = stage.site.is_held_back().expect("the tables may be incomplete");
            now().saturating_sub(lasts)
        });
        assert!(since.min() >= Some(second), "{cluster}");
    }
}

/// After a restore, slots are granted again when the longest ttl is over and this host has put back its own
/// slots. To protect these, its key is written once more.
#[test]
fn a_host_that_has_not_put_back_its_slots_opens_no_site() {
    let mut stage = Stage::new(|state| state.write(1, &saved(&[1])).expect("there is room"));
    // The time is over at once.
    stage.site.ttl = Duration::ZERO;
    let record = Value::Slot(stage.record(&saved(&[1]), 0)).bytes();
    let before = stage.pair(&slot(1), 6, record.clone());
    stage.reads(7, vec![before]);
    stage.registers(8);
    assert_eq!(stage.asks(), None);
    let backup = stage.id(5, "one");
    stage.reads_of(2, "two", 20, vec![backup]);
    assert_eq!(stage.asks(), None, "its slot is missing");
    stage.registers(21);
    let (number, asked) = stage.asks().expect("the slot is put back");
    let slot_is_missing = Compare::ChangedAt(stage.site.keys.name(&slot(1)), 0);
    assert!(asked.compares.contains(&slot_is_missing));
    stage.hears(Report::Done(number, Ok(done_in(2, 22))));
    assert_eq!(stage.asks(), None, "the mirror does not have it yet");
    let again = stage.pair(&slot(1), 22, record);
    stage.sees(vec![(again, true)]);
    assert_eq!(stage.site.presence.registration(), None, "its key is written once more");
    let (number, asked) = stage.asks().expect("the id is written");
    let id = ClusterRecord { cluster: "two".to_owned() };
    assert_eq!(id_in(&stage, &asked), Some((id, 5)));
    stage.hears(Report::Done(number, Ok(done_in(2, 23))));
    let id = stage.id(23, "two");
    stage.sees(vec![(id, true)]);
    assert!(stage.site.is_named() && stage.site.is_held_back().is_none());
}

/// A slot that another host has got meanwhile is left to it: the program here gets another one, and does not
/// come back for the first one.
#[test]
fn a_holder_moves_when_another_host_has_its_slot() {
    let mut stage = Stage::new(|state| state.write(1, &saved(&[1])).expect("there is room"));
    let record = stage.record(&saved(&[1]), 0);
    let other = SlotRecord { host: "lab9".to_owned(), agent: AgentId::default(), ..record.clone() };
    let pairs = vec![
        stage.pair(&Key::Host("lab9".to_owned()), 4, of_host(&AgentId::default())),
        stage.pair(&slot(1), 6, Value::Slot(other).bytes()),
    ];
    stage.reads(7, pairs);
    stage.registers(8);
    let (number, asked) = stage.asks().expect("it has another slot");
    let value = Value::Slot(record);
    let put = Change { key: slot(2), at: 0, value: Some(value.clone()) };
    assert_eq!(asked, stage.kept(8, &[put]));
    let here = table_of_site("seats");
    let has = |slot: u64| stage.local.ledger().holdings().values().any(|holding| holding.has(&here, slot));
    assert_eq!((has(1), has(2), stage.table().used()), (false, true, 2));
    stage.hears(Report::Done(number, Ok(done(9))));
    let (taken, gone) = (stage.pair(&slot(2), 9, value.bytes()), stage.pair(&slot(1), 10, Vec::new()));
    stage.sees(vec![(taken, true), (gone, false)]);
    assert_eq!((stage.table().used(), stage.asks()), (1, None));
}

/// One transaction has no more conditions and changes than etcd accepts by default, which is 128 of each. The
/// rest comes in the next one.
#[test]
fn what_etcd_does_not_accept_at_once_comes_later() {
    let mut stage = Stage::open(|_| ());
    let record = Value::Slot(stage.record(&saved(&[]), 0)).bytes();
    let count = 130;
    let left = (1..).take(count).map(|number| (stage.pair(&slot(number), 9, record.clone()), true)).collect();
    stage.sees(left);
    let (number, asked) = stage.asks().expect("they are deleted");
    assert_eq!(asked.compares.len(), 128);
    let first = asked.operations.len();
    stage.hears(Report::Done(number, Ok(done(10))));
    let (_, asked) = stage.asks().expect("the rest is deleted");
    assert_eq!(first + asked.operations.len(), count);
}

/// A slot without a readable value is that of no host. This host neither deletes it nor gives it to a launch.
#[test]
fn a_slot_that_no_host_can_read_is_left_alone() {
    let mut stage = Stage::open(|_| ());
    let unreadable = stage.pair(&slot(1), 9, b"a mistake".to_vec());
    stage.sees(vec![(unreadable, true)]);
    // The keys were last looked at long ago.
    stage.site.looked = None;
    stage.hears(Report::Tick);
    assert_eq!((stage.asks(), stage.table().used()), (None, 1));
    assert_eq!(stage.site.about().unreadable.len(), 1);
    // A slot of this agent that no launch has is deleted.
    let record = stage.record(&saved(&[2]), 0);
    let left = stage.pair(&slot(2), 10, Value::Slot(record).bytes());
    stage.sees(vec![(left, true)]);
    let asked = stage.asks().map(|(_, asked)| asked);
    assert_eq!(asked, Some(stage.kept(8, &[deleted(slot(2), 10)])));
}

/// Another etcd has revisions of its own: a slot that was written there at the same revision is shown with
/// its holder there.
#[test]
fn a_slot_of_another_etcd_is_shown_with_its_own_holder() {
    let mut stage = Stage::open(|_| ());
    let (host, agent) = ("lab9".to_owned(), AgentId::default());
    let record = SlotRecord { host, agent, ..stage.record(&saved(&[1]), 1) };
    let of = |stage: &Stage, pid| {
        stage.pair(&slot(1), 6, Value::Slot(SlotRecord { pid, ..record.clone() }).bytes())
    };
    let shown = |stage: &Stage| {
        let table = stage.table();
        table.holders(&table.occupancy()).iter().map(|holder| holder.pid).collect::<Vec<_>>()
    };
    let first = of(&stage, 1);
    stage.reads(9, vec![first]);
    assert_eq!(shown(&stage), [Some(1)]);
    let other = of(&stage, 2);
    stage.reads_of(2, "two", 9, vec![other]);
    assert_eq!(shown(&stage), [Some(2)]);
}

/// These changes, if the host of the other name is absent since this revision.
fn cleared(stage: &Stage, since: i64, changes: &[Change]) -> Transaction {
    let name = |key: Key| stage.site.keys.name(&key);
    let absent = Compare::Absent(name(Key::Host("lab9".to_owned())));
    let since = Compare::ChangedAt(name(Key::Written("lab9".to_owned())), since);
    transaction(&stage.site.keys, vec![absent, since], changes)
}

/// What the host asks for within some time.
fn asks_in_time(stage: &mut Stage) -> Option<(u64, Transaction)> {
    let next = || {
        stage.hears(Report::Tick);
        stage.asks()
    };
    iter::repeat_with(next).take(100).flatten().next()
}

/// The slots of a host that has no key at all, for example because a person has deleted it, go too.
#[test]
fn what_a_host_without_a_key_has_left_goes_in_its_time() {
    let mut stage = Stage::new(|_| ());
    // A ttl is over when some time has passed.
    stage.site.ttl = Duration::ZERO;
    let (host, agent) = ("lab9".to_owned(), AgentId::default());
    let record = SlotRecord { host, agent, ..stage.record(&saved(&[]), 1) };
    let left = stage.pair(&slot(1), 4, Value::Slot(record).bytes());
    stage.reads(7, vec![left]);
    let (_, asked) = asks_in_time(&mut stage).expect("the slot goes");
    assert_eq!(asked, cleared(&stage, 0, &[deleted(slot(1), 4)]));
}

/// What an absent host has left goes in this order: its slots after its ttl, slots that linger after that
/// time, and its own key when nothing else is left. No host considers itself absent.
#[test]
fn what_an_absent_host_has_left_goes_in_its_time() {
    let mut stage = Stage::new(|_| ());
    // A ttl is over when some time has passed.
    stage.site.ttl = Duration::ZERO;
    let (host, agent) = ("lab9".to_owned(), AgentId::default());
    let record = SlotRecord { host, agent, ..stage.record(&saved(&[]), 1) };
    let stays = SlotRecord { linger: 3_600_000, ..record.clone() };
    let written = |stage: &Stage, host: &str, at| {
        stage.pair(&Key::Written(host.to_owned()), at, of_host(&AgentId::default()))
    };
    let own = written(&stage, &stage.site.host, 2);
    // Another host is there, and no host can read slot 4.
    let of_another = SlotRecord { host: "lab8".to_owned(), ..record.clone() };
    let pairs = vec![
        own,
        written(&stage, "lab9", 3),
        stage.pair(&slot(1), 4, Value::Slot(record).bytes()),
        stage.pair(&slot(2), 6, Value::Slot(stays).bytes()),
        stage.pair(&Key::Host("lab8".to_owned()), 2, of_host(&AgentId::default())),
        stage.pair(&slot(3), 5, Value::Slot(of_another).bytes()),
        stage.pair(&slot(4), 5, b"a mistake".to_vec()),
    ];
    stage.reads(7, pairs);
    let (number, asked) = asks_in_time(&mut stage).expect("the first slot goes");
    assert_eq!(asked, cleared(&stage, 3, &[deleted(slot(1), 4)]));
    assert_eq!(asks_in_time(&mut stage), None, "that has no answer yet");
    stage.hears(Report::Done(number, Ok(done(8))));
    let gone = stage.pair(&slot(1), 8, Vec::new());
    stage.sees(vec![(gone, false)]);
    assert_eq!(asks_in_time(&mut stage), None, "the second one stays taken");
    let gone = stage.pair(&slot(2), 9, Vec::new());
    stage.sees(vec![(gone, false)]);
    let (_, asked) = asks_in_time(&mut stage).expect("the key of the host goes");
    assert_eq!(asked, cleared(&stage, 3, &[deleted(Key::Written("lab9".to_owned()), 3)]));
    assert!(stage.site.absences.since("lab9").is_some());
    assert!(stage.site.absences.since(&stage.site.host).is_none());
}

/// A slot that is there: its number, its host if that is another name, and whether this agent has written it.
type Found = (u64, Option<&'static str>, bool);

/// A host counts as confirmed when all of its slots are there. An agent that starts checks that first if its
/// slots may be missing: in an etcd with the id of another one, and if the host had another name before.
#[test]
fn an_agent_that_starts_checks_its_slots_if_they_may_be_missing() {
    let cases: [(&str, &[Found], bool); 7] = [
        ("one", &[], true),
        ("two", &[], false),
        ("two", &[(1, None, true)], false),
        ("two", &[(1, None, true), (2, None, true)], true),
        ("one", &[(1, None, true)], true),
        ("one", &[(1, Some("lab8"), false)], true),
        ("one", &[(1, Some("lab8"), true), (3, Some("lab8"), false)], false),
    ];
    for (case, (cluster, slots, is_confirmed)) in cases.into_iter().enumerate() {
        let mut stage = Stage::new(|state| {
            was_confirmed(state);
            state.write(1, &saved(&[1, 2])).expect("there is room");
        });
        let before = stage.site.presence.confirmed();
        let mut pairs = vec![stage.id(5, "one")];
        for (number, host, is_own) in slots {
            let mut record = stage.record(&saved(&[*number]), 0);
            record.host = host.map_or(record.host, str::to_owned);
            record.agent = if *is_own { record.agent } else { AgentId::default() };
            pairs.push(stage.pair(&slot(*number), 6, Value::Slot(record).bytes()));
        }
        stage.reads_of(1, cluster, 7, pairs);
        stage.writes_its_key(8);
        assert_eq!(stage.site.presence.confirmed() > before, is_confirmed, "{case}");
    }
}

/// Launches that waited while no slots were granted check again when slots are granted.
#[test]
fn waiters_check_again_when_slots_are_granted() {
    let mut stage = Stage::new(was_confirmed);
    let (host, agent) = ("lab9".to_owned(), AgentId::default());
    let record = SlotRecord { host, agent, ..stage.record(&saved(&[1]), 1) };
    let held = stage.pair(&slot(1), 6, Value::Slot(record).bytes());
    stage.reads(7, vec![held]);
    assert!(!stage.site.is_open());
    drop(stage.local.served());
    stage.writes_its_key(8);
    assert!(stage.site.is_open());
    assert_eq!(stage.local.served(), [table_of_site("seats")]);
}

/// A slot of this agent that no launch has is deleted, also if it was there when the agent started.
#[test]
fn what_an_agent_finds_of_its_own_is_deleted() {
    let mut stage = Stage::new(|_| ());
    let record = Value::Slot(stage.record(&saved(&[1]), 0)).bytes();
    let left = stage.pair(&slot(1), 6, record);
    stage.reads(7, vec![left]);
    stage.registers(8);
    let asked = stage.asks().map(|(_, asked)| asked);
    assert_eq!(asked, Some(stage.kept(8, &[deleted(slot(1), 6)])));
}
