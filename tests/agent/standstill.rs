//! "Who does not answer is passed over": nobody is, because the agent did not run and could hear nobody.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rungate::keeper::agent::message::Request;

use super::numbers::{Caller, stop};
use super::seats;
use crate::support::{eventually, needs_root};

/// Longer than a launch may give no sign of life.
const LONG_PAUSE: Duration = Duration::from_secs(5);

/// The machine stands still, and so nobody beats: whoever is heard first afterwards comes after who came before.
#[test]
fn who_could_not_beat_is_not_passed_over() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut callers = [Caller::new(&site), Caller::new(&site)];
    for caller in &mut callers {
        caller.takes(false);
        caller.waits();
    }
    stop(&agent);
    let begun = Instant::now();
    eventually("it has stood still", || (begun.elapsed() > LONG_PAUSE).then_some(()));
    holder.kill();
    agent.signal(Signal::SIGCONT);
    let [first, second] = &mut callers;
    second.says(&Request::Beat);
    first.is_granted();
}
