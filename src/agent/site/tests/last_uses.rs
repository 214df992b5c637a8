//! Last uses that no pause needs any more.

use std::{
    iter,
    ops::Range,
    time::{Duration, Instant, SystemTime},
};

use super::stage::{Stage, done, holding, request, saved, slot};
use crate::{
    agent::{
        AcquireRequest, Session,
        ledger::state::{SavedHolding, SavedStamps, since_1970},
        site::{
            AgentId, Change, Compare, Done, Key, Operation, Report, SlotRecord, Transaction, Value,
            etcd::{EtcdError, Pair},
            proof::transaction,
        },
    },
    judge::terms::{Demand, ElapsedFrom, Pause, TooSoon, table_of_site},
};

const HOUR: Duration = Duration::from_secs(3600);

/// The shortest pause. It is over as soon as a test looks.
const SHORTEST: Duration = Duration::from_nanos(1);

fn key(table: &str) -> Key {
    Key::Stamps(table.to_owned())
}

/// A table that was last used at this time, and has a pause of this length.
fn used(at: SystemTime, longest_pause: Duration) -> Value {
    let (last_start, last_end) = (since_1970(at), None);
    Value::Stamps(SavedStamps { last_start, last_end, started_by: Some(7), longest_pause })
}

/// The host sees this last use of the table "seats", at revision 9.
fn sees(stage: &mut Stage, value: Vec<u8>) {
    let pair = stage.pair(&key("seats"), 9, value);
    stage.sees(vec![(pair, true)]);
}

fn looks(stage: &mut Stage) {
    stage.site.forget_old_uses(stage.local.ledger().store());
}

/// The deletion of the last use of a table, if it is as it was seen, this host is not considered dead, and
/// the tables belong to this etcd.
fn forgets(stage: &Stage, table: &str, at: i64) -> Transaction {
    let name = |key: Key| stage.site.keys.name(&key);
    let host = Compare::ChangedAt(name(Key::Host(stage.site.host.clone())), 8);
    let id = Compare::ChangedAt(name(Key::Cluster), 5);
    transaction(&stage.site.keys, vec![host, id], &[Change { key: key(table), at, value: None }])
}

/// The last use of a table is deleted when its longest pause is over, by its time and by how long it is known
/// here: the clock of the host that has written it may be behind. One that no host can read is left alone,
/// and one whose longest pause its host did not know.
#[test]
fn a_last_use_is_deleted_when_its_longest_pause_is_over() {
    let (now, long_ago) = (SystemTime::now(), SystemTime::UNIX_EPOCH + HOUR);
    for (last, pause, is_over) in [
        (long_ago, SHORTEST, true),
        (long_ago, HOUR, false),
        (long_ago, Duration::MAX, false),
        (long_ago, Duration::ZERO, false),
        (now + HOUR, SHORTEST, false),
    ] {
        let mut stage = Stage::open(|_| ());
        sees(&mut stage, used(last, pause).bytes());
        looks(&mut stage);
        let asked = stage.asks().map(|(_, asked)| asked);
        assert_eq!(asked, is_over.then(|| forgets(&stage, "seats", 9)), "{} s", pause.as_secs());
    }
    let mut stage = Stage::open(|_| ());
    sees(&mut stage, b"a mistake".to_vec());
    looks(&mut stage);
    assert_eq!(stage.asks(), None);
}

/// A last use stays for as long as the longest pause, also if it seems to be old. A later one begins that
/// time again.
#[test]
fn a_last_use_stays_until_it_is_known_for_the_longest_pause() {
    let mut stage = Stage::open(|_| ());
    let pause = Duration::from_millis(5);
    let value = used(SystemTime::UNIX_EPOCH, pause).bytes();
    for revision in [9, 10] {
        let begun = Instant::now();
        let pair = stage.pair(&key("seats"), revision, value.clone());
        stage.sees(vec![(pair, true)]);
        let asks = || {
            assert!(begun.elapsed() < Duration::from_secs(60), "its time is over");
            looks(&mut stage);
            stage.asks()
        };
        let (number, asked) = iter::repeat_with(asks).flatten().next().expect("it is deleted");
        assert!(begun.elapsed() >= pause, "{revision}");
        assert_eq!(asked, forgets(&stage, "seats", revision));
        // It was used meanwhile.
        stage.hears(Report::Done(number, Ok(Done { holds: false, ..done(revision) })));
    }
}

