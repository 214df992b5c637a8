//! Until when the other hosts cannot consider this one dead.

use std::{
    fs, hint,
    os::unix::process::ExitStatusExt,
    process::{Child, Command},
    sync::mpsc::channel,
    time::{Duration, Instant},
};

use super::stage::{Stage, deleted, done, of_host, request, saved, slot};
use crate::{
    agent::{
        Session,
        ledger::state::{SavedHolding, SavedSilence, State},
        site::{
            AgentId, Change, Command as Asked, Key, Operation, Report, SlotRecord, Value, etcd::EtcdError,
            presence::Presence,
        },
    },
    judge::terms::OnLost,
    sys::{PidFd, Process, Signal, process},
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn now() -> Duration {
    process::since_boot().expect("a clock")
}

fn presence(state: &State, ttl: u64) -> Presence {
    Presence::new(seconds(ttl), Duration::ZERO, channel().0, state)
}

/// The others know the ttl of the agent before this one. They may know that of this one, too, as soon as it
/// has begun to write.
#[test]
fn until_the_others_have_answered_the_shorter_time_counts() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    for (before, ttl) in [(10, 300), (60, 15), (8, 8)] {
        let confirmed = now().saturating_sub(seconds(5));
        let silence = SavedSilence { ttl: seconds(before), margin: Duration::ZERO };
        state.write_silence(&silence).expect("there is room");
        state.write_confirmation(confirmed).expect("there is room");
        let (first, mut presence, last) = (now(), presence(&state, ttl), now());
        let known = confirmed + seconds(before);
        let deadline = presence.deadline().expect("it was confirmed");
        assert!(deadline >= known.min(first + seconds(ttl)), "too soon: {before} {ttl}");
        assert!(deadline <= known.min(last + seconds(ttl)), "too late: {before} {ttl}");
        let sent = now();
        presence.on_registered(7, sent);
        presence.confirm(sent, &state);
        assert_eq!(presence.deadline(), Some(sent + seconds(ttl)));
        assert_eq!(
            (state.silence().map(|of| of.ttl), state.confirmation()),
            (Some(seconds(ttl)), Some(sent))
        );
    }
}

/// How long this host may be silent is saved too, also if an earlier agent has saved only when it was
/// confirmed.
#[test]
fn the_time_of_silence_is_saved_with_the_first_confirmation() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    state.write_confirmation(now()).expect("there is room");
    let mut presence = presence(&state, 40);
    presence.on_registered(7, now());
    presence.confirm(now(), &state);
    assert_eq!(state.silence().map(|of| of.ttl), Some(seconds(40)));
}

/// A host of the same name may have read its key a third of the ttl after this one has written it. So its
/// programs are over a ttl later.
#[test]
fn a_host_is_alone_by_its_name_when_the_programs_of_another_one_are_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    for (ttl, ago, is_alone) in [(30, 32, false), (30, 41, true), (300, 390, false), (3000, 3900, false)] {
        let mut presence = presence(&state, ttl);
        assert!(!presence.is_alone_by_its_name(), "it has written nothing");
        presence.on_registered(7, now().saturating_sub(seconds(ago)));
        assert_eq!(presence.is_alone_by_its_name(), is_alone, "{ago} s ago");
        presence.on_twin("another host has its name".to_owned(), seconds(ttl));
        assert!(!presence.is_alone_by_its_name());
    }
}

/// What an earlier agent of this host has left, whose state is lost, is deleted when no other host can have
/// its name.
#[test]
fn keys_of_an_earlier_agent_go_when_the_host_is_alone_by_its_name() {
    for (ago, is_alone) in [(0, false), (41, true)] {
        let directory = tempfile::tempdir().expect("a directory");
        let state = State::open(directory.path()).expect("it is new");
        let mut stage = Stage::open(|_| ());
        stage.site.presence = presence(&state, 30);
        stage.site.presence.on_registered(8, now().saturating_sub(seconds(ago)));
        let record = SlotRecord { agent: AgentId::default(), ..stage.record(&saved(&[1]), 0) };
        let of_another = SlotRecord { host: "lab9".to_owned(), ..record.clone() };
        let left = [(1, record), (2, of_another)]
            .map(|(number, record)| (stage.pair(&slot(number), 9, Value::Slot(record).bytes()), true));
        stage.sees(left.into());
        let asked = stage.asks().map(|(_, asked)| asked);
        assert_eq!(asked, is_alone.then(|| stage.kept(8, &[deleted(slot(1), 9)])), "{ago} s ago");
    }
}

