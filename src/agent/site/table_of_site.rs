//! A table of the site as the mirror has it.

use std::collections::BTreeMap;

use super::{
    key::Key,
    record::{NoticeRecord, SlotRecord, TicketRecord},
};
use crate::agent::ledger::state::SavedStamps;

/// A value, with the revision at which it was last written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Versioned<T> {
    pub(super) revision: i64,
    /// None where nobody can read it.
    pub(super) record: Option<T>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct TableOfSite {
    pub(super) slots: BTreeMap<u64, Versioned<SlotRecord>>,
    pub(super) tickets: BTreeMap<u64, Versioned<TicketRecord>>,
    /// By the slots that they are about.
    pub(super) notices: BTreeMap<u64, Versioned<NoticeRecord>>,
    pub(super) stamps: Option<Versioned<SavedStamps>>,
}

impl TableOfSite {
    /// How many keys it has.
    pub(super) fn count(&self) -> usize {
        self.slots.len() + self.tickets.len() + self.notices.len() + usize::from(self.stamps.is_some())
    }

    /// Each of them, with the revision at which it was last written.
    pub(super) fn revisions(&self, name: &str) -> impl Iterator<Item = (Key, i64)> {
        let Self { slots, tickets, notices, stamps } = self;
        let slots = slots.iter().map(|(slot, at)| (Key::Slot(name.to_owned(), *slot), at.revision));
        let tickets = tickets.iter().map(|(number, at)| (Key::Ticket(name.to_owned(), *number), at.revision));
        let notices = notices.iter().map(|(slot, at)| (Key::Notice(name.to_owned(), *slot), at.revision));
        let stamps = stamps.iter().map(|at| (Key::Stamps(name.to_owned()), at.revision));
        slots.chain(tickets).chain(notices).chain(stamps)
    }
}
