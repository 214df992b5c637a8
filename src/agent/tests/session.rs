//! A launch as a state machine: what follows from its events.

use std::{
    ffi::OsString,
    iter,
    time::{Duration, Instant},
};

use super::{HOUR, claim, ending, needs, overdue, saved, take};
use crate::{
    acquire::{PlaceInLine, PlaceInTable},
    agent::{
        AWAY, AcquireRequest, Blocked, Caller, Change, Effect, Event, Eviction, NoRequest, Session, Sessions,
        ledger::state::{SavedNumber, SavedPlace},
        site::notices::GivenNotice,
    },
    judge::terms::{Claim, Demand, Expiry, Hold, Pace},
    keeper::{
        Class, EvictionOutcome, Holder, Number, Overdue, Store,
        agent::message::{Answer, Granted, Refused, Take, WaitState},
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
    again(store, 1)
}

/// The same under this number.
fn again(store: &Store, number: u64) -> PlaceInLine {
    let classes = vec![Class { generation: 0, capacity: 1 }];
    let (table, longest) = (store.table("seats"), Duration::ZERO);
    PlaceInLine::again(Number(number), None, &[PlaceInTable { table, classes, longest, wants: None }])
}

/// A moment so long ago that a launch of which nothing was heard since then does not respond.
fn long_ago() -> Option<Instant> {
    Instant::now().checked_sub(AWAY * 3 / 2)
}

fn judges(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Judge))
}

/// Whether it is checked, and does not wait for the answer.
fn is_checked(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Decide(_, false)))
}

/// Whether one of the answers is like this.
fn is_told(effects: &[Effect], is_it: fn(&Answer) -> bool) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Answer(answer, _) if is_it(answer)))
}

/// The last answer to a request to end holders, or to give back slots: whether all of them have ended, and
/// whether there were any.
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
    let (number, store) = (Some(Number(1)), Store::default());
    stage.session().place.line = place(&store);
    stage.session().place.line.set_away(true);
    stage.on(Event::Beats);
    assert_eq!(store.table("seats").next_to_look(None, &[]), number, "it is not passed over");
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
    // It leaves before all hosts see it.
    stage.on(Event::Blocked(needs(Vec::new()), blocked(None), true, false));
    stage.on(Event::Leaves);
    assert!(stage.session().place.resting.is_none());
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
        let effects = stage.on(Event::GivesBack(true, false));
        assert_eq!(effects.iter().any(|effect| matches!(effect, Effect::Release(5, true))), is_left);
        assert_eq!(last_answer(&effects), Some(is_left));
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
        let known = Overdue { holder: saved(2, Hold::Process).holder("seats"), ..overdue(2, None) };
        stage.session().tell("seats", &known, fate);
        let effects = stage.on(Event::Freed);
        assert!(is_told(&effects, |answer| matches!(answer, Answer::Expired(one) if one.holder.pid == 2)));
        assert_eq!(last_answer(&effects), Some(have_ended));
    }
}

/// A launch that does not wait is not refused while a holder is ended for it. If it has asked, it hears so.
/// A launch that has waited, or for which no holder is ended any more, is refused.
#[test]
fn a_launch_is_not_refused_while_a_holder_is_ended_for_it() {
    for is_asked in [true, false] {
        for (has_waited, are_ended, is_refused) in
            [(false, false, false), (true, false, true), (false, true, true)]
        {
            let mut stage = Stage::new();
            stage.asks();
            stage.session().evictions.push(ending(1, overdue(2, Some(Duration::ZERO))));
            let blocked = || {
                let blocked = Blocked { waits: false, ..blocked(None) };
                Event::Blocked(needs(Vec::new()), blocked, is_asked, true)
            };
            let effects = stage.on(blocked());
            assert_eq!(is_told(&effects, |answer| matches!(answer, Answer::Ends(_))), is_asked);
            assert!(stage.session().is_ending() && is_checked(&stage.on(Event::Freed)));
            if are_ended {
                stage.session().evictions.clear();
            }
            stage.session().place.has_waited = has_waited;
            let effects = stage.on(blocked());
            assert_eq!(is_told(&effects, |answer| matches!(answer, Answer::Refused(_))), is_refused);
            assert_eq!(stage.session().is_ending(), !is_refused);
        }
    }
}

