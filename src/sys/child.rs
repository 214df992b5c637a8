//! A child that becomes the program, and what becomes of it. The child tells through a pipe that closes on exec why it could
//! not; what its parent is to see of it is looked at without reaping it, so that its number stays its own.

use std::os::fd::OwnedFd;

use nix::{
    errno::Errno,
    fcntl::OFlag,
    libc,
    sys::{
        resource::{Resource, setrlimit},
        signal::{Signal, raise},
        wait::{Id, WaitPidFlag, WaitStatus, waitid},
    },
    unistd::{Pid, pipe2},
};

use crate::sys::unsafe_calls;

/// How a process ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// It exited with this status.
    Exited(u8),
    /// A signal ended it.
    Killed(Signal),
}

/// What happened to a child.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Change {
    /// It ended, and waits to be reaped.
    Ended(i32, Ending),
    /// It was stopped.
    Stopped(i32),
}

/// Makes a child that runs `become_program`, which comes back only when it failed. Answers with its process id, or with why the
/// program could not be started.
pub fn spawn(become_program: impl FnOnce() -> Errno) -> Result<i32, Errno> {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC)?;
    let Some(pid) = unsafe_calls::fork()? else {
        drop(reader);
        let errno = become_program();
        let _ = rustix::io::write(&writer, &(errno as i32).to_ne_bytes());
        unsafe_calls::exit_now(127);
    };
    drop(writer);
    match why_not(&reader) {
        None => Ok(pid),
        Some(errno) => {
            let _ = reap(pid);
            Err(errno)
        }
    }
}

/// Waits until the pipe is closed by exec, or says why there was none.
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

/// The next thing that happened to a child, or to an orphan that became one, without waiting for it. `ECHILD` when there is no
/// child left.
pub fn next_change() -> Result<Option<Change>, Errno> {
    let ended = waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT)?;
    if let Some(change) = change_of(ended) {
        return Ok(Some(change));
    }
    let stopped = waitid(Id::All, WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG)?;
    Ok(change_of(stopped))
}

fn change_of(status: WaitStatus) -> Option<Change> {
    match status {
        WaitStatus::Exited(pid, code) => {
            // The kernel keeps the low eight bits.
            Some(Change::Ended(pid.as_raw(), Ending::Exited(u8::try_from(code & 0xff).unwrap_or(u8::MAX))))
        }
        WaitStatus::Signaled(pid, signal, _) => Some(Change::Ended(pid.as_raw(), Ending::Killed(signal))),
        WaitStatus::Stopped(pid, _) => Some(Change::Stopped(pid.as_raw())),
        _ => None,
    }
}

/// Takes an ended child away.
pub fn reap(pid: i32) -> Result<(), Errno> {
    waitid(Id::Pid(Pid::from_raw(pid)), WaitPidFlag::WEXITED).map(drop)
}

/// Makes this process the parent of every orphan among its descendants.
pub fn adopt_orphans() -> Result<(), Errno> {
    nix::sys::prctl::set_child_subreaper(true)
}

/// Ends this process by the signal that ended its child, so that whoever waits for it sees the same. Comes back only for a
/// signal that cannot end it. The child has left its core already; this process has nothing to add.
pub fn die_of(signal: Signal) -> u8 {
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let _ = unsafe_calls::set_default(signal);
    let mut only = nix::sys::signal::SigSet::empty();
    only.add(signal);
    let _ = only.thread_unblock();
    let _ = raise(signal);
    128_u8.saturating_add(u8::try_from(signal as libc::c_int).unwrap_or(0))
}
