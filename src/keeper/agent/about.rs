//! The agent's report about itself: its version, and the state of its connection to the site.

use std::time::Duration;

use super::wire::{Wire, wire};
use crate::text::escape::{Show, word};

wire! {
    struct About {
        version: String,
        /// Its state beside others; none if it shares nothing.
        site: Option<AboutSite>,
        /// What it has done since it started; absent from an older agent.
        work: Option<AboutWork>,
    }
}

wire! {
    /// What an agent has done since it started, and what it keeps now.
    struct AboutWork {
        /// From a launch's request to its first answer: slots, a refusal, or a place in a queue.
        decisions: Latency,
        /// How many requests were declined because of a quota.
        declined: u64,
        /// How many clients are connected.
        connections: u64,
        /// How many launches wait.
        waiting: u64,
        /// How many launches hold slots.
        holding: u64,
    }
}

wire! {
    /// How long something took, each time that it was done.
    struct Latency {
        /// How often it took longer than the bound before and at most as long as each of
        /// [`Latency::BOUNDS`].
        counts: Vec<u64>,
        /// How often it took longer than all of them.
        longer: u64,
        /// All of it together.
        sum: Duration,
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self { counts: vec![0; Self::BOUNDS.len()], longer: 0, sum: Duration::ZERO }
    }
}

impl Latency {
    /// In microseconds. A decision takes less than the first, a round trip to etcd as long as those in the
    /// middle.
    pub const BOUNDS: [u64; 8] = [250, 1_000, 4_000, 16_000, 64_000, 250_000, 1_000_000, 4_000_000];

    /// Counts one more.
    pub fn add(&mut self, took: Duration) {
        let bound = Self::BOUNDS.iter().position(|bound| took <= Duration::from_micros(*bound));
        let count = bound.and_then(|bound| self.counts.get_mut(bound)).unwrap_or(&mut self.longer);
        *count = count.saturating_add(1);
        self.sum = self.sum.saturating_add(took);
    }
}

wire! {
    /// The site, as this agent sees it.
    struct AboutSite {
        /// The name of its own host.
        host: String,
        /// The members of etcd.
        endpoints: Vec<String>,
        /// The prefix of all keys.
        prefix: String,
        /// How long a host may be silent.
        ttl: Duration,
        /// Whether slots are granted now.
        is_open: bool,
        /// How long ago the last read was sent that found this host's key.
        seen: Option<Duration>,
        /// How long until others may consider it dead.
        left: Option<Duration>,
        /// How far the mirror is behind; none if it was never current.
        lag: Option<Duration>,
        /// How often the lease was lost since the agent started.
        leases_lost: u64,
        /// What is wrong, if anything is.
        trouble: Option<AboutTrouble>,
        /// The state of etcd itself, if it was ever checked.
        store: Option<AboutStore>,
        /// Every known host.
        hosts: Vec<AboutHost>,
        /// The first of the slots with unreadable values: no host frees them.
        unreadable: Vec<UnreadableSlot>,
        /// How long etcd took for its answers; absent from an older agent.
        requests: Option<Latency>,
    }
}

wire! {
    /// A slot that is held by a value which no agent wrote.
    struct UnreadableSlot {
        /// Its table, as its host calls it.
        table: String,
        /// Its number.
        slot: u64,
        /// Its key in etcd.
        key: String,
    }
}

wire! {
    /// How etcd is.
    struct AboutStore {
        /// How large the largest database of a member is, in bytes.
        size: u64,
        /// The maximum size, if known.
        quota: Option<u64>,
        /// Whether it accepts no writes.
        is_full: bool,
        /// How many changes it has kept, if it has kept all of them.
        uncompacted: Option<u64>,
    }
}

wire! {
    /// What is wrong.
    struct AboutTrouble {
        text: String,
        /// What to do about it, if known.
        advice: Option<String>,
        /// For how long.
        lasts: Duration,
    }
}

wire! {
    struct AboutHost {
        name: String,
        /// The version of its agent, if it ever said so.
        version: Option<String>,
        /// Its lease; none if it does not exist.
        lease: Option<u64>,
        /// For how long it has been absent, and how long until its slots are free.
        absent: Option<(Duration, Duration)>,
        /// How many of its launches wait.
        waiting: u64,
        /// How many slots it has of each table.
        held: Vec<(String, u64)>,
        /// The settings of its policy for each repository of the site, a line for each key.
        repositories: Vec<(String, String)>,
    }
}

impl UnreadableSlot {
    /// What is wrong with it.
    pub fn text(&self) -> String {
        format!(
            "a slot has no readable holder: the value of {} was not written by an agent",
            self.key.shown()
        )
    }

    /// What to do about it.
    pub fn advice(&self) -> String {
        format!("if no program of the site runs for it: etcdctl del {}", word(&self.key))
    }
}
