//! What follows from what has happened: tables in whose queues somebody may be able to start, conversations
//! that are over, conversations that wait for the end of others. Handlers only note it here, and the loop of
//! the agent does it, a bounded piece at a time. So no handler ever calls another one, the stack is as deep
//! for two thousand waiters as for one, and whoever speaks meanwhile is heard in between.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use super::{
    service::Service,
    session::{Session, Stage},
};
use crate::keeper::{Number, line::Class, memory};

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

    /// A conversation cannot go on.
    pub(super) fn is_over(&mut self, session: u64) {
        self.over.insert(session);
    }
}

impl Service {
    /// Something has happened to these tables: whoever waits for them looks soon, in the order of the queue.
    pub(super) fn serve(&mut self, tables: &[memory::Table]) {
        self.work.dirty.extend(tables.iter().map(|table| table.name().to_owned()));
    }

    /// These conversations look again.
    pub(super) fn look_again_after(&mut self, sessions: Vec<u64>) {
        self.work.looks.extend(sessions);
    }

    /// Does what is to be done, for as long as a round may take.
    pub(super) fn work_off(&mut self, begun: Instant) {
        while begun.elapsed() < LONGEST_ROUND {
            if let Some(session) = self.work.over.pop_first() {
                self.hang_up(session);
            } else if let Some(table) = self.work.dirty.pop_first() {
                self.serve_queue(&table, begun);
            } else if let Some(session) = self.work.looks.pop_first() {
                self.go_on_after_endings(session);
            } else {
                return;
            }
        }
    }

    /// Lets the launches look that wait for a table, from the head of its queue on. Whoever gets nothing holds
    /// up those behind it whose class may not pass its own; as soon as nobody is left who may pass, the rest
    /// need not look: at most those look who start, and one of each class.
    fn serve_queue(&mut self, name: &str, begun: Instant) {
        let Some(table) = self.store.known(name) else { return };
        let mut blocked: Vec<Class> = Vec::new();
        let mut last: Option<Number> = None;
        while let Some(number) = table.next_to_look(last, &blocked) {
            if begun.elapsed() > LONGEST_ROUND {
                self.work.dirty.insert(name.to_owned());
                return;
            }
            last = Some(number);
            if let Some(session) = table.session_of(number)
                && !self.look_in_turn(session)
            {
                continue;
            }
            // Whoever has its slots, or has been refused, stands there no longer.
            blocked.extend(table.classes_of(number));
        }
        drop(table);
        self.store.forget_if_unused(name);
    }

    /// Lets a waiting launch look. Says whether it holds up others if it is still in the queue: one that does
    /// not answer is passed.
    fn look_in_turn(&mut self, number: u64) -> bool {
        let Some(session) = self.sessions.get_mut(&number) else { return true };
        if !matches!(session.stage, Stage::Waits(_)) {
            return true;
        }
        if session.see_whether_away() {
            return false;
        }
        if let Some(order) = session.take_order() {
            self.carry_out(number, order, false);
            self.flush(number);
        }
        true
    }
}

impl Session {
    /// The order for which the launch waits, to be carried out once more.
    fn take_order(&mut self) -> Option<super::order::Order> {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Waits(order) => Some(order),
            stage => {
                self.stage = stage;
                None
            }
        }
    }
}
