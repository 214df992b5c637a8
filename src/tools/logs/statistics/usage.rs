//! How much of a repository was in use: a number, or bounds if ends are unknown.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;

use super::{EXACT, End, Held, Run, Taken, joiner::Time};
use crate::launch::log::event::TableSeen;

/// A number of which only this is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds<T> {
    /// It is not less.
    #[serde(rename = "at_least")]
    pub low: T,
    /// It is not more.
    #[serde(rename = "at_most")]
    pub high: T,
}

impl<T: PartialEq> Bounds<T> {
    /// Whether it is known.
    pub fn is_exact(&self) -> bool {
        self.low == self.high
    }
}

/// How well the ends of programs are known.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Ends {
    /// They were seen within a second.
    pub exact: u64,
    /// They lie between two moments.
    pub bounded: u64,
    /// They were not seen: it is only known that the slot was free later.
    pub missed: u64,
    /// The programs still ran when the log ended.
    pub running: u64,
}

impl Ends {
    /// One more.
    pub fn add(&mut self, run: &Run) {
        match run.end {
            End::Running => self.running += 1,
            _ if run.is_bounded && run.to - run.from <= EXACT => self.exact += 1,
            End::Seen => self.bounded += 1,
            End::Missed => self.missed += 1,
        }
    }
}

/// How many moments at which a table was full are remembered until its next free slot is known.
const MOST_MARKS: usize = 4096;

/// How many programs of a repository are sorted to determine how many ran at once.
const MOST_INTERVALS: usize = 200_000;

/// A program that had slots.
#[derive(Debug)]
struct Interval {
    table: u32,
    slots: u64,
    began: u64,
    from: u64,
    to: u64,
}

/// The use of one repository.
#[derive(Debug, Default)]
pub struct Usage {
    /// Over time.
    pub timeline: Timeline,
    /// How its programs ended.
    pub ends: Ends,
    /// Whether each member has its own table, as far as the log shows.
    pub has_members: bool,
    /// The last limit in the log, and the highest.
    pub limit: Option<u64>,
    pub highest_limit: u64,
    slot_time: (u128, u128),
    /// The maximum use that starts saw, the maximum that the log allows, and the maximum of one launch.
    observed: u64,
    possible: u64,
    largest: u64,
    /// Starts that did not record the held slots.
    unobserved: u64,
    /// Runs whose bounds do not hold, because the table is unknown.
    unbounded: u64,
    /// Whether several members may have been counted as one.
    unproved: bool,
    /// If starts did not record the held slots: the slots of programs, with their tables and times.
    intervals: Vec<Interval>,
    swept: Option<Bounds<u64>>,
    /// Whether there were too many.
    is_overflown: bool,
    /// For each full table, when launches found it full.
    full: HashMap<u32, VecDeque<u64>>,
    full_time: u128,
}

impl Usage {
    /// A launch has taken slots.
    pub fn take(&mut self, taken: &Taken<'_>, at: u64, step: u64) {
        let seen = taken.seen;
        self.unbounded += u64::from(taken.table.is_none());
        self.largest = self.largest.max(taken.count);
        let used = match seen.and_then(|seen| seen.used) {
            Some(used) => {
                self.observed = self.observed.max(used);
                used
            }
            None => {
                self.unobserved += 1;
                taken.occupied
            }
        };
        self.possible = self.possible.max(used);
        let of = self.timeline.at(at, step);
        of.most = of.most.max(used);
        of.lent += seen.map_or(0, |seen| seen.lent);
        if let Some(seen) = seen {
            self.see(seen, at, step);
            if seen.used.is_some_and(|used| used >= seen.whole_limit())
                && let Some(table) = taken.table
            {
                self.mark(table, at);
            }
        }
    }

    /// The state of a table that a decision saw.
    pub fn see(&mut self, seen: &TableSeen, at: u64, step: u64) {
        self.has_members |= seen.member.is_some();
        if seen.shared {
            return;
        }
        let limit = seen.whole_limit();
        self.limit = Some(limit);
        self.highest_limit = self.highest_limit.max(limit);
        let of = self.timeline.at(at, step);
        of.limit = of.limit.max(limit);
        of.kept = of.kept.max(seen.kept);
    }

    fn mark(&mut self, table: u32, at: u64) {
        let marks = self.full.entry(table).or_default();
        if marks.len() < MOST_MARKS {
            marks.push_back(at);
        }
    }

    /// A table has a slot free again.
    pub fn free(&mut self, table: u32, at: u64) {
        let Some(marks) = self.full.get_mut(&table) else { return };
        if let Some(first) = marks.front().filter(|first| **first <= at) {
            self.full_time += u128::from(at - first);
        }
        while marks.front().is_some_and(|mark| *mark <= at) {
            marks.pop_front();
        }
        if marks.is_empty() {
            self.full.remove(&table);
        }
    }