/// A holder is to be ended for a launch if any of its tables names one.
#[test]
fn a_launch_ends_the_holders_of_any_table() {
    let of = |overdue| Eviction { table: "seats".to_owned(), expiry: Expiry::AT_REQUEST, overdue };
    let nothing = || of(Vec::new());
    let one = of(vec![overdue(2, None)]);
    for (evictions, are_any) in
        [(Vec::new(), false), (vec![nothing()], false), (vec![nothing(), one, nothing()], true)]
    {
        assert_eq!(Blocked { evictions, ..blocked(None) }.ends_others(), are_any);
    }
}

/// A launch that requests the end of holders waits in no queue any more.
#[test]
fn a_launch_that_ends_holders_waits_in_no_queue() {
    let (mut stage, store) = (Stage::new(), Store::default());
    stage.asks();
    stage.session().place.line = place(&store);
    stage.on(Event::Evicts);
    assert_eq!(stage.places(), 0);
}

/// A launch that asks again keeps its place in the queue if it is the same, and starts again otherwise.
#[test]
fn only_the_same_launch_keeps_its_place_when_it_asks_again() {
    for (typed, places) in [("matlab", 1), ("octave", 0)] {
        let (mut stage, store) = (Stage::new(), Store::default());
        let is_anew = |effects: &[Effect]| is_told(effects, |answer| matches!(answer, Answer::Anew));
        assert!(!is_anew(&stage.on(Event::Asks(take(), Vec::new()))), "it is its first request");
        stage.session().place.line = place(&store);
        let again = Take { typed: typed.into(), ..take() };
        assert!(is_anew(&stage.on(Event::Asks(again, Vec::new()))));
        assert_eq!((stage.places(), stage.session().command()), (places, typed.to_owned()));
    }
}

/// A launch whose judgement uses other variables than before keeps its place in the queues that it still
/// needs. If it needs another one, it starts again: the variables are what it says itself. A variable that is
/// not set is not another one.
#[test]
fn a_launch_with_other_variables_keeps_its_place_in_the_same_queues() {
    // How many places it has when it is judged to need these tables, and whether it has left a queue first.
    let judged = |stage: &mut Stage, needed: &[&str]| {
        let question = stage.session().question;
        let demands = needed.iter().map(|table| Demand::One(claim(table))).collect();
        let effects = stage.on(Event::Judged(question, Ok(needs(demands))));
        let has_left = match effects.as_slice() {
            [Effect::Decide(..)] => false,
            [Effect::WritePlace, Effect::Left(left), Effect::Decide(..)] => left.len() == 1,
            _ => panic!("it is checked, and nothing else follows"),
        };
        (stage.places(), has_left)
    };
    for (value, needed, places) in [
        (Some("x"), &["seats"][..], 1),
        (Some("x"), &["seats", "other"], 0),
        (Some("x"), &["other"], 0),
        (None, &["other"], 1),
    ] {
        let (mut stage, store) = (Stage::new(), Store::default());
        stage.asks();
        stage.session().place.line = place(&store);
        // Also if it asks for the same once more before it is judged.
        for _ in 0..2 {
            let environment = vec![("PROJECT".to_owned(), value.map(OsString::from))];
            stage.on(Event::Asks(Take { environment, ..take() }, Vec::new()));
            assert_eq!(stage.places(), 1, "it is not judged yet");
            stage.on(Event::Accepted(None));
        }
        stage.session().place.written = Some((5, super::place(own_pid())));
        assert_eq!(judged(&mut stage, needed), (places, places == 0), "{}", needed.join(" "));
        // A number that it keeps is saved again, for these variables.
        let is_outdated =
            stage.session().place.written.as_ref().is_some_and(|(_, saved)| saved.lines.is_empty());
        assert_eq!(is_outdated, value.is_some() && places == 1, "{}", needed.join(" "));
        stage.on(Event::Stale);
        assert_eq!(judged(&mut stage, &["third"]), (places, false), "only the policy has changed");
    }
}

