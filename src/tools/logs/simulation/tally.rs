//! Results of launches, added up: for all, for each kind, repository and rule, and by hour of the day.

use std::collections::BTreeMap;

use crate::tools::logs::statistics::{Cell, Distribution, LaunchOutcome};

/// Users complain about waits of this length.
pub const LONG_WAIT: u64 = 300_000_000;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OfRepository {
    /// The launches that needed its slots, and their results; refused ones are those that it blocked.
    pub cell: Cell,
    /// The waits of launches that started; 0 for those that did not wait.
    pub waits: Distribution,
    /// The highest limit that a launch had.
    pub limit: u64,
    /// How many slots were held, at most.
    pub most: u64,
    /// Slots times microseconds.
    pub slot_time: u128,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// All launches.
    pub all: Cell,
    /// The waits of launches that started.
    pub waits: Distribution,
    /// By the number of the kind.
    pub kinds: Vec<Cell>,
    /// By name.
    pub repositories: BTreeMap<String, OfRepository>,
    /// How many launches each rule refused, by itself or by its claims.
    pub rules: BTreeMap<String, u64>,
    /// By the hour of the day.
    pub hours: [Cell; 24],
    /// Durations that had to be sampled.
    pub drawn: u64,
    /// Launches with another result than in the log.
    pub different: u64,
}

/// The outcome of one launch.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub fate: LaunchOutcome,
    /// How long it waited, in microseconds.
    pub wait: u64,
    /// The outcome in the log, if it differs.
    pub then: Option<LaunchOutcome>,
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

    /// Adds the kinds up by common properties; a kind may have several.
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
