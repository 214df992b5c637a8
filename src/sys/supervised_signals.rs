//! The signals of a supervisor. All that it deals with are blocked and taken one by one, so that none is lost
//! and no handler runs; the program gets mask and dispositions as the caller arranged them.

use nix::{
    errno::Errno,
    sys::signal::{SigAction, SigSet, SigmaskHow, Signal, kill, pthread_sigmask, raise},
    unistd::Pid,
};

use crate::sys::unsafe_calls;

/// What a supervisor passes on to the program.
const FORWARDED: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGCONT, Signal::SIGWINCH];

/// What the terminal sends to the program as well: taken, and left to the program. A stop is followed when
/// the program stops.
const LEFT_TO_THE_PROGRAM: [Signal; 5] =
    [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

/// What a supervisor has to deal with next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Event {
    /// Something happened to a child.
    Child,
    /// A signal for the program.
    Forward(Signal),
    /// Nothing to be done.
    Nothing,
}

/// The signals, blocked, and what was in force before.
pub(crate) struct SupervisedSignals {
    taken: SigSet,
    mask: SigSet,
    child: SigAction,
}

impl SupervisedSignals {
    /// Blocks the signals. An ignored `SIGCHLD` would hide how the child ended, so it gets its default.
    pub(crate) fn block() -> Result<Self, Errno> {
        let mut taken = SigSet::empty();
        taken.add(Signal::SIGCHLD);
        taken.extend(FORWARDED.into_iter().chain(LEFT_TO_THE_PROGRAM));
        let mut mask = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&taken), Some(&mut mask))?;
        let child = unsafe_calls::set_default(Signal::SIGCHLD)?;
        Ok(Self { taken, mask, child })
    }

    /// Puts mask and disposition back: for the child, before it becomes the program, or where there is none.
    pub(crate) fn restore(&self) -> Result<(), Errno> {
        unsafe_calls::restore(Signal::SIGCHLD, &self.child)?;
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None)
    }

    /// The end: what came for the program, and was not passed on before it ended, is not for this process.
    pub(crate) fn end(&self) -> Result<(), Errno> {
        FORWARDED.into_iter().chain(LEFT_TO_THE_PROGRAM).try_for_each(unsafe_calls::forget_pending)?;
        self.restore()
    }

    /// Lets signals end this process again, when there is no program left to pass them on to. What came
    /// before was for the program, and it has dealt with it in its way.
    pub(crate) fn let_through(&mut self) -> Result<(), Errno> {
        let ending = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT];
        ending.into_iter().try_for_each(unsafe_calls::forget_pending)?;
        // Whoever sleeps for a signal gets it even where it is not blocked, if its default is to leave a
        // core.
        for signal in ending {
            self.taken.remove(signal);
        }
        pthread_sigmask(SigmaskHow::SIG_UNBLOCK, Some(&SigSet::from_iter(ending)), None)
    }

    /// Sleeps until there is something to deal with.
    pub(crate) fn next(&self) -> Result<Event, Errno> {
        match self.taken.wait() {
            Ok(Signal::SIGCHLD) => Ok(Event::Child),
            Ok(signal) if FORWARDED.contains(&signal) => Ok(Event::Forward(signal)),
            Ok(_) | Err(Errno::EINTR) => Ok(Event::Nothing),
            Err(errno) => Err(errno),
        }
    }
}

/// Passes a signal on to a child that was not reaped yet, so that the number is still its own.
pub(crate) fn forward(signal: Signal, child: i32) {
    // The only failure left is that it may not be signalled: it changed its user. Whoever sent the signal has
    // to ask root.
    let _ = kill(Pid::from_raw(child), signal);
}

/// Stops this process by the signal that stopped its child, so that whoever waits for it sees the same, until
/// somebody continues it.
pub(crate) fn stop_too(signal: i32) {
    match Signal::try_from(signal) {
        Ok(signal @ (Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU)) => {
            let only = SigSet::from(signal);
            let Ok(before) = unsafe_calls::set_default(signal) else { return };
            // It waits until it is let through.
            let _ = raise(signal);
            let _ = pthread_sigmask(SigmaskHow::SIG_UNBLOCK, Some(&only), None);
            let _ = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&only), None);
            let _ = unsafe_calls::restore(signal, &before);
        }
        _ => {
            let _ = raise(Signal::SIGSTOP);
        }
    }
}
