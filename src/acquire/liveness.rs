//! Which waiters of a queue are alive. A waiter sends a heartbeat each second. A waiter without a new one in
//! several successive checks, at least a second apart, is silent, and is passed over until its next
//! heartbeat. Checks count and not seconds, so a pause of the machine proves nothing. A waiter may be frozen,
//! stopped where it is not visible, or a lock of another program: from outside these look the same.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{
    blocked::Blocked,
    refusal::{Reason, Unmet},
    too_late::Endings,
};
use crate::{
    keeper::{
        Class, Heartbeat, Number, Waiter,
        error::KeeperError,
        table::{Table, TableId},
    },
    sys::{
        failure::Failure,
        process::{self, PidFd},
    },
};

/// The time between two checks, and between two heartbeats. Tables in memory need less.
pub const LOOK: Duration = if cfg!(test) { Duration::from_millis(10) } else { Duration::from_secs(1) };

/// The number of checks without a new heartbeat after which a waiter is silent.
pub const LOOKS: u8 = 3;

/// How many waiters are checked in one queue per second, from either end.
const MOST_LOOKED_AT: usize = 16;

/// The number of waiters that are read one by one before the whole queue is read.
const MOST_ASKED_FOR: usize = 16;

/// The maximum number of waiters that are checked for being stopped. A stopped waiter is also silent.
const MOST_STOPPED: usize = 64;

/// Entries that are not checked for this long are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// What was seen of other waiters until now.
#[derive(Default)]
pub struct LivenessTracker {
    seen: RefCell<BTreeMap<(TableId, Number), Seen>>,
}

struct Seen {
    pulse: Option<Heartbeat>,
    at: Instant,
    unchanged: u8,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sign {
    /// It has sent a heartbeat since the last check.
    Alive,
    /// Nothing yet.
    None,
    /// It has sent none for several checks.
    Silent,
}

impl LivenessTracker {
    pub(super) fn look(&self, table: &Table, waiter: &Waiter) -> Result<Sign, KeeperError> {
        let pulse = table.pulse(waiter.number)?;
        let now = Instant::now();
        let mut seen = self.seen.borrow_mut();
        let Some(known) = seen.get_mut(&(table.id(), waiter.number)) else {
            seen.insert((table.id(), waiter.number), Seen { pulse, at: now, unchanged: 0 });
            return Ok(Sign::None);
        };
        if known.pulse != pulse {
            let is_same_waiter = known.pulse.map(|pulse| pulse.pid) == pulse.map(|pulse| pulse.pid);
            *known = Seen { pulse, at: now, unchanged: 0 };
            return Ok(if is_same_waiter { Sign::Alive } else { Sign::None });
        }
        if now.duration_since(known.at) >= LOOK {
            known.at = now;
            known.unchanged = known.unchanged.saturating_add(1);
        }
        Ok(if known.unchanged >= LOOKS { Sign::Silent } else { Sign::None })
    }

    /// Checks the launches that a launch with this number and class may not overtake. It starts with the
    /// nearest and stops at the first that is alive. If only launches that do not start are left, it starts
    /// with the oldest. Returns whether one of them is alive.
    pub fn look_ahead(
        &self,
        table: &Table,
        number: Option<Number>,
        class: Class,
    ) -> Result<bool, KeeperError> {
        self.seen.borrow_mut().retain(|_, seen| seen.at.elapsed() < FORGOTTEN);
        let mut is_any_alive = false;
        let mut look = |waiter: &Waiter| -> Result<bool, KeeperError> {
            let is_alive = !class.passes(waiter.class) && self.look(table, waiter)? == Sign::Alive;
            is_any_alive |= is_alive;
            Ok(is_alive)
        };
        let mut before = number;
        for _ in 0..MOST_LOOKED_AT {
            let Some(waiter) = table.youngest(before)? else { break };
            if look(&waiter)? {
                break;
            }
            before = Some(waiter.number);
        }
        let mut from = Number(1);
        for _ in 0..MOST_LOOKED_AT {
            let Some(waiter) = table.oldest(from, before)? else { break };
            if look(&waiter)? {
                break;
            }
            from = waiter.number.next();
        }
        Ok(is_any_alive)
    }

    /// Whether a waiter was silent for long enough and still is. It is checked again while the table is
    /// locked.
    pub fn is_silent(&self, table: &Table, waiter: &Waiter) -> Result<bool, KeeperError> {
        let seen = self.seen.borrow();
        let Some(known) = seen.get(&(table.id(), waiter.number)).filter(|seen| seen.unchanged >= LOOKS)
        else {
            return Ok(false);
        };
        Ok(table.pulse(waiter.number)? == known.pulse)
    }
}

/// The position of a launch in the order of arrival, from which it judges a table.
#[derive(Clone, Copy)]
pub struct QueuePosition<'a> {
    /// Its number; none if it has none yet, and so comes after all others.
    pub number: Option<Number>,
    /// The policy that its limits come from.
    pub generation: u16,
    /// The waiters that it knows to be silent; none if it has not checked.
    pub looks: Option<&'a LivenessTracker>,
}

