//! What is written down, so that the agent's own death loses nothing: who has slots, who stands in line, and
//! when tables were last used.

use std::{
    hash::{BuildHasher, RandomState},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use crate::{
    keeper::{Holder, Number, agent::message::Take, memory},
    terms::{hold::Hold, on_lost::OnLost},
};

/// A process and the slots that it has.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct SavedHolding {
    pub(super) pid: i32,
    /// When the process started: clock ticks since boot.
    pub(super) start: u64,
    /// The program, where it is a child of that process.
    #[serde(default)]
    pub(super) program: Option<i32>,
    pub(super) uid: u32,
    pub(super) hold: Hold,
    pub(super) host: String,
    pub(super) command: String,
    /// In milliseconds since 1970, and since boot.
    pub(super) since: u64,
    pub(super) taken: Option<u64>,
    /// Whether its program has started: from then on nothing but its end frees the slots. The name of its
    /// file says it.
    #[serde(skip)]
    pub(super) is_started: bool,
    /// The number under which it stood in line, if it did: until its launch was told of its slots, others
    /// must not come before it.
    #[serde(default)]
    pub(super) served_as: Option<SavedNumber>,
    /// The tables whose last use is to be remembered.
    #[serde(default)]
    pub(super) paced: Vec<String>,
    pub(super) tables: Vec<SavedSlots>,
}

impl SavedHolding {
    /// The same as who holds slots that a rule asked for.
    pub(super) fn holder(&self, rule: &str) -> Holder {
        Holder {
            slots: (0, 0),
            pid: self.program.or(Some(self.pid)),
            keeper: Some(self.pid),
            uid: Some(self.uid),
            host: Some(self.host.clone()),
            since: UNIX_EPOCH.checked_add(Duration::from_millis(self.since)),
            taken: self.taken.map(Duration::from_millis),
            hold: Some(self.hold),
            command: Some(self.command.clone()),
            rule: Some(rule.to_owned()),
        }
    }
}

/// The slots of one table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct SavedSlots {
    pub(super) table: String,
    pub(super) rule: String,
    pub(super) slots: Vec<u64>,
    /// Whether they are an ancestor's.
    pub(super) is_shared: bool,
    /// What becomes of the program when the site that keeps them is lost.
    #[serde(default)]
    pub(super) on_lost: Option<OnLost>,
}

/// The number of a launch, the same in all lines. For another launch it is worth nothing.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct SavedNumber {
    pub(super) number: u64,
    /// What it is to start, as a fingerprint with its salt.
    launch: (u64, u64),
}

impl SavedNumber {
    /// The number under which this was asked.
    pub(super) fn of(number: Number, take: &Take) -> Self {
        let salt = RandomState::new().hash_one(number.0);
        Self { number: number.0, launch: (salt, take.fingerprint(salt)) }
    }

    /// Whether it is that of a launch which asks for this.
    pub(super) fn is_for(&self, take: &Take) -> bool {
        let (salt, fingerprint) = self.launch;
        take.fingerprint(salt) == fingerprint
    }
}

/// A launch that stands in line.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct SavedPlace {
    pub(super) pid: i32,
    pub(super) start: u64,
    pub(super) uid: u32,
    /// What others see that it is to start.
    #[serde(default)]
    pub(super) command: String,
    pub(super) number: SavedNumber,
    pub(super) lines: Vec<SavedLine>,
}

/// One of its lines.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct SavedLine {
    pub(super) table: String,
    /// Generation and reach of each.
    pub(super) classes: Vec<(u16, u64)>,
    /// Since when it stands there: milliseconds since boot.
    pub(super) begun: u64,
}

/// When a table was last used.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct SavedStamps {
    /// As the time since 1970.
    pub(super) last_start: Option<Duration>,
    pub(super) last_end: Option<Duration>,
    pub(super) started_by: Option<u32>,
    /// How long after that launches may have to keep off it.
    #[serde(default = "for_ever")]
    pub(super) longest_pause: Duration,
}

/// What was written by who did not know better is kept.
fn for_ever() -> Duration {
    Duration::MAX
}

impl SavedStamps {
    /// Those of a table, as the time since 1970.
    pub(super) fn of(table: &memory::Table, started_by: u32) -> Self {
        let since = |stamp: Option<SystemTime>| stamp.and_then(|stamp| stamp.duration_since(UNIX_EPOCH).ok());
        let (start, end) = table.stamps();
        let longest_pause = table.longest_pause();
        Self { last_start: since(start), last_end: since(end), started_by: Some(started_by), longest_pause }
    }

    /// Puts them into a table.
    pub(super) fn put_into(&self, table: &memory::Table) {
        let (start, end) = self.stamps();
        table.set_stamps(start, end, self.started_by);
        table.pauses_for(self.longest_pause);
    }

    /// The same as moments.
    pub(super) fn stamps(&self) -> (Option<SystemTime>, Option<SystemTime>) {
        let at = |since: Option<Duration>| since.and_then(|since| UNIX_EPOCH.checked_add(since));
        (at(self.last_start), at(self.last_end))
    }
}
