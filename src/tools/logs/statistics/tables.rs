//! The holders of a table's slots, according to the log. This is a little late, because a supervisor writes
//! an end down after it has seen it. The state that a decision saw corrects it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::judge::terms::runs::Runs;

/// A launch that has, or had, a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) launch: usize,
    pub(super) began: u64,
    pub(super) host: u64,
    /// Whether it still runs, as far as is known.
    pub(super) runs: bool,
}

/// A table, according to the log.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) repository: Arc<str>,
    /// Whether a slot that is taken again must have been free before. If the log has no member for the table,
    /// the same number may be a slot of another member.
    pub(super) is_one: bool,
    /// The last holder of each slot.
    holders: BTreeMap<u64, Holder>,
    /// How many of these still run, as far as is known.
    pub(super) running: u64,
    /// When a launch last saw as many slots held as are known to be.
    pub(super) all_alive: u64,
    /// How many looks in a row could not be explained.
    pub(super) unexplained: u32,
    /// How many ends of its programs were seen.
    pub(super) seen: u64,
    /// How many were not seen.
    pub(super) missed: u64,
}

/// How many looks that cannot be explained say that the table is several.
pub(super) const MOST_UNEXPLAINED: u32 = 16;

/// Beyond this many tables, only the data of each event are known.
const MOST_TABLES: usize = 100_000;

/// All tables, by number.
#[derive(Debug, Default)]
pub(super) struct Tables {
    numbers: HashMap<u64, u32>,
    known: Vec<Table>,
}

impl Tables {
    /// The number of the table with this key; none if there are too many.
    pub(super) fn number(&mut self, key: u64, repository: &str, is_one: bool) -> Option<u32> {
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let number = u32::try_from(self.known.len()).ok().filter(|_| self.known.len() < MOST_TABLES)?;
        self.known.push(Table {
            repository: Arc::from(repository),
            is_one,
            holders: BTreeMap::new(),
            running: 0,
            all_alive: 0,
            unexplained: 0,
            seen: 0,
            missed: 0,
        });
        self.numbers.insert(key, number);
        Some(number)
    }

    pub(super) fn get(&self, number: u32) -> Option<&Table> {
        self.known.get(number as usize)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Table> {
        self.known.get_mut(number as usize)
    }
}

impl Table {
    /// A slot is taken. Says who had it before.
    pub(super) fn take(&mut self, slot: u64, holder: Holder) -> Option<Holder> {
        let before = self.holders.insert(slot, holder);
        self.running += u64::from(before.is_none_or(|before| !before.runs));
        before
    }

    /// The running programs, each with its slot.
    pub(super) fn running(&self) -> impl Iterator<Item = (u64, &Holder)> {
        self.holders.iter().filter(|(_, holder)| holder.runs).map(|(slot, holder)| (*slot, holder))
    }

    /// A launch has released its slots.
    pub(super) fn give_back(&mut self, launch: usize, slots: &Runs) {
        for slot in slots.slots() {
            if let Some(holder) = self.holders.get_mut(&slot).filter(|one| one.launch == launch && one.runs) {
                holder.runs = false;
                self.running -= 1;
            }
        }
    }
}
