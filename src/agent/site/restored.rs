//! An etcd whose data were restored from a backup, or another one in its place: it lacks slots that were
//! taken since the backup. So nothing is granted until every host has put back what it holds, or is
//! considered dead: for one ttl from the time when this agent noticed. That is long enough: a host that was
//! away read its key last in the old etcd, so its deadline passes before; and one that was present counts as
//! confirmed only when all its slots are there.
//!
//! `c/id` says which etcd the tables belong to. A backup has the id of another etcd, unless it was restored
//! under the same name (`--initial-cluster-token`); then agents that knew a later revision doubt it. That key
//! belongs to no host, and is written before this host has its key, so it is not part of the reconciler's
//! difference.

use std::time::Duration;

use super::{
    Site,
    etcd::{Compare, Operation, Snapshot, Transaction},
    key::Key,
    log,
    mirror::Changed,
    pending::{Admission, Work},
    record::{ClusterRecord, bytes},
};
use crate::{agent::service::local::Local, judge::terms::location::name_on_site, sys::process};

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
        let named = self.mirror.cluster().1;
        self.origin.longest = self.origin.longest.max(self.longest_ttl());
        let changed = self.mirror.replace(revision, pairs);
        self.looked = None;
        if is_another {
            let is_silent = before == self.origin.cluster && named == self.mirror.cluster().1;
            self.origin.doubted =
                (is_silent || self.mirror.cluster().1 == 0).then(|| self.mirror.cluster().1);
            self.begin_anew();
        } else if before.is_none() {
            // An agent that was started meanwhile has to put back what it kept, too.
            self.origin.is_incomplete = !self.is_named() || self.has_slots_by_another_name();
        }
        self.look_at_name();
        changed
    }

    /// Earlier revisions mean nothing now.
    fn begin_anew(&mut self) {
        log("etcd was restored from a backup, or another one answers: what this host holds is put back");
        self.pending.begin_anew();
        self.origin.is_incomplete = true;
        self.absences.begin_anew();
        self.shown.clear();
        self.own.begin_anew();
        self.presence.register_anew();
    }

    /// Whether everything that this host holds is known to stand in the etcd that answers; at the first time
    /// after another came the host's key is written again, so that what it holds is protected.
    pub(super) fn is_complete(&mut self, local: &Local) -> bool {
        if !self.origin.is_incomplete {
            return true;
        }
        let is_there = local.ledger().holdings().values().all(|holding| {
            holding.held.iter().filter(|held| !held.is_shared()).all(|held| {
                let Some(name) = name_on_site(held.table().name()) else { return true };
                let of = self.mirror.table(name);
                held.slots().iter().all(|slot| {
                    let record = of.and_then(|of| of.slots.get(slot)?.record.as_ref());
                    record.is_some_and(|record| {
                        record.host == self.host && record.is_of(&self.agent, &holding.saved)
                    })
                })
            })
        });
        self.origin.is_incomplete = !is_there;
        if is_there {
            self.presence.register_anew();
        }
        is_there
    }
}

impl Site {
    /// Whether the tables are those of the etcd that answers, and complete.
    pub(super) fn is_named(&self) -> bool {
        let (said, _) = self.mirror.cluster();
        said.is_some() && said == self.origin.cluster.as_deref()
    }

    /// For how long nothing has been given because the tables may lack something, and for how much longer.
    pub(super) fn is_held_back(&self) -> Option<(Duration, Duration)> {
        let since = self.origin.held_back?;
        let lasts = process::since_boot().unwrap_or_default().saturating_sub(since);
        Some((lasts, self.longest_ttl().saturating_sub(lasts)))
    }

    /// That, for whoever is given nothing.
    pub(super) fn why_held_back(&self) -> Option<String> {
        let (_, left) = self.is_held_back()?;
        Some(format!(
            "etcd was restored from a backup, or is another one: no slots are granted for about {} s more, \
                until each host has put back what it holds",
            left.as_secs().max(1)
        ))
    }

    /// That it is still so.
    pub(super) fn proof_of_name(&self) -> Compare {
        Compare::ChangedAt(self.keys.name(&Key::Cluster), self.mirror.cluster().1)
    }

    /// Whether an admission was decided on the etcd that is known now.
    pub(super) fn is_of_now(&self, admission: &Admission) -> bool {
        admission.generation == self.origin.generation
    }

    /// Writes of which etcd the tables are, where nobody has, or where it is time.
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
                log("the tables may be incomplete: no slots are granted until all hosts have put back \
                    theirs");
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

    /// Whether slots of this agent's stand there by a name that its host had before.
    fn has_slots_by_another_name(&self) -> bool {
        let slots = self.mirror.tables().flat_map(|(_, of)| of.slots.values());
        let mut records = slots.filter_map(|at| at.record.as_ref());
        records.any(|record| record.agent == self.agent && record.host != self.host)
    }

    fn longest_ttl(&self) -> Duration {
        self.mirror.longest_ttl(self.ttl).max(self.origin.longest)
    }
}
