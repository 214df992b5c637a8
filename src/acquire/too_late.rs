//! Which holders to end: overdue ones, if their end makes room for everything that blocks a launch. No holder
//! is ended in vain.

use std::time::{Duration, SystemTime};

use super::{AcquireContext, Alternative, Blocked, Full, Reason, Refused, Unmet};
use crate::{
    judge::terms::{Claim, Expiry, Terms},
    keeper::{Ending, KeeperError, Overdue, TableId, table::Table},
    sys::{Failure, PidFd, process},
};

/// Holders of a claim's table that must be ended, and how.
pub struct Eviction<'c> {
    /// What they block.
    pub claim: &'c Claim,
    /// The terms by which they are overdue.
    pub expiry: Expiry,
    /// The table whose slots they hold.
    pub table: Table,
    /// They themselves.
    pub overdue: Vec<Overdue>,
}

/// The state of holders that are already being ended.
pub struct Known<'k> {
    /// Holders that were tried: none gets repeated signals.
    pub was_tried: &'k dyn Fn(&Overdue) -> bool,
    /// How many slots of a table their end will free.
    pub coming: &'k dyn Fn(TableId) -> u64,
}

impl Known<'_> {
    /// Returns as many as make room for everything, and true. If there are not enough, it returns those that
    /// cannot be ended, and false.
    pub fn choose<'c>(
        &self,
        all: &[Unmet<'c>],
        now: SystemTime,
    ) -> Result<(Vec<Eviction<'c>>, bool), KeeperError> {
        let mut to_end = Vec::new();
        for unmet in all {
            match self.choose_for(unmet, now)? {
                Ok(found) => to_end.extend(found),
                Err(cannot) => return Ok((cannot, false)),
            }
        }
        Ok((to_end, true))
    }

    /// One alternative is enough.
    fn choose_for<'c>(
        &self,
        unmet: &Unmet<'c>,
        now: SystemTime,
    ) -> Result<Result<Vec<Eviction<'c>>, Vec<Eviction<'c>>>, KeeperError> {
        let mut cannot = Vec::new();
        for alternative in &unmet.alternatives {
            match self.choose_all(alternative, now)? {
                Ok(found) => return Ok(Ok(found)),
                Err(others) => cannot.extend(others),
            }
        }
        Ok(Err(cannot))
    }

    fn choose_all<'c>(
        &self,
        alternative: &Alternative<'c>,
        now: SystemTime,
    ) -> Result<Result<Vec<Eviction<'c>>, Vec<Eviction<'c>>>, KeeperError> {
        let (mut can, mut cannot) = (Some(Vec::new()), Vec::new());
        for refused in &alternative.refused {
            let (chosen, others) = self.choose_of(refused, now)?;
            can = can.zip(chosen).map(|(mut all, chosen)| {
                all.push(chosen);
                all
            });
            cannot.extend(others);
        }
        Ok(can.ok_or(cannot))
    }

    /// Holders whose end makes room for one claim, if there are enough; otherwise those that cannot be ended.
    fn choose_of<'c>(
        &self,
        refused: &Refused<'c>,
        now: SystemTime,
    ) -> Result<(Option<Eviction<'c>>, Option<Eviction<'c>>), KeeperError> {
        let (Some(expiry), Reason::Full(full)) = (refused.claim.pace.expiry, &refused.reason) else {
            return Ok((None, None));
        };
        // Its slots would stay taken after its end, or might not be enough.
        if refused.claim.amount.linger.is_some() || full.no_sample.is_some() {
            return Ok((None, None));
        }
        let terms = full.missing(refused.claim)?;
        let missing = missing(&terms, full)?;
        // Something else refuses it: another claim on the table, or what has changed since.
        if missing == 0 {
            return Ok((None, None));
        }
        let overdue = full.table().overdue(full.holders(), &expiry, now)?.into_iter();
        let is_new = |overdue: &Overdue| terms.allows(overdue.holder.slots.0) && !(self.was_tried)(overdue);
        let (can, cannot): (Vec<_>, Vec<_>) = overdue.filter(is_new).partition(Overdue::can_be_ended);
        let found_here = |overdue: Vec<Overdue>| {
            let overdue = overdue.into_iter().flat_map(Overdue::each).collect();
            Eviction { claim: refused.claim, expiry, table: full.table().clone(), overdue }
        };
        Ok(match self.enough(can, missing, full.table()) {
            Some(chosen) => (Some(found_here(chosen)), None),
            None => (None, Some(found_here(cannot))),
        })
    }

    /// As many of them as make room for the missing slots, besides those that are already being ended; none
    /// if they do not.
    fn enough(&self, overdue: Vec<Overdue>, missing: u64, table: &Table) -> Option<Vec<Overdue>> {
        let mut missing = missing.saturating_sub((self.coming)(table.id()));
        let mut chosen = Vec::new();
        for overdue in overdue {
            if missing > 0 {
                missing = missing.saturating_sub(overdue.slots);
                chosen.push(overdue);
            }
        }
        (missing == 0).then_some(chosen)
    }
}

