//! Byte-range locks of `fcntl(2)`: of the process (POSIX) or of the open file description (OFD). Offsets and
//! owners are plain values. Nothing here decides anything, and nothing here closes a descriptor: closing
//! *any* descriptor of a file drops all POSIX locks of the process on it.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{ops::RangeInclusive, os::fd::BorrowedFd};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, fcntl},
    libc,
};

/// Bytes of a lock file, first and last. Only their numbers matter; nothing need be stored there.
pub type Bytes = RangeInclusive<u64>;

/// The highest offset that a lock can have.
pub const LAST_BYTE: u64 = i64::MAX as u64;

/// Who keeps a lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ownership {
    /// The process: inherited over exec, never by a child, gone when the process closes any descriptor of the
    /// file.
    Process,
    /// The open file description: shared by all who inherited the descriptor, gone when the last of them
    /// closed it.
    Description,
}

/// What a lock excludes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// Excludes writers.
    Read,
    /// Excludes everybody.
    Write,
}

/// A lock that another process holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Conflict {
    /// What it covers.
    pub bytes: Bytes,
    /// The process that holds it, if the kernel can say: never for a lock of a description, nor for a
    /// process of another PID namespace or host. Always positive, so that it may be given to `kill`.
    pub pid: Option<i32>,
}

/// The first lock, in the kernel's order (which is not that of the offsets), that would keep a description of
/// its own from writing `bytes`: it sees every lock but those of `descriptor`'s own description, the calling
/// process's POSIX locks included.
pub fn conflict(descriptor: BorrowedFd<'_>, bytes: &Bytes) -> Result<Option<Conflict>, Errno> {
    let mut flock = request(libc::F_WRLCK, bytes);
    fcntl(descriptor, FcntlArg::F_OFD_GETLK(&mut flock))?;
    Ok(answer(&flock))
}

/// The same for reading: sees the locks of writers alone.
pub fn conflict_with_writer(descriptor: BorrowedFd<'_>, bytes: &Bytes) -> Result<Option<Conflict>, Errno> {
    let mut flock = request(libc::F_RDLCK, bytes);
    fcntl(descriptor, FcntlArg::F_OFD_GETLK(&mut flock))?;
    Ok(answer(&flock))
}

/// The same as the calling *process* would meet it: its own POSIX locks are invisible.
pub fn conflict_with_process(descriptor: BorrowedFd<'_>, bytes: &Bytes) -> Result<Option<Conflict>, Errno> {
    let mut flock = request(libc::F_WRLCK, bytes);
    fcntl(descriptor, FcntlArg::F_GETLK(&mut flock))?;
    Ok(answer(&flock))
}

/// Takes a lock if it is free. Returns whether it was taken.
pub fn try_lock(
    descriptor: BorrowedFd<'_>,
    bytes: &Bytes,
    mode: Mode,
    ownership: Ownership,
) -> Result<bool, Errno> {
    let flock = request(kind(mode), bytes);
    let argument = match ownership {
        Ownership::Process => FcntlArg::F_SETLK(&flock),
        Ownership::Description => FcntlArg::F_OFD_SETLK(&flock),
    };
    match fcntl(descriptor, argument) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Takes a lock of the process, and sleeps until it is free. `EINTR` and `EDEADLK` are returned as they are.
pub fn lock(descriptor: BorrowedFd<'_>, bytes: &Bytes, mode: Mode) -> Result<(), Errno> {
    let flock = request(kind(mode), bytes);
    fcntl(descriptor, FcntlArg::F_SETLKW(&flock)).map(drop)
}

/// Gives bytes back, whether they were locked or not.
pub fn unlock(descriptor: BorrowedFd<'_>, bytes: &Bytes, ownership: Ownership) -> Result<(), Errno> {
    let flock = request(libc::F_UNLCK, bytes);
    let argument = match ownership {
        Ownership::Process => FcntlArg::F_SETLK(&flock),
        Ownership::Description => FcntlArg::F_OFD_SETLK(&flock),
    };
    fcntl(descriptor, argument).map(drop)
}

fn kind(mode: Mode) -> libc::c_int {
    match mode {
        Mode::Read => libc::F_RDLCK,
        Mode::Write => libc::F_WRLCK,
    }
}

/// `l_pid` must be 0 for the OFD operations; a length of 0 means "to the end, however long the file".
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "the constants of libc fit")]
fn request(kind: libc::c_int, bytes: &Bytes) -> libc::flock {
    let last = (*bytes.end()).min(LAST_BYTE);
    let length = if last == LAST_BYTE { 0 } else { last.saturating_sub(*bytes.start()).saturating_add(1) };
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: *bytes.start() as libc::off_t,
        l_len: length as libc::off_t,
        l_pid: 0,
    }
}

#[expect(clippy::cast_sign_loss, reason = "the kernel's offsets are not negative")]
fn answer(flock: &libc::flock) -> Option<Conflict> {
    if libc::c_int::from(flock.l_type) == libc::F_UNLCK {
        return None;
    }
    let first = flock.l_start as u64;
    let last = if flock.l_len == 0 {
        LAST_BYTE
    } else {
        first.saturating_add((flock.l_len as u64).saturating_sub(1))
    };
    Some(Conflict { bytes: first..=last, pid: (flock.l_pid > 0).then_some(flock.l_pid) })
}
