//! Why a launch does not get what it wants, demand by demand. Facts that only people read (holders, number of
//! waiting launches) are looked up on request, after the tables were unlocked. So a described holder may have
//! ended.

use std::{
    cell::OnceCell,
    time::{Duration, SystemTime},
};

use super::{AcquireContext, ClaimOnTable, Unwaited};
use crate::{
    judge::terms::{Claim, Terms, TooSoon, Wait},
    keeper::{
        Holder, KeeperError, Known, Look, Means, Occupancy, TableId, Waiter, memory,
        outside::{NoSample, Used},
        table::Table,
    },
    sys::process,
    text::ExitStatus,
};

/// A launch that does not start.
pub struct Refusal<'c> {
    /// Every demand that was not met; never empty.
    pub unmet: Vec<Unmet<'c>>,
    /// How long the launch waited until its wait timed out.
    pub waited: Option<Duration>,
}

/// A demand without an available alternative.
pub struct Unmet<'c> {
    pub alternatives: Vec<Alternative<'c>>,
}

/// Claims that would have to be met together.
pub struct Alternative<'c> {
    pub claims: Vec<&'c Claim>,
    /// Those that cannot be met; never empty.
    pub refused: Vec<Refused<'c>>,
}

/// A claim that cannot be met.
pub struct Refused<'c> {
    pub claim: &'c Claim,
    pub table: TableId,
    /// Why.
    pub reason: Reason,
    /// The queue in which the launch waits for it, if waiting could help.
    pub line: Option<Line>,
    /// Why the launch does not wait for it nevertheless.
    pub unwaited: Option<Unwaited>,
}

/// Why a claim cannot be met.
pub enum Reason {
    /// The limit is reached, or the remaining slots are for others.
    Full(Full),
    /// More slots are wanted than there can ever be.
    Never,
    /// The last start (or end) was too short a time ago.
    TooSoon {
        /// When it was.
        last: SystemTime,
        /// The user of the last start, if known.
        uid: Option<u32>,
    },
}

impl<'c> Refusal<'c> {
    /// Every claim that blocks the launch.
    pub fn claims(&self) -> impl Iterator<Item = &Refused<'c>> {
        self.unmet.iter().flat_map(Unmet::claims)
    }

    /// How long the launch would wait for everything that blocks it; none if it would not wait.
    pub fn wait(&self) -> Option<Wait> {
        let of = |alternative: &Alternative<'_>| {
            alternative.refused.iter().map(|refused| refused.claim.wait.resolve()).min()
        };
        let waits = self.unmet.iter().map(|unmet| {
            let waited_for = unmet.alternatives.iter().filter(|alternative| !alternative.is_unwaited());
            waited_for.filter_map(of).max()
        });
        waits.min().flatten()
    }

    /// The status to end with.
    pub(crate) fn status(&self) -> ExitStatus {
        if self.is_too_soon() {
            return if self.is_silent() { ExitStatus::Success } else { ExitStatus::TooSoon };
        }
        match self.waited {
            _ if self.is_hopeless() => ExitStatus::Policy,
            Some(_) => ExitStatus::TimedOut,
            None => ExitStatus::Full,
        }
    }

    /// Whether only time blocks the launch: the last start, or end, was too recent, or this is so for all
    /// alternatives that it could ever get. If one of those is full, the launch can wait for that.
    pub fn is_too_soon(&self) -> bool {
        !self.is_hopeless() && self.claims().all(|refused| !matches!(refused.reason, Reason::Full(_)))
    }

    /// Every claim that comes too soon.
    pub fn too_soon(&self) -> impl Iterator<Item = &Refused<'c>> {
        self.claims().filter(|refused| matches!(refused.reason, Reason::TooSoon { .. }))
    }

    /// What to report: if only time blocks the launch, the claims that come too soon, and not alternatives
    /// that it can never get.
    pub fn told(&self) -> impl Iterator<Item = &Refused<'c>> {
        let is_too_soon = self.is_too_soon();
        let is_told =
            move |refused: &&Refused<'_>| !is_too_soon || matches!(refused.reason, Reason::TooSoon { .. });
        self.claims().filter(is_told)
    }

    /// Whether something can never be acquired, even if all slots are free.
    pub fn is_hopeless(&self) -> bool {
        let is_never = |refused: &Refused<'_>| matches!(refused.reason, Reason::Never);
        let is_hopeless = |alternative: &Alternative<'_>| alternative.refused.iter().any(is_never);
        self.unmet.iter().any(|unmet| unmet.alternatives.iter().all(is_hopeless))
    }

    /// Finds out where only ancestors of this process block the launch, for the message.
    pub fn look_for_ancestors(&mut self, asker: &AcquireContext<'_>) -> Result<(), KeeperError> {
        self.unmet.iter_mut().try_for_each(|unmet| unmet.look_for_ancestors(asker))
    }

    /// Whether this is not a failure, and prints nothing: `too_soon = "ok"`.
    pub fn is_silent(&self) -> bool {
        let is_silent = |refused: &Refused<'_>| {
            refused.claim.pace.pause.is_some_and(|pause| pause.too_soon == TooSoon::Ok)
        };
        self.is_too_soon() && self.too_soon().all(is_silent)
    }
}

