//! The slots that a launch got, until it executes the program or releases them.

use std::{ptr, time::SystemTime};

use crate::{
    judge::terms::{Claim, NamedSlots, Runs},
    keeper::{Granted, KeeperError, Means, held::Held, table::Table},
    sys::{Process, SignalsBlocked},
};

/// What a launch holds, in all tables.
#[must_use = "everything is given back when this is dropped"]
pub struct Grant<'c> {
    pub(super) held: Vec<Held>,
    pub(super) slots: Vec<NamedSlots>,
    /// The slots of each claim that has some.
    pub(super) own: Vec<(&'c Claim, Runs)>,
    pub(super) claims: Vec<&'c Claim>,
    pub(super) unenforced: Vec<&'c Claim>,
    /// The tables of the claims, in their order; none if the agent keeps them.
    pub(super) tables: Vec<Table>,
    /// The recorded start.
    pub(super) started: SystemTime,
    /// The previous recorded start, for each held slot that is not shared with an ancestor.
    pub(super) before: Vec<Option<SystemTime>>,
    /// Where descriptors of the caller keep the slots: the end of this process would not release them.
    pub(super) ends: Vec<SignalsBlocked>,
}

impl<'c> Grant<'c> {
    /// What the agent granted.
    pub(super) fn of_agent(
        granted: Granted,
        slots: Vec<NamedSlots>,
        own: Vec<(&'c Claim, Runs)>,
        claims: Vec<&'c Claim>,
        unenforced: Vec<&'c Claim>,
    ) -> Self {
        let (started, before, tables) = (SystemTime::now(), Vec::new(), Vec::new());
        let held = vec![Held::Agent(granted)];
        Self { held, slots, own, claims, unenforced, tables, started, before, ends: Vec::new() }
    }

    /// Holds nothing, for a launch that may start nevertheless.
    pub fn without_slots(claims: Vec<&'c Claim>, started: SystemTime) -> Self {
        let (held, slots, own, before) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (unenforced, tables) = (claims.clone(), Vec::new());
        Self { held, slots, own, claims, unenforced, tables, started, before, ends: Vec::new() }
    }

    /// Both together.
    pub(super) fn and(mut self, other: Grant<'c>) -> Self {
        // Claims with a recorded start stay first.
        self.held.extend(other.held);
        self.slots.extend(other.slots);
        self.own.extend(other.own);
        self.claims.extend(other.claims);
        self.unenforced.extend(other.unenforced);
        self.ends.extend(other.ends);
        self
    }

    /// Each table's slots with the name of its repository, in the order of the claims.
    pub fn slots(&self) -> &[NamedSlots] {
        &self.slots
    }

    /// The slots of this grant in a claim's table.
    pub fn slots_of(&self, claim: &Claim) -> Option<&Runs> {
        self.own.iter().find(|(known, _)| ptr::eq(*known, claim)).map(|(_, slots)| slots)
    }

    /// The claims that were met, or did not have to be met.
    pub fn claims(&self) -> &[&'c Claim] {
        &self.claims
    }

    /// Claims that would have refused the launch if they were enforced.
    pub fn unenforced(&self) -> &[&'c Claim] {
        &self.unenforced
    }

    /// When it was decided.
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// The held slots of a claim's table, including those of this grant; none if not all are known.
    pub fn seen_held(&self, claim: &Claim) -> Option<Runs> {
        let place = self.claims.iter().position(|known| ptr::eq(*known, claim))?;
        let (occupancy, is_whole) = self.tables.get(place)?.occupancy(None, Means::Queries).ok()?;
        // The kernel may not report a process its own locks.
        let own = self.slots_of(claim).into_iter().flat_map(Runs::slots);
        let unseen = own.filter(|slot| !occupancy.holds(*slot));
        let (unseen, seen) = (unseen.map(|slot| slot..=slot), occupancy.runs());
        is_whole.then(|| Runs::joined(seen.iter().cloned().chain(unseen).collect()))
    }

    /// Whether a claim was met by slots of an ancestor.
    pub fn is_shared(&self, claim: &Claim) -> bool {
        let place = self.claims.iter().position(|known| ptr::eq(*known, claim));
        let table = place.and_then(|place| self.tables.get(place));
        table.is_some_and(|table| self.held.iter().any(|held| table.is_shared_by(held)))
    }

    /// Hands everything over to the program that this process, or a child of it, is about to become.
    pub fn keep_across_exec(&self) -> Result<(), KeeperError> {
        self.held.iter().try_for_each(Held::keep_across_exec)
    }

    /// Records the command's process id, if a supervisor acquired the slots for it.
    pub fn record_command(&self, command: i32) -> Result<(), KeeperError> {
        let started = Process::find(command).map_or(0, |process| process.started);
        self.held.iter().try_for_each(|held| held.record_command(command, started))
    }

    /// Releases everything because the program has ended, and records when. The slots are free even if that
    /// cannot be written.
    pub fn finish(&mut self) -> Result<(), KeeperError> {
        let now = SystemTime::now();
        let finished: Vec<Result<(), KeeperError>> =
            self.held.iter_mut().map(|held| held.finish(now)).collect();
        finished.into_iter().collect()
    }

    /// Releases everything and removes the recorded start, because no program was started. If one table does
    /// not let it, it does so in the others.
    pub fn withdraw(mut self) -> Result<(), KeeperError> {
        let mut done: Vec<Result<(), KeeperError>> = self.held.iter_mut().map(Held::release).collect();
        let stamped = self.held.iter().zip(&self.before);
        done.extend(stamped.map(|(held, before)| held.withdraw(self.started, *before)));
        done.into_iter().collect()
    }
}
