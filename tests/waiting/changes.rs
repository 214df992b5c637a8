//! What a waiter does when something changes that it does not see in the queue: the policy, also while it is
//! stopped, and the end of a pause.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::queue::{ALTERNATIVES, alternatives, change, changing, matlab, pids, run, waits};
use crate::support::{Ending, Site, eventually, is_alive, needs_root, seats};

/// Whoever was stopped, and is continued, does nothing by the policy from before: it takes no slot above a new
/// limit, and ends nobody who is no longer overdue.
#[test]
fn whoever_was_stopped_acts_by_the_policy_that_is_in_force() {
    let site = changing("forever", "process", 2, "");
    let [first, second] = [(); 2].map(|()| run(&site, "matlab", &[]).spawn());
    let waiter = waits(&site, &run(&site, "matlab", &[]));
    let passes = || {
        let begun = Instant::now();
        let is_over = || (begun.elapsed() > Duration::from_millis(2500)).then_some(());
        eventually("time passes", is_over);
    };
    // It sleeps, and then its last look is older than a second.
    passes();
    eventually("it sleeps", || (waiter.state() == 'S').then_some(()));
    waiter.signal(Signal::SIGSTOP);
    change(&site, "forever", "process", 1, "");
    passes();
    first.kill();
    waiter.signal(Signal::SIGCONT);
    eventually("it stands below the new limit", || {
        assert_eq!(pids(&site, "seats.lock"), [second.pid()]);
        site.line("seats.lock").iter().any(|waiter| waiter.limit == 1).then_some(())
    });
}

#[test]
fn whoever_was_stopped_ends_nobody_who_is_no_longer_overdue() {
    let policy =
        |after: &str| seats(1, &format!("expire_after = \"{after}\"\nexpire_grace = \"1s\""), &["matlab"]);
    let site = Site::with_policy(&policy("8s"));
    site.program("matlab");
    let began = Instant::now();
    let holder = run(&site, "matlab", &[]).spawn();
    let waiter = waits(&site, &matlab(&site));
    let waits = Instant::now();
    // It sleeps between two looks.
    eventually("it sleeps", || {
        (waits.elapsed() > Duration::from_millis(1500) && waiter.state() == 'S').then_some(())
    });
    waiter.signal(Signal::SIGSTOP);
    let is_in_time = began.elapsed() < Duration::from_secs(8);
    site.policy(&policy("10h"));
    eventually("it would be overdue", || (began.elapsed() > Duration::from_secs(10)).then_some(()));
    waiter.signal(Signal::SIGCONT);
    let continued = Instant::now();
    eventually("it has looked", || {
        assert!(!is_in_time || is_alive(holder.pid()), "it was ended");
        (continued.elapsed() > Duration::from_secs(3)).then_some(())
    });
}

/// A policy of one's own that has a fault blocks nobody else; its owner waits on, at the old place.
#[test]
fn a_fault_of_ones_own_blocks_nobody_else() {
    needs_root!();
    let site = Site::new();
    site.account("ann", &[]);
    site.system_policy(&seats(1, "", &["matlab"]));
    site.program("matlab");
    let ann = site.user("ann");
    let own = |text: &str| site.own_policy(&ann, text);
    own("version = 1\n");
    let holder = run(&site, "matlab", &[]).spawn();
    let mut first = waits(&site, &run(&site, "matlab", &["--wait", "forever"]).user("ann"));
    let mut second = waits(&site, &run(&site, "matlab", &["--wait", "forever"]));
    own("version = 1\nnonsense\n");
    eventually("the first has left", || (site.line("seats.lock").len() == 1).then_some(()));
    holder.kill();
    second.wait_for_echo();
    let mut third = waits(&site, &run(&site, "matlab", &["--wait", "forever"]));
    own("version = 1\n");
    eventually("it is in the line again, and first", || {
        site.line("seats.lock").first().is_some_and(|waiter| waiter.pid == first.pid()).then_some(())
    });
    second.kill();
    first.wait_for_echo();
    first.kill();
    third.wait_for_echo();
}

/// `queue_per_user` is for those who come. Whoever waits in one queue joins another that was full, and stays.
#[test]
fn whoever_joins_a_queue_later_is_not_counted_against_itself() {
    let site = Site::with_policy(&ALTERNATIVES.replace("MORE", "queue_per_user = 1"));
    for name in ["own", "common", "either"] {
        site.program(name);
    }
    let _own = run(&site, "own", &[]).spawn();
    let _common = run(&site, "common", &[]).spawn();
    let first = run(&site, "own", &["--wait", "forever"]).background();
    site.stands_in_line("own.lock", &first);
    let either = run(&site, "either", &["--wait", "forever"]).background();
    site.stands_in_line("common.lock", &either);
    assert_eq!(site.line("own.lock").len(), 1);
    first.kill();
    site.stands_in_line("own.lock", &either);
    // It looks once a second.
    let begun = Instant::now();
    eventually("it has looked some more times", || {
        assert_eq!(site.line("own.lock").len(), 1, "it has left");
        (begun.elapsed() > Duration::from_secs(4)).then_some(())
    });
}

/// A deadline is kept while a mutex is stuck: also where another choice was given up before.
#[test]
fn the_deadline_of_a_choice_is_kept_while_the_mutex_is_stuck() {
    let common = "[repository.common]\n    limit = 1\n    wait = \"5s\"";
    let policy = ALTERNATIVES.replace("MORE", "wait = \"0s\"");
    let site = Site::with_policy(&policy.replace("[repository.common]\n    limit = 1", common));
    for name in ["own", "common", "either"] {
        site.program(name);
    }
    let holders = ["own", "common"].map(|name| run(&site, name, &[]).spawn());
    let mut either = run(&site, "either", &[]).background();
    site.stands_in_line("common.lock", &either);
    let mutex = site.holder("common.lock", ["posix", "write", "0:8"]);
    let outcome = either.end();
    assert_eq!(outcome.ending, Ending::Status(124), "{}", outcome.stderr);
    drop((holders, mutex));
}

/// A launch whose time runs out while the policy has a fault ends, and does not wait until it is corrected.
#[test]
fn a_deadline_is_kept_while_the_policy_has_a_fault() {
    let site = Site::with_policy(&seats(1, "", &["matlab"]));
    site.program("matlab");
    let _holder = run(&site, "matlab", &[]).spawn();
    let mut waiter = run(&site, "matlab", &["-w2s"]).background();
    site.stands_in_line("seats.lock", &waiter);
    site.policy("version = 1\nnonsense\n");
    // Its time may be over before it sees the fault.
    let outcome = waiter.end();
    assert!(matches!(outcome.ending, Ending::Status(78 | 124)), "{outcome:?}");
}

/// The end of a pause makes an alternative available. No queue shows that, and whoever waits for the other
/// one sees it nevertheless, also behind others.
#[test]
fn a_waiter_takes_an_alternative_whose_pause_is_over() {
    let site = alternatives("if_elapsed = \"6s\"");
    let common = run(&site, "common", &[]).spawn();
    let ahead = run(&site, "common", &["-wforever"]).background();
    site.stands_in_line("common.lock", &ahead);
    run(&site, "own", &[]).status(0);
    let mut either = run(&site, "either", &["-wforever"]).background();
    either.wait_for_echo();
    assert_eq!(pids(&site, "own.lock"), [either.pid()]);
    assert_eq!(pids(&site, "common.lock"), [common.pid()]);
}
