//! The line of a table: who stands in it, and a place in it.

use std::{rc::Rc, thread, time::Duration};

use super::{
    error::KeeperError,
    file::{error::RepositoryError, line},
    line::{Number, Pulse, Waiter, Woken},
    place::Place,
    table::Table,
};

impl Table {
    /// Everybody who waits, oldest first.
    pub fn waiters(&self) -> Result<Vec<Waiter>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::waiters(file)?,
            Self::Memory(table) => table.waiters(),
        })
    }

    /// The same for whoever must not overlook anybody.
    pub fn all_waiters(&self) -> Result<Vec<Waiter>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::all_waiters(file)?,
            Self::Memory(table) => table.waiters(),
        })
    }

    /// The youngest of those who stand in line before `number`, or at all.
    pub fn youngest(&self, before: Option<Number>) -> Result<Option<Waiter>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::youngest(file, before)?,
            Self::Memory(table) => table.youngest(before),
        })
    }

    /// The oldest of those who stand in line from `from` on and before `before`.
    pub fn oldest(&self, from: Number, before: Option<Number>) -> Result<Option<Waiter>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::oldest(file, from, before)?,
            Self::Memory(table) => table.oldest(from, before),
        })
    }

    /// How many slots a waiter wants, where that can be seen.
    pub fn wants(&self, waiter: &Waiter) -> Option<u64> {
        match self {
            Self::File(file) => line::wants(file, waiter).ok().flatten(),
            Self::Memory(_) => waiter.wants,
        }
    }

    /// Whether it can be seen at once that a waiter would not take what it is given.
    pub fn is_stopped(&self, waiter: &Waiter) -> bool {
        match self {
            Self::File(_) => waiter.is_stopped(),
            Self::Memory(_) => waiter.is_away,
        }
    }

    /// Whether a waiter is alive: who shows the same for some seconds is not.
    pub fn pulse(&self, number: Number) -> Result<Option<Pulse>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::pulse(file, number)?,
            Self::Memory(table) => table.pulse(number),
        })
    }

    /// The highest number of a place; in memory also of those that have been given up.
    pub fn highest_place(&self) -> Result<Option<Number>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::highest_place(file)?,
            Self::Memory(table) => table.highest_number(),
        })
    }

    /// Takes a place; none where somebody has that number. The table must be locked.
    pub fn take_place(&self, number: Number) -> Result<Option<Place>, KeeperError> {
        Ok(match self {
            Self::File(file) => line::Place::take(file, number)?.map(Place::File),
            Self::Memory(table) => table.take_place(number).map(Place::Memory),
        })
    }

    /// Whether a place is here.
    pub fn has(&self, place: &Place) -> bool {
        match (self, place) {
            (Self::File(file), Place::File(place)) => Rc::ptr_eq(place.file(), file),
            (Self::Memory(table), Place::Memory(place)) => place.table().is(table),
            (Self::File(_), Place::Memory(_)) | (Self::Memory(_), Place::File(_)) => false,
        }
    }

    /// Sleeps until `ahead` leaves the line, at most this long. In memory nobody leaves while this process
    /// sleeps.
    pub fn sleep_behind(&self, ahead: &Waiter, longest: Duration) -> Result<Woken, KeeperError> {
        Ok(match self {
            Self::File(file) => line::sleep_behind(file, ahead, longest)?,
            Self::Memory(_) => {
                thread::sleep(longest);
                Woken::Time
            }
        })
    }

    /// For a launch that gives up because all places are taken.
    pub fn has_no_place(&self) -> KeeperError {
        match self {
            Self::File(file) => RepositoryError::LineLocked { path: file.path().to_owned() }.into(),
            Self::Memory(_) => unreachable!("nobody else takes places in memory"),
        }
    }
}
