//! Hosts that have gone: after one of them was seen absent for a ttl without a break, its slots and tickets
//! are deleted, in a transaction that holds only if it is absent still, and was ever since, and if they are
//! still those that it left. These are no keys of this host, and so no part of the difference that the
//! reconciler makes up: what is fenced by another host's absence must not fail, or wait for, what is fenced
//! by this one's presence.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    Site,
    difference::Change,
    etcd::Compare,
    key::Key,
    mirror::{TableOfSite, Versioned},
    pending::Work,
    proof::Taking,
    record::{AgentId, HostRecord},
};
use crate::sys::process;

/// How many keys go at once.
const AT_ONCE: usize = 100;

/// A host that is absent.
#[derive(Clone, Copy, Debug)]
struct Absence {
    /// When its key was last written: by that this absence is told from another.
    written: i64,
    /// Since when this agent has seen it, since boot.
    since: Duration,
}

/// Which hosts are absent, and which can be reached.
#[derive(Debug, Default)]
pub(super) struct Absences {
    absent: BTreeMap<String, Absence>,
    /// The hosts whose keys are there, as the tables show it.
    reachable: BTreeMap<String, AgentId>,
}

impl Absences {
    /// These hosts are absent now, each with the revision at which its key was last written. Says since when
    /// they are.
    fn see(&mut self, absent: Vec<(i64, String)>, now: Duration) -> Vec<(String, Absence)> {
        let since = |written, host: &String| {
            let known = self.absent.get(host).filter(|known| known.written == written);
            known.copied().unwrap_or(Absence { written, since: now })
        };
        let seen = absent.into_iter().map(|(written, host)| (host.clone(), since(written, &host)));
        self.absent = seen.collect();
        self.absent.iter().map(|(host, absence)| (host.clone(), *absence)).collect()
    }

    /// Since when this agent has seen a host absent, since boot.
    pub(super) fn since(&self, host: &str) -> Option<Duration> {
        Some(self.absent.get(host)?.since)
    }

    /// Another etcd answers: nobody is known to be absent there.
    pub(super) fn begin_anew(&mut self) {
        self.absent.clear();
    }

    /// The keys of these hosts are there, written by these agents. Says of which hosts that is new.
    fn are_reachable(&mut self, reachable: BTreeMap<String, AgentId>) -> BTreeSet<String> {
        let before = std::mem::replace(&mut self.reachable, reachable);
        let hosts = before.keys().chain(self.reachable.keys());
        hosts.filter(|host| before.get(*host) != self.reachable.get(*host)).cloned().collect()
    }

    /// Whether whoever waits on a host is not passed over.
    pub(super) fn is_reachable(&self, host: &str, agent: &AgentId) -> bool {
        self.reachable.get(host) == Some(agent)
    }
}

impl Site {
    /// Sees who is absent, and deletes what those left who have been for long enough.
    pub(super) fn look_for_absent(&mut self) {
        if !self.mirror.is_known() {
            return;
        }
        let mut absent = self.hosts_with_keys();
        absent.retain(|host| !self.mirror.hosts.contains_key(host) && *host != self.host);
        let written = |host: &String| self.mirror.written.get(host).map_or(0, |at| at.revision);
        let absent = absent.into_iter().map(|host| (written(&host), host));
        let now = process::since_boot().unwrap_or_default();
        for (host, Absence { written, since }) in self.absences.see(absent.collect(), now) {
            if now.saturating_sub(since) > self.mirror.ttl_of(&host, self.ttl) {
                self.clear(&host, written);
            }
        }
    }

