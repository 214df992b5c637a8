//! What the site makes of the reports of its threads.

use std::{
    sync::{atomic::Ordering, mpsc::channel},
    time::{Duration, Instant},
};

use super::stage::{Stage, done, host, of_host, saved, settings, slot};
use crate::{
    agent::{
        ledger::state::State,
        site::{
            AgentId, ClusterRecord, Command, Compare, Done, Key, Operation, Presence, Report, Transaction,
            Value, access,
            etcd::{EtcdError, Inventory, Pair, Snapshot},
            record::bytes,
        },
    },
    policy::SiteSettings,
    sys::process,
};

/// The key of the host may be in the backup from which an etcd was restored, and its slots may not. So no
/// other etcd than that of the mirror confirms the host, however its key came there.
#[test]
fn an_etcd_that_was_not_read_confirms_nothing() {
    let (mut local, mut site, reports, _directories) = host(|_| ());
    let now = process::since_boot().expect("a clock");
    let seconds = |seconds| now + Duration::from_secs(seconds);
    let mut confirmed_after = |report: Report| {
        reports.send(report).expect("it is heard");
        site.hear(&mut local);
        site.presence.confirmed()
    };
    let confirmed = |sent, generation| Report::Confirmed { revision: 1, generation, sent: seconds(sent) };
    assert_eq!(confirmed_after(confirmed(1, 1)), None, "nothing was read yet");
    let read = Snapshot { revision: 7, generation: 1, cluster: "one".to_owned(), pairs: Vec::new() };
    assert_eq!(confirmed_after(Report::Fresh(read)), None);
    assert_eq!(confirmed_after(confirmed(2, 1)), Some(seconds(2)));
    assert_eq!(confirmed_after(confirmed(3, 2)), Some(seconds(2)), "another etcd");
    let (sent, revision) = (seconds(4), 11);
    assert_eq!(confirmed_after(Report::Registered { revision, generation: 2, sent }), Some(seconds(2)));
    assert_eq!(confirmed_after(Report::Twin { agent: None, sent, generation: 2 }), Some(seconds(2)));
    assert_eq!(confirmed_after(confirmed(5, 1)), Some(seconds(5)));
    // Whichever agent has written the key: while it exists, no host is considered dead.
    let (sent, generation) = (seconds(6), 1);
    assert_eq!(confirmed_after(Report::Twin { agent: None, sent, generation }), Some(seconds(6)));
}

/// An agent that has just started does not know whether its slots are there until it has read all keys. Its
/// key may be written before that: then it is read again at once, and counts if no slot is missing. If it was
/// never confirmed, they may be missing in the same etcd, too.
#[test]
fn a_host_that_has_read_nothing_yet_is_not_confirmed() {
    for (cluster, is_there, is_confirmed) in
        [("one", true, true), ("one", false, false), ("two", false, false)]
    {
        let mut stage = Stage::new(|state| state.write(1, &saved(&[1])).expect("there is room"));
        let commands = stage.site.presence.recorded();
        stage.writes_its_key(6);
        assert_eq!((stage.site.presence.registration(), stage.site.presence.confirmed()), (Some(6), None));
        assert_eq!(stage.local.ledger().state().confirmation(), None, "nothing is saved");
        let record = Value::Slot(stage.record(&saved(&[1]), 0)).bytes();
        let held = is_there.then(|| stage.pair(&slot(1), 5, record));
        let id = stage.id(5, "one");
        stage.reads_of(0, cluster, 7, held.into_iter().chain([id]).collect());
        assert!(commands.try_iter().any(|command| command == Command::Look));
        let sent = Duration::from_secs(2);
        stage.hears(Report::Confirmed { revision: 1, generation: 0, sent });
        let confirmed = stage.site.presence.confirmed();
        assert_eq!(confirmed, Some(sent).filter(|_| is_confirmed), "{cluster} {is_there}");
    }
}

/// A backup that is restored under the same token has the id of the etcd. Nothing is granted from then on,
/// not only when the doubt is written. A later revision of the id comes from an agent that has noticed.
#[test]
fn an_id_that_nobody_has_written_since_a_restore_names_nothing() {
    for (before, after, is_named) in [(5, 5, false), (5, 3, false), (5, 8, true)] {
        let (mut local, mut site, reports, _directories) = host(|_| ());
        let key = site.keys.name(&Key::Cluster);
        let mut is_named_after = |generation: u64, at: i64| {
            let value = bytes(&ClusterRecord { cluster: "one".to_owned() });
            let pairs = vec![Pair { key: key.clone(), value, revision: at, lease: 0 }];
            let read = Snapshot { revision: 9, generation, cluster: "one".to_owned(), pairs };
            reports.send(Report::Fresh(read)).expect("it is heard");
            site.hear(&mut local);
            site.is_named()
        };
        assert!(is_named_after(1, before));
        assert_eq!(is_named_after(2, after), is_named, "{before} {after}");
    }
}

