//! Waiting in the queue. A launch gets a number when it is blocked for the first time, and a place under this
//! number in every table that it could need. It waits in each queue that blocks it, and holds no slot
//! meanwhile. Then it runs one loop: it looks for room, sleeps until something happens, at most for a second,
//! and looks again. It wakes when a holder ends, a launch ahead leaves, an overdue holder is due for its next
//! signal, the second is over, or its deadline has come. It takes slots only after a look at everything under
//! the locks of the tables.
//!
//! Each claim has its own wait. A claim whose wait timed out can only end the launch, or let it leave the
//! queues of one alternative. Neither adds a wait, so every wait still points to a smaller number and no
//! circle can form. For a list in `any_of` the launch waits in the queues of the claims that block it, and
//! holds nothing of the list meanwhile. A full queue keeps out newcomers only, which have no number yet, so
//! no launch waits for them. A launch may find one queue full and wait in another. It joins the first once
//! there is room in it, at the place of its number. Until then it takes free slots there only if no older
//! launch waits for them. So no launch is overtaken, and each waiter starts when the launches ahead of it
//! have gone.

use std::{
    ops::ControlFlow,
    thread,
    time::{Duration, Instant},
};

use super::{
    AcquireContext, Acquisition, Alternative, Blocked, ClaimOnTable, Clocks, Decided, Endings, FinalProbe,
    Full, HEARTBEAT_INTERVAL, Line, LivenessTracker, Outcome, PlaceInLine, QueuePosition, Reason, Refusal,
    Refused, Unmet, WaitCheck, Wants, Watched,
};
use crate::{
    judge::terms::{Claim, Demand, Wait},
    keeper::{Class, KeeperError, LONGEST_PATIENCE, Number, PATIENCE, Waiter, Woken, table::Table},
};

/// The state of a wait, for its observer.
pub struct Waiting<'w, 'c> {
    /// Every demand that blocks the launch.
    pub unmet: &'w [Unmet<'c>],
    /// The first claim in whose queue the launch waits.
    pub claim: &'c Claim,
    line: LineSeen<'w>,
}

/// The state of the queue in which a launch waits.
enum LineSeen<'w> {
    Here {
        table: &'w Table,
        class: Class,
        number: Option<Number>,
    },
    /// How many launches come first, as the keeper reports.
    Elsewhere {
        ahead: usize,
    },
}

impl<'w, 'c> Waiting<'w, 'c> {
    /// For a launch that waits in a queue of another process.
    pub(super) fn elsewhere(unmet: &'w [Unmet<'c>], claim: &'c Claim, ahead: usize) -> Self {
        Self { unmet, claim, line: LineSeen::Elsewhere { ahead } }
    }

    /// How many launches come first. Counting costs a query for each.
    pub fn ahead(&self) -> usize {
        let (table, class, number) = match self.line {
            LineSeen::Here { table, class, number } => (table, class, number),
            LineSeen::Elsewhere { ahead } => return ahead,
        };
        let is_before = |waiter: &Waiter| number.is_none_or(|number| waiter.number < number);
        let is_ahead = |waiter: &Waiter| is_before(waiter) && !class.passes(waiter.class);
        table.waiters().map_or(0, |waiters| waiters.into_iter().filter(is_ahead).count())
    }
}

/// Says whether the decision still holds; otherwise the launch is judged again. While it waits, it is shown
/// for what.
pub type Watch<'w> = dyn FnMut(Option<&Waiting<'_, '_>>) -> ControlFlow<()> + 'w;

/// Acquires the slots of all demands when it is this launch's turn. Each claim waits for its own time, and
/// the launch until the deadline at the latest. `watch` is called when the wait begins, about once a second,
/// and before anything is taken or ended by a decision that is older: the process may have been stopped, or
/// have waited for a lock. With its slots the launch still has its places, in case that it must give the
/// slots back.
pub fn acquire_in_turn<'c>(
    demands: &'c [Demand],
    asker: &AcquireContext<'_>,
    place: &mut PlaceInLine,
    deadline: Option<Instant>,
    watch: &mut Watch<'_>,
) -> Result<Outcome<'c>, KeeperError> {
    in_turn(demands, asker, place, deadline, watch, true)
}

