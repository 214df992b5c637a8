//! Looking at a repository without taking anything: for listings, and for people who want to know why. Nothing is created,
//! and a file that is not there is a repository that nobody uses.

use std::{path::Path, time::SystemTime};

use crate::repository::{
    error::RepositoryError,
    file::LockFile,
    header::Header,
    holder::{Holder, holders},
    occupancy::Occupancy,
};

/// A repository at one moment.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// How many slots are held.
    pub used: u64,
    /// Who holds them, by slot.
    pub holders: Vec<Holder>,
    /// When a program was last started under it.
    pub last_start: Option<SystemTime>,
}

impl Survey {
    /// Looks at a lock file.
    pub fn of(path: &Path) -> Result<Self, RepositoryError> {
        let Some(file) = LockFile::open_to_read(path)? else { return Ok(Self::default()) };
        let occupancy = Occupancy::scan(&file)?;
        Ok(Self {
            used: occupancy.held(),
            holders: holders(&file, &occupancy)?,
            last_start: Header::read(&file)?.last_start,
        })
    }

    /// The holder that has held its slot for longest.
    pub fn oldest(&self) -> Option<&Holder> {
        self.holders.iter().filter(|holder| holder.since.is_some()).min_by_key(|holder| holder.since)
    }
}
