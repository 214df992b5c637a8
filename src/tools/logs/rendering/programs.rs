//! The first table: each program, the worst first.

use std::{cmp::Reverse, collections::BTreeMap};

use crate::{
    text::{
        escape::word,
        figures::{count, percent, share, wait},
    },
    tools::logs::statistics::{
        counts::{Counts, Repository},
        suggestions::{Suggestion, suggestions},
        usage::Bounds,
    },
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

/// The share of launches that is to start at once.
pub const GOOD: f64 = 0.99;

/// One row.
pub struct Program<'c> {
    /// The name of the repository.
    pub name: &'c str,
    /// Its counts.
    pub of: &'c Repository,
    /// How many slots there are; of each member, where each has a table.
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
    /// How a simulation of this log begins.
    simulate: &'c str,
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
        }
    };
    (all.into_iter().map(program).collect(), more)
}

/// Programs whose launches too often did not start at once, so that a simulation may say what would help: the
/// worst first.
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
            None if self.most.high < seats && self.of.would_refuse() == 0 => {
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

/// `3`, or `1–3` where no more is known.
pub fn bounds<T: Copy + PartialEq>(bounds: Bounds<T>, shown: impl Fn(T) -> String) -> String {
    let (low, high) = (shown(bounds.low), shown(bounds.high));
    if low == high { low } else { format!("{low}–{high}") }
}
