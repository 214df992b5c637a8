//! What a program that shows something waits for: a key, a signal, or that time passes. Signals are blocked and taken one by
//! one, so that none interrupts the writing of a screen.

use std::{
    io,
    os::fd::AsFd,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{SigSet, SigmaskHow, Signal, pthread_sigmask},
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::read,
};

/// What is taken. `SIGTTIN` and `SIGTTOU` are not: a program in the background must stop when it wants the terminal.
const TAKEN: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// What came first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Occasion {
    /// Bytes on standard input; none at its end.
    Input(Vec<u8>),
    /// A signal.
    Signal(Signal),
    /// The time.
    Time,
}

/// The signals, blocked until this is dropped.
#[must_use = "the signals are let through when this is dropped"]
pub struct Occasions {
    signals: SignalFd,
    mask: SigSet,
}

impl Occasions {
    /// Blocks the signals.
    pub fn begin() -> Result<Self, Errno> {
        let taken = SigSet::from_iter(TAKEN);
        let mut mask = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&taken), Some(&mut mask))?;
        let signals = SignalFd::with_flags(&taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { signals, mask })
    }

    /// Sleeps until something comes, or it is time.
    pub fn next(&self, until: Instant) -> Result<Occasion, Errno> {
        let left = until.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let stdin = io::stdin();
        let mut ready = [
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut ready, timeout) {
            Ok(0) | Err(Errno::EINTR) => return Ok(Occasion::Time),
            Ok(_) => {}
            Err(errno) => return Err(errno),
        }
        if let Some(info) = self.signals.read_signal()? {
            let number = i32::try_from(info.ssi_signo).map_err(|_| Errno::EINVAL)?;
            return Signal::try_from(number).map(Occasion::Signal);
        }
        let mut bytes = [0; 256];
        match read(stdin, &mut bytes) {
            Ok(length) => Ok(Occasion::Input(bytes[..length].to_vec())),
            Err(Errno::EINTR | Errno::EAGAIN) => Ok(Occasion::Time),
            // The terminal is gone.
            Err(Errno::EIO) => Ok(Occasion::Input(Vec::new())),
            Err(errno) => Err(errno),
        }
    }
}

impl Drop for Occasions {
    fn drop(&mut self) {
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None);
    }
}
