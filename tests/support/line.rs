//! Who waits in which line of a lock file, asked of the kernel and of nobody else: the tests' own reading of the tickets.

use std::fs::File;

use super::deadline::eventually;
use super::held_slots::conflicting_lock;
use super::running::Running;
use super::site::Site;

/// So many bytes belong to the waiters of each limit, and the first of them to limit 1.
const STRETCH: i64 = 1 << 43;

/// The ticket of a waiter.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Waiter {
    /// Its place in time; the smallest is the oldest.
    pub(crate) number: i64,
    /// How many slots may be held for it to start.
    pub(crate) limit: i64,
    pub(crate) pid: i32,
}

impl Site {
    /// Everybody who waits for a slot of this repository, oldest first. There is nobody in a file that does not exist.
    #[track_caller]
    pub(crate) fn line(&self, repository: &str) -> Vec<Waiter> {
        let mut waiters = Vec::new();
        if let Ok(file) = File::open(self.repository(repository)) {
            collect(&file, STRETCH, i64::MAX, &mut waiters);
        }
        waiters.sort_unstable();
        waiters
    }

    /// Returns when this launch waits for a slot of the repository.
    #[track_caller]
    pub(crate) fn stands_in_line(&self, repository: &str, running: &Running) {
        eventually(&format!("process {} stands in the line of {repository}", running.pid()), || {
            self.line(repository).iter().any(|waiter| waiter.pid == running.pid()).then_some(())
        });
    }
}

/// Collects the tickets from `start` up to `end`, on both sides of the one that the kernel names first.
fn collect(file: &File, start: i64, end: i64, waiters: &mut Vec<Waiter>) {
    let lock = conflicting_lock(file, start, end).expect("the kernel says who holds a lock");
    let Some(lock) = lock else { return };
    let first = lock.l_start.max(start);
    let last = if lock.l_len == 0 { end } else { end.min(lock.l_start + lock.l_len) };
    collect(file, start, first, waiters);
    waiters.push(Waiter { number: first % STRETCH, limit: first / STRETCH, pid: lock.l_pid });
    collect(file, last, end, waiters);
}
