//! Ctrl-Z at the wrong moment: a process that stops while it has the mutex of a lock file stops everybody
//! else. What the terminal sends waits until the mutex is given back; SIGSTOP, which nobody can hold back,
//! does not.

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};

/// Holds the stops of job control back until dropped.
#[must_use = "stops are held back until this is dropped"]
pub(crate) struct StopsHeldBack {
    mask: SigSet,
}

impl StopsHeldBack {
    /// Holds them back from now on.
    pub(crate) fn begin() -> Self {
        let stops = SigSet::from_iter([Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU]);
        let mut mask = SigSet::empty();
        // It cannot fail for a set of signals that exist.
        let _ = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&stops), Some(&mut mask));
        Self { mask }
    }
}

impl Drop for StopsHeldBack {
    fn drop(&mut self) {
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None);
    }
}
