//! A launch during all requests of one connection, as a state machine. Every change of its state is in
//! `Session::on`, which takes an event and leaves effects: answers, checks, writes and releases. It calls
//! nothing; the loop carries the effects out.

mod all;

use std::{
    collections::{BTreeSet, VecDeque},
    mem,
    os::fd::OwnedFd,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    AWAY, AcquireRequest, Caller, Case, Eviction, Load, NoRequest, Outcome, RunningEviction,
    judge::shortened,
    ledger::state::{SavedLine, SavedNumber, SavedPlace, in_millis},
    request,
    site::notices::GivenNotice,
};
use crate::{
    acquire::{LONGEST_ABSENCE, PlaceInLine, Progress, RoomForOlder},
    keeper::{
        EvictionOutcome, Number, Overdue,
        agent::message::{Answer, Expired, Granted, Refused, Take, WaitState},
        memory,
    },
    sys::{FileId, Process, process},
};

pub(super) use all::{Change, Sessions};

/// For how long after it first got slots, or gave them back, a launch has its number again, if it starts
/// nothing: it waits for an answer that is lost, and then for the agent, or a lock file refuses it.
pub(super) const LONGEST_UNUSED: Duration = LONGEST_ABSENCE.saturating_mul(2);

/// How soon after a failed look-up a waiting launch is judged again.
const UNTIL_JUDGED_AGAIN: Duration = Duration::from_secs(1);

/// A launch, or another caller.
#[derive(Default)]
pub(super) struct Session {
    pub(super) peer: Caller,
    stage: Stage,
    /// The number of the last request that was sent to the judges.
    pub(super) question: u64,
    pub(super) take: Option<Arc<Take>>,
    /// Whether it names other variables than the request by which it got its positions, and is not judged
    /// yet.
    has_other_variables: bool,
    pub(super) place: Waiting,
    /// The FIFOs of other launches that its process has open, once checked.
    pub(super) fifos: Option<Vec<FileId>>,
    /// Unused slots of an earlier request.
    unused: Vec<u64>,
    /// Overdue holders that are being ended for it.
    pub(super) evictions: Vec<RunningEviction>,
    /// No holder gets signals again and again.
    pub(super) tried: Vec<i32>,
    pub(super) room_for_older: RoomForOlder,
    /// Overdue holders on other hosts, of which it gave notice.
    pub(super) notices: Vec<GivenNotice>,
    /// Also those that are already reported: a host gets only one notice of a holder.
    pub(super) noticed: Vec<Overdue>,
    /// When to check it even without input.
    due: Option<Instant>,
    effects: VecDeque<Effect>,
    /// Whether it was changed since its effects were carried out.
    is_changed: bool,
}

/// Its state.
#[derive(Default)]
enum Stage {
    /// It wants nothing.
    #[default]
    Idle,
    /// The judges have its request, or get it again because a look-up failed.
    Judging,
    /// The agent checks whether it can have its slots.
    Deciding,
    /// It waits in the queue for this.
    Queued(AcquireRequest),
    /// It waits while the policy has faults, and is judged again with its next message, or when its turn
    /// comes.
    Shut,
    /// The site has to prove its slots, or it is checked again soon.
    Proving,
    /// It does not wait in a queue for this: holders are ended for it.
    Ending(AcquireRequest),
    /// Holders are ended at its request; whether all of them have ended so far.
    Evicting(bool),
    /// It has slots, by the number of the holding; and the number that it keeps if it gives them back.
    Running(u64, Option<Number>),
}

