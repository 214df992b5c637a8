//! Where the groups of a session and those of the database differ, a frequent surprise after a change of
//! groups: which they are, and which limits this makes.

use std::fmt::Write as _;

use super::Explained;
use crate::{
    judge::{
        Request, Verdict, decide,
        terms::claim::{Claim, Demand},
    },
    launch::refusals::foretold::title,
    policy::{Policy, Repository},
    sys::accounts,
    text::escape::visible,
};

impl Explained<'_, '_> {
    /// The groups that only one of them has.
    pub(super) fn session(&self) -> String {
        let credentials = &self.situation.credentials;
        let Ok(Some(account)) = accounts::account_of_uid(credentials.uid) else { return String::new() };
        let Ok(database) = accounts::groups_of(&account) else { return String::new() };
        let name = |gid: &u32| accounts::group_name(*gid).ok().flatten().unwrap_or_else(|| gid.to_string());
        let missing: Vec<String> =
            database.iter().filter(|gid| !credentials.groups.contains(gid)).map(name).collect();
        let extra: Vec<String> =
            credentials.groups.iter().filter(|gid| !database.contains(gid)).map(name).collect();
        let mut text = String::new();
        if !missing.is_empty() {
            let _ = writeln!(
                text,
                "note     not in this session, only in the database: {} (log in again)",
                visible(missing.join(" "))
            );
        }
        if !extra.is_empty() {
            let _ = writeln!(
                text,
                "note     only in this session, not in the database: {}",
                visible(extra.join(" "))
            );
        }
        text + &self.other_limits
    }
}

/// Claims whose limit would be another one with the groups of the database, which is what listings show.
pub(super) fn other_limits(policy: &Policy, request: &Request<'_>, demands: &[Demand<'_>]) -> String {
    let mut text = String::new();
    if !policy.repositories().iter().any(Repository::asks_for_groups) {
        return text;
    }
    let Ok(Some(account)) = accounts::account_of_uid(request.uid) else { return text };
    let Ok(database) = accounts::groups_of(&account) else { return text };
    let decision = decide(policy, &Request { gids: &database, ..*request });
    let Verdict::Start(start) = &decision.verdict else { return text };
    let limit = |claim: &Claim<'_>| {
        let why =
            claim.limit_of.as_ref().map_or_else(String::new, |limit_of| format!(" ({})", limit_of.limit()));
        format!("{}{why}", claim.amount.limit)
    };
    for claim in demands.iter().flat_map(Demand::claims) {
        let mut others = start.demands.iter().flat_map(Demand::claims);
        let other = others.find(|other| other.location.is_same_table(&claim.location));
        if let Some(other) = other.filter(|other| other.amount.limit != claim.amount.limit) {
            let _ = writeln!(
                text,
                "note     {}: the limit is {} in this session, and {} by the database",
                title(claim),
                limit(claim),
                limit(other)
            );
        }
    }
    text
}
