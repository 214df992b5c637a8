//! The thread that writes the policy of the site's repositories into the host's key, so that people see where
//! hosts differ. No decision uses it. It takes the policy that the judges have already read.

use std::{collections::BTreeMap, sync::mpsc::Sender, thread, time::Duration};

use super::lease_keeper::Command;
use crate::{agent::judge::Judge, judge::terms::keyword::Keeper, policy::Policy};

/// How often it checks at most whether the policy has changed.
const INTERVAL: Duration = Duration::from_secs(5);

/// How many repositories it publishes.
const MOST: usize = 100;

/// Runs while its reports are received.
pub(super) fn start(commands: Sender<Command>, ttl: Duration, judge: Judge) {
    thread::spawn(move || {
        let mut told = BTreeMap::new();
        loop {
            // Launches report its faults.
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
