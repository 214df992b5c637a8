//! The mutex of a lock file: a write lock of the process on its first eight bytes, as exectimes takes it. It is held while
//! a launch looks for slots and takes them, and no longer; the kernel gives it back when its holder dies. The wait for it
//! is bounded, because a holder may be stopped.

use std::{
    os::fd::AsFd,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    deliberate_fault::DeliberateFault,
    repository::{
        error::RepositoryError,
        file::{LockFile, call, failed_call},
        layout::MUTEX,
    },
    sys::{
        alarm::Alarm,
        failure::Errno,
        process::Process,
        record_lock::{self, Mode},
    },
};

/// How long a launch waits for one mutex.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How often the wait is interrupted once its time is over; not before, because whoever is interrupted has lost his place among
/// those who wait, and a thousand launches at once need all their patience in the order in which they came.
const INTERVAL: Duration = Duration::from_millis(100);

/// The mutex of a file, held until dropped.
#[must_use = "the mutex is given back when it is dropped"]
pub struct MutexGuard {
    file: Rc<LockFile>,
}

impl MutexGuard {
    /// Takes the mutex, and waits for it up to [`PATIENCE`].
    pub fn lock(file: &Rc<LockFile>) -> Result<Self, RepositoryError> {
        if !DeliberateFault::NoMutex.is_on() && !file.try_lock(&MUTEX)? {
            wait(file)?;
        }
        Ok(Self { file: Rc::clone(file) })
    }
}

impl Drop for MutexGuard {
    fn drop(&mut self) {
        // It cannot fail for a lock that is held; and if it did, the end of the process or of the descriptor would free it.
        let _ = self.file.unlock(&MUTEX);
    }
}

fn wait(file: &LockFile) -> Result<(), RepositoryError> {
    let begun = Instant::now();
    let alarm = Alarm::after(PATIENCE, INTERVAL).map_err(failed_call("lock", file.path()))?;
    while begun.elapsed() < PATIENCE {
        match record_lock::lock(file.as_fd(), &MUTEX, Mode::Write) {
            Ok(()) => return Ok(()),
            Err(Errno::EINTR) => {}
            // The kernel suspects a circle of processes that hold slots and wait: it knows nothing of our order. Look again.
            Err(Errno::EDEADLK) => thread::sleep(Duration::from_millis(1)),
            Err(errno) => return Err(call("lock", file.path(), "fcntl(F_SETLKW)", errno)),
        }
    }
    drop(alarm);
    let holder = record_lock::conflict_with_process(file.as_fd(), &MUTEX)
        .map_err(|errno| call("look at the locks of", file.path(), "fcntl(F_GETLK)", errno))?;
    match holder {
        None if file.try_lock(&MUTEX)? => Ok(()),
        holder => Err(RepositoryError::MutexBusy {
            path: file.path().to_owned(),
            waited: begun.elapsed(),
            holder: holder.and_then(|conflict| conflict.pid).and_then(Process::find),
        }),
    }
}
