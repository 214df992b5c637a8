//! The ends of programs that the agent remembers, for whoever writes the log: one user's end nobody else's
//! memory.

use rungate::keeper::agent::message::{Answer, Request};

use super::{Call, DONE, Mob, question, site};
use crate::support::{Site, eventually, needs_root};

/// The programs whose ends are remembered.
#[track_caller]
fn remembered(site: &Site) -> Vec<i32> {
    let mut root = Call::to(site);
    root.says(&Request::Ends);
    match root.hears() {
        Answer::Ended(ends) => ends.iter().map(|end| end.pid).collect(),
        other => panic!("{other:?}"),
    }
}

/// As many of one connection as are heard at once: each takes two messages.
const AT_ONCE: usize = 25;

/// More than are remembered.
const ENDS: usize = 10_250;

#[test]
fn who_ends_programs_without_end_has_the_ends_of_nobody_else_forgotten() {
    needs_root!();
    let (site, _agent) = site();
    let mut theirs = site.test().user("games").args(["run", "--", "free"]).spawn();
    theirs.close_stdin();
    let pid = theirs.pid();
    eventually("its end is seen", || remembered(&site).contains(&pid).then_some(()));
    let mut mob = Mob::of(&site, "bin");
    let launch = [Request::Take(question("free")), Request::GiveBack(true)];
    for _ in 0..10 {
        mob.calls(ENDS / AT_ONCE / 10);
        mob.says_all(&vec![launch.clone(); AT_ONCE].concat());
        mob.listens(DONE, AT_ONCE);
        mob.hangs_up();
    }
    let remembered = remembered(&site);
    assert!(remembered.contains(&pid), "{} of others are remembered", remembered.len());
}
