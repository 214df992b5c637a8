//! How much each user has of the agent, counted as it comes and goes, so that nobody has to count when
//! somebody asks. Root has as much as it wants.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use super::{holding::Holding, rate::Rate};
use crate::{policy::AgentLimits, terms::hold::Hold};

/// What there is no more of for a user.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Quota {
    Connections,
    Launches,
    Slots,
    Places,
    Members,
    Descriptors,
    Memory,
}

impl fmt::Display for Quota {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, where_from) = match self {
            Self::Connections => ("too many launches of this user ask at once", "[agent] connections"),
            Self::Launches => ("too many launches of this user have slots", "[agent] launches"),
            Self::Slots => ("this user would have too many slots", "[agent] slots"),
            Self::Places => ("this user would have too many places in lines", "[agent] places"),
            Self::Members => ("this user would have too many tables", "[agent] members"),
            Self::Descriptors => {
                return formatter.write_str(
                    "too many launches of this user ask or have slots for the descriptors that it may open (LimitNOFILE)",
                );
            }
            Self::Memory => {
                return formatter.write_str("what launches of this user ask at once takes too much memory");
            }
        };
        write!(formatter, "{what} ({where_from} in /etc/rungate/agent.toml)")
    }
}

/// What one user has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Share {
    connections: usize,
    launches: usize,
    slots: usize,
    descriptors: usize,
    counted: Counted,
}

/// What a conversation has, as it was counted last.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counted {
    /// Places in lines.
    pub(super) places: usize,
    /// Bytes that were said and are not yet answered.
    pub(super) bytes: usize,
    /// Bytes of answers that were not read yet.
    pub(super) owed: usize,
    /// Bytes of memory that a question takes as long as it may have to be judged again.
    pub(super) question: usize,
}

impl Counted {
    /// Instead of what was counted before there is this now.
    fn change(&mut self, before: Self, now: Self) {
        let Self { places, bytes, owed, question } = self;
        *places = places.saturating_sub(before.places).saturating_add(now.places);
        *bytes = bytes.saturating_sub(before.bytes).saturating_add(now.bytes);
        *owed = owed.saturating_sub(before.owed).saturating_add(now.owed);
        *question = question.saturating_sub(before.question).saturating_add(now.question);
    }

    fn memory(self) -> usize {
        self.bytes.saturating_add(self.owed).saturating_add(self.question)
    }
}

/// All users.
#[derive(Debug)]
pub(super) struct Quotas {
    pub(super) limits: AgentLimits,
    /// How many descriptors there may be.
    descriptors: usize,
    users: BTreeMap<u32, Share>,
    /// What all of them have together.
    all: Share,
}

/// How many messages of full length may be kept for the conversations of one user.
const MOST_MESSAGES: usize = 16;

/// Bytes of answers that a user has not read, beyond which that user's next questions are not heard.
const MOST_OWED: usize = 1024 * 1024;

/// How soon it is looked whether they have been read.
const UNTIL_READ: Duration = Duration::from_millis(50);

/// Bytes that may be kept for the conversations of all users.
const MEMORY: usize = 48 * 1024 * 1024;

/// Of what all users share nobody has more than this part of what is left, so that something is left for
/// everybody else: after one user has as much as they may have, four fifths of it.
const PART: usize = 4;

/// Descriptors that are not given to conversations and holders: for files, judges and the site.
const OWN_DESCRIPTORS: usize = 64;

impl Quotas {
    /// For a process that may have so many descriptors.
    pub(super) fn new(limits: AgentLimits, descriptors: usize) -> Self {
        // Where there are very few, it keeps fewer for itself.
        let own = OWN_DESCRIPTORS.min(descriptors / 2);
        Self {
            limits,
            descriptors: descriptors.saturating_sub(own),
            users: BTreeMap::new(),
            all: Share::default(),
        }
    }

