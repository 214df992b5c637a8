//! A lock file, with every file that stood in its place before: the storm moves those aside (to `old/`), and whoever holds a slot
//! of one goes on holding it.

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

/// So many bytes belong to the waiters of each limit, and the first of them to limit 1.
const STRETCH: i64 = 1 << 43;

/// Somebody in line.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Ticket {
    /// When it arrived, in 2^-14 s since boot.
    pub(crate) number: i64,
    pub(crate) limit: i64,
    pub(crate) pid: i32,
    /// How often it has come to run; none where it is not asleep.
    pub(crate) runs: Option<u64>,
}

/// What was true at one moment: nobody took anything while it was looked at.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) inode: u64,
    /// When.
    pub(crate) taken: f64,
    pub(crate) held: Vec<HeldSlot>,
    pub(crate) line: Vec<Ticket>,
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

    /// Opens what is new: none of these files is ever closed, for that would drop the referee's mutex.
    pub(crate) fn refresh(&mut self) {
        let prefix = format!("{}.", self.name);
        let old = fs::read_dir(self.directory.join("old")).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = old
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
            .map(|entry| entry.path())
            .collect();
        paths.push(self.directory.join("repositories").join(&self.name));
        let mut current = None;
        for path in paths {
            let Ok(found) = fs::metadata(&path) else { continue };
            current = Some(found.ino());
            if self.files.iter().any(|(inode, _)| *inode == found.ino()) {
                continue;
            }
            let Ok(file) = File::options().read(true).write(true).open(&path) else { continue };
            let inode = file.metadata().map_or(0, |found| found.ino());
            if self.files.iter().all(|(known, _)| *known != inode) {
                self.files.push((inode, file));
            }
            current = Some(inode);
        }
        // The one at the path now was looked at last.
        self.files.sort_by_key(|(inode, _)| Some(*inode) == current);
    }

    /// Looks at the file that is there now; none while somebody has its mutex.
    pub(crate) fn snapshot(&self) -> io::Result<Option<Snapshot>> {
        let Some((inode, file)) = self.files.last() else { return Ok(None) };
        match fcntl(file.as_fd(), FcntlArg::F_SETLK(&lock_range(libc::F_WRLCK, 0, 8))) {
            Err(Errno::EAGAIN | Errno::EACCES) => return Ok(None),
            locked => locked?,
        };
        let taken = process::now();
        let held = held_slots(file);
        let mut line = Vec::new();
        let waiting = tickets(file, STRETCH, i64::MAX, &mut line);
        fcntl(file.as_fd(), FcntlArg::F_SETLK(&lock_range(libc::F_UNLCK, 0, 8)))?;
        waiting?;
        Ok(Some(Snapshot { inode: *inode, taken, held: held?, line }))
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

fn tickets(file: &File, start: i64, end: i64, line: &mut Vec<Ticket>) -> io::Result<()> {
    let Some(lock) = conflicting_lock(file, start, end)? else { return Ok(()) };
    let first = lock.l_start.max(start);
    let last = if lock.l_len == 0 { end } else { end.min(lock.l_start + lock.l_len) };
    tickets(file, start, first, line)?;
    // Whoever sleeps behind a ticket holds nothing; a ticket is one byte.
    let runs = process::runs(lock.l_pid);
    line.push(Ticket { number: first % STRETCH, limit: first / STRETCH, pid: lock.l_pid, runs });
    tickets(file, last, end, line)
}