/// Something has happened to it.
pub(super) enum Event {
    /// It requests slots. It got slots before, and has not used them.
    Asks(Take, Vec<u64>),
    /// It has its position from before the agent failed, which is saved in this file.
    Recovered(u64, SavedPlace, PlaceInLine),
    /// It may be judged; the number under which it joins the queue again, and when it first got slots under
    /// it, in milliseconds since boot.
    Accepted(Option<(Number, Option<u64>)>),
    /// It may not, because its requests exceed the quota, and this one is dropped.
    Declined(Answer),
    /// Its request with this number was judged.
    Judged(u64, Outcome),
    /// It is alive.
    Beats,
    /// Its turn has come in a queue.
    Turn,
    /// A timeout has passed.
    Timer,
    /// A holder was ended for it, or may have been.
    Freed,
    /// The agent checks again whether it can have this; whether it waits for the answer.
    Resumes(AcquireRequest, bool),
    /// The result of a check; whether the launch waits for the answer, and whether all hosts see it in the
    /// queue.
    Blocked(AcquireRequest, Blocked, bool, bool),
    /// It keeps waiting for this while the state of the site is unknown.
    WaitsOn(AcquireRequest, WaitState),
    /// The site is asked, or waited for.
    Proves,
    /// The decision is too old.
    Stale,
    /// It has slots now, by this number; or starts without.
    Granted(Option<u64>, Granted, Option<OwnedFd>),
    /// It gets nothing but this answer.
    Refused(Answer),
    /// These of its earlier slots have passed to another session of the same process.
    Superseded(Vec<u64>),
    /// It waits no longer.
    Leaves,
    /// It releases its slots; whether a program had them, and whether it may keep its number.
    GivesBack(bool, bool),
    /// It wants holders to be ended.
    Evicts,
    /// It closed the connection.
    Gone,
}

/// What to do.
pub(super) enum Effect {
    /// It gets this answer; with a descriptor, if there is one.
    Answer(Answer, Option<OwnedFd>),
    /// Its request is judged.
    Judge,
    /// The agent checks whether it can have this; whether it waits for the answer.
    Decide(AcquireRequest, bool),
    /// Its position in the queue is saved.
    WritePlace,
    /// It has left the queues of these tables, or is back in them: others check, or it does.
    Left(Vec<memory::Table>),
    /// A holding is free; whether a program had it.
    Release(u64, bool),
    /// The same for a holding whose slots no program has used.
    ReleaseUnused(u64),
}

/// The state of a launch that got nothing.
pub(super) struct Blocked {
    pub(super) refused: Refused,
    /// Whether it waits in a queue.
    pub(super) waits: bool,
    /// The number of launches ahead.
    pub(super) ahead: u32,
    /// When the time of one of its claims is over.
    pub(super) next: Option<Instant>,
    /// The holders to end for it.
    pub(super) evictions: Vec<Eviction>,
}

impl Blocked {
    /// Whether holders are to be ended for it, besides those that are being ended.
    pub(super) fn ends_others(&self) -> bool {
        self.evictions.iter().any(|eviction| !eviction.overdue.is_empty())
    }
}

/// A launch's position in the queue, during all of its requests.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) line: PlaceInLine,
    /// When its request arrived.
    pub(super) begun: Option<Instant>,
    pub(super) beaten: Option<Instant>,
    /// Whether its request, or its last heartbeat, has no answer yet.
    pub(super) is_owed: bool,
    pub(super) has_waited: bool,
    /// Whether it did not respond at the last check.
    pub(super) was_away: bool,
    /// When the time of one of its claims is over.
    pub(super) next: Option<Instant>,
    /// Since when it waits for the site rather than for slots.
    pub(super) resting: Option<Instant>,
    /// When it got the slots that it now takes again without having used them, in milliseconds since boot:
    /// they are as old as before. None once it waits without them.
    pub(super) taken: Option<u64>,
    /// Whether it had slots under its number before, and has not used them. It keeps the number only once.
    has_kept: bool,
    /// Until when it may come again under the number of slots that it has given back.
    pub(super) kept_until: Option<Instant>,
    /// How it begins to wait at the site, if a queue has a maximum length.
    pub(super) begins: Begins,
    /// Since when it has been judged without result, while it has a position.
    pub(super) unjudged: Option<Instant>,
    /// When it is judged again, because a look-up failed.
    pub(super) again: Option<Instant>,
    /// Whether another policy applied at its last heartbeat, or other hours, than when it was judged.
    pub(super) is_outdated: bool,
    /// Its saved position, and in which file.
    pub(super) written: Option<(u64, SavedPlace)>,
}

/// A launch that begins to wait. In a bounded queue the agent must prove that no other launch joined since
/// the check; until then it gets no answer.
#[derive(Default)]
pub(super) struct Begins {
    /// The bounded queues, by the names of their tables at the site.
    pub(super) lines: BTreeSet<String>,
    /// The revision of the check that found room in the first of them, and of which etcd.
    pub(super) looked: (u64, i64),
    /// What the launch hears, if it waits.
    pub(super) answer: Option<WaitState>,
}

impl Session {
    /// From a client.
    pub(super) fn new(peer: Caller) -> Self {
        Self { peer, ..Self::default() }
    }

