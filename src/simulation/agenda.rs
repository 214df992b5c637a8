//! What will happen, and when.

use std::{cmp::Reverse, collections::BinaryHeap};

/// What will happen.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Event {
    /// A program ends.
    End(u32),
    /// A launch that waits has to look whether its time is over.
    Look(i32),
}

/// All that will happen. What ends at some moment ends before anything else happens then.
#[derive(Default)]
pub(super) struct Agenda {
    events: BinaryHeap<Reverse<(u64, bool, u32, Event)>>,
    sequence: u32,
}

impl Agenda {
    /// It will happen then.
    pub(super) fn expect(&mut self, at: u64, event: Event) {
        self.sequence = self.sequence.wrapping_add(1);
        let is_look = matches!(event, Event::Look(_));
        self.events.push(Reverse((at, is_look, self.sequence, event)));
    }

    /// When the next thing happens, where it does until then.
    pub(super) fn next_until(&self, end: u64) -> Option<u64> {
        self.events.peek().map(|Reverse((at, ..))| *at).filter(|at| *at <= end)
    }

    /// What happens next.
    pub(super) fn pop(&mut self) -> Option<(u64, Event)> {
        self.events.pop().map(|Reverse((at, .., event))| (at, event))
    }
}
