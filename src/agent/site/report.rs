//! Reports of the threads that talk to etcd to the thread that owns the tables. A bell wakes it, and no
//! thread waits for it.

use std::{
    sync::{Arc, mpsc::Sender},
    time::Duration,
};

use super::{
    etcd::{ClusterStatus, Done, EtcdError, Inventory, Pair, Snapshot},
    record::AgentId,
};
use crate::sys::poller::Bell;

#[derive(Debug)]
pub(super) enum Report {
    /// The host's key was written, and this is its revision; asked for at this time since boot.
    Registered { revision: i64, generation: u64, sent: Duration },
    /// A read that was sent then found the host's key as it was written; the revision of the whole etcd.
    Confirmed { sent: Duration, revision: i64, generation: u64 },
    /// No member answers, or none as it should.
    Unreached(EtcdError),
    /// The newest key had this revision when a read was sent.
    Compared { sent: Duration, revision: i64 },
    /// Which keys there were at a revision up to which every change was told.
    Listed(Inventory),
    /// The lease of the host's key has gone, or the key with it.
    LeaseLost,
    /// The agent of another host has written this one's key, as a read found that was sent then.
    Twin { agent: Option<AgentId>, sent: Duration, generation: u64 },
    /// Everything, read anew.
    Fresh(Snapshot),
    /// Changes, in their order.
    Changes(Vec<(Pair, bool)>),
    /// The watch has ended for this reason; it is begun anew.
    Deaf(EtcdError),
    /// What became of a transaction, by its number.
    Done(u64, Result<Done, EtcdError>),
    /// How etcd itself is.
    ClusterStatus(ClusterStatus),
    /// Some time has passed.
    Tick,
}

/// Tells them.
#[derive(Clone, Debug)]
pub(super) struct Reporter {
    pub(super) reports: Sender<Report>,
    pub(super) bell: Arc<Bell>,
}

impl Reporter {
    /// Tells something. Says whether anybody is there to hear it.
    pub(super) fn tell(&self, report: Report) -> bool {
        let is_heard = self.reports.send(report).is_ok();
        self.bell.ring();
        is_heard
    }
}