    /// This number of slots was held by a program that has ended.
    pub fn hold(&mut self, held: &Held, run: &Run, step: u64) {
        let slots = held.slots.count();
        if held.time.is_none() {
            self.ends.add(run);
        }
        let Run { began, from, to, .. } = *run;
        let Time { began, from, to } = held.time.unwrap_or(Time { began, from, to });
        self.unproved |= !held.is_one;
        if self.unobserved > 0 {
            self.is_overflown |= self.intervals.len() >= MOST_INTERVALS;
            if !self.is_overflown {
                self.intervals.push(Interval { table: held.table, slots, began, from, to });
            }
        }
        if run.end == End::Missed && !run.is_bounded {
            self.unbounded += 1;
            return;
        }
        let time = |end: u64| u128::from(slots) * u128::from(end.saturating_sub(began));
        self.slot_time.0 += time(from);
        self.slot_time.1 += time(to);
        self.timeline.hold(slots, began, to, step);
    }

    /// The log is over.
    pub fn close(&mut self, last: u64) {
        for marks in std::mem::take(&mut self.full).into_values() {
            let first = marks.front().copied().unwrap_or(last);
            self.full_time += u128::from(last.saturating_sub(first));
        }
        if self.unobserved > 0 && !self.is_overflown {
            let (low, _) = self.sweep(|run| run.from);
            let (high, full) = self.sweep(|run| run.to);
            self.full_time += full;
            self.swept = Some(Bounds { low, high });
        }
        self.intervals = Vec::new();
    }

    /// The maximum number of slots of one table that were held at once, and how long all were held, if
    /// programs ended then.
    fn sweep(&self, end: impl Fn(&Interval) -> u64) -> (u64, u128) {
        // Ends at a moment precede starts at that moment.
        let mut changes: Vec<(u32, u64, bool, u64)> = Vec::with_capacity(2 * self.intervals.len());
        for run in &self.intervals {
            changes.push((run.table, run.began, true, run.slots));
            // A program that may have ended at once had its slots for a moment nevertheless.
            changes.push((run.table, end(run).max(run.began + 1), false, run.slots));
        }
        changes.sort_unstable();
        let (mut most, mut full, mut held, mut before) = (0, 0, 0_u64, (0, 0));
        for (table, at, begins, slots) in changes {
            if table != before.0 {
                held = 0;
            } else if self.limit.is_some_and(|limit| held >= limit) {
                full += u128::from(at - before.1);
            }
            held = if begins { held + slots } else { held.saturating_sub(slots) };
            most = most.max(held);
            before = (table, at);
        }
        (most, full)
    }

    /// How many slots were held at once, at most. Where each member has a table, of one member.
    pub fn most(&self) -> Bounds<u64> {
        // Use increases only at starts, so starts that saw all slots saw the maximum.
        if self.unobserved == 0 {
            return Bounds { low: self.observed, high: self.observed };
        }
        let low = self.observed.max(self.largest);
        let high = self.possible.max(low);
        match self.swept {
            // The sum over several members that were counted as one has no meaning.
            Some(swept) if !self.unproved => {
                Bounds { low: low.max(swept.low), high: high.min(swept.high.max(low)) }
            }
            _ => Bounds { low, high },
        }
    }

    /// How many slots were held on average, over this length of time; none if unknown.
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    pub fn average(&self, span: u64) -> Option<Bounds<f64>> {
        if self.unbounded > 0 {
            return None;
        }
        // For one table the average never exceeds the maximum: a bound of an end may overlap the next start
        // briefly.
        let most = if self.has_members { f64::INFINITY } else { self.possible as f64 };
        let over = |slot_time: u128| (slot_time as f64 / span.max(1) as f64).min(most);
        Some(Bounds { low: over(self.slot_time.0), high: over(self.slot_time.1) })
    }

    /// The maximum share of the time without a free slot; none if the log has no limit, or each member has
    /// its own.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub fn full_share(&self, span: u64) -> Option<f64> {
        let is_swept = self.unobserved == 0 || self.swept.is_some();
        let is_told = self.limit.is_some() && !self.has_members && self.unbounded == 0 && is_swept;
        is_told.then(|| (self.full_time as f64 / span.max(1) as f64).min(1.0))
    }

    /// Slots times microseconds, at most.
    pub fn slot_time(&self) -> u128 {
        self.slot_time.1
    }

    /// Whether the ends of its programs are in the log.
    pub fn is_known(&self) -> bool {
        self.ends.missed == 0
    }
}

// Events over time, in steps that grow with the log: minutes in a log of an hour, days in one of a year. So
// a drawing has enough points, and memory a bound.

/// In microseconds.
pub const MINUTE: u64 = 60_000_000;

/// The possible lengths of a step, in minutes: each is a multiple of the one before.
const LADDER: [u64; 9] = [1, 5, 15, 60, 180, 360, 720, 1440, 10_080];

/// More steps than this a timeline never has.
const MOST: u64 = 360;

