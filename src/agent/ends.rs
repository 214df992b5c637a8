//! The ends that the agent has seen last. The launch has become the program and cannot write them into the
//! log; whoever looks regularly does, and asks here when they were.

use std::{
    collections::VecDeque,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::saved::SavedHolding;
use crate::keeper::agent::message::End;

/// How many are remembered: what a busy host has between two looks.
const MOST: usize = 10_000;

/// Oldest first.
#[derive(Debug, Default)]
pub(super) struct Ends(VecDeque<End>);

impl Ends {
    /// One ends now.
    pub(super) fn see(&mut self, saved: &SavedHolding) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        let since = UNIX_EPOCH.checked_add(Duration::from_millis(saved.since)).unwrap_or(UNIX_EPOCH);
        self.0.push_back(End { pid: saved.pid, since, until: SystemTime::now() });
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<End> {
        self.0.iter().cloned().collect()
    }
}
