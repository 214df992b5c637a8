//! Times in which the agent did not run, or the whole machine: nobody could be heard, and so nobody who was
//! not heard is taken for away.

use std::time::Instant;

use super::{service::Service, session::AWAY};

impl Service {
    /// It has stood still: whoever answered before has as much time as ever to do so again.
    pub(super) fn has_stood_still(&mut self) {
        let now = Instant::now();
        for session in self.sessions.values_mut().filter(|session| !session.place.was_away) {
            session.place.beaten = session.place.beaten.map(|_| now);
        }
        for (number, returning) in
            self.ledger.returning.iter_mut().filter(|(_, returning)| !returning.is_away)
        {
            self.dues.remove(&(returning.due, *number));
            returning.due = now + AWAY;
            self.dues.insert((returning.due, *number));
        }
    }
}
