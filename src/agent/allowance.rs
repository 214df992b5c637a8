//! Whether whoever is in a conversation may have more of the agent than they have.

use super::{order::Order, quota::Quota, service::Service};

impl Service {
    /// Whether whoever asks may have one more launch with slots, and the tables that it needs.
    pub(super) fn has_quota_for(&self, number: u64, order: &Order) -> Result<(), Quota> {
        let Some(uid) = self.sessions.get(&number).map(|session| session.peer.uid) else { return Ok(()) };
        self.quotas.may_launch(uid)?;
        let new = order.tables().filter(|table| self.store.known(table).is_none()).count();
        self.quotas.may_have_tables(uid, self.store.count_of(uid), new)
    }

    /// Counts what a conversation has now.
    pub(super) fn recount(&mut self, number: u64) -> Result<(), Quota> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let now = (session.place.line.places(), session.size());
        let before = std::mem::replace(&mut session.counted, now);
        self.quotas.recount(session.peer.uid, before, now)
    }

    /// Whether a user has said so much at once that others could be short of memory.
    pub(super) fn is_too_much(&self, number: u64) -> bool {
        let session = self.sessions.get(&number);
        session.is_none_or(|session| self.quotas.has_said_too_much(session.peer.uid))
    }
}
