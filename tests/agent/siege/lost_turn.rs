//! A launch that is judged again, while the one before it is refused, keeps its turn.

use std::{
    iter,
    thread::sleep,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use rungate::{
    judge::terms::span_of_time::Wait,
    keeper::agent::message::{Answer, Request, Take},
};

use super::{Call, question};
use crate::support::{Site, eventually, needs_root};

/// So often it is asked about something else, in conversations in which it answers one thing after the other.
const ROUNDS: usize = 50;

impl Call {
    /// Shows that it lives, and asks something else. Returns whether it has its slots by the time that is
    /// answered.
    #[track_caller]
    fn is_granted(&mut self) -> bool {
        sleep(Duration::from_millis(100));
        self.says(&Request::Beat);
        self.says(&Request::About);
        let until_then =
            iter::from_fn(|| Some(self.hears()).filter(|heard| !matches!(heard, Answer::About(_))));
        until_then.collect::<Vec<_>>().iter().any(|heard| matches!(heard, Answer::Granted(_)))
    }

    /// Asks, and waits in the queue.
    #[track_caller]
    fn waits(&mut self, take: Take) {
        self.says(&Request::Take(take));
        assert!(matches!(self.hears(), Answer::Waits(_)));
    }
}

/// The first in the queue wants two things and its time is over; the second wants one of them, which is free
/// now. It was judged longer ago than a judgement counts.
#[test]
fn who_is_judged_again_while_others_are_refused_keeps_its_turn() {
    needs_root!();
    let (site, agent) = Site::with_agent(
        "
        repository.seats = { limit = 1, keeper = \"agent\" }
        repository.other = { limit = 1, keeper = \"agent\" }
        [[rule]]
        name     = \"seats\"
        commands = [\"matlab\", \"both\"]
        acquire  = [\"seats\"]
        [[rule]]
        name     = \"other\"
        commands = [\"other\", \"both\"]
        acquire  = [\"other\"]
        ",
    );
    for name in ["matlab", "other"] {
        site.program(name);
    }
    let seat = site.test().args(["run", "--", "matlab"]).spawn();
    let _other = site.test().args(["run", "--", "other"]).spawn();
    let (mut first, mut second) = (Call::to(&site), Call::to(&site));
    let asked = Instant::now();
    let longest = Duration::from_secs(2);
    first.waits(Take { wait: Some(Wait::For(longest)), ..question("both") });
    second.waits(question("matlab"));
    // Its time ends and the seat becomes free while it looks at neither.
    agent.signal(Signal::SIGSTOP);
    eventually("its time is over", || (asked.elapsed() > longest).then_some(()));
    seat.kill();
    agent.signal(Signal::SIGCONT);
    assert!(matches!(first.hears(), Answer::Refused(_)));
    assert!((0..ROUNDS).any(|_| second.is_granted()), "it stands first in line for a free seat");
}