/// How many slots have to become free: of all, or of those that the launch may take.
fn missing(terms: &Terms, full: &Full) -> Result<u64, KeeperError> {
    let of_all = full.used().saturating_add(full.outside.slots()).saturating_add(terms.slots);
    let of_all = of_all.saturating_sub(terms.limit);
    let Some(zones) = &terms.zones else { return Ok(of_all) };
    let occupancy = full.occupancy()?;
    let held: u64 = zones.iter().map(|zone| occupancy.held_among(zone.clone())).sum();
    // Slots that are used outside by their names count where they are.
    let named = full.outside.named.iter().filter(|slot| terms.allows(**slot)).count() as u64;
    let beside = full.outside.count.saturating_add(named).saturating_add(terms.slots);
    Ok(of_all.max(held.saturating_add(beside).saturating_sub(terms.usable_slots())))
}

// Overdue holders are ended if that makes room for everything that blocks a launch. None is ended in vain,
// and a launch that ends a holder continues to look for room meanwhile.

/// Holders that a launch is ending.
#[derive(Default)]
pub struct Endings<'c> {
    running: Vec<Running<'c>>,
    /// No holder gets repeated signals.
    tried: Vec<i32>,
    /// Whether their end would make no room at the moment.
    are_in_vain: bool,
}

struct Running<'c> {
    claim: &'c Claim,
    table: Table,
    overdue: Overdue,
    ending: Ending,
}

impl<'c> Endings<'c> {
    /// Begins to end overdue holders, each once, if that makes room. Returns whether it began with any. While
    /// that would make no room, those that it has begun with get no further signal. The tables must not be
    /// locked.
    pub fn begin(
        &mut self,
        blocked: &mut Blocked<'c>,
        asker: &AcquireContext<'_>,
    ) -> Result<bool, KeeperError> {
        // If older launches wait, the first of them ends holders, and the free slots are for them.
        if blocked.is_final() || blocked.lines.iter().any(|line| line.is_behind) {
            return Ok(false);
        }
        let was_tried = |overdue: &Overdue| self.tried.contains(&overdue.pid);
        let (chosen, makes_room) = self.choose(blocked, &was_tried)?;
        let known = self.running.len();
        // Holders that cannot be ended are named nevertheless.
        let has_begun = self.begin_with_all(chosen, asker);
        if !makes_room {
            // Of a group with one of them, the others are not ended either.
            for running in self.running.split_off(known) {
                self.tried.retain(|pid| *pid != running.overdue.pid);
            }
        }
        self.are_in_vain = !makes_room;
        self.advance(asker)?;
        Ok(has_begun && makes_room)
    }

    /// Leaves those alone that rest.
    pub fn stop_resting(&mut self, asker: &AcquireContext<'_>) -> Result<(), KeeperError> {
        if self.are_in_vain { self.leave_alone(asker) } else { Ok(()) }
    }

    /// Leaves those alone that it has begun with, if the end of these alone no longer makes room.
    pub fn stop_in_vain(
        &mut self,
        blocked: &Blocked<'c>,
        asker: &AcquireContext<'_>,
    ) -> Result<(), KeeperError> {
        let (_, makes_room) = self.choose(blocked, &|_| true)?;
        self.are_in_vain = !makes_room;
        self.stop_resting(asker)
    }

    /// Those to begin with, and whether their end, with that of the others, makes room.
    fn choose(
        &self,
        blocked: &Blocked<'c>,
        was_tried: &dyn Fn(&Overdue) -> bool,
    ) -> Result<(Vec<Eviction<'c>>, bool), KeeperError> {
        let slots_on = |table: TableId| {
            let running = self.running.iter().filter(|running| running.table.id() == table);
            running.map(|running| running.overdue.slots).sum()
        };
        Known { was_tried, coming: &slots_on }.choose(&blocked.unmet, SystemTime::now())
    }

    fn begin_with_all(&mut self, all: Vec<Eviction<'c>>, asker: &AcquireContext<'_>) -> bool {
        let (mut has_begun, mut left) = (false, Vec::new());
        for Eviction { claim, expiry, table, overdue } in all {
            for overdue in overdue {
                if self.tried.contains(&overdue.pid) {
                    continue;
                }
                has_begun = true;
                self.tried.push(overdue.pid);
                match table.begin_to_end(&overdue, &expiry) {
                    Ok(ending) => {
                        self.running.push(Running { claim, table: table.clone(), overdue, ending });
                    }
                    Err(fate) => {
                        (asker.on_expired)(claim, &overdue, fate);
                        left.extend(fate.has_left().then_some((table.id(), overdue)));
                    }
                }
            }
        }
        for (table, overdue) in &left {
            self.pass_on(*table, overdue);
        }
        has_begun
    }

