//! Waiters of every keeper: their order, who may overtake whom, and which of them are alive.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    sys::{Process, process},
    text::Show,
};

/// A launch's number: smaller is older. The first is 1.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Number(pub u64);

impl Number {
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// The class in which a launch waits.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Class {
    /// Which policy gave the limit: 12 bits that differ where policies do.
    pub generation: u16,
    /// How many slots there are for it at all.
    pub capacity: u64,
}

impl Class {
    /// No class precedes it.
    pub const LOWEST: Self = Self { generation: 0, capacity: 0 };

    /// Whether it need not wait behind an older launch of another class: a waiter below a low ceiling must
    /// not block launches with a higher limit. Limits that different policies gave are not compared.
    pub fn passes(self, older: Self) -> bool {
        self.generation == older.generation && older.capacity < self.capacity
    }
}

/// A launch in the queue of a table, as one of its classes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Waiter {
    /// Its place in time.
    pub number: Number,
    pub class: Class,
    /// How many slots it wants, if that was checked.
    pub wants: Option<u64>,
    /// Whether its keeper knows that it does not respond, so that it is passed over.
    pub is_away: bool,
    pub process: WaitingProcess,
}

/// The process of a waiter, as far as the keeper knows it. Only the user affects decisions.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WaitingProcess {
    /// Its number on its host.
    pub pid: Option<i32>,
    /// Its host, if that is another one.
    pub host: Option<Arc<str>>,
    pub user: Option<u32>,
    /// The command that it will start.
    pub command: Option<Arc<str>>,
    /// When it began to wait.
    pub since: Option<SystemTime>,
}

impl WaitingProcess {
    /// Its number for people: `9001`, or `9001@lab2` where that is another host.
    pub fn shown_pid(&self) -> Option<String> {
        Some(shown_pid(self.pid?, self.host.as_deref()))
    }
}

/// `9001`, or `9001@lab2` on another host.
pub fn shown_pid(pid: i32, elsewhere: Option<&str>) -> String {
    elsewhere.map_or_else(|| pid.to_string(), |host| format!("{pid}@{}", host.shown()))
}

impl Waiter {
    /// The process, if it is one of this host.
    pub fn pid_here(&self) -> Option<i32> {
        self.process.pid.filter(|_| self.process.host.is_none())
    }

    fn process_here(&self) -> Option<Process> {
        Process::find(self.pid_here()?)
    }

    /// When it began to wait. If the keeper does not know that, when its process started.
    pub fn since(&self) -> Option<SystemTime> {
        self.process.since.or_else(|| SystemTime::now().checked_sub(self.process_here()?.age()?))
    }

    /// How long it has waited.
    pub fn waited(&self) -> Option<Duration> {
        Some(SystemTime::now().duration_since(self.since()?).unwrap_or_default())
    }

    pub fn uid(&self) -> Option<u32> {
        self.process.user.or_else(|| self.pid_here().and_then(process::owner))
    }

    /// The command that it will start: the process of a waiter already has its name.
    pub fn command(&self) -> Option<String> {
        let known = self.process.command.as_deref().map(str::to_owned);
        known.or_else(|| self.process_here().map(|process| process.name))
    }

    /// Whether it can be seen that it is stopped.
    pub fn is_stopped(&self) -> bool {
        self.process_here().is_some_and(|process| process.is_stopped())
    }
}

/// What tells whether a waiter is alive: it changes each second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Heartbeat {
    pub pid: Option<i32>,
    /// The number of its heartbeats.
    pub beats: u64,
    /// Whether another process keeps it from showing any.
    pub is_blocked: bool,
}

/// How a sleep behind another waiter ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Woken {
    /// The other one has left the queue.
    Left,
    /// The time is over.
    Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of a process has no meaning on another host.
    #[test]
    fn a_waiter_of_another_host_is_no_process_here() {
        let pid = process::own_pid();
        let waiter = |host: Option<&str>| Waiter {
            number: Number(1),
            class: Class::LOWEST,
            wants: None,
            is_away: false,
            process: WaitingProcess {
                pid: Some(pid),
                host: host.map(Arc::from),
                ..WaitingProcess::default()
            },
        };
        let (here, there) = (waiter(None), waiter(Some("lab2")));
        let shown = (here.process.shown_pid(), there.process.shown_pid());
        assert_eq!(shown, (Some(pid.to_string()), Some(format!("{pid}@lab2"))));
        assert_eq!((here.pid_here(), there.pid_here()), (Some(pid), None));
        assert!(here.uid().is_some() && here.since().is_some() && here.command().is_some());
        assert!(there.uid().is_none() && there.since().is_none() && there.command().is_none());
    }
}
