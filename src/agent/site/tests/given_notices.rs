//! Notices that this host leaves for its users about holders on another host, and what becomes of these.

use super::stage::{Stage, deleted, done, of_host, request, saved, slot};
use crate::{
    agent::{
        Event, Eviction, Session,
        site::{
            AgentId, Compare, Key, NoticeRecord, Operation, Reply, Report, SlotRecord, Value, record::bytes,
        },
        tests::take,
    },
    judge::terms::{Expiry, Hold, table_of_site},
    keeper::{
        Delivery, EvictionOutcome, Overdue, UnverifiedTarget,
        agent::message::{Answer, Granted, Refused, WaitState},
        memory,
    },
    sys::Signal,
};

/// A holder on another host, whose end root of this host has requested.
struct Scene {
    stage: Stage,
    launch: u64,
    holder: SlotRecord,
}

fn notice() -> Key {
    Key::Notice("seats".to_owned(), 1)
}

/// A time since 1970 that does not come during a test, in milliseconds.
const LATER: u64 = 1 << 42;

impl Scene {
    fn new() -> Self {
        Self::of(None)
    }

    /// The program of the holder has ended, if its slot lingers until then.
    fn of(lingers_until: Option<u64>) -> Self {
        let mut stage = Stage::open(|_| ());
        let (host, agent) = ("lab9".to_owned(), AgentId::default());
        let holder = SlotRecord { host, agent, uid: 1000, lingers_until, ..stage.record(&saved(&[1]), 1) };
        let there = stage.pair(&Key::Host("lab9".to_owned()), 9, of_host(&AgentId::default()));
        let held = stage.pair(&slot(1), 10, Value::Slot(holder.clone()).bytes());
        stage.sees(vec![(there, true), (held, true)]);
        let mut session = Session::default();
        session.on(Event::Evicts);
        let launch = stage.local.add_session(session);
        Self::gives_notice(&mut stage, launch);
        Self { stage, launch, holder }
    }

    /// The holder is overdue for a launch, which does not request its end.
    fn of_overdue() -> Self {
        let mut scene = Self::new();
        scene.stage.local.on(scene.launch, Event::Gone);
        scene.launch = scene.stage.local.add_session(Session::default());
        Self::gives_notice(&mut scene.stage, scene.launch);
        scene
    }

    /// The holder of slot 1, as it is to be ended.
    fn overdue(stage: &Stage) -> Overdue {
        let table = stage.table();
        let holders = table.holders(&table.occupancy());
        let overdue = memory::chosen(&holders).pop().or_else(|| memory::lingering(&holders).pop());
        overdue.expect("a holder")
    }

    /// A launch gives notice of the holder of slot 1.
    fn gives_notice(stage: &mut Stage, launch: u64) {
        let overdue = Self::overdue(stage);
        Self::gives_notice_of(stage, launch, overdue);
    }

    /// A launch gives notice of this holder.
    fn gives_notice_of(stage: &mut Stage, launch: u64, overdue: Overdue) {
        let (table, expiry) = (table_of_site("seats"), Expiry::AT_REQUEST);
        let eviction = Eviction { table, expiry, overdue: Vec::new() };
        stage.site.give_notice(&mut stage.local, launch, &eviction, &overdue);
        let session = stage.local.session(launch).expect("a launch");
        let other = Overdue { pid: i32::MAX, ..overdue.clone() };
        let given = [overdue, other].map(|of| session.has_given_notice_of(&of));
        assert_eq!(given, [true, false], "it is left once");
        assert!(stage.local.answers().is_empty());
    }

    /// The notice that root of this host leaves, with this reply.
    fn own(&self, reply: Option<Reply>) -> NoticeRecord {
        let (host, agent) = (self.stage.site.host.clone(), self.stage.site.agent.clone());
        NoticeRecord { host, agent, by: Some(0), holder: self.holder.clone(), reply }
    }

    /// What becomes of the holder when this notice is there. Its host is there or not, and this process has
    /// the slot.
    fn fate(&mut self, told: &NoticeRecord, is_there: bool, pid: Option<i32>) -> Option<EvictionOutcome> {
        let holder = pid.map(|pid| SlotRecord { pid, ..self.holder.clone() });
        self.fate_beside(told, is_there, holder)
    }

