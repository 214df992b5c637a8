//! The thread that looks now and then how etcd itself is, for whoever asks the doctor. Nothing waits for it.

use std::{thread, time::Duration};

use super::{
    etcd::Client,
    key::Keys,
    report::{Report, Reporter},
};

/// How often, in ttls.
const EVERY: u32 = 10;

/// How long it rests where nobody answered.
const REST: Duration = Duration::from_secs(5);

pub(super) fn start(client: Client, keys: Keys, ttl: Duration, reporter: Reporter) {
    thread::spawn(move || {
        loop {
            // What is wrong with the way there is told by others.
            let rest = match client.condition(&keys.all()) {
                Ok(condition) if !reporter.tell(Report::ClusterStatus(condition)) => return,
                Ok(_) => ttl * EVERY,
                Err(_) => REST,
            };
            thread::sleep(rest);
        }
    });
}
