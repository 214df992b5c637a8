//! Pending work: tables in whose queues a launch may be able to start, conversations that are over,
//! conversations that wait for the end of others. Handlers only note it, and the loop does it, a bounded
//! piece at a time, so that no handler calls another one.

use std::{collections::BTreeSet, time::Duration};

use crate::keeper::memory;

/// How long the agent works before it reads its sockets again.
pub(super) const LONGEST_ROUND: Duration = Duration::from_millis(20);

/// What is still to be done.
#[derive(Debug, Default)]
pub(super) struct Worklist {
    /// Tables whose slots or queues have changed.
    dirty: BTreeSet<String>,
    /// Conversations whose other end has gone.
    over: BTreeSet<u64>,
    /// Conversations that look again because a holder was ended for them, or may have been.
    looks: BTreeSet<u64>,
}

impl Worklist {
    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.dirty.is_empty() && self.over.is_empty() && self.looks.is_empty()
    }

    /// Something has happened to these tables.
    pub(super) fn are_dirty(&mut self, tables: &[memory::Table]) {
        self.dirty.extend(tables.iter().map(|table| table.name().to_owned()));
    }

    /// The same of a table that could not be served to its end.
    pub(super) fn is_still_dirty(&mut self, table: &str) {
        self.dirty.insert(table.to_owned());
    }

    /// These conversations look again.
    pub(super) fn look_again(&mut self, sessions: impl IntoIterator<Item = u64>) {
        self.looks.extend(sessions);
    }

    /// What is done next.
    pub(super) fn next(&mut self) -> Option<Next> {
        let over = self.over.pop_first().map(Next::HangUp);
        let dirty = || self.dirty.pop_first().map(Next::Serve);
        over.or_else(dirty).or_else(|| self.looks.pop_first().map(Next::Look))
    }

    /// A conversation cannot continue.
    pub(super) fn is_over(&mut self, session: u64) {
        self.over.insert(session);
    }
}

/// Something that is to be done.
#[derive(Debug)]
pub(super) enum Next {
    /// A conversation is over.
    HangUp(u64),
    /// The waiters of a table look, in the order of its queue.
    Serve(String),
    /// A conversation looks again, because a holder was ended for it.
    Look(u64),
}