    /// The same if the slot is that of this holder.
    fn fate_beside(
        &mut self,
        told: &NoticeRecord,
        is_there: bool,
        holder: Option<SlotRecord>,
    ) -> Option<EvictionOutcome> {
        let mut changes = vec![(self.stage.pair(&notice(), 11, bytes(told)), true)];
        if !is_there {
            changes.push((self.stage.pair(&Key::Host("lab9".to_owned()), 12, Vec::new()), false));
        }
        let value = holder.map(|holder| Value::Slot(holder).bytes());
        let is_held = value.is_some();
        changes.push((self.stage.pair(&slot(1), 13, value.unwrap_or_default()), is_held));
        self.stage.sees(changes);
        self.stage.local.answers().into_iter().find_map(|answer| match answer {
            Answer::Expired(expired) => expired.told().map(|(_, fate)| fate),
            _ => None,
        })
    }
}

/// A notice names the holder and the user who requests its end, requires that the holder still has the slot,
/// and is deleted with the request.
#[test]
fn a_notice_exists_while_its_holder_has_the_slot_and_its_launch_wants_it() {
    let mut scene = Scene::new();
    scene.stage.site.reconcile(&mut scene.stage.local);
    let (number, asked) = scene.stage.asks().expect("a notice");
    let record = bytes(&scene.own(None));
    let keys = &scene.stage.site.keys;
    let conditions = [
        Compare::ChangedAt(keys.name(&Key::Host(scene.stage.site.host.clone())), 8),
        Compare::ChangedAt(keys.name(&slot(1)), 10),
        Compare::ChangedAt(keys.name(&notice()), 0),
    ];
    assert_eq!(asked.compares, conditions);
    assert_eq!(asked.operations, [Operation::Put(keys.name(&notice()), record.clone())]);
    scene.stage.hears(Report::Done(number, Ok(done(11))));
    let written = scene.stage.pair(&notice(), 11, record);
    scene.stage.sees(vec![(written.clone(), true)]);
    assert_eq!(scene.stage.asks(), None);
    scene.stage.local.on(scene.launch, Event::Freed);
    assert!(scene.stage.local.answers().is_empty(), "nothing is known of the holder yet");
    scene.stage.local.session_mut(scene.launch).expect("a launch").on(Event::Gone);
    assert!(scene.stage.local.answers().is_empty());
    scene.stage.sees(vec![(written, true)]);
    let asked = scene.stage.asks().map(|(_, asked)| asked);
    assert_eq!(asked, Some(scene.stage.kept(8, &[deleted(notice(), 11)])));
}

/// A notice is over with the request for which it was left: when its launch has slots, is refused, or asks
/// for something else.
#[test]
fn a_notice_is_deleted_when_its_launch_wants_it_no_more() {
    let ends: [fn() -> Event; 4] = [
        || {
            let (slots, without) = (Vec::new(), Vec::new());
            let granted = Granted { slots, without, hold: Hold::Process, has_waited: false, joined: None };
            Event::Granted(None, granted, None)
        },
        || Event::Refused(Answer::Failed("it is only a test".to_owned())),
        || Event::Asks(take(), Vec::new()),
        || Event::Evicts,
    ];
    for (index, end) in ends.into_iter().enumerate() {
        let mut scene = Scene::new();
        let written = scene.stage.pair(&notice(), 11, bytes(&scene.own(None)));
        scene.stage.sees(vec![(written.clone(), true)]);
        assert_eq!(scene.stage.asks(), None, "{index}: it is wanted");
        scene.stage.local.on(scene.launch, end());
        drop(scene.stage.local.answers());
        scene.stage.sees(vec![(written, true)]);
        let asked = scene.stage.asks().map(|(_, asked)| asked);
        assert_eq!(asked, Some(scene.stage.kept(8, &[deleted(notice(), 11)])), "{index}");
    }
}

/// After a restore a holder is missing until its host has put it back. So no message is about it, and no
/// notice.
#[test]
fn a_holder_that_is_missing_after_a_restore_has_not_left() {
    let mut scene = Scene::new();
    let (id, there) = (
        scene.stage.id(5, "one"),
        scene.stage.pair(&Key::Host("lab9".to_owned()), 9, of_host(&AgentId::default())),
    );
    scene.stage.reads_of(2, "two", 20, vec![id, there]);
    assert!(scene.stage.local.answers().is_empty());
    // Its key is written once more when all slots are there.
    scene.stage.registers(21);
    scene.stage.registers(22);
    assert_eq!(scene.stage.asks(), None);
    let id = scene.stage.id(23, "two");
    scene.stage.sees(vec![(id, true)]);
    let answers = scene.stage.local.answers();
    assert!(matches!(answers.as_slice(), [Answer::Expired(_)]), "the tables are complete");
}

