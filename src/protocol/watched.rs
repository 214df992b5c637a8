//! Whose end a launch waits for that is the first in line.

use std::time::Duration;

use super::{
    blocked::Blocked,
    overdue::Endings,
    refusal::{Reason, Unmet},
};
use crate::{
    keeper::{error::KeeperError, table::TableId},
    sys::{
        failure::Failure,
        pidfd::{self, PidFd},
    },
};

/// How many holders the first in line waits for by descriptor; the ends of the others are seen at the next
/// look.
const MOST_WATCHED: usize = 256;

/// The processes that the first in line waits for.
#[derive(Default)]
pub(super) struct Watched {
    /// By process id; none where the process could not be opened, which is tried once.
    processes: Vec<(i32, Option<PidFd>)>,
}

impl Watched {
    /// Begins to watch the holders of these tables, and those alone. Says whether there are any that were not
    /// watched yet: they may have ended before they were, so everything has to be looked at once more.
    pub(super) fn are_new(&mut self, blocked: &Blocked<'_>, tables: &[TableId]) -> bool {
        let keepers = keepers(blocked, tables);
        self.processes.retain(|(pid, _)| keepers.contains(pid));
        let mut are_new = false;
        for pid in keepers {
            if self.processes.iter().all(|(watched, _)| *watched != pid) {
                self.processes.push((pid, PidFd::open(pid).ok()));
                are_new = true;
            }
        }
        are_new
    }

    /// Sleeps until one of them, or one that is being ended, has ended.
    pub(super) fn sleep(&self, endings: &Endings<'_>, longest: Duration) -> Result<(), KeeperError> {
        let watched = self.processes.iter().filter_map(|(_, process)| process.as_ref());
        pidfd::wait_for_any(watched.chain(endings.processes()), longest)
            .map(drop)
            .map_err(|errno| KeeperError::Wait(Failure { call: "poll", errno }))
    }
}

fn keepers(blocked: &Blocked<'_>, tables: &[TableId]) -> Vec<i32> {
    let mut keepers = Vec::new();
    let refused = blocked.unmet.iter().flat_map(Unmet::claims);
    for refused in refused.filter(|refused| tables.contains(&refused.table)) {
        let Reason::Full(full) = &refused.reason else { continue };
        for pid in full.holders().iter().filter_map(|holder| holder.keeper) {
            if keepers.len() < MOST_WATCHED && !keepers.contains(&pid) {
                keepers.push(pid);
            }
        }
    }
    keepers
}
