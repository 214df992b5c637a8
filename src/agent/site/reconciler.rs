//! Keeps the keys of this host in etcd as the agent wants them. What the agent keeps says which slots,
//! tickets and stamps should exist. The mirror, and what this host has written since, says which do. The
//! difference is the next transaction: one at a time, at most a hundred changes, each fenced by the host's
//! own key and by the revision of the key that it changes.
//!
//! A missing answer is no outcome. The host's key is then written again, so that nothing older can be
//! committed any more. As soon as the mirror has that key it has everything that was committed, and the
//! difference is computed again. Nothing here remembers its attempts. Taking slots, or a place in a bounded
//! queue, needs a proof; that is in `admission` and `tickets`.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use super::{
    Site,
    difference::{Change, Difference, Present, Value, diff},
    etcd::{Compare, Done, EtcdError, Operation, Transaction},
    key::Key,
    mirror::Versioned,
    pending::Work,
    proof,
    record::{AgentId, SlotRecord},
};
use crate::{
    agent::{ledger::holding::Holding, service::local::Local},
    judge::terms::location::{name_on_site, table_of_site},
    keeper::memory,
};

/// How many changes go at once.
const AT_ONCE: usize = 100;

impl Site {
    /// Gives back what a launch has of the site; `has_run` where a program had it. What it has beside that is
    /// free when this returns.
    pub(in crate::agent) fn free(&mut self, local: &mut Local, mut holding: Holding, has_run: bool) {
        let is_of_site = |held: &memory::Held| name_on_site(held.table().name()).is_some();
        let all: Vec<memory::Held> =
            holding.held.extract_if(.., |held| is_of_site(held) && !held.is_shared()).collect();
        let end = has_run.then(SystemTime::now);
        for held in all {
            if let Some(end) = end {
                held.table().ended(end);
            }
            let Some(name) = name_on_site(held.table().name()).map(str::to_owned) else { continue };
            if holding.paced_at_site.iter().any(|paced| paced == held.table().name()) {
                self.own.was_used(name.clone(), holding.saved.uid, end);
            }
            self.own.free(&name, held);
        }
        self.reconcile(local);
    }

    /// Has it forgotten everywhere when a table was last used, if it is the site's.
    pub(in crate::agent) fn reset(&mut self, table: &str) {
        if let Some(name) = name_on_site(table) {
            self.own.is_use_written(name);
            let key = Key::Stamps(name.to_owned());
            let stamps = Operation::Delete(self.keys.name(&key));
            self.send(Work::Aside(key), Transaction { compares: Vec::new(), operations: vec![stamps] });
        }
    }

    /// Looks at everything once more, whether it has changed or not.
    pub(super) fn look_at_all_keys(&mut self, local: &mut Local) {
        if self.presence.registration().is_none() {
            return;
        }
        for launch in self.own.places.keys().copied().collect::<Vec<_>>() {
            self.want_tickets(local, launch);
            self.join(local, launch);
        }
        let slots = self.wanted_slots(local);
        let own = self.own_keys();
        self.own.look_at_all(slots, own);
    }

    /// The slots that this host holds.
    fn wanted_slots(&self, local: &Local) -> BTreeMap<Key, Value> {
        let mut slots = BTreeMap::new();
        for holding in local.ledger().holdings().values() {
            for held in holding.held.iter().filter(|held| !held.is_shared()) {
                let Some(name) = name_on_site(held.table().name()) else { continue };
                let launch = holding.of_site.map_or(0, |of_site| of_site.launch);
                let record =
                    SlotRecord::of(&holding.saved, holding.rule_on(name), &self.host, &self.agent, launch);
                slots.extend(
                    held.slots()
                        .iter()
                        .map(|slot| (Key::Slot(name.to_owned(), *slot), Value::Slot(record.clone()))),
                );
            }
        }
        slots
    }

    /// Sends what has to change of this host's keys, if it is known what there is, and nothing is on its way.
    pub(in crate::agent) fn reconcile(&mut self, local: &mut Local) {
        if self.pending.is_keeping() || !self.has_settled() {
            return;
        }
        self.release();
        let notices = self.wanted_notices(local);
        let proved = self.pending.keys_in_proof();
        self.own.are_dirty(notices.keys().cloned());
        let now = self.own.take_dirty(self.mirror.revision(), &proved);
        let wanted = |key: &Key| match key {
            Key::Notice(..) => notices.get(key).cloned(),
            key => self.own.wanted(key, local.ledger().store()),
        };
        let Difference { mut changes, taken } = diff(&now, wanted, |key| self.present(key));
        let more = changes.split_off(changes.len().min(AT_ONCE));
        self.own.are_dirty(more.into_iter().map(|change| change.key));
        if !changes.is_empty() {
            self.send_changes(changes);
        }
        for key in taken {
            self.is_taken(local, key);
        }
    }

    /// What came of it.
    pub(super) fn reconciled(
        &mut self,
        local: &mut Local,
        changes: Vec<Change>,
        result: Result<Done, EtcdError>,
    ) {
        match result {
            Ok(done) if done.holds => {
                for Change { key, value, .. } in &changes {
                    match (key, value) {
                        (Key::Stamps(table), _) => self.own.is_use_written(table),
                        (Key::Slot(table, slot), Some(_)) => {
                            let here = table_of_site(table);
                            let has = |holding: &&Holding| holding.has(&here, *slot);
                            let holding = local.ledger().holdings().iter().find(|(_, holding)| has(holding));
                            holding.map(|(number, _)| self.ended.remove(number));
                        }
                        _ => {}
                    }
                }
                self.own.has_written(
                    done.revision,
                    changes.into_iter().map(|Change { key, value, .. }| (key, value)),
                );
                self.release();
            }
            // Something was otherwise than it was known to be, perhaps the host's key: it is looked at again
            // when that is known.
            Ok(_) => {
                self.presence.look();
                self.own.have_failed(changes.into_iter().map(|change| change.key));
            }
            Err(trouble) => {
                self.own.have_failed(changes.into_iter().map(|change| change.key));
                if !trouble.is_definite() {
                    self.presence.register_anew();
                }
                self.presence.note(trouble);
            }
        }
    }

