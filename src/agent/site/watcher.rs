//! The thread that has the mirror told: one fresh read, then every change since. Where what came in between
//! was compacted away, or whoever owns the mirror says so, it starts over from a fresh read. Every third of
//! the ttl the watch is asked for anew, and before that it is looked whether it is behind: a connection over
//! which nothing comes any more looks like one over which there is nothing to say.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use super::{
    etcd::{Client, Heard, Trouble},
    key::Keys,
    report::{Report, Reporter},
};
use crate::sys::process;

/// How long it rests after something went wrong.
const REST: Duration = Duration::from_millis(200);

/// Up to where everything was told, and of which etcd.
#[derive(Clone, Copy, Debug)]
struct Known {
    revision: i64,
    generation: u64,
}

/// What it goes by.
pub(super) struct Watcher {
    pub(super) client: Client,
    pub(super) keys: Keys,
    pub(super) longest: Duration,
    pub(super) reporter: Reporter,
    /// Set by whoever wants everything read anew.
    pub(super) is_doubted: Arc<AtomicBool>,
}

impl Watcher {
    /// Goes on for as long as anybody listens.
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

    /// One watch, to its end. Says whether anybody listens.
    fn go_on(&self, known: &mut Option<Known>) -> Result<bool, Trouble> {
        if self.is_doubted.swap(false, Ordering::Relaxed) {
            *known = None;
        }
        let before = *known;
        let Known { revision, generation } = match before {
            Some(known) => known,
            None => {
                let snapshot = self.client.read(&self.keys.all())?;
                let (revision, generation) = (snapshot.revision, snapshot.generation);
                if !self.reporter.tell(Report::Fresh(snapshot)) {
                    return Ok(false);
                }
                Known { revision, generation }
            }
        };
        *known = Some(Known { revision, generation });
        // Whether there is anything that should have come: then it is not told over this watch.
        let sent = process::since_boot().unwrap_or_default();
        let summary = self.client.summary(&self.keys.all())?;
        self.reporter.tell(Report::Compared { sent, revision: summary.last_change });
        // Another etcd has answered, or one whose data were restored.
        if summary.generation != generation {
            *known = None;
            return Ok(true);
        }
        // A member that has just come in has been seen to leave changes out.
        if before.is_some()
            && let Some(count) = self.client.count_at(&self.keys.all(), revision)?
        {
            self.reporter.tell(Report::Counted { revision, count });
        }
        let mut watch = self.client.watch(&self.keys.all(), revision + 1, self.longest)?;
        while let Some(heard) = watch.next()? {
            match heard {
                Heard::Begun(_) => {}
                Heard::Compacted => {
                    *known = None;
                    return Ok(true);
                }
                Heard::Changes(changes) => {
                    if let Some((pair, _)) = changes.last() {
                        *known = Some(Known { revision: pair.revision, generation });
                        self.client.has_heard(generation, pair.revision);
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
}
