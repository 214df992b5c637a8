//! Limits that are changed, and limits that differ: each host admits by its own policy.

use std::cell::Cell;
use std::fs;
use std::time::Duration;

use super::instruments::found;
use super::storm::{Seen, storm};
use super::{LASTING, REFUSED, held, hosts, hosts_with, seats, status};
use crate::support::{Etcd, Host, eventually, needs_etcd, tell};

fn policy(limit: u32) -> String {
    seats(limit, "").replace("matlab", "sleeper")
}

/// Gives a host another limit, in one step: nobody reads half a policy.
fn limit(host: &Host, limit: u32) {
    host.site.system_file("next.toml", &format!("version = 1\n{}", policy(limit)));
    let etc = host.site.path("etc/rungate");
    fs::rename(etc.join("next.toml"), etc.join("policy.toml")).expect("replace the policy");
}

/// Limits lowered and raised in mid-storm, different limits on different hosts: never a program above the
/// highest that was in force.
#[test]
fn limits_that_change_and_differ_are_kept() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let hosts = hosts_with(&etcd, LASTING, &policy(3), ["lab1", "lab2", "lab3"]);
    // The last one is for all of them, so that the highest is reached.
    let limits = [[1, 1, 1], [1, 2, 3], [2, 2, 2], [3, 1, 2], [3, 3, 3]];
    let done = Cell::new(0);
    let change = || {
        for (host, of_host) in hosts.iter().zip(limits[done.get() % limits.len()]) {
            limit(host, of_host);
        }
        done.set(done.get() + 1);
        std::thread::sleep(Duration::from_secs(2));
    };
    let is_enough = |seen: &Seen| done.get() >= limits.len() && seen.started() > 20 && seen.was_at_limit();
    let seen = storm(&hosts, 3, 2, change, is_enough);
    tell(&format!("limits changed {} times: {seen:?}", done.get()));
    assert!(seen.most() == 3 && seen.started() > 20, "{seen:?}");
}

/// Hosts have different limits in their policies: each admission by its own, as ever.
#[test]
fn each_host_admits_by_its_own_limit() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let settings = etcd.settings(&Etcd::prefix(), LASTING);
    let [one, two] =
        [("lab1", 1), ("lab2", 2)].map(|(name, limit)| Host::new(name, &seats(limit, ""), &settings));
    let _first = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    one.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
    let second = two.test().args(["run", "--", "matlab"]).spawn();
    eventually("both are seen", || (held(&one) == 2).then_some(()));
    for host in [&one, &two] {
        host.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
    }
    drop(second);
    eventually("one is seen", || (held(&one) == 1).then_some(()));
    one.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
}

/// `status` and `doctor` show that they differ, until they do not.
#[test]
fn hosts_that_differ_are_shown() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &policy(2), ["lab1", "lab2"]);
    let differs = |host: &Host| {
        let shown = host.test().args(["doctor", "-v", "site"]).outcome().stdout;
        shown.lines().find(|line| line.starts_with("differs ")).map(str::to_owned)
    };
    let code = "note site-policies-differ".to_owned();
    eventually("both are there", || {
        (status(&one)["site"]["hosts"].as_array().map(Vec::len) == Some(2)).then_some(())
    });
    assert_eq!((differs(&one), found(&one).contains(&code)), (None, false));
    limit(&two, 5);
    for host in [&one, &two] {
        let line = eventually("they differ", || differs(host));
        assert_eq!(line, "differs seats: limit = 2 on lab1; limit = 5 on lab2");
        assert!(found(host).contains(&code));
        let said = &status(host)["site"]["differences"][0]["said"];
        assert_eq!(said[1], serde_json::json!({ "hosts": ["lab2"], "keys": "limit = 5" }), "{said}");
    }
    limit(&one, 5);
    for host in [&one, &two] {
        eventually("they do not", || differs(host).is_none().then_some(()));
    }
}

/// A limit that was lowered counts from the next launch on, and ends nothing.
#[test]
fn a_lowered_limit_counts_on_every_host() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &policy(2), ["lab1", "lab2"]);
    for host in [&one, &two] {
        host.site.copy_of("/bin/cat", "sleeper");
    }
    let first = one.test().args(["run", "--", "sleeper"]).spawn();
    let mut second = two.test().args(["run", "--", "sleeper"]).spawn();
    eventually("both see both", || (held(&one) == 2 && held(&two) == 2).then_some(()));
    for host in [&one, &two] {
        limit(host, 1);
    }
    drop(first);
    eventually("one is seen", || (held(&one) == 1 && held(&two) == 1).then_some(()));
    let refused = REFUSED.replace("matlab", "sleeper");
    for host in [&one, &two] {
        host.test().args(["run", "--", "sleeper"]).stderr(&refused).status(75);
        limit(host, 2);
        host.test().args(["run", "--", "sleeper"]).status(0);
        eventually("one is seen", || (held(&one) == 1 && held(&two) == 1).then_some(()));
    }
    assert!(second.answers());
}