    /// Takes an event.
    pub(super) fn on(&mut self, event: Event) {
        self.stage = match (event, mem::take(&mut self.stage)) {
            (Event::Asks(take, unused), _) => self.asks(take, unused),
            (Event::Recovered(file, saved, mut line), stage) => {
                line.set_away(false);
                self.place.line = line;
                self.place.written = Some((file, saved));
                self.place.has_waited = true;
                stage
            }
            (Event::Accepted(served_as), _) => {
                // It was its turn, and still is.
                if let Some((number, taken)) = served_as {
                    self.place.line.come_as(number);
                    (self.place.taken, self.place.has_kept) = (taken, true);
                }
                self.judge_again()
            }
            (Event::Stale, _) | (Event::Turn, Stage::Shut) => self.judge_again(),
            (Event::Declined(answer), _) => {
                self.release_unused();
                self.take = None;
                self.refused(answer)
            }
            (Event::Judged(question, outcome), Stage::Judging) if question == self.question => {
                self.release_unused();
                let was_late = self.is_late();
                match outcome {
                    Err(NoRequest::LookUpFailed(_)) if self.place.line.places() > 0 => {
                        self.place.again = Instant::now().checked_add(UNTIL_JUDGED_AGAIN);
                        Stage::Judging
                    }
                    Err(NoRequest::LookUpFailed(why)) => self.refused(Answer::Failed(why)),
                    Ok(request) => {
                        if mem::take(&mut self.has_other_variables) {
                            if !self.has_places_for(&request) {
                                self.leave_queues();
                            } else if let Some((_, saved)) = &mut self.place.written {
                                // It is saved again, for the variables that it names now.
                                saved.lines.clear();
                            }
                        }
                        let spared = self.evictions.extract_if(.., |eviction| !eviction.is_due_by(&request));
                        for spared in spared {
                            // It can become overdue again.
                            self.tried.retain(|pid| *pid != spared.overdue.process());
                        }
                        if was_late && self.place.line.places() > 0 {
                            // Others passed it. Now it has its turn, in the order of the queue.
                            self.answer_late();
                            self.end_judging();
                            self.effects.push_back(Effect::Left(self.place.line.tables()));
                            Stage::Queued(request)
                        } else {
                            self.decide(request, true)
                        }
                    }
                    Err(NoRequest::Refused(answer)) if self.keeps_its_place(&answer) => {
                        self.end_judging();
                        self.answer(*answer, None);
                        Stage::Shut
                    }
                    Err(NoRequest::Refused(answer)) => self.refused(*answer),
                }
            }
            (Event::Beats, stage) => {
                self.place.beaten = Some(Instant::now());
                self.place.is_owed = true;
                self.set_away(self.is_late());
                match stage {
                    Stage::Queued(request) | Stage::Ending(request) => self.decide(request, true),
                    Stage::Shut => self.judge_again(),
                    stage => {
                        self.answer_late();
                        stage
                    }
                }
            }
            (Event::Timer, Stage::Judging) => {
                if self.place.again.is_some_and(|again| again <= Instant::now()) {
                    self.judge_again()
                } else {
                    self.answer_late();
                    Stage::Judging
                }
            }
            (Event::Turn, Stage::Queued(request)) | (Event::Freed, Stage::Ending(request)) => {
                self.decide(request, false)
            }
            (Event::Timer, Stage::Queued(request)) if self.is_over() => {
                self.place.next = None;
                self.decide(request, false)
            }
            (Event::Freed, Stage::Evicting(are_all_gone))
                if self.evictions.is_empty() && self.notices.is_empty() =>
            {
                self.answer(Answer::Done(are_all_gone), None);
                Stage::Idle
            }
            (Event::Resumes(request, is_asked), _) => self.decide(request, is_asked),
            (Event::Blocked(request, blocked, is_asked, has_begun), _) => {
                self.blocked(request, blocked, is_asked, has_begun)
            }
            (Event::WaitsOn(request, waits), _) => {
                (self.place.resting, self.place.taken) = (None, None);
                if self.place.is_owed {
                    self.answer(Answer::Waits(waits), None);
                }
                Stage::Queued(request)
            }
            (Event::Proves, _) => Stage::Proving,
            (Event::Granted(holding, granted, end), _) => {
                self.evictions.clear();
                self.notices.clear();
                let number = self.place.line.number().filter(|_| !self.place.has_kept);
                self.leave_line();
                self.answer(Answer::Granted(granted), end);
                holding.map_or(Stage::Idle, |holding| Stage::Running(holding, number))
            }
            (Event::Refused(answer), _) => self.refused(answer),
            (Event::Superseded(holdings), stage) => {
                // The latest request replaces it.
                if self.unused.extract_if(.., |of| holdings.contains(of)).count() > 0 {
                    self.leave_line();
                }
                match stage {
                    // No launch may use slots that are being released.
                    Stage::Running(of, _) if holdings.contains(&of) => Stage::Idle,
                    stage => stage,
                }
            }
            (
                Event::Leaves,
                Stage::Judging | Stage::Deciding | Stage::Queued(_) | Stage::Shut | Stage::Ending(_),
            ) => self.refused(Answer::Done(true)),
            (Event::GivesBack(has_run, may_keep), Stage::Running(holding, number)) => {
                self.effects.push_back(Effect::Release(holding, has_run));
                self.answer(Answer::Done(true), None);
                // It waits for slots of another keeper. When they are free, it does not come last here.
                if let Some(number) = number.filter(|_| may_keep) {
                    self.place.line.begin_as(number);
                    self.place.has_kept = true;
                    self.place.kept_until = Instant::now().checked_add(LONGEST_UNUSED);
                }
                Stage::Idle
            }
            // It does not need what it waits for either.
            (Event::GivesBack(..), _) => self.refused(Answer::Done(false)),
            (Event::Evicts, _) => {
                // Its request has changed, and does not end the overdue holders of the earlier one.
                self.leave_line();
                self.evictions.clear();
                self.tried.clear();
                self.notices.clear();
                self.noticed.clear();
                Stage::Evicting(true)
            }
            (Event::Gone, _) => {
                self.evictions.clear();
                self.notices.clear();
                self.leave_line();
                Stage::Idle
            }
            // Its request has changed, or it already knows its slots.
            (Event::Judged(..) | Event::Turn | Event::Timer | Event::Freed | Event::Leaves, stage) => stage,
        };
    }

