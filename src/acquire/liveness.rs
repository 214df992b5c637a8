//! Which waiters of a queue are alive. A waiter sends a heartbeat each second. A waiter without a new one in
//! several successive checks, at least a second apart, is silent, and is passed over until its next
//! heartbeat. Checks count and not seconds, so a pause of the machine proves nothing. A waiter may be frozen,
//! stopped where it is not visible, or a lock of another program: from outside these look the same.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{Blocked, Endings, Reason, Refused, Unmet, Unwaited};
use crate::{
    judge::terms::{Claim, Wait},
    keeper::{Class, Heartbeat, KeeperError, Number, TableId, Waiter, table::Table},
    sys::{Failure, PidFd, process},
};

/// The time between two heartbeats, and between two checks for them. It is also the longest wait for a lock
/// or a policy during which a waiter sends none. Unit tests do not need as much.
pub const HEARTBEAT_INTERVAL: Duration = if cfg!(test) { Duration::from_millis(10) } else { INTERVAL };

const INTERVAL: Duration = Duration::from_secs(1);

/// The number of checks that find no new heartbeat after which a waiter is silent.
pub const MISSED_HEARTBEATS: u8 = 3;

/// The time of these heartbeats: who waits has sent one, or has seen that the policy changed, unless it is
/// silent.
pub const SILENCE: Duration = INTERVAL.saturating_mul(MISSED_HEARTBEATS as u32);

/// How many waiters are checked in one queue per second, from either end, beside those that are silent.
const MOST_LOOKED_AT: usize = 16;

/// The number of waiters that are read one by one before the whole queue is read.
const MOST_ASKED_FOR: usize = 16;

/// The maximum number of waiters that are checked for being stopped. A stopped waiter is also silent.
const MOST_STOPPED: usize = 64;

/// Entries that are not checked for this long are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// What was seen of other waiters until now.
#[derive(Default)]
pub struct LivenessTracker {
    seen: RefCell<BTreeMap<(TableId, Number), Seen>>,
}

struct Seen {
    pulse: Option<Heartbeat>,
    at: Instant,
    unchanged: u8,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sign {
    /// It has sent a heartbeat since the last check, or cannot: its silence would prove nothing.
    Alive,
    /// Nothing yet.
    None,
    /// It has sent none for several checks.
    Silent,
}

impl LivenessTracker {
    pub(super) fn look(&self, table: &Table, waiter: &Waiter) -> Result<Sign, KeeperError> {
        let pulse = table.pulse(waiter.number)?;
        let now = Instant::now();
        let mut seen = self.seen.borrow_mut();
        let Some(known) = seen.get_mut(&(table.id(), waiter.number)) else {
            seen.insert((table.id(), waiter.number), Seen { pulse, at: now, unchanged: 0 });
            return Ok(Sign::None);
        };
        if known.pulse != pulse || pulse.is_some_and(|pulse| pulse.is_blocked) {
            let is_same_waiter = known.pulse.map(|pulse| pulse.pid) == pulse.map(|pulse| pulse.pid);
            *known = Seen { pulse, at: now, unchanged: 0 };
            return Ok(if is_same_waiter { Sign::Alive } else { Sign::None });
        }
        if now.duration_since(known.at) >= HEARTBEAT_INTERVAL {
            known.at = now;
            known.unchanged = known.unchanged.saturating_add(1);
        }
        Ok(if known.unchanged >= MISSED_HEARTBEATS { Sign::Silent } else { Sign::None })
    }

