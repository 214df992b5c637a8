//! The times that the figures of a repository suggest, each with its evidence. The paper on adaptive locks
//! asks whether its two times could be tuned from experience; this reports the experience, and changes
//! nothing.

use std::time::Duration;

use super::{counts::Repository, distribution::Distribution};
use crate::{
    policy::show_duration,
    text::{clock::age, figures::count},
};

/// From fewer observations nothing is suggested: they could be chance.
const ENOUGH: u64 = 20;

/// In microseconds: what starts more often than that is no job of a timer.
const MINUTE: u64 = 60_000_000;

/// A setting of a repository.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Suggestion {
    /// As a policy has it: `expire_after = "2h"`.
    pub setting: String,
    /// Why.
    pub evidence: String,
}

/// The settings that the figures of a repository suggest.
pub fn suggestions(of: &Repository) -> Vec<Suggestion> {
    let starts = of.cell.at_once + of.cell.waited;
    let longer = always_ended(of.expired, starts);
    let after = if longer.is_some() { None } else { expire_after(&of.runs) };
    let shorter = always_too_soon(of.too_soon(), starts);
    let elapsed = if shorter.is_some() { None } else { if_elapsed(&of.gaps) };
    [longer, after, shorter, elapsed].into_iter().flatten().collect()
}

/// From fewer ends, or refusals, nothing is said: they could be chance.
const SEVERAL: u64 = 3;

/// Nearly every run was ended as overdue: the time is shorter than the work.
fn always_ended(ended: u64, starts: u64) -> Option<Suggestion> {
    (ended >= SEVERAL && ended * 10 >= starts * 9).then(|| Suggestion {
        setting: "a longer expire_after".to_owned(),
        evidence: format!("{} of {} runs were ended as overdue", count(ended), count(starts.max(ended))),
    })
}

/// Nearly every launch came too soon: the pause is longer than what starts it believes. A log without starts
/// tells nothing about that.
fn always_too_soon(too_soon: u64, starts: u64) -> Option<Suggestion> {
    let launches = too_soon + starts;
    (starts > 0 && too_soon >= SEVERAL && too_soon * 10 >= launches * 9).then(|| Suggestion {
        setting: "a shorter if_elapsed, or fewer starts".to_owned(),
        evidence: format!("{} of {} launches came too soon", count(too_soon), count(launches)),
    })
}

/// Twice of what 95 of 100 programs took, and a tenth more than any took.
fn expire_after(runs: &Distribution) -> Option<Suggestion> {
    if runs.count < ENOUGH {
        return None;
    }
    let usual = runs.percentile(95.0);
    let after = usual.saturating_mul(2).max(runs.longest + runs.longest / 10);
    Some(Suggestion {
        setting: format!("expire_after = \"{}\"", show_duration(rounded(after))),
        evidence: format!(
            "95% of {} runs took up to {}, the longest {}",
            count(runs.count),
            shown(usual),
            shown(runs.longest)
        ),
    })
}

/// Where starts come at a steady pace, as those of a timer do, some that come much sooner are started twice.
/// Where they come at random, three quarters of them would not be half as long apart as the median.
fn if_elapsed(gaps: &Distribution) -> Option<Suggestion> {
    let (usual, shortest) = (gaps.percentile(50.0), gaps.percentile(0.0));
    let is_steady = gaps.percentile(25.0) >= usual / 2;
    if gaps.count < ENOUGH || usual < MINUTE || !is_steady || shortest >= usual / 4 {
        return None;
    }
    Some(Suggestion {
        setting: format!("if_elapsed = \"{}\"", show_duration(rounded(usual / 2))),
        evidence: format!(
            "{} starts are {} apart as a rule, and {} of them came within a quarter of that",
            count(gaps.count + 1),
            shown(usual),
            count(gaps.count - gaps.at_least(usual / 4)),
        ),
    })
}

fn shown(micros: u64) -> String {
    age(Duration::from_micros(micros))
}

/// Rounds up to what a person would write. The figures are no more exact than that.
fn rounded(micros: u64) -> Duration {
    let seconds = micros.div_ceil(1_000_000).max(60);
    let unit = match seconds {
        0..=600 => 60,
        601..=3600 => 5 * 60,
        3601..=21_600 => 30 * 60,
        21_601..=86_400 => 3600,
        86_401..=604_800 => 6 * 3600,
        _ => 86_400,
    };
    Duration::from_secs(seconds.div_ceil(unit) * unit)
}

#[cfg(test)]
mod tests {
    use crate::tools::logs::statistics::suggestions::*;

    fn of(lengths: impl Iterator<Item = u64>) -> Distribution {
        let mut distribution = Distribution::default();
        lengths.for_each(|length| distribution.add(length));
        distribution
    }

    #[test]
    fn a_time_is_suggested_from_twenty_runs_on() {
        let minutes = |runs: u64| of((1..=runs).map(|run| run * MINUTE));
        assert_eq!(expire_after(&minutes(19)), None);
        let suggestion = expire_after(&minutes(20)).expect("a suggestion");
        assert_eq!(suggestion.setting, "expire_after = \"40m\"");
        assert_eq!(suggestion.evidence, "95% of 20 runs took up to 19m00s, the longest 20m00s");
        let long = expire_after(&of((0..20).map(|run| if run == 0 { 100 * MINUTE } else { MINUTE })));
        assert_eq!(long.expect("a suggestion").setting, "expire_after = \"2h\"");
    }

    #[test]
    fn a_time_that_never_fits_is_told() {
        assert_eq!(always_ended(2, 2), None);
        assert_eq!(always_ended(8, 10), None);
        let longer = always_ended(9, 10).expect("a suggestion");
        assert_eq!(longer.setting, "a longer expire_after");
        assert_eq!(longer.evidence, "9 of 10 runs were ended as overdue");
        assert_eq!(always_too_soon(9, 0), None);
        assert_eq!(always_too_soon(8, 2), None);
        assert_eq!(always_too_soon(9, 1).expect("a suggestion").evidence, "9 of 10 launches came too soon");
    }

    #[test]
    fn a_suggested_time_is_no_more_exact_than_the_figures() {
        let shown = |seconds: u64| show_duration(rounded(seconds * 1_000_000));
        let (minute, hour, day) = (60, 3600, 86_400);
        let cases = [
            (1, "1m"),
            (6 * minute + 20, "7m"),
            (10 * minute + 1, "15m"),
            (5 * hour + 12 * minute, "5h30m"),
            (23 * hour + 59 * minute + 1, "1d"),
            (29 * hour + 1, "1d6h"),
            (7 * day - 1, "1w"),
            (8 * day + 5 * hour, "1w2d"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(shown(seconds), expected, "{seconds} s");
        }
    }

    #[test]
    fn a_pause_is_suggested_where_a_steady_pace_was_broken() {
        let nightly =
            |twice: usize| (0..100).map(move |day| if day < twice { MINUTE } else { 1440 * MINUTE });
        let suggestion = if_elapsed(&of(nightly(2))).expect("a suggestion");
        assert_eq!(suggestion.setting, "if_elapsed = \"12h\"");
        assert!(
            suggestion.evidence.starts_with("101 starts are ") && suggestion.evidence.contains(" 2 of them ")
        );
        assert_eq!(if_elapsed(&of(nightly(0))), None);
        // As random arrivals are.
        let random = |number: u64| number * MINUTE * 60 / 100;
        assert_eq!(if_elapsed(&of((0..100).map(random))), None);
    }
}
