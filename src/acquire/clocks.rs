//! How long a launch has waited in each of its queues. The clock of a claim runs while the launch waits in
//! its queue, and stops while something else blocks it. It continues when the launch is judged again.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{blocked::Blocked, refusal::Refused, unwaited::Unwaited};
use crate::{
    judge::terms::{claim::Claim, span_of_time::Wait},
    keeper::table::TableId,
};

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
    pub(super) fn left(&self, claim: &Claim<'_>, table: TableId) -> Option<Duration> {
        let Wait::For(longest) = claim.wait.resolve() else { return None };
        let now = self.now();
        let stood = self.stood(table);
        let spared = self.not_before.map_or(Duration::ZERO, |moment| moment.saturating_duration_since(now));
        Some(longest.saturating_sub(stood).max(spared))
    }

    /// Why the launch no longer waits for a claim, if its time is over.
    pub(super) fn unwaited(&self, claim: &Claim<'_>, table: TableId) -> Option<Unwaited> {
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
