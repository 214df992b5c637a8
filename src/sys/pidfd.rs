//! A process by descriptor: it stands for this very process, even when the number goes to another one, and it can be waited
//! for without being its parent.

use std::{
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{Signal, killpg},
};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

/// An open process.
#[derive(Debug)]
pub struct PidFd {
    descriptor: OwnedFd,
}

impl PidFd {
    /// Opens a process. `ESRCH` when it is gone.
    pub fn open(pid: i32) -> Result<Self, Errno> {
        let pid = Pid::from_raw(pid).filter(|pid| pid.as_raw_nonzero().get() > 0).ok_or(Errno::ESRCH)?;
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Self { descriptor }),
            Err(error) => Err(Errno::from_raw(error.raw_os_error())),
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let signal = rustix::process::Signal::from_named_raw(signal as i32).ok_or(Errno::EINVAL)?;
        pidfd_send_signal(&self.descriptor, signal).map_err(|error| Errno::from_raw(error.raw_os_error()))
    }

    /// Sends a signal to the process group `group`, if this process is still there to vouch for it.
    pub fn signal_group(&self, group: i32, signal: Signal) -> Result<(), Errno> {
        if self.has_ended() {
            return Err(Errno::ESRCH);
        }
        killpg(nix::unistd::Pid::from_raw(group), signal)
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        wait_for_any([self], Duration::ZERO) == Ok(true)
    }
}

/// Sleeps until one of the processes has ended, or the time is over. Says which of the two; a signal counts as the latter.
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
