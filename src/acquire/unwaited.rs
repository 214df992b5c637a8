//! Why the launch does not wait for something that blocks it.

use std::time::Duration;

/// Why the launch does not wait, or no longer waits, for a claim.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unwaited {
    /// No launch waits for it.
    Never,
    /// The wait for it timed out.
    Over(Duration),
    /// The queue is full.
    Queue {
        /// The number of launches ahead of this one.
        waiting: usize,
        /// How many there may be.
        most: u32,
    },
    /// The maximum number of the user's launches wait.
    OwnQueue {
        /// How many there are.
        waiting: usize,
        /// How many there may be.
        most: u32,
    },
}

impl Unwaited {
    /// Whether it does not wait because of the launches in the queue.
    pub(super) fn is_queue(self) -> bool {
        matches!(self, Self::Queue { .. } | Self::OwnQueue { .. })
    }
}
