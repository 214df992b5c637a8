//! Tries what a launch does with a lock file, in a directory, with a file that counts no launch.

use std::{fs, path::Path, process};

use super::{
    error::RepositoryError,
    file::{LockFile, Opening},
    lock_path::{BaseDirectories, LockPath},
};
use crate::{
    judge::terms::{keyword::Hold, location::Creation},
    sys::descriptor::Inherited,
};

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