/// The keys of a site may be deleted, and its etcd is the same as before. Nothing is granted from then on:
/// the id is in doubt, also if an agent that was started since then has written it again. The time without
/// grants begins again if it is deleted once more.
#[test]
fn an_id_that_was_deleted_is_in_doubt() {
    let doubt = |stage: &Stage, at: i64| {
        let key = stage.site.keys.name(&Key::Cluster);
        let id = bytes(&ClusterRecord { cluster: String::new() });
        Transaction {
            compares: vec![Compare::ChangedAt(key.clone(), at)],
            operations: vec![Operation::Put(key, id)],
        }
    };
    for (case, (again, doubted)) in
        [(None, Some(0)), (Some("one"), Some(10)), (Some(""), None)].into_iter().enumerate()
    {
        for way in ["read", "together", "apart"] {
            let mut stage = Stage::open(|_| ());
            assert!(stage.site.is_open());
            let (gone, again) = (stage.id(9, ""), again.map(|cluster| stage.id(10, cluster)));
            match (way, again) {
                ("read", again) => {
                    let own = stage.own_key(8);
                    stage.reads_of(1, "one", 11, again.into_iter().chain([own]).collect());
                }
                ("apart", Some(again)) => {
                    stage.sees(vec![(gone, false)]);
                    assert!(!stage.site.is_open());
                    let (number, asked) = stage.asks().expect("the doubt is written");
                    assert_eq!(asked, doubt(&stage, 0));
                    let another_was_first = Done { holds: false, ..done(10) };
                    stage.hears_together(vec![
                        Report::Done(number, Ok(another_was_first)),
                        Report::Changes(vec![(again, true)]),
                    ]);
                }
                (_, again) => {
                    let again = again.map(|id| (id, true));
                    stage.sees([(gone, false)].into_iter().chain(again).collect());
                }
            }
            assert!(!stage.site.is_open(), "{way} {case}");
            let asked = stage.asks();
            let written = asked.as_ref().map(|(_, asked)| asked.clone());
            assert_eq!(written, doubted.map(|at| doubt(&stage, at)), "{way} {case}");
            if let Some((number, _)) = asked {
                let id = stage.id(12, "");
                stage.hears_together(vec![
                    Report::Done(number, Ok(done(12))),
                    Report::Changes(vec![(id, true)]),
                ]);
            }
            assert!(stage.site.is_held_back().is_some(), "{way} {case}");
            assert_eq!(stage.asks(), None, "{way} {case}");
            let gone = stage.id(13, "");
            stage.sees(vec![(gone, false)]);
            let written = stage.asks().map(|(_, asked)| asked);
            assert_eq!(written, Some(doubt(&stage, 0)), "{way} {case}");
        }
    }
}

/// The id that follows a doubt is that of a complete site.
#[test]
fn an_id_that_follows_a_doubt_names_the_etcd() {
    let mut stage = Stage::open(|_| ());
    let [gone, doubt, id] = [(9, ""), (10, ""), (11, "one")].map(|(at, cluster)| stage.id(at, cluster));
    stage.sees(vec![(gone, false)]);
    let (number, _) = stage.asks().expect("the doubt is written");
    stage.hears_together(vec![Report::Done(number, Ok(done(10))), Report::Changes(vec![(doubt, true)])]);
    assert!(!stage.site.is_named() && stage.site.is_held_back().is_some());
    stage.sees(vec![(id, true)]);
    assert!(stage.site.is_named() && stage.site.is_held_back().is_none());
}

