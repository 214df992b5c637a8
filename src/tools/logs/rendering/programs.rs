//! The first table: each program, the worst first.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use serde::Serialize;

use crate::{
    policy::show_duration,
    text::{age, count, percent, share, wait, word},
    tools::logs::statistics::{Bounds, Counts, Distribution, Repository},
};

/// How many programs are shown; the others are added up.
const MOST: usize = 200;

/// The effect of more seats, by a simulation of the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With this number of seats this share would have started at once.
    Enough(u64),
    /// Not even this number is enough: this share would have started at once.
    NotEnough(u64, f64),
    /// The log does not have enough data.
    Unknown,
}

/// The share of launches that should start at once.
pub const GOOD: f64 = 0.99;

/// One row.
pub struct Program<'c> {
    /// The name of the repository.
    pub name: &'c str,
    /// Its counts.
    pub of: &'c Repository,
    /// How many slots there are; if each member has a table, for each member.
    pub seats: Option<u64>,
    /// How many were held at once, at most.
    pub most: Bounds<u64>,
    /// How many were held on average; none if unknown.
    pub average: Option<Bounds<f64>>,
    /// For which share of the time none was free, at most; none if unknown.
    pub full: Option<f64>,
    /// The suggestion from the figures.
    pub suggestions: Vec<Suggestion>,
    /// The result of a simulation.
    pub outcome: Option<Outcome>,
    /// The beginning of a command that simulates this log.
    simulate: &'c str,
    /// Whether programs may have had slots since before the log.
    is_cut: bool,
}

/// The programs of a log, the worst first, and how many there are beyond those.
pub fn programs<'c>(
    counts: &'c Counts,
    limits: &BTreeMap<String, u64>,
    outcomes: &BTreeMap<String, Outcome>,
    simulate: &'c str,
) -> (Vec<Program<'c>>, usize) {
    let used = counts
        .repositories
        .iter()
        .filter(|(_, of)| of.cell.launches > 0 || of.would_refuse() > 0 || of.expired > 0);
    let mut all: Vec<(&String, &Repository)> = used.collect();
    all.sort_by_key(|(name, of)| {
        (
            Reverse(of.cell.refused),
            Reverse(of.cell.waited),
            Reverse(of.would_refuse()),
            Reverse(of.cell.launches),
            *name,
        )
    });
    let more = all.len().saturating_sub(MOST);
    all.truncate(MOST);
    let program = |(name, of): (&'c String, &'c Repository)| {
        let span = counts.span();
        Program {
            name,
            of,
            seats: of.usage.limit.or_else(|| limits.get(name).copied()),
            most: of.usage.most(),
            average: of.usage.average(span),
            full: of.usage.full_share(span),
            suggestions: suggestions(of),
            outcome: outcomes.get(name).cloned(),
            simulate,
            is_cut: counts.closing.is_cut || counts.closing.started_before > 0,
        }
    };
    (all.into_iter().map(program).collect(), more)
}

/// Programs too few of whose launches started at once, the worst first: a simulation may show how many seats
/// would help.
pub fn in_trouble(counts: &Counts) -> Vec<(&str, u64)> {
    let (all, _) = programs(counts, &BTreeMap::new(), &BTreeMap::new(), "");
    let is_in_trouble =
        |program: &&Program<'_>| share(program.of.cell.at_once, program.of.cell.launches) < GOOD;
    all.iter().filter(is_in_trouble).filter_map(|program| Some((program.name, program.seats?))).collect()
}

