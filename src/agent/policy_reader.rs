//! The policy as the agent reads it. A delegated file may be on a file server that does not answer, and
//! nothing wakes a thread that waits for it. So each reading has its own thread. If it takes long, another
//! one is started. That one leaves out the delegated file that the first is at, as if it had faults: only the
//! launches that the file applies to are refused.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use jiff::Timestamp;

use crate::{
    policy::{Faults, Policy, Sources, Watch},
    sys::Stamp,
};

/// How long a reading may take until another one is started, and how long that one may take.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_AGAIN: Duration = Duration::from_millis(600);

/// For how long a reading is at a delegated file until others leave that file out.
const SILENT_AFTER: Duration = Duration::from_millis(500);

/// How many readings there are, without those that are at such a file: a disk may be slow as well.
const MOST: usize = 16;

/// How long a policy counts from which a delegated file is left out. The cause may be outside of its files: a
/// directory above that file, a server, or an account.
const WITHHELD_FOR: Duration = Duration::from_secs(1);

/// A policy that was read.
#[derive(Clone, Debug)]
struct Read {
    policy: Arc<Policy>,
    /// Whether the kernel alone can tell that it is unchanged.
    is_local: bool,
    when: Instant,
}

impl Read {
    /// Whether it counts while its files are unchanged.
    fn counts(&self) -> bool {
        self.policy.withheld().is_empty() || self.when.elapsed() < WITHHELD_FOR
    }
}

/// Reads the system's policy for all judges.
#[derive(Debug, Default)]
pub(super) struct PolicyReader {
    /// The policy that was read last.
    last: Mutex<Option<Read>>,
    /// One caller at a time reads.
    turn: Mutex<()>,
    readings: Arc<Readings>,
}

impl PolicyReader {
    /// The policy that was read last, if it certainly is the current one. This never waits.
    pub(super) fn at_once(&self) -> Option<Arc<Policy>> {
        let last = self.last.try_lock().ok()?.clone()?;
        (last.is_local && last.counts() && last.policy.is_surely_fresh()).then_some(last.policy)
    }

    /// The generation that the policy that was read last has now. This never waits.
    pub(super) fn generation(&self) -> Option<u16> {
        let last = self.last.try_lock().ok()?.clone()?;
        Some(last.policy.generation(Timestamp::now()))
    }

    /// The policy as it is now. A fault in a delegated file affects only the launches that the file applies
    /// to.
    pub(super) fn current(&self) -> Result<Arc<Policy>, Faults> {
        if let Some(policy) = self.at_once() {
            return Ok(policy);
        }
        // The disk may be slow, so the lock is given back before it is asked.
        let last = lock(&self.last).clone();
        // Without delegated files, every file is the site's own.
        let is_current = |last: &Read| last.policy.delegations().is_empty() && !last.policy.is_stale();
        last.filter(is_current).map_or_else(|| self.read_unless_unchanged(true), |last| Ok(last.policy))
    }

    /// The same, read in any case.
    pub(super) fn read(&self) -> Result<Arc<Policy>, Faults> {
        self.read_unless_unchanged(false)
    }

    fn read_unless_unchanged(&self, may_be_last: bool) -> Result<Arc<Policy>, Faults> {
        let _turn = lock(&self.turn);
        let mut known = lock(&self.last).clone().filter(|last| may_be_last && last.counts());
        let (done, results) = channel();
        let mut patience = PATIENCE;
        let read = loop {
            if self.readings.may_begin() {
                let (reading, known) = (Readings::begin(&self.readings), known.take());
                let done = done.clone();
                let thread = thread::Builder::new().name("policy".to_owned()).spawn(move || {
                    // If another reading was faster, the result of this one is not needed.
                    let _ = done.send(reading.read(known));
                });
                if thread.is_err() {
                    // The host has no room for another thread.
                    break Readings::begin(&self.readings).read(None);
                }
            }
            match results.recv_timeout(patience) {
                Ok(read) => break read,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => patience = PATIENCE_AGAIN,
            }
        };
        *lock(&self.last) = read.as_ref().ok().cloned();
        read.map(|read| read.policy)
    }
}

/// Where a reading is: at a delegated file with this state of its name, which may be a link, and since when.
type At = (PathBuf, Option<Stamp>, Instant);

/// The readings that have not ended, each with the delegated file that it is at.
#[derive(Debug, Default)]
struct Readings(Mutex<Vec<(u64, Option<At>)>>);

impl Readings {
    fn begin(this: &Arc<Self>) -> Reading {
        let mut readings = lock(&this.0);
        let number = readings.last().map_or(0, |(last, _)| last + 1);
        readings.push((number, None));
        Reading { readings: Arc::clone(this), number }
    }

    fn may_begin(&self) -> bool {
        let is_stuck = |at: &Option<At>| at.as_ref().is_some_and(|(_, _, since)| is_silent(*since));
        lock(&self.0).iter().filter(|(_, at)| !is_stuck(at)).count() < MOST
    }
}

fn is_silent(since: Instant) -> bool {
    since.elapsed() > SILENT_AFTER
}

/// One of them, in its thread.
struct Reading {
    readings: Arc<Readings>,
    number: u64,
}

