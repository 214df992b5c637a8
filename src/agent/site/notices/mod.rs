//! Notices that a host leaves in etcd for another one about a holder there. `giving` has those for launches
//! of this host, `answering` those of other hosts about holders of this host.

mod answering;
mod giving;

pub(in crate::agent::site) use self::answering::ReceivedNotice;

use std::time::{Duration, Instant};

use super::{Reply, SlotRecord};
use crate::keeper::{Overdue, SIGNAL_COUNT, TableId};

/// How long a host may take for a reply before a launch that does not wait is refused.
const PATIENCE: Duration = Duration::from_secs(4);

/// After this multiple of the grace, the last signal must have had its effect.
const SIGNALS_WITH_GRACE: u32 = SIGNAL_COUNT - 1;

/// What a launch knows about it.
#[derive(Debug)]
pub(in crate::agent) struct GivenNotice {
    /// The site's name of the table.
    table: String,
    id: TableId,
    /// One of its slots; with the last one the others become free.
    slot: u64,
    holder: SlotRecord,
    overdue: Overdue,
    /// The user who requests its end; none if it is overdue.
    by: Option<u32>,
    /// By the policy of this host.
    grace: Duration,
    since: Instant,
    reply: Option<Reply>,
}

impl GivenNotice {
    /// How many slots of this table it will free, as far as known.
    pub(in crate::agent) fn frees(&self, table: TableId) -> u64 {
        let goes_on = self.reply == Some(Reply::NotOverdue);
        if self.id == table && !goes_on { self.overdue.slots } else { 0 }
    }

    /// Whether a launch that does not wait has waited for its end for long enough.
    fn is_late(&self) -> bool {
        let longest = match self.reply {
            None => PATIENCE,
            Some(_) => self.grace.saturating_mul(SIGNALS_WITH_GRACE).saturating_add(PATIENCE),
        };
        self.since.elapsed() > longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl GivenNotice {
        /// Of a holder on another host, just now.
        pub(in crate::agent) fn of(overdue: Overdue) -> Self {
            let text = r#"{"host":"lab9","agent":"","pid":1,"start":1,"uid":1000,"hold":"process","command":"matlab","rule":"seats","launch":1,"since":1}"#;
            Self {
                table: "seats".to_owned(),
                id: TableId::Memory(0),
                slot: 1,
                holder: serde_json::from_str(text).expect("a holder"),
                overdue,
                by: None,
                grace: Duration::ZERO,
                since: Instant::now(),
                reply: None,
            }
        }
    }
}
