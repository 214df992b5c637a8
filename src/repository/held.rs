//! Slots that were taken. The value owns what keeps them: dropped, they are free again; kept across exec, they belong to
//! the program.

use std::rc::Rc;

use crate::repository::{
    error::RepositoryError,
    file::LockFile,
    layout::{shared_byte, slot_bytes},
};

/// The slots of one file that a launch holds, or shares with an ancestor.
#[must_use = "the slots are free again when this is dropped"]
pub struct Held {
    file: Rc<LockFile>,
    slots: Vec<u64>,
    shared: bool,
}

impl Held {
    /// Nothing yet of this file.
    pub(super) fn nothing_of(file: &Rc<LockFile>) -> Self {
        Self { file: Rc::clone(file), slots: Vec::new(), shared: false }
    }

    /// Locks slots that were proved to be free. Says no when somebody locked one of them all the same; what was locked until
    /// then is given back when the value is dropped.
    pub(super) fn take(&mut self, slots: &[u64]) -> Result<bool, RepositoryError> {
        for slot in slots {
            if !self.file.try_lock(&slot_bytes(*slot, *slot))? {
                return Ok(false);
            }
            self.slots.push(*slot);
        }
        Ok(true)
    }

    /// Uses an ancestor's slots, if nobody else does.
    pub(super) fn share(&mut self, slots: &[u64]) -> Result<bool, RepositoryError> {
        self.shared = true;
        for slot in slots {
            if !self.file.try_lock(&shared_byte(*slot))? {
                return Ok(false);
            }
            self.slots.push(*slot);
        }
        Ok(true)
    }

    /// The file.
    pub fn file(&self) -> &LockFile {
        &self.file
    }

    /// The slots, in the order in which they were found.
    pub fn slots(&self) -> &[u64] {
        &self.slots
    }

    /// Hands the slots over to the program that this process is about to become. Until it does, they are still given back when
    /// this value is dropped.
    pub fn keep_across_exec(&self) -> Result<(), RepositoryError> {
        self.file.keep_across_exec()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.file.is_inherited() {
            return;
        }
        for slot in &self.slots {
            let bytes = if self.shared { shared_byte(*slot) } else { slot_bytes(*slot, *slot) };
            // The only thing left to do about a failure is to end, which frees the slots too.
            let _ = self.file.unlock(&bytes);
        }
    }
}
