//! What came of launches, added up: for all of them, each kind, each repository, each rule and each hour of
//! the day.

use std::collections::BTreeMap;

use super::{fate::Fate, waits::Waits};

/// So long a wait is one that people complain of.
pub const LONG_WAIT: u64 = 300_000_000;

/// Some launches.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cell {
    /// All of them.
    pub launches: u64,
    /// Started without a wait.
    pub at_once: u64,
    /// Started after one.
    pub waited: u64,
    /// Not started, those included that waited in vain.
    pub refused: u64,
    /// How long those waited that did, in microseconds.
    pub wait: u64,
    /// Refused, and started in the log.
    pub newly_refused: u64,
    /// Started, and refused in the log.
    pub newly_started: u64,
}

impl Cell {
    /// Adds one launch.
    pub fn add(&mut self, fate: Fate, wait: u64, then: Option<Fate>) {
        self.launches += 1;
        match fate {
            Fate::AtOnce => self.at_once += 1,
            Fate::Waited => self.waited += 1,
            Fate::Refused | Fate::TimedOut => self.refused += 1,
        }
        self.wait += wait;
        if let Some(then) = then {
            self.newly_refused += u64::from(then.has_started() && !fate.has_started());
            self.newly_started += u64::from(!then.has_started() && fate.has_started());
        }
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        let Self { launches, at_once, waited, refused, wait, newly_refused, newly_started } = other;
        self.launches += launches;
        self.at_once += at_once;
        self.waited += waited;
        self.refused += refused;
        self.wait += wait;
        self.newly_refused += newly_refused;
        self.newly_started += newly_started;
    }
}

/// One repository.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OfRepository {
    /// The launches that wanted some of it, and what came of them; refused are those that it stood in the way
    /// of.
    pub cell: Cell,
    /// How long those waited that started, with those that did not wait at all.
    pub waits: Waits,
    /// The highest limit that a launch had.
    pub limit: u64,
    /// How many slots were held, at most.
    pub most: u64,
    /// Slots times microseconds.
    pub slot_time: u128,
}

/// All of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// All launches.
    pub all: Cell,
    /// How long those waited that started.
    pub waits: Waits,
    /// By the number of the kind.
    pub kinds: Vec<Cell>,
    /// By name.
    pub repositories: BTreeMap<String, OfRepository>,
    /// How many launches each rule refused, or had refused by what it claims.
    pub rules: BTreeMap<String, u64>,
    /// By the hour of the day.
    pub hours: [Cell; 24],
    /// Durations that had to be drawn.
    pub drawn: u64,
    /// Launches that went otherwise than in the log.
    pub different: u64,
}

/// What became of one launch.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// What.
    pub fate: Fate,
    /// How long it waited, in microseconds.
    pub wait: u64,
    /// What became of it in the log, where that is something else than this.
    pub then: Option<Fate>,
}

impl Tally {
    /// Adds one launch of a kind that came in an hour of the day.
    pub fn add(&mut self, kind: u32, hour: usize, outcome: Outcome) {
        let Outcome { fate, wait, then } = outcome;
        self.all.add(fate, wait, then);
        if fate.has_started() {
            self.waits.add(wait);
        }
        let kind = kind as usize;
        if self.kinds.len() <= kind {
            self.kinds.resize(kind + 1, Cell::default());
        }
        self.kinds[kind].add(fate, wait, then);
        self.hours[hour % 24].add(fate, wait, then);
        self.different += u64::from(then.is_some_and(|then| then != fate));
    }

    /// Adds the kinds up by what they have in common; each may have several.
    pub fn by<K: Ord>(&self, keys: impl Fn(usize) -> Vec<K>) -> BTreeMap<K, Cell> {
        let mut cells: BTreeMap<K, Cell> = BTreeMap::new();
        for (kind, cell) in self.kinds.iter().enumerate().filter(|(_, cell)| cell.launches > 0) {
            for key in keys(kind) {
                cells.entry(key).or_default().merge(cell);
            }
        }
        cells
    }
}

/// What is counted under a name, which is copied only once.
pub fn named<'m, V: Default>(counted: &'m mut BTreeMap<String, V>, name: &str) -> &'m mut V {
    if !counted.contains_key(name) {
        counted.insert(name.to_owned(), V::default());
    }
    counted.get_mut(name).unwrap_or_else(|| unreachable!("it was put there"))
}
