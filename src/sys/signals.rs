//! The signals of a supervisor. They are blocked and taken one by one, so that none is lost and no handler
//! runs. The program gets mask and dispositions of the caller.

use std::{io, thread, time::Duration};

pub(crate) use nix::sys::signal::Signal;
use nix::{
    errno::Errno,
    sys::{
        signal::{SigAction, SigEvent, SigSet, SigevNotify, SigmaskHow, kill, pthread_sigmask, raise},
        time::TimeSpec,
        timer::{Expiration, Timer, TimerSetTimeFlags},
    },
    time::ClockId,
    unistd::Pid,
};

use super::{
    failure::Failure,
    process::{self, Process},
    unsafe_calls,
};

/// The signals that a supervisor passes on to the program, from every sender. An alarm(2) of the caller
/// survives exec and no fork: the program has none.
const FORWARDED: [Signal; 7] = [
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGCONT,
    Signal::SIGWINCH,
];

/// Signals that the terminal sends to the program too. Only those of a process are passed on. A stop is
/// followed when the program stops.
const OF_TERMINALS: [Signal; 5] =
    [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

/// The next event for a supervisor.
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
    /// Blocks the signals, right before the fork: a child inherits no pending signal. Those that came before
    /// are for this process alone, as long as there is no child, and take effect first.
    pub(crate) fn block() -> Result<Self, Errno> {
        loop {
            let signals = Self::begin()?;
            let pending = unsafe_calls::pending()?;
            let mut known = FORWARDED.into_iter().chain(OF_TERMINALS);
            if !known.any(|signal| pending.contains(signal) && !signals.mask.contains(signal)) {
                return Ok(signals);
            }
            signals.restore()?;
        }
    }

    /// An ignored `SIGCHLD` would hide how the child ended, so it gets its default.
    fn begin() -> Result<Self, Errno> {
        let mut taken = SigSet::empty();
        taken.add(Signal::SIGCHLD);
        taken.extend(FORWARDED.into_iter().chain(OF_TERMINALS));
        let mut mask = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&taken), Some(&mut mask))?;
        let child = unsafe_calls::set_default(Signal::SIGCHLD)?;
        Ok(Self { taken, mask, child })
    }

    /// Restores mask and disposition: in the child before it becomes the program, or if there is no child.
    pub(crate) fn restore(&self) -> Result<(), Errno> {
        unsafe_calls::restore(Signal::SIGCHLD, &self.child)?;
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None)
    }

    /// At the end: signals for the program that were not passed on before it ended are not for this process.
    pub(crate) fn end(&self) -> Result<(), Errno> {
        FORWARDED.into_iter().chain(OF_TERMINALS).try_for_each(unsafe_calls::forget_pending)?;
        self.restore()
    }

    /// Lets signals end and stop this process again, when there is no program left to pass them on to.
    /// Earlier signals were for the program, which has handled them.
    pub(crate) fn let_through(&mut self) -> Result<(), Errno> {
        let own = || [Signal::SIGTERM, Signal::SIGHUP].into_iter().chain(OF_TERMINALS);
        own().try_for_each(unsafe_calls::forget_pending)?;
        // A process that waits for a signal gets it even if it is not blocked, if its default action is a
        // core dump.
        for signal in own() {
            self.taken.remove(signal);
        }
        pthread_sigmask(SigmaskHow::SIG_UNBLOCK, Some(&own().collect()), None)
    }

    /// Sleeps until the next event.
    pub(crate) fn next(&self) -> Result<Event, Errno> {
        let (number, is_of_process) = match unsafe_calls::wait_for_signal(&self.taken) {
            Err(Errno::EINTR) => return Ok(Event::Nothing),
            taken => taken?,
        };
        Ok(match Signal::try_from(number)? {
            Signal::SIGCHLD => Event::Child,
            signal if is_of_process || FORWARDED.contains(&signal) => Event::Forward(signal),
            _ => Event::Nothing,
        })
    }
}

