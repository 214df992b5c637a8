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

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::{
        judge::terms::{Group, Hold, Seats, Terms},
        keeper::{self, Class, Number, Store, WaitingProcess},
    };

    fn at(hour: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(3600 * hour)
    }

    /// A holder on another host, since this hour.
    fn holder(pid: i32, hour: u64) -> keeper::Holder {
        keeper::Holder {
            pid: Some(pid),
            uid: Some(1000),
            host: Some("no.such.host.".to_owned()),
            since: Some(at(hour)),
            hold: Some(Hold::Process),
            command: Some("matlab".to_owned()),
            rule: Some("seats".to_owned()),
            ..keeper::Holder::unknown(0..=0)
        }
    }

    /// A launch sees the slots, groups, holders and waiters that the agent has.
    #[test]
    fn a_table_is_the_same_after_its_way_to_a_launch() {
        let (store, group) = (Store::default(), Group::of("ann"));
        let table = store.table("seats");
        let pair = table.take(&[4, 5]).expect("they are free");
        pair.describe(holder(7, 3));
        let member = |shared: &[u64], free: &[u64], pid| {
            let seats = Seats { shared: shared.to_vec(), free: free.to_vec() };
            let held = table.take_with(&seats, Some(&group)).expect("it is free");
            held.describe(holder(pid, 2));
            held
        };
        let _group = [member(&[], &[2], 8), member(&[2], &[], 9)];
        let mut place = table.take_place(Number(1)).expect("the number is free");
        place.stand(&[Class { generation: 0, capacity: 5 }]);
        place.belongs_to(&WaitingProcess { user: Some(1000), ..WaitingProcess::default() });
        table.set_stamps(Some(at(3)), Some(at(1)), None);
        let seen = Table::of("seats", &table, usize::MAX, usize::MAX, 1000).to_memory(&Store::default());
        let occupancy = table.occupancy();
        assert_eq!(seen.occupancy(), occupancy);
        assert_eq!(seen.holders(&occupancy), table.holders(&occupancy));
        assert_eq!((seen.waiters(), seen.stamps()), (table.waiters(), table.stamps()));
        let terms = Terms { limit: 5, slots: 1, group: Some(group), ..Terms::default() };
        assert_eq!((seen.shared(&terms), table.shared(&terms)), (vec![2], vec![2]));
        // A refusal names the first of those who share a slot, and a listing all of them.
        let others = [16, usize::MAX].map(|most| Table::of("seats", &table, most, 16, 1000).others);
        assert_eq!(others.map(|others| others.map_or(0, |others| others.len())), [0, 1]);
        // Waiters that are not described are counted: all, and those of the caller.
        let counted = |user| Table::of("seats", &table, 0, 0, user).to_memory(&Store::default()).unlisted();
        assert_eq!((counted(1000), counted(1001), seen.unlisted()), ((1, 1), (1, 0), (0, 0)));
    }

    /// A launch takes over slots of its group that linger, when their program has ended. It sees them as the
    /// agent does.
    #[test]
    fn slots_that_linger_are_seen_when_their_program_has_ended() {
        let (table, group) = (Store::default().table("seats"), Group::of_heirs("ann"));
        let held = table.restore(&[3, 4], Some(&group)).expect("they are free");
        held.describe(holder(7, 2));
        let found = |group: &Group| {
            let terms = Terms { limit: 5, slots: 1, group: Some(group.clone()), ..Terms::default() };
            let seen = Table::of("seats", &table, usize::MAX, 0, 1000).to_memory(&Store::default());
            [table.shared(&terms), seen.shared(&terms)]
        };
        assert_eq!(found(&group).concat(), [0; 0], "the program runs");
        held.linger(Some(at(9)));
        assert_eq!(found(&group), [[3], [3]], "one slot is wanted");
        assert_eq!(found(&Group::of_heirs("bob")).concat(), [0; 0]);
    }

    /// If only some holders are described, they are those that have held their slots for longest. All slots
    /// are held nevertheless.
    #[test]
    fn the_oldest_holders_are_described() {
        let table = Store::default().table("seats");
        let held = [(1, 5), (2, 3), (3, 4)].map(|(slot, hour)| {
            let held = table.take(&[slot]).expect("it is free");
            held.describe(holder(7, hour));
            held
        });
        let seen = Table::of("seats", &table, 2, 0, 1000).to_memory(&Store::default());
        let since = seen.holders(&table.occupancy()).into_iter().map(|holder| holder.since);
        assert_eq!(since.collect::<Vec<_>>(), [None, Some(at(3)), Some(at(4))]);
        assert_eq!(seen.used(), held.len() as u64);
    }
}
