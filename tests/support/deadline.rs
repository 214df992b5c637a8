//! Waiting for what must happen, and failing when it does not: no test proves anything by the passing of
//! time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Child;
use std::thread::sleep;
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

/// Asks again and again until there is an answer, and panics at the deadline.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        sleep(Duration::from_millis(1));
    }
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

fn is_readable_within(time: Duration, descriptor: BorrowedFd<'_>) -> bool {
    let timeout = PollTimeout::try_from(time).expect("the deadline fits into a poll");
    poll(&mut [PollFd::new(descriptor, PollFlags::POLLIN)], timeout).expect("poll") > 0
}

/// Whether the child ends within a time. It is left for the caller to reap.
pub(crate) fn ends_within(time: Duration, child: &Child) -> bool {
    let pidfd =
        pidfd_open(Pid::from_child(child), PidfdFlags::empty()).expect("pidfd_open of an unreaped child");
    is_readable_within(time, pidfd.as_fd())
}
