//! Signals for a program that shows something: blocked, and handed over one by one by a thread of their own.

use std::{io, thread};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};

/// What is taken. `SIGTTIN` and `SIGTTOU` are not: a program in the background must stop when it wants the
/// terminal.
const TAKEN: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// The signals, blocked in this thread until this is dropped.
#[must_use = "the signals are let through when this is dropped"]
pub(crate) struct TakenSignals {
    mask: SigSet,
}

impl TakenSignals {
    /// Blocks the signals and hands them over until nobody wants them.
    pub(crate) fn begin(mut hand_over: impl FnMut(Signal) -> bool + Send + 'static) -> io::Result<Self> {
        let taken = SigSet::from_iter(TAKEN);
        let mut mask = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&taken), Some(&mut mask))?;
        let signals = Self { mask };
        thread::Builder::new().spawn(move || while taken.wait().is_ok_and(&mut hand_over) {})?;
        Ok(signals)
    }
}

impl Drop for TakenSignals {
    fn drop(&mut self) {
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None);
    }
}
