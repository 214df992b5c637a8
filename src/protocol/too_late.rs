//! Whom to end: holders that are overdue, where their end makes room for everything that blocks a launch.
//! Nobody is ended in vain.

use std::time::SystemTime;

use super::{
    refusal::{Alternative, Reason, Refused, Unmet},
    wants::{Choice, terms_on},
};
use crate::{
    keeper::{
        Overdue,
        error::KeeperError,
        table::{Table, TableId},
    },
    terms::{claim::Claim, pace::Expiry},
};

/// Holders of a claim's table that are to be ended, and how.
pub struct Eviction<'c> {
    /// What they stand in the way of.
    pub claim: &'c Claim<'c>,
    /// By which terms they are overdue.
    pub expiry: Expiry,
    /// What they hold slots of.
    pub table: Table,
    /// They themselves.
    pub overdue: Vec<Overdue>,
}

/// What is known of those who are being ended already.
pub struct Known<'k> {
    /// Who was tried: nobody is sent signals again and again.
    pub was_tried: &'k dyn Fn(&Overdue) -> bool,
    /// How many slots of a table their end will free.
    pub coming: &'k dyn Fn(TableId) -> u64,
}

impl Known<'_> {
    /// As many as make room for all of this, and true; or, where there are not enough, those who cannot be
    /// ended, and false.
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

    /// Those whose end makes room for one claim, where there are enough; and those who cannot be ended, where
    /// there are not.
    fn choose_of<'c>(
        &self,
        refused: &Refused<'c>,
        now: SystemTime,
    ) -> Result<(Option<Eviction<'c>>, Option<Eviction<'c>>), KeeperError> {
        let (Some(expiry), Reason::Full(full)) = (refused.claim.pace.expiry, &refused.reason) else {
            return Ok((None, None));
        };
        let choice = Choice { claim: refused.claim, table: refused.table };
        let terms = terms_on(refused.table, &[choice]);
        let missing = (full.used() + terms.slots).saturating_sub(terms.limit).max(1);
        let overdue = full.table().overdue(full.holders(), &expiry, now)?.into_iter();
        let is_new = |overdue: &Overdue| terms.allows(overdue.holder.slots.0) && !(self.was_tried)(overdue);
        let (can, cannot): (Vec<_>, Vec<_>) = overdue.filter(is_new).partition(Overdue::can_be_ended);
        let found_here =
            |overdue| Eviction { claim: refused.claim, expiry, table: full.table().clone(), overdue };
        Ok(match self.enough(can, missing, full.table()) {
            Some(chosen) => (Some(found_here(chosen)), None),
            None => (None, Some(found_here(cannot))),
        })
    }

    /// As many of them as make room for what is missing, besides those that are being ended already; none
    /// where they do not.
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
