//! The whole table of the site as this agent knows it, at one revision. That is the revision of the first
//! fresh read, then the highest at which a change was *received*: what headers and notices of progress say
//! runs ahead of the changes. What the agent writes itself does not advance it.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    etcd::Pair,
    key::{Key, Keys},
    record::{ClusterRecord, HostRecord, NoticeRecord, SlotRecord, TicketRecord, read},
};
use crate::agent::saved::SavedStamps;

/// A value, with the revision at which it was last written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct At<T> {
    pub(super) revision: i64,
    /// None where nobody can read it.
    pub(super) record: Option<T>,
}

/// A table.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct TableOfSite {
    pub(super) slots: BTreeMap<u64, At<SlotRecord>>,
    pub(super) tickets: BTreeMap<u64, At<TicketRecord>>,
    /// By the slots that they are about.
    pub(super) notices: BTreeMap<u64, At<NoticeRecord>>,
    pub(super) stamps: Option<At<SavedStamps>>,
}

impl TableOfSite {
    fn count(&self) -> usize {
        self.slots.len() + self.tickets.len() + self.notices.len() + usize::from(self.stamps.is_some())
    }

    fn is_empty(&self) -> bool {
        self.count() == 0
    }
}

/// What changed by what came.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Changed {
    pub(super) tables: BTreeSet<String>,
    pub(super) hosts: BTreeSet<String>,
}

/// The mirror.
#[derive(Clone, Debug)]
pub(super) struct Mirror {
    keys: Keys,
    revision: i64,
    is_known: bool,
    tables: BTreeMap<String, TableOfSite>,
    pub(super) hosts: BTreeMap<String, At<HostRecord>>,
    pub(super) written: BTreeMap<String, At<HostRecord>>,
    pub(super) cluster: Option<At<ClusterRecord>>,
    /// Keys that mean nothing here: those of agents of another version, say.
    strange: BTreeSet<String>,
    /// When slots were deleted that are forgotten although it was not told yet.
    early: Vec<i64>,
}

impl Mirror {
    /// One that knows nothing yet.
    pub(super) fn new(keys: Keys) -> Self {
        Self {
            keys,
            revision: 0,
            is_known: false,
            tables: BTreeMap::new(),
            hosts: BTreeMap::new(),
            written: BTreeMap::new(),
            cluster: None,
            strange: BTreeSet::new(),
            early: Vec::new(),
        }
    }

    /// The revision up to which everything is known.
    pub(super) fn revision(&self) -> i64 {
        self.revision
    }

    /// Whether it was ever read.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// A table, where there is anything to know of it.
    pub(super) fn table(&self, name: &str) -> Option<&TableOfSite> {
        self.tables.get(name)
    }

    /// Every table of which there is anything to know.
    pub(super) fn tables(&self) -> impl Iterator<Item = (&String, &TableOfSite)> {
        self.tables.iter()
    }

    /// Whether it lacks anything, or has too much: if every change up to this revision is there, so many keys
    /// are.
    pub(super) fn differs_from(&self, revision: i64, count: i64) -> bool {
        let early = self.early.iter().filter(|at| **at > self.revision).count();
        let known = self.count() + early + self.strange.len();
        self.revision == revision && i64::try_from(known).is_ok_and(|known| known != count)
    }

    /// How many keys there are.
    pub(super) fn count(&self) -> usize {
        self.tables.values().map(TableOfSite::count).sum::<usize>()
            + self.hosts.len()
            + self.written.len()
            + usize::from(self.cluster.is_some())
    }

    /// Everything anew, whatever was known before.
    pub(super) fn replace(&mut self, revision: i64, pairs: Vec<Pair>) -> Changed {
        let mut changed = Changed {
            tables: self.tables.keys().cloned().collect(),
            hosts: self.hosts.keys().chain(self.written.keys()).cloned().collect(),
        };
        *self = Self { revision, is_known: true, ..Self::new(self.keys.clone()) };
        for pair in pairs {
            self.set(&mut changed, pair, true);
        }
        changed
    }

    /// Changes that came over the watch, in their order.
    pub(super) fn apply(&mut self, changes: Vec<(Pair, bool)>) -> Changed {
        let mut changed = Changed::default();
        for (pair, is_there) in changes {
            // A watch that was begun anew may say again what was said.
            if pair.revision < self.revision {
                continue;
            }
            self.revision = pair.revision;
            self.set(&mut changed, pair, is_there);
        }
        self.early.retain(|at| *at > self.revision);
        changed
    }

    /// A slot that was written at `written` and that this agent itself has deleted, at `deleted`: it need not
    /// wait to be told.
    pub(super) fn forget_slot(&mut self, table: &str, slot: u64, written: i64, deleted: i64) {
        if let Some(of) = self.tables.get_mut(table) {
            if of.slots.get(&slot).is_some_and(|at| at.revision == written) {
                of.slots.remove(&slot);
                self.early.push(deleted);
            }
            if of.is_empty() {
                self.tables.remove(table);
            }
        }
    }

