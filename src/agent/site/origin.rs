//! Which etcd it is that the agent goes by, and whether what is known of it is complete. What follows from
//! that is in `restored`.

use std::time::Duration;

/// Of which etcd the mirror is, and what follows from it.
#[derive(Debug, Default)]
pub(super) struct Origin {
    pub(super) generation: u64,
    /// The cluster id; none before anything was read.
    pub(super) cluster: Option<String>,
    /// Since when nothing is given because the tables may lack something, since boot.
    pub(super) held_back: Option<Duration>,
    /// The longest ttl of any host that is known, or was.
    pub(super) longest: Duration,
    /// Whether slots of this host may be missing there.
    pub(super) is_incomplete: bool,
    /// The revision of `c/id` that is to be put in doubt.
    pub(super) doubted: Option<i64>,
    /// Works of lower numbers were sent before.
    pub(super) first_work: u64,
}

impl Origin {
    /// Whether a work that has this number was meant for the etcd that is known now.
    pub(super) fn has_sent(&self, number: u64) -> bool {
        number >= self.first_work
    }
}
