//! The agent's report about itself: its version, and the state of its connection to the site.

use std::time::Duration;

use super::wire::{Wire, wire};
use crate::text::escape::{Show, word};

wire! {
    struct About {
        version: String,
        /// Its state beside others; none if it shares nothing.
        site: Option<AboutSite>,
    }
}

wire! {
    /// The site, as this agent sees it.
    struct AboutSite {
        /// The name of its own host.
        host: String,
        /// The members of etcd.
        endpoints: Vec<String>,
        /// What all keys begin with.
        prefix: String,
        /// How long a host may be silent.
        ttl: Duration,
        /// Whether slots are given now.
        is_open: bool,
        /// How long ago the last read was sent that found this host to be there.
        seen: Option<Duration>,
        /// How long it is until others may take it for gone.
        left: Option<Duration>,
        /// How far the mirror is behind; none if it was never level.
        lag: Option<Duration>,
        /// How often the lease was lost since the agent started.
        leases_lost: u64,
        /// What is wrong, if anything is.
        trouble: Option<AboutTrouble>,
        /// How etcd itself is, if it was ever checked.
        store: Option<AboutStore>,
        /// Every known host.
        hosts: Vec<AboutHost>,
        /// The first of the slots with unreadable values: no host frees them.
        unreadable: Vec<UnreadableSlot>,
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
        /// How large that may be, if it is known.
        quota: Option<u64>,
        /// Whether it takes nothing that is new.
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
        /// For how long it has been seen absent, and how long it is until its slots are free.
        absent: Option<(Duration, Duration)>,
        /// How many of its launches wait.
        waiting: u64,
        /// How many slots it has of each table.
        held: Vec<(String, u64)>,
        /// What its policy says of each repository of the site, a line for each key.
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
