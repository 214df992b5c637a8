//! The mirror in the agent's memory: holders and waiters of other hosts are in the same tables as the agent's
//! own.

use std::collections::BTreeMap;

use super::{
    Site,
    mirror::{TableOfSite, Versioned},
    record::{SlotRecord, TicketRecord},
};
use crate::{
    judge::terms::location::table_of_site,
    keeper::{
        Holder,
        line::{Class, Number},
        memory::{self, Store},
    },
};

/// Entries of a table for other hosts, each with the revision of its last write.
#[derive(Debug, Default)]
pub(super) struct Shown {
    slots: BTreeMap<u64, (i64, memory::Held)>,
    places: BTreeMap<u64, (i64, bool, memory::Place)>,
    stamps: i64,
}

impl Site {
    /// Updates a table in memory from the mirror, beside this host's own entries.
    pub(super) fn show(&mut self, name: &str, store: &Store) {
        let nothing = TableOfSite::default();
        let of = self.mirror.table(name).unwrap_or(&nothing);
        let local = table_of_site(name);
        let table = store.table(&local);
        let shown = self.shown.entry(name.to_owned()).or_default();
        // Slots that this host has released are free, even if the mirror does not show it yet.
        let deleted = self.own.deleted_after(self.mirror.revision(), name);
        let at = |slot: &u64| of.slots.get(slot).filter(|_| !deleted.contains(slot));
        let is_as_shown = |at: Option<i64>, revision: i64| at == Some(revision);
        shown.slots.retain(|slot, (revision, _)| is_as_shown(at(slot).map(|at| at.revision), *revision));
        for (slot, Versioned { revision, record }) in &of.slots {
            if !shown.slots.contains_key(slot)
                && !deleted.contains(slot)
                && let Some(held) = table.take(&[*slot])
            {
                let holder = record.as_ref().map(SlotRecord::holder);
                table.describe(&[*slot], holder.unwrap_or_else(|| Holder::unknown(*slot..=*slot)));
                shown.slots.insert(*slot, (*revision, held));
            }
        }
        let is_away = |record: Option<&TicketRecord>| {
            record.is_some_and(|of| of.is_away || !self.absences.is_reachable(&of.host, &of.agent))
        };
        shown.places.retain(|number, (revision, was_away, place)| {
            let at = of.tickets.get(number).filter(|at| is_as_shown(Some(at.revision), *revision));
            let Some(at) = at else { return false };
            let is_away = is_away(at.record.as_ref());
            if std::mem::replace(was_away, is_away) != is_away {
                place.set_away(is_away);
            }
            true
        });
        for (number, Versioned { revision, record }) in &of.tickets {
            // Launches that wait on this host have their own entries.
            let is_own = record.as_ref().is_some_and(|of| of.agent == self.agent);
            if is_own || shown.places.contains_key(number) {
                continue;
            }
            if let Some(mut place) = table.take_place(Number(*number)) {
                place.stand(&classes(record.as_ref()));
                if let Some(record) = record {
                    record.wants.into_iter().for_each(|wants| place.wants(wants));
                    place.belongs_to(&record.process());
                }
                let is_away = is_away(record.as_ref());
                place.set_away(is_away);
                shown.places.insert(*number, (*revision, is_away, place));
            }
        }
        let stamped = of.stamps.as_ref().map_or(0, |at| at.revision);
        if shown.stamps != stamped {
            shown.stamps = stamped;
            let stamps = of.stamps.as_ref().and_then(|at| at.record);
            match stamps {
                Some(stamps) => stamps.put_into(&table),
                None => drop(table.reset()),
            }
            // The mirror may show a start of this host whose program has ended by now.
            if let Some(end) = self.own.untold_end(name) {
                table.ended(table.stamps().1.map_or(end, |shown| shown.max(end)));
            }
        }
        if shown.slots.is_empty() && shown.places.is_empty() && stamped == 0 {
            self.shown.remove(name);
            drop(table);
            store.forget_if_unused(&local);
        }
    }
}

/// No launch may overtake an unreadable one.
fn classes(record: Option<&TicketRecord>) -> Vec<Class> {
    let of = |(generation, reach): &(u16, u64)| Class { generation: *generation, reach: *reach };
    record.map_or_else(
        || vec![Class { generation: 0, reach: u64::MAX }],
        |record| record.classes.iter().map(of).collect(),
    )
}