/// This host has moved its program to slot 2, as the next transaction says, and hears of that.
fn moves(stage: &mut Stage, registration: i64) {
    let value = Value::Slot(stage.record(&saved(&[1]), 0));
    let (number, asked) = stage.asks().expect("it gets another slot");
    let put = Change { key: slot(2), at: 0, value: Some(value.clone()) };
    assert_eq!(asked, stage.kept(registration, &[put]));
    let revision = registration + 5;
    stage.hears(Report::Done(number, Ok(done(revision))));
    assert!(!stage.site.is_open(), "the others may have heard of it, and this host has not");
    let moved = stage.pair(&slot(2), revision, value.bytes());
    stage.sees(vec![(moved, true)]);
}

/// Slot 1 as a launch on another host has it.
fn of_another(stage: &Stage) -> Vec<u8> {
    let (host, agent) = ("lab9".to_owned(), AgentId::default());
    Value::Slot(SlotRecord { host, agent, ..stage.record(&saved(&[1]), 0) }).bytes()
}

/// Before a host that was considered dead writes its key again, its slots may go to launches on other hosts.
/// It grants slots only when it has heard of that, and its programs have slots again. Until then it says so,
/// and not that etcd cannot be reached. A host that writes its key in time grants slots at once, even if it
/// hears late of changes.
#[test]
fn a_host_that_was_considered_dead_first_counts_its_programs() {
    for (ago, was_dead) in [(30, false), (200, true)] {
        let mut stage = Stage::open(|state| state.write(1, &saved(&[1])).expect("there is room"));
        let (number, _) = stage.asks().expect("the slot is put back");
        stage.hears(Report::Done(number, Ok(done(9))));
        let record = Value::Slot(stage.record(&saved(&[1]), 0)).bytes();
        let held = stage.pair(&slot(1), 9, record);
        stage.sees(vec![(held, true)]);
        let directory = tempfile::tempdir().expect("a directory");
        let state = State::open(directory.path()).expect("it is new");
        let contact = now().saturating_sub(seconds(ago));
        stage.site.presence = presence(&state, 60);
        stage.site.presence.on_registered(8, contact);
        stage.site.presence.confirm(contact, &state);
        let commands = stage.site.presence.recorded();
        let launch = stage.local.add_session(Session::default());
        stage.site.rest_without(&mut stage.local, launch, request());
        stage.hears(Report::Unreached(EtcdError::replaced()));
        assert!(stage.site.why().starts_with("the site has not been reached for "), "{ago} s ago");
        stage.writes_its_key(20);
        assert!(stage.site.presence.trouble().is_none(), "{ago} s ago: etcd works");
        assert_eq!(stage.site.why().contains(" considered "), was_dead, "{ago} s ago");
        assert_eq!(stage.site.is_open(), !was_dead, "{ago} s ago");
        assert_eq!(stage.site.resting.contains_key(&launch), was_dead, "{ago} s ago");
        if !was_dead {
            continue;
        }
        let value = of_another(&stage);
        let (taken, own) = (stage.pair(&slot(1), 15, value), stage.own_key(20));
        stage.sees(vec![(taken, true), (own, true)]);
        assert_eq!((stage.site.is_open(), commands.try_iter().count()), (false, 0));
        moves(&mut stage, 20);
        assert!(stage.site.resting.contains_key(&launch) && !stage.site.is_open());
        assert_eq!(commands.try_iter().next(), Some(Asked::Look), "a read has to confirm it");
        stage.hears(Report::Confirmed { revision: 1, generation: 1, sent: now() });
        assert_eq!((stage.site.is_open(), stage.table().used()), (true, 2));
    }
}

