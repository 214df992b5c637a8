//! A position in the queue of a table, for every keeper.

use super::{Class, KeeperError, WaitingProcess, file::line, memory};

/// A place in a table, kept until dropped.
#[must_use = "the place is given up when this is dropped"]
pub enum Place {
    /// A lock.
    File(line::Place),
    /// An entry in memory.
    Memory(memory::Place),
}

impl Place {
    /// Shows that its launch is alive.
    pub fn beat(&mut self) -> Result<(), KeeperError> {
        match self {
            Self::File(place) => Ok(place.beat()?),
            Self::Memory(_) => Ok(()),
        }
    }

    /// Sets the waiting process, if another one keeps the place for it.
    pub fn belongs_to(&mut self, process: &WaitingProcess) {
        match self {
            // The lock itself shows this.
            Self::File(_) => {}
            Self::Memory(place) => place.belongs_to(process),
        }
    }

    /// Sets the connection of this process that serves the launch.
    pub fn serve_in(&self, session: u64) {
        if let Self::Memory(place) = self {
            place.serve_in(session);
        }
    }

    /// Sets whether the launch responds, if known.
    pub fn set_away(&mut self, is_away: bool) {
        match self {
            Self::File(_) => {}
            Self::Memory(place) => place.set_away(is_away),
        }
    }

    /// Lets others see how many slots are wanted.
    pub fn wants(&mut self, slots: u64) -> Result<(), KeeperError> {
        match self {
            Self::File(place) => Ok(place.wants(slots)?),
            Self::Memory(place) => {
                place.wants(slots);
                Ok(())
            }
        }
    }

    /// Waits in these classes, and in no other. The table must be locked, except to leave.
    pub fn stand(&mut self, classes: &[Class]) -> Result<(), KeeperError> {
        match self {
            Self::File(place) => Ok(place.stand(classes)?),
            Self::Memory(place) => {
                place.stand(classes);
                Ok(())
            }
        }
    }

    /// The classes in which it waits.
    pub fn classes(&self) -> &[Class] {
        match self {
            Self::File(place) => place.classes(),
            Self::Memory(place) => place.classes(),
        }
    }
}
