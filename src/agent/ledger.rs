//! What the agent keeps: the tables, who has slots of them, who stood in line when the agent died, and what
//! of all this is written down.

use std::collections::BTreeMap;

use super::{awaited::Returning, ends::Ends, holding::Holding, state::State};
use crate::{
    keeper::memory::{self, Store},
    sys::descriptor::Inherited,
};

/// The owner of the tables, and the only one that writes to the disk.
pub(super) struct Ledger {
    pub(super) store: Store,
    pub(super) state: State,
    pub(super) holdings: BTreeMap<u64, Holding>,
    /// Who stood in line when the agent died, and has not called again.
    pub(super) returning: BTreeMap<u64, Returning>,
    /// Programs of late.
    pub(super) ends: Ends,
    /// It has inherited nothing that could hold a slot.
    pub(super) inherited: Inherited,
}

impl Ledger {
    /// One that is written down there.
    pub(super) fn new(state: State) -> Self {
        Self {
            store: Store::default(),
            state,
            holdings: BTreeMap::new(),
            returning: BTreeMap::new(),
            ends: Ends::default(),
            inherited: Inherited::default(),
        }
    }

    /// The tables.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Where things are written down.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Whoever has slots.
    pub(super) fn holdings(&self) -> &BTreeMap<u64, Holding> {
        &self.holdings
    }

    /// One of them.
    pub(super) fn holding_mut(&mut self, number: u64) -> Option<&mut Holding> {
        self.holdings.get_mut(&number)
    }

    /// All of them.
    pub(super) fn holdings_mut(&mut self) -> impl Iterator<Item = &mut Holding> {
        self.holdings.values_mut()
    }

    /// Who stood in line when the agent died, and has not called again.
    pub(super) fn recovered(&self) -> &BTreeMap<u64, Returning> {
        &self.returning
    }

    /// Gives a holding another slot of a table in the place of one that others have by now. Says whether that
    /// can be.
    pub(super) fn move_slot(&mut self, number: u64, table: &memory::Table, slot: u64, another: u64) -> bool {
        let Some(holding) = self.holdings.get_mut(&number) else { return false };
        let is_moved = holding.moves_to(table, slot, another);
        if is_moved {
            // That it could not be written down costs at most another search after the agent's next start.
            let _ = self.state.write(number, &holding.saved);
        }
        is_moved
    }
}