/// While a launch has a slot of the table, on whichever host, a pause may begin with its end.
#[test]
fn the_last_use_of_a_table_in_use_stays() {
    for is_held in [true, false] {
        let mut stage = Stage::open(|_| ());
        if is_held {
            let (host, agent) = ("lab9".to_owned(), AgentId::default());
            let record = SlotRecord { host, agent, ..stage.record(&saved(&[1]), 1) };
            let held = stage.pair(&slot(1), 9, Value::Slot(record).bytes());
            stage.sees(vec![(held, true)]);
        }
        sees(&mut stage, used(SystemTime::UNIX_EPOCH, SHORTEST).bytes());
        looks(&mut stage);
        assert_eq!(stage.asks().is_none(), is_held);
    }
}

/// What a launch needs that pauses for this long.
fn paced(length: Duration) -> AcquireRequest {
    let mut paced = request();
    for claim in paced.demands.iter_mut().flat_map(Demand::claims_mut) {
        claim.pace.pause = Some(Pause { length, from: ElapsedFrom::Start, too_soon: TooSoon::Refuse });
    }
    paced
}

/// The policy may have got a longer pause since the last start. A launch that was checked by it needs the
/// last use.
#[test]
fn a_last_use_stays_for_a_pause_that_has_become_longer() {
    let mut stage = Stage::open(|_| ());
    let launch = stage.local.add_session(Session::default());
    sees(&mut stage, used(SystemTime::UNIX_EPOCH + HOUR, SHORTEST).bytes());
    stage.site.prepare(&mut stage.local, launch, &paced(HOUR));
    looks(&mut stage);
    assert_eq!(stage.asks(), None);
    // The other hosts hear of that pause, once.
    let value = used(SystemTime::UNIX_EPOCH + HOUR, HOUR);
    stage.site.reconcile(&mut stage.local);
    let (number, asked) = stage.asks().expect("it is written again");
    assert_eq!(asked, stage.kept(8, &[Change { key: key("seats"), at: 9, value: Some(value) }]));
    stage.hears(Report::Done(number, Ok(done(10))));
    for length in [HOUR, SHORTEST] {
        stage.site.prepare(&mut stage.local, launch, &paced(length));
        stage.site.reconcile(&mut stage.local);
        assert_eq!(stage.asks(), None, "all know it");
    }
}

/// A launch that gets its slots writes its longer pause together with them. It is not written once more after
/// that: neither at once, nor when another host makes all forget the last use.
#[test]
fn a_longer_pause_is_written_with_the_slots_of_its_launch() {
    let mut stage = Stage::open(|_| ());
    let launch = stage.local.add_session(Session::default());
    sees(&mut stage, used(SystemTime::UNIX_EPOCH + HOUR, SHORTEST).bytes());
    stage.site.prepare(&mut stage.local, launch, &paced(HOUR));
    let mut saved = saved(&[1]);
    saved.paced_at_site = vec![table_of_site("seats")];
    let held = stage.table().take(&[1]).expect("it is free");
    stage.site.prove(&mut stage.local, launch, paced(HOUR), holding(saved, held));
    let (number, asked) = stage.asks().expect("it is proved");
    let put = |of: Operation| match of {
        Operation::Put(key, value) => Some((Pair { key, value, revision: 10, lease: 0 }, true)),
        Operation::PutUnderLease(..) | Operation::Delete(_) => None,
    };
    let mut written: Vec<_> = asked.operations.into_iter().filter_map(put).collect();
    let value = used(SystemTime::UNIX_EPOCH + HOUR, HOUR).bytes();
    assert!(written.contains(&(stage.pair(&key("seats"), 10, value), true)));
    stage.hears(Report::Done(number, Ok(done(10))));
    assert_eq!(stage.asks(), None);
    written.push((stage.pair(&key("seats"), 11, Vec::new()), false));
    stage.sees(written);
    assert_eq!(stage.asks(), None);
    assert_eq!(stage.table().stamps(), (None, None));
}

