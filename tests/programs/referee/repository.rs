//! A lock file, with every file that stood in its place before: the storm moves those aside (to `old/`), and
//! whoever holds a slot of one goes on holding it.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use super::held_slots::{HeldSlot, SLOT_ZERO, conflicting_lock, held_slots};
use super::lock_range::lock_range;
use super::process;

/// Those who wait in the queue have their locks from here up to there: by number, policy and limit.
const STANDING: std::ops::Range<i64> = 1 << 61..1 << 62;

/// So many bytes for each number.
const STRETCH: i64 = 1 << 32;

/// So many bytes for each policy, and one for each limit.
const LIMITS: i64 = 1 << 20;

/// Under its number, each of them also locks one byte from here on, and one more for each beat.
const PLACES: i64 = 1 << 62;

/// So many bytes for each place.
const BEATS: i64 = 1 << 20;

/// Somebody in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) number: i64,
    pub(crate) pid: i32,
    pub(crate) limit: i64,
    /// How long the lock is that tells of its beats.
    pub(crate) pulse: i64,
}

/// What was true at one moment: nobody took anything while it was checked.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) inode: u64,
    /// When.
    pub(crate) taken: f64,
    pub(crate) held: Vec<HeldSlot>,
    pub(crate) line: Vec<Ticket>,
}

/// The same, with all processes that keep each slot, as far as they are known.
pub(crate) struct Context {
    pub(crate) snapshot: Snapshot,
    pub(crate) keepers: Vec<(HeldSlot, Vec<i32>)>,
}

/// A repository.
pub(crate) struct Repository {
    directory: PathBuf,
    name: String,
    /// The newest last.
    files: Vec<(u64, File)>,
}

impl Repository {
    pub(crate) fn new(directory: &Path, name: &str) -> Self {
        Self { directory: directory.to_owned(), name: name.to_owned(), files: Vec::new() }
    }

    /// Opens what is new. What is moved aside meanwhile is found at the one place or at the other.
    pub(crate) fn refresh(&mut self) {
        let path = self.directory.join("repositories").join(&self.name);
        let current = fs::metadata(&path).map(|found| found.ino()).ok();
        self.open(&path);
        let prefix = format!("{}.", self.name);
        let old = fs::read_dir(self.directory.join("old")).into_iter().flatten().flatten();
        for entry in old.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)) {
            self.open(&entry.path());
        }
        // The one at the path comes last.
        self.files.sort_by_key(|(inode, _)| Some(*inode) == current);
    }

    fn open(&mut self, path: &Path) {
        let is_known = |inode| self.files.iter().any(|(known, _): &(u64, File)| *known == inode);
        if fs::metadata(path).is_ok_and(|found| !is_known(found.ino()))
            && let Ok(file) = File::options().read(true).write(true).open(path)
            && let Ok(inode) = file.metadata().map(|found| found.ino())
            && !is_known(inode)
        {
            self.files.push((inode, file));
        }
    }

    /// Looks at the file that exists now; none while somebody has its mutex.
    pub(crate) fn snapshot(&self) -> io::Result<Option<Snapshot>> {
        self.under_the_mutex(|inode, file| {
            let taken = process::now();
            Ok(Snapshot { inode, taken, held: held_slots(file)?, line: line(file)? })
        })
    }

    /// The same, once it is worth asking who keeps what. As long as the mutex is held nobody gets a slot:
    /// whoever is found to keep one has kept it since before.
    pub(crate) fn examine(&self, processes: &[i32]) -> io::Result<Option<Context>> {
        self.under_the_mutex(|inode, file| {
            let held = held_slots(file)?;
            let described: Vec<(i32, Vec<(i64, i64)>)> =
                processes.iter().map(|pid| (*pid, process::described_locks(*pid, inode))).collect();
            let keepers_of = |slot: &HeldSlot| {
                let byte = SLOT_ZERO + slot.number;
                let has =
                    |locks: &[(i64, i64)]| locks.iter().any(|(first, last)| (*first..=*last).contains(&byte));
                let described = described.iter().filter(|(_, locks)| has(locks)).map(|(pid, _)| *pid);
                if slot.pid > 0 { vec![slot.pid] } else { described.collect() }
            };
            let keepers = held.iter().map(|slot| (*slot, keepers_of(slot))).collect();
            let snapshot = Snapshot { inode, taken: process::now(), held, line: line(file)? };
            Ok(Context { snapshot, keepers })
        })
    }

    /// Whether a slot is kept by processes of this kind, and by no others of these.
    pub(crate) fn is_kept_by(
        &self,
        slot: i64,
        processes: impl Iterator<Item = i32>,
        is_of_the_kind: impl Fn(i32) -> bool,
    ) -> bool {
        let byte = SLOT_ZERO + slot;
        let has = |pid: &i32| {
            let mut locks = self.files.iter().flat_map(|(inode, _)| process::described_locks(*pid, *inode));
            locks.any(|(first, last)| (first..=last).contains(&byte))
        };
        let keepers: Vec<i32> = processes.filter(has).collect();
        !keepers.is_empty() && keepers.into_iter().all(is_of_the_kind)
    }

    fn under_the_mutex<T>(&self, look: impl FnOnce(u64, &File) -> io::Result<T>) -> io::Result<Option<T>> {
        let Some((inode, file)) = self.files.last() else { return Ok(None) };
        match fcntl(file.as_fd(), FcntlArg::F_SETLK(&lock_range(libc::F_WRLCK, 0, 8))) {
            Err(Errno::EAGAIN | Errno::EACCES) => return Ok(None),
            locked => locked?,
        };
        let seen = look(*inode, file);
        fcntl(file.as_fd(), FcntlArg::F_SETLK(&lock_range(libc::F_UNLCK, 0, 8)))?;
        seen.map(Some)
    }

    /// Who holds this slot, in every file that ever stood here.
    pub(crate) fn holders_of(&self, slot: i64) -> io::Result<Vec<i32>> {
        let byte = SLOT_ZERO + slot;
        let locks = self.files.iter().map(|(_, file)| conflicting_lock(file, byte, byte + 1));
        let locks = locks.collect::<io::Result<Vec<_>>>()?;
        Ok(locks.into_iter().flatten().map(|lock| lock.l_pid).collect())
    }

    /// Every slot that is held, in every file that ever stood here.
    pub(crate) fn held(&self) -> io::Result<Vec<HeldSlot>> {
        let held = self.files.iter().map(|(_, file)| held_slots(file));
        Ok(held.collect::<io::Result<Vec<_>>>()?.concat())
    }
}

fn line(file: &File) -> io::Result<Vec<Ticket>> {
    let mut line = Vec::new();
    tickets(file, STANDING.start, STANDING.end, &mut line)?;
    Ok(line)
}

fn tickets(file: &File, start: i64, end: i64, line: &mut Vec<Ticket>) -> io::Result<()> {
    let Some(lock) = conflicting_lock(file, start, end)? else { return Ok(()) };
    let first = lock.l_start.max(start);
    let last = if lock.l_len == 0 { end } else { end.min(lock.l_start + lock.l_len) };
    tickets(file, start, first, line)?;
    let number = (first - STANDING.start) / STRETCH;
    let place = PLACES + number * BEATS;
    let place = conflicting_lock(file, place, place + 1)?;
    // Whoever has slept behind another may have its byte for a moment, and has no place under its number.
    if let Some(place) = place.filter(|place| place.l_pid == lock.l_pid) {
        line.push(Ticket { number, pid: lock.l_pid, limit: first % LIMITS, pulse: place.l_len });
    }
    tickets(file, last, end, line)
}
