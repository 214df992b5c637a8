//! A child that becomes the program, and its end. A pipe that closes on exec carries the reason if it cannot.
//! Its parent observes it without reaping it, so its process id stays its own.

use std::os::fd::OwnedFd;

use nix::{
    errno::Errno,
    fcntl::OFlag,
    libc,
    sys::resource::{Resource, setrlimit},
    unistd::pipe2,
};

use crate::sys::{
    failure::Failure,
    unsafe_calls::{self, ChildChange},
};
/// How a process ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// It exited with this status.
    Exited(u8),
    /// The signal of this number ended it: real-time signals have no other name.
    Killed(i32),
}

/// What happened to a child.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Change {
    /// It ended, and waits to be reaped.
    Ended(i32, Ending),
    /// It was stopped, by the signal of this number.
    Stopped(i32, i32),
}

/// Creates a child that runs `become_program`, which returns only on failure. Returns its process id, or why
/// the program could not be executed. If no child could be created, it returns the failed call.
pub fn spawn(become_program: impl FnOnce() -> Errno) -> Result<Result<i32, Errno>, Failure> {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).map_err(Failure::of("pipe"))?;
    let Some(pid) = unsafe_calls::fork().map_err(Failure::of("fork"))? else {
        drop(reader);
        let errno = become_program();
        let _ = rustix::io::write(&writer, &(errno as i32).to_ne_bytes());
        unsafe_calls::exit_now(127);
    };
    drop(writer);
    Ok(match why_not(&reader) {
        None => Ok(pid),
        Some(errno) => {
            let _ = reap(pid);
            Err(errno)
        }
    })
}

/// Waits until exec closes the pipe, or returns why it failed.
fn why_not(reader: &OwnedFd) -> Option<Errno> {
    let mut bytes = [0; 4];
    loop {
        match rustix::io::read(reader, &mut bytes) {
            Ok(4) => return Some(Errno::from_raw(i32::from_ne_bytes(bytes))),
            Err(rustix::io::Errno::INTR) => {}
            _ => return None,
        }
    }
}

/// The next thing that happened to a child, or to an orphan that became one, without waiting for it. `ECHILD`
/// when there is no child left.
pub fn next_change() -> Result<Option<Change>, Errno> {
    let ended = unsafe_calls::wait_for_child(None, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT)?;
    if let Some(change) = ended.and_then(change_of) {
        return Ok(Some(change));
    }
    match unsafe_calls::wait_for_child(None, libc::WSTOPPED | libc::WNOHANG) {
        Ok(stopped) => Ok(stopped.and_then(change_of)),
        // The last child has ended meanwhile: if only stops are requested, the kernel reports that there is
        // no child.
        Err(Errno::ECHILD) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn change_of(ChildChange { pid, code, status }: ChildChange) -> Option<Change> {
    match code {
        // The kernel keeps the low eight bits.
        libc::CLD_EXITED => {
            Some(Change::Ended(pid, Ending::Exited(u8::try_from(status & 0xff).unwrap_or(u8::MAX))))
        }
        libc::CLD_KILLED | libc::CLD_DUMPED => Some(Change::Ended(pid, Ending::Killed(status))),
        libc::CLD_STOPPED => Some(Change::Stopped(pid, status)),
        _ => None,
    }
}

/// Reaps a child that has ended.
pub fn reap(pid: i32) -> Result<(), Errno> {
    unsafe_calls::wait_for_child(Some(pid), libc::WEXITED).map(drop)
}

/// Makes this process the parent of every orphan among its descendants.
pub fn adopt_orphans() -> Result<(), Errno> {
    nix::sys::prctl::set_child_subreaper(true)
}

/// Ends this process by the signal that ended its child, so that its parent sees the same. Returns only for a
/// signal that cannot end it. The child has already dumped its core; this process must not dump one too.
pub fn die_of(signal: i32) -> u8 {
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    unsafe_calls::die_of(signal);
    128_u8.saturating_add(u8::try_from(signal).unwrap_or(0))
}
