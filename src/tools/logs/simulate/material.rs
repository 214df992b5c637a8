//! The inputs of all that is printed of a simulation.

use crate::{
    cli::SimulateArguments,
    judge::terms::names::Names,
    policy::Policy,
    text::clock::Clock,
    tools::{
        logs::{
            simulation::{tally::Tally, traffic::Traffic},
            statistics::counts::Cell,
        },
        shared::file_accounts::KnownAccounts,
    },
};

/// The log, and what it is checked with.
pub(super) struct Material<'m> {
    pub(super) arguments: &'m SimulateArguments,
    pub(super) traffic: &'m Traffic,
    pub(super) accounts: &'m KnownAccounts,
    pub(super) policy: &'m Policy,
}

/// Names with launches in both, then and now.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) then: Cell,
    pub(super) now: Cell,
}

/// The keys by which launches are counted.
#[derive(Clone, Copy)]
pub(super) enum By {
    User,
    Group,
    Command,
}

impl Material<'_> {
    /// Each of them, those with most changes first.
    pub(super) fn lines(&self, by: By, now: &Tally) -> Vec<Line> {
        let keys = |kind: usize| -> Vec<String> {
            let kind = &self.traffic.kinds[kind];
            match by {
                By::User => vec![self.user(kind.uid)],
                By::Group => self.groups(kind),
                By::Command => vec![kind.command.clone()],
            }
        };
        let (then, now) = (self.traffic.then.by(keys), now.by(keys));
        let line = |(name, now): (String, Cell)| Line {
            then: then.get(&name).copied().unwrap_or_default(),
            name,
            now,
        };
        let mut lines: Vec<Line> = now.into_iter().map(line).collect();
        lines.sort_by_key(|line| {
            let change = line.now.newly_refused + line.now.newly_started;
            std::cmp::Reverse((change, line.now.refused, line.now.waited, line.now.launches))
        });
        lines
    }

    /// The name of a user.
    pub(super) fn user(&self, uid: u32) -> String {
        self.accounts.user_name(uid).ok().flatten().unwrap_or_else(|| uid.to_string())
    }

    fn groups(&self, kind: &crate::tools::logs::simulation::kind::Kind) -> Vec<String> {
        use crate::tools::logs::simulation::judge::Accounts;
        let gids = match &kind.told {
            Some(told) => told.groups.clone(),
            None => self.accounts.groups_of(kind.uid),
        };
        let name = |gid: u32| self.accounts.group_name(gid).ok().flatten().unwrap_or_else(|| gid.to_string());
        gids.into_iter().map(name).collect()
    }

    /// The time in the policy's zone.
    pub(super) fn clock(&self) -> Clock {
        Clock::in_zone(self.policy.time_zone())
    }
}
