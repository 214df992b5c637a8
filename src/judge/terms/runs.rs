//! Slots by number, as runs of neighbours. A launch may take a million slots, and most of them are
//! neighbours.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{fmt, ops::RangeInclusive};

/// Slots, no two runs of which touch.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Runs(Vec<RangeInclusive<u64>>);

impl Runs {
    /// From slots in any order, each once.
    pub fn of(slots: &[u64]) -> Self {
        Self::joined(slots.iter().map(|slot| *slot..=*slot).collect())
    }

    /// From runs in any order, no two of which share a slot.
    pub fn joined(mut runs: Vec<RangeInclusive<u64>>) -> Self {
        runs.sort_unstable_by_key(|run| *run.start());
        let mut joined: Vec<RangeInclusive<u64>> = Vec::new();
        for run in runs {
            match joined.last_mut() {
                Some(last) if last.end().saturating_add(1) == *run.start() => {
                    *last = *last.start()..=*run.end();
                }
                _ => joined.push(run),
            }
        }
        Self(joined)
    }

    /// Reads `3-9,12`, and also `3,4,5`; none if it is invalid, for example if a slot is named twice.
    pub fn parse(text: &str) -> Option<Self> {
        let run = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            // A number has no sign.
            let number = |digits: &str| digits.parse().ok().filter(|_| !digits.starts_with('+'));
            let run: RangeInclusive<u64> = number(first)?..=number(last)?;
            (!run.is_empty()).then_some(run)
        };
        let runs = Self::joined(text.split(',').map(run).collect::<Option<_>>()?);
        let is_ordered =
            |pair: &[RangeInclusive<u64>]| matches!(pair, [one, other] if one.end() < other.start());
        runs.0.windows(2).all(is_ordered).then_some(runs)
    }

    /// Whether this slot is one of them.
    pub fn has(&self, slot: u64) -> bool {
        self.0.iter().any(|run| run.contains(&slot))
    }

    /// The runs, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &RangeInclusive<u64>> {
        self.0.iter()
    }

    pub fn slots(&self) -> impl Iterator<Item = u64> {
        self.0.iter().cloned().flatten()
    }

    /// How many slots they are.
    pub fn count(&self) -> u64 {
        self.0.iter().map(length).fold(0, u64::saturating_add)
    }
}

/// How many slots a run has.
pub fn length(run: &RangeInclusive<u64>) -> u64 {
    run.end().saturating_sub(*run.start()).saturating_add(1)
}

/// `3-9,12`; two neighbours are written as a list, which is as short as a run and easier to read for a
/// script.
impl fmt::Display for Runs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, run) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            match length(run) {
                1 => write!(formatter, "{separator}{}", run.start())?,
                2 => write!(formatter, "{separator}{},{}", run.start(), run.end())?,
                _ => write!(formatter, "{separator}{}-{}", run.start(), run.end())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::judge::terms::runs::*;

    #[track_caller]
    fn case(text: &str, shown: Option<&str>) {
        assert_eq!(Runs::parse(text).map(|runs| runs.to_string()).as_deref(), shown, "{text}");
    }

    #[test]
    fn what_is_read_is_shown_as_short_as_it_can_be() {
        case("17", Some("17"));
        case("4,5", Some("4,5"));
        case("4-5", Some("4,5"));
        case("3,4,5,6,7,8,9,12", Some("3-9,12"));
        case("12,3-9", Some("3-9,12"));
        case("0-18446744073709551615", Some("0-18446744073709551615"));
    }

    #[test]
    fn what_cannot_be_is_nothing() {
        for text in [
            "",
            ",",
            "1,",
            "-",
            "-1",
            "+1",
            "1-+3",
            "3-",
            "9-3",
            "1,1",
            "1-5,5",
            "1-5,2-3",
            "1,z",
            "18446744073709551616",
        ] {
            case(text, None);
        }
    }

    #[test]
    fn slots_in_any_order_are_runs() {
        let runs = Runs::of(&[8, 9, 1, 2, 3, 10]);
        assert_eq!(runs.to_string(), "1-3,8-10");
        assert_eq!((runs.count(), runs.slots().collect()), (6, vec![1, 2, 3, 8, 9, 10]));
    }
}
