//! Pending work: tables in whose queues a launch may be able to start, connections that are closed, sessions
//! that wait for holders to end. Handlers only add it, and the loop does it, a bounded piece at a time, so
//! that no handler calls another one.

use std::{collections::BTreeSet, time::Duration};

use crate::keeper::memory;

/// How long the agent works before it reads its sockets again.
pub(super) const LONGEST_ROUND: Duration = Duration::from_millis(20);

/// What is still to be done.
#[derive(Debug, Default)]
pub(super) struct Worklist {
    /// Tables whose slots or queues have changed.
    dirty: BTreeSet<String>,
    /// Connections whose other end is gone.
    over: BTreeSet<u64>,
    /// Sessions that check again because a holder was ended for them, or may have been.
    looks: BTreeSet<u64>,
}

impl Worklist {
    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.dirty.is_empty() && self.over.is_empty() && self.looks.is_empty()
    }

    /// These tables have changed.
    pub(super) fn are_dirty(&mut self, tables: &[memory::Table]) {
        self.dirty.extend(tables.iter().map(|table| table.name().to_owned()));
    }

    /// The same for a table whose queue was not served to its end.
    pub(super) fn is_still_dirty(&mut self, table: &str) {
        self.dirty.insert(table.to_owned());
    }

    /// These sessions check again.
    pub(super) fn look_again(&mut self, sessions: impl IntoIterator<Item = u64>) {
        self.looks.extend(sessions);
    }

    /// The next piece of work.
    pub(super) fn next(&mut self) -> Option<Next> {
        let over = self.over.pop_first().map(Next::HangUp);
        let dirty = || self.dirty.pop_first().map(Next::Serve);
        over.or_else(dirty).or_else(|| self.looks.pop_first().map(Next::Look))
    }

    /// A connection cannot continue.
    pub(super) fn is_over(&mut self, session: u64) {
        self.over.insert(session);
    }
}

/// A piece of work.
#[derive(Debug)]
pub(super) enum Next {
    /// A connection is closed.
    HangUp(u64),
    /// The waiters of a table check again, in the order of its queue.
    Serve(String),
    /// A session checks again, because a holder was ended for it.
    Look(u64),
}
