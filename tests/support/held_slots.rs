//! Who holds which slot of a lock file, asked of the kernel and of nobody else.
//!
//! This is the tests' own reading of a repository. It shares no code with the library and never looks at what
//! a file contains, so it can judge both. It is compiled into the tests and into the observer.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use super::lock_range::lock_range;

/// The byte before the one whose lock is slot 1.
pub(crate) const SLOT_ZERO: i64 = 7;

/// The first offset above every slot that rungate hands out.
const SLOTS_END: i64 = SLOT_ZERO + 1 + 1_048_575;

/// One locked slot and the process that the kernel names for it (-1 for a lock that belongs to an open file
/// description rather than to a process).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct HeldSlot {
    pub(crate) number: i64,
    pub(crate) pid: i32,
}

/// Every slot that anybody holds, lowest first.
///
/// This is no snapshot: the slots are asked about one after the other while others come and go. A process
/// that is named in two successive answers for the same slot has held it all the time between them.
pub(crate) fn held_slots(file: &File) -> io::Result<Vec<HeldSlot>> {
    let mut held = Vec::new();
    collect(file, SLOT_ZERO + 1, SLOTS_END, &mut held)?;
    held.sort_unstable();
    Ok(held)
}

/// Collects what is locked from `start` up to `end`. A query answers with the first lock in the order of the
/// kernel's list, which need not be the lowest one, so both sides of the answer are asked about again.
fn collect(file: &File, start: i64, end: i64, held: &mut Vec<HeldSlot>) -> io::Result<()> {
    let Some(lock) = conflicting_lock(file, start, end)? else { return Ok(()) };
    let first = lock.l_start.max(start);
    let last = if lock.l_len == 0 { end } else { end.min(lock.l_start + lock.l_len) };
    collect(file, start, first, held)?;
    held.extend((first..last).map(|byte| HeldSlot { number: byte - SLOT_ZERO, pid: lock.l_pid }));
    collect(file, last, end, held)
}

/// A lock of any kind, of somebody else, on any byte from `start` up to `end`.
pub(crate) fn conflicting_lock(file: &File, start: i64, end: i64) -> io::Result<Option<libc::flock>> {
    if start >= end {
        return Ok(None);
    }
    let mut lock = lock_range(libc::F_WRLCK, start, end - start);
    fcntl(file.as_fd(), FcntlArg::F_OFD_GETLK(&mut lock))?;
    Ok((i32::from(lock.l_type) != libc::F_UNLCK).then_some(lock))
}
