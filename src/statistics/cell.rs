//! Launches, counted by what became of them.

use super::fate::Fate;

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
        self.wait = self.wait.saturating_add(wait);
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
        self.wait = self.wait.saturating_add(*wait);
        self.newly_refused += newly_refused;
        self.newly_started += newly_started;
    }

    /// How many started.
    pub fn started(&self) -> u64 {
        self.at_once + self.waited
    }
}
