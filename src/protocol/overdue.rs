//! Too late: holders that are overdue are ended, where that makes room for everything that blocks a launch.
//! Nobody is ended in vain, and nobody waits for an end alone: whoever ends a holder goes on looking for room
//! meanwhile.

use std::time::{Duration, SystemTime};

use super::{
    asker::Asker,
    blocked::Blocked,
    refusal::{Reason, Unmet},
    too_late::{Eviction, Known},
};
use crate::{
    keeper::{
        Ending, Fate, Overdue,
        error::KeeperError,
        table::{Table, TableId},
    },
    sys::{
        failure::Failure,
        pidfd::{self, PidFd},
    },
    terms::{claim::Claim, pace::Expiry},
};

/// Holders that a launch is ending.
#[derive(Default)]
pub struct Endings<'c> {
    running: Vec<Running<'c>>,
    /// Nobody is sent signals again and again.
    tried: Vec<i32>,
    fates: Vec<(&'c Claim<'c>, Overdue, Fate)>,
}

struct Running<'c> {
    claim: &'c Claim<'c>,
    table: Table,
    overdue: Overdue,
    ending: Ending,
}

impl<'c> Endings<'c> {
    /// Begins to end those that are overdue, each once, where that makes room. Says whether it began with
    /// any. The tables must not be locked.
    pub fn begin(&mut self, blocked: &mut Blocked<'c>, asker: &Asker<'_>) -> Result<bool, KeeperError> {
        // Where older launches wait, the first of them does it, and what becomes free is theirs.
        if blocked.is_final() || blocked.lines.iter().any(|line| line.is_behind) {
            return Ok(false);
        }
        let slots_on = |table: TableId| {
            let running = self.running.iter().filter(|running| running.table.id() == table);
            running.map(|running| running.overdue.slots).sum()
        };
        let was_tried = |overdue: &Overdue| self.tried.contains(&overdue.pid);
        let known = Known { was_tried: &was_tried, coming: &slots_on };
        let (chosen, makes_room) = known.choose(&blocked.unmet, SystemTime::now())?;
        // Who cannot be ended is named all the same.
        let has_begun = self.begin_with_all(chosen, asker);
        if makes_room {
            self.go_on(asker)?;
        }
        Ok(has_begun && makes_room)
    }

    fn begin_with_all(&mut self, all: Vec<Eviction<'c>>, asker: &Asker<'_>) -> bool {
        let mut has_begun = false;
        for Eviction { claim, expiry, table, overdue } in all {
            for overdue in overdue {
                has_begun = true;
                self.begin_with(claim, table.clone(), overdue, expiry, asker);
            }
        }
        has_begun
    }

    fn begin_with(
        &mut self,
        claim: &'c Claim<'c>,
        table: Table,
        overdue: Overdue,
        expiry: Expiry,
        asker: &Asker<'_>,
    ) {
        self.tried.push(overdue.pid);
        match table.begin_to_end(&overdue, &expiry) {
            Ok(ending) => self.running.push(Running { claim, table, overdue, ending }),
            Err(fate) => self.has_become(claim, overdue, fate, asker),
        }
    }

    fn has_become(&mut self, claim: &'c Claim<'c>, overdue: Overdue, fate: Fate, asker: &Asker<'_>) {
        (asker.on_expired)(claim, &overdue, fate);
        self.fates.push((claim, overdue, fate));
    }

    /// Sends the signals that are due, and sees who has ended.
    pub fn go_on(&mut self, asker: &Asker<'_>) -> Result<(), KeeperError> {
        for mut running in std::mem::take(&mut self.running) {
            match running.table.go_on(&mut running.ending)? {
                Some(fate) => self.has_become(running.claim, running.overdue, fate, asker),
                None => self.running.push(running),
            }
        }
        Ok(())
    }

    /// Sees who has let go, and leaves the others alone: they are not in the way any more, or it is somebody
    /// else's turn to end them.
    pub fn leave_alone(&mut self, asker: &Asker<'_>) -> Result<(), KeeperError> {
        for running in std::mem::take(&mut self.running) {
            if let Some(fate) = running.table.has_let_go(&running.ending)? {
                self.has_become(running.claim, running.overdue, fate, asker);
            }
        }
        Ok(())
    }

    /// Whether there is somebody whose end is still to come.
    pub fn are_going_on(&self) -> bool {
        !self.running.is_empty()
    }

    /// The processes whose end ends them.
    pub fn processes(&self) -> impl Iterator<Item = &PidFd> {
        self.running.iter().map(|running| running.ending.process())
    }

    /// How long there is until the next signal.
    pub fn left(&self) -> Option<Duration> {
        self.running.iter().map(|running| running.ending.left()).min()
    }

    /// Sleeps until one of them has ended, or a signal is due, at most this long.
    pub fn sleep(&self, longest: Duration) -> Result<(), KeeperError> {
        let longest = self.left().map_or(longest, |left| left.min(longest));
        pidfd::wait_for_any(self.processes(), longest)
            .map(drop)
            .map_err(|errno| KeeperError::Wait(Failure { call: "poll", errno }))
    }

    /// Adds what became of them to what is told of a refusal.
    pub fn tell(&mut self, blocked: &mut Blocked<'c>) {
        for (claim, overdue, fate) in self.fates.drain(..) {
            let mut refused = blocked.unmet.iter_mut().flat_map(Unmet::claims_mut);
            if let Some(refused) = refused.find(|refused| std::ptr::eq(refused.claim, claim))
                && let Reason::Full(full) = &mut refused.reason
            {
                full.overdue.push((overdue, fate));
            }
        }
    }
}
