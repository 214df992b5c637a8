//! The thread that reads the policy for the other hosts: what it says of the repositories of the site goes
//! into the host's key, so that whoever looks sees where hosts differ. Nobody decides by it.

use std::{collections::BTreeMap, sync::mpsc::Sender, thread, time::Duration};

use super::registrar::Command;
use crate::{
    policy::{Policy, Sources},
    terms::keeper::Keeper,
};

/// How often it is looked whether the policy has changed, at most.
const INTERVAL: Duration = Duration::from_secs(5);

/// How many repositories are told of.
const MOST: usize = 100;

/// Goes on for as long as anybody listens.
pub(super) fn start(commands: Sender<Command>, ttl: Duration) {
    thread::spawn(move || {
        let mut policy: Option<Policy> = None;
        let mut told = BTreeMap::new();
        loop {
            if policy.as_ref().is_none_or(Policy::is_stale) {
                // Whoever launches is told of its faults.
                policy = Policy::load(&Sources::system(0)).ok();
            }
            if let Some(known) = policy.as_ref().map(repositories).filter(|known| *known != told) {
                told.clone_from(&known);
                if commands.send(Command::Publish(known)).is_err() {
                    return;
                }
            }
            thread::sleep(INTERVAL.min(ttl / 3));
        }
    });
}

fn repositories(policy: &Policy) -> BTreeMap<String, String> {
    let all = policy.repositories().iter().filter(|known| known.keeper() == Keeper::Site);
    all.take(MOST).map(|known| (known.shown_name().to_owned(), known.printed())).collect()
}
