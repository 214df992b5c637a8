//! Tickets and their numbers: those of launches on other hosts, and of launches that waited when the agent
//! before this one died.

use std::{
    iter,
    time::{Duration, Instant},
};

use serde_json::json;

use super::stage::{Stage, deleted, done, holding, of_host, request, saved};
use crate::{
    acquire::{PlaceInLine, PlaceInTable},
    agent::{
        AcquireRequest, Session,
        ledger::state::SavedPlace,
        site::{AgentId, Compare, Done, Key, Operation, PATIENCE, Report, TicketRecord, record::bytes},
    },
    judge::terms::{Demand, Location, table_of_site},
    keeper::{Class, Number},
    sys::{Process, own_pid, process},
};

/// This process, as it waits under this number.
fn waits(number: u64) -> SavedPlace {
    let itself = Process::find(own_pid()).expect("it runs");
    let line = json!({ "table": table_of_site("seats"), "classes": [[0, 1]], "begun": 1 });
    let place = json!({
        "pid": itself.pid, "start": itself.started, "uid": 0,
        "number": { "number": number, "launch": [1, 2] }, "lines": [line],
    });
    serde_json::from_value(place).expect("a place")
}

/// The number of a launch that was first looked at at this revision.
fn number(revision: u64, sequence: u64) -> u64 {
    (revision << 24) | (sequence << 12) | 5
}

/// An agent that is started again gives no number that is lower than those that it gave before at the same
/// revision: launches would overtake those that wait.
#[test]
fn numbers_continue_after_the_highest_of_those_that_wait() {
    let before = [number(8, 9), number(8, 5)];
    let mut stage = Stage::new(|state| {
        for (file, number) in (1..).zip(before) {
            state.write_place(file, &waits(number)).expect("there is room");
        }
    });
    assert_eq!(stage.local.ledger().recovered().len(), 2);
    let next = stage.site.numbers.next(8);
    assert!(before.iter().all(|number| *number < next), "{next:x}");
}

/// So many launches may have come at one revision that the numbers of some belong to later ones. After a
/// restart of the agent, newcomers have higher numbers nevertheless. A number of a later revision without a
/// ticket is that of another etcd.
#[test]
fn numbers_continue_after_those_that_ran_ahead_of_their_revision() {
    for there in [Some(9), Some(10), None] {
        let waiting = [number(9, 5), number(10, 5)];
        let mut stage = Stage::new(|state| {
            for (file, number) in (1..).zip(waiting) {
                state.write_place(file, &waits(number)).expect("there is room");
            }
        });
        let (host, agent) = (stage.site.host.clone(), stage.site.agent.clone());
        let record = bytes(&TicketRecord { host, agent, ..ticket() });
        let key = |revision| Key::Ticket("seats".to_owned(), number(revision, 5));
        let pairs = there.map(|revision| stage.pair(&key(revision), 6, record.clone()));
        stage.reads(7, pairs.into_iter().collect());
        let next = stage.site.numbers.next(7);
        match there {
            Some(revision) => assert!(next > number(revision, 5), "{next:x}"),
            None => assert!(next < number(8, 0), "{next:x}"),
        }
    }
}

/// The key of a host may be written while the first complete read is under way, which is at an earlier
/// revision then. Newcomers come after launches that waited before the restart nevertheless.
#[test]
fn numbers_continue_although_the_first_read_is_older_than_the_key_of_the_host() {
    let waiting = number(99, 7);
    let mut stage = Stage::new(|state| state.write_place(1, &waits(waiting)).expect("there is room"));
    stage.writes_its_key(100);
    stage.reads(99, Vec::new());
    let next = stage.site.numbers.next(99);
    assert!(waiting < next && next < number(100, 0), "{next:x}");
}

