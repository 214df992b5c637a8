//! The keys that this host wants, which of them may have to change, and what it has written since the
//! mirror's revision. All of it follows from what the agent keeps, and can be computed at any time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use super::{difference::Value, key::Key};
use crate::{
    agent::ledger::state::SavedStamps,
    judge::terms::location::table_of_site,
    keeper::memory::{self, Store},
};

/// Slots that are not used any more. They are held in memory until their keys are deleted, so that no launch
/// of this host gets one before.
#[derive(Debug)]
struct Leaving {
    held: memory::Held,
    keys: Vec<Key>,
}

/// The keys that one launch wants in queues.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) number: u64,
    pub(super) keys: BTreeSet<Key>,
    /// Whether its tickets need no proof: the launch was already in the queues, or they have no maximum
    /// length.
    pub(super) is_in: bool,
    /// Whether it was restored from a failed agent, and not seen in etcd yet.
    pub(super) is_unseen: bool,
}

/// The keys that this host wants, and has written.
#[derive(Debug, Default)]
pub(super) struct OwnKeys {
    wanted: BTreeMap<Key, Value>,
    /// The tables whose last use must be written, their users and the times.
    used: BTreeMap<String, (u32, Option<SystemTime>)>,
    /// By the number of the connection, or of the saved position of a launch that has not reconnected.
    pub(super) places: BTreeMap<u64, Place>,
    leaving: Vec<Leaving>,
    /// Keys that may have to change.
    dirty: BTreeSet<Key>,
    /// Keys written since the mirror's revision, with their revisions.
    written: BTreeMap<Key, (i64, Option<Value>)>,
    /// Whether the last transaction failed: until something changes, the next would fail too.
    has_failed: bool,
}

impl OwnKeys {
    /// A transaction of this host was committed at a revision.
    pub(super) fn has_written(
        &mut self,
        revision: i64,
        changes: impl IntoIterator<Item = (Key, Option<Value>)>,
    ) {
        self.written.extend(changes.into_iter().map(|(key, value)| (key, (revision, value))));
    }

    /// Writes to another etcd mean nothing.
    pub(super) fn begin_anew(&mut self) {
        self.written.clear();
    }

    /// Keys have changed in the mirror.
    pub(super) fn have_changed(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.dirty.extend(keys);
        self.try_again();
    }

    /// A failed transaction may succeed now.
    pub(super) fn try_again(&mut self) {
        self.has_failed = false;
    }

    /// These keys could not be changed.
    pub(super) fn have_failed(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.dirty.extend(keys);
        self.has_failed = true;
    }

    /// These keys may have to change, too.
    pub(super) fn are_dirty(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.dirty.extend(keys);
    }

    /// The keys that may have to change, by a mirror at this revision. Keys being proved are neither wanted
    /// nor left; keys that need a proof first come later.
    pub(super) fn take_dirty(&mut self, revision: i64, proved: &BTreeSet<Key>) -> BTreeSet<Key> {
        self.written.retain(|_, (at, _)| *at > revision);
        if self.has_failed {
            return BTreeSet::new();
        }
        let (later, mut now): (BTreeSet<Key>, BTreeSet<Key>) =
            std::mem::take(&mut self.dirty).into_iter().partition(|key| proved.contains(key));
        self.dirty = later;
        for place in self.places.values().filter(|place| !place.is_in) {
            now.retain(|key| !place.keys.contains(key));
        }
        now
    }

    /// Everything is checked again. The held slots, and the keys of this host.
    pub(super) fn look_at_all(&mut self, slots: BTreeMap<Key, Value>, own: BTreeSet<Key>) {
        self.wanted.retain(|key, _| !matches!(key, Key::Slot(..)));
        self.wanted.extend(slots);
        self.dirty.extend(own);
        self.dirty.extend(self.wanted.keys().cloned());
        self.dirty.extend(self.used.keys().cloned().map(Key::Stamps));
    }

    /// The last write of a key after this revision.
    pub(super) fn written_after(&self, revision: i64, key: &Key) -> Option<&(i64, Option<Value>)> {
        self.written.get(key).filter(|(at, _)| *at > revision)
    }

