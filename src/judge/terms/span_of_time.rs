//! Lengths of time as people write them: `90s`, `10m`, `1h30m`, `7d`. A bare number is refused, because half
//! of its readers would read it as minutes.

use std::{fmt, time::Duration};

/// The units, from the longest to the shortest, in milliseconds.
const UNITS: &[(&str, u64)] =
    &[("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Far more than any wait, and still no overflow in any arithmetic on times: a hundred years.
const LONGEST: u64 = 100 * 365 * 86_400_000;

/// Reads a length of time; `None` when it is none.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut units = UNITS.iter();
    let mut total = 0u64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        // Each unit once and in order: "30m1h" is more likely a mistake than a way to write.
        let (_, milliseconds) = units.by_ref().find(|(unit, _)| *unit == &rest[..letters])?;
        total = total.checked_add(number.checked_mul(*milliseconds)?)?;
        rest = rest[letters..].trim_start();
    }
    (total <= LONGEST).then(|| Duration::from_millis(total))
}

/// Writes a length of time so that [`parse_duration`] reads the same.
pub fn show_duration(duration: Duration) -> String {
    let mut left = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut shown = String::new();
    for (unit, milliseconds) in UNITS {
        if left >= *milliseconds {
            shown.extend([&(left / milliseconds).to_string(), *unit]);
            left %= milliseconds;
        }
    }
    if shown.is_empty() { "0s".into() } else { shown }
}

/// How long a launch may wait for its slots; the shortest is the smallest.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Wait {
    /// No longer than this; zero refuses at once.
    For(Duration),
    /// Until there is room.
    Forever,
}

impl Wait {
    /// Not at all.
    pub const NONE: Self = Self::For(Duration::ZERO);

    /// Reads a length of time or `forever`.
    pub fn parse(text: &str) -> Option<Wait> {
        if text == "forever" { Some(Wait::Forever) } else { parse_duration(text).map(Wait::For) }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::For(duration) => f.write_str(&show_duration(*duration)),
            Wait::Forever => f.write_str("forever"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::judge::terms::span_of_time::*;

    #[track_caller]
    fn case(text: &str, seconds: f64) {
        let expected = Duration::from_secs_f64(seconds);
        assert_eq!(parse_duration(text), Some(expected));
        assert_eq!(parse_duration(&show_duration(expected)), Some(expected));
    }

    #[track_caller]
    fn none(text: &str) {
        assert_eq!(parse_duration(text), None);
    }

    #[test]
    fn lengths_of_time() {
        case("0s", 0.0);
        case("90s", 90.0);
        case("10m", 600.0);
        case("1h30m", 5400.0);
        case(" 1h 30m ", 5400.0);
        case("1w2d3h4m5s6ms", 788_645.006);
        case("250ms", 0.25);
    }

    #[test]
    fn what_is_no_length_of_time() {
        none("");
        none("15");
        none("30m1h");
        none("1h1h");
        none("-5s");
        none("1.5h");
        none("5 s");
        none("1y");
        none("99999999999999999999s");
        none("40000d");
    }

    #[test]
    fn the_shortest_wait_is_the_smallest() {
        assert!(Wait::For(Duration::MAX) < Wait::Forever);
        assert_eq!(Wait::parse("forever"), Some(Wait::Forever));
        assert_eq!(Wait::For(Duration::from_secs(5400)).to_string(), "1h30m");
    }
}
