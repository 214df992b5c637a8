//! What time it is when a launch is decided: the system's, or that of a world in which launches are only
//! imagined. It is asked while the tables are locked, and remembers what it said.

use std::{cell::Cell, time::SystemTime};

/// A clock.
#[derive(Debug, Default)]
pub struct Clock {
    imagined: Option<SystemTime>,
    last: Cell<Option<SystemTime>>,
}

impl Clock {
    /// One that stands still.
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
