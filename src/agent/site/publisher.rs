//! The thread that writes what the policy says of the site's repositories into the host's key, so that people
//! see where hosts differ. No decision uses it. It takes the policy that the judges have already read.

use std::{collections::BTreeMap, sync::mpsc::Sender, thread, time::Duration};

use super::lease_keeper::Command;
use crate::{agent::judge::Judge, judge::terms::keyword::Keeper, policy::Policy};

/// How often it is looked whether the policy has changed, at most.
const INTERVAL: Duration = Duration::from_secs(5);

/// How many repositories are told of.
const MOST: usize = 100;

/// Goes on for as long as anybody listens.
pub(super) fn start(commands: Sender<Command>, ttl: Duration, judge: Judge) {
    thread::spawn(move || {
        let mut told = BTreeMap::new();
        loop {
            // Whoever launches is told of its faults.
            let known = judge.policy().ok().map(|policy| repositories(&policy));
            if let Some(known) = known.filter(|known| *known != told) {
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