    /// A key that this host wants is somebody else's. A launch that waits takes another number. A slot is
    /// taken elsewhere, whatever the limit; its program is ended first where the policy says so.
    fn is_taken(&mut self, local: &mut Local, key: Key) {
        let (table, slot) = match key {
            Key::Slot(table, slot) => (table, slot),
            key => {
                let mut places = self.own.places.iter();
                let launch = places.find(|(_, place)| place.keys.contains(&key)).map(|(launch, _)| *launch);
                return launch.map_or((), |launch| self.come_anew(local, launch));
            }
        };
        // For as long as its program keeps it.
        self.own.are_dirty([Key::Slot(table.clone(), slot)]);
        let here = table_of_site(&table);
        let holding = local.ledger().holdings().iter().find(|(_, holding)| holding.has(&here, slot));
        let Some(number) = holding.map(|(number, _)| *number) else { return };
        self.move_slot(local, number, &table, slot);
    }
}

impl Site {
    /// Whether everything that this host has ever sent was done by now, or never will be: the host's key was
    /// written after it, and the mirror has that.
    pub(super) fn has_settled(&self) -> bool {
        let is_seen = |registration| registration <= self.mirror.revision();
        self.mirror.is_known() && self.presence.registration().is_some_and(is_seen)
    }

    /// A key as it is known to be: as this host has written it, until the mirror has got there.
    pub(super) fn present(&self, key: &Key) -> Option<Present> {
        if let Some((revision, value)) = self.own.written_after(self.mirror.revision(), key) {
            let value = value.clone()?;
            // What this host replies to a notice makes it no notice of its own.
            let is_own = !matches!(&value, Value::Notice(of) if !self.is_own(&of.host, &of.agent));
            return Some(Present { revision: *revision, value: Some(value), is_own });
        }
        let is_own = |host: &str, agent| self.is_own(host, agent);
        match key {
            Key::Slot(table, slot) => {
                let Versioned { revision, record } = self.mirror.table(table)?.slots.get(slot)?;
                let is_own = record.as_ref().is_some_and(|record| is_own(&record.host, &record.agent));
                Some(Present { revision: *revision, value: record.clone().map(Value::Slot), is_own })
            }
            Key::Ticket(table, number) => {
                let Versioned { revision, record } = self.mirror.table(table)?.tickets.get(number)?;
                let is_own = record.as_ref().is_some_and(|record| is_own(&record.host, &record.agent));
                Some(Present { revision: *revision, value: record.clone().map(Value::Ticket), is_own })
            }
            Key::Notice(table, slot) => {
                let Versioned { revision, record } = self.mirror.table(table)?.notices.get(slot)?;
                let is_own = record.as_ref().is_some_and(|record| is_own(&record.host, &record.agent));
                Some(Present { revision: *revision, value: record.clone().map(Value::Notice), is_own })
            }
            Key::Stamps(table) => {
                let Versioned { revision, record } = self.mirror.table(table)?.stamps.as_ref()?;
                Some(Present { revision: *revision, value: record.map(Value::Stamps), is_own: false })
            }
            Key::Host(_) | Key::Written(_) | Key::Cluster => None,
        }
    }

    /// Whether this host has written it: this agent, or one before it. A host of the same name that lives
    /// would have written the key of the host meanwhile.
    fn is_own(&self, host: &str, agent: &AgentId) -> bool {
        *agent == self.agent || host == self.host && self.presence.is_alone_by_its_name()
    }

    fn own_keys(&self) -> BTreeSet<Key> {
        self.mirror.keys_of(|host, agent| self.is_own(host, agent)).map(|(key, _)| key).collect()
    }

    /// Sends changes in one transaction, if each key is still as it was known to be.
    fn send_changes(&mut self, changes: Vec<Change>) {
        let Some(registration) = self.presence.registration() else { return };
        let mut compares = vec![proof::of_host(&self.keys, &self.host, registration)];
        // A notice is of a holder that has the slot still.
        compares.extend(changes.iter().filter(|change| change.value.is_some()).filter_map(|change| {
            let Key::Notice(table, slot) = &change.key else { return None };
            let held = self.mirror.table(table)?.slots.get(slot)?;
            Some(Compare::ChangedAt(self.keys.name(&Key::Slot(table.clone(), *slot)), held.revision))
        }));
        let transaction = proof::transaction(&self.keys, compares, &changes);
        self.send(Work::Keep(changes), transaction);
    }

    /// Lets go in memory of slots whose keys are gone. Those who wait for them look.
    fn release(&mut self) {
        if !self.has_settled() {
            return;
        }
        let is_there = |key: &&Key| self.present(key).is_some_and(|there| there.is_own);
        let left: BTreeSet<Key> = self.own.leaving().filter(is_there).cloned().collect();
        let tables = self.own.release(&left);
        let names = tables.iter().filter_map(|table| name_on_site(table.name()));
        self.stirred.extend(names.map(str::to_owned));
    }
}
