//! What a transaction is for, for as long as its answer is not there.

use std::{collections::BTreeMap, time::Instant};

use super::record::{ClusterRecord, TicketRecord};
use crate::{
    agent::{ledger::holding::Holding, request::AcquireRequest},
    keeper::memory,
};

/// Something that is being done at etcd.
#[derive(Debug)]
pub(super) enum Work {
    /// Slots are taken for a launch.
    Admit(Box<Admission>),
    /// It is read whether they were.
    Settle(Box<Admission>),
    /// Slots are given back.
    Free(Freeing),
    /// A launch's places in line are written as they are.
    Line(u64, BTreeMap<String, TicketRecord>),
    /// Keys of a host go: of one that has gone, or what this one left.
    Clear(String),
    /// A slot that was lost is taken anew, for this holding.
    Retake(u64, String, u64),
    /// Notice is given of whoever holds this slot of a table, or a reply to that; or neither counts any more.
    Notice(String, u64),
    /// It is written of which etcd the tables are.
    Name(ClusterRecord),
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
}

/// Slots that nobody uses any more. In memory they are held until they are free for all.
#[derive(Debug)]
pub(super) struct Freeing {
    pub(super) held: Vec<memory::Held>,
    pub(super) pid: i32,
    pub(super) start: u64,
    /// The revision at which they were taken, as far as it is known.
    pub(super) revision: i64,
    /// The tables whose last use is written down.
    pub(super) paced: Vec<String>,
    pub(super) uid: u32,
    /// Each slot whose key goes, with its table and the revision at which that was written.
    pub(super) deleted: Vec<(String, u64, i64)>,
}

impl Work {
    /// The admission that it is about.
    pub(super) fn admission(&mut self) -> Option<&mut Admission> {
        match self {
            Self::Admit(admission) | Self::Settle(admission) => Some(admission),
            Self::Free(_)
            | Self::Line(..)
            | Self::Clear(_)
            | Self::Retake(..)
            | Self::Notice(..)
            | Self::Name(_) => None,
        }
    }

    /// The tickets of a launch that stood in line when the agent died are those of a conversation by now.
    pub(super) fn hand_over(&mut self, place: u64, session: u64) {
        if let Self::Line(of, _) = self
            && *of == place
        {
            *of = session;
        }
    }

    /// Whether it concerns this slot of a table.
    pub(super) fn is_about(&self, table: &str, slot: u64) -> bool {
        let has = |held: &memory::Held| held.table().name() == table && held.slots().contains(&slot);
        match self {
            Self::Admit(admission) | Self::Settle(admission) => admission.holding.held.iter().any(has),
            Self::Free(freeing) => freeing.held.iter().any(has),
            Self::Retake(_, of, again) => of == table && *again == slot,
            Self::Line(..) | Self::Clear(_) | Self::Notice(..) | Self::Name(_) => false,
        }
    }

    /// Whether it takes slots of a table, or gives some back.
    pub(super) fn moves(&self, table: &str) -> bool {
        let is_there = |held: &memory::Held| held.table().name() == table;
        match self {
            Self::Admit(admission) | Self::Settle(admission) => admission.holding.held.iter().any(is_there),
            Self::Free(freeing) => freeing.held.iter().any(is_there),
            Self::Line(..) | Self::Clear(_) | Self::Retake(..) | Self::Notice(..) | Self::Name(_) => false,
        }
    }
}