/// Slots that a launch takes again without having used them are as old as before. If it waits meanwhile, or
/// asks for something else, their time begins again.
#[test]
fn slots_that_are_taken_again_are_as_old_as_before() {
    let events = [
        (Event::Proves, Some(5)),
        (Event::Asks(take(), Vec::new()), Some(5)),
        (Event::Asks(Take { typed: "octave".into(), ..take() }, Vec::new()), None),
        (Event::Blocked(needs(Vec::new()), blocked(None), true, true), None),
        (Event::WaitsOn(needs(Vec::new()), WaitState { refused: blocked(None).refused, ahead: 0 }), None),
        (Event::Granted(Some(8), granted(), None), None),
    ];
    for (index, (event, taken)) in events.into_iter().enumerate() {
        let mut stage = Stage::new();
        stage.on(Event::Asks(take(), vec![7]));
        stage.on(Event::Accepted(Some((Number(3), Some(5)))));
        assert_eq!(stage.session().place.taken, Some(5));
        stage.on(event);
        assert_eq!(stage.session().place.taken, taken, "{index}");
    }
}

/// A launch that gives back slots without having used them has its number once more, if it may. It has it in
/// the same connection, for the same launch, and until it gets slots or is refused.
#[test]
fn a_launch_that_gives_slots_back_keeps_its_number_once() {
    let granted = || Event::Granted(Some(5), granted(), None);
    let store = Store::default();
    for (may_keep, is_taken_up) in [(true, false), (false, false), (true, true)] {
        let mut stage = Stage::new();
        if is_taken_up {
            stage.on(Event::Asks(take(), vec![7]));
            stage.on(Event::Accepted(Some((Number(1), Some(5)))));
        } else {
            stage.session().place.line = place(&store);
        }
        let number = |stage: &mut Stage| stage.session().place.line.number();
        for is_first in [true, false] {
            stage.on(granted());
            assert_eq!(number(&mut stage), None);
            stage.on(Event::GivesBack(false, may_keep));
            let is_kept = is_first && may_keep && !is_taken_up;
            assert_eq!(number(&mut stage), is_kept.then_some(Number(1)), "{may_keep} {is_taken_up}");
            // It finds full queues closed, like every newcomer.
            assert!(stage.session().place.line.is_new());
            stage.asks();
        }
    }
    let mut stage = Stage::new();
    stage.session().place.line = place(&store);
    stage.on(granted());
    stage.on(Event::GivesBack(false, true));
    stage.session().place.kept_until = Some(Instant::now());
    stage.asks();
    assert_eq!(stage.session().place.line.number(), None, "it did not come again for too long");
    let other = || Event::Asks(Take { typed: "octave".into(), ..take() }, Vec::new());
    for lost in [other(), Event::Refused(Answer::Done(true)), Event::Gone] {
        let mut stage = Stage::new();
        stage.asks();
        stage.session().place.line = place(&store);
        stage.on(granted());
        stage.on(Event::GivesBack(false, true));
        stage.asks();
        assert_eq!(stage.session().place.line.number(), Some(Number(1)));
        stage.on(lost);
        assert_eq!(stage.session().place.line.number(), None);
    }
}

/// The place of a launch is saved when it waits, and when it waits no more. Then those behind it are checked.
#[test]
fn a_place_is_saved_when_it_changes() {
    let (mut stage, store) = (Stage::new(), Store::default());
    let is_saved = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::WritePlace));
    let is_left = |effect: &Effect| match effect {
        Effect::Left(tables) => tables.iter().any(|table| table.is_called("seats")),
        _ => false,
    };
    stage.asks();
    assert!(is_saved(&stage.on(Event::Blocked(needs(Vec::new()), blocked(None), true, true))));
    stage.session().place.line = place(&store);
    let effects = stage.on(Event::Leaves);
    assert!(is_saved(&effects) && effects.iter().any(is_left));
    assert_eq!((stage.places(), last_answer(&effects)), (0, Some(true)));
}