    fn asks(&mut self, take: Take, unused: Vec<u64>) -> Stage {
        if let Some(before) = &self.take {
            self.has_other_variables |= !take.has_same_variables(before);
            // A launch that waited for something else would overtake others that wait for this.
            if !take.is_of_same_launch(before) {
                self.leave_queues();
            }
            self.answer(Answer::Anew, None);
        }
        if self.place.kept_until.take().is_some_and(|until| until <= Instant::now()) {
            self.leave_queues();
        }
        self.unused.extend(unused);
        self.place.is_owed = true;
        self.set_away(self.is_late());
        self.place.begun = Some(Instant::now());
        self.take = Some(Arc::new(take));
        self.tried = self.evictions.iter().map(|eviction| eviction.overdue.process()).collect();
        self.notices.clear();
        self.noticed.clear();
        Stage::Judging
    }

    /// Its earlier unused slots are released.
    fn release_unused(&mut self) {
        self.effects.extend(mem::take(&mut self.unused).into_iter().map(Effect::ReleaseUnused));
    }

    fn judge_again(&mut self) -> Stage {
        self.question += 1;
        self.fifos = None;
        self.place.again = None;
        if self.place.line.places() > 0 {
            self.place.unjudged.get_or_insert_with(Instant::now);
        }
        self.effects.push_back(Effect::Judge);
        self.answer_late();
        Stage::Judging
    }

    /// It is known what it needs, or that it waits for something else.
    fn end_judging(&mut self) {
        if self.is_late() {
            self.set_away(false);
        }
        (self.place.unjudged, self.place.again) = (None, None);
    }

    /// Whether it has a position, and could not be judged for too long. Others pass it meanwhile.
    pub(super) fn is_late(&self) -> bool {
        self.late_at().is_some_and(|late| late <= Instant::now())
    }

    /// When it is so.
    fn late_at(&self) -> Option<Instant> {
        self.place.unjudged.filter(|_| self.place.line.places() > 0)?.checked_add(AWAY)
    }

    /// It learns that it still waits, although it cannot be judged. The tables may be those of an earlier
    /// request, so this is an answer that a launch does not compare with what it needs.
    fn answer_late(&mut self) {
        if self.place.is_owed && self.is_late() {
            let refused = request::unjudged(&self.place.line, self.peer.uid);
            self.answer(Answer::Ends(refused), None);
        }
    }

