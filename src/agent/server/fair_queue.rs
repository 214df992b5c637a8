//! A fair queue: the connection of each user that has waited longest, and all users in turn. So a thousand
//! requests of one user do not delay those of another. Both reading and judging use it.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
};

/// Connections that wait for something.
#[derive(Debug, Default)]
pub(in crate::agent) struct FairQueue {
    of_users: BTreeMap<u32, VecDeque<u64>>,
    /// The user who was served last.
    last: u32,
}

impl FairQueue {
    /// A connection of this user waits.
    pub(in crate::agent) fn wait(&mut self, uid: u32, session: u64) {
        self.of_users.entry(uid).or_default().push_back(session);
    }

    /// It is over.
    pub(in crate::agent) fn give_up(&mut self, uid: u32, session: u64) {
        if let Some(waiting) = self.of_users.get_mut(&uid) {
            waiting.retain(|other| *other != session);
            if waiting.is_empty() {
                self.of_users.remove(&uid);
            }
        }
    }

    /// How many users wait.
    pub(in crate::agent) fn users(&self) -> usize {
        self.of_users.len()
    }

    /// Whose turn it is.
    pub(in crate::agent) fn next(&mut self) -> Option<u64> {
        self.next_of(|_| true).map(|(_, session)| session)
    }

    /// Which of these users is next.
    pub(in crate::agent) fn next_of(&mut self, may_be: impl Fn(u32) -> bool) -> Option<(u32, u64)> {
        let after = self.of_users.range((Bound::Excluded(self.last), Bound::Unbounded));
        let uid = *after.chain(&self.of_users).map(|(uid, _)| uid).find(|uid| may_be(**uid))?;
        let waiting = self.of_users.get_mut(&uid)?;
        let session = waiting.pop_front()?;
        if waiting.is_empty() {
            self.of_users.remove(&uid);
        }
        self.last = uid;
        Some((uid, session))
    }
}