impl<'c> Unmet<'c> {
    /// Every claim that blocks the launch.
    pub fn claims(&self) -> impl Iterator<Item = &Refused<'c>> {
        self.alternatives.iter().flat_map(|alternative| &alternative.refused)
    }

    /// The same, to be changed.
    pub(super) fn claims_mut(&mut self) -> impl Iterator<Item = &mut Refused<'c>> {
        self.alternatives.iter_mut().flat_map(|alternative| &mut alternative.refused)
    }

    /// Whether waiting is useless.
    pub fn is_final(&self) -> bool {
        self.alternatives.iter().all(|alternative| alternative.refused.iter().any(Refused::is_final))
    }

    /// Whether the launch does not wait, or no longer waits, for any of it.
    pub fn is_unwaited(&self) -> bool {
        self.alternatives.iter().all(Alternative::is_unwaited)
    }

    /// Finds the tables in which only ancestors of this process block the launch. The tables need not be
    /// locked.
    pub fn look_for_ancestors(&mut self, asker: &AcquireContext<'_>) -> Result<(), KeeperError> {
        for refused in self.claims_mut() {
            if let Reason::Full(full) = &mut refused.reason {
                // The agent has already determined this.
                full.only_ancestors = full.only_ancestors
                    || full.outside.slots() == 0 && full.is_held_by_ancestors(refused.claim, asker)?;
            }
        }
        Ok(())
    }
}

impl<'c> Alternative<'c> {
    pub(super) fn of(choices: &[ClaimOnTable<'c>], refused: Vec<Refused<'c>>) -> Self {
        Self { claims: choices.iter().map(|choice| choice.claim).collect(), refused }
    }

    /// Whether the launch does not wait, or no longer waits, for it.
    pub fn is_unwaited(&self) -> bool {
        self.refused.iter().any(|refused| refused.unwaited.is_some() || refused.is_final())
    }
}

impl Refused<'_> {
    /// Why use outside is unknown, if it is refused because of that.
    pub(super) fn no_sample(&self) -> Option<&NoSample> {
        match &self.reason {
            Reason::Full(full) => full.no_sample.as_ref(),
            Reason::Never | Reason::TooSoon { .. } => None,
        }
    }

    /// The table in whose queue the launch may wait for it.
    pub(super) fn table_of_line(&self) -> Option<&Table> {
        match &self.reason {
            Reason::Full(full) => Some(full.table()),
            Reason::Never | Reason::TooSoon { .. } => None,
        }
    }

    /// Whether waiting is useless.
    pub fn is_final(&self) -> bool {
        match &self.reason {
            Reason::Never | Reason::TooSoon { .. } => true,
            Reason::Full(full) => full.only_ancestors,
        }
    }
}

/// A message names four processes; at most about this many are looked up in `/proc` for it.
const MOST_ASKED: usize = 16;

/// A table without room.
pub struct Full {
    table: Table,
    /// What the decision saw of it: no more than necessary.
    look: Option<Look>,
    counted: OnceCell<Counted>,
    holders: OnceCell<Vec<Holder>>,
    known: OnceCell<Known>,
    /// The slots in use outside rungate.
    pub outside: Used,
    /// Why that is unknown, if it is: then no end of a holder is known to make room.
    pub no_sample: Option<NoSample>,
    /// Whether there may be room, and older launches wait for it.
    pub is_behind: bool,
    /// Whether only this process and its ancestors block the launch: it would wait forever.
    pub only_ancestors: bool,
}

