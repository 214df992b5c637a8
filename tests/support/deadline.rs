//! Waiting for what must happen, and failing when it does not: no test proves anything by the passing of
//! time.

use std::fs;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Child;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, BorrowedFd};

use super::figures::tell;

/// How long anything that must happen may take, on a slow machine under full load: longer than the thirty
/// seconds for which a launch waits for its agent.
pub(crate) const DEADLINE: Duration = Duration::from_secs(45);

/// The same for programs that are not ours, which may have much to do: a browser, a simulator of processors.
pub(super) const DEADLINE_OF_OTHERS: Duration = Duration::from_secs(180);

/// So many programs for each processor are full load. If there are more, a deadline is later in proportion,
/// so that no test fails because of what else the machine does.
const FULL_LOAD: f64 = 4.0;

/// Whether a deadline has passed, on a machine that is as busy as this one is now.
pub(super) fn is_over(begun: Instant, deadline: Duration) -> bool {
    begun.elapsed() >= deadline && begun.elapsed() >= deadline.mul_f64(overload())
}

/// By how much the load is above the full one; never less than 1, never more than 8.
fn overload() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default();
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let processors = f64::from(u32::try_from(processors).unwrap_or(u32::MAX));
    (load / processors / FULL_LOAD).clamp(1.0, 8.0)
}

/// Asks again and again until there is an answer, and panics at the deadline.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        let asked = Instant::now();
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(!is_over(start, DEADLINE), "{what}: not within {:?}", start.elapsed());
        sleep(pause_after(asked.elapsed()));
    }
}

/// How long to wait before the next question, when the last one took so long: who asks another program takes
/// the processor from those that it waits for.
fn pause_after(question: Duration) -> Duration {
    (question * 2).clamp(Duration::from_millis(1), Duration::from_millis(50))
}

/// Plays a scene that needs a time of the policy's to be long enough for this machine, with one time after
/// the other, the longest at last: with that one it must go well. What is wrong is wrong with all of them.
#[track_caller]
pub(crate) fn given_time(times: &[&str], scene: impl Fn(&str)) {
    let (longest, others) = times.split_last().expect("a time");
    for time in others {
        if catch_unwind(AssertUnwindSafe(|| scene(time))).is_ok() {
            return;
        }
        tell(&format!("{time} were not enough for a scene of {}", std::panic::Location::caller()));
    }
    scene(longest);
}

/// Whether the descriptor can be read from, or has come to its end, before the deadline.
pub(crate) fn readable_in_time(descriptor: BorrowedFd<'_>) -> bool {
    is_readable_within(DEADLINE, descriptor)
}

fn is_readable_within(deadline: Duration, descriptor: BorrowedFd<'_>) -> bool {
    let timeout = PollTimeout::try_from(deadline / 4).expect("the deadline fits into a poll");
    let begun = Instant::now();
    loop {
        let found = poll(&mut [PollFd::new(descriptor, PollFlags::POLLIN)], timeout).expect("poll");
        if found > 0 || is_over(begun, deadline) {
            return found > 0;
        }
    }
}

/// Whether the child ends before a deadline. It is left for the caller to reap.
pub(crate) fn ends_within(deadline: Duration, child: &Child) -> bool {
    let pidfd =
        pidfd_open(Pid::from_child(child), PidfdFlags::empty()).expect("pidfd_open of an unreaped child");
    is_readable_within(deadline, pidfd.as_fd())
}
