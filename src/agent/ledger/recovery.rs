//! Launches that waited when the agent failed. Each gets its position back when it reconnects, and until then
//! no newcomer comes before it. One that does not reconnect is passed over like any launch that does not
//! respond. It is removed when its process has ended, or would no longer reconnect.

use std::{mem, time::Instant};

use super::{Ledger, state::SavedPlace};
use crate::{
    acquire::{
        conversation::LONGEST_ABSENCE,
        place_in_line::{PlaceInLine, Stood},
    },
    agent::{AWAY, Fatal, KINDS, RECOVERED},
    keeper::{Number, memory},
    sys::{
        failure::{Errno, Failure},
        poller::Interest,
        process::{PidFd, Process},
    },
};

/// A launch that waited when the agent failed, and has not reconnected.
pub(in crate::agent) struct RecoveredWaiter {
    pub(in crate::agent) saved: SavedPlace,
    pub(in crate::agent) line: PlaceInLine,
    process: PidFd,
    pub(in crate::agent) due: Instant,
    pub(in crate::agent) is_away: bool,
}

impl Ledger {
    /// Saves the launch's position in its queues, if it has changed. A failure to save it matters only if the
    /// agent fails.
    pub(in crate::agent) fn write_place(
        &self,
        number: u64,
        written: &mut Option<(u64, SavedPlace)>,
        wanted: Option<SavedPlace>,
    ) {
        match (&written, wanted) {
            (Some((_, before)), Some(wanted)) if before.is_where(&wanted) => {}
            (before, Some(wanted)) => {
                let file = before.as_ref().map_or(number, |(file, _)| *file);
                let _ = self.state.write_place(file, &wanted);
                *written = Some((file, wanted));
            }
            (Some((file, _)), None) => {
                self.state.forget_place(*file);
                *written = None;
            }
            (None, None) => {}
        }
    }

    /// Restores a saved position, if its launch still lives.
    pub(super) fn recover(&mut self, number: u64, saved: SavedPlace) -> Result<(), Fatal> {
        let call = |call| move |errno| Fatal::Call(Failure { call, errno });
        let process = match PidFd::open(saved.pid) {
            Err(Errno::ESRCH) => None,
            opened => Some(opened.map_err(call("pidfd_open"))?),
        };
        let is_same = |_: &PidFd| Process::find(saved.pid).is_some_and(|found| found.started == saved.start);
        let Some(process) = process.filter(is_same) else {
            self.state.forget_place(number);
            return Ok(());
        };
        let store = self.store_of(Some(saved.uid));
        let stood: Vec<Stood> = saved.lines.iter().map(|line| line.stood(store.table(&line.table))).collect();
        let mut line = PlaceInLine::again(Number(saved.number.number), saved.since(), &stood);
        line.belongs_to(&saved.process());
        self.poller.add(&process, number * KINDS + RECOVERED, Interest::Read).map_err(call("epoll_ctl"))?;
        let due = Instant::now() + AWAY;
        self.recovered.insert(number, RecoveredWaiter { saved, line, process, due, is_away: false });
        Ok(())
    }

    /// The launches that waited when the agent failed, and have not reconnected.
    pub(in crate::agent) fn recovered(&self) -> &std::collections::BTreeMap<u64, RecoveredWaiter> {
        &self.recovered
    }

    /// When the next of them will have been away for too long, and which one.
    pub(in crate::agent) fn next_recovered(&self) -> Option<(Instant, u64)> {
        self.recovered.iter().map(|(number, waiter)| (waiter.due, *number)).min()
    }

    /// One of them waits no longer, or has reconnected.
    pub(in crate::agent) fn take_recovered(&mut self, number: u64) -> Option<RecoveredWaiter> {
        let waiter = self.recovered.remove(&number)?;
        let _ = self.poller.remove(&waiter.process);
        Some(waiter)
    }

    /// One of them has been away for so long that it is passed over from now on. Returns the affected queues;
    /// none if it was passed over before.
    pub(in crate::agent) fn pass_over(&mut self, number: u64) -> Option<Vec<memory::Table>> {
        let waiter = self.recovered.get_mut(&number)?;
        if mem::replace(&mut waiter.is_away, true) {
            return None;
        }
        waiter.line.set_away(true);
        waiter.due += LONGEST_ABSENCE.saturating_sub(AWAY);
        Some(waiter.line.tables())
    }

    /// Launches that are not passed over yet have until then to reconnect.
    pub(in crate::agent) fn wait_for_recovered(&mut self, due: Instant) {
        for waiter in self.recovered.values_mut().filter(|waiter| !waiter.is_away) {
            waiter.due = due;
        }
    }

    /// Forgets the positions of one of them.
    pub(in crate::agent) fn forget_place(&self, number: u64) {
        self.state.forget_place(number);
    }
}
