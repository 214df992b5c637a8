//! Why the launch does not wait for something that blocks it.

use std::time::Duration;

/// Why a claim is not waited for, or not any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unwaited {
    /// It is never waited for.
    Never,
    /// It was waited for as long as it may be.
    Over(Duration),
    /// As many wait as may.
    Queue {
        /// How many there are before this launch.
        waiting: usize,
        /// How many there may be.
        most: u32,
    },
    /// As many of the user's launches wait as may.
    OwnQueue {
        /// How many there are.
        waiting: usize,
        /// How many there may be.
        most: u32,
    },
}

impl Unwaited {
    /// Whether it is for those in line that it does not begin.
    pub(super) fn is_queue(self) -> bool {
        matches!(self, Self::Queue { .. } | Self::OwnQueue { .. })
    }
}