/// Passes a signal on to a child that was not reaped yet, so that the number is still its own.
pub(crate) fn forward(signal: Signal, child: i32) {
    // The only failure left is that it may not be signalled: it changed its user. The sender of the signal
    // has to ask root.
    let _ = kill(Pid::from_raw(child), signal);
}

/// Stops this process, until it is continued, when a signal of job control has stopped its child: so its
/// parent sees the same. SIGSTOP stops the child alone, because its sender will send SIGCONT to the child
/// alone. But in the foreground of a terminal a shell waits for this process, and has to see the stop. The
/// shell is in another group; a script, or `make`, would not continue this process.
pub(crate) fn stop_with(child: i32, signal: i32) {
    let is_in_foreground = |process: &Process| process.group == process.foreground;
    let is_of_shell =
        |own: &Process| Process::find(own.parent).is_none_or(|parent| parent.group != own.group);
    // `/proc` of another PID namespace has a stranger under the number of the child.
    let is_child_in_foreground = |own: &Process| {
        Process::find(child).is_some_and(|child| child.parent == own.pid && is_in_foreground(&child))
    };
    let is_seen_by_shell =
        |own: Process| is_of_shell(&own) && (is_in_foreground(&own) || is_child_in_foreground(&own));
    let signal = match Signal::try_from(signal) {
        Ok(signal @ (Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU)) => signal,
        _ if Process::this().is_some_and(is_seen_by_shell) => Signal::SIGTSTP,
        _ => return,
    };
    // A SIGCONT that comes before the stop is not repeated. While the stop is pending, it discards the stop.
    // It is noted, because it may be meant for the child as well.
    let Ok(before) = unsafe_calls::interrupt_on(Signal::SIGCONT) else { return };
    let only = SigSet::from(Signal::SIGCONT);
    let _ = pthread_sigmask(SigmaskHow::SIG_UNBLOCK, Some(&only), None);
    let mut is_continued = false;
    stop_if(signal, || {
        is_continued = unsafe_calls::has_swallowed();
        !is_continued && process::is_still_stopped(child)
    });
    let _ = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&only), None);
    let _ = unsafe_calls::restore(Signal::SIGCONT, &before);
    if unsafe_calls::has_swallowed() || is_continued {
        let _ = raise(Signal::SIGCONT);
    }
}

/// Stops this process as Ctrl-Z does, until it is continued.
pub(crate) fn stop() {
    stop_if(Signal::SIGTSTP, || true);
}

/// Stops this process by this signal, which is blocked, if that is still wanted when the signal is pending.
fn stop_if(signal: Signal, is_wanted: impl FnOnce() -> bool) {
    let only = SigSet::from(signal);
    let Ok(before) = unsafe_calls::set_default(signal) else { return };
    // The signal stays pending until it is unblocked.
    let _ = raise(signal);
    if !is_wanted() {
        let _ = unsafe_calls::forget_pending(signal);
    }
    let _ = pthread_sigmask(SigmaskHow::SIG_UNBLOCK, Some(&only), None);
    let _ = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&only), None);
    let _ = unsafe_calls::restore(signal, &before);
}

// The names of signals.

/// The name of a signal, or its number for one that has none.
pub(crate) fn name(number: i32) -> String {
    Signal::try_from(number).map_or_else(|_| format!("signal {number}"), |signal| signal.as_str().to_owned())
}

// Ctrl-Z at the wrong moment: a process that stops while it has the mutex of a lock file blocks all others.
// Signals of the terminal wait until the mutex is released; SIGSTOP cannot be blocked.
//
// A process that has locked slots through a descriptor of its caller must report that: if a signal ended it,
// they would stay locked. SIGKILL cannot be blocked.

/// Signals that are held back until this is dropped. Those that were blocked before stay blocked.
#[derive(Debug)]
#[must_use = "the signals are held back until this is dropped"]
pub(crate) struct SignalsBlocked(SigSet);

impl SignalsBlocked {
    /// Holds the stops of job control back from now on.
    pub(crate) fn stops() -> Self {
        Self::begin([Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU])
    }

