//! Why a launch does not get what it wants, claim by claim.

use std::time::{Duration, SystemTime};

use crate::repository::{
    expiry::{Fate, Overdue},
    holder::Holder,
};

/// A claim that could not be met.
#[derive(Debug)]
pub struct Refused {
    /// Which one: the claims of all demands, counted through from 0.
    pub claim: usize,
    /// Why.
    pub reason: Reason,
}

impl Refused {
    /// Whether it makes no sense to wait.
    pub fn is_final(&self) -> bool {
        match &self.reason {
            Reason::Never | Reason::TooSoon { .. } => true,
            Reason::Full { only_ancestors, .. } => *only_ancestors,
        }
    }
}

/// Why a claim could not be met.
#[derive(Debug)]
pub enum Reason {
    /// The limit is reached, or others wait for what is left.
    Full {
        /// How many slots are held.
        used: u64,
        /// Who holds them, by slot.
        holders: Vec<Holder>,
        /// How many others wait.
        waiting: usize,
        /// Holders that are overdue and could not be ended.
        overdue: Vec<(Overdue, Fate)>,
        /// Whether nobody but this process and its ancestors stands in the way, so that waiting would never end.
        only_ancestors: bool,
    },
    /// More slots are wanted than the limit allows.
    Never,
    /// The last start (or end) was too short a time ago.
    TooSoon {
        /// When it was.
        last: SystemTime,
        /// The user of the last start, where the record tells.
        uid: Option<u32>,
        /// How long it has to be ago.
        pause: Duration,
        /// Whether the end counts, and not the start.
        from_end: bool,
        /// Whether this is no failure.
        silent: bool,
    },
}
