//! A lock file of root. A user who owns one in a directory for all users can remove it, and then its holders
//! are forgotten.

use super::{
    error::{RepositoryError, failed_call},
    lock_path::LockPath,
    trial::open,
};
use crate::{
    judge::terms::location::Creation,
    sys::regular_file::{self, Status},
};

/// The state of a lock file before it was given to root.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Before {
    /// It did not exist.
    Missing,
    /// It belonged to this user, or had this mode.
    Other {
        /// Its owner.
        uid: u32,
        /// Its permission bits.
        mode: u32,
    },
    /// It already belonged to root, with the right mode.
    Same,
}

/// The present state of the lock file.
pub fn look(place: &LockPath<'_>, mode: u32) -> Result<Before, RepositoryError> {
    Ok(place.look()?.map_or(Before::Missing, |status| judge(&status, mode)))
}

/// Creates it if it is missing, and makes it root's if it is another user's. Holders keep their slots: it
/// stays the same file.
pub fn make_roots(place: &LockPath<'_>, creation: &Creation) -> Result<Before, RepositoryError> {
    let before = look(place, creation.file_mode)?;
    if before == Before::Same {
        return Ok(before);
    }
    let file = open(place, creation)?;
    regular_file::give_to_root(&file, creation.file_mode).map_err(failed_call("give to root", place.path))?;
    Ok(before)
}

fn judge(status: &Status, mode: u32) -> Before {
    if status.uid == 0 && status.mode == mode {
        Before::Same
    } else {
        Before::Other { uid: status.uid, mode: status.mode }
    }
}
