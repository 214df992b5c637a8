//! A launch as a state machine: what follows from its events.

use std::{
    iter,
    time::{Duration, Instant},
};

use super::{HOUR, ending, needs, overdue, take};
use crate::{
    acquire::{PlaceInLine, PlaceInTable},
    agent::{
        AWAY, AcquireRequest, Blocked, Caller, Change, Effect, Event, Session, Sessions,
        ledger::state::{SavedNumber, SavedPlace},
    },
    judge::terms::Hold,
    keeper::{
        Class, EvictionOutcome, Number, Store,
        agent::message::{Answer, Granted, Refused, WaitState},
    },
    sys::own_pid,
};

/// The connection of the launch.
const LAUNCH: u64 = 7;

/// A launch of this process.
struct Stage(Sessions);

impl Stage {
    fn new() -> Self {
        let mut sessions = Sessions::default();
        let caller = Caller { pid: own_pid(), uid: 1000, ..Caller::default() };
        sessions.insert(LAUNCH, Session::new(caller));
        Self(sessions)
    }

    fn session(&mut self) -> &mut Session {
        self.0.get_mut(&LAUNCH).expect("it is connected")
    }

    /// Something happens to it. Returns what follows.
    fn on(&mut self, event: Event) -> Vec<Effect> {
        self.session().on(event);
        self.effects()
    }

    fn effects(&mut self) -> Vec<Effect> {
        let changes = iter::from_fn(|| self.0.next_change()).map(|(_, change)| change);
        let effects = changes.filter_map(|change| match change {
            Change::Effect(effect) => Some(effect),
            Change::Load(_) => None,
        });
        effects.collect()
    }

    /// It asks, and the judges have its request. Returns the number of that.
    fn asks(&mut self) -> u64 {
        self.on(Event::Asks(take(), Vec::new()));
        self.on(Event::Accepted(None));
        self.session().case(LAUNCH).expect("it has asked").question
    }

    /// It waits in the queue, as judged, until the time of its claim is over.
    fn waits(&mut self, request: AcquireRequest, next: Option<Instant>) {
        self.asks();
        self.session().place.beaten = Some(Instant::now());
        self.on(Event::Blocked(request, blocked(next), true, true));
    }

    /// How many places it has in queues.
    fn places(&mut self) -> usize {
        self.session().load().places
    }
}

/// It waits in a queue until this moment.
fn blocked(next: Option<Instant>) -> Blocked {
    let refused = Refused { obstacles: Vec::new(), tables: Vec::new(), has_waited: false };
    Blocked { refused, waits: true, ahead: 0, next, evictions: Vec::new() }
}

fn granted() -> Granted {
    Granted { slots: Vec::new(), without: Vec::new(), hold: Hold::Process, has_waited: false, joined: None }
}

/// A place in the queue of a table.
fn place(store: &Store) -> PlaceInLine {
    let classes = vec![Class { generation: 0, capacity: 1 }];
    let (table, longest) = (store.table("seats"), Duration::ZERO);
    PlaceInLine::again(Number(1), None, &[PlaceInTable { table, classes, longest, wants: None }])
}

/// A moment so long ago that a launch of which nothing was heard since then does not respond.
fn long_ago() -> Option<Instant> {
    Instant::now().checked_sub(AWAY * 3 / 2)
}

fn judges(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Judge))
}

/// The last answer to a request to end holders: whether all of them have ended.
fn last_answer(effects: &[Effect]) -> Option<bool> {
    effects.iter().find_map(|effect| match effect {
        Effect::Answer(Answer::Done(have_ended), _) => Some(*have_ended),
        _ => None,
    })
}

/// A launch whose request is declined gives back the slots of an earlier request, and the agent keeps nothing
/// of the request.
#[test]
fn a_declined_request_leaves_neither_slots_nor_memory() {
    let mut stage = Stage::new();
    stage.on(Event::Asks(take(), vec![3]));
    assert!(stage.session().load().question > 0);
    let effects = stage.on(Event::Declined(Answer::Failed("too much".to_owned())));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::ReleaseUnused(3))));
    assert_eq!(stage.session().load().question, 0);
}

