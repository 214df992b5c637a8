//! Whose turn it is: of each user the conversation that has waited longest, and of all users one after the
//! other, so that nobody's thousand questions stand before somebody else's one. So it is in being heard, and
//! then in being judged.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
};

use super::judge::JUDGES;

/// As many as keep the judges busy until the next ones come.
const AT_ONCE: usize = 2 * JUDGES;

/// Conversations that wait for something.
#[derive(Debug, Default)]
pub(super) struct Turns {
    of_users: BTreeMap<u32, VecDeque<u64>>,
    /// Whose turn it was last.
    last: u32,
}

impl Turns {
    /// A conversation of this user waits.
    pub(super) fn wait(&mut self, uid: u32, session: u64) {
        self.of_users.entry(uid).or_default().push_back(session);
    }

    /// It is over.
    pub(super) fn give_up(&mut self, uid: u32, session: u64) {
        if let Some(waiting) = self.of_users.get_mut(&uid) {
            waiting.retain(|other| *other != session);
            if waiting.is_empty() {
                self.of_users.remove(&uid);
            }
        }
    }

    /// How many users wait.
    pub(super) fn users(&self) -> usize {
        self.of_users.len()
    }

    /// Whose turn it is.
    pub(super) fn next(&mut self) -> Option<u64> {
        let after = self.of_users.range((Bound::Excluded(self.last), Bound::Unbounded)).next();
        let uid = *after.or_else(|| self.of_users.first_key_value())?.0;
        let waiting = self.of_users.get_mut(&uid)?;
        let session = waiting.pop_front()?;
        if waiting.is_empty() {
            self.of_users.remove(&uid);
        }
        self.last = uid;
        Some(session)
    }
}

/// Conversations with a question that nobody judges yet.
#[derive(Debug, Default)]
pub(super) struct Questions {
    turns: Turns,
    /// How many questions the judges have.
    judged: usize,
}

impl Questions {
    /// A conversation of this user has a question.
    pub(super) fn wait(&mut self, uid: u32, session: u64) {
        self.turns.wait(uid, session);
    }

    /// It is over.
    pub(super) fn give_up(&mut self, uid: u32, session: u64) {
        self.turns.give_up(uid, session);
    }

    /// Whether the judges have no question.
    pub(super) fn are_at_rest(&self) -> bool {
        self.judged == 0
    }

    /// One question was judged.
    pub(super) fn is_judged(&mut self) {
        self.judged = self.judged.saturating_sub(1);
    }

    /// Whose question a judge may have now.
    pub(super) fn next(&mut self) -> Option<u64> {
        if self.judged >= AT_ONCE {
            return None;
        }
        let session = self.turns.next()?;
        self.judged += 1;
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_take_turns_and_each_has_an_order() {
        let mut turns = Questions::default();
        for session in 1..=20 {
            turns.wait(7, session);
        }
        let first: Vec<u64> = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(first, (1..=8).collect::<Vec<u64>>());
        turns.wait(9, 100);
        turns.wait(5, 200);
        turns.wait(5, 201);
        turns.give_up(7, 9);
        let mut next = || {
            turns.is_judged();
            turns.next()
        };
        let order: Vec<u64> = (0..6).filter_map(|_| next()).collect();
        assert_eq!(order, [100, 200, 10, 201, 11, 12]);
    }
}
