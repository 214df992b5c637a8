//! Hosts that are gone. After a host was absent for a ttl without interruption, its slots and tickets are
//! deleted. The transaction succeeds only if the host is still absent, was absent all the time, and its keys
//! are unchanged. These are not keys of this host, so the reconciler does not handle them. Transactions about
//! another host's absence must not block those about this host's presence.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    time::Duration,
};

use super::{
    Admission, AgentId, Change, Changed, ClusterRecord, Compare, Key, Level, Operation, Site, TableOfSite,
    Transaction, Value, Work,
    etcd::{Pair, Snapshot},
    log, proof,
    record::bytes,
};
use crate::{agent::service::local::Local, sys::process};

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
    fn set_reachable(&mut self, reachable: BTreeMap<String, AgentId>) -> BTreeSet<String> {
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
            let over = now.saturating_sub(since).checked_sub(self.mirror.ttl_of(&host, self.ttl));
            if let Some(over) = over.filter(|over| !over.is_zero()) {
                self.clear(&host, written, over);
            }
        }
    }

    /// Notes which hosts can be reached, and which tables must change: launches on a host without a key keep
    /// their positions, and are passed over.
    pub(super) fn look_who_is_reachable(&mut self) {
        let changed = self.absences.set_reachable(self.mirror.agents());
        let is_concerned = |of: &TableOfSite| {
            of.tickets.values().any(|at| at.record.as_ref().is_some_and(|of| changed.contains(&of.host)))
        };
        if !changed.is_empty() {
            let tables = self.mirror.tables().filter(|(_, of)| is_concerned(of));
            self.stirred.extend(tables.map(|(name, _)| name.clone()));
        }
    }

    /// Deletes the keys of a host that is considered dead for this long.
    fn clear(&mut self, host: &str, written_at: i64, over: Duration) {
        let busy = Key::Host(host.to_owned());
        if self.pending.is_busy_with(&busy) {
            return;
        }
        let gone = |(key, at)| Change { key, at, value: None };
        let written = Key::Written(host.to_owned());
        let of_host = || self.mirror.keys_of(|of, _| of == host);
        // Slots that stay taken after the end of their programs stay so after the end of the host, too.
        let is_due = |(key, _): &(Key, i64)| self.mirror.outlasts_host(key) <= over;
        let mut changes: Vec<Change> = of_host().filter(is_due).take(AT_ONCE).map(gone).collect();
        if changes.is_empty() {
            if of_host().next().is_some() {
                return;
            }
            changes.push(gone((written, written_at)));
        }
        // Another host may have deleted them before, and a slot may have a new holder.
        let transaction = proof::clearing(&self.keys, host, written_at, &changes);
        self.send(Work::Aside(busy), transaction);
    }
}

// An etcd that was restored from a backup, or replaced, lacks the slots that were taken since the backup. So
// nothing is granted until every host has put back its slots, or is considered dead. This takes one ttl from
// the time when this agent noticed. That is long enough. An absent host read its key last in the old etcd, so
// its deadline passes before. A present host counts as confirmed only when all its slots are there.
//
// `c/id` says which etcd the tables belong to. A backup has the id of another etcd, unless it was restored
// under the same token (`--initial-cluster-token`). Then agents that knew a later revision mark it as
// doubtful. They do the same if the keys of the site were deleted, and `c/id` with them. That key belongs to
// no host, and is written before this host has its key, so the reconciler does not handle it.

/// The etcd of the mirror, and what follows from it.
#[derive(Debug, Default)]
pub(super) struct Origin {
    generation: u64,
    /// The cluster id; none before anything was read.
    cluster: Option<String>,
    /// Since when nothing is granted because the tables may be incomplete, since boot.
    held_back: Option<Duration>,
    /// The longest ttl of any known host, also earlier ones.
    longest: Duration,
    /// Whether slots of this host may be missing there.
    is_incomplete: bool,
    /// The revision of `c/id` that must be marked as doubtful.
    doubted: Option<i64>,
}