/// The judgement of an earlier request decides nothing.
#[test]
fn only_the_judgement_of_the_last_request_counts() {
    let mut stage = Stage::new();
    let [earlier, last] = [stage.asks(), stage.asks()];
    let mut decides = |question| {
        let effects = stage.on(Event::Judged(question, Ok(needs(Vec::new()))));
        effects.iter().any(|effect| matches!(effect, Effect::Decide(..)))
    };
    assert!(!decides(earlier));
    assert!(decides(last));
}

/// A waiting launch is checked when the time of its claim is over, or when it has been silent for too long,
/// whichever is first. One that has left the queue is not checked any more.
#[test]
fn a_waiting_launch_is_checked_at_the_first_of_its_times() {
    let now = Instant::now();
    for (next, is_first) in [(now, true), (now + HOUR, false)] {
        let mut stage = Stage::new();
        stage.waits(needs(Vec::new()), Some(next));
        let silent = stage.session().place.beaten.expect("it was heard") + AWAY;
        stage.effects();
        let first = if is_first { next } else { silent };
        assert_eq!(stage.0.next_timer(), Some((first, LAUNCH)));
        stage.on(Event::Leaves);
        assert_eq!(stage.0.next_timer(), None);
    }
}

/// A launch that was silent for too long does not respond, unless it waits for an answer, or has said
/// something that is not read yet. When it is heard, its time begins again.
#[test]
fn a_silent_launch_does_not_respond_until_it_is_heard() {
    let mut stage = Stage::new();
    stage.waits(needs(Vec::new()), None);
    let session = stage.session();
    let heard = session.place.beaten;
    assert!(!session.see_whether_away(|| false), "it was heard just now");
    assert_eq!(session.place.beaten, heard, "its time still runs");
    session.place.beaten = long_ago();
    assert!(session.falls_silent());
    session.place.is_owed = true;
    assert!(!session.falls_silent() && !session.see_whether_away(|| false), "it waits for an answer");
    session.place.is_owed = false;
    assert!(!session.see_whether_away(|| true), "it has said something");
    assert!(!session.falls_silent(), "unread input counts as heard now");
    session.place.beaten = long_ago();
    assert!(session.see_whether_away(|| false));
    assert!(!session.falls_silent(), "that is known already");
    stage.on(Event::Beats);
    stage.waits(needs(Vec::new()), None);
    let session = stage.session();
    session.place.beaten = long_ago();
    assert!(session.falls_silent(), "it was heard, and is silent again");
}

/// A launch is owed an answer from its request on, and from each heartbeat on. With the answer it has its
/// full time again.
#[test]
fn a_request_and_a_heartbeat_are_owed_an_answer() {
    let mut stage = Stage::new();
    stage.asks();
    let begun = stage.session().place.begun.expect("it has asked");
    assert!(stage.session().place.is_owed);
    stage.waits(needs(Vec::new()), None);
    assert!(!stage.session().place.is_owed);
    stage.session().place.beaten = long_ago();
    stage.on(Event::Beats);
    let beaten = stage.session().place.beaten.expect("it has beaten");
    assert!(beaten >= begun && stage.session().place.is_owed);
    stage.session().place.beaten = long_ago();
    stage.session().answer(Answer::Done(true), None);
    let beaten = stage.session().place.beaten.expect("it has its answer");
    assert!(beaten >= begun && !stage.session().place.is_owed);
}

