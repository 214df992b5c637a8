//! What this host's agent finds of its own that it does not know: left by an agent that died in between, by a
//! boot before this one, or by a transaction that was committed late.

use std::collections::BTreeSet;

use super::{
    Site,
    etcd::{Compare, Operation, Transaction},
    key::Key,
    ticket_keys::Tickets,
    work::Work,
};
use crate::{agent::service::Service, sys::process, terms::location::table_of_site};

/// How many keys go at once.
const AT_ONCE: usize = 50;

impl Service {
    /// Deletes keys of this host that nothing here stands for.
    pub(super) fn clear_leftovers(&mut self) {
        let Some(site) = &self.site else { return };
        let Some(registration) = site.registration else { return };
        if !site.mirror.is_known()
            || site.tickets.values().any(|tickets| tickets.is_restored)
            || site.works.values().any(|work| matches!(work, Work::Clear(host) if *host == site.host))
        {
            return;
        }
        // A host of the same name that lives would have written the key meanwhile.
        let now = process::since_boot().unwrap_or_default();
        let is_undisputed = now.saturating_sub(site.registered) > site.ttl && !site.is_disputed();
        let own = site.keys_of(|host, agent| *agent == site.agent || is_undisputed && host == site.host);
        let tickets = site.own_tickets();
        let left = own.filter(|(key, _)| !self.is_known(key, &tickets)).take(AT_ONCE);
        let left: Vec<(String, i64)> = left.collect();
        if left.is_empty() {
            return;
        }
        let mut compares = vec![Compare::ChangedAt(site.key_of_host(), registration)];
        compares.extend(left.iter().map(|(key, revision)| Compare::ChangedAt(key.clone(), *revision)));
        let operations = left.into_iter().map(|(key, _)| Operation::Delete(key)).collect();
        let host = site.host.clone();
        if let Some(site) = &mut self.site {
            site.send(Work::Clear(host), Transaction { compares, operations });
        }
    }

    /// Whether something here stands for a key.
    fn is_known(&self, name: &str, tickets: &BTreeSet<(u64, &str)>) -> bool {
        let Some(site) = &self.site else { return true };
        match site.keys.parse(name) {
            Some(Key::Slot(table, slot)) => {
                let (local, at) = (table_of_site(&table), site.mirror.table(&table));
                let record = at.and_then(|of| of.slots.get(&slot)?.record.as_ref());
                let mut works = site.works.values().chain(&site.unclear).chain(&site.again);
                let mut holdings = self.ledger.holdings().values();
                record.is_none_or(|record| {
                    works.any(|work| work.is_about(&local, slot) || work.is_about(&table, slot))
                        || holdings.any(|holding| {
                            record.is_of(&site.agent, &holding.saved) && holding.has(&local, slot)
                        })
                })
            }
            Some(Key::Ticket(table, number)) => tickets.contains(&(number, table.as_str())),
            Some(Key::Notice(table, slot)) => self.gives_notice_of(&table, slot),
            _ => true,
        }
    }
}

impl Site {
    /// Every ticket of a launch of this host that is there, or may be.
    fn own_tickets(&self) -> BTreeSet<(u64, &str)> {
        let mut own = BTreeSet::new();
        for Tickets { number, written, moving, .. } in self.tickets.values() {
            own.extend(written.keys().chain(moving).map(|table| (*number, table.as_str())));
        }
        own
    }
}