/// The same, until it is this launch's turn. It takes nothing, and stays in the queues.
pub(super) fn wait_for_turn<'c>(
    demands: &'c [Demand],
    asker: &AcquireContext<'_>,
    place: &mut PlaceInLine,
    deadline: Option<Instant>,
    watch: &mut Watch<'_>,
) -> Result<Outcome<'c>, KeeperError> {
    in_turn(demands, asker, place, deadline, watch, false)
}

fn in_turn<'c>(
    demands: &'c [Demand],
    asker: &AcquireContext<'_>,
    place: &mut PlaceInLine,
    deadline: Option<Instant>,
    watch: &mut Watch<'_>,
    takes: bool,
) -> Result<Outcome<'c>, KeeperError> {
    let begun = Instant::now();
    let mut acquisition = Acquisition::open(demands, asker, &place.tables)?;
    acquisition.takes = takes;
    let mut rest = Rest {
        next_look: begun + HEARTBEAT_INTERVAL,
        has_looked: false,
        held_at: begun,
        watched: Watched::default(),
        endings: Endings::default(),
    };
    let mut last_look = FinalProbe::default();
    // Until it has seen what blocks it, a launch that was judged again does not know when its time is over.
    let mut knows_over = !place.stands();
    if knows_over {
        // While the launch cannot read what blocks it, the longest of its waits counts.
        let longest = demands.iter().flat_map(Demand::claims).map(|claim| claim.wait.resolve()).max();
        let over = match longest {
            Some(Wait::For(longest)) => begun.checked_add(longest),
            Some(Wait::Forever) | None => None,
        };
        place.over = earlier(over, deadline);
    }
    loop {
        place.keep(&acquisition.wants);
        let over = earlier(place.over.filter(|_| knows_over), deadline);
        let mut attempted = acquisition.attempt(place.position(asker), place.patience(over));
        if let Ok((Decided::Blocked(blocked), _locked)) = &mut attempted
            && let Err(error) = join_queues(&acquisition, place, blocked, deadline)
        {
            attempted = Err(error);
        }
        let (mut blocked, is_stuck) = match attempted {
            Ok((Decided::Granted(grant), _locked)) if !rest.holds(watch) => {
                grant.withdraw()?;
                rest.endings.leave_alone(asker)?;
                return Ok(Outcome::Interrupted);
            }
            Ok((Decided::Granted(grant), locked)) => {
                // Without the locks, no process ever sees it both in the queue and with its slots.
                if takes {
                    place.step_aside()?;
                }
                drop(locked);
                rest.endings.leave_alone(asker)?;
                return Ok(Outcome::Granted(grant));
            }
            Ok((Decided::Blocked(mut blocked), locked)) => {
                drop(locked);
                blocked.look_for_ancestors(asker)?;
                (blocked, false)
            }
            // A waiting launch keeps its position and its deadline, and continues to try. So does one that
            // has waited for another keeper. Newcomers give up.
            Err(error) if error.is_busy() && place.is_waiter() => {
                if error.is_flood() {
                    thread::sleep(place.patience(over));
                }
                (everything(&acquisition.wants, &place.clocks), true)
            }
            Err(error) if error.is_crowded() && begun.elapsed() < LONGEST_PATIENCE && !is_over(deadline) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        // The last look at the tables has found when there would be nothing left to wait for.
        let is_over = is_over(deadline) || is_stuck && knows_over && is_over(place.over);
        if !blocked.is_final() && !is_over && blocked.is_unwaited() {
            let (waits, endings) = (place.waits(asker), &mut rest.endings);
            if last_look.goes_on_in_line(&acquisition, &mut blocked, waits, endings)? {
                place.beat()?;
                if !rest.holds(watch) {
                    rest.endings.leave_alone(asker)?;
                    return Ok(Outcome::Interrupted);
                }
                // It is not refused while it checks, so it has time for the locks.
                place.over = place.over.map(|over| over.max(Instant::now() + PATIENCE));
                continue;
            }
        }
        if blocked.is_final() || is_over || blocked.is_unwaited() {
            let has_waited = place.is_in_line() || is_over;
            let waited = (!blocked.is_final() && has_waited).then(|| begun.elapsed());
            rest.endings.leave_alone(asker)?;
            place.leave();
            return Ok(Outcome::Refused(Refusal { unmet: blocked.unmet, waited }));
        }
        // Now it waits for each of its demands, so that each has a time.
        if !is_stuck {
            place.over = earlier(place.clocks.over(&blocked), deadline);
            knows_over = true;
        }
        let next = earlier(place.clocks.next(&blocked).filter(|_| !is_stuck), deadline);
        let next = earlier(next, place.tries_again.filter(|_| !is_stuck));
        match rest.wait(&acquisition, place, &mut blocked, is_stuck, next, watch) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return Ok(Outcome::Interrupted),
            Err(error) if error.is_busy() && place.is_waiter() => {
                place.beat()?;
                if !is_stuck {
                    thread::sleep(place.patience(next));
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Lets a launch that is blocked wait in the queues of the claims that it waits for. The tables are locked.
fn join_queues<'c>(
    acquisition: &Acquisition<'c, '_>,
    place: &mut PlaceInLine,
    blocked: &mut Blocked<'c>,
    deadline: Option<Instant>,
) -> Result<(), KeeperError> {
    let Acquisition { asker, wants, .. } = acquisition;
    place.waits(asker).mark(wants, blocked)?;
    if !place.is_waiter() {
        blocked.fail_without_sample()?;
    }
    if !blocked.is_final() && !blocked.is_unwaited() && !is_over(deadline) {
        place.keep(wants);
        place.stand(wants, asker.generation, blocked)?;
    }
    Ok(())
}

pub(super) fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}

pub(super) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// All claims, as if none of their slots were free, for a caller that cannot read the tables. It is unknown
/// whether claims block the launch that it did not wait for before.
fn everything<'c>(wants: &Wants<'c>, clocks: &Clocks) -> Blocked<'c> {
    let mut blocked = Blocked { unmet: Vec::new(), lines: Vec::new() };
    let refused = |choice: &ClaimOnTable<'c>| Refused {
        claim: choice.claim,
        table: choice.table,
        reason: Reason::Full(Full::of(wants.table(choice.table), None, true)),
        line: Some(Line {
            table: choice.table,
            capacity: choice.claim.amount.usable_slots(),
            is_behind: true,
        }),
        unwaited: clocks.unwaited(choice.claim, choice.table).filter(|_| clocks.is_running(choice.table)),
    };
    for options in &wants.demands {
        let alternative =
            |choices: &[ClaimOnTable<'c>]| Alternative::of(choices, choices.iter().map(refused).collect());
        blocked.unmet.push(Unmet { alternatives: options.alternatives().map(alternative).collect() });
    }
    blocked.find_lines();
    blocked
}

