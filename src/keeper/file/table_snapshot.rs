//! Looks at a repository without taking anything, for listings and explanations. It creates nothing; a file
//! that does not exist is an unused repository.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{ops::RangeInclusive, time::SystemTime};

use super::{
    error::{RepositoryError, call},
    file::LockFile,
    header::Header,
    holder::{Holder, holders, holders_with_search},
    line,
    lock_path::LockPath,
    scan::scan,
};
use crate::{
    keeper::{line::Waiter, occupancy::Occupancy},
    sys::failure::Errno,
};

/// A repository at one moment.
#[derive(Clone, Debug, Default)]
pub struct TableSnapshot {
    /// How many slots are held.
    pub used: u64,
    /// The holders, by slot.
    pub holders: Vec<Holder>,
    /// The waiters, oldest first.
    pub waiting: Vec<Waiter>,
    /// When a program was last started under it.
    pub last_start: Option<SystemTime>,
    /// When one was last seen to end under it.
    pub last_end: Option<SystemTime>,
}

/// Which slots of a file are held, and by which processes where the kernel names them: all that exectimes
/// tells. A file that does not exist has none.
pub fn held_slots(place: &LockPath<'_>) -> Result<Occupancy, RepositoryError> {
    LockFile::open_to_read(place)?.map_or(Ok(Occupancy::default()), |file| scan(&file))
}

type HoldersOf = fn(&LockFile, &Occupancy) -> Result<Vec<Holder>, RepositoryError>;

impl TableSnapshot {
    /// Looks at a lock file of a policy: one that does not exist was never used.
    pub fn of(place: &LockPath<'_>) -> Result<Self, RepositoryError> {
        LockFile::open_to_read(place)?
            .map_or(Ok(Self::default()), |file| Self::of_file(&file, holders_with_search))
    }

    /// The same, for callers that look repeatedly: it does not search for a holder without a record.
    pub fn at_a_glance(place: &LockPath<'_>) -> Result<Self, RepositoryError> {
        LockFile::open_to_read(place)?.map_or(Ok(Self::default()), |file| Self::of_file(&file, holders))
    }

    /// Looks at a lock file that the caller named, which should exist.
    pub fn of_existing(place: &LockPath<'_>) -> Result<Self, RepositoryError> {
        match LockFile::open_to_read(place)? {
            Some(file) => Self::of_file(&file, holders_with_search),
            None => Err(call("open", place.path, "open", Errno::ENOENT)),
        }
    }

    fn of_file(file: &LockFile, holders: HoldersOf) -> Result<Self, RepositoryError> {
        let header = Header::read(file)?;
        let occupancy = scan(file)?;
        let mut waiting = line::waiters(file)?;
        for waiter in &mut waiting {
            waiter.wants = line::wants(file, waiter)?;
        }
        Ok(Self {
            used: occupancy.shown(),
            holders: holders(file, &occupancy)?,
            waiting,
            last_start: header.last_start,
            last_end: header.last_end,
        })
    }

    /// How many of `slots` are free.
    pub fn free_among(&self, slots: &RangeInclusive<u64>) -> u64 {
        let held =
            |slot: &u64| self.holders.iter().any(|holder| (holder.slots.0..=holder.slots.1).contains(slot));
        slots.clone().filter(|slot| !held(slot)).count() as u64
    }

    /// The holder that has held its slot for longest.
    pub fn oldest(&self) -> Option<&Holder> {
        self.holders.iter().filter(|holder| holder.since.is_some()).min_by_key(|holder| holder.since)
    }
}