/// A host that hears late of deletions and what followed judges each in its turn: what was complete again is
/// complete, and what was deleted once more is not.
#[test]
fn each_change_of_the_id_counts() {
    let mut stage = Stage::open(|_| ());
    let [gone, doubt, id] = [(9, ""), (10, ""), (20, "one")].map(|(at, cluster)| stage.id(at, cluster));
    stage.sees(vec![(gone, false), (doubt, true), (id, true)]);
    assert!(stage.site.is_named() && stage.site.is_held_back().is_none());
    assert_eq!(stage.asks(), None);
    let [gone, doubt] = [(21, ""), (22, "")].map(|(at, cluster)| stage.id(at, cluster));
    stage.sees(vec![(gone, false), (doubt, true)]);
    assert!(stage.site.is_held_back().is_some());
    // Another agent was started after the second deletion.
    let [gone, id] = [(23, ""), (24, "one")].map(|(at, cluster)| stage.id(at, cluster));
    stage.sees(vec![(gone, false), (id, true)]);
    assert!(!stage.site.is_named() && stage.site.is_held_back().is_some());
}

/// While the key of a host cannot be written, a read of it protects its slots as long as no other host can
/// have considered this one dead. So does a read of the key that another agent has written. What is wrong
/// stays wrong.
#[test]
fn a_key_that_is_kept_confirms_its_host_until_the_deadline() {
    let mut stage = Stage::open(|_| ());
    let now = process::since_boot().expect("a clock");
    for (ago, is_in_time, is_twin) in
        [(30, true, false), (200, false, false), (30, true, true), (200, false, true)]
    {
        let found = |generation| {
            let (agent, sent) = (None, now);
            if is_twin { Report::Twin { agent, sent, generation } } else { Report::Kept { sent, generation } }
        };
        let directory = tempfile::tempdir().expect("a directory");
        let state = State::open(directory.path()).expect("it is new");
        let contact = now.saturating_sub(Duration::from_secs(ago));
        let commands = channel().0;
        stage.site.presence = Presence::new(Duration::from_secs(60), Duration::ZERO, commands, &state);
        stage.site.presence.on_registered(8, contact);
        stage.site.presence.confirm(contact, &state);
        stage.hears(Report::Unreached(EtcdError::replaced()));
        let since = stage.site.presence.trouble().expect("it is wrong").1;
        stage.hears(found(2));
        assert_eq!(stage.site.presence.confirmed(), Some(contact), "another etcd");
        stage.hears(found(1));
        assert_eq!(stage.site.presence.confirmed(), Some(if is_in_time { now } else { contact }), "{ago} s");
        assert_eq!(stage.site.presence.trouble().map(|(_, since)| *since), Some(since), "{ago} s");
    }
}

/// A host whose slots were deleted together with all keys is not confirmed before they are there again.
#[test]
fn a_host_whose_slots_were_deleted_is_not_confirmed() {
    let mut stage = Stage::new(|state| state.write(1, &saved(&[1])).expect("there is room"));
    let record = Value::Slot(stage.record(&saved(&[1]), 0)).bytes();
    let held = stage.pair(&slot(1), 6, record.clone());
    stage.reads(7, vec![held]);
    stage.registers(8);
    let first = stage.site.presence.confirmed().expect("nothing is missing");
    let (id, gone) = (stage.id(9, ""), stage.pair(&slot(1), 9, Vec::new()));
    stage.sees(vec![(id, false), (gone, false)]);
    let sent = first + Duration::from_secs(1);
    let confirmed = |stage: &mut Stage| {
        stage.hears(Report::Confirmed { revision: 1, generation: 1, sent });
        stage.site.presence.confirmed()
    };
    assert_eq!(confirmed(&mut stage), Some(first));
    let again = stage.pair(&slot(1), 10, record);
    stage.sees(vec![(again, true)]);
    assert_eq!(confirmed(&mut stage), Some(sent));
}

/// A host whose slots were deleted may hear of nothing before it reads all keys again, with the doubt that an
/// agent on another host has written meanwhile. It is not confirmed before its slots are there again.
#[test]
fn a_host_that_missed_the_deletion_of_its_slots_is_not_confirmed() {
    for (at, cluster) in [(10, ""), (11, "one")] {
        let mut stage = Stage::new(|state| state.write(1, &saved(&[1])).expect("there is room"));
        let record = Value::Slot(stage.record(&saved(&[1]), 0)).bytes();
        let held = stage.pair(&slot(1), 6, record.clone());
        stage.reads(7, vec![held]);
        stage.registers(8);
        let first = stage.site.presence.confirmed().expect("nothing is missing");
        let (own, id) = (stage.own_key(8), stage.id(at, cluster));
        stage.reads_of(1, "one", 12, vec![own, id]);
        let sent = first + Duration::from_secs(1);
        let confirmed = |stage: &mut Stage| {
            stage.hears(Report::Confirmed { revision: 12, generation: 1, sent });
            stage.site.presence.confirmed()
        };
        assert_eq!(confirmed(&mut stage), Some(first), "{at}");
        let again = stage.pair(&slot(1), 13, record);
        stage.sees(vec![(again, true)]);
        assert_eq!(confirmed(&mut stage), Some(sent), "{at}");
    }
}