/// A launch is checked once when the time of its claim is over.
#[test]
fn a_launch_is_checked_once_when_its_time_is_over() {
    for (next, is_over) in [(Instant::now(), true), (Instant::now() + HOUR, false)] {
        let mut stage = Stage::new();
        stage.waits(needs(Vec::new()), Some(next));
        assert_eq!(is_checked(&stage.on(Event::Timer)), is_over);
        let refused = blocked(None).refused;
        stage.on(Event::WaitsOn(needs(Vec::new()), WaitState { refused, ahead: 0 }));
        assert!(!is_checked(&stage.on(Event::Timer)));
    }
}

/// A launch is checked when the next signal to a holder is due, as long as holders may be ended for it.
#[test]
fn a_launch_is_checked_when_a_signal_is_due() {
    let mut stage = Stage::new();
    stage.waits(needs(Vec::new()), None);
    let eviction = ending(1, overdue(2, Some(Duration::ZERO)));
    let due = eviction.due;
    stage.session().evictions.push(eviction);
    stage.effects();
    assert_eq!(stage.0.next_timer(), Some((due, LAUNCH)));
    stage.session().evictions[0].rests = true;
    stage.effects();
    assert!(stage.0.next_timer().is_none_or(|(next, _)| next > due), "it would be in vain");
    stage.session().evictions[0].rests = false;
    stage.on(Event::Proves);
    assert_eq!(stage.0.next_timer(), None);
}

/// Nothing follows any more from what has happened to a client that has gone. Others get their answers.
#[test]
fn nothing_follows_for_a_client_that_has_gone() {
    let mut stage = Stage::new();
    stage.0.insert(8, Session::new(Caller::default()));
    for (number, answer) in [(LAUNCH, false), (8, true)] {
        let session = stage.0.get_mut(&number).expect("it is connected");
        session.answer(Answer::Done(answer), None);
    }
    stage.0.remove(LAUNCH);
    assert_eq!(last_answer(&stage.effects()), Some(true));
    assert!(stage.0.next_change().is_none());
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
        let store = Store::default();
        stage.session().place.line = place(&store);
        stage.effects();
        assert_eq!(stage.0.evicting(), [LAUNCH]);
        stage.on(end());
        assert_eq!(stage.0.evicting(), [0; 0]);
        assert_eq!(stage.places(), 0);
    }
}

/// A notice of a holder on another host is for a launch that needs the slot: no more if it has its slots, is
/// refused, asks again, requests the end of holders, or has gone.
#[test]
fn a_launch_gives_notice_as_long_as_it_needs_the_slot() {
    let ends: [fn() -> Event; 5] = [
        || Event::Granted(None, granted(), None),
        || Event::Refused(Answer::Failed("it is only a test".to_owned())),
        || Event::Asks(take(), Vec::new()),
        || Event::Evicts,
        || Event::Gone,
    ];
    for end in ends {
        let mut stage = Stage::new();
        stage.waits(needs(Vec::new()), None);
        stage.session().notices.push(GivenNotice::of(overdue(2, Some(Duration::ZERO))));
        stage.effects();
        assert_eq!(stage.0.evicting(), [LAUNCH]);
        stage.on(end());
        assert!(stage.session().notices.is_empty());
    }
    for end in [Event::Gone, Event::Evicts] {
        let mut stage = Stage::new();
        stage.waits(needs(Vec::new()), None);
        stage.session().evictions.push(ending(1, overdue(2, Some(Duration::ZERO))));
        stage.on(end);
        assert!(stage.session().evictions.is_empty(), "no holder is ended for it either");
    }
    // A launch that does not wait is not refused while another host has its notice.
    let mut stage = Stage::new();
    stage.asks();
    stage.session().notices.push(GivenNotice::of(overdue(2, Some(Duration::ZERO))));
    let refused = Blocked { waits: false, ..blocked(None) };
    stage.on(Event::Blocked(needs(Vec::new()), refused, true, true));
    assert!(stage.session().is_ending());
}

/// The user is known at whose request a holder is ended, however old it is.
#[test]
fn the_user_who_requests_the_end_of_a_holder_is_known() {
    let mut stage = Stage::new();
    let mut asks = |by| stage.session().asks_for_end_of(&overdue(2, by));
    assert_eq!(asks(None), None, "it has requested nothing");
    stage.on(Event::Evicts);
    let mut asks = |by| stage.session().asks_for_end_of(&overdue(2, by));
    assert_eq!((asks(None), asks(Some(Duration::ZERO))), (Some(1000), None));
}

