//! The thread that tells other hosts of the policy: what it says of the repositories of the site goes into
//! the host's key, so that whoever looks sees where hosts differ. Nobody decides by it. It is the policy that
//! the judges have, and where it has changed they have it read already.

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
