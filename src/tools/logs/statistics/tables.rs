//! The holders of a table's slots, according to the log. This is a little late, because a supervisor logs an
//! end after it has seen it. The state that a decision saw corrects it.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::Arc,
};

use crate::judge::terms::Runs;

/// A launch that has, or had, a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) launch: usize,
    /// The launch that took the slot, if others of its group joined it.
    pub(super) session: usize,
    pub(super) began: u64,
    pub(super) host: u64,
    /// Whether it still runs, as far as is known.
    pub(super) runs: bool,
}

/// More programs of a group than these at one slot are not followed.
const MOST_MEMBERS: usize = 1024;

/// The last holder of a slot, and the others of its group that still have it, oldest first.
#[derive(Debug)]
pub(super) struct Holders {
    last: Holder,
    others: Vec<Holder>,
}

impl Holders {
    pub(super) fn all(&self) -> impl Iterator<Item = &Holder> {
        self.others.iter().chain([&self.last])
    }

    pub(super) fn into_all(self) -> impl Iterator<Item = Holder> {
        self.others.into_iter().chain([self.last])
    }

    /// The holder, if there is no other.
    pub(super) fn only(&self) -> Option<&Holder> {
        Some(&self.last).filter(|_| self.others.is_empty())
    }

    /// One of them has left. Returns whether it was the last.
    fn leaves(&mut self, launch: usize) -> bool {
        if self.last.launch != launch {
            self.others.retain(|other| other.launch != launch);
            return false;
        }
        match self.others.pop() {
            Some(other) => self.last = other,
            None => return mem::replace(&mut self.last.runs, false),
        }
        false
    }
}

/// A table, according to the log.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) repository: Arc<str>,
    /// Whether a slot that is taken again must have been free before. If the log has no member for the table,
    /// the same number may be a slot of another member.
    pub(super) is_one: bool,
    /// The last holders of each slot.
    holders: BTreeMap<u64, Holders>,
    /// How many of these still run, as far as is known.
    pub(super) running: u64,
    /// When a launch last saw all known slots held.
    pub(super) all_alive: u64,
    /// How many decisions in a row contradicted the known state.
    pub(super) unexplained: u32,
    /// How many ends of its programs were seen.
    pub(super) seen: u64,
    /// How many were not seen.
    pub(super) missed: u64,
}

/// After this many contradictions, the table counts as several tables.
const MOST_UNEXPLAINED: u32 = 16;

/// A table with more running programs is not compared with what decisions saw: each comparison goes through
/// all of them.
const MOST_COMPARED: u64 = 65_536;

/// Beyond this many tables, only the data of each event are known.
const MOST_TABLES: usize = 100_000;

/// How many slots of all tables are followed.
const MOST_SLOTS: usize = 1 << 19;

/// All tables, by number.
#[derive(Debug, Default)]
pub(super) struct Tables {
    numbers: HashMap<u64, u32>,
    known: Vec<Table>,
    /// How many slots they have.
    slots: usize,
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

    /// The table where this slot can be followed; none if too many others are.
    pub(super) fn with_room(&mut self, number: u32, slot: u64) -> Option<&mut Table> {
        let table = self.known.get_mut(number as usize)?;
        if !table.holders.contains_key(&slot) {
            if self.slots >= MOST_SLOTS {
                return None;
            }
            self.slots += 1;
        }
        Some(table)
    }

    pub(super) fn get(&self, number: u32) -> Option<&Table> {
        self.known.get(number as usize)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Table> {
        self.known.get_mut(number as usize)
    }
}

impl Table {
    /// Whether it is compared with what a decision saw.
    pub(super) fn is_compared(&self) -> bool {
        self.unexplained < MOST_UNEXPLAINED && self.running <= MOST_COMPARED
    }

    /// A slot is taken. Returns its previous holders.
    pub(super) fn take(&mut self, slot: u64, holder: Holder) -> Option<Holders> {
        let before = self.holders.insert(slot, Holders { last: holder, others: Vec::new() });
        self.running += u64::from(before.as_ref().is_none_or(|before| !before.last.runs));
        before
    }

    /// A slot is taken by one more of the group that has it. Returns the holder that it joins; none if no
    /// program is known to have the slot.
    pub(super) fn join(&mut self, slot: u64, holder: Holder) -> Option<Holder> {
        let Holders { last, others } = self.holders.get_mut(&slot).filter(|of| of.last.runs)?;
        let first = *last;
        if others.len() >= MOST_MEMBERS {
            others.remove(0);
        }
        others.push(first);
        *last = Holder { session: first.session, ..holder };
        Some(first)
    }

    /// The slots of running programs.
    pub(super) fn running(&self) -> impl Iterator<Item = (u64, &Holders)> {
        self.holders.iter().filter(|(_, of)| of.last.runs).map(|(slot, of)| (*slot, of))
    }

    /// A launch has released its slots. Returns whether one of them is free.
    pub(super) fn give_back(&mut self, launch: usize, slots: &Runs) -> bool {
        let mut is_free = false;
        for slot in slots.slots() {
            if self.holders.get_mut(&slot).is_some_and(|holders| holders.leaves(launch)) {
                self.running -= 1;
                is_free = true;
            }
        }
        is_free
    }
}
