//! The mutex of a lock file: a write lock of the process on its first eight bytes, as exectimes takes it. A
//! launch has it while it looks for slots and takes them, and no longer. The kernel releases it when its
//! holder dies. The wait for it is bounded, because a holder may be stopped.

use std::{
    os::fd::AsFd,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use super::{
    MUTEX, RepositoryError,
    error::{call, failed_call},
    file::LockFile,
};
use crate::sys::{Alarm, Bytes, Conflict, Errno, Mode, Process, record_lock};

/// How long a launch waits for mutexes that one process keeps.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How long it waits at most if many processes have it in turn. A thousand simultaneous launches on a busy
/// host are no reason to give up.
pub const LONGEST_PATIENCE: Duration = Duration::from_secs(60);

/// How often the wait is interrupted once its time is over. Not before, because an interrupted waiter loses
/// its turn, and a thousand simultaneous launches would lose their order.
const INTERVAL: Duration = Duration::from_millis(100);

/// The mutex of a file, held until dropped.
#[must_use = "the mutex is given back when it is dropped"]
pub struct MutexGuard {
    file: Rc<LockFile>,
}

impl MutexGuard {
    /// Takes the mutex, and waits for it, at most this long.
    pub fn lock(file: &Rc<LockFile>, longest: Duration) -> Result<Self, RepositoryError> {
        if !file.try_lock(&MUTEX)? {
            wait(file, longest)?;
        }
        Ok(Self { file: Rc::clone(file) })
    }
}

impl Drop for MutexGuard {
    fn drop(&mut self) {
        // Releasing a held lock cannot fail. If it did, the end of the process or of the descriptor would
        // release it.
        let _ = self.file.unlock(&MUTEX);
    }
}

/// The process that has the mutex, as this process sees it.
fn holder(file: &LockFile) -> Result<Option<Conflict>, RepositoryError> {
    record_lock::conflict_with_process(file.as_fd(), &MUTEX)
        .map_err(|errno| call("look at the locks of", file.path(), "fcntl(F_GETLK)", errno))
}

fn wait(file: &LockFile, longest: Duration) -> Result<(), RepositoryError> {
    let begun = Instant::now();
    let first = holder(file)?;
    let alarm = Alarm::after(longest.max(Duration::from_millis(1)), INTERVAL)
        .map_err(failed_call("lock", file.path()))?;
    while begun.elapsed() < longest {
        match record_lock::lock(file.as_fd(), &MUTEX, Mode::Write) {
            Ok(()) => return Ok(()),
            Err(Errno::EINTR) => {}
            // The kernel reports a possible deadlock, because it does not know the order in which we lock.
            // Look again.
            Err(Errno::EDEADLK) => thread::sleep(Duration::from_millis(1)),
            Err(errno) => return Err(call("lock", file.path(), "fcntl(F_SETLKW)", errno)),
        }
    }
    drop(alarm);
    match holder(file)? {
        None if file.try_lock(&MUTEX)? => Ok(()),
        last => Err(RepositoryError::MutexBusy {
            path: file.path().to_owned(),
            waited: begun.elapsed(),
            was_handed_on: was_handed_on(first.as_ref(), last.as_ref()),
            holder: last
                .and_then(|conflict| conflict.pid.or_else(|| keeps_open(file)))
                .and_then(Process::find),
        }),
    }
}

/// A process with a descriptor of the description that keeps the mutex. The kernel names no process for such
/// a lock, but shows it to root and to the user of that process.
fn keeps_open(file: &LockFile) -> Option<i32> {
    let locks = record_lock::locks_of_descriptions(file.id());
    let is_mutex = |bytes: &Bytes| bytes.start() <= MUTEX.end() && MUTEX.start() <= bytes.end();
    locks.into_iter().find(|(_, bytes)| is_mutex(bytes)).map(|(pid, _)| pid)
}

/// Whether other processes had the mutex meanwhile, as far as two checks show. If one check found it free, no
/// process has kept it all the time. A holder in another PID namespace cannot be recognized.
fn was_handed_on(first: Option<&Conflict>, last: Option<&Conflict>) -> bool {
    match (first, last) {
        (Some(first), Some(last)) => first.pid != last.pid,
        (None, _) | (_, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutex_that_was_seen_free_is_kept_by_nobody() {
        let of = |pid| Conflict { bytes: MUTEX, pid };
        let (one, other, hidden) = (of(Some(1)), of(Some(2)), of(None));
        for (first, last, expected) in [
            (Some(&one), Some(&one), false),
            (Some(&one), Some(&other), true),
            (Some(&hidden), Some(&hidden), false),
            (None, Some(&one), true),
            (Some(&one), None, true),
        ] {
            assert_eq!(was_handed_on(first, last), expected, "{first:?} {last:?}");
        }
    }
}
