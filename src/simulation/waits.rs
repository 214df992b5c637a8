//! How long launches waited, as a distribution: within three percent of each wait, in a few kilobytes
//! whatever there is to count.

/// Steps within one doubling.
const STEPS: u64 = 32;

/// Waits, in microseconds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Waits {
    /// How many there are of each length.
    counts: Vec<u64>,
    /// How many there are.
    pub count: u64,
    /// All of them together.
    pub total: u64,
    /// The longest.
    pub longest: u64,
}

impl Waits {
    /// One more.
    pub fn add(&mut self, micros: u64) {
        let place = place_of(micros);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.count += 1;
        self.total = self.total.saturating_add(micros);
        self.longest = self.longest.max(micros);
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.longest = self.longest.max(other.longest);
    }

    /// The wait that so many percent do not exceed.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count"
    )]
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = (self.count as f64 * percent / 100.0).ceil() as u64;
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted.max(1) {
                return end_of(place).min(self.longest);
            }
        }
        self.longest
    }

    /// How many there are of at least this length, to the precision of the whole.
    pub fn from(&self, micros: u64) -> u64 {
        self.counts.iter().skip(place_of(micros)).sum()
    }

    /// The classes that hold any, each with its longest wait and how many it has.
    pub fn classes(&self) -> impl Iterator<Item = (u64, u64)> {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(place, count)| (end_of(place), *count))
    }
}

/// The class of a wait. Those below 32 have one each.
fn place_of(micros: u64) -> usize {
    if micros < STEPS {
        return usize::try_from(micros).unwrap_or(0);
    }
    let doubling = u64::from(micros.ilog2()) - 5;
    usize::try_from(STEPS * (doubling + 1) + (micros >> doubling) - STEPS).unwrap_or(0)
}

/// The longest wait of a class.
fn end_of(place: usize) -> u64 {
    let place = place as u64;
    if place < STEPS {
        return place;
    }
    let (doubling, step) = (place / STEPS - 1, place % STEPS);
    ((STEPS + step + 1) << doubling).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_within_three_percent() {
        let mut waits = Waits::default();
        (0..100_000).for_each(|number| waits.add(number * 37));
        for percent in [1.0, 50.0, 95.0, 99.0, 99.9] {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let (found, exact) = (waits.percentile(percent) as f64, percent * 37_000.0);
            assert!((found / exact - 1.0).abs() < 0.032, "{percent}: {found} instead of {exact}");
        }
        assert_eq!(waits.percentile(100.0), 99_999 * 37);
        assert_eq!(Waits::default().percentile(99.0), 0);
    }

    #[test]
    fn each_wait_is_in_the_class_that_ends_at_or_behind_it() {
        for micros in (0..100_000).chain([u64::MAX >> 3, 1 << 40]) {
            let place = place_of(micros);
            assert!(end_of(place) >= micros && (place == 0 || end_of(place - 1) < micros), "{micros}");
        }
    }
}