    /// Look-ups succeed again: it has its full time to be judged, and nothing passes it meanwhile.
    fn restart_judging(&mut self) {
        let now = Instant::now();
        (self.place.unjudged, self.place.again) = (Some(now), self.place.again.map(|_| now));
        self.set_away(false);
    }

    fn set_away(&mut self, is_away: bool) {
        self.place.was_away = is_away;
        self.place.line.set_away(is_away);
    }

    fn decide(&mut self, request: AcquireRequest, is_asked: bool) -> Stage {
        self.end_judging();
        self.effects.push_back(Effect::Decide(request, is_asked));
        Stage::Deciding
    }

    /// It gets nothing, and launches behind it may check.
    fn refused(&mut self, answer: Answer) -> Stage {
        self.answer(answer, None);
        self.evictions.clear();
        self.notices.clear();
        self.leave_line();
        Stage::Idle
    }

    /// A launch that needs nothing now waits in no queue: it would block those behind it.
    fn leave_line(&mut self) {
        self.leave_queues();
        self.room_for_older = RoomForOlder::default();
        self.place.resting = None;
        self.place.begins.answer = None;
    }

    /// It has no position any more, until it joins a queue as the last one.
    fn leave_queues(&mut self) {
        (self.has_other_variables, self.place.taken, self.place.has_kept) = (false, None, false);
        (self.place.unjudged, self.place.again) = (None, None);
        let left = self.place.line.tables();
        self.place.line.leave();
        self.effects.extend([Effect::WritePlace, Effect::Left(left)]);
    }

    /// Whether it has a position in every table that it needs: one in another queue is worth nothing there.
    fn has_places_for(&self, request: &AcquireRequest) -> bool {
        let tables = self.place.line.tables();
        request.tables().all(|name| tables.iter().any(|table| table.is_called(name)))
    }

    fn blocked(
        &mut self,
        request: AcquireRequest,
        Blocked { refused, waits, ahead, next, .. }: Blocked,
        is_asked: bool,
        has_begun: bool,
    ) -> Stage {
        self.place.taken = None;
        if waits {
            self.place.next = next;
            let answer = is_asked.then_some(WaitState { refused, ahead });
            self.place.begins.answer = answer.or(self.place.begins.answer.take());
            if has_begun {
                self.begins_to_wait();
            } else {
                self.place.resting.get_or_insert_with(Instant::now);
            }
            self.effects.push_back(Effect::WritePlace);
            return Stage::Queued(request);
        }
        // A launch that may not wait is not refused while a holder is being ended for it.
        let are_resting = self.evictions.iter().all(|eviction| eviction.rests)
            && self.notices.iter().all(|notice| notice.rests);
        if self.place.has_waited || are_resting {
            return self.refused(Answer::Refused(refused));
        }
        if is_asked {
            self.answer(Answer::Ends(refused), None);
        }
        self.place.resting = None;
        Stage::Ending(request)
    }

    /// It does not wait for its turn any more, but for the site. Says for what.
    pub(super) fn stop_waiting(&mut self) -> Option<AcquireRequest> {
        self.place.begins.answer = None;
        match mem::replace(&mut self.stage, Stage::Proving) {
            Stage::Queued(request) => Some(request),
            stage => {
                self.stage = stage;
                None
            }
        }
    }

    /// It waits in the queue, for all hosts to see.
    pub(super) fn begins_to_wait(&mut self) {
        self.place.has_waited = true;
        self.place.resting = None;
        if let Some(waits) = self.place.begins.answer.take() {
            self.answer(Answer::Waits(waits), None);
        }
    }

    /// It gets an answer; with a descriptor, if there is one.
    pub(super) fn answer(&mut self, answer: Answer, beside: Option<OwnedFd>) {
        // From now on it has its full time to send something.
        self.place.is_owed &= matches!(answer, Answer::Anew | Answer::Expired(_));
        self.place.beaten = self.place.beaten.map(|_| Instant::now());
        self.effects.push_back(Effect::Answer(answer, beside));
    }

    /// Reports what has become of a holder that was to be ended.
    pub(super) fn tell(&mut self, table: &str, overdue: &Overdue, fate: EvictionOutcome) {
        if let Stage::Evicting(are_all_gone) = &mut self.stage {
            *are_all_gone &= fate.has_left();
        }
        if fate.has_left() && overdue.elsewhere.is_none() {
            // Its process can have other slots, or the same ones again.
            self.tried.retain(|pid| *pid != overdue.process());
        }
        if let Some(expired) = Expired::of(table, overdue, fate) {
            self.answer(Answer::Expired(expired), None);
        }
    }

