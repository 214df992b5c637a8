//! A row of the table: two things that were measured in turn, and how they compare.

use std::fmt;
use std::time::{Duration, Instant};

/// What was measured of one side.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    /// What it is.
    pub(crate) name: String,
    /// In ascending order.
    samples: Vec<f64>,
    unit: &'static str,
}

/// Two sides, and the ratio of their medians that is to be reached.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) ours: Side,
    pub(crate) against: Side,
    pub(crate) reach: f64,
}

impl Side {
    pub(crate) fn new(name: &str, unit: &'static str, mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        Self { name: name.to_owned(), samples, unit }
    }

    /// Of times, in milliseconds.
    pub(crate) fn of_times(name: &str, times: Vec<Duration>) -> Self {
        Self::new(name, "ms", times.into_iter().map(|time| time.as_secs_f64() * 1e3).collect())
    }

    /// The sample below which this part of all of them lies.
    fn quantile(&self, part: f64) -> f64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
        let place = (part * (self.samples.len() - 1) as f64).round() as usize;
        self.samples[place]
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

impl fmt::Display for Side {
    /// The median and the middle half.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = |value: f64| match value {
            value if value >= 100.0 => format!("{value:.0}"),
            value => format!("{value:.3}"),
        };
        write!(f, "{} {}", figure(self.median()), self.unit)?;
        if self.samples.len() > 1 {
            write!(f, " ({}–{})", figure(self.quantile(0.25)), figure(self.quantile(0.75)))?;
        }
        Ok(())
    }
}

impl Row {
    pub(crate) const HEAD: &str = "| what | median (middle half) | against | median (middle half) | ratio | reach |\n\
                                   | --- | --- | --- | --- | --- | --- |";

    pub(crate) fn new(what: String, ours: &Side, against: &Side, reach: f64) -> Self {
        Self { what, ours: ours.clone(), against: against.clone(), reach }
    }

    pub(crate) fn ratio(&self) -> f64 {
        self.ours.median() / self.against.median()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { what, ours, against, reach } = self;
        let ratio = self.ratio();
        let verdict = if ratio <= *reach { "" } else { " (missed)" };
        write!(f, "| {what} | {ours} | {} | {against} | {ratio:.3} | {reach}{verdict} |", against.name)
    }
}

/// Times all of these in turn, so many times after a few that do not count. Each says itself how long it
/// took. The order is another one in each round: who comes after one of its kind finds the caches warm.
pub(crate) fn in_turn<const N: usize>(
    rounds: usize,
    sides: [(&str, &mut dyn FnMut() -> Duration); N],
) -> [Side; N] {
    let mut times = [const { Vec::new() }; N];

    let mut order: [usize; N] = std::array::from_fn(|place| place);
    let mut dice = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..rounds + 3 {
        for last in (1..N).rev() {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(last, usize::try_from(dice >> 33).unwrap_or(0) % (last + 1));
        }
        for place in order {
            let took = (sides[place].1)();
            if round >= 3 {
                times[place].push(took);
            }
        }
    }
    let mut times = times.into_iter();
    sides.map(|(name, _)| Side::of_times(name, times.next().unwrap_or_default()))
}

/// How long this takes.
pub(crate) fn timed(what: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    what();
    begun.elapsed()
}
