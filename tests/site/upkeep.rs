//! What is done to an etcd while launches go on: members replaced, history compacted, files defragmented.

use std::cell::Cell;
use std::path::Path;

use super::storm::storm;
use super::{LASTING, held, seats, status};
use crate::support::{Etcd, Host, Mishap, Ways, eventually, needs_etcd, tell};

/// Seats for `sleeper`, of which a storm makes many, and for `matlab`, of which one stays.
fn policy() -> String {
    seats(3, "").replace("[\"matlab\"]", "[\"matlab\", \"sleeper\"]")
}

/// The slots that etcd has, each with the revision at which it was taken.
pub(super) fn slots(etcd: &Etcd, prefix: &str) -> Vec<(String, u64)> {
    let told = eventually("the slots are told", || {
        etcd.control(&["get", "--prefix", &format!("{prefix}s/"), "-w", "json"])
    });
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let keys = told["kvs"].as_array().cloned().unwrap_or_default();
    let of = |key: &serde_json::Value| {
        (key["key"].as_str().expect("a key").to_owned(), key["mod_revision"].as_u64().expect("a revision"))
    };
    keys.iter().map(of).collect()
}

/// A storm over three hosts while this is done to etcd again and again: never a program above the limit, and
/// who had a slot before has it still.
fn goes_on_while(times: usize, disturb: impl Fn(&Etcd, usize)) {
    let etcd = Etcd::new();
    let prefix = Etcd::prefix();
    let settings = etcd.settings(&prefix, LASTING);
    let hosts = ["lab1", "lab2", "lab3"].map(|name| Host::new(name, &policy(), &settings));
    let mut stays = hosts[0].test().args(["run", "--wait", "forever", "--", "matlab"]).spawn();
    let before = slots(&etcd, &prefix);
    assert_eq!(before.len(), 1);
    let done = Cell::new(0);
    let again = || {
        disturb(&etcd, done.get());
        done.set(done.get() + 1);
    };
    let is_enough =
        |seen: &super::storm::Seen| done.get() >= times && seen.started() > 10 && seen.was_at_limit();
    let seen = storm(&hosts, 2, 2, again, is_enough);
    tell(&format!("{} times: {seen:?}", done.get()));
    assert!(seen.most() == 2 && seen.started() > 10, "{seen:?}");
    assert!(stays.answers());
    eventually("the storm is over", || (slots(&etcd, &prefix).len() == 1).then_some(()));
    assert_eq!(slots(&etcd, &prefix), before);
    for host in &hosts {
        eventually("one is counted", || (held(host) == 1).then_some(()));
    }
}

/// A member killed for good is replaced by a new one, each in its turn.
#[test]
fn members_are_replaced() {
    needs_etcd!();
    goes_on_while(3, |etcd, done| etcd.replace(done % 3));
}

/// A cluster of etcd upgraded under load: one member after the other becomes another version.
#[test]
#[ignore = "needs another etcd: RUNGATE_NEWER_ETCD=/path/to/etcd"]
fn etcd_is_upgraded() {
    needs_etcd!();
    let newer = std::env::var_os("RUNGATE_NEWER_ETCD").expect("RUNGATE_NEWER_ETCD names another etcd");
    goes_on_while(3, |etcd, done| etcd.upgrade(done % 3, Path::new(&newer)));
}

/// A cluster of etcd compacted, defragmented under load.
#[test]
fn etcd_is_compacted_and_defragmented() {
    needs_etcd!();
    goes_on_while(5, |etcd, _| etcd.compact());
}

/// A host whose key is deleted writes it again as soon as it learns of that, long before it would check it.
#[test]
fn a_deleted_key_of_a_host_is_written_again() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let prefix = Etcd::prefix();
    let host = Host::new("lab1", &seats(1, ""), &etcd.settings(&prefix, "30m"));
    eventually("it is seen", || {
        let known = status(&host)["site"]["hosts"].as_array().map_or(0, Vec::len);
        (known == 1).then_some(())
    });
    etcd.control(&["del", &format!("{prefix}h/lab1")]).expect("it is deleted");
    let written = || etcd.control(&["get", &format!("{prefix}h/lab1")]).filter(|said| !said.is_empty());
    eventually("it is written again", written);
}

/// A watch over the gateway can be compacted away: start over from a fresh read.
#[test]
fn what_was_compacted_away_is_read_anew() {
    needs_etcd!();
    let etcd = Etcd::new();
    let prefix = Etcd::prefix();
    let ways = Ways::to(&etcd);
    let deaf = Host::new("lab1", &seats(2, ""), &ways.settings(&prefix, LASTING));
    let other = Host::new("lab2", &seats(2, ""), &etcd.settings(&prefix, LASTING));
    let goes = other.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&deaf) == 1).then_some(()));
    ways.deafen(true);
    drop(goes);
    let _stays = other.test().args(["run", "--", "matlab"]).spawn();
    let _more = other.test().args(["run", "--", "matlab"]).spawn();
    eventually("both are taken", || (slots(&etcd, &prefix).len() == 2).then_some(()));
    etcd.compact();
    // What is on its way over watches that were there before would arrive nevertheless.
    ways.befall("/v3/watch", Mishap::Asked);
    eventually("another watch begins", || ways.has_befallen().then_some(()));
    ways.deafen(false);
    eventually("both are seen", || (held(&deaf) == 2).then_some(()));
    deaf.test().args(["run", "-q", "-n", "--", "matlab"]).status(75);
}