/// The length of the steps of a log with this begin and end, in microseconds.
pub fn step_for(begin: u64, end: u64) -> u64 {
    let fits = |step: &u64| end / (step * MINUTE) - begin / (step * MINUTE) < MOST;
    let weeks = |step: u64| std::iter::successors(Some(step), |step| step.checked_mul(2)).find(fits);
    LADDER.into_iter().find(fits).or_else(|| weeks(10_080)).unwrap_or(u64::MAX / MINUTE) * MINUTE
}

/// The events within one step.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Step {
    /// Slots times microseconds, at most.
    pub slot_time: u64,
    /// How many slots were held when the step began, at most.
    pub carried: u64,
    /// How many were held at once, at most.
    pub most: u64,
    /// The limit, if the log has it.
    pub limit: u64,
    /// The maximum number of idle reserved slots, as far as the log shows.
    pub kept: u64,
    /// How many slots were lent to those who started.
    pub lent: u64,
    /// How many launches started.
    pub started: u64,
    /// How many were refused.
    pub refused: u64,
    /// How many waited, and started.
    pub waited: u64,
}

impl Step {
    /// Adds the step that follows.
    fn append(&mut self, next: &Self) {
        let Self { slot_time, carried, most, limit, kept, lent, started, refused, waited } = *next;
        self.slot_time = self.slot_time.saturating_add(slot_time);
        self.most = self.most.max(most).max(carried);
        self.limit = self.limit.max(limit);
        self.kept = self.kept.max(kept);
        self.lent += lent;
        self.started += started;
        self.refused += refused;
        self.waited += waited;
    }

    /// How many slots were held at once within it, at most.
    pub fn peak(&self) -> u64 {
        self.most.max(self.carried)
    }
}

/// The steps in which something happened, in order, each with its number since 1970.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    step: u64,
    steps: Vec<(u64, Step)>,
}

impl Timeline {
    /// The step of a moment, where steps are this long at least.
    pub fn at(&mut self, micros: u64, step: u64) -> &mut Step {
        self.widen(step);
        let number = micros / self.step;
        let place = match self.steps.last() {
            Some((last, _)) if *last == number => self.steps.len() - 1,
            Some((last, _)) if *last > number => {
                let place = self.steps.partition_point(|(known, _)| *known < number);
                if self.steps[place].0 != number {
                    self.steps.insert(place, (number, Step::default()));
                }
                place
            }
            _ => {
                self.steps.push((number, Step::default()));
                self.steps.len() - 1
            }
        };
        &mut self.steps[place].1
    }

    /// This number of slots was held in this span of time.
    pub fn hold(&mut self, slots: u64, from: u64, to: u64, step: u64) {
        self.widen(step);
        let mut since = from;
        while since < to {
            let end = (since / self.step).saturating_add(1).saturating_mul(self.step).min(to);
            let width = self.step;
            let of = self.at(since, width);
            of.slot_time = of.slot_time.saturating_add(slots.saturating_mul(end - since));
            if since > from {
                of.carried = of.carried.saturating_add(slots);
            }
            since = end;
        }
    }

    /// Extends shorter steps to this length.
    pub fn widen(&mut self, step: u64) {
        if self.step >= step {
            return;
        }
        let before = std::mem::replace(&mut self.step, step);
        let mut wide: Vec<(u64, Step)> = Vec::new();
        for (number, short) in self.steps.drain(..) {
            let begin = number * before;
            match wide.last_mut() {
                Some((last, of)) if *last == begin / step => of.append(&short),
                _ if begin.is_multiple_of(step) => wide.push((begin / step, short)),
                _ => {
                    let mut of = Step::default();
                    of.append(&short);
                    wide.push((begin / step, of));
                }
            }
        }
        self.steps = wide;
    }

    /// The steps in which something happened, each with the moment at which it begins.
    pub fn steps(&self) -> impl Iterator<Item = (u64, &Step)> {
        self.steps.iter().map(|(number, step)| (number * self.step, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_become_longer_as_the_log_does() {
        let hour = 60 * MINUTE;
        for (length, minutes) in
            [(0, 1), (MINUTE, 1), (5 * hour, 1), (7 * hour, 5), (24 * hour, 5), (14 * 24 * hour, 60)]
        {
            assert_eq!(step_for(1_790_035_200_000_000, 1_790_035_200_000_000 + length), minutes * MINUTE);
        }
        assert!(step_for(0, u64::MAX) > 0);
    }

    #[test]
    fn what_is_held_is_the_same_in_steps_of_any_length() {
        let mut timeline = Timeline::default();
        timeline.hold(2, 30_000_000, 150_000_000, MINUTE);
        timeline.hold(1, 130_000_000, 140_000_000, MINUTE);
        let of = |timeline: &Timeline| -> Vec<(u64, u64, u64)> {
            timeline.steps().map(|(begin, step)| (begin, step.slot_time, step.peak())).collect()
        };
        let minutes = [(0, 60_000_000, 0), (MINUTE, 120_000_000, 2), (2 * MINUTE, 70_000_000, 2)];
        assert_eq!(of(&timeline), minutes);
        timeline.widen(5 * MINUTE);
        assert_eq!(of(&timeline), [(0, 250_000_000, 2)]);
    }
}