/// A holder that is not overdue by the last judgement is spared, and is ended if it becomes overdue again.
/// One whose end a user requests is ended at any age.
#[test]
fn a_judgement_spares_a_holder_that_is_not_overdue_any_more() {
    let mut stage = Stage::new();
    let question = stage.asks();
    let session = stage.session();
    assert!(session.stop_waiting().is_none() && !session.is_proving(), "it does not wait yet");
    let holder = Holder { taken: Some(Duration::ZERO), ..overdue(8, None).holder };
    let overdue_still = Overdue { holder, ..overdue(8, Some(Duration::ZERO)) };
    session.evictions = vec![
        ending(1, overdue(2, Some(Duration::ZERO))),
        ending(3, overdue(4, None)),
        ending(5, overdue_still),
    ];
    session.tried = vec![2, 4, 6, 8];
    let pace = Pace { pause: None, expiry: Some(Expiry::AT_REQUEST) };
    let request = needs(vec![Demand::One(Claim { pace, ..claim("seats") })]);
    stage.on(Event::Judged(question, Ok(request)));
    let session = stage.session();
    assert_eq!(session.evictions.iter().map(|eviction| eviction.holding).collect::<Vec<_>>(), [3, 5]);
    assert_eq!(session.tried, [4, 6, 8], "the first may be tried again");
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

/// A holder that has left its slot can be ended once more if it has one again. One that was spared cannot.
#[test]
fn a_holder_that_has_left_can_be_ended_once_more() {
    for (fate, tried) in [(EvictionOutcome::HadLeft, &[4][..]), (EvictionOutcome::NotPermitted, &[2, 4])] {
        let mut stage = Stage::new();
        stage.asks();
        let session = stage.session();
        session.tried = vec![2, 4];
        session.tell("seats", &overdue(2, Some(Duration::ZERO)), fate);
        assert_eq!(session.tried, tried);
    }
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
        let effects = stage.on(Event::Judged(question, Err(faulty.into())));
        assert!(is_told(&effects, |answer| matches!(answer, Answer::Faulty(_))));
        assert_eq!((stage.places(), stage.session().is_queued()), (usize::from(is_kept), is_kept));
        assert_eq!(judges(&stage.on(Event::Turn)), is_kept);
    }
}

/// A failed look-up takes no place: the launch is judged again soon. A newcomer has no place to keep, and
/// gets the reason.
#[test]
fn a_failed_look_up_takes_no_place() {
    for is_in_line in [true, false] {
        let (mut stage, store) = (Stage::new(), Store::default());
        if is_in_line {
            stage.session().place.line = place(&store);
        }
        let question = stage.asks();
        let failed = NoRequest::LookUpFailed("a look-up failed".to_owned());
        let effects = stage.on(Event::Judged(question, Err(failed)));
        assert_eq!(is_told(&effects, |answer| matches!(answer, Answer::Failed(_))), !is_in_line);
        assert_eq!((stage.places() == 1, stage.session().place.again.is_some()), (is_in_line, is_in_line));
        assert!(!judges(&stage.on(Event::Timer)), "it is too soon");
        stage.session().place.again = long_ago().filter(|_| is_in_line);
        assert_eq!(judges(&stage.on(Event::Timer)), is_in_line);
        assert!(stage.session().place.again.is_none());
    }
}

/// A launch with a place, which has been judged without result since then.
fn unjudged(store: &Store, since: Option<Instant>) -> (Stage, u64) {
    let mut stage = Stage::new();
    stage.session().place.line = place(store);
    let question = stage.asks();
    stage.session().place.unjudged = since;
    (stage, question)
}

