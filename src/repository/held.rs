//! Slots that were taken. The value owns what keeps them: dropped, they are free again; kept across exec, they belong to
//! the program.
//!
//! A slot of the process is a POSIX write lock on the descriptor that took the mutex. Any stronger hold is a read lock of an
//! open file description that can only be read through, so that the program which inherits it cannot write to the
//! repository; a read lock would not exclude another one, so it is taken after a query, and under the mutex.

use std::rc::Rc;

use crate::{
    deliberate_fault::DeliberateFault,
    repository::{
        error::RepositoryError,
        file::LockFile,
        hold::Hold,
        layout::{shared_byte, slot_bytes},
    },
    sys::record_lock::Bytes,
};

/// The slots of one file that a launch holds, or shares with an ancestor.
#[must_use = "the slots are free again when this is dropped"]
pub struct Held {
    file: Rc<LockFile>,
    hold: Hold,
    slots: Vec<u64>,
    shared: bool,
}

impl Held {
    /// Nothing yet of this file.
    pub(super) fn nothing_of(file: &Rc<LockFile>, hold: Hold) -> Self {
        Self { file: Rc::clone(file), hold, slots: Vec::new(), shared: false }
    }

    /// Locks slots that were proved to be free. Says no when somebody locked one of them all the same; what was locked until
    /// then is given back when the value is dropped.
    pub(super) fn take(&mut self, slots: &[u64]) -> Result<bool, RepositoryError> {
        for slot in slots {
            if !self.lock(&slot_bytes(*slot, *slot))? {
                return Ok(false);
            }
            self.slots.push(*slot);
        }
        if DeliberateFault::StrayDescriptor.is_on() {
            drop(LockFile::open_to_read(self.file.path()));
        }
        Ok(true)
    }

    /// Uses an ancestor's slots, if nobody else does.
    pub(super) fn share(&mut self, slots: &[u64]) -> Result<bool, RepositoryError> {
        self.shared = true;
        for slot in slots {
            if !self.lock(&shared_byte(*slot))? {
                return Ok(false);
            }
            self.slots.push(*slot);
        }
        Ok(true)
    }

    fn lock(&self, bytes: &Bytes) -> Result<bool, RepositoryError> {
        match self.hold {
            Hold::Process => self.file.try_lock(bytes),
            Hold::Descriptor | Hold::Supervisor | Hold::Tree => self.file.try_lock_shared(bytes),
        }
    }

    /// The file.
    pub fn file(&self) -> &Rc<LockFile> {
        &self.file
    }

    /// The slots, in the order in which they were found.
    pub fn slots(&self) -> &[u64] {
        &self.slots
    }

    /// Whether the slots are an ancestor's.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Hands the slots over to the program that this process, or a child of it, is about to become. Until it does, they are
    /// still given back when this value is dropped.
    pub fn keep_across_exec(&self) -> Result<(), RepositoryError> {
        self.file.keep_across_exec()
    }

    /// Gives the slots back although descriptors that carry them may live on elsewhere.
    pub fn release(&mut self) -> Result<(), RepositoryError> {
        if DeliberateFault::KeptSlot.is_on() {
            return Ok(());
        }
        for slot in self.slots.drain(..) {
            let bytes = if self.shared { shared_byte(slot) } else { slot_bytes(slot, slot) };
            match self.hold {
                Hold::Process => self.file.unlock(&bytes)?,
                Hold::Descriptor | Hold::Supervisor | Hold::Tree => self.file.unlock_shared(&bytes)?,
            }
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The file may stay open, for another attempt or because it was inherited, and so would the locks on it. If this fails,
        // the process ends anyway.
        let _ = self.release();
    }
}
