//! The outcome of an overdue holder, for every keeper.

use super::{Delivery, UnverifiedTarget};
use crate::sys::Signal;

/// The outcome of an overdue holder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EvictionOutcome {
    /// It ended, or released the slot, after this signal was sent.
    Ended(Signal, Delivery),
    /// The same, and a process that it left behind keeps the slot.
    LeftOthers(Signal),
    /// It had already exited, or released the slot, before any signal was sent.
    HadLeft,
    /// This user may not signal it.
    NotPermitted,
    /// Nothing proves that it is the job that holds the slot.
    NotProved(UnverifiedTarget),
    /// It holds the slot still: a process that even `SIGKILL` does not end sits in the kernel.
    Survived,
    /// It runs on another host, which was given notice of it and has not ended it yet.
    Noticed,
    /// It runs on another host, by whose policy it is not overdue.
    NotOverdueThere,
    /// It had ended, and its slot lingered: root has freed it.
    Freed,
}

impl EvictionOutcome {
    /// Whether its slot was released.
    pub fn has_left(self) -> bool {
        matches!(self, Self::Ended(..) | Self::HadLeft | Self::Freed)
    }
}