/// The same for an agent that starts when its host was considered dead, or the first one that keeps its
/// tables together with other hosts: a read that finds its key confirms nothing before its programs have
/// slots.
#[test]
fn an_agent_that_starts_too_late_first_counts_its_programs() {
    for (ago, was_dead) in [(Some(30), false), (Some(200), true), (None, true)] {
        let mut stage = Stage::new(|state| {
            state.write(1, &saved(&[1])).expect("there is room");
            let Some(ago) = ago else { return };
            let silence = SavedSilence { ttl: seconds(60), margin: Duration::ZERO };
            state.write_silence(&silence).expect("there is room");
            state.write_confirmation(now().saturating_sub(seconds(ago))).expect("there is room");
        });
        stage.writes_its_key(6);
        let value = of_another(&stage);
        let taken = stage.pair(&slot(1), 5, value);
        stage.reads(7, vec![taken]);
        stage.hears(Report::Confirmed { revision: 1, generation: 1, sent: now() });
        assert_eq!(stage.site.is_open(), !was_dead, "{} s ago", ago.unwrap_or_default());
        if was_dead {
            stage.hears(Report::Tick);
            moves(&mut stage, 6);
            stage.hears(Report::Confirmed { revision: 1, generation: 1, sent: now() });
            assert_eq!((stage.site.is_open(), stage.table().used()), (true, 2));
        }
    }
}

/// A host that comes to the site for the first time grants slots as soon as it has heard of its own key, and
/// a read has found it.
#[test]
fn a_host_that_is_new_opens_with_one_more_read() {
    let mut stage = Stage::new(|_| ());
    let commands = stage.site.presence.recorded();
    stage.reads(7, Vec::new());
    stage.writes_its_key(8);
    assert!(!stage.site.is_open());
    assert_eq!(commands.try_iter().count(), 0, "it has not heard of its key");
    let own = stage.own_key(8);
    stage.sees(vec![(own, true)]);
    assert_eq!(commands.try_iter().collect::<Vec<_>>(), [Asked::Look]);
    stage.hears(Report::Confirmed { revision: 8, generation: 1, sent: now() });
    assert!(stage.site.is_open());
}

/// Programs get TERM when a quarter of the ttl is left, and KILL when a tenth is left. The margin, for clocks
/// that run unequally, comes on top of that.
#[test]
fn programs_are_ended_some_time_before_the_deadline() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    let mut presence = Presence::new(seconds(60), seconds(8), channel().0, &state);
    assert_eq!(presence.ends_at(), None, "no other host knows it");
    let sent = now();
    presence.on_registered(7, sent);
    presence.confirm(sent, &state);
    let deadline = sent + seconds(60 - 8);
    assert_eq!(presence.deadline(), Some(deadline));
    assert_eq!(
        presence.ends_at(),
        Some([15, 6].map(|before| deadline.saturating_sub(seconds(before))).into())
    );
}

/// A program with a slot of the site.
fn program(state: &State, number: u64, on_lost: OnLost) -> Child {
    let program = Command::new("sleep").arg("600").spawn().expect("sleep(1)");
    let pid = program.id().try_into().expect("a PID");
    let start = Process::find(pid).expect("it runs").started;
    let mut holding = SavedHolding { pid, start, ..saved(&[number]) };
    holding.tables[0].on_lost = Some(on_lost);
    state.write(number, &holding).expect("there is room");
    program
}

