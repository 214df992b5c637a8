//! Slots of a table in memory, held until dropped.

use super::Table;

/// Slots that were taken, or are shared with an ancestor.
#[must_use = "the slots are free again when this is dropped"]
#[derive(Debug)]
pub struct Held {
    table: Table,
    slots: Vec<u64>,
    /// The number of the nested launch that uses an ancestor's slots.
    share: Option<u64>,
}

impl Held {
    pub(super) fn of(table: &Table, slots: &[u64]) -> Self {
        Self { table: table.clone(), slots: slots.to_vec(), share: None }
    }

    pub(super) fn shared(table: &Table, slots: &[u64], share: u64) -> Self {
        Self { table: table.clone(), slots: slots.to_vec(), share: Some(share) }
    }

    /// The slots.
    pub fn slots(&self) -> &[u64] {
        &self.slots
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Whether they are an ancestor's.
    pub fn is_shared(&self) -> bool {
        self.share.is_some()
    }

    /// Gives the slots back.
    pub fn release(&mut self) {
        let mut state = self.table.state().borrow_mut();
        for slot in self.slots.drain(..) {
            // Whoever shares a slot shares it with its holder, and with nobody who takes it afterwards.
            if self.share.is_none_or(|share| state.shared.get(&slot) == Some(&share)) {
                state.shared.remove(&slot);
            }
            if self.share.is_none() {
                state.held.remove(&slot);
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}
