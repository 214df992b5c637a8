//! Those who wait, whoever keeps the slots that they wait for: who came first, who may be passed, and who is
//! alive.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::time::Duration;

use crate::{
    deliberate_fault::DeliberateFault,
    sys::process::{self, Process},
};

/// A launch's number: smaller is older. The first is 1.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Number(pub u64);

impl Number {
    /// The next one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// As whom a launch stands in line.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Class {
    /// Which policy gave the limit: 12 bits that differ where policies do.
    pub generation: u16,
    /// How many slots there are for it at all.
    pub reach: u64,
}

impl Class {
    /// No class comes before it.
    pub const LOWEST: Self = Self { generation: 0, reach: 0 };

    /// Whether it need not wait behind an older launch of another class: who waits below a low ceiling must
    /// not hold up those who are allowed more. Limits that different policies gave are not compared.
    pub fn passes(self, older: Self) -> bool {
        let is_same_policy = self.generation == older.generation || DeliberateFault::OnePolicy.is_on();
        is_same_policy && older.reach < self.reach
    }
}

/// Somebody who stands in line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Waiter {
    /// Its place in time.
    pub number: Number,
    /// As whom.
    pub class: Class,
    /// The process, where it can be seen from here.
    pub pid: Option<i32>,
    /// Its user, where the keeper knows.
    pub user: Option<u32>,
    /// How many slots it wants, where that was looked at.
    pub wants: Option<u64>,
}

impl Waiter {
    /// How long it has waited, as far as that can be known: since its process started.
    pub fn waited(&self) -> Option<Duration> {
        Process::find(self.pid?)?.age()
    }

    /// Its user.
    pub fn uid(&self) -> Option<u32> {
        self.user.or_else(|| self.pid.and_then(process::owner))
    }

    /// The command that it is to start: a waiter bears its name.
    pub fn command(&self) -> Option<String> {
        self.pid.and_then(Process::find).map(|process| process.name)
    }

    /// Whether it can be seen that it is stopped.
    pub fn is_stopped(&self) -> bool {
        self.pid.and_then(Process::find).is_some_and(|process| process.is_stopped())
    }
}

/// What tells whether a waiter is alive: it changes each second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pulse {
    /// Whose it is.
    pub pid: Option<i32>,
    /// How often it has beaten.
    pub beats: u64,
}

/// How a sleep behind another waiter ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Woken {
    /// The other one has left the line.
    Left,
    /// The time is over.
    Time,
}
