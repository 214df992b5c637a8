//! Forgetting when a repository was last used, so that `if_elapsed` holds nobody up.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{path::Path, rc::Rc};

use crate::{
    repository::{
        error::RepositoryError,
        file::{Creation, LockFile, Opening},
        header::Header,
        hold::Hold,
        mutex::MutexGuard,
    },
    sys::{
        descriptor::{DEFAULT_FLOOR, Inherited},
        regular_file,
    },
};

/// Forgets the last start and the last end. Says whether there was anything to forget.
pub fn reset(path: &Path, creation: &Creation) -> Result<bool, RepositoryError> {
    if regular_file::status_of_path(path).is_err() {
        return Ok(false);
    }
    let inherited = Inherited::scan();
    let opening = Opening { inherited: &inherited, floor: DEFAULT_FLOOR, hold: Hold::Process };
    let file = Rc::new(LockFile::open_to_lock(path, creation, None, &opening)?);
    let _mutex = MutexGuard::lock(&file)?;
    let header = Header::read(&file)?;
    if header.last_start.is_none() && header.last_end.is_none() {
        return Ok(false);
    }
    Header { last_start: None, last_end: None, ..header }.write(&file)?;
    Ok(true)
}
