//! An etcd whose data are restored from a backup: slots that were taken since are not in it, and nobody is
//! let in until they are there again.

use super::upkeep::slots;
use super::{TTL, held, seats, status, waiting};
use crate::support::{Ending, Etcd, Host, eventually, needs_etcd};

/// Longer than a test takes: nobody is given up meanwhile.
const ENDLESS: &str = "10m";

const AT_ONCE: [&str; 5] = ["run", "-q", "-n", "--", "matlab"];

/// Two hosts that are there, on an etcd of their own.
fn two_hosts(etcd: &Etcd, ttl: &str, more: &str) -> (String, [Host; 2]) {
    let settings = etcd.settings(&Etcd::prefix(), ttl);
    let hosts = ["lab1", "lab2"].map(|name| Host::new(name, &seats(1, more), &settings));
    for host in &hosts {
        eventually("both are there", || {
            let site = status(host)["site"].clone();
            let known = site["hosts"].as_array().map_or(0, Vec::len);
            (site["connected"] == true && known == 2).then_some(())
        });
    }
    (settings, hosts)
}

fn prefix_of(host: &Host) -> String {
    status(host)["site"]["prefix"].as_str().expect("a prefix").to_owned()
}

/// A launch on this host never starts, and sooner or later it is told that etcd was restored.
#[track_caller]
fn is_held_back(host: &Host) {
    eventually("it is told why", || {
        let outcome = host.test().args(AT_ONCE).outcome();
        assert_ne!(outcome.ending, Ending::Status(0), "one too many");
        outcome.stderr.contains("etcd was restored from a backup").then_some(())
    });
    let trouble = status(host)["site"]["trouble"]["text"].to_string();
    assert!(trouble.contains("until each host has put back what it holds"), "{trouble}");
}

/// A slot that was taken after the backup, by a host that does not exist when it is restored.
fn is_missing_after(more: impl Fn(&Etcd), token: &str, comes_new: bool) {
    let etcd = Etcd::new();
    let (settings, [mut one, two]) = two_hosts(&etcd, ENDLESS, "");
    let prefix = prefix_of(&two);
    let saved = etcd.save();
    let mut running = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    more(&etcd);
    one.agent.signal(nix::sys::signal::Signal::SIGKILL);
    etcd.restore(&saved, token);
    is_held_back(&two);
    if comes_new {
        // Whoever knows nothing of the time before.
        is_held_back(&Host::new("lab3", &seats(1, ""), &settings));
    }
    assert_eq!(slots(&etcd, &prefix).len(), 0);
    one.restart();
    eventually("it is put back", || (slots(&etcd, &prefix).len() == 1).then_some(()));
    eventually("it is counted", || (held(&two) == 1).then_some(()));
    assert!(running.answers());
}

/// Restored from a backup: no slots are given until each host has recorded again what it holds.
#[test]
fn an_etcd_that_was_restored_lets_nobody_in() {
    needs_etcd!();
    is_missing_after(|_| (), "another", true);
}

/// All keys of the site are deleted: the etcd has the same name as before, and its revision rises.
#[test]
fn keys_that_were_deleted_let_nobody_in() {
    needs_etcd!();
    let etcd = Etcd::new();
    let (settings, [mut one, two]) = two_hosts(&etcd, ENDLESS, "");
    let prefix = prefix_of(&two);
    let mut running = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    one.agent.signal(nix::sys::signal::Signal::SIGKILL);
    etcd.control(&["del", "--prefix", &prefix]).expect("they are deleted");
    is_held_back(&two);
    is_held_back(&Host::new("lab3", &seats(1, ""), &settings));
    assert_eq!(slots(&etcd, &prefix).len(), 0);
    one.restart();
    eventually("it is put back", || (slots(&etcd, &prefix).len() == 1).then_some(()));
    eventually("it is counted", || (held(&two) == 1).then_some(()));
    assert!(running.answers());
}

/// What is written elsewhere, so that the revision of a backup is lower.
fn later(etcd: &Etcd) {
    for _ in 0..20 {
        etcd.control(&["put", "/elsewhere", "x"]).expect("it is written");
    }
}

/// The same where it has the same name as before: who knew a later revision notices.
#[test]
fn a_revision_that_goes_back_lets_nobody_in() {
    needs_etcd!();
    is_missing_after(later, "etcd-cluster", false);
}

/// The same where the same backup was restored before, and the site went on since.
#[test]
fn a_backup_that_is_restored_twice_lets_nobody_in() {
    needs_etcd!();
    let etcd = Etcd::new();
    let (_, [one, two]) = two_hosts(&etcd, "12s", "");
    let saved = etcd.save();
    later(&etcd);
    // Thereby it knows a later revision.
    two.test().args(AT_ONCE).status(0);
    etcd.restore(&saved, "etcd-cluster");
    is_held_back(&two);
    eventually("slots are given again", || {
        (one.test().args(AT_ONCE).outcome().ending == Ending::Status(0)).then_some(())
    });
    let _running = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    later(&etcd);
    one.agent.signal(nix::sys::signal::Signal::SIGKILL);
    etcd.restore(&saved, "etcd-cluster");
    is_held_back(&two);
}

