//! A blocking call that must not block for ever: while an [`Alarm`] lives, a timer interrupts it again and
//! again. A single shot can be missed, when it goes off just before the call; an interval cannot. The timer
//! is one of `timer_create`, which no program inherits, and the signal's disposition and mask are put back
//! when the alarm is dropped.

use std::time::Duration;

use nix::{
    sys::{
        signal::{SigAction, SigEvent, SigSet, SigevNotify, SigmaskHow, Signal, pthread_sigmask, raise},
        time::TimeSpec,
        timer::{Expiration, Timer, TimerSetTimeFlags},
    },
    time::ClockId,
};

use crate::sys::{failure::Failure, unsafe_calls};

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
        // First the timer, then the mask, then the disposition: no signal of ours may meet a disposition that
        // is not ours.
        self.timer = None;
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None);
        let _ = unsafe_calls::restore(Signal::SIGALRM, &self.action);
        // An alarm(2) that the caller has set lives on over exec (perl -e 'alarm 300; exec @ARGV'): it is not
        // ours to swallow.
        if unsafe_calls::has_swallowed() {
            let _ = raise(Signal::SIGALRM);
        }
    }
}