/// An answer of another etcd, and an inventory that differs, make the host read everything again. Nothing
/// else does.
#[test]
fn a_mirror_that_may_be_wrong_is_read_again() {
    let mut stage = Stage::new(|_| ());
    stage.reads(7, Vec::new());
    let id = stage.site.keys.name(&Key::Cluster);
    let confirmed =
        |generation: u64| Report::Confirmed { revision: 1, generation, sent: Duration::from_secs(1) };
    let listed = |revision: i64, at: i64| {
        let keys = [(id.clone(), at)].into();
        Report::Listed(Inventory { revision, generation: 1, count: 1, since: 0, keys })
    };
    let reports = [
        (confirmed(1), false),
        (confirmed(2), true),
        (listed(7, 5), false),
        (listed(7, 6), true),
        // Nothing is known of a revision that was not received yet.
        (listed(8, 6), false),
    ];
    for (number, (report, doubts)) in reports.into_iter().enumerate() {
        stage.site.is_doubted.store(false, Ordering::Relaxed);
        stage.hears(report);
        assert_eq!(stage.site.is_doubted.load(Ordering::Relaxed), doubts, "report {number}");
    }
}

/// A mirror that is read again from the same etcd is no other etcd: slots are granted as before.
#[test]
fn an_etcd_that_is_read_twice_stays_the_same() {
    let mut stage = Stage::open(|_| ());
    assert!(stage.site.is_open());
    let own = stage.own_key(8);
    stage.reads(9, vec![own]);
    assert!(stage.site.is_open() && stage.site.is_held_back().is_none());
}

/// In another etcd a host is absent from then on: it may have read its key there since.
#[test]
fn an_absence_begins_again_in_another_etcd() {
    let mut stage = Stage::new(|_| ());
    let key = Key::Written("lab9".to_owned());
    let written = stage.pair(&key, 3, of_host(&AgentId::default()));
    stage.reads(7, vec![written.clone()]);
    let since = |stage: &Stage| stage.site.absences.since("lab9").expect("it is absent");
    let first = since(&stage);
    stage.reads(8, vec![written.clone()]);
    assert_eq!(since(&stage), first, "it is the same absence");
    let now = process::since_boot().expect("a clock");
    stage.reads_of(2, "two", 9, vec![written]);
    assert!(since(&stage) >= now);
}

/// A host that was there for a moment is absent from then on.
#[test]
fn an_absence_begins_again_when_a_host_was_there() {
    let mut stage = Stage::new(|_| ());
    let (key, written) = (Key::Host("lab9".to_owned()), Key::Written("lab9".to_owned()));
    let pair = |stage: &Stage, key: &Key, at| stage.pair(key, at, of_host(&AgentId::default()));
    let first = pair(&stage, &written, 3);
    stage.reads(7, vec![first]);
    assert!(stage.site.absences.since("lab9").is_some());
    let now = process::since_boot().expect("a clock");
    let [again, there, gone] = [(&written, 8), (&key, 8), (&key, 9)].map(|(key, at)| pair(&stage, key, at));
    stage.sees(vec![(again, true), (there, true), (gone, false)]);
    assert!(stage.site.absences.since("lab9").is_some_and(|since| since >= now));
}

/// A site that is lost once more is another loss: programs get TERM again before KILL.
#[test]
fn what_was_ended_for_a_loss_is_forgotten_when_the_site_is_back() {
    let mut stage = Stage::new(|_| ());
    stage.reads(7, Vec::new());
    stage.site.ended.insert(1, None);
    let confirmed = |generation: u64| {
        let sent = Duration::from_secs(1);
        Report::Confirmed { revision: 1, generation, sent }
    };
    stage.hears(confirmed(2));
    assert!(stage.site.ended.contains_key(&1), "another etcd answers");
    stage.hears(confirmed(1));
    assert!(!stage.site.ended.contains_key(&1));
}

