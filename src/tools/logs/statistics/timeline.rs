//! Events over time, in steps that grow with the log: minutes in a log of an hour, days in one of a year. So
//! a drawing has enough points, and memory a bound.

/// In microseconds.
pub const MINUTE: u64 = 60_000_000;

/// How long a step may be, in minutes: each a multiple of the one before.
const LADDER: [u64; 9] = [1, 5, 15, 60, 180, 360, 720, 1440, 10_080];

/// More steps than this a timeline never has.
const MOST: u64 = 360;

/// How long the steps of a log are that begins and ends then, in microseconds.
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

    /// Makes steps that are shorter than this as long.
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
    use crate::tools::logs::statistics::timeline::*;

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