    /// Notes whose hosts can be reached, and which tables show it otherwise: who waits on a host whose key is
    /// not there keeps its place, and is passed over.
    pub(super) fn look_who_is_reachable(&mut self) {
        let records = self.mirror.hosts.iter();
        let of = |(host, at): (&String, &Versioned<HostRecord>)| {
            Some((host.clone(), at.record.as_ref()?.agent.clone()))
        };
        let changed = self.absences.are_reachable(records.filter_map(of).collect());
        let is_concerned = |of: &TableOfSite| {
            of.tickets.values().any(|at| at.record.as_ref().is_some_and(|of| changed.contains(&of.host)))
        };
        if !changed.is_empty() {
            let tables = self.mirror.tables().filter(|(_, of)| is_concerned(of));
            self.stirred.extend(tables.map(|(name, _)| name.clone()));
        }
    }

    /// The hosts that cannot be reached, on which somebody waits for one of these tables before this number.
    pub(super) fn passed_over(&self, takings: &[Taking], number: u64) -> BTreeSet<String> {
        let tables = takings.iter().filter(|taking| taking.limit.is_some());
        let tickets = tables.filter_map(|taking| Some(&self.mirror.table(&taking.table)?.tickets));
        let records = tickets.flat_map(|of| of.range(..number)).filter_map(|(_, at)| at.record.as_ref());
        let absent = records.filter(|record| !self.mirror.hosts.contains_key(&record.host));
        absent.map(|record| record.host.clone()).collect()
    }

    /// Everybody who has a key.
    pub(super) fn hosts_with_keys(&self) -> BTreeSet<String> {
        let of_slots = self.mirror.tables().flat_map(|(_, table)| table.slots.values());
        let of_slots = of_slots.filter_map(|at| Some(&at.record.as_ref()?.host));
        let of_tickets = self.mirror.tables().flat_map(|(_, table)| table.tickets.values());
        let of_tickets = of_tickets.filter_map(|at| Some(&at.record.as_ref()?.host));
        let of_notices = self.mirror.tables_with_notices().flat_map(|(_, table)| table.notices.values());
        let of_notices = of_notices.filter_map(|at| Some(&at.record.as_ref()?.host));
        let all = of_slots.chain(of_tickets).chain(of_notices).chain(self.mirror.written.keys());
        // Few hosts have many keys: only their names are copied.
        all.collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }

    fn clear(&mut self, host: &str, written_at: i64) {
        let of_host = Key::Host(host.to_owned());
        if self.pending.is_busy_with(&of_host) {
            return;
        }
        let gone = |(key, at)| Change { key, at, value: None };
        let written = Key::Written(host.to_owned());
        let compares = vec![
            Compare::Absent(self.keys.name(&of_host)),
            Compare::ChangedAt(self.keys.name(&written), written_at),
        ];
        let mut changes: Vec<Change> = self.keys_of(|of, _| of == host).take(AT_ONCE).map(gone).collect();
        if changes.is_empty() {
            changes.push(gone((written, written_at)));
        }
        // Another host may have deleted them before, and a slot be somebody else's by now.
        let transaction = self.transaction(compares, &changes);
        self.send(Work::Aside(of_host), transaction);
    }

    /// The slots, tickets and notices of these hosts and agents, each with its revision.
    pub(super) fn keys_of(
        &self,
        is_wanted: impl Fn(&str, &AgentId) -> bool,
    ) -> impl Iterator<Item = (Key, i64)> {
        let mut keys = Vec::new();
        for (table, of) in self.mirror.tables() {
            for (slot, Versioned { revision, record }) in &of.slots {
                if record.as_ref().is_some_and(|record| is_wanted(&record.host, &record.agent)) {
                    keys.push((Key::Slot(table.clone(), *slot), *revision));
                }
            }
            for (number, Versioned { revision, record }) in &of.tickets {
                if record.as_ref().is_some_and(|record| is_wanted(&record.host, &record.agent)) {
                    keys.push((Key::Ticket(table.clone(), *number), *revision));
                }
            }
            for (slot, Versioned { revision, record }) in &of.notices {
                if record.as_ref().is_some_and(|record| is_wanted(&record.host, &record.agent)) {
                    keys.push((Key::Notice(table.clone(), *slot), *revision));
                }
            }
        }
        keys.into_iter()
    }
}
