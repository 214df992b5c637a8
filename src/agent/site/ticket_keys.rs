//! Which keys a launch has in the lines of the site.

use std::collections::BTreeMap;

use super::record::TicketRecord;

/// Those of one launch, all under one number.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    pub(super) number: u64,
    pub(super) written: BTreeMap<String, TicketRecord>,
    /// Whether some are being written, so that it is not known which there are.
    pub(super) is_moving: bool,
    pub(super) moving: Vec<String>,
    /// Which revision of the host's key they rest on.
    pub(super) under: i64,
    /// Whether they were refused under a key that is not known to be another one.
    pub(super) was_refused: bool,
    /// Whether they are those of an agent that has died, and it is not known yet which of them are left.
    pub(super) is_unseen: bool,
    /// The same until they are as they should be again.
    pub(super) is_restored: bool,
}

impl Tickets {
    /// Whether its launch begins to wait: it stands in no line yet, and did not when the agent died.
    pub(super) fn begin(&self) -> bool {
        self.written.is_empty() && !self.is_restored
    }

    /// Whether one of them is there, or may be.
    pub(super) fn has(&self, table: &str, number: u64) -> bool {
        self.number == number
            && (self.written.contains_key(table) || self.moving.iter().any(|moving| moving == table))
    }

    /// Every one that may be there.
    pub(super) fn all_written(&self) -> Vec<(String, u64)> {
        let mut tables: Vec<String> = self.written.keys().chain(&self.moving).cloned().collect();
        tables.sort();
        tables.dedup();
        tables.into_iter().map(|table| (table, self.number)).collect()
    }
}