/// Whether the end of a pause could make an alternative available: no queue shows that.
fn has_pause(blocked: &Blocked<'_>) -> bool {
    let mut claims = blocked.unmet.iter().flat_map(Unmet::claims);
    claims.any(|refused| matches!(refused.reason, Reason::TooSoon { .. }))
}

/// Whether a sleeping launch is now the first in some queue without having been woken, is behind a silent
/// one, or can share slots that its group has got meanwhile.
fn may_go_on(
    acquisition: &Acquisition<'_, '_>,
    place: &PlaceInLine,
    blocked: &Blocked<'_>,
    behind: Option<&(Line, Waiter)>,
) -> Result<bool, KeeperError> {
    for line in &blocked.lines {
        if acquisition.wants.shares(line.table)? {
            return Ok(true);
        }
        let ahead = acquisition.nearest_ahead(line, place.position(acquisition.asker))?;
        let is_slept_behind = behind.is_some_and(|(other, _)| other.table == line.table);
        match (ahead, behind) {
            (None, _) => return Ok(true),
            (Some(ahead), Some((_, slept_behind))) if is_slept_behind => {
                if ahead.number < slept_behind.number {
                    return Ok(true);
                }
            }
            (Some(_), _) => {}
        }
    }
    Ok(false)
}

/// What a waiting launch does between two attempts.
struct Rest<'c> {
    /// When it sends a heartbeat, and checks those of others.
    next_look: Instant,
    /// Whether it has done so before the last attempt.
    has_looked: bool,
    /// When the decision was last found to hold.
    held_at: Instant,
    watched: Watched,
    endings: Endings<'c>,
}

impl<'c> Rest<'c> {
    fn holds(&mut self, watch: &mut Watch<'_>) -> bool {
        holds(&mut self.held_at, watch)
    }