/// After that all goes on: holders have their slots, also a launch below one, and who waits has its turn.
#[test]
fn after_a_restore_the_site_goes_on() {
    needs_etcd!();
    let etcd = Etcd::new();
    let (_, [one, two]) = two_hosts(&etcd, "9s", "hold = \"descriptor\"");
    let saved = etcd.save();
    let rungate = one.site.rungate().display().to_string();
    one.site.script("matlab", &format!("#!/bin/sh\n[ $# = 1 ] && exec cat\n{rungate} run -- matlab below\n"));
    let running = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let mut waits = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    eventually("it stands in line", || (waiting(&one) == 1).then_some(()));
    etcd.restore(&saved, "another");
    let is_open = |host: &Host| status(host)["site"]["connected"] == true;
    eventually("slots are given again", || {
        let outcome = two.test().args(AT_ONCE).outcome();
        assert_ne!(outcome.ending, Ending::Status(0), "one too many");
        (outcome.ending == Ending::Status(75) && is_open(&one) && is_open(&two)).then_some(())
    });
    eventually("both see both", || (held(&two) == 1 && waiting(&one) == 1).then_some(()));
    drop(running);
    waits.write_line("it runs");
    assert_eq!(waits.read_line(), "it runs\n");
}

/// Programs that are to be stopped when the site is lost are not stopped because a backup gives their slots
/// to somebody else, who may be gone: nobody is let in meanwhile.
#[test]
fn after_a_restore_nobody_is_stopped_for_a_slot_of_the_backup() {
    needs_etcd!();
    let etcd = Etcd::new();
    let settings = etcd.settings(&Etcd::prefix(), ENDLESS);
    let host = |name| Host::new(name, &seats(1, "on_lost = \"stop\""), &settings);
    let (one, mut two) = (host("lab1"), host("lab2"));
    let prefix = prefix_of(&two);
    let before = two.test().args(["run", "--", "matlab"]).spawn();
    let saved = etcd.save();
    drop(before);
    eventually("the slot is free", || slots(&etcd, &prefix).is_empty().then_some(()));
    let mut running = one.test().args(["run", "--wait", "forever", "--", "matlab"]).spawn();
    // Whose slot it is in the backup does not exist to say that it has ended.
    two.agent.signal(nix::sys::signal::Signal::SIGKILL);
    etcd.restore(&saved, "another");
    eventually("the other one is written down, too", || (slots(&etcd, &prefix).len() == 2).then_some(()));
    assert!(running.answers(), "it was stopped");
    two.restart();
    eventually("what has ended is gone", || (slots(&etcd, &prefix).len() == 1).then_some(()));
    assert!(running.answers(), "it was stopped");
}

/// For how long a host gives no slots, as it tells a launch.
#[track_caller]
fn held_back_for(host: &Host) -> u64 {
    eventually("it is told why", || {
        let said = host.test().args(AT_ONCE).outcome().stderr;
        said.split_once("for about ")?.1.split_once(" s more")?.0.parse().ok()
    })
}

/// Until each host has recorded again what it holds: for the longest ttl of a host that is known, be it
/// from the backup or from the time before.
#[test]
fn after_a_restore_nobody_is_let_in_before_the_longest_ttl_is_over() {
    needs_etcd!();
    let etcd = Etcd::new();
    let prefix = Etcd::prefix();
    let host = |name, ttl| Host::new(name, &seats(1, ""), &etcd.settings(&prefix, ttl));
    let (one, two) = (host("lab1", "10m"), host("lab2", TTL));
    let is_known = |name: &str| {
        let site = status(&two)["site"].clone();
        let hosts = site["hosts"].as_array().cloned().unwrap_or_default();
        site["connected"] == true && hosts.iter().any(|host| host["host"] == name)
    };
    // A backup from before the first write would have no name of its etcd.
    eventually("the first are known", || is_known("lab1").then_some(()));
    let saved = etcd.save();
    let three = host("lab3", "20m");
    eventually("all are known", || is_known("lab3").then_some(()));
    for host in [&one, &three] {
        host.agent.signal(nix::sys::signal::Signal::SIGKILL);
    }
    etcd.restore(&saved, "another");
    assert!(held_back_for(&host("lab4", TTL)) > 500, "the backup names a longer ttl");
    assert!(held_back_for(&two) > 1000, "there was a host with a longer ttl");
}
