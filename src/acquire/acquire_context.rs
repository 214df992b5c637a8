//! The process that requests slots, and the keepers that it uses.

use std::{cell::Cell, time::SystemTime};

use crate::{
    judge::terms::{Claim, Launch},
    keeper::{EvictionOutcome, Keepers, Overdue},
};

/// A launch, and the state that it finds.
pub struct AcquireContext<'a> {
    pub launch: Launch<'a>,
    /// The keeper of the slots.
    pub keepers: Keepers<'a>,
    /// Which policy gives the limits of its claims: 12 bits that differ where policies do.
    pub generation: u16,
    /// Called for each overdue holder that was ended, or could not be.
    pub on_expired: &'a dyn Fn(&Claim, &Overdue, EvictionOutcome),
    /// When it asks.
    pub clock: Clock,
}

// The time of a decision: the system's, or a simulated one. It is read while the tables are locked, and
// remembers its last answer.

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

    /// The time of the last decision.
    pub fn last(&self) -> Option<SystemTime> {
        self.last.get()
    }

    /// Whether it is simulated.
    pub(super) fn is_imagined(&self) -> bool {
        self.imagined.is_some()
    }

    pub(super) fn now(&self) -> SystemTime {
        let now = self.imagined.unwrap_or_else(SystemTime::now);
        self.last.set(Some(now));
        now
    }
}
