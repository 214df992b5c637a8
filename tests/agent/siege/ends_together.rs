//! Many waits of one user that end at the same moment, for lack of time or of a share.

use std::{collections::BTreeMap, time::Duration};

use rungate::keeper::agent::message::Request;

use super::{FAILED, Mob, REFUSED, WAITS, others_launch, question, site, used_by};
use crate::support::{Running, Site, needs_root};

/// A quarter of what an agent has that does not say otherwise, for a quarter of those whom one user may have
/// wait.
const STACK: &str = "--stack=2097152";
const WAITERS: usize = 500;

/// An agent in less room, and with other settings, where there are any.
fn with_small_stack(settings: Option<&str>) -> (Site, Running) {
    let (site, agent) = site();
    agent.kill();
    if let Some(settings) = settings {
        super::super::settings::write(&site, settings);
    }
    let agent = site.agent_through(["prlimit", STACK]);
    (site, agent)
}

/// Each of them is refused, and the agent lives. It has heard of all of them just now, so that it looks at
/// each.
#[test]
fn waits_that_end_together_are_refused_one_after_the_other() {
    needs_root!();
    let (site, agent) = with_small_stack(None);
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut mob = Mob::of(&site, "bin");
    mob.calls(WAITERS);
    mob.asks_until(question("matlab"), Duration::from_millis(2500));
    assert_eq!(mob.ends_with(), BTreeMap::from([(REFUSED, WAITERS)]));
    assert!(!agent.is_zombie());
    others_launch(&site);
}

/// The same where each of them fails because its user has all that they may have.
#[test]
fn waits_that_fail_together_fail_one_after_the_other() {
    needs_root!();
    let (site, agent) = with_small_stack(Some("version = 1\n[agent]\nlaunches = 1\n"));
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut mob = Mob::of(&site, "bin");
    mob.calls(WAITERS);
    mob.says(&Request::Take(question("matlab")));
    assert_eq!(mob.hears(), BTreeMap::from([(WAITS, WAITERS)]));
    let _all = site.test().user("bin").args(["run", "--", "free"]).spawn();
    holder.kill();
    // Of whom it has not heard for seconds it looks at when it hears of them.
    mob.says(&Request::Beat);
    assert_eq!(mob.ends_with(), BTreeMap::from([(FAILED, WAITERS)]));
    assert!(!agent.is_zombie());
    others_launch(&site);
}

/// How much of a processor it takes to refuse so many, of whom none is heard of for so long that they count
/// as away when their time is over.
struct Unheard {
    _site: Site,
    agent: Running,
    _holder: Running,
    mob: Mob,
    count: usize,
    used: Duration,
}

impl Unheard {
    #[track_caller]
    fn wait(count: usize) -> Self {
        let wait = |seconds| Self::wait_for(Duration::from_secs(seconds), count);
        [5, 20, 80].into_iter().find_map(wait).expect("time for all to be told that they wait")
    }

    /// None where that is too short for this machine: the time of some was over before all were told that they
    /// wait.
    #[track_caller]
    fn wait_for(time: Duration, count: usize) -> Option<Self> {
        let (site, agent) = site();
        let holder = site.test().args(["run", "--", "matlab"]).spawn();
        let mut mob = Mob::of(&site, "bin");
        mob.calls(count);
        mob.asks_until(question("matlab"), time);
        let all_wait = mob.hears() == BTreeMap::from([(WAITS, count)]);
        let used = used_by(&agent);
        all_wait.then_some(Self { _site: site, agent, _holder: holder, mob, count, used })
    }

    #[track_caller]
    fn end(mut self) -> Duration {
        assert_eq!(self.mob.ends_with(), BTreeMap::from([(REFUSED, self.count)]));
        used_by(&self.agent).saturating_sub(self.used)
    }
}

/// A refusal names the first of those who wait, and counts all of them.
#[test]
fn a_refusal_counts_whom_it_does_not_name() {
    needs_root!();
    let (site, _agent) = site();
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut mob = Mob::of(&site, "bin");
    mob.calls(40);
    mob.says(&Request::Take(question("matlab")));
    assert_eq!(mob.hears(), BTreeMap::from([(WAITS, 40)]));
    let refused = "rungate: matlab: [..]\n  seats  1 of 1 used, 40 waiting\n...\n";
    site.test().user("games").args(["run", "--", "matlab"]).stderr(refused).status(75);
}

/// Four times as many take less than sixteen times as long, and not sixty-four times.
#[test]
fn waits_that_end_unheard_of_take_as_long_as_there_are_many() {
    needs_root!();
    let [few, many] = [250, 1000].map(Unheard::wait);
    let (few, many) = (few.end(), many.end());
    assert!(many < 16 * few.max(Duration::from_millis(100)), "{few:?} of a processor, and {many:?}");
}
