//! Events in the order in which they were decided. Whoever decides first may be the last to write it down.

use std::collections::VecDeque;

use crate::log::event::Event;

/// Nobody writes an event down later than this after it was decided, in microseconds, as far as anybody waits
/// for it.
pub(super) const LATE: u64 = 5_000_000;

/// More events than these are never kept waiting.
const MOST: usize = 4096;

/// Events that may have to let others pass.
#[derive(Default)]
pub(super) struct InOrder {
    /// Each with the moment of its decision; among equals in the order in which they came.
    waiting: VecDeque<(u64, Event)>,
}

impl InOrder {
    /// One event more. Nearly always it is the newest.
    pub(super) fn add(&mut self, event: Event) {
        let moment = event.micros();
        let before = self.waiting.iter().rposition(|(other, _)| *other <= moment);
        self.waiting.insert(before.map_or(0, |before| before + 1), (moment, event));
    }

    /// The next one, where it lets nobody pass any more.
    pub(super) fn due(&mut self) -> Option<Event> {
        let ((oldest, _), (newest, _)) = (self.waiting.front()?, self.waiting.back()?);
        let is_due = newest - oldest > LATE || self.waiting.len() > MOST;
        is_due.then(|| self.waiting.pop_front()).flatten().map(|(_, event)| event)
    }

    /// Everything that is left.
    pub(super) fn into_rest(self) -> impl Iterator<Item = Event> {
        self.waiting.into_iter().map(|(_, event)| event)
    }
}
