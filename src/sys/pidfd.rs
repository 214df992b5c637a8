//! A process by descriptor: it stands for this very process, even when the number goes to another one, and it
//! can be waited for without being its parent.

use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{Signal, kill, killpg},
};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use crate::sys::{failure::errno_of, proc_file, process::Process};

/// An open process.
#[derive(Debug)]
pub struct PidFd {
    pid: i32,
    descriptor: OwnedFd,
}

impl PidFd {
    /// Opens a process. `ESRCH` when it is gone.
    pub fn open(pid: i32) -> Result<Self, Errno> {
        let number = Pid::from_raw(pid).filter(|_| pid > 0).ok_or(Errno::ESRCH)?;
        match pidfd_open(number, PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Self { pid, descriptor }),
            Err(error) => Err(Errno::from_raw(error.raw_os_error())),
        }
    }

    /// A process that the kernel gave as a descriptor, under its number.
    pub(super) fn of(pid: i32, descriptor: OwnedFd) -> Self {
        Self { pid, descriptor }
    }

    /// Another descriptor of the same process.
    pub fn try_clone(&self) -> Result<Self, Errno> {
        let descriptor = self.descriptor.try_clone().map_err(|error| errno_of(&error))?;
        Ok(Self { pid: self.pid, descriptor })
    }

    /// Its number, which is its own as long as it has not ended.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether `/proc` has this process under the same number. It has not where `/proc` is that of another
    /// PID namespace.
    pub fn is_in_proc(&self) -> bool {
        let info = proc_file::read(format!("/proc/self/fdinfo/{}", self.descriptor.as_raw_fd()));
        info.is_some_and(|info| info.lines().any(|line| line == format!("Pid:\t{}", self.pid)))
    }

    /// Whether it leads its process group. The kernel gives number 1 and everybody the same answer to a
    /// signal, and 0 is the group of whoever sends it.
    pub fn leads_its_group(&self) -> bool {
        self.pid > 1 && Process::find(self.pid).is_some_and(|process| process.group == self.pid)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let signal = rustix::process::Signal::from_named_raw(signal as i32).ok_or(Errno::EINVAL)?;
        pidfd_send_signal(&self.descriptor, signal).map_err(|error| Errno::from_raw(error.raw_os_error()))
    }

    /// Sends a signal to the process group that it leads, if it is still there to vouch for it.
    pub fn signal_group(&self, signal: Signal) -> Result<(), Errno> {
        if self.pid <= 1 || self.has_ended() {
            return Err(Errno::ESRCH);
        }
        killpg(nix::unistd::Pid::from_raw(self.pid), signal)
    }

    /// Whether this user may send it signals; one that is gone does no harm.
    pub fn may_be_signalled(&self) -> bool {
        kill(nix::unistd::Pid::from_raw(self.pid), None) != Err(Errno::EPERM)
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        wait_for_any([self], Duration::ZERO) == Ok(true)
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Sleeps until one of the processes has ended, or the time is over. Says which of the two; a signal counts
/// as the latter.
pub fn wait_for_any<'a>(
    processes: impl IntoIterator<Item = &'a PidFd>,
    longest: Duration,
) -> Result<bool, Errno> {
    let mut polled: Vec<PollFd<'_>> = processes
        .into_iter()
        .map(|process| PollFd::new(process.descriptor.as_fd(), PollFlags::POLLIN))
        .collect();
    // Rounded up: waking a moment too early would mean to look around again for nothing.
    let milliseconds = longest.as_nanos().div_ceil(1_000_000);
    let timeout = PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX);
    match poll(&mut polled, timeout) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}
