//! What the events of a log tell of slots: who took which, and what others saw held meanwhile.

use super::{Process, Recording, Running};
use crate::{
    log::{
        circumstances::TableSeen,
        event::{Event, Kind as EventKind},
    },
    simulation::{in_order::LATE, tables::Holder},
    terms::runs::Runs,
};

/// How many slots of one launch are followed.
const MOST_SLOTS: u64 = 4096;

impl Recording {
    /// The slots of a start. Whoever had one of them before has ended.
    pub(super) fn take(&mut self, process: Process, began: u64, event: &Event) -> Vec<(u32, Runs)> {
        let mut taken = Vec::new();
        let launch = self.launches.len();
        for text in &event.repositories {
            let Some((name, slots)) = text.split_once('=') else { continue };
            let seen = event.tables.iter().find(|table| table.repository == name);
            // What is shared was not free before, and somebody's table of the same name is another one.
            let Some(slots) = Runs::parse(slots).filter(|slots| slots.count() <= MOST_SLOTS) else {
                continue;
            };
            let Some(seen) = seen.filter(|seen| !seen.shared) else { continue };
            let number = self.table(seen, &event.host);
            let holder = Holder { process, launch, began, runs: true };
            for slot in slots.slots() {
                if let Some(before) = self.tables.take(number, slot, holder) {
                    self.had_ended(before, began.saturating_sub(1));
                }
            }
            taken.push((number, slots));
        }
        taken
    }

    /// What a decision saw.
    pub(super) fn look(&mut self, at: u64, event: &Event) {
        for seen in event.tables.iter().filter(|seen| !seen.shared) {
            let number = self.table(seen, &event.host);
            match seen.held.as_deref().map(Runs::parse) {
                Some(Some(held)) => {
                    self.tables.see(number, &held, at, event.written());
                    if event.event == EventKind::Started {
                        self.tables.look(at, number, seen.limit, seen.limit);
                    }
                }
                _ => {
                    if let Some(most) = seen.most_held() {
                        self.tables.look(at, number, most, seen.limit);
                    }
                }
            }
        }
    }

    /// A slot was taken again: whoever had it before had ended by then, whatever was written down later.
    pub(super) fn had_ended(&mut self, before: Holder, end: u64) {
        if let Some(running) = self.running.get_mut(&before.process).filter(|one| one.launch == before.launch)
        {
            running.taken = Some(running.taken.map_or(end, |taken| taken.min(end)));
            return;
        }
        let Some(launch) = self.launches.get_mut(before.launch) else { return };
        let ended = launch.lasted().map_or(0, |lasted| before.began + lasted);
        if ended > end && ended - end <= LATE {
            launch.set_lasted(end.saturating_sub(before.began));
        }
    }

    /// The number of a table.
    pub(super) fn table(&mut self, seen: &TableSeen, host: &str) -> u32 {
        let (name, member) = (&seen.repository, seen.member.as_deref().unwrap_or_default());
        if self.reading.is_by_host {
            self.name(&format!("{name} [{member}] @{host}"))
        } else {
            self.name(&format!("{name} [{member}]"))
        }
    }

    pub(super) fn note_two_holders(&mut self, running: &Running) {
        if self.of_each_host.is_some() || self.reading.is_by_host {
            return;
        }
        let table = running.slots.first().map(|(table, _)| *table);
        let name = self.names.iter().find(|(_, number)| Some(**number) == table).map(|(name, _)| name);
        self.of_each_host = name.and_then(|name| name.split(' ').next()).map(str::to_owned);
    }
}
