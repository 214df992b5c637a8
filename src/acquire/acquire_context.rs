//! The process that asks for slots, and the keepers that it asks.

use std::{cell::Cell, time::SystemTime};

use crate::{
    judge::terms::claim::{Claim, Launch},
    keeper::{EvictionOutcome, Overdue, table::Keepers},
};

/// A launch, and what it meets.
pub struct AcquireContext<'a> {
    pub launch: Launch<'a>,
    /// The keeper of the slots.
    pub keepers: Keepers<'a>,
    /// Which policy gives the limits of its claims: 12 bits that differ where policies do.
    pub generation: u16,
    /// Called for each overdue holder that was ended, or could not be.
    pub on_expired: &'a dyn Fn(&Claim<'_>, &Overdue, EvictionOutcome),
    /// When it asks.
    pub clock: Clock,
}

// What time it is when a launch is decided: the system's, or that of a world in which launches are only
// imagined. It is asked while the tables are locked, and remembers what it said.

#[derive(Debug, Default)]
pub struct Clock {
    imagined: Option<SystemTime>,
    last: Cell<Option<SystemTime>>,
}

impl Clock {
    /// A clock that does not run.
    pub fn at(moment: SystemTime) -> Self {
        Self { imagined: Some(moment), last: Cell::default() }
    }

    /// What it said when it was last asked: the moment of the last decision.
    pub fn last(&self) -> Option<SystemTime> {
        self.last.get()
    }

    /// Whether it is not the system's.
    pub(super) fn is_imagined(&self) -> bool {
        self.imagined.is_some()
    }

    pub(super) fn now(&self) -> SystemTime {
        let now = self.imagined.unwrap_or_else(SystemTime::now);
        self.last.set(Some(now));
        now
    }
}
