//! Removes a lock file that has no use any more. It is removed while its mutex is held and nothing else of it
//! is locked. A launch that opened the file before then takes the mutex, notices that the path does not lead
//! to the file any more, and starts over with a new one. The program exectimes does not check this. So a file
//! that only exectimes has used is kept, and so is a file that was used a short time ago.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    fs,
    path::Path,
    process,
    rc::Rc,
    time::{Duration, SystemTime},
};

use super::{
    BaseDirectories, Header, LockPath, MUTEX, MutexGuard, PATIENCE, RepositoryError,
    error::{call, failed_call},
    file::{LockFile, Opening},
};
use crate::{
    judge::terms::{Creation, ElapsedFrom, Hold, Pause},
    sys::{Inherited, LAST_BYTE, Status, regular_file},
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
    /// rungate has never used it, it is gone, or it is something that rungate never creates: any user may put
    /// a link there.
    NotOurs,
}

/// Removes the file of one member, unless it is in use or remembers something.
pub fn prune(place: &LockPath<'_>, pause: Option<Pause>, dry_run: bool) -> Result<Pruned, RepositoryError> {
    let file = match existing(place) {
        Ok(Some(file)) => file,
        Ok(None) | Err(RepositoryError::NotRegular { .. } | RepositoryError::SeveralLinks { .. }) => {
            return Ok(Pruned::NotOurs);
        }
        Err(error) => return Err(error),
    };
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

/// Opens the file, and creates none: another process may remove it just now.
fn existing(place: &LockPath<'_>) -> Result<Option<Rc<LockFile>>, RepositoryError> {
    let (inherited, bases) = (Inherited::scan(), BaseDirectories::default());
    let opening = Opening { inherited: &inherited, hold: Hold::Process, bases: &bases };
    Ok(LockFile::open_existing(place, &opening)?.map(Rc::new))
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

// Forgets when a repository was last used, so that `if_elapsed` refuses no launch.

/// Forgets the last start and the last end. Returns whether there was anything to forget.
pub fn reset(place: &LockPath<'_>) -> Result<bool, RepositoryError> {
    let Some(file) = existing(place)? else { return Ok(false) };
    let _mutex = MutexGuard::lock(&file, PATIENCE)?;
    let header = Header::read(&file)?;
    if header.last_start.is_none() && header.last_end.is_none() {
        return Ok(false);
    }
    Header { last_start: None, ..header }.write(&file)?;
    Header::forget_end(&file)?;
    Ok(true)
}

// A lock file of root. A user who owns one in a directory for all users can remove it, and then its holders
// are forgotten.

/// The state of a lock file before it was given to root.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Before {
    /// It did not exist.
    Missing,
    /// It belonged to this user, or group, or had this mode.
    Other {
        uid: u32,
        gid: u32,
        /// Its permission bits.
        mode: u32,
    },
    /// It already belonged to root, with the right mode; and, if that is for a group, to the directory's.
    Same,
}

/// The present state of the lock file.
pub fn look(place: &LockPath<'_>, mode: u32) -> Result<Before, RepositoryError> {
    let Some(directory) = place.directory(None, &BaseDirectories::default())? else {
        return Ok(Before::Missing);
    };
    Ok(place.look()?.map_or(Before::Missing, |status| judge(&status, mode, directory.status().gid)))
}

/// Creates it if it is missing, and makes it root's if it is another user's. Holders keep their slots: it
/// stays the same file.
pub fn make_roots(place: &LockPath<'_>, creation: &Creation) -> Result<Before, RepositoryError> {
    let before = look(place, creation.file_mode)?;
    if before == Before::Same {
        return Ok(before);
    }
    let file = open(place, creation)?;
    let directory = place.directory(None, &BaseDirectories::default())?;
    let group = directory.map_or(0, |directory| directory.status().gid);
    regular_file::give_to_root(&file, creation.file_mode, group)
        .map_err(failed_call("give to root", place.path))?;
    Ok(before)
}

fn judge(status: &Status, mode: u32, group: u32) -> Before {
    let is_of_group = !regular_file::is_for_group(mode) || status.gid == group;
    if status.uid == 0 && status.mode == mode && is_of_group {
        Before::Same
    } else {
        Before::Other { uid: status.uid, gid: status.gid, mode: status.mode }
    }
}

// Tries what a launch does with a lock file, in a directory, with a file that counts no launch.

/// As much as a launch writes: the header and a record.
const CONTENT: [u8; 8192] = [0; 8192];

/// Creates a lock file in the directory of `creation`, locks it, writes to it, and removes it.
pub fn try_out(creation: &Creation) -> Result<(), RepositoryError> {
    let base = creation.base.as_path();
    // The names of repositories begin with no dot, so that no listing takes it for one.
    let path = base.join(format!(".rungate-doctor-{}", process::id()));
    let place = LockPath { path: &path, base, private: None, owner: None, is_own: false };
    let result = use_as_launches_do(&place, creation);
    let _ = fs::remove_file(&path);
    result
}

/// Opens a lock file that exists, as a launch does.
pub fn try_to_open(path: &Path, creation: &Creation) -> Result<(), RepositoryError> {
    let place = LockPath { path, base: &creation.base, private: None, owner: None, is_own: false };
    open(&place, creation).map(drop)
}

fn use_as_launches_do(place: &LockPath<'_>, creation: &Creation) -> Result<(), RepositoryError> {
    let file = open(place, creation)?;
    file.try_lock(&(0..=7))?;
    file.write_at(&CONTENT, 0)
}

/// Opens a lock file as a launch does, and creates it if it is missing.
pub(super) fn open(place: &LockPath<'_>, creation: &Creation) -> Result<LockFile, RepositoryError> {
    let (inherited, bases) = (Inherited::scan(), BaseDirectories::default());
    let opening = Opening { inherited: &inherited, hold: Hold::Process, bases: &bases };
    LockFile::open_to_lock(place, creation, &opening)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::sys::{FileId, regular_file::Kind};

    /// A start is forgotten without an end, and an end without a start.
    #[test]
    fn each_moment_is_forgotten() {
        let path = tempfile::NamedTempFile::new().expect("a temporary file").into_temp_path();
        let place = LockPath::named(&path);
        let file = open(&place, &Creation::by_hand(&path, 0o600)).expect("an empty file");
        Header::default().write(&file).expect("the file can be written");
        let moment = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let header = |last_start| Header { is_there: true, last_start, ..Header::default() };
        for (start, end) in [(None, None), (Some(moment), None), (None, Some(moment))] {
            header(start).write(&file).expect("the file can be written");
            if let Some(end) = end {
                Header::write_end(&file, end).expect("the file can be written");
            }
            assert_eq!(reset(&place).expect("a lock file"), start.or(end).is_some());
            let header = Header::read(&file).expect("the file can be read");
            assert_eq!((header.last_start, header.last_end), (None, None));
        }
    }

    /// A lock file is left as it is if it is root's and has the right mode. One for a group has the group of
    /// its directory.
    #[test]
    fn a_lock_file_of_roots_has_its_owner_and_its_mode() {
        let judged = |uid, gid, mode, wanted| {
            let id = FileId { device: 1, inode: 1 };
            judge(&Status { id, kind: Kind::Regular, uid, gid, links: 1, mode }, wanted, 8)
        };
        for (uid, gid, mode, wanted) in [(0, 0, 0o666, 0o666), (0, 7, 0o666, 0o666), (0, 8, 0o660, 0o660)] {
            assert_eq!(judged(uid, gid, mode, wanted), Before::Same, "{uid} {gid} {mode:o}");
        }
        for (uid, gid, mode, wanted) in
            [(0, 0, 0o600, 0o666), (1, 0, 0o666, 0o666), (0, 0, 0o660, 0o660), (0, 7, 0o660, 0o660)]
        {
            assert_eq!(
                judged(uid, gid, mode, wanted),
                Before::Other { uid, gid, mode },
                "{uid} {gid} {mode:o}"
            );
        }
    }
}