/// A holder was ended if its host announced a signal and is there without it. A host that is gone has ended
/// no holder.
#[test]
fn a_holder_of_another_host_was_ended_as_its_host_has_announced() {
    let ended = EvictionOutcome::Ended(Signal::SIGINT, Delivery::Full);
    let unseen = EvictionOutcome::NotProved(UnverifiedTarget::OutOfSight);
    let (same, other) = (saved(&[1]).pid, i32::MAX);
    for (reply, is_there, pid, fate) in [
        (Some(Reply::Ending(2)), true, None, Some(ended)),
        (Some(Reply::Ending(2)), true, Some(other), Some(ended)),
        (Some(Reply::Ending(2)), true, Some(same), None),
        (Some(Reply::Ending(2)), false, None, Some(EvictionOutcome::HadLeft)),
        (None, true, None, Some(EvictionOutcome::HadLeft)),
        (None, true, Some(other), Some(EvictionOutcome::HadLeft)),
        (Some(Reply::NotOverdue), true, Some(same), Some(EvictionOutcome::NotOverdueThere)),
        (Some(Reply::NotPermitted), true, Some(same), Some(EvictionOutcome::NotPermitted)),
        (Some(Reply::OutOfSight), true, Some(same), Some(unseen)),
        (Some(Reply::Survived), true, Some(same), Some(EvictionOutcome::Survived)),
    ] {
        let mut scene = Scene::new();
        let told = scene.own(reply);
        assert_eq!(scene.fate(&told, is_there, pid), fate);
        let checks: Vec<u64> = fate.map(|_| scene.launch).into_iter().collect();
        assert_eq!(scene.stage.local.looks_again(), checks);
    }
}

/// A reply counts if it is about this holder, by a host that is there, and at the request of a user who may
/// end the holder. A notice that the holder is overdue is another question.
#[test]
fn a_reply_to_another_notice_does_not_count() {
    for (host, by, ago, counts) in [
        (None, Some(0), 0, true),
        (Some("lab9"), Some(0), 0, true),
        (Some("lab9"), Some(1000), 0, true),
        (Some("lab9"), None, 0, false),
        (Some("lab8"), Some(0), 0, false),
        (None, Some(0), 1, false),
    ] {
        let mut scene = Scene::new();
        let own = scene.own(Some(Reply::NotPermitted));
        let holder = SlotRecord { start: scene.holder.start - ago, ..scene.holder.clone() };
        let told = match host {
            Some(host) => {
                NoticeRecord { host: host.to_owned(), agent: AgentId::default(), by, holder, ..own }
            }
            None => NoticeRecord { by, holder, ..own },
        };
        let pid = scene.holder.pid;
        let fate = scene.fate(&told, true, Some(pid));
        assert_eq!(
            fate == Some(EvictionOutcome::NotPermitted),
            counts,
            "{} {} {ago}",
            host.is_some(),
            by.is_some()
        );
    }
}

/// A holder whose program has ended was ended as announced, although its slot stays taken. A slot that stayed
/// taken was freed if it is free now.
#[test]
fn a_slot_that_lingers_has_no_program_any_more() {
    let mut scene = Scene::new();
    let lingers = SlotRecord { lingers_until: Some(LATER), ..scene.holder.clone() };
    let told = scene.own(Some(Reply::Ending(2)));
    let ended = EvictionOutcome::Ended(Signal::SIGINT, Delivery::Full);
    assert_eq!(scene.fate_beside(&told, true, Some(lingers)), Some(ended));
    for (pid, fate) in [(None, EvictionOutcome::Freed), (Some(i32::MAX), EvictionOutcome::HadLeft)] {
        let mut scene = Scene::of(Some(LATER));
        let told = scene.own(None);
        assert_eq!(scene.fate(&told, true, pid), Some(fate));
    }
}

/// A launch that waits in a queue waits on if its holder is not overdue there: that may change. It hears
/// what is final.
#[test]
fn a_launch_in_a_queue_waits_for_a_holder_that_is_not_overdue_yet() {
    for (reply, fate) in
        [(Reply::NotOverdue, None), (Reply::NotPermitted, Some(EvictionOutcome::NotPermitted))]
    {
        let mut scene = Scene::new();
        let refused = Refused { obstacles: Vec::new(), tables: Vec::new(), has_waited: true };
        scene.stage.local.on(scene.launch, Event::WaitsOn(request(), WaitState { refused, ahead: 0 }));
        drop(scene.stage.local.answers());
        let (told, pid) = (scene.own(Some(reply)), scene.holder.pid);
        assert_eq!(scene.fate(&told, true, Some(pid)), fate);
    }
}

