//! The line of those who wait. A waiter has one number, its arrival on a clock that never goes back, and takes a lock on the
//! byte of that number and of its limit: the same number in every line, so that every wait points to an older launch and no
//! circle can form. The lock is all there is: whoever dies has left the line.
//!
//! A launch is behind those older ones whose limit is not lower than its own: who waits below a low ceiling must not hold
//! up those who are allowed more. One that is stopped is passed over, and is in its place again when it continues.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{os::fd::AsFd, rc::Rc, time::Duration};

use crate::{
    deliberate_fault::DeliberateFault,
    repository::{
        error::RepositoryError,
        file::{LockFile, call, failed_call},
        layout::{LAST_SLOT, ticket_at, ticket_byte, tickets_from, tickets_up_to},
    },
    sys::{
        alarm::Alarm,
        failure::Errno,
        process::{self, Process},
        record_lock::{self, Bytes, Conflict, Mode},
    },
};

/// Units of a number in a second.
const UNITS: u64 = 1 << 14;

/// So many launches cannot have come in so short a time: if none of these numbers is free, somebody has locked the line.
const MOST_NUMBERS: usize = 10_000;

/// A launch's number: smaller is older.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Number(u64);

impl Number {
    /// That of a launch which arrives now.
    pub fn now() -> Self {
        let since = process::since_boot().unwrap_or_default();
        Self(
            since
                .as_secs()
                .saturating_mul(UNITS)
                .saturating_add(u64::from(since.subsec_nanos()).saturating_mul(UNITS) / 1_000_000_000),
        )
    }

    /// That of a launch which arrives now and does not wait.
    pub fn of_newcomer() -> Self {
        if DeliberateFault::Overtaking.is_on() { Self(0) } else { Self::now() }
    }

    /// When its launch arrived, as time since boot.
    pub fn since_boot(self) -> Duration {
        let rest = Duration::from_nanos((self.0 % UNITS).saturating_mul(1_000_000_000) / UNITS);
        Duration::from_secs(self.0 / UNITS).saturating_add(rest)
    }

    fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Somebody who waits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Waiter {
    /// Its place in time.
    pub number: Number,
    /// How many slots may be held for it to start.
    pub limit: u64,
    /// The process, where it can be seen from here.
    pub pid: Option<i32>,
}

impl Waiter {
    /// How long it has waited.
    pub fn waited(&self) -> Duration {
        process::since_boot().unwrap_or_default().saturating_sub(self.number.since_boot())
    }

    /// Its user.
    pub fn uid(&self) -> Option<u32> {
        self.pid.and_then(process::owner)
    }

    /// The command that it is to start: a waiter bears its name.
    pub fn command(&self) -> Option<String> {
        self.pid.and_then(Process::find).map(|process| process.name)
    }

    fn of(conflict: &Conflict) -> Self {
        let (limit, number) = ticket_at(*conflict.bytes.start());
        Self { number: Number(number), limit, pid: conflict.pid }
    }

    fn is_stopped(&self) -> bool {
        self.pid.and_then(Process::find).is_some_and(|process| process.is_stopped())
    }

    fn byte(&self) -> Bytes {
        let byte = ticket_byte(self.limit, self.number.0);
        byte..=byte
    }
}

/// A place in the line of one file, kept until dropped.
#[must_use = "the place in the line is given up when this is dropped"]
pub struct Ticket {
    file: Rc<LockFile>,
    limit: u64,
    number: Number,
}

impl Ticket {
    /// Takes a place. The number is the next free one from `number` on, which then is the launch's number everywhere.
    pub fn take(file: &Rc<LockFile>, limit: u64, number: Number) -> Result<Self, RepositoryError> {
        let mut ticket = Self { file: Rc::clone(file), limit, number };
        for _ in 0..MOST_NUMBERS {
            if file.try_lock(&ticket.byte())? {
                return Ok(ticket);
            }
            ticket.number = ticket.number.next();
        }
        Err(RepositoryError::LineLocked { path: file.path().to_owned() })
    }

    /// The number that it got.
    pub fn number(&self) -> Number {
        self.number
    }

    /// Whether it is for this file and limit.
    pub fn is_for(&self, file: &LockFile, limit: u64) -> bool {
        self.file.id() == file.id() && self.limit == limit
    }

