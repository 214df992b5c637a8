//! The members of a group, who share its slots. A query names only one reader of a byte. So all locks of the
//! file are listed, after the decision, for listings and to end a whole group.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use super::{
    error::RepositoryError,
    file::LockFile,
    layout::{grouped_at, groups},
    scan::listed,
};
use crate::sys::record_lock::Conflict;

/// What one member has locked of one slot of its group.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    /// The group, by its place in the file.
    pub(super) group: u64,
    pub(super) slot: u64,
    /// The byte of the membership.
    pub(super) byte: u64,
    /// Its process, where a process has locked it.
    pub(super) pid: Option<i32>,
}

/// Every lock of the file, if groups have slots and the kernel lists the locks; otherwise none.
pub(super) fn locks(file: &LockFile) -> Result<Vec<Conflict>, RepositoryError> {
    if file.conflict(&groups())?.is_none() {
        return Ok(Vec::new());
    }
    Ok(listed(file)?.unwrap_or_default())
}

/// The memberships among these locks.
pub(super) fn memberships(locks: &[Conflict]) -> Vec<Membership> {
    let of = |Conflict { bytes, pid }: &Conflict| {
        let byte = *bytes.start();
        let (group, slot) = grouped_at(byte).filter(|_| bytes.start() == bytes.end())?;
        Some(Membership { group, slot, byte, pid: *pid })
    };
    locks.iter().filter_map(of).collect()
}