/// The id of the etcd, as it was written at a revision.
#[derive(Clone, Copy, Debug)]
struct Name {
    at: i64,
    /// Whether agents that know it do not write the id of this etcd after it.
    is_final: bool,
}

impl Origin {
    /// The generation: the number of etcds that this agent has seen.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }
}

impl Site {
    /// Everything was read again; perhaps from another etcd.
    pub(super) fn refresh(&mut self, Snapshot { revision, generation, cluster, pairs }: Snapshot) -> Changed {
        let before = self.origin.cluster.replace(cluster);
        let is_another = before.is_some() && self.origin.generation != generation;
        self.origin.generation = generation;
        let name = self.name_before();
        let changed = self.mirror.replace(revision, pairs);
        self.looked = None;
        if is_another {
            // If the same backup was restored before, the id was written then at a higher revision.
            let now = self.mirror.cluster().1;
            let is_silent = before == self.origin.cluster && now <= name.at;
            self.origin.doubted = (is_silent || now == 0).then_some(now);
            // After one more restore, the time begins again: hosts may have been confirmed until then.
            self.origin.held_back = self.origin.held_back.and(process::since_boot());
            self.begin_anew();
            self.begin_numbers();
        } else if before.is_none() {
            self.begin_numbers();
            // An agent that was started meanwhile also has to put back its slots.
            self.origin.is_incomplete = !self.is_named() || self.has_slots_by_another_name();
            if self.presence.registration().is_some() {
                // It was written before this read, which confirmed nothing.
                self.presence.look();
            }
        } else {
            // All keys may have been deleted before the id was written again, also if others have noticed.
            self.origin.is_incomplete |= self.mirror.cluster().1 != name.at;
            self.look_for_loss(name);
        }
        self.look_at_name();
        changed
    }

    /// Keys were changed.
    pub(super) fn follow(&mut self, changes: Vec<(Pair, bool)>) -> Changed {
        let key = self.keys.name(&Key::Cluster);
        if changes.iter().all(|(pair, _)| pair.key != key) {
            return self.mirror.apply(changes);
        }
        // Records of hosts may go before it.
        self.name_before();
        let mut all = Changed::default();
        for change in changes {
            let name = (change.0.key == key).then(|| self.name_before());
            let Changed { tables, hosts, keys } = self.mirror.apply(vec![change]);
            all.tables.extend(tables);
            all.hosts.extend(hosts);
            all.keys.extend(keys);
            if let Some(name) = name {
                self.look_for_loss(name);
            }
        }
        all
    }

    /// The id of the etcd, before keys change.
    fn name_before(&mut self) -> Name {
        self.origin.longest = self.origin.longest.max(self.longest_ttl());
        let at = self.mirror.cluster().1;
        Name { at, is_final: self.is_named() || self.origin.doubted == Some(at) }
    }

    /// If the id is gone, all keys may be. An agent that was started since then may have written it again.
    fn look_for_loss(&mut self, before: Name) {
        let (said, at) = self.mirror.cluster();
        let is_again = before.is_final && said == self.origin.cluster.as_deref();
        if at == before.at || !(at == 0 || is_again) {
            return;
        }
        log(Level::Warning, "the keys of the site were deleted: what this host holds is put back");
        self.origin.doubted = Some(at);
        // As after one more restore.
        self.origin.held_back = self.origin.held_back.and(process::since_boot());
        self.origin.is_incomplete = true;
    }

    /// Earlier revisions mean nothing now.
    fn begin_anew(&mut self) {
        log(
            Level::Warning,
            "etcd was restored from a backup, or another one answers: what this host holds is put back",
        );
        self.pending.begin_anew();
        self.origin.is_incomplete = true;
        self.absences.begin_anew();
        self.shown.clear();
        self.own.begin_anew();
        self.presence.register_anew();
    }