    fn set(&mut self, changed: &mut Changed, Pair { key, value, revision, lease }: Pair, is_there: bool) {
        let Some(key) = self.keys.parse(&key) else {
            if is_there {
                self.strange.insert(key);
            } else {
                self.strange.remove(&key);
            }
            return;
        };
        match key {
            Key::Slot(table, slot) => {
                let of = self.table_of(changed, &table);
                put(&mut of.slots, slot, is_there.then(|| At { revision, record: read(&value) }));
                self.forget_if_empty(&table);
            }
            Key::Ticket(table, number) => {
                let of = self.table_of(changed, &table);
                put(&mut of.tickets, number, is_there.then(|| At { revision, record: read(&value) }));
                self.forget_if_empty(&table);
            }
            Key::Notice(table, slot) => {
                let of = self.table_of(changed, &table);
                put(&mut of.notices, slot, is_there.then(|| At { revision, record: read(&value) }));
                self.forget_if_empty(&table);
            }
            Key::Stamps(table) => {
                let of = self.table_of(changed, &table);
                of.stamps = is_there.then(|| At { revision, record: read(&value) });
                self.forget_if_empty(&table);
            }
            Key::Host(host) => {
                let record = read(&value).map(|record| HostRecord { lease, ..record });
                put(&mut self.hosts, host.clone(), is_there.then_some(At { revision, record }));
                changed.hosts.insert(host);
            }
            Key::Written(host) => {
                put(&mut self.written, host.clone(), is_there.then(|| At { revision, record: read(&value) }));
                changed.hosts.insert(host);
            }
            Key::Cluster => self.cluster = is_there.then(|| At { revision, record: read(&value) }),
        }
    }

    fn table_of(&mut self, changed: &mut Changed, table: &str) -> &mut TableOfSite {
        changed.tables.insert(table.to_owned());
        self.tables.entry(table.to_owned()).or_default()
    }

    fn forget_if_empty(&mut self, table: &str) {
        if self.tables.get(table).is_some_and(TableOfSite::is_empty) {
            self.tables.remove(table);
        }
    }
}

fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: &str, revision: i64) -> Pair {
        Pair { key: key.to_owned(), value: b"{".to_vec(), revision, lease: 0 }
    }

    fn mirror() -> Mirror {
        let mut mirror = Mirror::new(Keys::below("/r"));
        mirror.replace(10, vec![pair("/r/s/a/0000001", 4), pair("/r/h/lab", 9), pair("/r/strange", 2)]);
        mirror
    }

    /// "The revision of the first fresh read, then the highest mod revision received as an event."
    #[test]
    fn the_revision_is_that_of_what_was_received() {
        let mut mirror = mirror();
        assert_eq!((mirror.revision(), mirror.count()), (10, 2));
        let changed =
            mirror.apply(vec![(pair("/r/s/a/0000002", 12), true), (pair("/r/s/a/0000001", 13), false)]);
        assert_eq!(mirror.revision(), 13);
        assert_eq!(changed.tables.into_iter().collect::<Vec<_>>(), ["a"]);
        let slots: Vec<_> = mirror.table("a").expect("a table").slots.keys().copied().collect();
        assert_eq!(slots, [2]);
    }

    #[test]
    fn what_is_said_again_changes_nothing() {
        let mut mirror = mirror();
        mirror.apply(vec![(pair("/r/s/a/0000001", 13), false)]);
        assert_eq!(mirror.apply(vec![(pair("/r/s/a/0000001", 4), true)]), Changed::default());
        assert_eq!(mirror.table("a"), None);
    }

    /// "Any answer with a revision below R (a restore) means: undo, read afresh."
    #[test]
    fn a_fresh_read_undoes_everything() {
        let mut mirror = mirror();
        let changed = mirror.replace(5, Vec::new());
        assert_eq!((mirror.revision(), mirror.count()), (5, 0));
        assert!(changed.tables.contains("a") && changed.hosts.contains("lab"));
    }

    /// A slot whose record nobody can read is held all the same.
    #[test]
    fn a_key_counts_whatever_its_value_is() {
        assert_eq!(mirror().table("a").expect("a table").slots[&1].record, None);
    }

    #[test]
    fn what_did_not_come_is_noticed_by_the_number_of_keys() {
        let mut mirror = mirror();
        // Two that are known, and one that means nothing here.
        let differs = |mirror: &Mirror, revision| [2, 3, 4].map(|count| mirror.differs_from(revision, count));
        assert_eq!(differs(&mirror, 10), [true, false, true]);
        assert_eq!(differs(&mirror, 9), [false; 3]);
        mirror.apply(vec![(pair("/r/new/key", 11), true), (pair("/r/strange", 12), false)]);
        assert_eq!(differs(&mirror, 12), [true, false, true]);
        let mut mirror = self::mirror();
        // What is forgotten early was there at that revision.
        mirror.forget_slot("a", 1, 5, 12);
        assert!(mirror.table("a").is_some(), "somebody else's is not forgotten");
        mirror.forget_slot("a", 1, 4, 12);
        assert!(mirror.table("a").is_none());
        assert_eq!(differs(&mirror, 10), [true, false, true]);
        mirror.apply(vec![(pair("/r/s/a/0000001", 12), false)]);
        assert_eq!(differs(&mirror, 12), [false, true, true]);
    }
}
