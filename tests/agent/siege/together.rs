//! Slots that become free together go to as many of those who wait, at once.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rungate::keeper::agent::message::{Answer, Request};

use super::{Call, question};
use crate::support::{Site, eventually, needs_root};

/// For so long a judgement counts.
const FRESH: Duration = Duration::from_secs(1);

/// The head of the queue is judged again when it is its turn, and the next one looks when it has its slots:
/// not with its own next heartbeat, nor when another holder ends.
#[test]
fn two_slots_that_become_free_together_go_to_two_waiters() {
    needs_root!();
    let (site, agent) = Site::with_agent(
        "
        repository.seats = { limit = 2, keeper = \"agent\" }
        [[rule]]
        name     = \"seats\"
        commands = [\"matlab\"]
        acquire  = [\"seats\"]
        ",
    );
    site.program("matlab");
    let holders = [0; 2].map(|_| site.test().args(["run", "--", "matlab"]).spawn());
    let mut waiters = [Call::to(&site), Call::to(&site)];
    for waiter in &mut waiters {
        waiter.says(&Request::Take(question("matlab")));
        assert!(matches!(waiter.hears(), Answer::Waits(_)));
    }
    let asked = Instant::now();
    eventually("what was judged is too old", || (asked.elapsed() > FRESH).then_some(()));
    for waiter in &mut waiters {
        waiter.says(&Request::Beat);
        assert!(matches!(waiter.hears(), Answer::Waits(_)));
    }
    agent.signal(Signal::SIGSTOP);
    for holder in holders {
        holder.kill();
    }
    agent.signal(Signal::SIGCONT);
    for waiter in &mut waiters {
        assert!(matches!(waiter.hears(), Answer::Granted(_)), "it says nothing more until it has its seat");
    }
}
