//! Who had the slots of a table, as the log tells: a picture that is a little late, because who sees an end
//! writes it down afterwards. What a decision saw puts that right.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{in_order::LATE, traffic::Launch};
use crate::terms::runs::Runs;

/// A host, by number, and the number of a process.
pub(super) type Process = (u32, i32);

/// A launch that has, or had, a slot.
#[derive(Clone, Copy)]
pub(super) struct Holder {
    pub(super) process: Process,
    pub(super) launch: usize,
    pub(super) began: u64,
    /// Whether it still runs, as far as is known.
    pub(super) runs: bool,
}

/// A table, as the log tells of it.
#[derive(Default)]
struct Table {
    /// Who had each slot last.
    holders: BTreeMap<u64, Holder>,
    /// How many of these still run, as far as is known.
    running: u64,
    /// When somebody last saw as many slots held as are known to be.
    all_alive: u64,
    /// How many looks in a row could not be explained.
    unexplained: u32,
}

/// Of more slots than these it is enough that as many are held as are known to be.
const MANY: u64 = 64;

/// Of so many launches it is remembered until when they are known to have run, and of more only while that
/// can matter.
const MOST_ALIVE: usize = 65_536;

/// So many unexplained looks say that nobody writes down when these programs end.
const MOST_UNEXPLAINED: u32 = 16;

/// A look that found fewer slots held than was known then: some of these launches had ended, and whoever saw
/// it had not written it down yet.
struct Look {
    at: u64,
    table: u32,
    /// How many slots were held at most.
    most: u64,
    /// Who had them, one for each slot.
    holders: Vec<Holder>,
}

/// All tables, by number.
#[derive(Default)]
pub(super) struct Tables {
    known: HashMap<u32, Table>,
    /// In the order in which they were made; each is explained a little later, when the ends near it are
    /// known.
    looks: VecDeque<Look>,
    /// Until when a launch is known to have run, at least.
    alive: HashMap<usize, u64>,
}

impl Tables {
    /// A slot is taken. Says who had it before.
    pub(super) fn take(&mut self, number: u32, slot: u64, holder: Holder) -> Option<Holder> {
        self.known.entry(number).or_default().take(slot, holder)
    }

    /// Somebody saw that so many of the slots up to this one were held at most.
    pub(super) fn look(&mut self, at: u64, number: u32, most: u64, up_to: u64) {
        let holders = self.known.get(&number).and_then(|table| table.more_than(most, up_to));
        self.looks.extend(holders.map(|holders| Look { at, table: number, most, holders }));
    }

    /// Somebody decided at `decided`, and saw by `written` which slots of a table were held.
    pub(super) fn see(&mut self, number: u32, held: &Runs, decided: u64, written: u64) {
        let Some(table) = self.known.get_mut(&number).filter(|table| table.unexplained < MOST_UNEXPLAINED)
        else {
            return;
        };
        if table.running > MANY && table.running == held.count() {
            table.all_alive = decided.max(table.all_alive);
            return;
        }
        let running = table.holders.iter().filter(|(_, holder)| holder.runs);
        let (there, gone): (Vec<_>, Vec<_>) = running.partition(|(slot, _)| held.has(**slot));
        for (_, holder) in there {
            let alive = self.alive.entry(holder.launch).or_default();
            *alive = decided.max(*alive);
        }
        let holders: Vec<Holder> = gone.into_iter().map(|(_, holder)| *holder).collect();
        if !holders.is_empty() {
            self.looks.push_back(Look { at: written, table: number, most: 0, holders });
        }
    }

    /// The slots of a launch that is known to have ended.
    pub(super) fn give_back(&mut self, launch: usize, slots: &[(u32, Runs)]) {
        for (number, slots) in slots {
            if let Some(table) = self.known.get_mut(number) {
                table.give_back(launch, slots);
            }
        }
    }

    /// Explains the looks that were made before: whoever is known to have ended next after such a look had
    /// ended by then.
    pub(super) fn explain_looks(&mut self, before: u64, launches: &mut [Launch]) {
        while self.looks.front().is_some_and(|look| look.at < before) {
            let Some(look) = self.looks.pop_front() else { return };
            let end = |holder: &Holder| {
                launches.get(holder.launch)?.lasted().map(|lasted| holder.began.saturating_add(lasted))
            };
            let all_alive = self.known.get(&look.table).map_or(0, |table| table.all_alive);
            let is_alive = |holder: &Holder| {
                let alive = self.alive.get(&holder.launch).copied().unwrap_or(0);
                alive >= look.at || holder.began <= all_alive && all_alive >= look.at
            };
            let mut still: Vec<(u64, Holder)> =
                look.holders.iter().map(|holder| (end(holder).unwrap_or(u64::MAX), *holder)).collect();
            still.retain(|(end, _)| *end >= look.at);
            let excess = (still.len() as u64).saturating_sub(look.most);
            still.retain(|(_, holder)| !is_alive(holder));
            still.sort_by_key(|(end, _)| *end);
            let mut explained = 0;
            for (end, holder) in still.iter().take(usize::try_from(excess).unwrap_or(usize::MAX)) {
                if end - look.at <= LATE {
                    let lasted = look.at.saturating_sub(1).saturating_sub(holder.began);
                    launches[holder.launch].set_lasted(lasted);
                    explained += 1;
                }
            }
            if let Some(table) = self.known.get_mut(&look.table) {
                table.unexplained = if explained == excess { 0 } else { table.unexplained + 1 };
            }
        }
        if self.alive.len() > MOST_ALIVE {
            self.alive.retain(|_, alive| alive.saturating_add(LATE) > before);
        }
    }
}

impl Table {
    /// A slot is taken. Says who had it before.
    fn take(&mut self, slot: u64, holder: Holder) -> Option<Holder> {
        let before = self.holders.insert(slot, holder);
        self.running += u64::from(before.is_none_or(|before| !before.runs));
        before
    }

    /// Everybody who has one of the slots up to this one, one for each slot, where those are more than were
    /// seen.
    fn more_than(&self, most: u64, up_to: u64) -> Option<Vec<Holder>> {
        if self.running <= most || self.unexplained >= MOST_UNEXPLAINED {
            return None;
        }
        let holders = self.holders.range(..=up_to).filter(|(_, holder)| holder.runs);
        let holders: Vec<Holder> = holders.map(|(_, holder)| *holder).collect();
        (holders.len() as u64 > most).then_some(holders)
    }

    /// The slots of a launch that is known to have ended.
    fn give_back(&mut self, launch: usize, slots: &Runs) {
        for slot in slots.slots() {
            if let Some(holder) = self.holders.get_mut(&slot).filter(|one| one.launch == launch && one.runs) {
                holder.runs = false;
                self.running -= 1;
            }
        }
    }
}
