//! How long launches waited or ran, as a distribution. Up to some thousands of values it is exact: each
//! percentile is a value that occurred. Beyond that values are put into classes, and a percentile is too high
//! by less than 1 in 128. The longest and the shortest are always exact.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

/// How many values are kept one by one.
const KEPT: usize = 4096;

/// The number of classes between a value and its double.
const STEPS: u64 = 128;

/// Lengths of time, in microseconds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Distribution {
    /// Each value, while there are few.
    kept: Vec<u64>,
    /// Otherwise the number in each class, by the longest value of the class.
    classes: BTreeMap<u64, u64>,
    /// How many there are.
    pub count: u64,
    pub longest: u64,
    shortest: u64,
}

/// What is shown of a distribution: in microseconds here, in seconds in documents.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Percentiles {
    #[serde(serialize_with = "in_seconds")]
    pub p50: u64,
    #[serde(serialize_with = "in_seconds")]
    pub p95: u64,
    #[serde(serialize_with = "in_seconds")]
    pub p99: u64,
    #[serde(serialize_with = "in_seconds")]
    pub longest: u64,
}

#[expect(clippy::cast_precision_loss, reason = "times")]
pub fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn in_seconds<S: Serializer>(micros: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(seconds(*micros))
}

impl Distribution {
    /// One more.
    pub fn add(&mut self, micros: u64) {
        self.shortest = if self.count == 0 { micros } else { self.shortest.min(micros) };
        self.count += 1;
        self.longest = self.longest.max(micros);
        if self.is_exact() && self.kept.len() < KEPT {
            return self.kept.push(micros);
        }
        self.classify();
        *self.classes.entry(class_of(micros)).or_default() += 1;
    }

    /// The value that this percentage does not exceed (nearest rank); 0 if there is none.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is between 1 and the number of values"
    )]
    pub fn percentile(&self, percent: f64) -> u64 {
        let rank = ((self.count as f64 * percent / 100.0).ceil() as u64).clamp(1, self.count.max(1));
        if rank == 1 {
            return self.shortest;
        }
        if self.is_exact() {
            let mut sorted = self.kept.clone();
            sorted.sort_unstable();
            return sorted.get(rank as usize - 1).copied().unwrap_or(self.longest);
        }
        let mut seen = 0;
        let reached = self.classes.iter().find(|(_, count)| {
            seen += **count;
            seen >= rank
        });
        reached.map_or(self.longest, |(class, _)| (*class).min(self.longest))
    }

    pub fn percentiles(&self) -> Percentiles {
        let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|percent| self.percentile(percent));
        Percentiles { p50, p95, p99, longest: self.longest }
    }

    /// How many have at least this length, to the precision of the distribution.
    pub fn at_least(&self, micros: u64) -> u64 {
        let kept = self.kept.iter().filter(|kept| **kept >= micros).count() as u64;
        kept + self.classes.range(micros..).map(|(_, count)| count).sum::<u64>()
    }

    /// Lengths with how many there are of each: single values, or classes by their longest.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        let kept = self.kept.iter().map(|micros| (*micros, 1));
        kept.chain(self.classes.iter().map(|(class, count)| (*class, *count)))
    }

    fn is_exact(&self) -> bool {
        self.classes.is_empty()
    }

    fn classify(&mut self) {
        for micros in std::mem::take(&mut self.kept) {
            *self.classes.entry(class_of(micros)).or_default() += 1;
        }
    }
}

/// The longest value of the class of a value. Values below 128 have a class each.
fn class_of(micros: u64) -> u64 {
    if micros < STEPS {
        return micros;
    }
    let doubling = micros.ilog2() - STEPS.ilog2();
    micros | ((1 << doubling) - 1)
}

#[cfg(test)]
mod tests {
    use crate::tools::logs::statistics::distribution::*;

    fn of(values: impl Iterator<Item = u64>) -> Distribution {
        let mut distribution = Distribution::default();
        values.for_each(|micros| distribution.add(micros));
        distribution
    }

    #[test]
    fn few_values_are_exact() {
        let few = of([3, 1, 2, 4].into_iter().map(|seconds| seconds * 1_000_000));
        for (percent, seconds) in [(0.0, 1), (50.0, 2), (75.0, 3), (95.0, 4), (100.0, 4)] {
            assert_eq!(few.percentile(percent), seconds * 1_000_000, "{percent}");
        }
        assert_eq!(few.at_least(3_000_000), 2);
        assert_eq!(Distribution::default().percentile(99.0), 0);
    }

    #[test]
    fn many_values_are_within_one_percent() {
        let many = of((0..100_000).map(|number| number * 37));
        for percent in [1.0, 50.0, 95.0, 99.0, 99.9] {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let (found, exact) = (many.percentile(percent) as f64, percent * 37_000.0);
            assert!((found / exact - 1.0).abs() < 1.0 / 128.0, "{percent}: {found} instead of {exact}");
        }
        assert_eq!((many.percentile(0.0), many.percentile(100.0)), (0, 99_999 * 37));
    }

    #[test]
    fn each_value_is_in_the_class_that_ends_at_or_behind_it() {
        for micros in (0..100_000).chain([u64::MAX >> 3, 1 << 40, u64::MAX]) {
            let class = class_of(micros);
            assert!(
                class >= micros && class - micros <= micros / STEPS && class_of(class) == class,
                "{micros}"
            );
        }
    }
}
