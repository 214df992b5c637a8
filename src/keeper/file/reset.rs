//! Forgets when a repository was last used, so that `if_elapsed` refuses no launch.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::rc::Rc;

use super::{
    error::RepositoryError,
    file::{LockFile, Opening},
    header::Header,
    lock_path::{BaseDirectories, LockPath},
    mutex::{MutexGuard, PATIENCE},
};
use crate::{
    judge::terms::{keyword::Hold, location::Creation},
    sys::descriptor::Inherited,
};

/// Forgets the last start and the last end. Returns whether there was anything to forget.
pub fn reset(place: &LockPath<'_>) -> Result<bool, RepositoryError> {
    if place.look()?.is_none() {
        return Ok(false);
    }
    let inherited = Inherited::scan();
    let bases = BaseDirectories::default();
    let opening = Opening { inherited: &inherited, hold: Hold::Process, bases: &bases };
    let creation = Creation { file_mode: 0o600, directory_mode: 0o700, ..Creation::default() };
    let file = Rc::new(LockFile::open_to_lock(place, &creation, &opening)?);
    let _mutex = MutexGuard::lock(&file, PATIENCE)?;
    let header = Header::read(&file)?;
    if header.last_start.is_none() && header.last_end.is_none() {
        return Ok(false);
    }
    Header { last_start: None, ..header }.write(&file)?;
    Header::forget_end(&file)?;
    Ok(true)
}
