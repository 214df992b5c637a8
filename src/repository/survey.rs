//! Looking at a repository without taking anything: for listings, and for people who want to know why. Nothing is created,
//! and a file that is not there is a repository that nobody uses.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{ops::RangeInclusive, path::Path, time::SystemTime};

use crate::{
    repository::{
        claim::Pause,
        error::RepositoryError,
        file::{LockFile, call},
        header::Header,
        holder::{Holder, holders, holders_with_search},
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
    /// When one was last seen to end under it.
    pub last_end: Option<SystemTime>,
}

type HoldersOf = fn(&LockFile, &Occupancy) -> Result<Vec<Holder>, RepositoryError>;

impl Survey {
    /// Looks at a lock file of a policy: one that is not there was never used.
    pub fn of(path: &Path) -> Result<Self, RepositoryError> {
        LockFile::open_to_read(path)?
            .map_or(Ok(Self::default()), |file| Self::of_file(&file, holders_with_search))
    }

    /// The same, for whoever looks again and again: a holder that no record accounts for is not searched for.
    pub fn at_a_glance(path: &Path) -> Result<Self, RepositoryError> {
        LockFile::open_to_read(path)?.map_or(Ok(Self::default()), |file| Self::of_file(&file, holders))
    }

    /// Looks at a lock file that somebody named, so that it should be there.
    pub fn of_existing(path: &Path) -> Result<Self, RepositoryError> {
        match LockFile::open_to_read(path)? {
            Some(file) => Self::of_file(&file, holders_with_search),
            None => Err(call("open", path, "open", Errno::ENOENT)),
        }
    }

    fn of_file(file: &LockFile, holders: HoldersOf) -> Result<Self, RepositoryError> {
        let header = Header::read(file)?;
        let occupancy = Occupancy::scan(file)?;
        Ok(Self {
            used: occupancy.shown(),
            holders: holders(file, &occupancy)?,
            waiting: line::waiters(file)?,
            last_start: header.last_start,
            last_end: header.last_end,
        })
    }

    /// When the pause that keeps the next launch from starting is over; none where there is no such pause.
    pub fn paused_until(&self, pause: Option<Pause>, now: SystemTime) -> Option<SystemTime> {
        let pause = pause?;
        let last = if pause.from_end { self.last_end } else { self.last_start }?;
        let ago = now.duration_since(last).ok()?;
        (ago < pause.length).then(|| last.checked_add(pause.length)).flatten()
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