    /// What a judge has to know.
    pub(super) fn case(&self, session: u64) -> Option<Case> {
        let take = Arc::clone(self.take.as_ref()?);
        let (uid, groups) = (self.peer.uid, self.peer.groups.clone());
        Some(Case { session, question: self.question, take, uid, groups })
    }

    pub(super) fn holding(&self) -> Option<u64> {
        match self.stage {
            Stage::Running(holding, _) => Some(holding),
            _ => None,
        }
    }

    /// Whether these are slots of an earlier request, which it releases.
    pub(super) fn gives_back(&self, holdings: &[u64]) -> bool {
        self.unused.iter().any(|of| holdings.contains(of))
    }

    /// No launch loses its position because a policy is being edited.
    fn keeps_its_place(&self, answer: &Answer) -> bool {
        matches!(answer, Answer::Faulty((_, true))) && self.place.line.places() > 0
    }

    /// Whether it waits in a queue, and only for its turn.
    pub(super) fn is_queued(&self) -> bool {
        matches!(self.stage, Stage::Queued(_) | Stage::Shut)
    }

    /// Whether it waits in a queue, responds, and was not judged recently.
    pub(super) fn is_stale(&self) -> bool {
        matches!(&self.stage, Stage::Queued(request) if !request.is_fresh()) && !self.place.was_away
    }

    /// Whether it waits for the site.
    pub(super) fn is_proving(&self) -> bool {
        matches!(self.stage, Stage::Proving)
    }

