//! The settings of the policy for one file of a repository, for any user. Listings use them; the code is that
//! for a launch.

use std::ops::RangeInclusive;

use super::{
    locations,
    terms::{LookupError, Outside, Provenance},
    zones::kept_now,
};
use crate::policy::{FileOf, Policy, Repository, Request, Reservation};

/// One file of a repository, at one time.
#[derive(Debug)]
pub struct Listed<'p> {
    /// How many slots may be held.
    pub limit: u64,
    /// Why the limit differs from that of all, if it does.
    pub limit_of: Option<Provenance>,
    /// The names of its slots, from the first on.
    pub names: &'p [String],
    /// Its slots that no launch gets.
    pub out_of_order: Vec<u32>,
    /// The slots that only some may use, each range with the users that it is kept for.
    pub kept: Vec<(RangeInclusive<u64>, Provenance)>,
    /// How use is known that rungate did not start, where it takes room.
    pub outside: Option<Outside>,
}

/// The limit of the members of a repository that are not named.
pub fn limit_of_most(policy: &Policy, repository: &Repository, request: &Request<'_>) -> u64 {
    let facts = policy.facts(request);
    u64::from(repository.limit_of_most(&facts).resolve(request.cpus))
}

/// The settings for the file that launches like this one use. `gid` is the charged group, `value` the value
/// of a placeholder without a name.
pub fn listed<'p>(
    policy: &Policy,
    repository: &'p Repository,
    request: &Request<'_>,
    gid: Option<u32>,
    value: &[u8],
) -> Result<Listed<'p>, LookupError> {
    let facts = policy.facts(request);
    let (limit, limit_of) = repository.limit_for(&FileOf { facts: &facts, gid, value })?;
    let (highest, out_of_order) = repository.names.under(limit.resolve(request.cpus), &facts);
    let limit = highest - u32::try_from(out_of_order.len()).unwrap_or(highest);
    let is_on = |reservation: &Reservation| reservation.is_on(&facts, repository.layer);
    let kept = kept_now(highest, &out_of_order, repository.reservations(), is_on)
        .map(|(slots, reservation)| (slots, reservation.because(&facts, repository.layer)))
        .collect();
    let names = repository.names.all();
    let outside = locations::outside(policy, repository, request);
    Ok(Listed { limit: u64::from(limit), limit_of, names, out_of_order, kept, outside })
}
