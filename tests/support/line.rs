//! Who waits in which line of a lock file, asked of the kernel and of nobody else: the tests' own reading of
//! the locks.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use nix::sys::signal::Signal;

use super::deadline::eventually;
use super::held_slots::conflicting_lock;
use super::over_agent;
use super::running::Running;
use super::site::Site;

/// Those who wait in the queue have their locks from here on, by number.
pub(crate) const STANDING: i64 = 1 << 61;

/// So many bytes for each number.
const STRETCH: i64 = 1 << 32;

/// So many bytes for each policy, and one for each limit.
const LIMITS: i64 = 1 << 20;

/// Waiters have their places from here on.
pub(crate) const PLACES: i64 = 1 << 62;

/// Somebody who waits in the queue.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Waiter {
    /// Its place in time; the smallest is the oldest.
    pub(crate) number: i64,
    /// How many slots may be held for it to start.
    pub(crate) limit: i64,
    pub(crate) pid: i32,
}

impl Site {
    /// Whether no launch has the mutex of this file now.
    #[track_caller]
    pub(crate) fn has_no_mutex(&self, repository: &str) -> bool {
        over_agent::is_on() || self.lock_between(repository, 0, 8).is_none()
    }

    /// A process that waits for a lock on this repository.
    #[track_caller]
    pub(crate) fn waits_for_lock(&self, repository: &str) -> Option<i32> {
        let inode = fs::metadata(self.repository(repository)).expect("a repository").ino();
        let locks = fs::read_to_string("/proc/locks").expect("the kernel's list");
        locks.lines().find_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, "->", _, _, _, pid, file, ..] = words[..] else { return None };
            (file.rsplit(':').next()?.parse() == Ok(inode)).then(|| pid.parse().ok())?
        })
    }

    /// Stops a launch that waits, at a moment when it has not the mutex: with that it would keep everybody
    /// waiting.
    #[track_caller]
    pub(crate) fn stop_in_line(&self, repository: &str, waiter: &Running) {
        eventually("it is stopped without the mutex", || {
            waiter.signal(Signal::SIGSTOP);
            eventually("it is stopped", || (waiter.state() == 'T').then_some(()));
            let has_none = self.has_no_mutex(repository);
            if !has_none {
                waiter.signal(Signal::SIGCONT);
            }
            has_none.then_some(())
        });
    }

    /// Everybody who waits for a slot of this repository, oldest first. There is nobody in a file that does
    /// not exist.
    #[track_caller]
    pub(crate) fn line(&self, repository: &str) -> Vec<Waiter> {
        if over_agent::is_on() {
            return self.line_with_agent(repository);
        }
        let mut waiters = Vec::new();
        if let Ok(file) = File::open(self.repository(repository)) {
            collect(&file, STANDING, PLACES, &mut waiters);
        }
        waiters.sort_unstable();
        waiters
    }

    /// Returns when this launch waits for a slot of the repository.
    #[track_caller]
    pub(crate) fn stands_in_line(&self, repository: &str, running: &Running) {
        eventually(&format!("process {} stands in the line of {repository}", running.pid()), || {
            assert!(!running.is_zombie(), "it has ended, and stands in no line of {repository}");
            self.line(repository).iter().any(|waiter| waiter.pid == running.pid()).then_some(())
        });
    }
}

/// Collects those from `start` up to `end`, on both sides of the one that the kernel names first.
fn collect(file: &File, start: i64, end: i64, waiters: &mut Vec<Waiter>) {
    let lock = conflicting_lock(file, start, end).expect("the kernel says who holds a lock");
    let Some(lock) = lock else { return };
    let first = lock.l_start.max(start);
    let last = if lock.l_len == 0 { end } else { end.min(lock.l_start + lock.l_len) };
    collect(file, start, first, waiters);
    waiters.push(Waiter { number: (first - STANDING) / STRETCH, limit: first % LIMITS, pid: lock.l_pid });
    collect(file, last, end, waiters);
}