/// When the site is lost, a program that must stop gets TERM, and KILL when the time for that has come. Other
/// programs go on.
#[test]
fn only_programs_that_must_stop_are_ended_with_the_site() {
    for (ago, signal) in [(100, None), (165, Some(Signal::SIGTERM)), (190, Some(Signal::SIGKILL))] {
        let mut programs = Vec::new();
        let mut stage = Stage::new(|state| {
            programs.extend([program(state, 1, OnLost::Stop), program(state, 2, OnLost::Keep)]);
        });
        let directory = tempfile::tempdir().expect("a directory");
        let state = State::open(directory.path()).expect("it is new");
        stage.site.presence = presence(&state, 200);
        stage.site.presence.confirm(now().saturating_sub(seconds(ago)), &state);
        stage.hears(Report::Tick);
        assert_eq!(stage.site.ended.contains_key(&1), signal.is_some(), "it gets the signal once");
        // The first signal that ends a program is the one that counts.
        let ends = programs.iter_mut().map(|program| {
            let open = PidFd::open(program.id().try_into().expect("a PID")).expect("it is a child");
            open.signal(Signal::SIGUSR1).expect("it is ours");
            program.wait().expect("it is a child").signal()
        });
        let ended_by = |signal: Signal| Some(signal as i32);
        let first = ended_by(signal.unwrap_or(Signal::SIGUSR1));
        assert_eq!(ends.collect::<Vec<_>>(), [first, ended_by(Signal::SIGUSR1)], "{ago} s ago");
    }
}

/// This host reads that another one has slot 1.
fn loses_slot_1(stage: &mut Stage, generation: u64, cluster: &str) {
    let pairs = vec![
        stage.id(5, "one"),
        stage.pair(&Key::Host("lab9".to_owned()), 4, of_host(&AgentId::default())),
        stage.pair(&slot(1), 6, of_another(stage)),
    ];
    stage.reads_of(generation, cluster, 7, pairs);
    stage.registers(8);
}

/// A program that must not run without its slot is killed when another host has that slot. While the tables
/// may be incomplete it continues with another slot: the other program may have ended before the restore.
#[test]
fn a_program_without_its_slot_is_killed_except_after_a_restore() {
    for (generation, cluster, signal) in [(1, "one", Signal::SIGKILL), (2, "two", Signal::SIGUSR1)] {
        let mut programs = Vec::new();
        let mut stage = Stage::new(|state| {
            programs.extend([program(state, 1, OnLost::Stop), program(state, 2, OnLost::Stop)]);
        });
        stage.reads(6, Vec::new());
        loses_slot_1(&mut stage, generation, cluster);
        assert_eq!(stage.site.is_held_back().is_some(), generation == 2);
        // The first signal that ends a program is the one that counts. The other one has its slot.
        for (program, signal) in programs.iter_mut().zip([signal, Signal::SIGUSR1]) {
            let open = PidFd::open(program.id().try_into().expect("a PID")).expect("it is a child");
            open.signal(Signal::SIGUSR1).expect("it is ours");
            let ended_by = program.wait().expect("it is a child").signal();
            assert_eq!(ended_by, Some(signal as i32), "{cluster}");
        }
    }
}

/// A program that must stop may outlive KILL, as one of another user does that the agent may not end. If its
/// host was considered dead, it is counted then, so that the host grants slots again. Otherwise it does not
/// get another slot.
#[test]
fn a_program_that_outlives_kill_is_counted() {
    for (ago, is_counted) in [(30, false), (200, true)] {
        let mut programs = Vec::new();
        let mut stage = Stage::open(|state| programs.push(program(state, 1, OnLost::Stop)));
        let (number, _) = stage.asks().expect("the slot is put back");
        stage.hears(Report::Done(number, Ok(done(9))));
        let directory = tempfile::tempdir().expect("a directory");
        let state = State::open(directory.path()).expect("it is new");
        let contact = now().saturating_sub(seconds(ago));
        stage.site.presence = presence(&state, 60);
        stage.site.presence.on_registered(8, contact);
        stage.site.presence.confirm(contact, &state);
        stage.writes_its_key(20);
        let (taken, own) = (stage.pair(&slot(1), 15, of_another(&stage)), stage.own_key(20));
        stage.sees(vec![(taken, true), (own, true)]);
        assert!(stage.site.ended.contains_key(&1));
        assert_eq!(stage.asks(), None, "it is killed first");
        stage.site.looked = None;
        stage.hears(Report::Tick);
        let asked = stage.asks().map(|(_, asked)| asked.operations);
        let another = asked.is_some_and(|asked| {
            matches!(asked.first(), Some(Operation::Put(key, _)) if *key == stage.site.keys.name(&slot(2)))
        });
        assert_eq!(another, is_counted, "{ago} s ago");
        let ended_by = programs[0].wait().expect("it is a child").signal();
        assert_eq!(ended_by, Some(Signal::SIGKILL as i32));
    }
}