    /// The slots of a table that this host has deleted after this revision.
    pub(super) fn deleted_after(&self, revision: i64, table: &str) -> BTreeSet<u64> {
        let deleted = self.written.iter().filter(|(_, (at, value))| *at > revision && value.is_none());
        let of_table = deleted.filter_map(|(key, _)| match key {
            Key::Slot(of, slot) if of == table => Some(*slot),
            _ => None,
        });
        of_table.collect()
    }

    /// These slots of a table are not used any more.
    pub(super) fn free(&mut self, table: &str, held: memory::Held) {
        let keys: Vec<Key> = held.slots().iter().map(|slot| Key::Slot(table.to_owned(), *slot)).collect();
        for key in &keys {
            self.wanted.remove(key);
        }
        self.dirty.extend(keys.iter().cloned());
        self.leaving.push(Leaving { held, keys });
    }

    /// The last use of a table must be written; until when a program used it, if one did.
    pub(super) fn was_used(&mut self, table: String, by: u32, end: Option<SystemTime>) {
        let before = self.used.get(&table).and_then(|(_, end)| *end);
        self.used.insert(table.clone(), (by, end.max(before)));
        self.dirty.insert(Key::Stamps(table));
    }

    /// The end of a program that used a table, which others do not know yet.
    pub(super) fn untold_end(&self, table: &str) -> Option<SystemTime> {
        self.used.get(table)?.1
    }

    /// It was written, or is to be forgotten.
    pub(super) fn is_use_written(&mut self, table: &str) {
        self.used.remove(table);
    }

    /// The slots that are being released.
    pub(super) fn leaving(&self) -> impl Iterator<Item = &Key> {
        self.leaving.iter().flat_map(|leaving| &leaving.keys)
    }

    /// Releases in memory those whose keys are not among these any more. Returns their tables.
    pub(super) fn release(&mut self, left: &BTreeSet<Key>) -> Vec<memory::Table> {
        let is_gone = |leaving: &mut Leaving| !leaving.keys.iter().any(|key| left.contains(key));
        self.leaving.extract_if(.., is_gone).map(|leaving| leaving.held.table().clone()).collect()
    }

    /// A proved slot must stay.
    pub(super) fn want(&mut self, key: Key, value: Value) {
        self.wanted.insert(key.clone(), value);
        self.dirty.insert(key);
    }

    /// The tickets of a launch, all under one number; none if it waits no longer.
    pub(super) fn want_tickets(&mut self, launch: u64, number: u64, tickets: BTreeMap<Key, Value>) {
        let place = self.places.entry(launch).or_default();
        if place.number != number {
            (place.number, place.is_in) = (number, false);
        }
        for gone in place.keys.iter().filter(|key| !tickets.contains_key(*key)) {
            self.wanted.remove(gone);
            self.dirty.insert(gone.clone());
        }
        place.keys = tickets.keys().cloned().collect();
        for (key, ticket) in tickets {
            if self.wanted.get(&key) != Some(&ticket) {
                self.wanted.insert(key.clone(), ticket);
                self.dirty.insert(key);
            }
        }
        if place.keys.is_empty() {
            self.places.remove(&launch);
        }
    }

    /// Whether a launch has this ticket in etcd, or needs no proof for it.
    pub(super) fn is_in(&self, launch: u64, ticket: &Key) -> bool {
        self.places.get(&launch).is_some_and(|place| place.is_in && place.keys.contains(ticket))
    }

    /// Whether a table has slots that are being released.
    pub(super) fn is_giving_back(&self, table: &str) -> bool {
        self.leaving.iter().any(|leaving| leaving.held.table().name() == table)
    }

    /// The wanted value of a key.
    pub(super) fn wanted(&self, key: &Key, store: &Store) -> Option<Value> {
        match key {
            Key::Stamps(table) => {
                let table_here = store.known(&table_of_site(table))?;
                Some(Value::Stamps(SavedStamps::of(&table_here, self.used.get(table)?.0)))
            }
            _ => self.wanted.get(key).cloned(),
        }
    }
}