    /// Checks the launches that a launch with this number and class may not overtake. It starts with the
    /// nearest and stops at the first that is alive. Each silent one lets it check one more, so that in the
    /// end it has checked all of them, however many there are. If only launches that do not start are left,
    /// it starts with the oldest. Returns whether one of them is alive.
    pub fn look_ahead(
        &self,
        table: &Table,
        number: Option<Number>,
        class: Class,
    ) -> Result<bool, KeeperError> {
        self.seen.borrow_mut().retain(|_, seen| seen.at.elapsed() < FORGOTTEN);
        let (mut is_any_alive, mut left) = (false, MOST_LOOKED_AT);
        let last = find_ahead(table, number, |waiter| {
            if class.passes(waiter.class) {
                return Ok(false);
            }
            match self.look(table, waiter)? {
                Sign::Alive => is_any_alive = true,
                Sign::None => left -= 1,
                Sign::Silent => left += 1,
            }
            Ok(is_any_alive || left == 0)
        })?;
        let Some(last) = last else { return Ok(is_any_alive) };
        let mut from = Number(1);
        for _ in 0..MOST_LOOKED_AT {
            let Some(waiter) = table.oldest(from, Some(last.number))? else { break };
            if !class.passes(waiter.class) && self.look(table, &waiter)? == Sign::Alive {
                is_any_alive = true;
                break;
            }
            from = waiter.number.next();
        }
        Ok(is_any_alive)
    }

    /// Whether a waiter was silent for long enough and still is. It is checked again while the table is
    /// locked.
    pub fn is_silent(&self, table: &Table, waiter: &Waiter) -> Result<bool, KeeperError> {
        let seen = self.seen.borrow();
        let Some(known) =
            seen.get(&(table.id(), waiter.number)).filter(|seen| seen.unchanged >= MISSED_HEARTBEATS)
        else {
            return Ok(false);
        };
        Ok(table.pulse(waiter.number)? == known.pulse)
    }
}

/// The position of a launch in the order of arrival, from which it judges a table.
#[derive(Clone, Copy)]
pub struct QueuePosition<'a> {
    /// Its number; none if it has none yet, and so comes after all others.
    pub number: Option<Number>,
    /// The policy that its limits come from.
    pub generation: u16,
    /// The waiters that it knows to be silent; none if it has not checked.
    pub liveness: Option<&'a LivenessTracker>,
}

impl<'a> QueuePosition<'a> {
    /// The position of a launch that does not wait.
    pub fn newcomer(generation: u16, liveness: Option<&'a LivenessTracker>) -> Self {
        Self { number: None, generation, liveness }
    }

    /// The youngest launch that a launch with this capacity may not overtake.
    pub fn nearest_ahead(&self, table: &Table, capacity: u64) -> Result<Option<Waiter>, KeeperError> {
        let class = Class { generation: self.generation, capacity };
        let mut stopped = Stopped::default();
        find_ahead(table, self.number, |waiter| Ok(!self.passes(table, class, waiter, &mut stopped)?))
    }

    /// The waiters of a queue that a launch with this capacity may not overtake.
    pub(super) fn all_ahead<'w>(
        &self,
        table: &Table,
        capacity: u64,
        line: &'w [Waiter],
    ) -> Result<Vec<&'w Waiter>, KeeperError> {
        let class = Class { generation: self.generation, capacity };
        let mut stopped = Stopped::default();
        let mut ahead = Vec::new();
        for waiter in line {
            let is_older = self.number.is_none_or(|number| waiter.number < number);
            if is_older && !self.passes(table, class, waiter, &mut stopped)? {
                ahead.push(waiter);
            }
        }
        Ok(ahead)
    }

    /// Whether it need not wait behind an older launch.
    fn passes(
        &self,
        table: &Table,
        class: Class,
        older: &Waiter,
        stopped: &mut Stopped,
    ) -> Result<bool, KeeperError> {
        if class.passes(older.class) || stopped.has(table, older) {
            return Ok(true);
        }
        self.liveness.map_or(Ok(false), |liveness| liveness.is_silent(table, older))
    }
}

