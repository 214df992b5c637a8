//! What a launch wants of the lock files, in the terms of this wing: paths and numbers, no policy.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use crate::repository::file::Creation;

/// What a launch wants of one lock file.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The repository's name, as messages and `RUNGATE_HELD` write it.
    pub name: String,
    /// The lock file.
    pub path: PathBuf,
    /// How it is created.
    pub creation: Creation,
    /// The user whom the file must belong to where others may create files beside it.
    pub owner: Option<u32>,
    /// How many slots may be held at once, this launch included.
    pub limit: u64,
    /// How many slots are wanted.
    pub slots: Slots,
    /// The slots that may be taken, in order of preference; any within the limit where nothing is kept for anybody.
    pub zones: Option<Vec<RangeInclusive<u64>>>,
    /// What happens when there is no room.
    pub admit: Admit,
    /// What a launch below a holder of this repository does.
    pub nested: Nested,
    /// The rule behind the claim, for the record.
    pub rule: String,
    /// When a start is too soon.
    pub pause: Option<Pause>,
    /// When a holder is overdue.
    pub expiry: Option<Expiry>,
}

impl Claim {
    /// How many slots may be held at the most for this launch to start: its limit, or fewer where some are kept for others.
    pub fn reach(&self) -> u64 {
        reach(self.limit, self.zones.as_deref())
    }
}

/// The same of any limit and zones.
pub(super) fn reach(limit: u64, zones: Option<&[RangeInclusive<u64>]>) -> u64 {
    let open = zones.map(|zones| zones.iter().map(|zone| zone.end() + 1 - zone.start()).sum());
    open.map_or(limit, |open: u64| open.min(limit))
}

/// A time that has to pass between two launches (`IfElapsed` of adaptive locks).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pause {
    /// How long.
    pub length: Duration,
    /// Whether it counts from the last end, and not from the last start.
    pub from_end: bool,
    /// Whether a launch that comes too soon is no failure.
    pub silent: bool,
}

/// When and how a holder is ended that keeps others waiting (`ExpireAfter` of adaptive locks).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expiry {
    /// A holder older than this is overdue.
    pub after: Duration,
    /// The time between the signals that end it.
    pub grace: Duration,
    /// Whether its whole process group is signalled.
    pub group: bool,
}

/// Slots of a repository, as the environment names them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NamedSlots {
    /// The repository's name.
    pub name: String,
    /// The slots.
    pub slots: Vec<u64>,
}

impl NamedSlots {
    /// A repository's name as one word: where two files use one name, it is shown with the file's, behind a blank.
    pub fn word(name: &str) -> String {
        name.replace(' ', "_")
    }
}

/// How many slots a claim wants.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Slots {
    /// This many.
    Number(u64),
    /// As many as the limit says: exclusive use.
    All,
}

impl Slots {
    /// The number, under a limit.
    pub fn under(self, limit: u64) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::All => limit.max(1),
        }
    }
}

/// What happens to a claim when the limit is reached, from the strictest on.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Admit {
    /// The launch is refused.
    #[default]
    WithinLimit,
    /// The launch starts without the slot.
    Unenforced,
    /// A slot beyond the limit is taken.
    Always,
}

/// What a launch below a holder of the same repository does.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Nested {
    /// Uses the ancestor's slot, if that was taken for the same command and nobody else uses it.
    #[default]
    Join,
    /// Takes a slot of its own.
    Take,
}

/// One thing that a launch needs.
#[derive(Clone, Debug)]
pub enum Demand {
    /// This claim.
    One(Claim),
    /// The first of these that can be had.
    AnyOf(Vec<Claim>),
}

impl Demand {
    /// The claims, in order of preference.
    pub fn options(&self) -> &[Claim] {
        match self {
            Self::One(claim) => std::slice::from_ref(claim),
            Self::AnyOf(claims) => claims,
        }
    }
}
