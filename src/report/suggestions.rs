//! What the figures suggest, each with its evidence.

use super::{
    census::{Census, HOUR},
    figure::Figure,
};
use crate::{
    output::figures::{count, wait},
    simulation::waits::Waits,
};

/// With fewer runs nothing is suggested: they could be chance.
const ENOUGH: u64 = 20;

#[expect(clippy::cast_precision_loss, reason = "shares")]
pub(super) fn suggestions(census: &Census) -> Figure {
    let mut rows = Vec::new();
    for (name, of) in &census.repositories {
        let (limit, most) = (of.limit(), of.most());
        if limit > 0 && of.cell.refused as f64 > 0.01 * of.cell.launches as f64 {
            rows.push(vec![
                name.clone(),
                "A higher limit, or waits".to_owned(),
                format!(
                    "{} of {} launches were refused. Try: rungate simulate POLICY LOG --limit {name}={limit}..{}",
                    count(of.cell.refused), count(of.cell.launches), limit + limit.div_ceil(2)
                ),
            ]);
        } else if limit > 0 && of.cell.launches >= ENOUGH && most * 5 < limit * 4 {
            rows.push(vec![
                name.clone(),
                format!("A limit of {}", count(most + most.div_ceil(10))),
                format!(
                    "At most {} of {} were held, and {} refused.",
                    count(most),
                    count(limit),
                    count(of.cell.refused)
                ),
            ]);
        }
        if of.runs.count >= ENOUGH {
            rows.push(vec![
                name.clone(),
                format!("expire_after of {}", wait(rounded(of.runs.longest.saturating_mul(2)))),
                format!("The longest of {} runs took {}.", count(of.runs.count), wait(of.runs.longest)),
            ]);
        }
        rows.extend(pause(name, &of.gaps));
    }
    Figure {
        id: "suggestions".to_owned(),
        title: "Suggestions".to_owned(),
        says: "What the figures suggest. Nothing is changed; a simulation says what a change would have come to.".to_owned(),
        drawing: None,
        head: vec!["Repository", "Suggestion", "Evidence"],
        rows,
    }
}

/// Where starts come at a steady pace, as those of a timer do, some that come much sooner are started twice.
/// Where they come at random, three quarters of them would not be half as long apart as the median.
fn pause(name: &str, gaps: &Waits) -> Option<Vec<String>> {
    let (usual, shortest) = (gaps.percentile(50.0), gaps.percentile(0.0));
    let is_steady = gaps.percentile(25.0) >= usual / 2;
    if gaps.count < ENOUGH || !is_steady || shortest >= usual / 4 {
        return None;
    }
    Some(vec![
        name.to_owned(),
        format!("if_elapsed of {}", wait(rounded(usual / 2))),
        format!(
            "{} starts are {} apart as a rule, and {} of them came within a quarter of that.",
            count(gaps.count + 1),
            wait(usual),
            count(gaps.count - gaps.from(usual / 4)),
        ),
    ])
}

/// To whole hours, or minutes where it is less.
fn rounded(micros: u64) -> u64 {
    let unit = if micros > HOUR { HOUR } else { HOUR / 60 };
    micros.div_ceil(unit) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000_000;

    fn gaps(lengths: impl Iterator<Item = u64>) -> Waits {
        let mut gaps = Waits::default();
        lengths.for_each(|length| gaps.add(length));
        gaps
    }

    #[test]
    fn a_pause_is_suggested_where_a_steady_pace_was_broken() {
        let nightly =
            |twice: usize| (0..100).map(move |day| if day < twice { MINUTE } else { 1440 * MINUTE });
        let row = pause("sync", &gaps(nightly(2))).expect("a suggestion");
        assert_eq!(row[1], "if_elapsed of 12h00m");
        assert!(row[2].starts_with("101 starts are ") && row[2].contains(" 2 of them "), "{row:?}");
        assert_eq!(pause("sync", &gaps(nightly(0))), None);
        // As random arrivals are.
        let random = |number: u64| number * MINUTE * 60 / 100;
        assert_eq!(pause("matlab", &gaps((0..100).map(random))), None);
    }
}
