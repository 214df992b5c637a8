//! Ctrl-C while another program has the terminal: it is meant for that program alone.

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};

use crate::sys::unsafe_calls;

/// What a terminal sends to all who are in its foreground.
const INTERRUPTS: [Signal; 2] = [Signal::SIGINT, Signal::SIGQUIT];

/// Interrupts do not reach this process until this is dropped, and none that came meanwhile does afterwards.
#[must_use = "interrupts are let through when this is dropped"]
pub(crate) struct InterruptsHeldBack {
    mask: SigSet,
}

impl InterruptsHeldBack {
    /// Holds them back from now on. A child that is spawned has them, as the standard library clears its
    /// mask.
    pub(crate) fn begin() -> Self {
        let mut mask = SigSet::empty();
        // It cannot fail for a set of signals that exist.
        let _ = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::from_iter(INTERRUPTS)), Some(&mut mask));
        Self { mask }
    }
}

impl Drop for InterruptsHeldBack {
    fn drop(&mut self) {
        let _ = INTERRUPTS.into_iter().try_for_each(unsafe_calls::forget_pending);
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None);
    }
}