/// A launch that cannot be judged for too long is passed over, and learns that it still waits, as often as it
/// asks. When it is judged, it has its turn in the order of the queue.
#[test]
fn a_launch_that_cannot_be_judged_is_passed_over_and_answered() {
    let store = Store::default();
    let (mut stage, question) = unjudged(&store, Some(Instant::now()));
    let next = || store.table("seats").next_to_look(None, &[]);
    let is_told_that_it_waits = |effects: &[Effect]| {
        is_told(effects, |answer| matches!(answer, Answer::Ends(refused) if refused.obstacles.len() == 1))
    };
    let is_passed = |stage: &mut Stage| {
        let session = stage.session();
        (session.falls_silent(), session.load().is_busy, session.see_whether_away(|| false))
    };
    assert!(!is_told_that_it_waits(&stage.on(Event::Timer)), "it may be judged soon");
    assert_eq!((is_passed(&mut stage), next()), ((false, true, false), Some(Number(1))));
    let late = stage.session().place.unjudged.expect("it is judged") + AWAY;
    stage.effects();
    assert_eq!(stage.0.next_timer(), Some((late, LAUNCH)));
    stage.session().place.unjudged = long_ago();
    assert!(is_told_that_it_waits(&stage.on(Event::Timer)), "its request is answered");
    assert_eq!((is_passed(&mut stage), next()), ((true, false, true), None));
    assert!(!stage.session().falls_silent(), "that is known already");
    assert!(is_told_that_it_waits(&stage.on(Event::Beats)));
    assert_eq!(next(), None, "a heartbeat does not judge it");
    // Also if it asks again. Then only the last judgement counts.
    stage.on(Event::Asks(take(), Vec::new()));
    let effects = stage.on(Event::Accepted(None));
    assert!(judges(&effects) && is_told_that_it_waits(&effects) && stage.places() == 1);
    assert_eq!(next(), None);
    stage.on(Event::Judged(question, Ok(needs(Vec::new()))));
    assert_eq!(next(), None);
    let effects = stage.on(Event::Judged(question + 1, Ok(needs(Vec::new()))));
    assert!(matches!(&effects[..], [Effect::Left(tables)] if tables.len() == 1), "it has its turn");
    assert!(stage.session().is_queued() && next() == Some(Number(1)));
    assert!(is_checked(&stage.on(Event::Turn)));
}

/// A launch that leaves while it cannot be judged has its answer. It takes no other place with it.
#[test]
fn a_launch_that_cannot_be_judged_may_leave() {
    let (mut stage, _) = unjudged(&Store::default(), long_ago());
    assert_eq!(last_answer(&stage.on(Event::Leaves)), Some(true));
    assert_eq!((stage.places(), stage.session().place.unjudged), (0, None));
}

/// When a launch is judged that could not be for too long, others have their full time again and are judged:
/// the name service may have come back. That is not repeated soon.
#[test]
fn launches_that_were_passed_over_are_not_overtaken_by_those_that_are_judged_first() {
    let store = Store::default();
    let (mut stage, _) = unjudged(&store, long_ago());
    assert!(stage.session().see_whether_away(|| false));
    stage.session().place.again = Some(Instant::now() + HOUR);
    let first = || store.table("seats").next_to_look(None, &[]);
    let mut other = Session::new(Caller { pid: own_pid(), uid: 1000, ..Caller::default() });
    other.place.line = again(&store, 2);
    stage.0.insert(LAUNCH + 1, other);
    stage.0.on_judged(LAUNCH + 1);
    assert_ne!(first(), Some(Number(1)), "this one was not passed over");
    stage.0.get_mut(&(LAUNCH + 1)).expect("it is there").place.unjudged = long_ago();
    stage.0.on_judged(LAUNCH + 1);
    assert_eq!(first(), Some(Number(1)));
    assert!(stage.session().place.again.is_some_and(|again| again <= Instant::now()));
    stage.session().place.unjudged = long_ago();
    stage.0.get_mut(&(LAUNCH + 1)).expect("it is there").place.unjudged = long_ago();
    stage.0.on_judged(LAUNCH + 1);
    assert!(stage.session().is_late(), "it was just now");
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
        opened: None,
        lines: Vec::new(),
    };
    stage.on(Event::Recovered(9, saved, line));
    assert!(stage.session().place.has_waited);
    assert_eq!(next(), Some(Number(1)));
}
