//! What a transaction is for, for as long as its answer is not there.

use std::{collections::BTreeMap, time::Instant};

use super::{
    difference::{Change, Value},
    key::Key,
};
use crate::{
    agent::{ledger::holding::Holding, request::AcquireRequest},
    keeper::memory,
};

/// Something that is being done at etcd.
#[derive(Debug)]
pub(super) enum Work {
    /// Slots are taken for a launch.
    Take(Box<Admission>),
    /// A launch comes into queues that end; decided while the host's key had this revision.
    Join { launch: u64, under: i64, tickets: BTreeMap<Key, Value> },
    /// Keys of this host become what they should be.
    Keep(Vec<Change>),
    /// Whatever else: what came of it is seen in the mirror, and nothing is done about this key meanwhile.
    Aside(Key),
}

/// A launch that has slots in memory, and does not yet know of it.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) session: u64,
    /// None where the launch has been answered: what it was to get is given back.
    pub(super) order: Option<AcquireRequest>,
    /// Since when it waits for the site.
    pub(super) since: Instant,
    pub(super) holding: Holding,
    /// By which its slots are told from others of the same process.
    pub(super) launch: u64,
    /// On which etcd it was decided.
    pub(super) generation: u64,
    /// What is written with it.
    pub(super) writes: Vec<(Key, Option<Value>)>,
}

impl Admission {
    pub(super) fn slots(&self) -> impl Iterator<Item = &Key> {
        self.writes.iter().map(|(key, _)| key).filter(|key| matches!(key, Key::Slot(..)))
    }

    /// Whether it takes slots of a table.
    pub(super) fn moves(&self, table: &str) -> bool {
        let is_there = |held: &memory::Held| held.table().name() == table;
        self.holding.held.iter().any(is_there)
    }
}

impl Work {
    /// The admission that it is about.
    pub(super) fn admission(&mut self) -> Option<&mut Admission> {
        match self {
            Self::Take(admission) => Some(admission),
            Self::Join { .. } | Self::Keep(_) | Self::Aside(_) => None,
        }
    }
}