    /// Sends the signals that are due, unless that is in vain, and checks which holders have ended.
    pub fn advance(&mut self, asker: &AcquireContext<'_>) -> Result<(), KeeperError> {
        let mut ended = Vec::new();
        for mut running in std::mem::take(&mut self.running) {
            let Running { table, ending, .. } = &mut running;
            let fate = if self.are_in_vain { table.has_released(ending) } else { table.advance(ending) };
            match fate? {
                Some(fate) => {
                    (asker.on_expired)(running.claim, &running.overdue, fate);
                    ended.extend(fate.has_left().then_some((running.table.id(), running.overdue)));
                }
                None => self.running.push(running),
            }
        }
        for (table, overdue) in &ended {
            self.pass_on(*table, overdue);
        }
        Ok(())
    }

    /// The slots of a group are free when its last member has ended; the members have them together.
    fn pass_on(&mut self, table: TableId, ended: &Overdue) {
        let is_member = |other: &&mut Running<'c>| {
            other.table.id() == table
                && other.overdue.slots == 0
                && other.overdue.holder.slots == ended.holder.slots
        };
        if let Some(other) = self.running.iter_mut().find(is_member) {
            other.overdue.slots = ended.slots;
        }
    }

    /// Checks which holders have released their slots, and stops ending the others: they no longer block the
    /// launch, or another launch ends them. If they block it again, it starts from the first signal.
    pub fn leave_alone(&mut self, asker: &AcquireContext<'_>) -> Result<(), KeeperError> {
        for running in std::mem::take(&mut self.running) {
            match running.table.has_released(&running.ending)? {
                Some(fate) => (asker.on_expired)(running.claim, &running.overdue, fate),
                None => self.tried.retain(|pid| *pid != running.overdue.pid),
            }
        }
        Ok(())
    }

    /// Whether a holder is still to be ended.
    pub fn are_going_on(&self) -> bool {
        !self.running.is_empty()
    }

    /// The processes to wait for.
    pub fn processes(&self) -> impl Iterator<Item = &PidFd> {
        self.running.iter().map(|running| running.ending.process())
    }

    /// The time until the next signal.
    pub fn left(&self) -> Option<Duration> {
        let running = self.running.iter().filter(|_| !self.are_in_vain);
        running.map(|running| running.ending.left()).min()
    }

    /// Sleeps until one of them has ended, or a signal is due, at most this long.
    pub fn sleep(&self, longest: Duration) -> Result<(), KeeperError> {
        let longest = self.left().map_or(longest, |left| left.min(longest));
        process::wait_for_any(self.processes(), longest)
            .map(drop)
            .map_err(|errno| KeeperError::Wait(Failure { call: "poll", errno }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::Store;

    /// A launch lacks slots of all, or of those that it may take. Slots that are used outside by their names
    /// count where they are, the others everywhere.
    #[test]
    fn slots_have_to_become_free_where_the_launch_may_take_them() {
        let table = Store::default().table("seats");
        let _held = table.take(&[1, 2, 3, 4]).expect("they are free");
        let lacks = |limit, slots, count, named: &[u64], is_for_all: bool| {
            let mut full = Full::of(&Table::Memory(table.clone()), None, false);
            (full.outside.count, full.outside.named) = (count, named.to_vec());
            let zones = (!is_for_all).then(|| vec![4..=5]);
            missing(&Terms { limit, slots, zones, ..Terms::default() }, &full).expect("a table in memory")
        };
        let of_all = |limit, slots, count, named| lacks(limit, slots, count, named, true);
        assert_eq!((of_all(5, 1, 0, &[]), of_all(5, 3, 0, &[]), of_all(4, 1, 0, &[])), (0, 2, 1));
        assert_eq!((of_all(5, 1, 1, &[]), of_all(5, 1, 0, &[5]), of_all(5, 1, 2, &[5])), (1, 1, 3));
        // Of the slots 4 and 5, the first is held.
        let of_two = |limit, slots, count, named| lacks(limit, slots, count, named, false);
        assert_eq!((of_two(7, 1, 0, &[]), of_two(7, 2, 0, &[]), of_two(7, 1, 1, &[])), (0, 1, 1));
        assert_eq!((of_two(7, 1, 0, &[5]), of_two(7, 1, 0, &[6]), of_two(4, 1, 0, &[])), (1, 0, 1));
    }
}
