//! How many seats would have been enough, as a simulation of the log says: for the programs that were refused
//! most.

use std::collections::BTreeMap;

use crate::{
    policy::{Limit, Policy, Repository},
    text::error::Error,
    tools::{
        logs::{
            rendering::programs::{GOOD, Outcome, in_trouble},
            simulation::{
                judge::Terms,
                sweep::{Row, Trial},
                traffic::Traffic,
            },
            statistics::counts::Counts,
        },
        shared::file_accounts::KnownAccounts,
    },
};

/// Longer logs are not played again: that is left to `rungate simulate`.
pub(super) const MOST: usize = 500_000;

/// The number of programs for which it is found out.
const PROGRAMS: usize = 5;

/// For each of the worst programs how many seats are enough.
pub(super) fn of(
    traffic: &Traffic,
    counts: &Counts,
    accounts: &KnownAccounts,
    policy: &Policy,
    load: &dyn Fn() -> Result<Policy, Error>,
) -> BTreeMap<String, Outcome> {
    // Where the log does not say what launches were, no policy can judge them.
    if traffic.untold > 0 {
        return BTreeMap::new();
    }
    let trial = Trial { traffic, accounts, terms: Terms::default(), seed: 1 };
    let is_known = |name: &str, seats: u64| {
        let same = |known: &&Repository| known.shown_name() == name;
        policy.repositories().iter().find(same).is_some_and(|known| known.limit() == limit_of(seats))
    };
    let worst = in_trouble(counts).into_iter().filter(|(name, seats)| is_known(name, *seats));
    let found = worst.take(PROGRAMS).filter_map(|(name, seats)| {
        Some((name.to_owned(), enough(&trial, name, u32::try_from(seats).ok()?, load)?))
    });
    found.collect()
}

fn limit_of(seats: u64) -> Limit {
    Limit::Fixed(u32::try_from(seats).unwrap_or(u32::MAX))
}

/// The lowest number of seats that starts most at once: looked for from the present one up, in steps that
/// double.
fn enough(
    trial: &Trial<'_>,
    name: &str,
    seats: u32,
    load: &dyn Fn() -> Result<Policy, Error>,
) -> Option<Outcome> {
    // None where the policy cannot be read again, and nothing where the log does not tell enough.
    let share = |limit: u32| -> Option<Option<f64>> {
        let policy = load().ok()?.with_limit(name, limit)?;
        if !trial.undecided(&policy).is_empty() {
            return Some(None);
        }
        let tally = trial.play(&policy, 0, &mut |_, _| {});
        Some(Some(Row::of(limit, name, &tally, trial.traffic, true).at_once))
    };
    let highest = seats.saturating_mul(4).max(seats + 8);
    let (mut low, mut high) = (seats + 1, seats + 1);
    loop {
        let Some(reached) = share(high)? else { return Some(Outcome::Unknown) };
        if reached >= GOOD {
            break;
        }
        if high >= highest {
            return Some(Outcome::NotEnough(high.into(), reached));
        }
        low = high + 1;
        high = (seats + (high - seats) * 2).min(highest);
    }
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(reached) = share(middle)? else { return Some(Outcome::Unknown) };
        if reached >= GOOD {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(Outcome::Enough(high.into()))
}