/// A launch that begins to wait in a bounded queue of the site gets that answer when all hosts see it there.
/// Until then it waits for the site, since the first check.
#[test]
fn a_launch_that_begins_to_wait_is_told_so_when_all_hosts_see_it() {
    let mut stage = Stage::new();
    stage.asks();
    let is_told = |effects: &[Effect]| {
        effects.iter().any(|effect| matches!(effect, Effect::Answer(Answer::Waits(_), _)))
    };
    assert!(!is_told(&stage.on(Event::Blocked(needs(Vec::new()), blocked(None), true, false))));
    let since = stage.session().place.resting;
    assert!(since.is_some() && !stage.session().place.has_waited);
    // It is checked again, and does not ask for that.
    assert!(!is_told(&stage.on(Event::Blocked(needs(Vec::new()), blocked(None), false, false))));
    assert_eq!(stage.session().place.resting, since);
    stage.session().begins_to_wait();
    assert!(is_told(&stage.effects()));
    let place = &stage.session().place;
    assert!(place.has_waited && place.resting.is_none());
    stage.session().begins_to_wait();
    assert!(!is_told(&stage.effects()), "it has one answer");
    // The site is lost while it waits: it waits for its turn, and not for the site.
    stage.session().place.resting = since;
    let refused = blocked(None).refused;
    assert!(!is_told(&stage.on(Event::WaitsOn(needs(Vec::new()), WaitState { refused, ahead: 0 }))));
    let session = stage.session();
    assert!(session.is_queued() && session.place.resting.is_none());
    // It gets another number: what it found before is no answer any more.
    stage.on(Event::Blocked(needs(Vec::new()), blocked(None), true, false));
    assert!(stage.session().stop_waiting().is_some() && stage.session().is_proving());
    stage.session().begins_to_wait();
    assert!(!is_told(&stage.effects()));
}

/// After a standstill of the agent, a launch that responded before has its full time again. One that did not
/// respond is passed over as before.
#[test]
fn a_standstill_gives_time_to_launches_that_responded_before() {
    for was_away in [false, true] {
        let mut stage = Stage::new();
        stage.waits(needs(Vec::new()), None);
        let session = stage.session();
        (session.place.beaten, session.place.was_away) = (long_ago(), was_away);
        stage.0.on_stall();
        assert_eq!(stage.session().is_away(|| false), was_away);
    }
}

/// A launch loses its slots to another connection of its process only if these are the slots that the other
/// one takes up.
#[test]
fn only_slots_that_another_connection_takes_up_are_lost() {
    for (taken_up, is_left) in [(6, true), (5, false)] {
        let mut stage = Stage::new();
        stage.on(Event::Granted(Some(5), granted(), None));
        stage.on(Event::Superseded(vec![taken_up]));
        let effects = stage.on(Event::GivesBack(true));
        assert_eq!(effects.iter().any(|effect| matches!(effect, Effect::Release(5, true))), is_left);
    }
}

/// A launch that has asked again for its slots leaves the queue if another connection of its process takes up
/// these slots, and only then.
#[test]
fn only_a_launch_whose_slots_are_taken_up_leaves_the_queue() {
    let (mut stage, store) = (Stage::new(), Store::default());
    stage.on(Event::Asks(take(), vec![5, 4]));
    stage.session().place.line = place(&store);
    assert!(stage.session().gives_back(&[6, 5]) && !stage.session().gives_back(&[6]));
    stage.on(Event::Superseded(vec![6]));
    assert_eq!(stage.places(), 1);
    stage.on(Event::Superseded(vec![5]));
    assert_eq!(stage.places(), 0);
}

/// A request to end holders is answered when all of them are done with. The answer says whether all have
/// ended.
#[test]
fn a_request_to_end_holders_is_answered_after_the_last_of_them() {
    for (fate, have_ended) in [(EvictionOutcome::HadLeft, true), (EvictionOutcome::NotPermitted, false)] {
        let mut stage = Stage::new();
        stage.on(Event::Evicts);
        stage.session().evictions.push(ending(1, overdue(2, None)));
        assert_eq!(last_answer(&stage.on(Event::Freed)), None);
        stage.session().evictions.clear();
        stage.session().tell("seats", &overdue(2, None), fate);
        assert_eq!(last_answer(&stage.on(Event::Freed)), Some(have_ended));
    }
}

/// No holder is ended any more for a launch that has its slots, or is refused.
#[test]
fn a_launch_that_waits_no_more_ends_no_holder() {
    let ends: [fn() -> Event; 2] = [
        || Event::Granted(None, granted(), None),
        || Event::Refused(Answer::Failed("it is only a test".to_owned())),
    ];
    for end in ends {
        let mut stage = Stage::new();
        stage.waits(needs(Vec::new()), None);
        stage.session().evictions.push(ending(1, overdue(2, Some(Duration::ZERO))));
        stage.effects();
        assert_eq!(stage.0.evicting(), [LAUNCH]);
        stage.on(end());
        assert_eq!(stage.0.evicting(), [0; 0]);
    }
}

