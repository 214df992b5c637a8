//! Removes a lock file that has no use any more. It is removed while its mutex is held and nothing else of it
//! is locked. A launch that opened the file before then takes the mutex, notices that the path does not lead
//! to the file any more, and starts over with a new one. The program exectimes does not check this. So a file
//! that only exectimes has used is kept, and so is a file that was used a short time ago.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    rc::Rc,
    time::{Duration, SystemTime},
};

use super::{
    error::{RepositoryError, call},
    file::{LockFile, Opening},
    header::Header,
    layout::MUTEX,
    lock_path::{BaseDirectories, LockPath},
    mutex::MutexGuard,
};
use crate::{
    judge::terms::{
        keyword::Hold,
        location::Creation,
        pace::{ElapsedFrom, Pause},
    },
    sys::{descriptor::Inherited, record_lock::LAST_BYTE},
};

/// A file that was changed within this time is kept.
const RECENT: Duration = Duration::from_secs(24 * 60 * 60);

/// The result for a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pruned {
    /// It was removed, or would be.
    Removed,
    /// A slot is held, a launch waits, or the file is being used at this moment.
    InUse,
    /// It was used a short time ago, or the time of its last use still counts.
    Remembered,
    /// rungate has never used it, or it is gone.
    NotOurs,
}

/// Removes the file of one member, unless it is in use or remembers something.
pub fn prune(place: &LockPath<'_>, pause: Option<Pause>, dry_run: bool) -> Result<Pruned, RepositoryError> {
    if place.look()?.is_none() {
        return Ok(Pruned::NotOurs);
    }
    let (inherited, bases) = (Inherited::scan(), BaseDirectories::default());
    let opening = Opening { inherited: &inherited, hold: Hold::Process, bases: &bases };
    let creation = Creation { file_mode: 0o600, directory_mode: 0o700, ..Creation::default() };
    let file = Rc::new(LockFile::open_to_lock(place, &creation, &opening)?);
    let _mutex = match MutexGuard::lock(&file, Duration::ZERO) {
        Err(RepositoryError::MutexBusy { .. }) => return Ok(Pruned::InUse),
        locked => locked?,
    };
    let others = MUTEX.end().saturating_add(1)..=LAST_BYTE;
    if !file.is_still_at(place) || file.conflict(&others)?.is_some() {
        return Ok(Pruned::InUse);
    }
    let header = Header::read(&file)?;
    if !header.is_there {
        return Ok(Pruned::NotOurs);
    }
    let now = SystemTime::now();
    let counts = |pause: Pause| {
        let last = match pause.from {
            ElapsedFrom::Start => header.last_start,
            ElapsedFrom::End => header.last_end,
        };
        last.is_some_and(|last| pause.is_on(last, now))
    };
    let is_old = now.duration_since(file.changed()?).is_ok_and(|age| age >= RECENT);
    if !is_old || pause.is_some_and(counts) {
        return Ok(Pruned::Remembered);
    }
    if !dry_run {
        remove(&file, place)?;
    }
    Ok(Pruned::Removed)
}

fn remove(file: &LockFile, place: &LockPath<'_>) -> Result<(), RepositoryError> {
    let failed = |name| move |errno| call("remove", place.path, name, errno);
    let Some(directory) = place.directory(None, &BaseDirectories::default())? else { return Ok(()) };
    let status = directory.status_of(place.name()?).map_err(failed("fstatat"))?;
    if status.id != file.id() {
        return Ok(());
    }
    directory.remove(place.name()?).map_err(failed("unlinkat"))
}