    fn byte(&self) -> Bytes {
        let byte = ticket_byte(self.limit, self.number.0);
        byte..=byte
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // What cannot be unlocked goes with the process.
        let _ = self.file.unlock(&self.byte());
    }
}

/// Everybody who waits, oldest first.
pub fn waiters(file: &LockFile) -> Result<Vec<Waiter>, RepositoryError> {
    let mut found = Vec::new();
    let mut todo = vec![tickets_from(1)];
    while let Some(range) = todo.pop() {
        let Some(ticket) = ticket_within(file, &range)? else { continue };
        let byte = *ticket.bytes.start();
        todo.extend([byte.saturating_add(1)..=*range.end(), *range.start()..=byte.saturating_sub(1)]);
        found.push(Waiter::of(&ticket));
    }
    found.sort_by_key(|waiter| waiter.number);
    Ok(found)
}

/// Some ticket among these bytes. A ticket is a lock of one byte; whatever covers more is somebody's lock of the whole file,
/// say, and nobody's place in a line.
fn ticket_within(file: &LockFile, bytes: &Bytes) -> Result<Option<Conflict>, RepositoryError> {
    let mut todo = vec![bytes.clone()];
    while let Some(range) = todo.pop() {
        if range.is_empty() {
            continue;
        }
        let Some(conflict) = file.conflict(&range)? else { continue };
        if conflict.bytes.start() == conflict.bytes.end() {
            return Ok(Some(conflict));
        }
        todo.push(*range.start()..=conflict.bytes.start().saturating_sub(1));
        todo.push(conflict.bytes.end().saturating_add(1)..=*range.end());
    }
    Ok(None)
}

/// The youngest of those whom a launch with this limit and number has to let go first; none when it is first.
pub fn nearest_older(file: &LockFile, limit: u64, number: Number) -> Result<Option<Waiter>, RepositoryError> {
    let Some(last) = number.0.checked_sub(1) else { return Ok(None) };
    if ticket_within(file, &tickets_from(limit))?.is_none() {
        return Ok(None);
    }
    let mut nearest: Option<Waiter> = None;
    let mut from = limit;
    loop {
        if let Some(waiter) = nearest_with_limit(file, from, last)? {
            nearest = nearest.into_iter().chain([waiter]).max_by_key(|waiter| waiter.number);
        }
        match next_limit(file, from.saturating_add(1))? {
            Some(next) => from = next,
            None => return Ok(nearest),
        }
    }
}

/// The lowest limit, `from` or more, that anybody in line has.
fn next_limit(file: &LockFile, from: u64) -> Result<Option<u64>, RepositoryError> {
    let mut lowest = None;
    let mut range = tickets_from(from);
    if from > LAST_SLOT {
        return Ok(None);
    }
    while let Some(ticket) = ticket_within(file, &range)? {
        let (limit, _) = ticket_at(*ticket.bytes.start());
        lowest = Some(limit);
        if limit <= from {
            break;
        }
        range = *range.start()..=ticket_byte(limit, 0).saturating_sub(1);
    }
    Ok(lowest)
}

/// The youngest up to `last` who is not stopped, among those with exactly this limit. The line may be long and its youngest
/// near, so the search goes back in growing steps and then narrows down.
fn nearest_with_limit(file: &LockFile, limit: u64, last: u64) -> Result<Option<Waiter>, RepositoryError> {
    let mut last = last;
    loop {
        if ticket_within(file, &tickets_up_to(limit, last))?.is_none() {
            return Ok(None);
        }
        // Nobody is above `high`.
        let (mut low, mut high, mut step) = (last, last, 1_u64);
        let mut found = loop {
            if let Some(conflict) = ticket_within(file, &between(limit, low, high))? {
                break conflict;
            }
            let Some(below) = low.checked_sub(1) else { return Ok(None) };
            high = below;
            low = low.saturating_sub(step);
            step = step.saturating_mul(4);
        };
        // Somebody is at or above whoever was found: each question halves what is left between him and `high`.
        loop {
            let (_, number) = ticket_at(*found.bytes.end());
            if number >= high {
                break;
            }
            let middle = number.saturating_add(high.saturating_sub(number).div_ceil(2));
            match ticket_within(file, &between(limit, middle, high))? {
                Some(conflict) => found = conflict,
                None => high = middle.saturating_sub(1),
            }
        }
        let waiter = Waiter::of(&found);
        if !waiter.is_stopped() {
            return Ok(Some(waiter));
        }
        match waiter.number.0.checked_sub(1) {
            Some(before) => last = before,
            None => return Ok(None),
        }
    }
}

fn between(limit: u64, first: u64, last: u64) -> Bytes {
    ticket_byte(limit, first)..=ticket_byte(limit, last)
}

/// How a sleep behind another waiter ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Woken {
    /// The other one has left the line, or was stopped.
    Left,
    /// The time is over.
    Time,
}

/// Sleeps until `ahead` leaves the line, at most this long. It is the kernel that wakes, and only whoever sleeps right behind
/// the one that left.
pub fn sleep_behind(file: &LockFile, ahead: &Waiter, longest: Duration) -> Result<Woken, RepositoryError> {
    let interval = longest.max(Duration::from_millis(1));
    let alarm = Alarm::every(interval).map_err(failed_call("wait at", file.path()))?;
    let slept = record_lock::lock(file.as_fd(), &ahead.byte(), Mode::Read);
    drop(alarm);
    match slept {
        Ok(()) => {
            file.unlock(&ahead.byte())?;
            Ok(Woken::Left)
        }
        Err(Errno::EINTR) if ahead.is_stopped() => Ok(Woken::Left),
        Err(Errno::EINTR) => Ok(Woken::Time),
        Err(Errno::EDEADLK) => {
            std::thread::sleep(longest);
            Ok(Woken::Time)
        }
        Err(errno) => Err(call("wait at", file.path(), "fcntl(F_SETLKW)", errno)),
    }
}
