//! All sessions, and what follows from their changes.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    time::Instant,
};

use super::{AWAY, Effect, Load, Session};

/// All sessions. Code that changes one need not know what follows: the loop of the agent asks here which were
/// changed.
#[derive(Default)]
pub(in crate::agent) struct Sessions {
    all: BTreeMap<u64, Session>,
    changed: VecDeque<u64>,
    /// Sessions for which a holder is being ended.
    evicting: BTreeSet<u64>,
    /// When to check sessions even without input.
    timers: BTreeSet<(Instant, u64)>,
    /// When launches that could not be judged last had their full time again.
    in_time_since: Option<Instant>,
}

impl Sessions {
    /// A client has connected.
    pub(in crate::agent) fn insert(&mut self, number: u64, session: Session) {
        self.all.insert(number, session);
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "it is a map")]
    pub(in crate::agent) fn get(&self, number: &u64) -> Option<&Session> {
        self.all.get(number)
    }

    /// One of them, mutably.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "it is a map")]
    pub(in crate::agent) fn get_mut(&mut self, number: &u64) -> Option<&mut Session> {
        let session = self.all.get_mut(number)?;
        if !mem::replace(&mut session.is_changed, true) {
            self.changed.push_back(*number);
        }
        Some(session)
    }

    pub(in crate::agent) fn iter(&self) -> impl Iterator<Item = (&u64, &Session)> {
        self.all.iter()
    }

    /// Sessions for which a holder is being ended.
    pub(in crate::agent) fn evicting(&self) -> Vec<u64> {
        self.evicting.iter().copied().collect()
    }

    /// When to check the next of them, and which one.
    pub(in crate::agent) fn next_timer(&self) -> Option<(Instant, u64)> {
        self.timers.first().copied()
    }

    /// A client is gone.
    pub(in crate::agent) fn remove(&mut self, number: u64) {
        self.all.remove(&number);
    }

    /// No client could be read for a while: those that responded before get their full time again.
    pub(in crate::agent) fn on_stall(&mut self) {
        for session in self.all.values_mut().filter(|session| !session.place.was_away) {
            session.place.beaten = session.place.beaten.map(|_| Instant::now());
            session.place.unjudged = session.place.unjudged.map(|_| Instant::now());
        }
    }

    /// A launch was judged. If that was impossible for too long, a name service may have come back. So others
    /// have their full time again, and are not overtaken because this one was judged first. That is not
    /// repeated soon: a launch that can never be judged would always block those behind it.
    pub(in crate::agent) fn on_judged(&mut self, number: u64) {
        let is_soon = self.in_time_since.is_some_and(|since| since.elapsed() < 2 * AWAY);
        if !is_soon && self.all.get(&number).is_some_and(Session::is_late) {
            self.in_time_since = Some(Instant::now());
            let late = self.all.iter().filter(|(_, session)| session.is_late());
            for number in late.map(|(number, _)| *number).collect::<Vec<_>>() {
                if let Some(session) = self.get_mut(&number) {
                    session.restart_judging();
                }
            }
        }
    }

    /// What follows from the changes.
    pub(in crate::agent) fn next_change(&mut self) -> Option<(u64, Change)> {
        let number = *self.changed.front()?;
        let Some(session) = self.all.get_mut(&number) else {
            self.changed.pop_front();
            return self.next_change();
        };
        if let Some(effect) = session.effects.pop_front() {
            return Some((number, Change::Effect(effect)));
        }
        self.changed.pop_front();
        session.is_changed = false;
        let due = session.next_due();
        let before = mem::replace(&mut session.due, due);
        if before != due {
            before.map(|due| self.timers.remove(&(due, number)));
            self.timers.extend(due.map(|due| (due, number)));
        }
        if session.has_evictions() {
            self.evicting.insert(number);
        } else {
            self.evicting.remove(&number);
        }
        Some((number, Change::Load(session.load())))
    }
}

/// What follows from a change.
pub(in crate::agent) enum Change {
    /// There is work.
    Effect(Effect),
    /// There is none; what the session uses now.
    Load(Load),
}