    /// Holds the signals back by which users end a process, and that of a pipe whose reader has ended.
    pub(crate) fn ends() -> Self {
        use Signal::{SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
        Self::begin([SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGPIPE])
    }

    fn begin<const COUNT: usize>(signals: [Signal; COUNT]) -> Self {
        let mut mask = SigSet::empty();
        // It cannot fail for a set of signals that exist.
        let _ = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::from_iter(signals)), Some(&mut mask));
        Self(signals.into_iter().filter(|signal| !mask.contains(*signal)).collect())
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        let _ = pthread_sigmask(SigmaskHow::SIG_UNBLOCK, Some(&self.0), None);
    }
}

// A request to a service to read its files again.

/// `SIGHUP`, blocked in this thread and in all that it starts from now on, to be received by one of them.
#[derive(Debug)]
pub(crate) struct HangUps(SigSet);

impl HangUps {
    /// Keeps SIGHUP pending in this thread.
    pub(crate) fn block() -> Result<Self, Errno> {
        let taken = SigSet::from(Signal::SIGHUP);
        taken.thread_block()?;
        Ok(Self(taken))
    }

    /// Sleeps until it comes.
    pub(crate) fn next(&self) -> Result<(), Errno> {
        self.0.wait().map(drop)
    }
}

// Signals for a program with a screen: blocked, and passed on one by one by a separate thread.

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
    /// Blocks the signals and returns them until they are no longer wanted.
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

// Ctrl-C while another program has the terminal: it is meant for that program alone.

/// The signals that a terminal sends to its foreground group.
const INTERRUPTS: [Signal; 2] = [Signal::SIGINT, Signal::SIGQUIT];

/// Interrupts do not reach this process until this is dropped; those that came meanwhile are discarded.
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

// A blocking call that must not block for ever: while an [`Alarm`] lives, a timer interrupts it again and
// again. A single shot can be missed, when it goes off just before the call; an interval cannot. The timer
// is one of `timer_create`, which no program inherits, and the signal's disposition and mask are put back
// when the alarm is dropped.

/// Interrupts blocking calls of this thread at an interval, with `SIGALRM`.
#[must_use = "the interruptions end when the alarm is dropped"]
pub(crate) struct Alarm {
    timer: Option<Timer>,
    action: SigAction,
    mask: SigSet,
}

impl Alarm {
    /// Starts to interrupt, first after `interval` (which is not zero), then every `interval`.
    pub(crate) fn every(interval: Duration) -> Result<Self, Failure> {
        Self::after(interval, interval)
    }

    /// Starts to interrupt, first after `delay` (which is not zero), then every `interval`.
    pub(crate) fn after(delay: Duration, interval: Duration) -> Result<Self, Failure> {
        let event = SigEvent::new(SigevNotify::SigevSignal { signal: Signal::SIGALRM, si_value: 0 });
        let timer = Timer::new(ClockId::CLOCK_MONOTONIC, event).map_err(Failure::of("timer_create"))?;
        let action = unsafe_calls::interrupt_on(Signal::SIGALRM).map_err(Failure::of("sigaction"))?;
        let mut mask = SigSet::empty();
        let mut unblock = SigSet::empty();
        unblock.add(Signal::SIGALRM);
        pthread_sigmask(SigmaskHow::SIG_UNBLOCK, Some(&unblock), Some(&mut mask))
            .map_err(Failure::of("sigprocmask"))?;
        let mut alarm = Self { timer: Some(timer), action, mask };
        if let Some(timer) = &mut alarm.timer {
            timer
                .set(
                    Expiration::IntervalDelayed(TimeSpec::from(delay), TimeSpec::from(interval)),
                    TimerSetTimeFlags::empty(),
                )
                .map_err(Failure::of("timer_settime"))?;
        }
        Ok(alarm)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // First the timer, then the mask, then the disposition: our signals must never meet the disposition
        // of the caller.
        self.timer = None;
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None);
        let _ = unsafe_calls::restore(Signal::SIGALRM, &self.action);
        // An alarm(2) of the caller survives exec (perl -e 'alarm 300; exec @ARGV'), and must not be lost.
        if unsafe_calls::has_swallowed() {
            let _ = raise(Signal::SIGALRM);
        }
    }
}