    /// Whether the etcd that answers is known to have everything that this host holds. After a change of
    /// etcd, the host's key is written again once, to protect these slots. If other hosts may have considered
    /// this one dead, or have never heard of it, it must also have heard of everything until its key was
    /// written: they may have its slots.
    pub(super) fn check_complete(&mut self, local: &Local) -> bool {
        if self.origin.cluster.is_none() {
            return false;
        }
        let was_dead = self.presence.was_dead();
        if !self.origin.is_incomplete && !was_dead {
            return true;
        }
        if was_dead && !self.has_settled() {
            return false;
        }
        let is_there = self.wanted_slots(local).into_iter().all(|(key, value)| match (key, value) {
            (Key::Slot(table, slot), Value::Slot(wanted)) => {
                self.mirror.holder(&table, slot).is_some_and(|held| held.is_same(&wanted))
            }
            _ => true,
        });
        if is_there && mem::take(&mut self.origin.is_incomplete) {
            self.presence.register_anew();
        }
        is_there
    }
}

impl Site {
    /// Whether the tables belong to the etcd that answers, and are complete.
    pub(super) fn is_named(&self) -> bool {
        let (said, at) = self.mirror.cluster();
        said.is_some() && said == self.origin.cluster.as_deref() && self.origin.doubted != Some(at)
    }

    /// For how long no slots have been granted because the tables may be incomplete, and for how much longer.
    pub(super) fn is_held_back(&self) -> Option<(Duration, Duration)> {
        let since = self.origin.held_back?;
        let lasts = process::since_boot().unwrap_or_default().saturating_sub(since);
        Some((lasts, self.longest_ttl().saturating_sub(lasts)))
    }

    /// The message about this, for launches that get no slots. None if it would end now, but etcd cannot be
    /// reached.
    pub(super) fn why_held_back(&self) -> Option<String> {
        let (_, left) = self.is_held_back()?;
        if left.is_zero() && self.presence.trouble().is_some() {
            return None;
        }
        Some(format!(
            "etcd was restored from a backup or replaced, or its keys were deleted: no slots are granted for \
                about {} s more, until each host has put back what it holds",
            left.as_secs().max(1)
        ))
    }

    /// The condition that this is still so.
    pub(super) fn proof_of_name(&self) -> Compare {
        Compare::ChangedAt(self.keys.name(&Key::Cluster), self.mirror.cluster().1)
    }

    /// Whether an admission was decided on the etcd that is known now.
    pub(super) fn is_of_now(&self, admission: &Admission) -> bool {
        admission.generation == self.origin.generation
    }

    /// Writes the id of the etcd to which the tables belong, if it is missing or may be written again.
    pub(super) fn look_at_name(&mut self) {
        let Some(cluster) = self.origin.cluster.clone() else { return };
        if self.pending.is_busy_with(&Key::Cluster) {
            return;
        }
        let wanted = if self.origin.doubted == Some(self.mirror.cluster().1) {
            String::new()
        } else if self.is_named() {
            self.origin.held_back = None;
            return;
        } else if self.mirror.cluster().1 == 0 {
            cluster
        } else {
            let now = process::since_boot().unwrap_or_default();
            if self.origin.held_back.is_none() {
                self.origin.held_back = Some(now);
                log(
                    Level::Warning,
                    "the tables may be incomplete: no slots are granted until all hosts have put back theirs",
                );
            }
            match self.is_held_back() {
                Some((_, left)) if left.is_zero() && !self.origin.is_incomplete => cluster,
                _ => return,
            }
        };
        let record = ClusterRecord { cluster: wanted };
        let transaction = Transaction {
            compares: vec![self.proof_of_name()],
            operations: vec![Operation::Put(self.keys.name(&Key::Cluster), bytes(&record))],
        };
        self.send(Work::Aside(Key::Cluster), transaction);
    }

    /// Whether slots of this agent are there under an earlier name of its host.
    fn has_slots_by_another_name(&self) -> bool {
        let slots = self.mirror.tables().flat_map(|(_, of)| of.slots.values());
        let mut records = slots.filter_map(|at| at.record.as_ref());
        records.any(|record| record.agent == self.agent && record.host != self.host)
    }

    fn longest_ttl(&self) -> Duration {
        self.mirror.longest_ttl(self.ttl).max(self.origin.longest)
    }
}