/// An end whose answer was lost is known to all when etcd has it, also if a start was withdrawn before. A
/// host that hears then of a reset on another host forgets it too, and does not write it again.
#[test]
fn an_end_that_etcd_has_is_forgotten_with_a_reset_of_another_host() {
    for is_withdrawn in [false, true] {
        let mut stage = Stage::open(|_| ());
        let started = since_1970(SystemTime::UNIX_EPOCH + HOUR);
        let paced = SavedHolding { started, paced_at_site: vec![table_of_site("seats")], ..saved(&[1]) };
        if is_withdrawn {
            stage.site.own.was_not_used(&paced);
        }
        stage.site.note_end(&stage.local, &paced);
        let end = stage.table().stamps().1;
        assert!(end.is_some());
        stage.site.reconcile(&mut stage.local);
        let (number, asked) = stage.asks().expect("the end is written");
        let [Operation::Put(_, value)] = asked.operations.as_slice() else { panic!("one last use") };
        let written = stage.pair(&key("seats"), 9, value.clone());
        stage.hears(Report::Done(number, Err(EtcdError::replaced())));
        stage.writes_its_key(10);
        assert_eq!(stage.asks(), None, "the result is unknown");
        let own = stage.own_key(10);
        stage.sees(vec![(written, true), (own, true)]);
        assert_eq!((stage.table().stamps().1, stage.asks()), (end, None), "etcd has it");
        let reset = stage.pair(&key("seats"), 11, Vec::new());
        stage.sees(vec![(reset, false)]);
        assert_eq!(stage.table().stamps(), (None, None), "{is_withdrawn}");
        if !is_withdrawn {
            stage.hears(Report::Tick);
            assert_eq!(stage.asks(), None);
        }
    }
}

/// Each start that is recorded looks at the next few tables, and after the last one at the first again. So
/// there are no more keys than pauses, however many tables are used once.
#[test]
fn each_recorded_start_looks_at_the_next_few_tables() {
    let mut stage = Stage::open(|_| ());
    let value = used(SystemTime::UNIX_EPOCH, SHORTEST).bytes();
    let old = |number: u64| format!("old{number}");
    let pairs = (0..6).map(|number| (stage.pair(&key(&old(number)), 9, value.clone()), true)).collect();
    stage.sees(pairs);
    let starts = |stage: &mut Stage, number: u64, is_paced: bool| {
        let launch = stage.local.add_session(Session::default());
        let mut saved = saved(&[number]);
        saved.paced_at_site = if is_paced { vec![table_of_site("seats")] } else { Vec::new() };
        let order = if is_paced { paced(HOUR) } else { request() };
        let held = stage.table().take(&[number]).expect("it is free");
        stage.site.prove(&mut stage.local, launch, order, holding(saved, held));
        let (proof, _) = stage.asks().expect("it is proved");
        stage.hears(Report::Done(proof, Ok(done(20))));
        iter::from_fn(|| stage.asks()).map(|(_, asked)| asked).collect::<Vec<_>>()
    };
    let forgets = |stage: &Stage, numbers: Range<u64>| {
        numbers.map(|number| forgets(stage, &old(number), 9)).collect::<Vec<_>>()
    };
    assert_eq!(starts(&mut stage, 1, false), []);
    assert_eq!(starts(&mut stage, 2, true), forgets(&stage, 0..4));
    assert_eq!(starts(&mut stage, 3, true), forgets(&stage, 4..6));
    assert_eq!(starts(&mut stage, 4, true), [], "that was the last table");
    let new = stage.pair(&key("new"), 10, value);
    stage.sees(vec![(new, true)]);
    assert_eq!(starts(&mut stage, 5, true), [self::forgets(&stage, "new", 10)], "the others have no answer");
}
