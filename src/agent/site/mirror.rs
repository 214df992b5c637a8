//! The whole table of the site as this agent knows it, at one revision: that of the last full read, then the
//! highest at which a change was *received*. Headers and progress notices may be ahead of the received
//! changes, so they do not count. Neither do the agent's own writes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    AgentId, ClusterRecord, HostRecord, Key, Keys, NoticeRecord, Site, SlotRecord, Taking, TicketRecord,
    etcd::{Inventory, Pair},
    record::read,
};
use crate::{
    agent::ledger::state::SavedStamps,
    judge::terms::table_of_site,
    keeper::{Class, Holder, Number, Store, memory},
    sys::process,
};

/// A value, with the revision at which it was last written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Versioned<T> {
    pub(super) revision: i64,
    /// None if it is unreadable.
    pub(super) record: Option<T>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct TableOfSite {
    pub(super) slots: BTreeMap<u64, Versioned<SlotRecord>>,
    pub(super) tickets: BTreeMap<u64, Versioned<TicketRecord>>,
    /// By their slots.
    pub(super) notices: BTreeMap<u64, Versioned<NoticeRecord>>,
    pub(super) stamps: Option<Versioned<SavedStamps>>,
}

impl TableOfSite {
    /// How many keys it has.
    pub(super) fn count(&self) -> usize {
        self.slots.len() + self.tickets.len() + self.notices.len() + usize::from(self.stamps.is_some())
    }

    /// A key of a host: its kind, its number, the revision of its last write, and its author, unless that is
    /// unreadable.
    fn authored(&self) -> impl Iterator<Item = Authored<'_>> {
        let slots = self.slots.iter().map(|(slot, at)| Authored {
            kind: Key::Slot,
            number: *slot,
            revision: at.revision,
            author: at.record.as_ref().map(|of| (&of.host, &of.agent)),
        });
        let tickets = self.tickets.iter().map(|(number, at)| Authored {
            kind: Key::Ticket,
            number: *number,
            revision: at.revision,
            author: at.record.as_ref().map(|of| (&of.host, &of.agent)),
        });
        let notices = self.notices.iter().map(|(slot, at)| Authored {
            kind: Key::Notice,
            number: *slot,
            revision: at.revision,
            author: at.record.as_ref().map(|of| (&of.host, &of.agent)),
        });
        slots.chain(tickets).chain(notices)
    }
}

/// A key of a table that a host has written.
struct Authored<'t> {
    kind: fn(String, u64) -> Key,
    number: u64,
    revision: i64,
    author: Option<(&'t String, &'t AgentId)>,
}

impl Authored<'_> {
    fn key(&self, table: &str) -> (Key, i64) {
        ((self.kind)(table.to_owned(), self.number), self.revision)
    }
}

/// The effect of received changes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Changed {
    pub(super) tables: BTreeSet<String>,
    pub(super) hosts: BTreeSet<String>,
    pub(super) keys: Vec<Key>,
}

#[derive(Clone, Debug)]
pub(super) struct Mirror {
    keys: Keys,
    revision: i64,
    is_known: bool,
    tables: BTreeMap<String, TableOfSite>,
    /// The tables that have notices: few, if any.
    noticed: BTreeSet<String>,
    hosts: BTreeMap<String, Versioned<HostRecord>>,
    written: BTreeMap<String, Versioned<HostRecord>>,
    cluster: Option<Versioned<ClusterRecord>>,
    /// Keys without a meaning here, each with its revision, such as those of agents of another version.
    strange: BTreeMap<String, i64>,
    lag: Lag,
}