/// A holder that is not overdue by the last judgement is spared, and is ended if it becomes overdue again.
/// One whose end a user requests is ended at any age.
#[test]
fn a_judgement_spares_a_holder_that_is_not_overdue_any_more() {
    let mut stage = Stage::new();
    let question = stage.asks();
    let session = stage.session();
    session.evictions = vec![ending(1, overdue(2, Some(Duration::ZERO))), ending(3, overdue(4, None))];
    session.tried = vec![2, 4, 6];
    stage.on(Event::Judged(question, Ok(needs(Vec::new()))));
    let session = stage.session();
    assert_eq!(session.evictions.iter().map(|eviction| eviction.holding).collect::<Vec<_>>(), [3]);
    assert_eq!(session.tried, [4, 6], "the first may be tried again");
}

/// A launch that asks again may end any holder once more, except those that are being ended.
#[test]
fn a_new_request_tries_all_holders_again() {
    let mut stage = Stage::new();
    stage.asks();
    let session = stage.session();
    session.evictions = vec![ending(1, overdue(2, Some(Duration::ZERO)))];
    session.tried = vec![2, 4];
    session.noticed = vec![overdue(6, Some(Duration::ZERO))];
    stage.asks();
    let session = stage.session();
    assert_eq!(session.tried, [2]);
    assert!(session.noticed.is_empty(), "those on other hosts get notices again");
    session.noticed = vec![overdue(6, Some(Duration::ZERO))];
    stage.on(Event::Evicts);
    let session = stage.session();
    assert!(session.tried.is_empty() && session.noticed.is_empty());
}

/// By a judgement that is too old no signal is sent. If a signal is due for any holder, the launch is judged
/// again.
#[test]
fn a_signal_that_is_due_needs_a_fresh_judgement() {
    for (is_fresh, some_are_due, is_judged) in
        [(true, true, false), (false, true, true), (false, false, false)]
    {
        let mut stage = Stage::new();
        let judged = if is_fresh { Instant::now() + HOUR } else { long_ago().expect("a moment") };
        stage.waits(AcquireRequest { judged, ..needs(Vec::new()) }, None);
        let mut all = vec![ending(1, overdue(2, Some(Duration::ZERO))), ending(3, overdue(4, None))];
        all[1].due = Instant::now() + HOUR;
        if !some_are_due {
            all.remove(0);
        }
        stage.session().evictions = all;
        assert_eq!(stage.session().may_signal(), is_fresh);
        assert_eq!(judges(&stage.effects()), is_judged);
    }
}

/// A launch in a queue keeps its place while the policy has a fault, and is judged again when its turn comes.
/// It loses the place because of a fault in a delegated file. A newcomer has no place to keep.
#[test]
fn a_fault_of_the_policy_takes_no_place() {
    for (is_in_line, is_of_policy, is_kept) in
        [(true, true, true), (true, false, false), (false, true, false)]
    {
        let (mut stage, store) = (Stage::new(), Store::default());
        let question = stage.asks();
        if is_in_line {
            stage.session().place.line = place(&store);
        }
        let faulty = Answer::Faulty(("a fault".to_owned(), is_of_policy));
        stage.on(Event::Judged(question, Err(Box::new(faulty))));
        assert_eq!((stage.places(), stage.session().is_queued()), (usize::from(is_kept), is_kept));
        assert_eq!(judges(&stage.on(Event::Turn)), is_kept);
    }
}

/// A launch that comes back to a new agent has waited, and responds.
#[test]
fn a_launch_that_comes_back_has_waited_and_responds() {
    let (mut stage, store) = (Stage::new(), Store::default());
    let mut line = place(&store);
    line.set_away(true);
    let next = || store.table("seats").next_to_look(None, &[]);
    assert_eq!(next(), None);
    let saved = SavedPlace {
        pid: own_pid(),
        start: 1,
        uid: 1000,
        command: "matlab".to_owned(),
        number: SavedNumber::of(Number(1), &take()),
        since: None,
        lines: Vec::new(),
    };
    stage.on(Event::Recovered(9, saved, line));
    assert!(stage.session().place.has_waited);
    assert_eq!(next(), Some(Number(1)));
}