impl Full {
    pub(super) fn of(table: &Table, look: Option<Look>, is_behind: bool) -> Self {
        Self {
            table: table.clone(),
            look,
            counted: OnceCell::new(),
            holders: OnceCell::new(),
            known: OnceCell::new(),
            outside: Used::default(),
            no_sample: None,
            is_behind,
            only_ancestors: false,
        }
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The slots that a claim wants of it, besides those that its group has there now.
    pub(super) fn missing(&self, claim: &Claim) -> Result<Terms, KeeperError> {
        Ok(terms_of(claim).beyond(&self.shared(claim)?))
    }

    /// The slots that the group of a claim has there now, as many as the claim wants.
    pub(super) fn shared(&self, claim: &Claim) -> Result<Vec<u64>, KeeperError> {
        let terms = terms_of(claim);
        if terms.group.is_none() { Ok(Vec::new()) } else { self.table.view()?.shared(&terms) }
    }

    /// How many slots a claim wants besides those of its group; all that it wants if that is unknown.
    pub fn wanted(&self, claim: &Claim) -> u64 {
        self.missing(claim).map_or_else(|_| claim.amount.wanted(), |missing| missing.slots)
    }

    /// The known holders of a user whose end makes room for a claim: the launch already counts on the slots
    /// of its group.
    pub fn holders_of(&self, uid: u32, claim: &Claim) -> Vec<&Holder> {
        let shared = self.shared(claim).unwrap_or_default();
        let of_user = self.known_holders().holders.iter().filter(|holder| holder.uid == Some(uid));
        let is_other = |holder: &&Holder| {
            let (first, last) = holder.slots;
            !shared.iter().any(|slot| (first..=last).contains(slot))
        };
        of_user.filter(is_other).collect()
    }

    /// Whether only ancestors of this process hold slots. One other holder that the decision saw is enough to
    /// know.
    fn is_held_by_ancestors(&self, claim: &Claim, asker: &AcquireContext<'_>) -> Result<bool, KeeperError> {
        let AcquireContext { launch, keepers, .. } = asker;
        let is_by_ancestors =
            |occupancy: &Occupancy| self.table.is_held_by_ancestors(occupancy, claim, launch, keepers);
        let seen = self.look.as_ref().map(Look::occupancy).filter(|seen| !seen.spans().is_empty());
        Ok(seen.as_ref().map_or(Ok(true), is_by_ancestors)? && is_by_ancestors(self.occupancy()?)?)
    }

    /// The held slots: as the decision saw them or, if it did not need all of them, as they are now.
    pub fn occupancy(&self) -> Result<&Occupancy, KeeperError> {
        self.counted().map(|counted| &counted.occupancy)
    }

    fn counted(&self) -> Result<&Counted, KeeperError> {
        if let Some(counted) = self.counted.get() {
            return Ok(counted);
        }
        let (occupancy, is_whole) = self.table.occupancy(self.look.clone(), Means::Queries)?;
        Ok(self.counted.get_or_init(|| Counted { occupancy, is_whole }))
    }

    /// The holders, by slot; empty if they cannot be found out any more.
    pub fn holders(&self) -> &[Holder] {
        self.holders.get_or_init(|| {
            let holders = self.occupancy().and_then(|occupancy| self.table.holders(occupancy));
            holders.unwrap_or_default()
        })
    }

    /// The holders that a message can name: those with a recorded start, and some of the others.
    pub fn known_holders(&self) -> &Known {
        self.known.get_or_init(|| {
            let known = |occupancy| self.table.known_holders(occupancy, MOST_ASKED);
            self.occupancy().and_then(known).unwrap_or_default()
        })
    }

    /// How many slots are held.
    pub fn used(&self) -> u64 {
        self.occupancy().map_or(0, Occupancy::shown)
    }

    /// Whether there may be more: to count them all would have taken too long.
    pub fn is_more_used(&self) -> bool {
        self.counted().is_ok_and(|counted| !counted.is_whole)
    }

    /// How many others wait.
    pub fn waiting(&self) -> usize {
        self.others().len().saturating_add(self.unlisted().0)
    }

    /// How many other launches of the same user wait.
    pub fn waiting_of(&self, uid: u32) -> usize {
        let listed = self.others().iter().filter(|other| other.uid() == Some(uid)).count();
        listed.saturating_add(self.unlisted().1)
    }

    /// How many waiting launches the agent only counts, and how many of them belong to the same user.
    fn unlisted(&self) -> (usize, usize) {
        let count = |count| usize::try_from(count).unwrap_or(usize::MAX);
        let (all, own) = self.table.in_memory().map(memory::Table::unlisted).unwrap_or_default();
        (count(all), count(own))
    }

    /// All waiting launches except this process, oldest first.
    pub fn others(&self) -> Vec<Waiter> {
        let mut others = self.table.waiters().unwrap_or_default();
        others.retain(|other| other.pid_here() != Some(process::own_pid()));
        others
    }
}

/// The terms of a claim by itself.
fn terms_of(claim: &Claim) -> Terms {
    Terms::merge([&claim.amount]).unwrap_or_default()
}

/// The held slots, as counted for messages.
struct Counted {
    occupancy: Occupancy,
    is_whole: bool,
}

// One queue in which a launch may have to wait.

/// A table that blocks a launch, and the class of the launch there.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub table: TableId,
    /// How many slots there are for the launch there.
    pub capacity: u64,
    /// Whether the room was not checked, because older launches wait.
    pub is_behind: bool,
}