impl Program<'_> {
    /// The conclusion from its row, in a sentence; and the command that shows why, if there is one.
    pub fn answer(&self) -> (String, Option<String>) {
        let cell = &self.of.cell;
        let at_once = share(cell.at_once, cell.launches);
        let Some(seats) = self.seats else {
            return (
                "The log does not tell how many seats there are: set replay = true in [log].".to_owned(),
                None,
            );
        };
        let whose = if self.of.usage.has_members { " for each" } else { "" };
        let command =
            |highest: u64| Some(format!("{} --limit {}={seats}..{highest}", self.simulate, word(self.name)));
        match &self.outcome {
            Some(Outcome::Enough(enough)) => {
                let more = enough.saturating_sub(seats);
                let seats =
                    if more == 1 { "1 more seat".to_owned() } else { format!("{} more seats", count(more)) };
                (format!("{seats}{whose} would have let 99% start at once."), command(*enough))
            }
            Some(Outcome::NotEnough(tried, share)) => (
                format!(
                    "With {} seats{whose} {} would have started at once.",
                    count(*tried),
                    percent(*share)
                ),
                command(*tried),
            ),
            Some(Outcome::Unknown) => (
                "Unknown how many seats are enough: the log does not tell when programs ended.".to_owned(),
                command(seats * 2),
            ),
            None if at_once < GOOD => (
                format!("{} started at once. A simulation says how many seats are enough.", percent(at_once)),
                command(seats * 2),
            ),
            None if self.most.high < seats && self.of.would_refuse() == 0 && !self.is_cut => {
                let idle = seats - self.most.high;
                (format!("{} of {} seats{whose} were never in use.", count(idle), count(seats)), None)
            }
            None => (format!("{} started at once: enough seats.", percent(at_once)), None),
        }
    }

    /// The cells of its row, as `HEAD` has them.
    pub fn row(&self) -> Vec<String> {
        let cell = &self.of.cell;
        let dash = || "-".to_owned();
        let (each, in_all) = if self.of.usage.has_members { (" each", " in all") } else { ("", "") };
        vec![
            self.name.to_owned(),
            self.seats.map_or_else(dash, |seats| format!("{}{each}", count(seats))),
            bounds(self.most, count),
            count(cell.refused),
            count(cell.waited),
            count(cell.launches),
            self.full.map_or_else(dash, |full| match percent(full) {
                shown if self.of.usage.is_known() => shown,
                // Above ">99.9%" there is one bound.
                shown if shown.starts_with('>') => "≤100%".to_owned(),
                shown => format!("≤{}", shown.trim_start_matches('<')),
            }),
            self.average.map_or_else(
                || "unknown".to_owned(),
                |average| bounds(average, |number| format!("{number:.1}")) + in_all,
            ),
            wait(self.of.waits.percentile(95.0)),
            wait(self.of.waits.longest),
        ]
    }
}

/// `3`, or `1–3` if only bounds are known.
pub fn bounds<T: Copy + PartialEq>(bounds: Bounds<T>, shown: impl Fn(T) -> String) -> String {
    let (low, high) = (shown(bounds.low), shown(bounds.high));
    if low == high { low } else { format!("{low}–{high}") }
}

// The times that the figures of a repository suggest, each with its evidence. The paper on adaptive locks
// asks whether its two times could be tuned from experience; this reports the experience, and changes
// nothing.

/// With fewer observations nothing is suggested, because they could be chance.
const ENOUGH: u64 = 20;

/// In microseconds: a command that starts more often is not a job of a timer.
const MINUTE: u64 = 60_000_000;

/// A setting of a repository.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
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

/// With fewer ends, or refusals, nothing is suggested, because they could be chance.
const SEVERAL: u64 = 3;

/// Nearly every run was ended as overdue: the time is shorter than the work.
pub(crate) fn always_ended(ended: u64, starts: u64) -> Option<Suggestion> {
    (ended >= SEVERAL && ended * 10 >= starts * 9).then(|| Suggestion {
        setting: "a longer expire_after".to_owned(),
        evidence: format!("{} of {} runs were ended as overdue", count(ended), count(starts.max(ended))),
    })
}

/// Nearly every launch came too soon: the pause is longer than the usual interval of starts. A log without
/// starts tells nothing about that.
pub(crate) fn always_too_soon(too_soon: u64, starts: u64) -> Option<Suggestion> {
    let launches = too_soon + starts;
    (starts > 0 && too_soon >= SEVERAL && too_soon * 10 >= launches * 9).then(|| Suggestion {
        setting: "a shorter if_elapsed, or fewer starts".to_owned(),
        evidence: format!("{} of {} launches came too soon", count(too_soon), count(launches)),
    })
}

/// Twice the time that 95 of 100 programs took, but at least a tenth more than the longest.
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

/// If starts come at a steady pace, like those of a timer, a much earlier one is probably started twice.
/// With random starts, fewer than three quarters of the intervals are at least half of the median.
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

/// Rounds up to a value that a person would write. The figures are no more exact than that.
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
    use super::*;

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