/// A notice that a holder is overdue has a reply of its own. If a user requests the end of the same holder,
/// the notice is that of the user.
#[test]
fn a_request_of_a_user_comes_before_a_notice_that_a_holder_is_overdue() {
    let mut scene = Scene::of_overdue();
    let (told, pid) = (scene.own(Some(Reply::NotPermitted)), scene.holder.pid);
    let told = NoticeRecord { by: None, ..told };
    assert_eq!(scene.fate(&told, true, Some(pid)), Some(EvictionOutcome::NotPermitted));
    let mut scene = Scene::new();
    let launch = scene.stage.local.add_session(Session::default());
    Scene::gives_notice(&mut scene.stage, launch);
    let wanted = scene.stage.site.wanted_notices(&scene.stage.local);
    assert_eq!(wanted.get(&notice()), Some(&Value::Notice(scene.own(None))));
}

/// A notice is withdrawn while the end of the holder would be in vain. It stays if the holder is not overdue
/// by its own host, which looks again.
#[test]
fn a_notice_is_withdrawn_while_the_end_of_its_holder_would_be_in_vain() {
    let mut scene = Scene::of_overdue();
    let overdue = Scene::overdue(&scene.stage);
    for rests in [false, true, false] {
        let session = scene.stage.local.session_mut(scene.launch).expect("a launch");
        assert!(session.is_ending_for_it(&overdue));
        session.let_rest_except(Some(&overdue).filter(|_| !rests).into_iter());
        let is_given = scene.stage.site.wanted_notices(&scene.stage.local).contains_key(&notice());
        assert_eq!(is_given, !rests);
    }
    let refused = Refused { obstacles: Vec::new(), tables: Vec::new(), has_waited: true };
    scene.stage.local.on(scene.launch, Event::WaitsOn(request(), WaitState { refused, ahead: 0 }));
    drop(scene.stage.local.answers());
    let told = NoticeRecord { by: None, ..scene.own(Some(Reply::NotOverdue)) };
    let pid = scene.holder.pid;
    assert_eq!(scene.fate(&told, true, Some(pid)), None);
    let session = scene.stage.local.session_mut(scene.launch).expect("a launch");
    assert!(!session.is_ending_for_it(&overdue));
    session.let_rest_except(std::iter::empty());
    assert!(scene.stage.site.wanted_notices(&scene.stage.local).contains_key(&notice()));
}

/// No notice is given of a holder that is not the one to be ended any more: its program has ended since, or
/// the slot is one that this host has released itself.
#[test]
fn no_notice_is_given_of_another_holder() {
    for (is_own, lingers_until) in [(false, None), (false, Some(LATER)), (true, None)] {
        let Scene { mut stage, holder, .. } = Scene::new();
        let overdue = Scene::overdue(&stage);
        let agent = if is_own { stage.site.agent.clone() } else { holder.agent.clone() };
        let record = SlotRecord { agent, lingers_until, ..holder };
        let held = stage.pair(&slot(1), 11, Value::Slot(record).bytes());
        stage.sees(vec![(held, true)]);
        // The first launch hears what has become of its holder.
        drop(stage.local.answers());
        let launch = stage.local.add_session(Session::default());
        Scene::gives_notice_of(&mut stage, launch, overdue);
        let is_given = stage.site.wanted_notices(&stage.local).contains_key(&notice());
        assert_eq!(is_given, !is_own && lingers_until.is_none());
    }
}

/// A notice stays as it is with its reply. A user's request that is over is replaced by the notice that the
/// holder is overdue, if a launch needs that.
#[test]
fn a_notice_is_replaced_when_the_request_for_it_is_over() {
    let ending = Some(Reply::Ending(2));
    for (is_request, by, is_of_other, stays) in [
        (true, Some(0), false, true),
        (true, Some(0), true, true),
        (false, None, false, true),
        (false, Some(0), true, true),
        (false, Some(0), false, false),
    ] {
        let mut scene = if is_request { Scene::new() } else { Scene::of_overdue() };
        let mut told = NoticeRecord { by, ..scene.own(ending) };
        if is_of_other {
            (told.host, told.agent) = ("lab9".to_owned(), AgentId::default());
        }
        let pid = scene.holder.pid;
        assert_eq!(scene.fate(&told, true, Some(pid)), None, "it is not over");
        let wanted = if stays { told } else { NoticeRecord { by: None, ..scene.own(None) } };
        let notices = scene.stage.site.wanted_notices(&scene.stage.local);
        assert_eq!(notices.get(&notice()), Some(&Value::Notice(wanted)));
    }
}