impl Reading {
    fn read(&self, known: Option<Read>) -> Result<Read, Faults> {
        if let Some(known) = known.filter(|known| !known.policy.is_stale_watched(self)) {
            return Ok(known);
        }
        let policy = Arc::new(Policy::load_watched(&Sources::system(0), self)?);
        Ok(Read { is_local: policy.is_local(self), policy, when: Instant::now() })
    }

    fn is_at(&self, file: Option<At>) {
        let mut readings = lock(&self.readings.0);
        if let Some((_, at)) = readings.iter_mut().find(|(number, _)| *number == self.number) {
            *at = file;
        }
    }
}

impl Watch for Reading {
    fn begin(&self, file: &Path) -> bool {
        // Another file may be there by now.
        let link = Stamp::of_link(file);
        let is_there = |(known, of, since): &At| known == file && *of == link && is_silent(*since);
        let is_silent = lock(&self.readings.0).iter().filter_map(|(_, at)| at.as_ref()).any(is_there);
        if !is_silent {
            self.is_at(Some((file.to_owned(), link, Instant::now())));
        }
        !is_silent
    }

    fn end(&self) {
        self.is_at(None);
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        lock(&self.readings.0).retain(|(number, _)| *number != self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{fs, iter, os::unix::fs::symlink};

    use super::*;

    impl PolicyReader {
        /// It has just read this, from files of this host or others.
        pub(in crate::agent) fn of(text: &str, is_local: bool) -> Self {
            let reader = Self::default();
            reader.has_read(text, is_local);
            reader
        }

        /// The same later.
        pub(in crate::agent) fn has_read(&self, text: &str, is_local: bool) {
            let policy = Arc::new(Policy::of_text("/etc/rungate/policy.toml", text).expect("a policy"));
            *lock(&self.last) = Some(Read { policy, is_local, when: Instant::now() });
        }
    }

    /// A policy that was read counts as long as its files are unchanged. If they are on other hosts, that is
    /// not known at once.
    #[test]
    fn a_policy_counts_while_its_files_are_unchanged() {
        for is_local in [true, false] {
            let reader = PolicyReader::of("[repository.seats]\nlimit = 1\n", is_local);
            let last = lock(&reader.last).clone().expect("it was read").policy;
            let is_last = |policy: Arc<Policy>| Arc::ptr_eq(&policy, &last);
            assert_eq!(reader.at_once().is_some_and(is_last), is_local);
            assert!(reader.current().is_ok_and(is_last));
            assert_eq!(reader.generation(), Some(last.generation(Timestamp::now())));
        }
        assert_eq!(PolicyReader::default().generation(), None);
        assert!(PolicyReader::default().at_once().is_none(), "nothing was read");
    }

    /// Puts a reading at a file, as it is now. The file is silent since long ago, or answers.
    fn put(reading: &Reading, file: &Path, is_silent: bool) {
        let now = Instant::now();
        let since =
            if is_silent { now.checked_sub(SILENT_AFTER * 3 / 2) } else { now.checked_add(PATIENCE * 3600) };
        reading.is_at(Some((file.to_owned(), Stamp::of_link(file), since.expect("a moment"))));
    }

    /// How many readings are at a file.
    fn at_files(readings: &Readings) -> usize {
        lock(&readings.0).iter().filter(|(_, at)| at.is_some()).count()
    }

    /// The number of readings is bounded, without those that a silent file keeps. One that ends makes room,
    /// and takes no other one with it.
    #[test]
    fn readings_at_silent_files_do_not_count() {
        let readings = Arc::<Readings>::default();
        let mut all: Vec<Reading> = iter::repeat_with(|| Readings::begin(&readings)).take(MOST - 1).collect();
        assert!(readings.may_begin());
        all.push(Readings::begin(&readings));
        assert!(!readings.may_begin());
        put(&all[3], Path::new("/nowhere"), true);
        assert!(readings.may_begin(), "it is at a silent file");
        all[3].end();
        assert!(!readings.may_begin(), "the file has answered");
        drop(all.remove(5));
        assert!(readings.may_begin());
        let last = Readings::begin(&readings);
        drop(all);
        put(&last, Path::new("/nowhere"), true);
        assert_eq!(at_files(&readings), 1);
    }

    /// A delegated file is left out as long as another reading is silent at it. Other files are read, also
    /// one that has its name by now.
    #[test]
    fn a_file_is_left_out_while_another_reading_is_silent_at_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let [file, other] = ["file", "other"].map(|name| directory.path().join(name));
        for file in [&file, &other] {
            fs::write(file, "").expect("a file");
        }
        let readings = Arc::<Readings>::default();
        let [first, second] = [(); 2].map(|()| Readings::begin(&readings));
        let is_read = |file: &Path| {
            let is_read = second.begin(file);
            assert_eq!(at_files(&readings), 1 + usize::from(is_read));
            second.end();
            is_read
        };
        assert!(first.begin(&file));
        put(&first, &file, false);
        assert!(is_read(&file), "it is not silent yet");
        put(&first, &file, true);
        assert!(!is_read(&file));
        assert!(is_read(&other));
        assert!(!is_read(&file), "it is silent still");
        fs::remove_file(&file).expect("a file");
        symlink(&other, &file).expect("a link");
        assert!(is_read(&file), "it is another one");
        put(&first, &file, true);
        assert!(!is_read(&file));
        put(&first, &other, true);
        assert!(is_read(&file), "it has answered");
    }
}
