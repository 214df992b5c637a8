//! With `keeper = "site"` the same policy holds over all hosts: real members of etcd, and hosts with a
//! name and an agent of their own.

mod absence;
mod certificates;
mod crowd;
mod death;
mod deliberate_faults;
mod end;
mod events;
mod expiry;
mod instruments;
mod jepsen;
mod launches;
mod limits;
mod lines;
mod linger;
mod loss;
mod mirror;
mod names;
mod notices;
mod page;
mod restarts;
mod restore;
mod scene;
mod scenes;
mod settings;
mod shared;
mod storm;
mod unclear;
mod unreachable;
mod upkeep;

use crate::support::{self, Etcd, Host, answered, listing};

/// As short as an agent can be made to go by, for tests in which the site is lost, or nothing is ever given.
const TTL: &str = "3s";

/// What has to be passed until a host that is still there is taken for gone: an agent that does not run for
/// some seconds, because the machine has much else to do, keeps what it has.
const LASTING: &str = "20s";

/// For tests that wait until a host is taken for gone, which it is after two of these, and do something
/// before.
const MISSED: &str = "5s";

/// Seats of the site, for `matlab`; `more` goes into the repository.
fn seats(limit: u32, more: &str) -> String {
    support::seats(limit, &format!("keeper = \"site\"\n{more}"), &["matlab"])
}

/// Hosts of these names that have a policy in common.
fn hosts<const N: usize>(etcd: &Etcd, policy: &str, names: [&str; N]) -> [Host; N] {
    hosts_with(etcd, LASTING, policy, names)
}

/// The same with another ttl.
fn hosts_with<const N: usize>(etcd: &Etcd, ttl: &str, policy: &str, names: [&str; N]) -> [Host; N] {
    let settings = etcd.settings(&Etcd::prefix(), ttl);
    names.map(|name| Host::new(name, policy, &settings))
}

/// How many slots `list` shows on a host.
#[track_caller]
fn held(host: &Host) -> usize {
    count(&listed(host), "holders")
}

/// How many wait, as a host sees it.
#[track_caller]
fn waiting(host: &Host) -> usize {
    count(&listed(host), "waiting")
}

#[track_caller]
fn count(listed: &[serde_json::Value], what: &str) -> usize {
    listed.iter().map(|repository| repository[what].as_array().expect(what).len()).sum()
}

/// What `doctor site --json` says of the site, whatever its status.
#[track_caller]
fn status(host: &Host) -> serde_json::Value {
    let page = answered(&host.test().args(["doctor", "site", "--json"]));
    serde_json::json!({ "site": page["topics"][0]["details"] })
}

#[track_caller]
fn listed(host: &Host) -> Vec<serde_json::Value> {
    listing(&host.test())
}

/// A pattern for the refusal of a full limit.
const REFUSED: &str = "rungate: matlab: not started: the limit is reached\n...\n";