/// The youngest launch before a number, or of all, that is the one searched for. Mostly it is near.
fn find_ahead(
    table: &Table,
    mut before: Option<Number>,
    mut is_it: impl FnMut(&Waiter) -> Result<bool, KeeperError>,
) -> Result<Option<Waiter>, KeeperError> {
    for _ in 0..MOST_ASKED_FOR {
        let Some(waiter) = table.youngest(before)? else { return Ok(None) };
        if is_it(&waiter)? {
            return Ok(Some(waiter));
        }
        before = Some(waiter.number);
    }
    let line = table.all_waiters()?;
    for waiter in line.into_iter().rev().filter(|waiter| before.is_none_or(|before| waiter.number < before)) {
        if is_it(&waiter)? {
            return Ok(Some(waiter));
        }
    }
    Ok(None)
}

/// The stopped processes; each process is checked once, because a scan of the queue must not read `/proc`
/// without bound.
#[derive(Default)]
struct Stopped {
    asked: BTreeMap<i32, bool>,
}

impl Stopped {
    /// Whether a waiter is visibly stopped.
    fn has(&mut self, table: &Table, waiter: &Waiter) -> bool {
        // Tables in memory need no watching.
        if table.in_memory().is_some() {
            return table.is_stopped(waiter);
        }
        let Some(pid) = waiter.pid_here() else { return false };
        if let Some(known) = self.asked.get(&pid) {
            return *known;
        }
        let is_stopped = self.asked.len() < MOST_STOPPED && table.is_stopped(waiter);
        self.asked.insert(pid, is_stopped);
        is_stopped
    }
}

// The holders whose end the first waiter waits for.

/// How many holders the first waiter watches by descriptor; it notices the ends of others at its next check.
const MOST_WATCHED: usize = 256;

/// The processes that the first waiter waits for.
#[derive(Default)]
pub(super) struct Watched {
    /// By process id; none if the process could not be opened, which is tried once.
    processes: Vec<(i32, Option<PidFd>)>,
}

impl Watched {
    /// Watches the holders of these tables, and no others. Returns whether any is new: it may have ended
    /// before it was watched, so everything must be checked again.
    pub(super) fn watch(&mut self, blocked: &Blocked<'_>, tables: &[TableId]) -> bool {
        let keepers = keepers(blocked, tables);
        self.processes.retain(|(pid, _)| keepers.contains(pid));
        let mut is_any_new = false;
        for pid in keepers {
            if self.processes.iter().all(|(watched, _)| *watched != pid) {
                self.processes.push((pid, PidFd::open(pid).ok()));
                is_any_new = true;
            }
        }
        is_any_new
    }

    /// Sleeps until one of them, or one that is being ended, has ended.
    pub(super) fn sleep(&self, endings: &Endings<'_>, longest: Duration) -> Result<(), KeeperError> {
        let watched = self.processes.iter().filter_map(|(_, process)| process.as_ref());
        process::wait_for_any(watched.chain(endings.processes()), longest)
            .map(drop)
            .map_err(|errno| KeeperError::Wait(Failure { call: "poll", errno }))
    }
}

fn keepers(blocked: &Blocked<'_>, tables: &[TableId]) -> Vec<i32> {
    let mut keepers = Vec::new();
    let refused = blocked.unmet.iter().flat_map(Unmet::claims);
    for refused in refused.filter(|refused| tables.contains(&refused.table)) {
        let Reason::Full(full) = &refused.reason else { continue };
        for pid in full.holders().iter().filter_map(|holder| holder.keeper) {
            if keepers.len() < MOST_WATCHED && !keepers.contains(&pid) {
                keepers.push(pid);
            }
        }
    }
    keepers
}

// How long a launch has waited in each of its queues. The clock of a claim runs while the launch waits in
// its queue, and stops while something else blocks it. It continues when the launch is judged again.

/// A clock for each line.
#[derive(Default)]
pub(super) struct Clocks {
    stood: BTreeMap<TableId, Clock>,
    /// Before this moment no wait times out.
    not_before: Option<Instant>,
    /// The time, if it is simulated.
    imagined: Option<Instant>,
}

#[derive(Clone, Copy, Default)]
struct Clock {
    before: Duration,
    since: Option<Instant>,
}