    /// Whether holders are ended for it, and it waits in no queue.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.stage, Stage::Ending(_) | Stage::Evicting(_))
    }

    /// The user at whose request holders are ended, however old they are; none for a launch and for overdue
    /// holders.
    pub(super) fn asks_for_end_of(&self, overdue: &Overdue) -> Option<u32> {
        (matches!(self.stage, Stage::Evicting(_)) && overdue.by.is_none()).then_some(self.peer.uid)
    }

    /// Whether holders may get the signals that are due: by the policy as it is now, or at a user's request.
    /// If that is unknown, it is judged again first.
    pub(super) fn may_signal(&mut self) -> bool {
        match &self.stage {
            Stage::Evicting(_) => true,
            Stage::Queued(request) | Stage::Ending(request) => {
                let is_fresh = request.is_fresh();
                if !is_fresh && self.evictions.iter().any(RunningEviction::is_due) {
                    self.on(Event::Stale);
                }
                is_fresh
            }
            _ => false,
        }
    }

    /// Whether this holder is being ended for it.
    pub(super) fn is_ending_for_it(&self, overdue: &Overdue) -> bool {
        self.evictions.iter().any(|eviction| overdue.is_same(&eviction.overdue))
            || self.notices.iter().any(|notice| notice.ends(overdue))
    }

    /// What was done for it to end this holder.
    pub(super) fn progress_of(&self, overdue: &Overdue) -> Progress {
        let was_tried = match overdue.elsewhere {
            None => self.tried.contains(&overdue.process()),
            Some(_) => self.has_given_notice_of(overdue),
        };
        if self.is_ending_for_it(overdue) {
            Progress::Running
        } else if was_tried {
            Progress::Spared
        } else {
            Progress::Untried
        }
    }

    /// Lets holders that are being ended for it rest, except these and those that are ended together with
    /// them.
    pub(super) fn let_rest_except<'o>(&mut self, needed: impl Iterator<Item = &'o Overdue>) {
        let needed: Vec<&Overdue> = needed.flat_map(Overdue::all).collect();
        let rests = |overdue: &Overdue| !needed.iter().any(|one| one.is_same(overdue));
        for eviction in &mut self.evictions {
            eviction.rests = rests(&eviction.overdue);
        }
        for notice in &mut self.notices {
            // If its host says that the holder is not overdue, it is to look again.
            notice.rests = notice.ends(&notice.overdue) && rests(&notice.overdue);
        }
    }

    /// Whether signals are being sent for it.
    pub(super) fn is_sending(&self) -> bool {
        self.evictions.iter().any(|eviction| eviction.due().is_none())
    }

    /// Whether a holder is being ended for it.
    fn has_evictions(&self) -> bool {
        let is_empty = self.evictions.is_empty() && self.notices.is_empty();
        !is_empty || matches!(self.stage, Stage::Ending(_) | Stage::Evicting(_))
    }

    /// Whether the time of one of its claims is over.
    fn is_over(&self) -> bool {
        self.place.next.is_some_and(|next| next <= Instant::now())
    }

    /// When to check it.
    fn next_due(&self) -> Option<Instant> {
        let next = self.place.next.filter(|_| matches!(self.stage, Stage::Queued(_)));
        let silent = self.away_at();
        let again = self.place.again;
        let may_signal = matches!(self.stage, Stage::Queued(_) | Stage::Ending(_) | Stage::Evicting(_));
        let evictions = self.evictions.iter().filter(|eviction| may_signal && !eviction.rests);
        evictions.filter_map(RunningEviction::due).chain(next).chain(silent).chain(again).min()
    }

    /// When it is passed over, unless that is so already.
    fn away_at(&self) -> Option<Instant> {
        match self.stage {
            Stage::Judging => self.late_at().filter(|_| !self.place.was_away),
            _ if self.is_queued() => self.silent_at(),
            _ => None,
        }
    }

    /// When its launch counts as away unless it says something before; none if it counts so already, or
    /// waits for an answer itself.
    fn silent_at(&self) -> Option<Instant> {
        let Waiting { has_waited, is_owed, was_away, beaten, .. } = self.place;
        beaten.filter(|_| has_waited && !is_owed && !was_away)?.checked_add(AWAY)
    }

    /// Whether its launch has waited in silence for too long, or was not judged for too long, since that was
    /// last checked.
    pub(super) fn falls_silent(&self) -> bool {
        self.away_at().is_some_and(|away| away <= Instant::now())
    }

    /// What it uses of its user's quota.
    pub(super) fn load(&self) -> Load {
        let take = self.take.as_ref().map_or(0, |take| take.size());
        Load {
            places: self.place.line.places(),
            question: self.evictions.iter().map(RunningEviction::size).fold(take, usize::saturating_add),
            is_busy: match self.stage {
                Stage::Judging => !self.is_late(),
                Stage::Deciding | Stage::Proving | Stage::Evicting(_) => true,
                _ => false,
            },
        }
    }

    /// The command that it is to start, as others see it.
    pub(super) fn command(&self) -> String {
        let typed = self.take.as_ref().map(|take| Path::new(&take.typed));
        typed.and_then(Path::file_name).map_or_else(String::new, shortened)
    }

    /// Its queues now.
    pub(super) fn saved_place(&self) -> Option<SavedPlace> {
        let (number, now) = (self.place.line.number()?, process::since_boot()?);
        let lines: Vec<SavedLine> =
            self.place.line.saved().iter().map(|place| SavedLine::of(place, now)).collect();
        let Caller { pid, started: start, uid, .. } = self.peer;
        let take = self.take.as_deref()?;
        let (number, opened) = (SavedNumber::of(number, take), take.opened);
        let (command, since) = (self.command(), self.place.line.since().map(in_millis));
        let place = SavedPlace { pid, start, uid, command, number, since, opened, lines };
        (!place.lines.is_empty()).then_some(place)
    }

    /// Whether it is passed over: it could not be judged for too long, or its launch does not respond. Such a
    /// launch sent nothing for too long, and has no unread input. A slow agent declares no launch dead, and a
    /// launch that waits for an answer sends nothing meanwhile.
    pub(super) fn is_away(&self, is_unheard: impl FnOnce() -> bool) -> bool {
        let is_silent = self.place.has_waited && !self.place.is_owed;
        let is_silent = is_silent && self.place.beaten.is_some_and(|beaten| beaten.elapsed() > AWAY);
        self.is_late() || is_silent && !is_unheard()
    }

    /// Checks whether its launch responds now, and marks that in its queues.
    pub(super) fn see_whether_away(&mut self, is_unheard: impl FnOnce() -> bool) -> bool {
        let is_away = self.is_away(is_unheard)
            || Process::find(self.peer.pid).is_none_or(|process| process.is_stopped());
        if !is_away && self.falls_silent() {
            // Unread input counts as received now.
            self.place.beaten = Some(Instant::now());
        }
        self.set_away(is_away);
        self.answer_late();
        is_away
    }
}