/// As soon as a host hears that its key is gone, or that another agent has written it, it looks at the key.
#[test]
fn a_host_looks_at_its_key_when_that_is_not_its_own_any_more() {
    let mut stage = Stage::new(|_| ());
    let (commands, heard) = channel();
    let state = stage.local.ledger().state();
    stage.site.presence = Presence::new(Duration::from_secs(60), Duration::ZERO, commands, state);
    let key = Key::Host(stage.site.host.clone());
    let own = stage.own_key(6);
    stage.reads(7, vec![own]);
    let other = AgentId::default();
    let by_another = stage.pair(&key, 8, of_host(&other));
    let (deleted, again) = (stage.pair(&key, 9, Vec::new()), stage.own_key(10));
    let another_host = stage.pair(&Key::Host("lab9".to_owned()), 11, of_host(&other));
    for (pair, is_there, looks) in
        [(by_another, true, true), (deleted, false, true), (again, true, false), (another_host, true, false)]
    {
        let revision = pair.revision;
        stage.sees(vec![(pair, is_there)]);
        let commands: Vec<Command> = heard.try_iter().collect();
        assert_eq!(commands.contains(&Command::Look), looks, "{revision}");
    }
}

/// The report on the site counts slots without a readable value, names the first of them, and says since when
/// there are some.
#[test]
fn slots_that_no_host_can_read_are_counted() {
    let mut stage = Stage::new(|_| ());
    let begun = Instant::now();
    let pairs = [1, 2].map(|number| stage.pair(&slot(number), 6, b"a mistake".to_vec()));
    stage.reads(7, pairs.into());
    let name = |stage: &Stage, number| stage.site.keys.name(&slot(number));
    let told = |stage: &mut Stage| {
        stage.site.look_for_unreadable_slots();
        stage.site.about().trouble.map(|trouble| trouble.text)
    };
    let first = name(&stage, 1);
    let two = format!(
        "2 slots have no readable holder: the values of {first} and others were not written by an agent"
    );
    assert_eq!(told(&mut stage), Some(two));
    let since = stage.site.unreadable.0;
    assert!(since >= begun);
    let gone = stage.pair(&slot(1), 8, Vec::new());
    stage.sees(vec![(gone, false)]);
    let second = name(&stage, 2);
    let one = format!("a slot has no readable holder: the value of {second} was not written by an agent");
    assert_eq!(told(&mut stage), Some(one));
    assert_eq!(stage.site.unreadable.0, since, "there are some since then");
    let gone = stage.pair(&slot(2), 9, Vec::new());
    stage.sees(vec![(gone, false)]);
    assert_eq!(told(&mut stage), None);
}

/// The report on the site counts the leases that were lost.
#[test]
fn the_report_counts_lost_leases() {
    let mut stage = Stage::new(|_| ());
    stage.hears(Report::LeaseLost);
    assert_eq!(stage.site.about().leases_lost, 1);
}

/// The report on the site says how far the mirror is behind, as soon as that is known.
#[test]
fn the_report_says_how_far_the_mirror_is_behind() {
    let mut stage = Stage::new(|_| ());
    stage.reads(7, Vec::new());
    assert_eq!(stage.site.about().lag, None);
    let sent = process::since_boot().expect("a clock");
    stage.hears(Report::Compared { sent, revision: 7 });
    assert!(stage.site.about().lag.is_some());
}

/// The report on the site names up to 64 slots without a readable value.
#[test]
fn many_slots_that_no_host_can_read_are_not_all_named() {
    let mut stage = Stage::new(|_| ());
    let mut pairs: Vec<Pair> =
        (1..=65).map(|number| stage.pair(&slot(number), 6, b"a mistake".to_vec())).collect();
    let readable = Value::Slot(stage.record(&saved(&[66]), 1)).bytes();
    pairs.push(stage.pair(&slot(66), 6, readable));
    stage.reads(7, pairs);
    stage.site.look_for_unreadable_slots();
    let about = stage.site.about();
    assert_eq!(about.unreadable.len(), 64);
    assert!(about.trouble.is_some_and(|trouble| trouble.text.starts_with("65 slots ")));
}

/// A member that hangs delays a launch by a second and a half at most, and by no more than a quarter of the
/// ttl.
#[test]
fn one_member_has_little_time_for_an_answer() {
    for (ttl, longest) in [(3000, 750), (6000, 1500), (60_000, 1500)] {
        let settings = SiteSettings { ttl: Duration::from_millis(ttl), ..settings() };
        assert_eq!(access(&settings).patience, Duration::from_millis(longest), "{ttl} ms");
    }
}