impl Clock {
    fn at(self, now: Instant) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

impl Clocks {
    /// Sets the time, until it is set again.
    pub(super) fn imagine(&mut self, now: Instant) {
        self.imagined = Some(now);
    }

    fn now(&self) -> Instant {
        self.imagined.unwrap_or_else(Instant::now)
    }

    /// Whether this moment has come.
    pub(super) fn is_after(&self, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|deadline| deadline <= self.now())
    }

    /// Starts the clocks of these queues, and stops all others.
    pub(super) fn run(&mut self, lines: &[TableId]) {
        let now = self.now();
        for (table, clock) in &mut self.stood {
            if !lines.contains(table) {
                *clock = Clock { before: clock.at(now), since: None };
            }
        }
        for table in lines {
            self.stood.entry(*table).or_default().since.get_or_insert(now);
        }
    }

    /// How long it was in this queue.
    pub(super) fn stood(&self, table: TableId) -> Duration {
        self.stood.get(&table).map_or(Duration::ZERO, |clock| clock.at(self.now()))
    }

    /// Continues the clock of a queue in which it already waited this long.
    pub(super) fn goes_on(&mut self, table: TableId, before: Duration, runs: bool) {
        let since = runs.then(|| self.now());
        self.stood.insert(table, Clock { before, since });
    }

    /// Whether this one runs.
    pub(super) fn is_running(&self, table: TableId) -> bool {
        self.stood.get(&table).is_some_and(|clock| clock.since.is_some())
    }

    /// Lets no wait time out for this long, unless it would have been over before.
    pub(super) fn spare(&mut self, longest: Duration, over: Option<Instant>) {
        let soon = self.now() + longest;
        self.not_before = Some(over.map_or(soon, |over| over.min(soon)));
    }

    /// The time left for a claim on one table; none if it is unlimited.
    pub(super) fn left(&self, claim: &Claim, table: TableId) -> Option<Duration> {
        let Wait::For(longest) = claim.wait.resolve() else { return None };
        let now = self.now();
        let stood = self.stood(table);
        let spared = self.not_before.map_or(Duration::ZERO, |moment| moment.saturating_duration_since(now));
        Some(longest.saturating_sub(stood).max(spared))
    }

    /// Why the launch no longer waits for a claim, if its time is over.
    pub(super) fn unwaited(&self, claim: &Claim, table: TableId) -> Option<Unwaited> {
        (self.left(claim, table)? == Duration::ZERO).then(|| match claim.wait.resolve() {
            Wait::For(longest) if !longest.is_zero() => Unwaited::Over(longest),
            Wait::For(_) | Wait::Forever => Unwaited::Never,
        })
    }

    /// When the time of the whole launch is over, because one of its demands has no claim left to wait for.
    /// None if that never comes.
    pub(super) fn over(&self, blocked: &Blocked<'_>) -> Option<Instant> {
        let left = |refused: &Refused<'_>| self.left(refused.claim, refused.table);
        let demands = blocked.unmet.iter().map(|unmet| {
            let waited_for = unmet.alternatives.iter().filter(|alternative| !alternative.is_unwaited());
            // `forever` is longer than any duration.
            waited_for
                .map(|alternative| alternative.refused.iter().filter_map(left).min().ok_or(()))
                .try_fold(Duration::ZERO, |longest, left| Ok::<_, ()>(longest.max(left?)))
        });
        let shortest = demands.filter_map(Result::ok).min()?;
        self.now().checked_add(shortest)
    }

    /// When the next claim's time is over.
    pub(super) fn next(&self, blocked: &Blocked<'_>) -> Option<Instant> {
        let alternatives = blocked.unmet.iter().flat_map(|unmet| &unmet.alternatives);
        let waited_for = alternatives.filter(|alternative| !alternative.is_unwaited());
        let refused = waited_for.flat_map(|alternative| &alternative.refused);
        let next = refused.filter_map(|refused| self.left(refused.claim, refused.table)).min()?;
        self.now().checked_add(next)
    }
}
