//! Whether whoever is in a conversation may have more of the agent than they have.

use std::time::SystemTime;

use super::{order::Order, quota::Quota, service::Service};
use crate::terms::location::name_on_site;

impl Service {
    /// Whether whoever asks may have one more launch with slots, and the tables that it needs.
    pub(super) fn has_quota_for(&self, number: u64, order: &Order) -> Result<(), Quota> {
        let Some(uid) = self.sessions.get(&number).map(|session| session.peer.uid) else { return Ok(()) };
        self.connections.quotas.may_launch(uid)?;
        let new = order.tables().filter(|table| self.ledger.store.known(table).is_none()).count();
        if self.connections.quotas.are_too_many_tables(self.ledger.store.count_of(uid), new) {
            self.forget_idle_tables(uid);
        }
        self.connections.quotas.may_have_tables(uid, self.ledger.store.count_of(uid), new)
    }

    /// When a table was last used is remembered until the room is needed: `list` shows it.
    fn forget_idle_tables(&self, uid: u32) {
        let is_own = |table: &str| name_on_site(table).is_none();
        for table in self.ledger.store.forget_idle(uid, SystemTime::now(), is_own) {
            self.ledger.state.forget_stamps(&table);
        }
    }

    /// Counts what a conversation has now.
    pub(super) fn recount(&mut self, number: u64) -> Result<(), Quota> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let now = session.count();
        let before = std::mem::replace(&mut session.counted, now);
        self.connections.quotas.recount(session.peer.uid, before, now)
    }

    /// Whether a user has said so much at once that others could be short of memory.
    pub(super) fn is_too_much(&self, number: u64) -> bool {
        let session = self.sessions.get(&number);
        session.is_none_or(|session| self.connections.quotas.has_said_too_much(session.peer.uid))
    }
}
