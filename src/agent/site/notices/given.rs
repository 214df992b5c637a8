//! A holder on another host, of which a launch or a user of this one has notice given.

use std::time::{Duration, Instant};

use crate::agent::site::record::{Reply, SlotRecord};
use crate::keeper::{Overdue, table::TableId};

/// For so long a host may say nothing to it before a launch that does not wait is refused.
const PATIENCE: Duration = Duration::from_secs(4);

/// How many times the grace passes until the last signal has done what it could.
const SIGNALS_WITH_GRACE: u32 = 3;

/// What a launch knows of it.
#[derive(Debug)]
pub(in crate::agent) struct GivenNotice {
    /// The table, as the site calls it.
    pub(super) table: String,
    pub(super) id: TableId,
    /// One of its slots; with the last one the others become free.
    pub(super) slot: u64,
    pub(super) holder: SlotRecord,
    pub(super) overdue: Overdue,
    /// The user who asks for its end; none where it is overdue.
    pub(super) by: Option<u32>,
    /// By the policy of this host.
    pub(super) grace: Duration,
    pub(super) since: Instant,
    pub(super) reply: Option<Reply>,
}

impl GivenNotice {
    /// How many slots of this table it will free, as far as is known.
    pub(in crate::agent) fn frees(&self, table: TableId) -> u64 {
        let goes_on = self.reply == Some(Reply::NotOverdue);
        if self.id == table && !goes_on { self.overdue.slots } else { 0 }
    }

    /// Whether a launch that does not wait has waited for its end for long enough.
    pub(super) fn is_late(&self) -> bool {
        let longest = match self.reply {
            None => PATIENCE,
            Some(_) => self.grace.saturating_mul(SIGNALS_WITH_GRACE).saturating_add(PATIENCE),
        };
        self.since.elapsed() > longest
    }
}
