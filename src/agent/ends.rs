//! The ends that the agent has seen last. The launch has become the program and cannot write them into the
//! log; whoever looks regularly does, and asks here when they were.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::saved::SavedHolding;
use crate::keeper::agent::message::End;

/// How many are remembered: what a busy host has between two looks.
const MOST: usize = 10_000;

/// Those of each user, oldest first, so that one whose programs end all the time pushes out nobody else's.
#[derive(Debug, Default)]
pub(super) struct Ends {
    of_users: BTreeMap<u32, VecDeque<End>>,
    count: usize,
}

impl Ends {
    /// One ends now. Where there are too many, the user who has most of them loses the oldest.
    pub(super) fn see(&mut self, saved: &SavedHolding) {
        let since = UNIX_EPOCH.checked_add(Duration::from_millis(saved.since)).unwrap_or(UNIX_EPOCH);
        let end = End { pid: saved.pid, since, until: SystemTime::now() };
        self.of_users.entry(saved.uid).or_default().push_back(end);
        self.count += 1;
        if self.count > MOST
            && let Some(most) = self.of_users.values_mut().max_by_key(|ends| ends.len())
        {
            self.count -= usize::from(most.pop_front().is_some());
        }
    }

    /// All of them, oldest first.
    pub(super) fn all(&self) -> Vec<End> {
        let mut all: Vec<End> = self.of_users.values().flatten().cloned().collect();
        all.sort_by_key(|end| end.until);
        all
    }
}
