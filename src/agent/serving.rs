//! Rounds of the agent: what was noted is done, a bounded piece at a time. A queue is served from its head,
//! until somebody holds up all who are behind.

use std::time::Instant;

use super::{
    order::Order,
    service::Service,
    session::{Session, Stage},
    worklist::{LONGEST_ROUND, Next},
};
use crate::keeper::{Number, line::Class, memory};

/// How many who did not answer are looked at again before a queue is served.
const MOST_AWAY: usize = 16;

impl Service {
    /// Something has happened to these tables: whoever waits for them looks soon, in the order of the queue.
    pub(super) fn serve(&mut self, tables: &[memory::Table]) {
        self.work.are_dirty(tables);
    }

    /// These conversations look again.
    pub(super) fn look_again_after(&mut self, sessions: Vec<u64>) {
        self.work.look_again(sessions);
    }

    /// Does what is to be done, for as long as a round may take.
    pub(super) fn work_off(&mut self, begun: Instant) {
        while begun.elapsed() < LONGEST_ROUND {
            match self.work.next() {
                Some(Next::HangUp(session)) => self.hang_up(session),
                Some(Next::Serve(table)) => self.serve_queue(&table, begun),
                Some(Next::Look(session)) => self.go_on_after_endings(session),
                None => return,
            }
        }
    }

    /// Lets the launches look that wait for a table, from the head of its queue on. Whoever gets nothing
    /// holds up those behind it whose class may not pass its own; as soon as nobody is left who may, the rest
    /// need not look: at most those look who start, and one of each class.
    fn serve_queue(&mut self, name: &str, begun: Instant) {
        let Some(table) = self.ledger.store.known(name) else { return };
        // Who was stopped may go on by now. Of many, the others are back with their next beat.
        for number in table.first_away(MOST_AWAY) {
            if let Some(session) = self.sessions.get_mut(&number) {
                session.see_whether_away();
            }
        }
        let mut blocked: Vec<Class> = Vec::new();
        let mut last: Option<Number> = None;
        while let Some(number) = table.next_to_look(last, &blocked) {
            if begun.elapsed() > LONGEST_ROUND {
                self.work.is_still_dirty(name);
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
        self.ledger.store.forget_if_unused(name);
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
    fn take_order(&mut self) -> Option<Order> {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Waits(order) => Some(order),
            stage => {
                self.stage = stage;
                None
            }
        }
    }
}