impl Mirror {
    /// A mirror that knows nothing yet.
    pub(super) fn new(keys: Keys) -> Self {
        Self {
            keys,
            revision: 0,
            is_known: false,
            tables: BTreeMap::new(),
            noticed: BTreeSet::new(),
            hosts: BTreeMap::new(),
            written: BTreeMap::new(),
            cluster: None,
            strange: BTreeMap::new(),
            lag: Lag::default(),
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

    /// A table, if anything is known about it.
    pub(super) fn table(&self, name: &str) -> Option<&TableOfSite> {
        self.tables.get(name)
    }

    /// The highest number with which a launch of any host waits for a table.
    pub(super) fn last_ticket(&self, name: &str) -> Option<u64> {
        let mut readable = self.table(name)?.tickets.iter().rev().filter(|(_, at)| at.record.is_some());
        readable.next().map(|(number, _)| *number)
    }

    /// Every table about which anything is known.
    pub(super) fn tables(&self) -> impl Iterator<Item = (&String, &TableOfSite)> {
        self.tables.iter()
    }

    /// Those of them that have notices.
    pub(super) fn tables_with_notices(&self) -> impl Iterator<Item = (&String, &TableOfSite)> {
        self.noticed.iter().filter_map(|name| self.tables.get_key_value(name))
    }

    /// The holder of a slot, as its host has written it.
    pub(super) fn holder(&self, table: &str, slot: u64) -> Option<&SlotRecord> {
        self.table(table)?.slots.get(&slot)?.record.as_ref()
    }

    /// For how long after the end of its host a key is kept, beyond the time after which others are deleted:
    /// as long as a slot stays taken after the end of its program.
    pub(super) fn outlasts_host(&self, key: &Key) -> Duration {
        let Key::Slot(table, slot) = key else { return Duration::ZERO };
        self.holder(table, *slot).map_or(Duration::ZERO, |of| Duration::from_millis(of.linger))
    }

    /// The notice of the holder of a slot.
    pub(super) fn notice(&self, table: &str, slot: u64) -> Option<&NoticeRecord> {
        self.table(table)?.notices.get(&slot)?.record.as_ref()
    }

    /// Whether the key of a host exists.
    pub(super) fn is_there(&self, host: &str) -> bool {
        self.hosts.contains_key(host)
    }

    /// The value of the key of a host, if it exists.
    pub(super) fn host(&self, host: &str) -> Option<&HostRecord> {
        self.hosts.get(host)?.record.as_ref()
    }

    /// The last value of the key of a host, and its revision.
    pub(super) fn last_of(&self, host: &str) -> (Option<&HostRecord>, i64) {
        self.written.get(host).map_or((None, 0), |at| (at.record.as_ref(), at.revision))
    }

    /// The hosts whose keys exist, and their agents.
    pub(super) fn agents(&self) -> BTreeMap<String, AgentId> {
        let agents = self.hosts.iter().filter_map(|(host, at)| Some((host, &at.record.as_ref()?.agent)));
        agents.map(|(host, agent)| (host.clone(), agent.clone())).collect()
    }

    /// The etcd that the tables belong to, if known, and the revision of that.
    pub(super) fn cluster(&self) -> (Option<&str>, i64) {
        let Some(Versioned { revision, record }) = &self.cluster else { return (None, 0) };
        (record.as_ref().map(|of| of.cluster.as_str()), *revision)
    }

    /// Everything that hosts have written, with its table.
    fn authored(&self) -> impl Iterator<Item = (&String, Authored<'_>)> {
        self.tables.iter().flat_map(|(name, of)| of.authored().map(move |key| (name, key)))
    }

    /// All hosts with a key.
    pub(super) fn hosts(&self) -> BTreeSet<String> {
        let authors = self.authored().filter_map(|(_, of)| Some(of.author?.0));
        let all = authors.chain(self.written.keys()).chain(self.hosts.keys());
        // Few hosts have many keys: only their names are copied.
        all.collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }

    /// The slots, tickets and notices of these hosts and agents, each with its revision.
    pub(super) fn keys_of(
        &self,
        is_wanted: impl Fn(&str, &AgentId) -> bool,
    ) -> impl Iterator<Item = (Key, i64)> {
        let is_of = move |of: &Authored<'_>| of.author.is_some_and(|(host, agent)| is_wanted(host, agent));
        self.authored().filter(move |(_, of)| is_of(of)).map(|(table, of)| of.key(table))
    }

    /// The unreachable hosts on which a launch waits for one of these tables before this number.
    pub(super) fn passed_over(&self, takings: &[Taking], number: u64) -> BTreeSet<String> {
        let tables = takings.iter().filter(|taking| taking.limit.is_some());
        let tickets = tables.filter_map(|taking| Some(&self.table(&taking.table)?.tickets));
        let records = tickets.flat_map(|of| of.range(..number)).filter_map(|(_, at)| at.record.as_ref());
        let absent = records.filter(|record| !self.is_there(&record.host));
        absent.map(|record| record.host.clone()).collect()
    }

    /// How many slots each host has of each table.
    pub(super) fn held_by_host(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let mut held: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for (name, table) in &self.tables {
            for record in table.slots.values().filter_map(|at| at.record.as_ref()) {
                *held.entry(record.host.clone()).or_default().entry(name.clone()).or_default() += 1;
            }
        }
        held
    }

    /// How many launches of each host wait: each has one number, in any number of queues.
    pub(super) fn waiting_by_host(&self) -> BTreeMap<String, u64> {
        let tickets = self.tables.values().flat_map(|table| &table.tickets);
        let waiting: BTreeMap<u64, &String> =
            tickets.filter_map(|(number, at)| Some((*number, &at.record.as_ref()?.host))).collect();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for host in waiting.into_values() {
            *counts.entry(host.clone()).or_default() += 1;
        }
        counts
    }

    /// Whether it differs from etcd: with every change up to the revision of this inventory, it must have
    /// exactly these keys, with these revisions.
    pub(super) fn differs_from(&self, inventory: &Inventory) -> bool {
        if inventory.revision != self.revision {
            return false;
        }
        let known = self.count() + self.strange.len();
        let is_listed = |revision: i64| revision > inventory.since;
        let own = self.revisions().filter(|(_, revision)| is_listed(*revision));
        let own = own.map(|(key, revision)| (self.keys.name(&key), revision));
        let strange = self.strange.iter().map(|(key, revision)| (key.clone(), *revision));
        let keys: BTreeMap<String, i64> =
            own.chain(strange.filter(|(_, revision)| is_listed(*revision))).collect();
        i64::try_from(known).is_ok_and(|known| known != inventory.count) || keys != inventory.keys
    }

    /// Every key that means something, with its revision.
    fn revisions(&self) -> impl Iterator<Item = (Key, i64)> {
        let of_tables = self.authored().map(|(table, of)| of.key(table));
        let stamps = self.tables.iter().filter_map(|(name, of)| Some((name, of.stamps.as_ref()?)));
        let stamps = stamps.map(|(name, at)| (Key::Stamps(name.clone()), at.revision));
        let hosts = self.hosts.iter().map(|(host, at)| (Key::Host(host.clone()), at.revision));
        let written = self.written.iter().map(|(host, at)| (Key::Written(host.clone()), at.revision));
        let cluster = self.cluster.iter().map(|at| (Key::Cluster, at.revision));
        of_tables.chain(stamps).chain(hosts).chain(written).chain(cluster)
    }

    /// How many keys there are.
    pub(super) fn count(&self) -> usize {
        self.tables.values().map(TableOfSite::count).sum::<usize>()
            + self.hosts.len()
            + self.written.len()
            + usize::from(self.cluster.is_some())
    }

    /// Replaces everything.
    pub(super) fn replace(&mut self, revision: i64, pairs: Vec<Pair>) -> Changed {
        let mut changed = Changed {
            tables: self.tables.keys().cloned().collect(),
            hosts: self.hosts.keys().chain(self.written.keys()).cloned().collect(),
            keys: Vec::new(),
        };
        // The pending revision may never come.
        let lag = Lag { awaited: None, ..self.lag };
        *self = Self { revision, is_known: true, lag, ..Self::new(self.keys.clone()) };
        for pair in pairs {
            self.set(&mut changed, pair, true);
        }
        // A complete read checks every key.
        changed.keys.clear();
        changed
    }

    /// Changes that were received over the watch, in their order.
    pub(super) fn apply(&mut self, changes: Vec<(Pair, bool)>) -> Changed {
        let mut changed = Changed::default();
        for (pair, is_there) in changes {
            // A restarted watch may repeat changes.
            if pair.revision < self.revision {
                continue;
            }
            self.revision = pair.revision;
            self.set(&mut changed, pair, is_there);
        }
        self.lag.reach(self.revision, process::since_boot().unwrap_or_default());
        changed
    }

    /// A read that was sent then found this revision.
    pub(super) fn compare(&mut self, sent: Duration, revision: i64) {
        self.lag.compare(sent, revision);
        self.lag.reach(self.revision, process::since_boot().unwrap_or_default());
    }

    /// How far it is behind, if it was ever current; nothing is known beyond this time.
    pub(super) fn lag(&self, longest: Duration) -> Option<Duration> {
        self.lag.at(process::since_boot().unwrap_or_default(), longest)
    }

    /// How long a host may be silent: the longer of its own ttl and that of the asking host.
    pub(super) fn ttl_of(&self, host: &str, own: Duration) -> Duration {
        self.last_of(host).0.map_or(own, |of| Duration::from_millis(of.ttl).max(own))
    }

    /// The longest of any host.
    pub(super) fn longest_ttl(&self, own: Duration) -> Duration {
        self.written.keys().map(|host| self.ttl_of(host, own)).max().unwrap_or(own)
    }

    fn set(&mut self, changed: &mut Changed, Pair { key, value, revision, lease }: Pair, is_there: bool) {
        let Some(key) = self.keys.parse(&key) else {
            if is_there {
                self.strange.insert(key, revision);
            } else {
                self.strange.remove(&key);
            }
            return;
        };
        changed.keys.push(key.clone());
        match key {
            Key::Slot(table, slot) => {
                let of = self.table_of(changed, &table);
                put(&mut of.slots, slot, is_there.then(|| Versioned { revision, record: read(&value) }));
                self.forget_if_empty(&table);
            }
            Key::Ticket(table, number) => {
                let of = self.table_of(changed, &table);
                put(&mut of.tickets, number, is_there.then(|| Versioned { revision, record: read(&value) }));
                self.forget_if_empty(&table);
            }
            Key::Notice(table, slot) => {
                let of = self.table_of(changed, &table);
                put(&mut of.notices, slot, is_there.then(|| Versioned { revision, record: read(&value) }));
                if of.notices.is_empty() {
                    self.noticed.remove(&table);
                } else {
                    self.noticed.insert(table.clone());
                }
                self.forget_if_empty(&table);
            }
            Key::Stamps(table) => {
                let of = self.table_of(changed, &table);
                of.stamps = is_there.then(|| Versioned { revision, record: read(&value) });
                self.forget_if_empty(&table);
            }
            Key::Host(host) => {
                let record = read(&value).map(|record| HostRecord { lease, ..record });
                put(&mut self.hosts, host.clone(), is_there.then_some(Versioned { revision, record }));
                changed.hosts.insert(host);
            }
            Key::Written(host) => {
                put(
                    &mut self.written,
                    host.clone(),
                    is_there.then(|| Versioned { revision, record: read(&value) }),
                );
                changed.hosts.insert(host);
            }
            Key::Cluster => self.cluster = is_there.then(|| Versioned { revision, record: read(&value) }),
        }
    }

    fn table_of(&mut self, changed: &mut Changed, table: &str) -> &mut TableOfSite {
        changed.tables.insert(table.to_owned());
        self.tables.entry(table.to_owned()).or_default()
    }

    fn forget_if_empty(&mut self, table: &str) {
        if self.tables.get(table).is_some_and(|of| of.count() == 0) {
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

/// How far the mirror is behind. Periodically a read returns the revision of the newest key. When the mirror
/// reaches it, the delay is known. Times are since boot.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Lag {
    /// When a read was sent whose revision the mirror has not reached, and that revision.
    awaited: Option<(Duration, i64)>,
    /// When the last read was sent whose revision it has reached, and how long that took.
    level: Option<(Duration, Duration)>,
}

impl Lag {
    /// A read that was sent then found this revision. A pending read gives a better value.
    fn compare(&mut self, sent: Duration, revision: i64) {
        self.awaited.get_or_insert((sent, revision));
    }

    /// The mirror is at this revision now.
    fn reach(&mut self, revision: i64, now: Duration) {
        if let Some((sent, _)) = self.awaited.take_if(|(_, awaited)| *awaited <= revision) {
            self.level = Some((sent, now.saturating_sub(sent)));
        }
    }

    /// How far it is behind now; none if it was never current. If nothing was compared for longer than this,
    /// later changes are unknown.
    fn at(&self, now: Duration, longest: Duration) -> Option<Duration> {
        let (compared, took) = self.level?;
        let since = |sent: Duration| now.saturating_sub(sent);
        Some(match self.awaited {
            Some((sent, _)) => since(sent),
            None if since(compared) > longest => since(compared),
            None => took,
        })
    }
}

// The mirror in the agent's memory: holders and waiters of other hosts are in the same tables as the agent's
// own.

/// Entries of a table for other hosts, each with the revision of its last write.
#[derive(Debug, Default)]
pub(super) struct Shown {
    slots: BTreeMap<u64, (i64, memory::Held)>,
    places: BTreeMap<u64, (i64, bool, memory::Place)>,
    stamps: i64,
    /// Since when these are shown, since boot.
    stamped: Duration,
}

impl Shown {
    /// Since when the last use of this revision is shown, since boot.
    pub(super) fn since(&self, stamps: i64) -> Option<Duration> {
        (self.stamps == stamps).then_some(self.stamped)
    }
}

impl Site {
    /// Whether a table in memory has entries for other hosts, or a last use that the site knows.
    pub(in crate::agent) fn shows(&self, name: &str) -> bool {
        self.shown.contains_key(name)
    }

    /// Updates a table in memory from the mirror, beside this host's own entries.
    pub(super) fn show(&mut self, name: &str, store: &Store) {
        let nothing = TableOfSite::default();
        let of = self.mirror.table(name).unwrap_or(&nothing);
        let local = table_of_site(name);
        let table = store.table(&local);
        let shown = self.shown.entry(name.to_owned()).or_default();
        // Slots that this host has released are free, even if the mirror does not show it yet.
        let deleted = self.own.deleted_after(self.mirror.revision(), name);
        let at = |slot: &u64| of.slots.get(slot).filter(|_| !deleted.contains(slot));
        let is_as_shown = |at: Option<i64>, revision: i64| at == Some(revision);
        shown.slots.retain(|slot, (revision, _)| is_as_shown(at(slot).map(|at| at.revision), *revision));
        for (slot, Versioned { revision, record }) in &of.slots {
            if !shown.slots.contains_key(slot)
                && !deleted.contains(slot)
                && let Some(held) = table.take(&[*slot])
            {
                let holder = record.as_ref().map(SlotRecord::holder);
                table.describe(&[*slot], holder.unwrap_or_else(|| Holder::unknown(*slot..=*slot)));
                shown.slots.insert(*slot, (*revision, held));
            }
        }
        let is_away = |record: Option<&TicketRecord>| {
            record.is_some_and(|of| of.is_away || !self.absences.is_reachable(&of.host, &of.agent))
        };
        shown.places.retain(|number, (revision, was_away, place)| {
            let at = of.tickets.get(number).filter(|at| is_as_shown(Some(at.revision), *revision));
            let Some(at) = at else { return false };
            let is_away = is_away(at.record.as_ref());
            if std::mem::replace(was_away, is_away) != is_away {
                place.set_away(is_away);
            }
            true
        });
        for (number, Versioned { revision, record }) in &of.tickets {
            // Launches that wait on this host have their own entries.
            let is_own = record.as_ref().is_some_and(|of| of.agent == self.agent);
            if is_own || shown.places.contains_key(number) {
                continue;
            }
            if let Some(mut place) = table.take_place(Number(*number)) {
                place.stand(&classes(record.as_ref()));
                if let Some(record) = record {
                    record.wants.into_iter().for_each(|wants| place.wants(wants));
                    place.belongs_to(&record.process());
                }
                let is_away = is_away(record.as_ref());
                place.set_away(is_away);
                shown.places.insert(*number, (*revision, is_away, place));
            }
        }
        let stamped = of.stamps.as_ref().map_or(0, |at| at.revision);
        if shown.stamps != stamped {
            (shown.stamps, shown.stamped) = (stamped, process::since_boot().unwrap_or(Duration::MAX));
            let stamps = of.stamps.as_ref().and_then(|at| at.record);
            match stamps {
                Some(stamps) => stamps.put_into(&table),
                None => drop(table.reset()),
            }
            self.own.add_untold_use(name, &table);
        }
        if shown.slots.is_empty() && shown.places.is_empty() && stamped == 0 {
            self.shown.remove(name);
            drop(table);
            store.forget_if_unused(&local);
        }
    }
}

/// No launch may overtake an unreadable ticket.
fn classes(record: Option<&TicketRecord>) -> Vec<Class> {
    let of = |(generation, capacity): &(u16, u64)| Class { generation: *generation, capacity: *capacity };
    record.map_or_else(
        || vec![Class { generation: 0, capacity: u64::MAX }],
        |record| record.classes.iter().map(of).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::Occupancy;

    const LONGEST: Duration = Duration::from_secs(60);

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

    #[test]
    fn only_tables_that_have_notices_are_looked_through_for_them() {
        let mut mirror = mirror();
        let count = |mirror: &Mirror| mirror.tables_with_notices().count();
        mirror.apply(vec![(pair("/r/e/a/0000001", 12), true), (pair("/r/e/b/0000001", 13), true)]);
        assert_eq!(count(&mirror), 2);
        mirror.apply(vec![(pair("/r/e/b/0000001", 14), false)]);
        assert_eq!((count(&mirror), mirror.table("b")), (1, None));
        mirror.apply(vec![(pair("/r/e/a/0000001", 15), false)]);
        assert_eq!((count(&mirror), mirror.table("a").map(TableOfSite::count)), (0, Some(1)));
    }

    /// One transaction changes several keys at one revision.
    #[test]
    fn all_changes_of_one_revision_count() {
        let mut mirror = mirror();
        let changes = [("/r/s/b/0000001", true), ("/r/s/b/0000002", true), ("/r/s/a/0000001", false)];
        let changed = mirror.apply(changes.map(|(key, is_there)| (pair(key, 12), is_there)).into());
        assert_eq!((mirror.table("a"), mirror.table("b").map(TableOfSite::count)), (None, Some(2)));
        let slot = |table: &str, number| Key::Slot(table.to_owned(), number);
        assert_eq!(changed.keys, [slot("b", 1), slot("b", 2), slot("a", 1)]);
        assert_eq!(changed.tables.into_iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    fn ticket(host: &str, key: &str) -> (Pair, bool) {
        let text = format!(
            r#"{{"host":"{host}","agent":"x","pid":1,"uid":1,"command":"","classes":[],"is_away":false}}"#
        );
        (Pair { value: text.into_bytes(), ..pair(key, 12) }, true)
    }

    /// A launch has one number in any number of queues.
    #[test]
    fn a_launch_that_waits_in_two_queues_counts_once() {
        let mut mirror = mirror();
        let tickets = [("lab", "a", 1), ("lab", "b", 1), ("lab", "a", 2), ("lab9", "b", 3)];
        let tickets =
            tickets.map(|(host, table, number)| ticket(host, &format!("/r/w/{table}/{number:016x}")));
        mirror.apply(tickets.into());
        let waiting: Vec<(String, u64)> = mirror.waiting_by_host().into_iter().collect();
        assert_eq!(waiting, [("lab".to_owned(), 2), ("lab9".to_owned(), 1)]);
    }

    /// The slots of each host are counted, for each table.
    #[test]
    fn the_slots_of_each_host_are_counted() {
        let held = |host: &str, key: &str| {
            let text = format!(
                r#"{{"host":"{host}","agent":"x","pid":1,"start":1,"uid":1,"hold":"process","command":"","rule":"","launch":1,"since":1}}"#
            );
            (Pair { value: text.into_bytes(), ..pair(key, 12) }, true)
        };
        let mut mirror = mirror();
        mirror.apply(vec![
            held("lab", "/r/s/a/0000002"),
            held("lab", "/r/s/a/0000003"),
            held("lab", "/r/s/b/0000001"),
            held("lab9", "/r/s/a/0000004"),
        ]);
        let count = |(host, table): (&str, &str)| mirror.held_by_host()[host].get(table).copied();
        let counts = [("lab", "a"), ("lab", "b"), ("lab9", "a"), ("lab9", "b")].map(count);
        assert_eq!(counts, [Some(2), Some(1), Some(1), None]);
    }

    /// A table without keys is forgotten, whatever its last key was.
    #[test]
    fn a_table_without_keys_is_forgotten() {
        for key in ["/r/s/b/0000001", "/r/w/b/0000000000000001", "/r/e/b/0000001", "/r/t/b"] {
            let mut mirror = mirror();
            mirror.apply(vec![(pair(key, 12), true)]);
            assert!(mirror.table("b").is_some(), "{key}");
            mirror.apply(vec![(pair(key, 13), false)]);
            assert_eq!(mirror.table("b"), None, "{key}");
        }
    }

    /// A launch that passes over others proves that their hosts are still absent: those of launches with a
    /// lower number, in queues whose order counts for it.
    #[test]
    fn the_hosts_that_are_passed_over_are_absent_and_come_before() {
        let mut mirror = mirror();
        let tickets = [
            ("lab", "a", 1),
            ("lab2", "a", 2),
            ("lab3", "a", 4),
            ("lab5", "a", 5),
            ("lab6", "b", 1),
            ("lab7", "c", 1),
        ];
        let tickets =
            tickets.map(|(host, table, number)| ticket(host, &format!("/r/w/{table}/{number:016x}")));
        mirror.apply(tickets.into());
        let taking = |table: &str, limit| Taking {
            table: table.to_owned(),
            slots: vec![1],
            joined: Vec::new(),
            limit,
            held: Occupancy::default(),
            stamps: None,
        };
        let passed_over = mirror.passed_over(&[taking("a", Some(1)), taking("b", None)], 5);
        assert_eq!(passed_over.into_iter().collect::<Vec<_>>(), ["lab2", "lab3"]);
    }

    /// A delay is over when the mirror has what a read found. The next one has its own time.
    #[test]
    fn what_is_received_ends_a_delay() {
        let now = || process::since_boot().expect("a clock");
        let longest = Duration::MAX;
        let mut mirror = mirror();
        mirror.compare(now(), 10);
        mirror.compare(Duration::ZERO, 12);
        let before = now();
        assert!(mirror.lag(longest).is_some_and(|lag| lag >= before), "it is not there yet");
        mirror.apply(vec![(pair("/r/s/a/0000002", 12), true)]);
        let sent = now();
        mirror.compare(sent, 12);
        assert!(mirror.lag(longest).is_some_and(|lag| sent + lag <= now()));
    }

    /// A slot with an unreadable record is held nevertheless.
    #[test]
    fn a_key_counts_whatever_its_value_is() {
        assert_eq!(mirror().table("a").expect("a table").slots[&1].record, None);
    }

    #[test]
    fn what_is_not_as_it_should_be_is_noticed() {
        const SLOT: (&str, i64) = ("/r/s/a/0000001", 4);
        const HOST: (&str, i64) = ("/r/h/lab", 9);
        const STRANGE: (&str, i64) = ("/r/strange", 2);
        let inventory = |revision, since, keys: &[(&str, i64)]| Inventory {
            revision,
            generation: 0,
            count: i64::try_from(keys.len()).expect("a few"),
            since,
            keys: keys
                .iter()
                .filter(|(_, at)| *at > since)
                .map(|(key, at)| ((*key).to_owned(), *at))
                .collect(),
        };
        let mut mirror = mirror();
        let differs = |mirror: &Mirror, keys: &[(&str, i64)]| {
            let differs = |since| mirror.differs_from(&inventory(mirror.revision(), since, keys));
            // For keys that were changed before, only their number is compared.
            (differs(0), differs(3))
        };
        assert_eq!(differs(&mirror, &[SLOT, HOST, STRANGE]), (false, false));
        assert_eq!(differs(&mirror, &[SLOT, HOST]), (true, true), "one too many");
        assert_eq!(
            differs(&mirror, &[SLOT, HOST, STRANGE, ("/r/s/b/0000001", 1)]),
            (true, true),
            "one missing"
        );
        assert_eq!(differs(&mirror, &[("/r/s/a/0000002", 4), HOST, STRANGE]), (true, true), "a wrong one");
        assert_eq!(differs(&mirror, &[SLOT, ("/r/h/lab", 10), STRANGE]), (true, true), "an old one");
        assert_eq!(differs(&mirror, &[SLOT, HOST, ("/r/odd", 2)]), (true, false), "a wrong old one");
        assert!(!mirror.differs_from(&inventory(10, 4, &[SLOT, HOST, STRANGE])), "one was changed then");
        assert!(!mirror.differs_from(&inventory(9, 0, &[])), "nothing is known of another revision");
        mirror.apply(vec![(pair("/r/new/key", 11), true), (pair("/r/strange", 12), false)]);
        assert_eq!(differs(&mirror, &[SLOT, HOST, ("/r/new/key", 11)]), (false, false));
    }

    fn lag_at(lag: &Lag, second: u64) -> Option<u64> {
        lag.at(Duration::from_secs(second), LONGEST).map(|lag| lag.as_secs())
    }

    #[test]
    fn a_mirror_is_behind_until_it_has_what_a_read_found() {
        let second = Duration::from_secs;
        let mut lag = Lag::default();
        assert_eq!(lag_at(&lag, 9), None);
        lag.compare(second(10), 7);
        lag.reach(7, second(11));
        assert_eq!(lag_at(&lag, 20), Some(1));
        lag.compare(second(30), 9);
        lag.compare(second(50), 10);
        lag.reach(8, second(51));
        assert_eq!(lag_at(&lag, 55), Some(25));
        lag.reach(9, second(56));
        assert_eq!(lag_at(&lag, 57), Some(26));
        assert_eq!(lag_at(&lag, 90), Some(26));
        // No agent answers any more.
        assert_eq!(lag_at(&lag, 91), Some(61));
    }
}
