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
    /// The host's key was written with this revision; requested at this time since boot.
    Registered { revision: i64, generation: u64, sent: Duration },
    /// A read that was sent then found the host's key unchanged; the revision of the whole etcd.
    Confirmed { sent: Duration, revision: i64, generation: u64 },
    /// No member answers, or none correctly.
    Unreached(EtcdError),
    /// The newest key had this revision when a read was sent.
    Compared { sent: Duration, revision: i64 },
    /// The keys at a revision up to which every change was reported.
    Listed(Inventory),
    /// The lease of the host's key is gone, or the key with it.
    LeaseLost,
    /// A read that was sent then found that the agent of another host has written this host's key.
    Twin { agent: Option<AgentId>, sent: Duration, generation: u64 },
    /// Everything, read again.
    Fresh(Snapshot),
    /// Changes, in their order.
    Changes(Vec<(Pair, bool)>),
    /// The watch has ended for this reason; it is restarted.
    Deaf(EtcdError),
    /// The result of a transaction, by its number.
    Done(u64, Result<Done, EtcdError>),
    /// The state of etcd itself.
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
    /// Tells something. Returns whether there is a receiver.
    pub(super) fn tell(&self, report: Report) -> bool {
        let is_heard = self.reports.send(report).is_ok();
        self.bell.ring();
        is_heard
    }
}
