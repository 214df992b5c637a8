//! How holders are ended: at the request of a user, and for launches.

use std::{
    process::{Child, Command},
    thread,
};

use super::*;
use crate::{
    agent::{
        Eviction, PROCESS, RunningEviction,
        tests::{ending, overdue},
    },
    judge::terms::{ExpireKill, Expiry, Pace},
    keeper::{
        Delivery, EvictionOutcome, Holder, MOST_CHOSEN, Overdue,
        agent::message::{Chosen, Evict, Which},
    },
    policy::SiteSettings,
    sys::{Signal, own_uid},
};

/// Another process, until this is dropped.
struct Idle(Child);

impl Idle {
    fn begin() -> Self {
        let idle = Self(Command::new("sleep").arg("600").spawn().expect("sleep(1)"));
        // The parent continues before Linux shows anything of the new program.
        while process::is_privileged_by_exec(idle.pid()).is_none() {
            thread::yield_now();
        }
        idle
    }

    fn pid(&self) -> i32 {
        self.0.id().try_into().expect("a PID")
    }

    /// It holds these slots of a table, as holders are saved.
    fn holds(&self, of: SavedSlots) -> SavedHolding {
        let start = Process::find(self.pid()).expect("it runs").started;
        let (uid, taken, tables) = (own_uid(), Some(0), vec![of]);
        SavedHolding { start, uid, taken, tables, ..saved(self.pid(), Hold::Process) }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
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

/// Only the holders are ended that are chosen: by slot, process and time.
#[test]
fn only_chosen_holders_are_ended() {
    let holder = ended(HOUR);
    let since = at_millis(holder.since).expect("a moment");
    for (slot, pid, since, left) in [
        (1, holder.pid, since, 1),
        (3, holder.pid, since, 2),
        (1, holder.pid + 1, since, 2),
        (1, holder.pid, since + Duration::from_millis(1), 2),
    ] {
        let (mut service, _directories) = service_after(|state| {
            state.write(7, &holder).expect("there is room");
            let tables = vec![SavedSlots { slots: vec![2], ..holder.tables[0].clone() }];
            state.write(8, &SavedHolding { tables, ..holder.clone() }).expect("there is room");
        });
        calls(&mut service, 0);
        let (table, which) = ("seats".to_owned(), Which::These(vec![Chosen { slot, pid, since }]));
        service.evict_for(1, &Evict { table, which, grace: HOUR, kill: ExpireKill::Process });
        assert_eq!(service.local.ledger.lingering().len(), left, "{slot} {pid}");
        let answers = service.local.answers().into_iter();
        let fates: Vec<_> = answers
            .filter_map(|answer| match answer {
                Answer::Expired(expired) => expired.told().map(|(_, fate)| fate),
                _ => None,
            })
            .collect();
        assert_eq!(fates, if left == 1 { vec![EvictionOutcome::Freed] } else { Vec::new() });
    }
}

/// A request to end holders is answered also if there are none, and refused if it names too many.
#[test]
fn a_request_to_end_nobody_is_answered() {
    let (mut service, _directories) = service();
    calls(&mut service, 0);
    let one = Chosen { slot: 1, pid: 1, since: at_millis(0).expect("a moment") };
    for (count, is_declined) in [(MOST_CHOSEN, false), (MOST_CHOSEN + 1, true)] {
        let (table, which) = ("seats".to_owned(), Which::These(vec![one.clone(); count]));
        service.evict_for(1, &Evict { table, which, grace: HOUR, kill: ExpireKill::Process });
        let is_checked = matches!(service.local.work.next(), Some(Next::Look(1)));
        service.local.on(1, Event::Freed);
        let is_failure = |answer: &Answer| matches!(answer, Answer::Failed(_));
        assert_eq!((service.local.answers().iter().any(is_failure), is_checked), (is_declined, !is_declined));
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

/// The request is answered when the holding is gone that was to be ended for it. A launch for which another
/// holder is still being ended is not checked yet.
#[test]
fn a_request_is_checked_when_its_last_holder_has_gone() {
    for (is_last, count) in [(true, 1), (false, 2)] {
        let idle = Idle::begin();
        let (mut service, _directories) = service_after(|state| {
            state.write(7, &idle.holds(slots("seats", vec![1]))).expect("there is room");
        });
        let known = Overdue { holder: saved(2, Hold::Process).holder("seats"), ..overdue(2, None) };
        let mut later = ending(7, overdue(idle.pid(), None));
        later.due = Instant::now() + HOUR;
        let session = calls(&mut service, 0);
        session.on(Event::Evicts);
        session.evictions = vec![ending(5, known), later];
        session.evictions.truncate(count);
        service.local.continue_evictions(1);
        let is_told = |answer: &Answer| matches!(answer, Answer::Expired(one) if one.holder.pid == 2);
        assert!(service.local.answers().iter().any(is_told));
        service.local.on_timer(1);
        assert_eq!(matches!(service.local.work.next(), Some(Next::Look(1))), is_last);
        // The same as it happens in the loop.
        let session = service.local.sessions.get_mut(&1).expect("it is connected");
        session.evictions.push(ending(5, overdue(2, None)));
        service.run_effects();
        let is_told = |service: &Service| {
            service.local.sessions.get(&1).is_some_and(|session| session.evictions.len() < count)
        };
        assert!(does_until(&mut service, is_told));
        assert_eq!(matches!(service.local.work.next(), Some(Next::Look(1))), is_last);
    }
}

/// Of a group that shares a slot, the member is ended that was chosen.
#[test]
fn the_chosen_member_of_a_group_is_ended() {
    let [first, second] = [(); 2].map(|()| Idle::begin());
    let (mut service, _directories) = service_after(|state| {
        for (number, idle) in [(7, &first), (8, &second)] {
            let of = SavedSlots { group: Some("ann".to_owned()), ..slots("seats", vec![1]) };
            state.write(number, &idle.holds(of)).expect("there is room");
        }
    });
    assert_eq!(service.holding(), 2);
    let table = service.local.ledger.store().table("seats");
    assert_eq!((table.used(), table.groups().len()), (1, 1));
    calls(&mut service, 0).on(Event::Evicts);
    for (idle, holding) in [(&second, 8), (&first, 7)] {
        let expiry = Expiry::AT_REQUEST;
        let eviction = Eviction { table: "seats".to_owned(), expiry, overdue: Vec::new() };
        service.local.evict(1, &eviction, &overdue(idle.pid(), None));
        let session = service.local.sessions.get(&1).expect("it is connected");
        assert_eq!(session.evictions.last().map(|eviction| eviction.holding), Some(holding));
        assert!(session.tried.contains(&idle.pid()));
    }
}

/// Of the holders of a table, the one is ended that has the slot.
#[test]
fn the_holder_of_the_slot_is_ended() {
    let [first, second] = [(); 2].map(|()| Idle::begin());
    let (mut service, _directories) = service_after(|state| {
        for (number, idle, slot) in [(7, &first, 1), (8, &second, 2)] {
            state.write(number, &idle.holds(slots("seats", vec![slot]))).expect("there is room");
        }
    });
    calls(&mut service, 0).on(Event::Evicts);
    let holder = Holder { slots: (2, 2), ..overdue(second.pid(), None).holder };
    let eviction = Eviction { table: "seats".to_owned(), expiry: Expiry::AT_REQUEST, overdue: Vec::new() };
    service.local.evict(1, &eviction, &Overdue { holder, ..overdue(second.pid(), None) });
    let session = service.local.sessions.get(&1).expect("it is connected");
    assert_eq!(session.evictions.iter().map(|eviction| eviction.holding).collect::<Vec<_>>(), [8]);
}

/// With the last nested launch, all holders are free whose slots are used one below the other. Those that
/// only have other slots of a table, or use them, are free when the agent sees their own end.
#[test]
fn the_end_of_a_nested_launch_frees_the_slots_above_it_alone() {
    let idles = [(); 5].map(|()| Idle::begin());
    let [top, middle, bottom, beside, below] = &idles;
    let of = |table: &str, slot, is_shared| SavedSlots { is_shared, ..slots(table, vec![slot]) };
    let both = vec![of("middle", 1, false), of("top", 1, true)];
    let (mut service, _directories) = service_after(|state| {
        for (number, holder) in [
            (1, top.holds(of("top", 1, false))),
            (2, SavedHolding { tables: both, ..middle.holds(of("middle", 1, false)) }),
            (3, bottom.holds(of("middle", 1, true))),
            (4, beside.holds(of("middle", 2, false))),
            (5, below.holds(of("middle", 2, true))),
        ] {
            state.write(number, &holder).expect("there is room");
        }
    });
    let left = |service: &Service| -> Vec<u64> { service.local.ledger.holdings().keys().copied().collect() };
    assert_eq!(left(&service), [1, 2, 3, 4, 5]);
    drop(idles);
    for number in [1, 2, 4] {
        assert!(!service.local.ledger.on_end(number, false), "{number} is used below");
    }
    assert!(service.local.ledger.on_end(3, false));
    service.release(3, true);
    assert_eq!(left(&service), [4, 5]);
    assert!(service.local.ledger.on_end(5, false));
    service.release(5, true);
    assert_eq!(left(&service), [0; 0]);
}

/// A nested launch uses the slot of a holder while the site proves its own. If it gets nothing, and the
/// holder has ended or given back its slot meanwhile, used or not, that slot is free for others.
#[test]
fn a_slot_is_free_when_nothing_was_granted_below_its_ended_holder() {
    let site = SiteSettings {
        endpoints: vec!["http://127.0.0.1:1".to_owned()],
        prefix: "/test/".to_owned(),
        ca: None,
        certificate: None,
        key: None,
        user: None,
        password_file: None,
        ttl: Duration::from_secs(60),
        margin: Duration::from_secs(5),
    };
    let settings = AgentFile { site: Some(site), ..AgentFile::default() };
    for gives_back in [None, Some(true), Some(false)] {
        let idle = Idle::begin();
        let (mut service, _directories) = service_of(&settings, |state| {
            state.write(7, &idle.holds(slots("seats", vec![1]))).expect("there is room");
        });
        let table = service.local.ledger.store().table("seats");
        let below = table.share_again(&[1]).expect("the holder has it");
        let _alive = if let Some(has_run) = gives_back {
            service.release(7, has_run);
            Some(idle)
        } else {
            drop(idle);
            assert!(!service.local.ledger.on_end(7, false), "it is used below");
            None
        };
        service.on_bell();
        assert_eq!((service.holding(), table.used()), (1, 1));
        while service.local.work.next().is_some() {}
        drop(below);
        service.on_bell();
        assert_eq!((service.holding(), table.used()), (0, 0));
        assert!(matches!(service.local.work.next(), Some(Next::Serve(table)) if table == "seats"));
    }
}

/// A holder that runs as another user than the one who has the slots gets no signal. The request is checked
/// when that is known.
#[test]
fn a_holder_that_may_not_be_ended_is_left_alone() {
    let idle = Idle::begin();
    let (mut service, _directories) = service_after(|state| {
        let holder = SavedHolding { uid: own_uid() + 1, ..idle.holds(slots("seats", vec![1])) };
        state.write(7, &holder).expect("there is room");
    });
    calls(&mut service, 0);
    let (table, which) = ("seats".to_owned(), Which::Overdue(Duration::ZERO));
    service.evict_for(1, &Evict { table, which, grace: HOUR, kill: ExpireKill::Process });
    service.run_effects();
    hears(&service, BELL);
    while service.local.work.next().is_some() {}
    service.on_bell();
    assert_eq!(service.local.sessions.get(&1).map(|session| session.evictions.len()), Some(0));
    assert!(matches!(service.local.work.next(), Some(Next::Look(1))));
    assert_eq!(service.holding(), 1);
}

/// The agent hears this, sooner or later.
fn hears(service: &Service, number: u64) {
    let longest = Duration::from_secs(30);
    let until = Instant::now() + longest;
    while !service.poller.wait(Some(longest)).expect("a poller").contains(&number) {
        assert!(Instant::now() < until, "it hears nothing");
    }
}

/// A holder that is overdue gets a signal. The agent hears that it was sent, and of the end of the holder:
/// then its slot is free, and the request is checked.
#[test]
fn an_overdue_holder_is_ended() {
    let mut idle = Idle::begin();
    let (mut service, _directories) = service_after(|state| {
        state.write(7, &idle.holds(slots("seats", vec![1]))).expect("there is room");
    });
    calls(&mut service, own_uid());
    let ends = |service: &mut Service, after| {
        let (table, which) = ("seats".to_owned(), Which::Overdue(after));
        service.evict_for(1, &Evict { table, which, grace: HOUR, kill: ExpireKill::Process });
        service.local.sessions.get(&1).map(|session| session.evictions.len())
    };
    assert_eq!(ends(&mut service, Duration::MAX), Some(0), "it is not overdue");
    assert_eq!(ends(&mut service, Duration::ZERO), Some(1));
    let is_sending = |service: &Service| service.local.sessions.get(&1).is_some_and(Session::is_sending);
    assert!(is_sending(&service));
    service.run_effects();
    hears(&service, BELL);
    service.on_bell();
    assert!(!is_sending(&service), "the signal is sent");
    // It may ignore that one.
    idle.0.kill().expect("it is ours");
    hears(&service, 7 * KINDS + PROCESS);
    assert!(service.local.ledger.on_end(7, false));
    while service.local.work.next().is_some() {}
    service.release(7, true);
    let fate = service.local.answers().into_iter().find_map(|answer| match answer {
        Answer::Expired(expired) => expired.told().map(|(_, fate)| fate),
        _ => None,
    });
    assert_eq!(fate, Some(EvictionOutcome::Ended(Signal::SIGINT, Delivery::Full)));
    assert!(matches!(service.local.work.next(), Some(Next::Serve(table)) if table == "seats"));
    assert!(matches!(service.local.work.next(), Some(Next::Look(1))));
}

/// A holder with slots of two tables is ended once for a launch that needs both. It gets no signal while its
/// end would be in vain. A launch that does not wait is refused then.
#[test]
fn a_holder_is_ended_once_and_not_in_vain() {
    for waits in [true, false] {
        let idle = Idle::begin();
        let (mut service, _directories) = service_after(|state| {
            let tables = ["seats", "spare"].map(|table| slots(table, vec![1])).to_vec();
            let holder = SavedHolding { tables, ..idle.holds(slots("seats", vec![1])) };
            state.write(7, &holder).expect("there is room");
        });
        calls(&mut service, 1000);
        let pace = Pace { pause: None, expiry: Some(Expiry::AT_REQUEST) };
        let wait = if waits { Wait::Forever } else { Wait::For(Duration::ZERO) };
        let request = |tables: &[&str]| {
            let claim = |table: &&str| Claim {
                amount: Amount::plain(Slots::Number(1), 1),
                pace,
                wait: Setting { bound: None, default: Some(wait) },
                ..claim(table)
            };
            needs(tables.iter().map(claim).map(Demand::One).collect())
        };
        let state_of = |service: &Service| {
            let session = service.local.sessions.get(&1).expect("it is connected");
            let of = |eviction: &RunningEviction| (eviction.holding, eviction.rests, eviction.next_signal());
            session.evictions.iter().map(of).collect::<Vec<_>>()
        };
        service.decide(1, request(&["seats", "spare"]), true);
        assert_eq!(state_of(&service), [(7, false, Some(Signal::SIGINT))]);
        let other = service.local.ledger.store().table("other").take(&[1]).expect("it is free");
        service.decide(1, request(&["seats", "spare", "other"]), false);
        service.local.continue_evictions(1);
        let rests = (7, true, Some(Signal::SIGINT));
        assert_eq!(state_of(&service), waits.then_some(rests).into_iter().collect::<Vec<_>>());
        let is_refused = |answer: &Answer| matches!(answer, Answer::Refused(_));
        assert_eq!(service.local.answers().iter().any(is_refused), !waits);
        if waits {
            drop(other);
            service.decide(1, request(&["seats", "spare", "other"]), false);
            service.local.continue_evictions(1);
            assert_eq!(state_of(&service), [(7, false, Some(Signal::SIGTERM))], "SIGINT is sent");
        }
    }
}

/// A process with two holdings is ended in both: what keeps the slots of one may outlive it.
#[test]
fn each_holding_of_a_process_is_ended() {
    let idle = Idle::begin();
    let (mut service, _directories) = service_after(|state| {
        for (number, table) in [(7, "seats"), (8, "spare")] {
            state.write(number, &idle.holds(slots(table, vec![1]))).expect("there is room");
        }
    });
    calls(&mut service, 1000);
    let pace = Pace { pause: None, expiry: Some(Expiry::AT_REQUEST) };
    let overdue = |table| Claim { amount: Amount::plain(Slots::Number(1), 1), pace, ..claim(table) };
    service.decide(1, needs(["seats", "spare"].map(|table| Demand::One(overdue(table))).into()), true);
    let session = service.local.sessions.get(&1).expect("it is connected");
    assert_eq!(session.evictions.iter().map(|eviction| eviction.holding).collect::<Vec<_>>(), [7, 8]);
}

/// A user may end holders of the same user alone, and none that the request itself runs below. The others
/// are reported.
#[test]
fn a_user_ends_only_holders_of_the_same_user() {
    let of = |pid, uid| {
        let holder = SavedHolding { uid, ..saved(pid, Hold::Process) }.holder("seats");
        Overdue { holder, ..overdue(pid, None) }
    };
    let all = || vec![of(own_pid(), 1000), of(-2, 1000), of(-3, 1001)];
    for (uid, expected) in [(1000, &[-2][..]), (0, &[-2, -3])] {
        let (mut service, _directories) = service();
        let session = calls(&mut service, uid);
        session.on(Event::Evicts);
        let may_end = session.may_end("seats", all());
        assert_eq!(may_end.iter().map(|overdue| overdue.pid).collect::<Vec<_>>(), expected);
        service.local.on(1, Event::Freed);
        let answers = service.local.answers();
        let is_told = |answer: &Answer| matches!(answer, Answer::Expired(one) if one.holder.pid == -3);
        assert_eq!((answers.iter().any(is_told), answers.last()), (uid != 0, Some(&Answer::Done(uid == 0))));
    }
}

/// Overdue holders are ended for a launch that needs their slots. It does not wait in a queue meanwhile, and
/// is not refused.
#[test]
fn an_overdue_holder_is_ended_for_a_launch() {
    for after in [Duration::ZERO, Duration::MAX] {
        let idle = Idle::begin();
        let (mut service, _directories) = service_after(|state| {
            state.write(7, &idle.holds(slots("seats", vec![1]))).expect("there is room");
        });
        calls(&mut service, 1000);
        let pace = Pace { pause: None, expiry: Some(Expiry { after, ..Expiry::AT_REQUEST }) };
        let claim = Claim { amount: Amount::plain(Slots::Number(1), 1), pace, ..claim("seats") };
        service.decide(1, needs(vec![Demand::One(claim)]), true);
        let session = service.local.sessions.get(&1).expect("it is connected");
        let is_ended = after.is_zero();
        assert_eq!((session.evictions.len(), session.is_ending()), (usize::from(is_ended), is_ended));
        let is_refused = |answer: &Answer| matches!(answer, Answer::Refused(_));
        assert_eq!(service.local.answers().iter().any(is_refused), !is_ended);
    }
}
