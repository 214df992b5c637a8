//! The holders whose slots only nested launches keep: their program has ended, or given them back. The tables
//! show the nested launch in their place, and it is the one that is ended. The slots are free at no moment,
//! and stay those of the holder until the last nested launch has ended.

use std::{collections::BTreeMap, mem};

use super::{Holding, Ledger};

/// These holders.
#[derive(Default)]
pub(super) struct GivenBack {
    /// Each with the holder that the tables show in its place.
    all: BTreeMap<u64, Option<u64>>,
    /// Whether it may be another one by now.
    is_outdated: bool,
}

impl GivenBack {
    /// Notes the state of a holder that has changed.
    pub(super) fn note(&mut self, number: u64, holding: &Holding) {
        if holding.saved.is_given_back {
            self.all.insert(number, None);
        }
        self.is_outdated |= holding.saved.is_given_back || holding.is_nested();
    }

    /// A holder does not exist any more.
    pub(super) fn forget(&mut self, number: u64, holding: &Holding) {
        self.all.remove(&number);
        self.is_outdated |= holding.is_nested();
    }
}

impl Ledger {
    /// A launch gives back its slots. Returns whether they stay taken, because a nested launch uses them.
    pub(in crate::agent) fn leaves_to_nested(&mut self, number: u64) -> bool {
        let holding = self.holdings.get_mut(&number).filter(|holding| holding.is_used_below());
        let Some(holding) = holding else { return false };
        holding.saved.is_given_back = true;
        self.given_back.note(number, holding);
        // If that cannot be written, what has its FIFO keeps the slot after a restart too.
        let _ = self.state.write(number, &holding.saved);
        true
    }

    /// A holder whose slots only a nested launch kept, and nothing keeps any more.
    pub(in crate::agent) fn left_over(&self) -> Option<u64> {
        let is_over = |number: &&u64| self.holdings.get(number).is_some_and(|holding| !holding.is_kept());
        self.given_back.all.keys().find(is_over).copied()
    }

    /// Whether only nested launches keep the slots of a holder.
    pub(in crate::agent) fn is_left_to_nested(&self, number: u64) -> bool {
        self.given_back.all.contains_key(&number)
    }

    /// The holder that keeps these slots now: a nested launch, if that alone does.
    pub(in crate::agent) fn keeper_of(&self, number: u64) -> u64 {
        self.given_back.all.get(&number).copied().flatten().unwrap_or(number)
    }

    /// Updates the tables, before they are read: they show who keeps slots now. Of several nested launches,
    /// that is the first one.
    pub(in crate::agent) fn show_keepers(&mut self) {
        if !mem::take(&mut self.given_back.is_outdated) || self.given_back.all.is_empty() {
            return;
        }
        let mut keepers: BTreeMap<u64, u64> = BTreeMap::new();
        // The latest holder first: a nested launch comes after the holder whose slots it uses.
        for (number, holding) in self.holdings.iter().rev() {
            let mut keeper = Some(*number);
            if let Some(shown) = self.given_back.all.get_mut(number) {
                *shown = keepers.get(number).copied();
                keeper = *shown;
                let by = keeper.and_then(|keeper| self.holdings.get(&keeper)).unwrap_or(holding);
                holding.describe_as(by, |_| true);
            }
            for owner in holding.saved.tables.iter().flat_map(|of| &of.owners) {
                keepers.extend(keeper.map(|keeper| (*owner, keeper)));
            }
        }
    }
}