/// A launch that waited when its agent died has its tickets written again under its number. If the etcd was
/// restored since, and is not at the revision of that number yet, the number means nothing. It counts if one
/// of the tickets is there.
#[test]
fn a_number_of_a_later_revision_than_that_of_etcd_is_given_up() {
    for (revision, is_there, stays) in [(7, false, false), (8, false, true), (7, true, true)] {
        let number = number(8, 5);
        let mut place = waits(number);
        let mut other = place.lines[0].clone();
        other.table = table_of_site("other");
        place.lines.push(other);
        let mut stage = Stage::new(|state| state.write_place(1, &place).expect("there is room"));
        let key = |table: &str| Key::Ticket(table.to_owned(), number);
        let (host, agent) = (stage.site.host.clone(), stage.site.agent.clone());
        let there = stage.pair(&key("seats"), 6, bytes(&TicketRecord { host, agent, ..ticket() }));
        stage.reads(revision - 1, if is_there { vec![there] } else { Vec::new() });
        assert_eq!(stage.asks(), None);
        stage.registers(revision);
        assert_eq!(!stage.local.ledger().recovered().is_empty(), stays, "at {revision}");
        let missing = stage.site.keys.name(&key("other"));
        let operations = stage.asks().map(|(_, asked)| asked.operations).unwrap_or_default();
        let is_it = |of: &Operation| matches!(of, Operation::Put(name, _) if *name == missing);
        assert_eq!(operations.iter().any(is_it), stays, "at {revision}");
    }
}

/// A number that counted once counts also in an etcd that is restored after that.
#[test]
fn a_number_that_was_in_use_is_kept_in_a_restored_etcd() {
    let mut stage = Stage::new(|state| state.write_place(1, &waits(number(8, 5))).expect("there is room"));
    stage.reads(7, Vec::new());
    stage.registers(8);
    let (sent, _) = stage.asks().expect("its ticket is written");
    stage.hears(Report::Done(sent, Ok(done(9))));
    let id = stage.id(2, "two");
    stage.reads_of(2, "two", 3, vec![id]);
    // Its key is written once more when all slots are there.
    stage.registers(4);
    stage.registers(5);
    assert!(!stage.local.ledger().recovered().is_empty());
}

/// In a restored etcd, launches that wait are not overtaken by newcomers of their host, although the revision
/// is lower there. If none waits, numbers begin at that revision.
#[test]
fn numbers_of_a_restored_etcd_continue_after_those_that_wait() {
    for waiting in [Some(number(8, 5)), None] {
        let mut stage = Stage::new(|state| {
            if let Some(number) = waiting {
                state.write_place(1, &waits(number)).expect("there is room");
            }
        });
        stage.reads(7, Vec::new());
        stage.registers(8);
        assert!(stage.site.numbers.next(8) > number(8, 0));
        let id = stage.id(2, "two");
        stage.reads_of(2, "two", 3, vec![id]);
        assert_eq!(stage.site.own.places.get(&1).map(|place| place.number), waiting);
        let next = stage.site.numbers.next(3);
        match waiting {
            Some(waiting) => assert!(next > waiting, "{next:x}"),
            None => assert!(number(3, 0) < next && next < number(4, 0), "{next:x}"),
        }
    }
}

/// After a restore, a launch of another host may wait with a number of a later revision. Newcomers come after
/// it in its table. Elsewhere numbers begin at the revision.
#[test]
fn newcomers_come_after_a_number_of_a_later_revision() {
    let next_for = |table: &str, of_ticket: u64| {
        let mut stage = Stage::new(|_| ());
        let ticket = stage.pair(&Key::Ticket(table.to_owned(), of_ticket), 7, bytes(&ticket()));
        stage.reads(7, vec![ticket]);
        let launch = stage.local.add_session(Session::default());
        let mut order = request();
        for claim in order.demands.iter_mut().flat_map(Demand::claims_mut) {
            claim.location = Location::Memory(table_of_site("seats"));
        }
        stage.site.prepare(&mut stage.local, launch, &order);
        let number = stage.local.session(launch).and_then(|session| session.place.line.number());
        number.expect("it has a number").0
    };
    assert!(next_for("seats", number(9000, 5)) > number(9000, 5));
    for (table, of_ticket) in [("seats", number(7, 5)), ("boards", number(9000, 5))] {
        let next = next_for(table, of_ticket);
        assert!(number(7, 0) < next && next < number(8, 0), "{table} {next:x}");
    }
}

/// A launch that has waited in no queue, and rests since then.
fn newcomer(stage: &mut Stage, since: Option<Instant>) -> u64 {
    let launch = stage.local.add_session(Session::default());
    stage.local.session_mut(launch).expect("a launch").place.resting = since;
    launch
}

