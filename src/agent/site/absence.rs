//! Hosts that are gone. After a host was absent for a ttl without interruption, its slots and tickets are
//! deleted. The transaction succeeds only if the host is still absent, was absent all the time, and its keys
//! are unchanged. These are not keys of this host, so they are not part of the reconciler's difference:
//! transactions about another host's absence and those about this host's presence must not block each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Site, difference::Change, key::Key, mirror::TableOfSite, pending::Work, proof, record::AgentId};
use crate::sys::process;

/// How many keys are deleted at once.
const AT_ONCE: usize = 100;

/// A host that is absent.
#[derive(Clone, Copy, Debug)]
struct Absence {
    /// When its key was last written, which distinguishes this absence from another.
    written: i64,
    /// Since when this agent has seen the absence, since boot.
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
    /// These hosts are absent now, each with the revision at which its key was last written. Returns since
    /// when they are absent.
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

    /// Another etcd answers: no host is known to be absent there.
    pub(super) fn begin_anew(&mut self) {
        self.absent.clear();
    }

    /// The keys of these hosts are there, written by these agents. Returns the hosts for which this is new.
    fn are_reachable(&mut self, reachable: BTreeMap<String, AgentId>) -> BTreeSet<String> {
        let before = std::mem::replace(&mut self.reachable, reachable);
        let hosts = before.keys().chain(self.reachable.keys());
        hosts.filter(|host| before.get(*host) != self.reachable.get(*host)).cloned().collect()
    }

    /// Whether launches on a host are not passed over.
    pub(super) fn is_reachable(&self, host: &str, agent: &AgentId) -> bool {
        self.reachable.get(host) == Some(agent)
    }
}

impl Site {
    /// Updates the absent hosts, and deletes the keys of those that were absent for long enough.
    pub(super) fn look_for_absent(&mut self) {
        if !self.mirror.is_known() {
            return;
        }
        let mut absent = self.mirror.hosts();
        absent.retain(|host| !self.mirror.is_there(host) && *host != self.host);
        let absent = absent.into_iter().map(|host| (self.mirror.last_of(&host).1, host));
        let now = process::since_boot().unwrap_or_default();
        for (host, Absence { written, since }) in self.absences.see(absent.collect(), now) {
            if now.saturating_sub(since) > self.mirror.ttl_of(&host, self.ttl) {
                self.clear(&host, written);
            }
        }
    }

    /// Notes which hosts can be reached, and which tables must change: launches on a host without a key keep
    /// their positions, and are passed over.
    pub(super) fn look_who_is_reachable(&mut self) {
        let changed = self.absences.are_reachable(self.mirror.agents());
        let is_concerned = |of: &TableOfSite| {
            of.tickets.values().any(|at| at.record.as_ref().is_some_and(|of| changed.contains(&of.host)))
        };
        if !changed.is_empty() {
            let tables = self.mirror.tables().filter(|(_, of)| is_concerned(of));
            self.stirred.extend(tables.map(|(name, _)| name.clone()));
        }
    }

    fn clear(&mut self, host: &str, written_at: i64) {
        let of_host = Key::Host(host.to_owned());
        if self.pending.is_busy_with(&of_host) {
            return;
        }
        let gone = |(key, at)| Change { key, at, value: None };
        let written = Key::Written(host.to_owned());
        let mut changes: Vec<Change> =
            self.mirror.keys_of(|of, _| of == host).take(AT_ONCE).map(gone).collect();
        if changes.is_empty() {
            changes.push(gone((written, written_at)));
        }
        // Another host may have deleted them before, and a slot be somebody else's by now.
        let transaction = proof::clearing(&self.keys, host, written_at, &changes);
        self.send(Work::Aside(of_host), transaction);
    }
}