impl<'a> QueuePosition<'a> {
    /// The position of a launch that does not wait.
    pub fn newcomer(generation: u16, looks: Option<&'a LivenessTracker>) -> Self {
        Self { number: None, generation, looks }
    }

    /// The youngest launch that a launch with this reach may not overtake.
    pub fn nearest_ahead(&self, table: &Table, reach: u64) -> Result<Option<Waiter>, KeeperError> {
        let class = Class { generation: self.generation, reach };
        let mut stopped = Stopped::default();
        let mut before = self.number;
        for _ in 0..MOST_ASKED_FOR {
            let Some(waiter) = table.youngest(before)? else { return Ok(None) };
            if !self.passes(table, class, &waiter, &mut stopped)? {
                return Ok(Some(waiter));
            }
            before = Some(waiter.number);
        }
        let line = table.all_waiters()?;
        for waiter in
            line.into_iter().rev().filter(|waiter| before.is_none_or(|before| waiter.number < before))
        {
            if !self.passes(table, class, &waiter, &mut stopped)? {
                return Ok(Some(waiter));
            }
        }
        Ok(None)
    }

    /// The waiters of a queue that a launch with this reach may not overtake.
    pub(super) fn all_ahead<'w>(
        &self,
        table: &Table,
        reach: u64,
        line: &'w [Waiter],
    ) -> Result<Vec<&'w Waiter>, KeeperError> {
        let class = Class { generation: self.generation, reach };
        let mut stopped = Stopped::default();
        let mut ahead = Vec::new();
        for waiter in line {
            let is_older = self.number.is_none_or(|number| waiter.number < number);
            if is_older && !self.passes(table, class, waiter, &mut stopped)? {
                ahead.push(waiter);
            }
        }
        Ok(ahead)
    }

    /// Whether it need not wait behind an older launch.
    fn passes(
        &self,
        table: &Table,
        class: Class,
        older: &Waiter,
        stopped: &mut Stopped,
    ) -> Result<bool, KeeperError> {
        if class.passes(older.class) || stopped.has(table, older) {
            return Ok(true);
        }
        self.looks.map_or(Ok(false), |looks| looks.is_silent(table, older))
    }
}

/// The stopped processes; each process is checked once, because a scan of the queue must not read `/proc`
/// without bound.
#[derive(Default)]
struct Stopped {
    asked: BTreeMap<i32, bool>,
}

impl Stopped {
    /// Whether a waiter is visibly stopped.
    fn has(&mut self, table: &Table, waiter: &Waiter) -> bool {
        // Tables in memory need no watching.
        if table.in_memory().is_some() {
            return table.is_stopped(waiter);
        }
        let Some(pid) = waiter.pid_here() else { return false };
        if let Some(known) = self.asked.get(&pid) {
            return *known;
        }
        let is_stopped = self.asked.len() < MOST_STOPPED && table.is_stopped(waiter);
        self.asked.insert(pid, is_stopped);
        is_stopped
    }
}

// The holders whose end the first waiter waits for.

/// How many holders the first waiter watches by descriptor; it notices the ends of others at its next check.
const MOST_WATCHED: usize = 256;

/// The processes that the first waiter waits for.
#[derive(Default)]
pub(super) struct Watched {
    /// By process id; none if the process could not be opened, which is tried once.
    processes: Vec<(i32, Option<PidFd>)>,
}

impl Watched {
    /// Watches the holders of these tables, and no others. Returns whether any is new: it may have ended
    /// before it was watched, so everything must be checked again.
    pub(super) fn are_new(&mut self, blocked: &Blocked<'_>, tables: &[TableId]) -> bool {
        let keepers = keepers(blocked, tables);
        self.processes.retain(|(pid, _)| keepers.contains(pid));
        let mut are_new = false;
        for pid in keepers {
            if self.processes.iter().all(|(watched, _)| *watched != pid) {
                self.processes.push((pid, PidFd::open(pid).ok()));
                are_new = true;
            }
        }
        are_new
    }

    /// Sleeps until one of them, or one that is being ended, has ended.
    pub(super) fn sleep(&self, endings: &Endings<'_>, longest: Duration) -> Result<(), KeeperError> {
        let watched = self.processes.iter().filter_map(|(_, process)| process.as_ref());
        process::wait_for_any(watched.chain(endings.processes()), longest)
            .map(drop)
            .map_err(|errno| KeeperError::Wait(Failure { call: "poll", errno }))
    }
}

fn keepers(blocked: &Blocked<'_>, tables: &[TableId]) -> Vec<i32> {
    let mut keepers = Vec::new();
    let refused = blocked.unmet.iter().flat_map(Unmet::claims);
    for refused in refused.filter(|refused| tables.contains(&refused.table)) {
        let Reason::Full(full) = &refused.reason else { continue };
        for pid in full.holders().iter().filter_map(|holder| holder.keeper) {
            if keepers.len() < MOST_WATCHED && !keepers.contains(&pid) {
                keepers.push(pid);
            }
        }
    }
    keepers
}
