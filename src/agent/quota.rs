//! How much each user has of the agent, counted as it comes and goes, so that nobody has to count when
//! somebody asks. Root has as much as it wants.

use std::{collections::BTreeMap, fmt};

use super::holding::Holding;
use crate::policy::AgentLimits;

/// What there is no more of for a user.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Quota {
    Connections,
    Launches,
    Slots,
    Places,
    Members,
}

impl fmt::Display for Quota {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, key) = match self {
            Self::Connections => ("too many launches of this user ask at once", "connections"),
            Self::Launches => ("too many launches of this user have slots", "launches"),
            Self::Slots => ("this user would have too many slots", "slots"),
            Self::Places => ("this user would have too many places in lines", "places"),
            Self::Members => ("this user would have too many tables", "members"),
        };
        write!(formatter, "{what} ([agent] {key} in /etc/rungate/agent.toml)")
    }
}

/// What one user has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Share {
    connections: usize,
    launches: usize,
    slots: usize,
    places: usize,
    /// Bytes that were said and are not yet answered, or answered and not yet read.
    bytes: usize,
}

/// All users.
#[derive(Debug)]
pub(super) struct Quotas {
    pub(super) limits: AgentLimits,
    users: BTreeMap<u32, Share>,
}

/// How many messages of full length may be kept for the conversations of one user.
const MOST_MESSAGES: usize = 16;

impl Quotas {
    pub(super) fn new(limits: AgentLimits) -> Self {
        Self { limits, users: BTreeMap::new() }
    }

    fn check(
        &self,
        uid: u32,
        has: impl Fn(&Share) -> usize,
        more: usize,
        most: u32,
        quota: Quota,
    ) -> Result<(), Quota> {
        let has = self.users.get(&uid).map_or(0, has);
        let is_over = uid != 0 && has.saturating_add(more) > count(most);
        if is_over { Err(quota) } else { Ok(()) }
    }

    /// Changes what a user has; of whoever has nothing nothing is remembered.
    fn change(&mut self, uid: u32, change: impl FnOnce(&mut Share)) {
        let share = self.users.entry(uid).or_default();
        change(share);
        if *share == Share::default() {
            self.users.remove(&uid);
        }
    }

    /// Somebody connects.
    pub(super) fn connect(&mut self, uid: u32) -> Result<(), Quota> {
        self.check(uid, |share| share.connections, 1, self.limits.connections, Quota::Connections)?;
        self.change(uid, |share| share.connections += 1);
        Ok(())
    }

    /// Somebody has hung up, and left so much.
    pub(super) fn disconnect(&mut self, uid: u32, counted: (usize, usize)) {
        self.change(uid, |share| share.connections = share.connections.saturating_sub(1));
        self.count_again(uid, counted, (0, 0));
    }

    /// Instead of so many places and bytes a conversation has so many others.
    fn count_again(&mut self, uid: u32, before: (usize, usize), now: (usize, usize)) {
        self.change(uid, |share| {
            share.places = share.places.saturating_sub(before.0).saturating_add(now.0);
            share.bytes = share.bytes.saturating_sub(before.1).saturating_add(now.1);
        });
    }

    /// Somebody has slots.
    pub(super) fn take(&mut self, holding: &Holding) {
        self.change(holding.saved.uid, |share| {
            share.launches += 1;
            share.slots += slots(holding);
        });
    }

    /// And has none.
    pub(super) fn give_back(&mut self, holding: &Holding) {
        self.change(holding.saved.uid, |share| {
            share.launches = share.launches.saturating_sub(1);
            share.slots = share.slots.saturating_sub(slots(holding));
        });
    }

    /// Whether a user may have these slots too.
    pub(super) fn may_have(&self, holding: &Holding) -> Result<(), Quota> {
        let uid = holding.saved.uid;
        self.check(uid, |share| share.slots, slots(holding), self.limits.slots, Quota::Slots)
    }

    /// Whether a user may have one more launch with slots.
    pub(super) fn may_launch(&self, uid: u32) -> Result<(), Quota> {
        self.check(uid, |share| share.launches, 1, self.limits.launches, Quota::Launches)
    }

    /// Whether a user who has so many tables may have so many more.
    pub(super) fn may_have_tables(&self, uid: u32, has: usize, more: usize) -> Result<(), Quota> {
        let is_over = uid != 0 && self.are_too_many_tables(has, more);
        if is_over { Err(Quota::Members) } else { Ok(()) }
    }

    /// Whether so many more tables are more than a user should have, whoever it is.
    pub(super) fn are_too_many_tables(&self, has: usize, more: usize) -> bool {
        more > 0 && has.saturating_add(more) > count(self.limits.members)
    }

    /// A conversation of a user has so many places and bytes now, instead of those before.
    pub(super) fn recount(
        &mut self,
        uid: u32,
        before: (usize, usize),
        now: (usize, usize),
    ) -> Result<(), Quota> {
        if before != now {
            self.count_again(uid, before, now);
        }
        self.check(uid, |share| share.places, 0, self.limits.places, Quota::Places)
    }

    /// Whether a user has said so much at once that others could be short of memory.
    pub(super) fn has_said_too_much(&self, uid: u32) -> bool {
        let bytes = self.users.get(&uid).map_or(0, |share| share.bytes);
        uid != 0 && bytes > MOST_MESSAGES * count(self.limits.message)
    }
}

fn slots(holding: &Holding) -> usize {
    holding.saved.tables.iter().filter(|table| !table.is_shared).map(|table| table.slots.len()).sum()
}

/// As a number of things in memory.
pub(super) fn count(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
