//! Notice that was given of an overdue holder: who gave it goes, or the holder's host does.

use nix::sys::signal::Signal;

use super::expiry::{OVERDUE, SILENT, has_its_turn, keys, matlab, waits};
use super::{MISSED, held, hosts, hosts_with, seats, waiting};
use crate::support::{Ending, Etcd, Host, Running, eventually, given_time, needs_etcd};

/// A program that says when it is asked to end, and goes on.
fn stubborn(host: &Host) -> Running {
    host.site.script(
        "matlab",
        "#!/bin/sh\ntrap 'echo asked' INT\necho\nwhile :; do read line && echo \"$line\"; done\n",
    );
    let mut running = matlab(host, "games").background();
    assert_eq!(running.read_line(), "\n");
    running
}

/// A launch that is gone has nobody ended any more.
#[test]
fn whoever_dies_takes_back_the_notice() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let prefix = Etcd::prefix();
    // It is remembered for one ttl.
    let settings = etcd.settings(&prefix, SILENT);
    let policy = seats(1, "expire_after = \"1ms\"\nexpire_grace = \"1h\"");
    let [one, mut two] = ["lab1", "lab2"].map(|name| Host::new(name, &policy, &settings));
    let notices = || keys(&etcd, &format!("{prefix}e/"));
    let mut overdue = stubborn(&one);
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let mut next = waits(&two, "backup");
    assert_eq!(overdue.read_line(), "asked\n");
    assert_eq!(notices().len(), 1);
    next.signal(Signal::SIGKILL);
    next.end();
    eventually("the notice is taken back", || notices().is_empty().then_some(()));
    // And so is that of an agent that died with its launch.
    let mut next = waits(&two, "backup");
    eventually("there is a notice again", || (notices().len() == 1).then_some(()));
    two.agent.signal(Signal::SIGKILL);
    next.signal(Signal::SIGKILL);
    next.end();
    assert_eq!(notices().len(), 1);
    two.restart();
    eventually("the notice is taken back", || notices().is_empty().then_some(()));
    overdue.wait_for_echo();
    assert_eq!(held(&two), 1);
}

/// Whoever gave notice is gone, and somebody else wants the same: the holder was asked to end already.
#[test]
fn nobody_is_asked_again_because_another_one_wants_it() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let prefix = Etcd::prefix();
    // It is remembered for one ttl.
    let settings = etcd.settings(&prefix, SILENT);
    let policy = seats(1, "expire_after = \"1ms\"\nexpire_grace = \"1h\"");
    let [one, two, three] = ["lab1", "lab2", "lab3"].map(|name| Host::new(name, &policy, &settings));
    let mut overdue = stubborn(&one);
    eventually("the slot is seen", || (held(&two) == 1 && held(&three) == 1).then_some(()));
    let mut first = waits(&two, "backup");
    assert_eq!(overdue.read_line(), "asked\n");
    let second = waits(&three, "backup");
    eventually("both wait", || (waiting(&one) == 2).then_some(()));
    first.signal(Signal::SIGKILL);
    first.end();
    eventually("the host has answered the other one", || {
        let found = keys(&etcd, &format!("{prefix}e/"));
        found
            .first()
            .filter(|(_, notice)| notice["host"] == "lab3" && notice["reply"].is_object())
            .map(|_| ())
    });
    // What it is asked follows the answer, which it would see before its next line.
    eventually("the agent has gone on", || (waiting(&one) == 1).then_some(()));
    assert!(overdue.answers(), "it was asked again");
    drop(second);
}

/// A host that is gone has ended nobody, whatever it was about to do.
#[test]
fn a_holder_of_a_host_that_is_gone_was_not_ended() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let policy = seats(1, "expire_after = \"1ms\"\nexpire_grace = \"1h\"");
    let [one, two] = hosts_with(&etcd, MISSED, &policy, ["lab1", "lab2"]);
    let mut overdue = stubborn(&one);
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let next = waits(&two, "backup");
    assert_eq!(overdue.read_line(), "asked\n");
    one.agent.signal(Signal::SIGKILL);
    let said = has_its_turn(next);
    assert!(!said.contains("ended PID"), "{said}");
    overdue.wait_for_echo();
}

/// A holder that leaves by itself after notice was given: the launch that it was in the way of starts, and
/// reports that.
#[test]
fn a_holder_that_leaves_by_itself_was_not_ended() {
    needs_etcd!();
    // The holder has to leave within the seconds for which an answer is waited for.
    given_time(&[SILENT; 3], leaves_by_itself);
}

fn leaves_by_itself(ttl: &str) {
    let etcd = Etcd::shared();
    let prefix = Etcd::prefix();
    let settings = etcd.settings(&prefix, ttl);
    let [one, two] = ["lab1", "lab2"].map(|name| Host::new(name, &seats(1, OVERDUE), &settings));
    let _overdue = matlab(&one, "games").spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    // It cannot answer, so the test does what it would do when the holder has left.
    one.agent.signal(Signal::SIGSTOP);
    let mut next = matlab(&two, "backup").background();
    let notices = format!("{prefix}e/");
    let (notice, _) = eventually("notice is given", || keys(&etcd, &notices).pop());
    etcd.control(&["del", &notice.replace(&notices, &format!("{prefix}s/"))]).expect("it is deleted");
    next.wait_for_echo();
    next.close_stdin();
    let said = next.end().stderr;
    assert!(said.ends_with(" had already exited\n") && said.lines().count() == 1, "{said}");
}

/// The policy of the holder's host is asked for the member's table, whatever members there are.
#[test]
fn notice_is_given_of_a_member_of_a_repository_too() {
    needs_etcd!();
    let etcd = Etcd::shared();
    for per in ["user", "directory", "command"] {
        let policy = seats(1, &format!("{OVERDUE}\nper = \"{per}\""));
        let [one, two] = hosts(&etcd, &policy, ["lab1", "lab2"]);
        let mut overdue = matlab(&one, "games").directory("/tmp").spawn();
        eventually("the slot is seen", || (held(&two) == 1).then_some(()));
        let next =
            two.test().user("games").directory("/tmp").args(["run", "--wait", "forever", "--", "matlab"]);
        has_its_turn(next.background());
        assert_eq!(overdue.end().ending, Ending::Signal(2), "{per}");
    }
}