/// Its number when it is checked now.
fn checked(stage: &mut Stage, launch: u64) -> u64 {
    stage.site.prepare(&mut stage.local, launch, &request());
    let session = stage.local.session(launch).expect("a launch");
    session.place.line.number().expect("it has a number").0
}

/// It got a slot in memory. Returns the number of the transaction that proves it, and the conditions.
fn proves(stage: &mut Stage, launch: u64) -> (u64, Vec<Compare>) {
    let held = stage.table().take(&[1]).expect("it is free");
    stage.site.prove(&mut stage.local, launch, request(), holding(saved(&[1]), held));
    let (sent, asked) = stage.asks().expect("it is proved");
    (sent, asked.compares)
}

/// A launch that has waited in no queue proves that no launch waits that its host has not heard of. If there
/// is one, it has a later number than that at its next check.
#[test]
fn a_newcomer_comes_behind_launches_that_its_host_has_not_heard_of() {
    let mut stage = Stage::open(|_| ());
    let since = Instant::now().checked_add(PATIENCE * 1000);
    let launch = newcomer(&mut stage, since);
    checked(&mut stage, launch);
    let (sent, compares) = proves(&mut stage, launch);
    let all = stage.site.keys.line_before("seats", u64::MAX);
    assert!(compares.contains(&Compare::UnchangedSince(all, 8)));
    // A launch on another host waits since revision 10: its ticket was written at revision 11.
    stage.hears(Report::Done(sent, Ok(Done { holds: false, ..done(12) })));
    assert_eq!(stage.site.mirror.revision(), 8);
    assert!(checked(&mut stage, launch) > number(10, 4095));
}

/// Launches that always come later do not keep a newcomer from its slots for ever. Once it has rested for a
/// while, it keeps its number, and proves that no launch with a lower one waits.
#[test]
fn a_newcomer_that_has_rested_for_a_while_keeps_its_number() {
    let now = Instant::now();
    let (later, before) = (now.checked_add(PATIENCE * 1000), now.checked_sub(PATIENCE * 3 / 4));
    for (since, keeps_it) in [(None, false), (later, false), (before, true)] {
        let mut stage = Stage::open(|_| ());
        let launch = newcomer(&mut stage, since);
        let first = checked(&mut stage, launch);
        let own = stage.own_key(9);
        stage.sees(vec![(own, true)]);
        let next = checked(&mut stage, launch);
        assert_eq!((next == first, next >> 24), if keeps_it { (true, 8) } else { (false, 9) });
        let (_, compares) = proves(&mut stage, launch);
        let line = stage.site.keys.line_before("seats", if keeps_it { first } else { u64::MAX });
        assert!(compares.contains(&Compare::UnchangedSince(line, 9)));
    }
}

/// Etcd may answer before this host has heard of all changes until then. Launches that come after the answer
/// have numbers of its revision: they come behind those that already waited. Another etcd has other
/// revisions.
#[test]
fn a_launch_has_a_number_of_the_revision_of_the_last_answer() {
    let mut stage = Stage::open(|_| ());
    let since = Instant::now().checked_add(PATIENCE * 1000);
    let launch = newcomer(&mut stage, since);
    assert_eq!(checked(&mut stage, launch) >> 24, 8);
    stage.writes_its_key(10);
    assert_eq!(checked(&mut stage, launch) >> 24, 10);
    let (sent, _) = proves(&mut stage, launch);
    stage.hears(Report::Done(sent, Ok(Done { holds: false, ..done(12) })));
    assert_eq!(checked(&mut stage, launch) >> 24, 12);
    let sent = process::since_boot().expect("a clock");
    stage.hears(Report::Confirmed { revision: 15, generation: 1, sent });
    assert_eq!(checked(&mut stage, launch) >> 24, 15);
    stage.hears(Report::Registered { revision: 20, generation: 2, sent });
    assert_eq!(checked(&mut stage, launch) >> 24, 15);
    assert_eq!(stage.site.mirror.revision(), 8);
}