    /// Sleeps until another attempt makes sense, or the launch must be judged again.
    fn wait(
        &mut self,
        acquisition: &Acquisition<'c, '_>,
        place: &mut PlaceInLine,
        blocked: &mut Blocked<'c>,
        is_stuck: bool,
        deadline: Option<Instant>,
        watch: &mut Watch<'_>,
    ) -> Result<ControlFlow<()>, KeeperError> {
        let Acquisition { asker, wants, .. } = acquisition;
        // A second of sleep, however long the attempt took; if a table is locked, the attempt was the sleep.
        if std::mem::take(&mut self.has_looked) && !is_stuck {
            self.next_look = Instant::now() + HEARTBEAT_INTERVAL;
        }
        let mut heads = Vec::new();
        let mut behind = None;
        let mut has_left = false;
        // If it is stuck, there is nothing to see.
        for line in std::mem::take(&mut blocked.lines) {
            if !is_stuck {
                match acquisition.nearest_ahead(&line, place.position(asker))? {
                    Some(ahead) => {
                        blocked.stand_behind(&line);
                        behind = behind.or(Some((line, ahead)));
                    }
                    // The launches ahead have left, and only they kept this one from the free slots.
                    None if line.is_behind => has_left = true,
                    None => heads.push(line.table),
                }
            }
            blocked.lines.push(line);
        }
        // A launch ends overdue holders where it is first: others would end more than they acquire. While it
        // sees nothing, it goes no further, and keeps what it has begun.
        if heads.is_empty() && !is_stuck {
            self.endings.leave_alone(asker)?;
        }
        self.held_at = Instant::now();
        if tell_watcher(place, wants, asker.generation, blocked, watch).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if !has_left && !heads.is_empty() {
            self.endings.begin(blocked, asker)?;
        }
        // The attempt already waited for a table that is locked for long.
        let is_awake = is_stuck || has_left || !heads.is_empty() && self.watched.watch(blocked, &heads);
        loop {
            let longest = self.longest(deadline);
            let is_over = if is_awake || is_over(deadline) {
                true
            } else if let (true, Some((line, ahead))) = (heads.is_empty(), &behind) {
                wants.table(line.table).sleep_behind(ahead, longest)? == Woken::Left
            } else {
                self.watched.sleep(&self.endings, longest)?;
                if !self.holds(watch) {
                    return Ok(ControlFlow::Break(()));
                }
                self.endings.advance(asker)?;
                true
            };
            let is_second_over = self.next_look <= Instant::now();
            if is_second_over {
                self.next_look = Instant::now() + HEARTBEAT_INTERVAL;
                self.has_looked = true;
                place.beat()?;
                acquisition.look_ahead(blocked, place.position(asker))?;
                if !is_over {
                    self.held_at = Instant::now();
                    if tell_watcher(place, wants, asker.generation, blocked, watch).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            // Only an attempt finds that nothing but ancestors is left to wait for.
            if is_over
                || is_second_over
                    && (place.idle_since.is_some()
                        || !asker.launch.ancestors.is_empty()
                        || has_pause(blocked)
                        || may_go_on(acquisition, place, blocked, behind.as_ref())?)
            {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    /// The time until something is to be done.
    fn longest(&self, deadline: Option<Instant>) -> Duration {
        let next = deadline.map_or(self.next_look, |deadline| deadline.min(self.next_look));
        let left = next.saturating_duration_since(Instant::now());
        self.endings.left().map_or(left, |until_signal| until_signal.min(left))
    }
}

/// Whether the decision holds, as far as was seen within the last second.
pub(super) fn holds(held_at: &mut Instant, watch: &mut Watch<'_>) -> bool {
    let now = Instant::now();
    if now.saturating_duration_since(*held_at) < HEARTBEAT_INTERVAL {
        return true;
    }
    let holds = watch(None).is_continue();
    if holds {
        *held_at = now;
    }
    holds
}

/// The claim that is shown while waiting: the first that is waited for, one that is not closed before
/// one that is.
pub(super) fn shown<'b, 'c>(unmet: &'b [Unmet<'c>]) -> Option<&'b Refused<'c>> {
    let waited_for =
        unmet.iter().flat_map(|unmet| &unmet.alternatives).filter(|alternative| !alternative.is_unwaited());
    let is_closed = |refused: &&Refused<'_>| refused.claim.amount.effective_limit() == 0;
    let in_line =
        waited_for.flat_map(|alternative| &alternative.refused).filter(|refused| refused.line.is_some());
    in_line.min_by_key(is_closed)
}

/// Reports the position of the launch to its observer.
fn tell_watcher(
    place: &PlaceInLine,
    wants: &Wants<'_>,
    generation: u16,
    blocked: &Blocked<'_>,
    watch: &mut Watch<'_>,
) -> ControlFlow<()> {
    let Some((line, claim)) = shown(&blocked.unmet).and_then(|refused| Some((refused.line?, refused.claim)))
    else {
        return watch(None);
    };
    let class = Class { generation: wants.generation_on(line.table, generation), capacity: line.capacity };
    let (table, unmet) = (wants.table(line.table), &blocked.unmet);
    let line = LineSeen::Here { table, class, number: place.number };
    watch(Some(&Waiting { unmet, claim, line }))
}

// A launch that joins no queue: it gets everything at once, or is refused.

/// Acquires the slots of all demands, or nothing; waits for no slot. If only waiters block the launch, it
/// checks for some seconds whether they are alive, and ends overdue holders if that makes room.
pub fn acquire<'c>(demands: &'c [Demand], asker: &AcquireContext<'_>) -> Result<Outcome<'c>, KeeperError> {
    acquire_watched(demands, asker, &mut |_| ControlFlow::Continue(()))
}

/// The same while the decision holds. `watch` is called about once a second.
pub fn acquire_watched<'c>(
    demands: &'c [Demand],
    asker: &AcquireContext<'_>,
    watch: &mut Watch<'_>,
) -> Result<Outcome<'c>, KeeperError> {
    let mut acquisition = Acquisition::open(demands, asker, &[])?;
    let (liveness, clocks) = (LivenessTracker::default(), Clocks::default());
    let (mut endings, mut last_look, begun) = (Endings::default(), FinalProbe::default(), Instant::now());
    let mut held_at = begun;
    loop {
        let newcomer = QueuePosition::newcomer(asker.generation, Some(&liveness));
        let (decided, locked) = match acquisition.attempt(newcomer, PATIENCE) {
            Err(error) if error.is_crowded() && begun.elapsed() < LONGEST_PATIENCE => continue,
            attempted => attempted?,
        };
        let mut blocked = match decided {
            Decided::Granted(grant) => {
                let outcome = if holds(&mut held_at, watch) {
                    Outcome::Granted(grant)
                } else {
                    grant.withdraw()?;
                    Outcome::Interrupted
                };
                drop(locked);
                endings.leave_alone(asker)?;
                return Ok(outcome);
            }
            Decided::Blocked(blocked) => blocked,
        };
        drop(locked);
        if !holds(&mut held_at, watch) {
            endings.leave_alone(asker)?;
            return Ok(Outcome::Interrupted);
        }
        if !blocked.is_final() && last_look.goes_on(&acquisition, &mut blocked, newcomer, &mut endings)? {
            continue;
        }
        WaitCheck { position: newcomer, is_new: true, uid: asker.launch.uid, clocks: &clocks, shut: &[] }
            .mark(&acquisition.wants, &mut blocked)?;
        blocked.fail_without_sample()?;
        return Ok(Outcome::Refused(Refusal { unmet: blocked.unmet, waited: None }));
    }
}

/// Acquires the slots of all demands, or nothing, in one attempt: for simulated launches. It waits for
/// nothing, not even to show that waiters are alive.
pub fn acquire_at_once<'c>(
    demands: &'c [Demand],
    asker: &AcquireContext<'_>,
) -> Result<Outcome<'c>, KeeperError> {
    let mut acquisition = Acquisition::open(demands, asker, &[])?;
    let position = QueuePosition::newcomer(asker.generation, None);
    match acquisition.attempt(position, PATIENCE)?.0 {
        Decided::Granted(grant) => Ok(Outcome::Granted(grant)),
        Decided::Blocked(mut blocked) => {
            let clocks = Clocks::default();
            WaitCheck { position, is_new: true, uid: asker.launch.uid, clocks: &clocks, shut: &[] }
                .mark(&acquisition.wants, &mut blocked)?;
            blocked.fail_without_sample()?;
            Ok(Outcome::Refused(Refusal { unmet: blocked.unmet, waited: None }))
        }
    }
}
