//! Looking at a repository without taking anything: for listings, and for people who want to know why. Nothing is created,
//! and a file that is not there is a repository that nobody uses.

use std::{path::Path, time::SystemTime};

use crate::{
    repository::{
        error::RepositoryError,
        file::{LockFile, call},
        header::Header,
        holder::{Holder, holders_with_search},
        line::{self, Waiter},
        occupancy::Occupancy,
    },
    sys::failure::Errno,
};

/// A repository at one moment.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// How many slots are held.
    pub used: u64,
    /// Who holds them, by slot.
    pub holders: Vec<Holder>,
    /// Who waits, oldest first.
    pub waiting: Vec<Waiter>,
    /// When a program was last started under it.
    pub last_start: Option<SystemTime>,
}

impl Survey {
    /// Looks at a lock file of a policy: one that is not there was never used.
    pub fn of(path: &Path) -> Result<Self, RepositoryError> {
        LockFile::open_to_read(path)?.map_or(Ok(Self::default()), |file| Self::of_file(&file))
    }

    /// Looks at a lock file that somebody named, so that it should be there.
    pub fn of_existing(path: &Path) -> Result<Self, RepositoryError> {
        match LockFile::open_to_read(path)? {
            Some(file) => Self::of_file(&file),
            None => Err(call("open", path, "open", Errno::ENOENT)),
        }
    }

    fn of_file(file: &LockFile) -> Result<Self, RepositoryError> {
        let occupancy = Occupancy::scan(file)?;
        Ok(Self {
            used: occupancy.shown(),
            holders: holders_with_search(file, &occupancy)?,
            waiting: line::waiters(file)?,
            last_start: Header::read(file)?.last_start,
        })
    }

    /// The holder that has held its slot for longest.
    pub fn oldest(&self) -> Option<&Holder> {
        self.holders.iter().filter(|holder| holder.since.is_some()).min_by_key(|holder| holder.since)
    }
}
