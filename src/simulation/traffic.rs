//! The launches of a log, in the order in which they came: sixteen bytes for each, so that a year of a large
//! site is a hundred megabytes.

use std::collections::HashMap;

use super::{dice::Dice, durations::Durations, kind::Kind, tally::Tally};
use crate::statistics::{fate::Fate, usage::Ends};

/// One launch.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// When it came, in microseconds since 1970 (52 bits, so until 2112), what became of it (2 bits), and the
    /// upper bits of how long it ran.
    arrived: u64,
    /// Its kind, by number.
    pub kind: u32,
    /// The lower bits of how long it ran.
    lasted: u32,
}

/// Where the parts of the first field begin, and how long they are.
const FATE: u32 = 10;
const ARRIVED: u32 = 12;
const LATEST: u64 = u64::MAX >> ARRIVED;

/// A length of time in 42 bits. Below this it is in microseconds, which is 25 days; from there on in
/// milliseconds.
const MILLIS: u64 = 1 << 41;

/// It did not run, so nobody knows how long.
const UNKNOWN: u64 = (1 << 42) - 1;

impl Launch {
    /// A launch that came then, and ran so long where it is known.
    pub fn new(arrived: u64, kind: u32, fate: Fate, lasted: Option<u64>) -> Self {
        let mut launch =
            Self { arrived: (arrived.min(LATEST) << ARRIVED) | ((fate as u64) << FATE), kind, lasted: 0 };
        launch.set_packed(lasted.map_or(UNKNOWN, packed));
        launch
    }

    /// When it came, in microseconds since 1970.
    pub fn arrived(self) -> u64 {
        self.arrived >> ARRIVED
    }

    /// What became of it.
    pub fn fate(self) -> Fate {
        Fate::ALL[usize::try_from((self.arrived >> FATE) & 3).unwrap_or(0)]
    }

    /// How long it ran, in microseconds.
    pub fn lasted(self) -> Option<u64> {
        match ((self.arrived & ((1 << FATE) - 1)) << 32) | u64::from(self.lasted) {
            UNKNOWN => None,
            micros @ 0..MILLIS => Some(micros),
            millis => Some((millis - MILLIS) * 1000),
        }
    }

    /// Says how long it ran, at most.
    pub(super) fn set_lasted(&mut self, micros: u64) {
        self.set_packed(packed(micros));
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is kept there")]
    fn set_packed(&mut self, length: u64) {
        self.arrived = (self.arrived & !((1 << FATE) - 1)) | (length >> 32);
        self.lasted = length as u32;
    }
}

fn packed(micros: u64) -> u64 {
    if micros < MILLIS { micros } else { (MILLIS + micros / 1000).min(UNKNOWN - 1) }
}

/// Which try it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draw {
    /// What the draws begin with.
    pub seed: u64,
    /// How many came before.
    pub number: u64,
    /// Whether programs whose end is unknown end at once, and not as late as they can have.
    pub is_short: bool,
}

/// A log, as far as a policy can be tried on it.
#[derive(Debug, Default)]
pub struct Traffic {
    /// In the order in which they came.
    pub launches: Vec<Launch>,
    /// Their kinds, by number.
    pub kinds: Vec<Kind>,
    /// For each kind its command, by number.
    pub commands: Vec<u32>,
    /// How long launches ran.
    pub durations: Durations,
    /// How well that is known.
    pub ends: Ends,
    /// For launches whose end is unknown, by number, how long they ran at least.
    pub vague: HashMap<usize, u64>,
    /// What became of them then.
    pub then: Tally,
    /// The last moment of the log, in microseconds since 1970.
    pub end: u64,
    /// Launches whose circumstances the log does not tell.
    pub untold: u64,
    /// A repository of which two hosts held one slot at the same time, each in a lock file of its own.
    pub of_each_host: Option<String>,
}

impl Traffic {
    /// When the first launch came.
    pub fn begin(&self) -> u64 {
        self.launches.first().map_or(self.end, |launch| launch.arrived())
    }

    /// How many days it is.
    #[expect(clippy::cast_precision_loss, reason = "a share of a microsecond is nobody's wait")]
    pub fn days(&self) -> f64 {
        (self.end.saturating_sub(self.begin()) as f64 / 86_400e6).max(1.0 / 86_400.0)
    }

    /// How long a launch runs: as it did, or as its like did. Says whether that was drawn.
    pub fn lasts(&self, index: usize, draw: Draw) -> (u64, bool) {
        let launch = self.launches[index];
        if let Some(lasted) = launch.lasted() {
            let shortest = self.vague.get(&index).filter(|_| draw.is_short);
            return (shortest.copied().unwrap_or(lasted), false);
        }
        let mut dice = Dice::of_launch(draw.seed, draw.number, index as u64);
        let kind = launch.kind as usize;
        let drawn = self.durations.draw(self.kinds[kind].uid, self.commands[kind], &mut dice);
        (drawn.unwrap_or(0), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_exact_for_weeks_and_good_enough_for_years() {
        const DAY: u64 = 86_400_000_000;
        for (micros, kept) in [
            (0, 0),
            (2_147_483_649, 2_147_483_649),
            (25 * DAY + 1, 25 * DAY + 1),
            (MILLIS - 1, MILLIS - 1),
            (MILLIS, MILLIS / 1000 * 1000),
            (365 * DAY + 999, 365 * DAY),
            (u64::MAX, (MILLIS - 2) * 1000),
        ] {
            let mut launch = Launch::new(1_790_000_000_123_456, 7, Fate::TimedOut, Some(micros));
            for _ in 0..2 {
                assert_eq!(launch.lasted(), Some(kept));
                assert_eq!((launch.arrived(), launch.fate()), (1_790_000_000_123_456, Fate::TimedOut));
                assert_eq!(launch.kind, 7);
                launch.set_lasted(1);
                launch.set_lasted(micros);
            }
        }
        assert_eq!(Launch::new(1, 0, Fate::Refused, None).lasted(), None);
        // Anybody can write any time into a log.
        let late = Launch::new(u64::MAX, 0, Fate::Waited, Some(1));
        assert_eq!((late.arrived(), late.fate(), late.lasted()), (LATEST, Fate::Waited, Some(1)));
        assert_eq!(size_of::<Launch>(), 16);
    }
}
