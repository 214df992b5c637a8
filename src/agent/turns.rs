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

/// As many of one user at most: whatever that user's questions cost, some judges are there for others.
const OF_ONE_USER: usize = JUDGES / 2;

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
        self.next_of(|_| true).map(|(_, session)| session)
    }

    /// Whose turn it is of these users.
    fn next_of(&mut self, may_be: impl Fn(u32) -> bool) -> Option<(u32, u64)> {
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

/// Conversations with a question that nobody judges yet.
#[derive(Debug, Default)]
pub(super) struct Questions {
    turns: Turns,
    /// How many questions of each user the judges have.
    judged: BTreeMap<u32, usize>,
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
        self.judged.is_empty()
    }

    /// One question of this user was judged.
    pub(super) fn is_judged(&mut self, uid: u32) {
        if let Some(count) = self.judged.get_mut(&uid) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.judged.remove(&uid);
            }
        }
    }

    /// Whose question a judge may have now.
    pub(super) fn next(&mut self) -> Option<(u32, u64)> {
        if self.judged.values().sum::<usize>() >= AT_ONCE {
            return None;
        }
        let judged = &self.judged;
        let next = self.turns.next_of(|uid| judged.get(&uid).is_none_or(|count| *count < OF_ONE_USER))?;
        *self.judged.entry(next.0).or_default() += 1;
        Some(next)
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
        let first: Vec<_> = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(first, [(7, 1), (7, 2)], "others find judges too");
        turns.wait(9, 100);
        turns.wait(5, 200);
        turns.wait(5, 201);
        turns.give_up(7, 3);
        let mut next = |judged| {
            turns.is_judged(judged);
            turns.next()
        };
        let order: Vec<_> = [0, 7, 7, 0].into_iter().map(&mut next).collect();
        assert_eq!(order, [Some((9, 100)), Some((5, 200)), Some((7, 4)), Some((5, 201))]);
    }
}