/// Messages are about another host of the same name while it may be there. The name may pass to a third one:
/// then they are about that one, and the name is disputed since the first report.
#[test]
fn another_host_of_the_same_name_is_told_of_while_it_may_be_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    let mut presence = presence(&state, 40);
    assert!(!presence.is_disputed());
    presence.on_twin("the first".to_owned(), Duration::ZERO);
    let first = now();
    while presence.is_disputed() {
        assert!(now() < first + seconds(60), "its time is over");
        hint::spin_loop();
    }
    let begun = Instant::now();
    presence.on_twin("the second".to_owned(), seconds(40));
    let told = |presence: &Presence| presence.twin().map(|(text, since)| (text.to_owned(), since));
    let second = told(&presence).expect("another one");
    assert!(second.0 == "the second" && second.1 >= begun);
    presence.on_twin("the third".to_owned(), seconds(40));
    assert_eq!(told(&presence), Some(("the third".to_owned(), second.1)));
}

/// Lost leases are counted from the start of the agent on.
#[test]
fn lost_leases_are_counted_from_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    let mut presence = presence(&state, 40);
    assert_eq!(presence.leases_lost(), 0);
    presence.lost_lease();
    assert_eq!(presence.leases_lost(), 1);
}

/// Slots are granted while this host has its name alone, and a read has found its key not too long ago. An
/// agent that is started again must know that, and how long the host may be silent, so both must be saved.
#[test]
fn slots_are_granted_while_no_program_would_have_to_be_ended() {
    for (ago, unsaved, is_certain) in [
        (10, None, true),
        (10, Some("confirmed.json"), false),
        (10, Some("silence.json"), false),
        (35, None, false),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let state = State::open(directory.path()).expect("it is new");
        if let Some(name) = unsaved {
            // No file can replace it.
            fs::create_dir(directory.path().join("site").join(name)).expect("it is new");
        }
        let mut presence = presence(&state, 40);
        assert!(!presence.is_certain(), "its key is not written");
        presence.on_registered(7, now());
        assert!(!presence.is_certain(), "no read has found its key");
        presence.note(EtcdError::replaced());
        presence.confirm(now().saturating_sub(seconds(ago)), &state);
        assert_eq!(presence.is_certain(), is_certain, "{ago} s ago");
        assert!(presence.trouble().is_none(), "etcd works");
        presence.on_twin("another host has its name".to_owned(), seconds(40));
        assert_eq!(presence.registration(), None, "its key is another's");
        presence.on_registered(8, now());
        assert!(!presence.is_certain(), "it is not alone");
    }
}

/// The log says once that this host will be considered dead: when half of the ttl is over, and something is
/// wrong.
#[test]
fn the_log_says_once_that_a_host_is_about_to_be_lost() {
    for (ago, is_told) in [(22, false), (35, true)] {
        let directory = tempfile::tempdir().expect("a directory");
        let state = State::open(directory.path()).expect("it is new");
        let mut presence = presence(&state, 60);
        presence.confirm(now().saturating_sub(seconds(ago)), &state);
        assert_eq!(presence.warning(), None, "nothing is wrong");
        presence.note(EtcdError::replaced());
        let told = presence.warning();
        assert_eq!(
            told,
            is_told.then(|| "after 60 s this host is considered dead".to_owned()),
            "{ago} s ago"
        );
        presence.note(EtcdError::replaced());
        assert_eq!(presence.warning(), None, "one warning is enough");
    }
}
