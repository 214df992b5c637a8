//! Lines that end, over hosts: how many wait is one number for all of them.

use super::scenes::joins_a_full_line;
use super::{held, hosts, seats, waiting};
use crate::support::{Ending, Etcd, Host, Running, eventually, needs_etcd};

/// A launch that waits, as long as it takes.
fn waits(host: &Host, user: &str) -> Running {
    let mut launch =
        host.test().user(user).args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    launch.write_line(user);
    launch
}

/// A launch that would wait is refused. Where somebody who waits was not heard of for some seconds it may wait
/// itself for a while.
#[track_caller]
fn refused(host: &Host, user: &str, why: &str) {
    eventually("it is refused", || {
        let outcome = host.test().user(user).args(["run", "--wait", "5s", "--", "matlab"]).outcome();
        assert_ne!(outcome.ending, Ending::Status(0), "{outcome:?}");
        (outcome.ending == Ending::Status(75) && outcome.stderr.contains(why)).then_some(())
    });
}

/// "Behind so many others nobody else begins to wait", on whichever host.
#[test]
fn a_line_that_is_full_on_one_host_is_full_on_all() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(1, "queue = 2"), ["lab1", "lab2"]);
    let holder = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let mut first = waits(&one, "games");
    eventually("one waits", || (waiting(&two) == 1).then_some(()));
    let mut second = waits(&two, "games");
    eventually("two wait", || (waiting(&one) == 2 && waiting(&two) == 2).then_some(()));
    for host in [&one, &two] {
        refused(host, "backup", "2 of 2 wait");
    }
    drop(holder);
    assert_eq!(first.read_line(), "games\n");
    // Where one has gone another may come.
    eventually("one waits", || (waiting(&one) == 1).then_some(()));
    let mut third = waits(&one, "backup");
    eventually("two wait", || (waiting(&two) == 2).then_some(()));
    refused(&two, "nobody", "2 of 2 wait");
    drop(first);
    assert_eq!(second.read_line(), "games\n");
    drop(second);
    assert_eq!(third.read_line(), "backup\n");
}

/// "So many launches of one user may begin to wait."
#[test]
fn a_user_waits_once_over_all_hosts() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(1, "queue_per_user = 1"), ["lab1", "lab2"]);
    let holder = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let mut first = waits(&one, "games");
    eventually("one waits", || (waiting(&two) == 1).then_some(()));
    refused(&two, "games", "1 of 1 of yours wait");
    let mut second = waits(&two, "backup");
    eventually("two wait", || (waiting(&one) == 2).then_some(()));
    refused(&one, "backup", "1 of 1 of yours wait");
    drop(holder);
    assert_eq!(first.read_line(), "games\n");
    drop(first);
    assert_eq!(second.read_line(), "backup\n");
}

/// Many come at once: as many as may wait do, and all others are refused; each of them hears of it. One more
/// may come while the first was not heard of for some seconds.
#[test]
fn who_comes_at_once_with_many_waits_or_is_refused() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let hosts = hosts(&etcd, &seats(1, "queue = 1"), ["lab1", "lab2"]);
    let _holder = hosts[0].test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&hosts[1]) == 1).then_some(()));
    let all: Vec<Running> = (0..8).map(|number| waits(&hosts[number % 2], "games")).collect();
    let ended = || all.iter().filter(|launch| launch.is_zombie()).count();
    eventually("all others are refused", || (ended() >= 6).then_some(()));
    eventually("who is not refused waits", || {
        (waiting(&hosts[0]) + ended() == 8 && waiting(&hosts[1]) + ended() == 8).then_some(())
    });
}

/// "Nothing modified in the line after R": who has not heard of it joins no line that is full.
#[test]
fn who_hears_of_nothing_joins_no_line() {
    needs_etcd!();
    assert!(!joins_a_full_line(None));
}
