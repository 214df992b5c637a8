//! "With `keeper = \"site\"` the same policy holds over all hosts": real members of etcd, and hosts with a
//! name and an agent of their own.

mod certificates;
mod death;
#[cfg(feature = "deliberate-faults")]
mod deliberate_faults;
mod instruments;
mod launches;
mod loss;
mod page;
mod scenes;
mod settings;
mod storm;
mod unreachable;

use crate::support::{Etcd, Host};

/// As short as an agent can be made to go by, so that tests need not wait.
const TTL: &str = "3s";

/// Seats of the site, for `matlab`; `more` goes into the repository.
fn seats(limit: u32, more: &str) -> String {
    format!(
        "
        [repository.seats]
        keeper = \"site\"
        limit  = {limit}
        {more}

        [[rule]]
        name     = \"seats\"
        commands = [\"matlab\"]
        acquire  = [\"seats\"]
        "
    )
}

/// Hosts of these names that have a policy in common.
fn hosts<const N: usize>(etcd: &Etcd, policy: &str, names: [&str; N]) -> [Host; N] {
    let settings = etcd.settings(&Etcd::prefix(), TTL);
    names.map(|name| Host::new(name, policy, &settings))
}

/// How many slots `list` shows on a host.
#[track_caller]
fn held(host: &Host) -> usize {
    let listed = listed(host);
    listed.iter().map(|repository| repository["holders"].as_array().expect("holders").len()).sum()
}

/// How many wait, as a host sees it.
#[track_caller]
fn waiting(host: &Host) -> usize {
    let listed = listed(host);
    listed.iter().map(|repository| repository["waiting"].as_array().expect("a line").len()).sum()
}

/// `status --site --json`, whatever its status.
#[track_caller]
fn status(host: &Host) -> serde_json::Value {
    let outcome = host.test().args(["status", "--site", "--json"]).outcome();
    serde_json::from_str(&outcome.stdout).expect(&outcome.stderr)
}

#[track_caller]
fn listed(host: &Host) -> Vec<serde_json::Value> {
    let outcome = host.test().args(["list", "--json"]).outcome();
    let listed: serde_json::Value = serde_json::from_str(&outcome.stdout).expect(&outcome.stderr);
    listed.as_array().expect("a list of repositories").clone()
}

/// A pattern for the refusal of a full limit.
const REFUSED: &str = "rungate: matlab: not started: the limit is reached\n...\n";
