//! All repositories at one moment, in printable texts and numbers: names are looked up, and control
//! characters are escaped.

use std::time::Duration;

use crate::judge::terms::keyword::Queue;

/// The visible state.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) entries: Vec<Entry>,
    /// The time of day.
    pub(super) time: String,
    /// The faults of the policy, so that this may be incomplete or outdated.
    pub(super) notice: Option<String>,
}

/// A lock file.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// `seats [ann]`
    pub(super) title: String,
    pub(super) limit: Option<u64>,
    /// Why it is not the limit of all.
    pub(super) limit_note: Option<String>,
    /// How many idle slots are kept for some, or for those who wait.
    pub(super) kept: u64,
    /// The same, with the users that they are for.
    pub(super) kept_note: Option<String>,
    /// Why it could not be checked.
    pub(super) error: Option<String>,
    pub(super) used: u64,
    /// Longest first.
    pub(super) holders: Vec<Process>,
    /// In the order of the line.
    pub(super) waiting: Vec<Process>,
    /// Where its line ends.
    pub(super) queue: Queue,
}

/// A holder or a waiter.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    /// Its slots, or its place in the line.
    pub(super) place: String,
    pub(super) pid: String,
    pub(super) user: String,
    /// For how long.
    pub(super) age: Option<Duration>,
    pub(super) command: String,
    /// The rule that it holds by, or what it waits for.
    pub(super) note: String,
}

impl Entry {
    /// How long the oldest holder has held its slot.
    pub(super) fn oldest(&self) -> Option<Duration> {
        self.holders.iter().filter_map(|holder| holder.age).max()
    }

    /// Use beside limit, where full is 1000; one without a limit is never full, and one that is closed
    /// always.
    pub(super) fn fullness(&self) -> u64 {
        match self.limit {
            None => 0,
            Some(limit) => (self.used.saturating_mul(1000)).checked_div(limit).unwrap_or(1000),
        }
    }
}

impl Process {
    /// Whether its user or its command has this in its name; the text is in lower case.
    pub(super) fn is_about(&self, text: &str) -> bool {
        [&self.user, &self.command, &self.pid].iter().any(|name| name.to_lowercase().contains(text))
    }
}