/// A launch that calls a restarted agent has its tickets of before.
#[test]
fn a_launch_that_calls_again_is_in_its_queue() {
    let number = number(8, 5);
    let mut stage = Stage::new(|state| state.write_place(1, &waits(number)).expect("there is room"));
    let launch = stage.local.add_session(Session::default());
    let is_in = |stage: &Stage| {
        [1, launch].map(|of| stage.site.own.is_in(of, &Key::Ticket("seats".to_owned(), number)))
    };
    assert_eq!(is_in(&stage), [true, false]);
    stage.site.hand_over_tickets(1, launch);
    assert_eq!(is_in(&stage), [false, true]);
}

/// The ticket of a launch on another host.
fn ticket() -> TicketRecord {
    let record = r#"{"host":"lab9","agent":"","pid":1,"uid":7,"command":"","classes":[],"is_away":false}"#;
    serde_json::from_str(record).expect("a record")
}

/// A ticket of this host whose launch waits no longer is deleted. No launch here waits behind it until then.
#[test]
fn a_ticket_that_no_launch_needs_holds_up_no_other() {
    let mut stage = Stage::open(|_| ());
    let key = Key::Ticket("seats".to_owned(), number(8, 5));
    let (host, agent) = (stage.site.host.clone(), stage.site.agent.clone());
    let ticket = TicketRecord { host, agent, classes: vec![(0, 3)], ..ticket() };
    let left = stage.pair(&key, 9, bytes(&ticket));
    stage.sees(vec![(left, true)]);
    assert!(stage.table().has_no_line());
    let asked = stage.asks().map(|(_, asked)| asked);
    assert_eq!(asked, Some(stage.kept(8, &[deleted(key, 9)])));
}

/// A launch whose ticket no host can read may be of any host and want any slot: no launch overtakes it.
#[test]
fn a_ticket_that_no_host_can_read_holds_up_all_others() {
    let mut stage = Stage::open(|_| ());
    let key = Key::Ticket("seats".to_owned(), number(8, 5));
    let unreadable = stage.pair(&key, 9, b"a mistake".to_vec());
    stage.sees(vec![(unreadable, true)]);
    let table = stage.table();
    let any = Class { generation: 0, capacity: u64::MAX };
    assert_eq!(table.classes_of(Number(number(8, 5))), [any]);
    assert!(table.next_to_look(None, &[]).is_some() && stage.asks().is_none());
}

/// A launch that waits on another host is shown as its last ticket says.
#[test]
fn a_ticket_that_changes_is_shown_as_it_is() {
    let mut stage = Stage::open(|_| ());
    // A later launch waits on another host, which stays there.
    let hosts = ["lab8", "lab9"].map(|host| Key::Host(host.to_owned()));
    let there = hosts.map(|host| (stage.pair(&host, 9, of_host(&AgentId::default())), true));
    stage.sees(there.into());
    let later = Key::Ticket("seats".to_owned(), number(8, 6));
    let record = TicketRecord { host: "lab8".to_owned(), classes: vec![(0, 3)], ..ticket() };
    let waits = stage.pair(&later, 9, bytes(&record));
    stage.sees(vec![(waits, true)]);
    for (revision, capacity) in [(10, 3), (11, 2)] {
        let ticket = TicketRecord { classes: vec![(0, capacity)], wants: Some(capacity), ..ticket() };
        let ticket = stage.pair(&Key::Ticket("seats".to_owned(), number(8, 5)), revision, bytes(&ticket));
        stage.sees(vec![(ticket, true)]);
        let shown = stage.table().classes_of(Number(number(8, 5)));
        assert_eq!(shown, [Class { generation: 0, capacity }]);
        let waiter = &stage.table().first_waiters(1)[0];
        assert_eq!((waiter.process.host.as_deref(), waiter.process.user), (Some("lab9"), Some(7)));
        assert_eq!(waiter.wants, Some(capacity));
    }
    // It is passed over while its host is away, also if its ticket is written meanwhile.
    let next = |stage: &Stage| stage.table().next_to_look(None, &[]) == Some(Number(number(8, 5)));
    assert!(next(&stage));
    let host = Key::Host("lab9".to_owned());
    for (revision, is_there) in [(12, false), (14, true)] {
        let key = stage.pair(&host, revision, of_host(&AgentId::default()));
        stage.sees(vec![(key, is_there)]);
        assert_eq!(next(&stage), is_there);
        let ticket = TicketRecord { classes: vec![(0, 2)], ..ticket() };
        let key = Key::Ticket("seats".to_owned(), number(8, 5));
        let again = stage.pair(&key, revision + 1, bytes(&ticket));
        stage.sees(vec![(again, true)]);
        assert_eq!(next(&stage), is_there);
    }
    // And if it does not respond to its agent.
    let ticket = TicketRecord { classes: vec![(0, 2)], is_away: true, ..ticket() };
    let away = stage.pair(&Key::Ticket("seats".to_owned(), number(8, 5)), 16, bytes(&ticket));
    stage.sees(vec![(away, true)]);
    assert!(!next(&stage));
    let gone = [Key::Ticket("seats".to_owned(), number(8, 5)), later]
        .map(|key| (stage.pair(&key, 17, Vec::new()), false));
    stage.sees(gone.into());
    assert!(!stage.site.shows("seats"), "nothing is left of it");
}

