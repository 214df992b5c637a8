//! The thread that feeds the mirror: one complete read, then every change since. If changes were compacted
//! before they were received, or on request, it starts over with a complete read. Every third of the ttl the
//! watch is restarted, after a check whether it is behind. A dead connection looks like one on which nothing
//! happens. It also checks whether the received changes are complete and correct.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use super::{
    etcd::{Client, EtcdError, Heard},
    key::Keys,
    pending::{Report, Reporter},
};
use crate::sys::process;

/// How long it rests after an error.
const REST: Duration = Duration::from_millis(200);

/// Up to this many keys are all compared each time.
const FEW: i64 = 1000;

/// Of more keys, the changed ones are compared, and all of them after this many times.
const ALL_EVERY: u32 = 10;

/// The revision up to which everything was reported, and the etcd.
#[derive(Clone, Copy, Debug)]
struct Known {
    revision: i64,
    generation: u64,
    /// The revision up to which keys were compared, and how often since all were compared.
    compared: i64,
    times: u32,
}

/// Its settings.
pub(super) struct Watcher {
    pub(super) client: Client,
    pub(super) keys: Keys,
    pub(super) longest: Duration,
    pub(super) reporter: Reporter,
    /// Set to request a complete read.
    pub(super) is_doubted: Arc<AtomicBool>,
}

impl Watcher {
    /// Runs while its reports are received.
    pub(super) fn start(self) {
        thread::spawn(move || self.run());
    }

    fn run(self) {
        let mut known: Option<Known> = None;
        loop {
            match self.go_on(&mut known) {
                Ok(true) => {}
                Ok(false) => return,
                Err(trouble) => {
                    if !self.reporter.tell(Report::Deaf(trouble)) {
                        return;
                    }
                    self.client.turn_to_next();
                    thread::sleep(REST);
                }
            }
        }
    }

    /// One watch, to its end. Returns whether there is a receiver.
    fn go_on(&self, known: &mut Option<Known>) -> Result<bool, EtcdError> {
        if self.is_doubted.swap(false, Ordering::Relaxed) {
            *known = None;
        }
        let is_fresh = known.is_none();
        let now = match *known {
            Some(known) => known,
            None => {
                let snapshot = self.client.read(&self.keys.all())?;
                let (revision, generation) = (snapshot.revision, snapshot.generation);
                if !self.reporter.tell(Report::Fresh(snapshot)) {
                    return Ok(false);
                }
                Known { revision, generation, compared: revision, times: 0 }
            }
        };
        let now = known.insert(now);
        // Whether a change is missing: then this watch does not report it any more.
        let sent = process::since_boot().unwrap_or_default();
        let summary = self.client.summary(&self.keys.all())?;
        self.reporter.tell(Report::Compared { sent, revision: summary.last_change });
        // Another etcd has answered, or one whose data were restored.
        if summary.generation != now.generation {
            *known = None;
            return Ok(true);
        }
        // A member that has just joined was observed to omit changes.
        if !is_fresh && !self.list(now, summary.count)? {
            *known = None;
            return Ok(true);
        }
        let mut watch = self.client.watch(&self.keys.all(), now.revision + 1, self.longest)?;
        while let Some(heard) = watch.next()? {
            match heard {
                Heard::Begun(_) => {}
                Heard::Compacted => {
                    *known = None;
                    return Ok(true);
                }
                Heard::Changes(changes) => {
                    if let Some((pair, _)) = changes.last() {
                        now.revision = pair.revision;
                        self.client.has_heard(now.generation, pair.revision);
                    }
                    if !self.reporter.tell(Report::Changes(changes)) {
                        return Ok(false);
                    }
                }
            }
            if self.is_doubted.load(Ordering::Relaxed) {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Reports the keys at the revision up to which everything was reported; `count` is about their present
    /// number. Returns whether it is still the same etcd.
    fn list(&self, known: &mut Known, count: i64) -> Result<bool, EtcdError> {
        known.times = (known.times + 1) % ALL_EVERY;
        let since = if count <= FEW || known.times == 0 { 0 } else { known.compared };
        // Changes that were compacted since cannot be reported any more, and there would be more the next
        // time.
        let Some(inventory) = self.client.inventory(&self.keys.all(), known.revision, since)? else {
            return Ok(true);
        };
        known.compared = known.revision;
        if inventory.generation != known.generation {
            return Ok(false);
        }
        self.reporter.tell(Report::Listed(inventory));
        Ok(true)
    }
}
