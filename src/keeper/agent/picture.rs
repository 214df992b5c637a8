//! A table of the agent on its way to a launch. There it becomes a table in memory again, so that all code
//! handles tables in one way.

use super::message::{Grouped, Holder, Table, described, shown};
use crate::keeper::memory;

impl Table {
    /// A table as it is now. It describes a limited number of holders (those who have held for longest) and
    /// of waiters (the oldest). For the others it has only their number, and how many belong to this user.
    pub fn of(name: &str, table: &memory::Table, most: usize, most_waiting: usize, user: u32) -> Self {
        let occupancy = table.occupancy();
        let known = table.holders(&occupancy);
        let of = |(slot, rank, group): (u64, u64, u64)| Grouped { slot, rank, group };
        let grouped: Vec<Grouped> = table.groups().into_iter().map(of).collect();
        let others: Vec<Holder> =
            known.iter().flat_map(|holder| &holder.others).cloned().filter_map(described).collect();
        let mut holders: Vec<Holder> = known.into_iter().filter_map(described).collect();
        if holders.len() > most {
            holders.sort_by_key(|holder| holder.since);
            holders.truncate(most);
        }
        let (last_start, last_end) = table.stamps();
        Self {
            name: name.to_owned(),
            held: runs(occupancy.spans().iter().map(|span| span.slots.clone().into_inner())),
            holders,
            waiting: table.first_waiters(most_waiting),
            last_start,
            last_end,
            unlisted: Some(table.count_after(most_waiting, user)),
            groups: Some(grouped).filter(|grouped| !grouped.is_empty()),
            others: Some(others).filter(|others| !others.is_empty() && most == usize::MAX),
        }
    }

    /// The same as a table in memory.
    pub fn to_memory(&self, store: &memory::Store) -> memory::Table {
        let table = store.unused();
        for (first, last) in &self.held {
            let slots: Vec<u64> = (*first..=*last).collect();
            if let Some(held) = table.take(&slots) {
                // They are not released here.
                std::mem::forget(held);
            }
        }
        for holder in &self.holders {
            let (first, last) = holder.slots;
            table.describe(&(first..=last).collect::<Vec<_>>(), shown(holder));
        }
        for Grouped { slot, rank, group } in self.groups.iter().flatten() {
            table.show_group((*slot, *rank, *group));
        }
        for other in self.others.iter().flatten() {
            table.show_other_member(other.slots, shown(other));
        }
        for waiter in &self.waiting {
            table.show_waiter(waiter.clone());
        }
        table.show_unlisted(self.unlisted.unwrap_or_default());
        table.set_stamps(self.last_start, self.last_end, None);
        table
    }
}

/// Neighbours as one.
fn runs(spans: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (first, last) in spans {
        match runs.last_mut() {
            Some(run) if run.1.checked_add(1) == Some(first) => run.1 = last,
            _ => runs.push((first, last)),
        }
    }
    runs
}