    /// Whether a user has less than they may of what there is so much of for all.
    fn check_part(
        &self,
        uid: u32,
        of: usize,
        has: impl Fn(&Share) -> usize,
        quota: Quota,
    ) -> Result<(), Quota> {
        let left = of.saturating_sub(has(&self.all));
        let is_over = uid != 0 && self.users.get(&uid).map_or(0, has) >= left / PART;
        if is_over { Err(quota) } else { Ok(()) }
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
    fn change(&mut self, uid: u32, change: impl Fn(&mut Share)) {
        change(&mut self.all);
        let share = self.users.entry(uid).or_default();
        change(share);
        if *share == Share::default() {
            self.users.remove(&uid);
        }
    }

    /// Somebody connects, which takes so many descriptors.
    pub(super) fn connect(&mut self, uid: u32, descriptors: usize) -> Result<(), Quota> {
        self.check(uid, |share| share.connections, 1, self.limits.connections, Quota::Connections)?;
        self.check_part(uid, self.descriptors, |share| share.descriptors, Quota::Descriptors)?;
        self.change(uid, |share| {
            share.connections += 1;
            share.descriptors += descriptors;
        });
        Ok(())
    }

    /// Somebody has hung up, and left so much.
    pub(super) fn disconnect(&mut self, uid: u32, descriptors: usize, counted: Counted) {
        self.change(uid, |share| {
            share.connections = share.connections.saturating_sub(1);
            share.descriptors = share.descriptors.saturating_sub(descriptors);
            share.counted.change(counted, Counted::default());
        });
    }

    /// Somebody has slots.
    pub(super) fn take(&mut self, holding: &Holding) {
        self.change(holding.saved.uid, |share| {
            share.launches += 1;
            share.slots += slots(holding);
            share.descriptors += descriptors(holding);
        });
    }

    /// And has none.
    pub(super) fn give_back(&mut self, holding: &Holding) {
        self.change(holding.saved.uid, |share| {
            share.launches = share.launches.saturating_sub(1);
            share.slots = share.slots.saturating_sub(slots(holding));
            share.descriptors = share.descriptors.saturating_sub(descriptors(holding));
        });
    }

    /// Whether a user may have these slots too.
    pub(super) fn may_have(&self, holding: &Holding) -> Result<(), Quota> {
        let uid = holding.saved.uid;
        self.check(uid, |share| share.slots, slots(holding), self.limits.slots, Quota::Slots)
    }

    /// Whether a user may have one more launch with slots.
    pub(super) fn may_launch(&self, uid: u32) -> Result<(), Quota> {
        self.check(uid, |share| share.launches, 1, self.limits.launches, Quota::Launches)?;
        self.check_part(uid, self.descriptors, |share| share.descriptors, Quota::Descriptors)
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

    /// Whether anybody stands in a line.
    pub(super) fn somebody_waits(&self) -> bool {
        self.all.counted.places > 0
    }

    /// A conversation of a user has this now, instead of what it had before.
    pub(super) fn recount(&mut self, uid: u32, before: Counted, now: Counted) -> Result<(), Quota> {
        if before != now {
            self.change(uid, |share| share.counted.change(before, now));
        }
        self.check(uid, |share| share.counted.places, 0, self.limits.places, Quota::Places)
    }

    /// Until when nothing more is heard in a conversation of a user that went so fast, or of one who has not
    /// read what was answered before; none where it may go on.
    pub(super) fn pause(&self, uid: u32, rate: Rate) -> Option<Instant> {
        let owed = self.users.get(&uid).map_or(0, |share| share.counted.owed);
        match uid {
            0 => None,
            _ if owed > MOST_OWED => Instant::now().checked_add(UNTIL_READ),
            _ => rate.pause(self.limits.rate),
        }
    }

    /// Whether a user has said so much at once that others could be short of memory.
    pub(super) fn has_said_too_much(&self, uid: u32) -> bool {
        let bytes = self.users.get(&uid).map_or(0, |share| share.counted.bytes);
        uid != 0 && bytes > MOST_MESSAGES * count(self.limits.message)
    }

    /// Whether the questions of a user may be kept until they are answered.
    pub(super) fn may_ask(&self, uid: u32) -> Result<(), Quota> {
        self.check_part(uid, MEMORY, |share| share.counted.memory(), Quota::Memory)
    }
}

fn slots(holding: &Holding) -> usize {
    holding.saved.tables.iter().filter(|table| !table.is_shared).map(|table| table.slots.len()).sum()
}

/// A process, and a FIFO where it has one.
fn descriptors(holding: &Holding) -> usize {
    1 + usize::from(holding.saved.hold > Hold::Process)
}

/// As a number of things in memory.
pub(super) fn count(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