/// A launch whose request changes while it joins a bounded queue also proves the bounded queue that it needs
/// by then, instead of the first one or besides it: as of its first check, which came before the one that
/// found room there.
#[test]
fn a_launch_that_needs_another_bounded_queue_proves_that_one_too() {
    for needs in [&["other"][..], &["other", "seats"]] {
        let mut stage = Stage::open(|_| ());
        let launch = stage.local.add_session(Session::default());
        let number = number(8, 5);
        let joins = |stage: &mut Stage, tables: &[&str]| {
            let bounded = |table: &&str| {
                let mut demands = request().demands;
                for claim in demands.iter_mut().flat_map(Demand::claims_mut) {
                    claim.location = Location::Memory(table_of_site(table));
                    claim.queue.most = Some(3);
                }
                demands
            };
            let order = AcquireRequest { demands: tables.iter().flat_map(bounded).collect(), ..request() };
            stage.site.prepare(&mut stage.local, launch, &order);
            stage.local.session_mut(launch).expect("a launch").place.line.leave();
            let place = |table: &&str| PlaceInTable {
                table: stage.local.ledger().store().table(&table_of_site(table)),
                classes: vec![Class { generation: 0, capacity: 3 }],
                longest: Duration::ZERO,
                wants: None,
            };
            let places: Vec<_> = tables.iter().map(place).collect();
            let line = PlaceInLine::again(Number(number), None, &places);
            stage.local.session_mut(launch).expect("a launch").place.line = line;
            stage.site.write_tickets(&mut stage.local, launch);
        };
        joins(&mut stage, &["seats"]);
        let (first, _) = stage.asks().expect("it joins");
        let own = stage.own_key(9);
        stage.sees(vec![(own, true)]);
        assert_eq!(stage.site.mirror.revision(), 9);
        joins(&mut stage, needs);
        let begins = &stage.local.session(launch).expect("a launch").place.begins;
        let lines: Vec<_> = begins.lines.iter().map(String::as_str).collect();
        assert_eq!((lines, begins.looked), (vec!["other", "seats"], (1, 8)));
        assert_eq!(stage.asks(), None, "it has no answer yet");
        stage.hears(Report::Done(first, Ok(done(10))));
        let key = Key::Ticket("other".to_owned(), number);
        assert!(!stage.site.own.is_in(launch, &key), "it is not proved yet");
        let name = stage.site.keys.name(&key);
        let puts = |of: &Operation| matches!(of, Operation::Put(key, _) if *key == name);
        let asked = iter::from_fn(|| stage.asks()).filter(|(_, asked)| asked.operations.iter().any(puts));
        let asked: Vec<_> = asked.collect();
        let [(later, proof)] = asked.as_slice() else { panic!("its ticket is written once") };
        assert_eq!(proof.operations.len(), needs.len());
        let since = Compare::UnchangedSince(stage.site.keys.line("other"), 8);
        assert!(proof.compares.contains(&since) && proof.compares.contains(&Compare::Absent(name)));
        // Its ticket in the first queue is there already. If it still needs that one, it comes under another
        // number.
        let holds = needs.len() == 1;
        stage.hears(Report::Done(*later, Ok(Done { holds, ..done(11) })));
        assert_eq!(stage.site.own.is_in(launch, &key), holds);
        let place = &stage.local.session(launch).expect("a launch").place;
        assert_eq!(place.line.number(), holds.then_some(Number(number)));
    }
}
