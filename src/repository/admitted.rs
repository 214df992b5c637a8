//! What a launch got, until it becomes the program or gives it back.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{rc::Rc, time::SystemTime};

use crate::{
    repository::{
        claim::NamedSlots, error::RepositoryError, file::LockFile, header::Header, held::Held,
        mutex::MutexGuard, record,
    },
    sys::process::Process,
};

/// What a launch holds, in all files.
#[must_use = "everything is given back when this is dropped"]
pub struct Admitted {
    pub(super) held: Vec<Held>,
    pub(super) slots: Vec<NamedSlots>,
    pub(super) unenforced: Vec<usize>,
    /// The start that was written into the headers, and what stood there before.
    pub(super) started: SystemTime,
    pub(super) stamps: Vec<(Rc<LockFile>, Option<SystemTime>)>,
}

impl Admitted {
    /// Each repository's name and slots, in the order of the claims.
    pub fn slots(&self) -> &[NamedSlots] {
        &self.slots
    }

    /// The claims that would have refused the launch if they were enforced, numbered as in
    /// [`Refused::claim`](crate::repository::refused::Refused::claim).
    pub fn unenforced(&self) -> &[usize] {
        &self.unenforced
    }

    /// Hands everything over to the program that this process, or a child of it, is about to become.
    pub fn keep_across_exec(&self) -> Result<(), RepositoryError> {
        self.held.iter().try_for_each(Held::keep_across_exec)
    }

    /// Writes the command's process id into the records, where a supervisor took the slots for it.
    pub fn record_command(&self, command: i32) -> Result<(), RepositoryError> {
        let started = Process::find(command).map_or(0, |process| process.started);
        for held in self.held.iter().filter(|held| !held.is_shared()) {
            for slot in held.slots() {
                record::amend(held.file(), *slot, command, started)?;
            }
        }
        Ok(())
    }

    /// Gives everything back because the program has ended, and writes down when. The slots are free even where that could not
    /// be written.
    pub fn finish(&mut self) -> Result<(), RepositoryError> {
        let mut finished = Ok(());
        for held in &mut self.held {
            let file = Rc::clone(held.file());
            let written = MutexGuard::lock(&file).and_then(|_mutex| {
                held.release()?;
                let header = Header::read(&file)?;
                Header { last_end: Some(SystemTime::now()), ..header }.write(&file)
            });
            finished = finished.and(written).and(held.release());
        }
        finished
    }

    /// Gives everything back, and takes the stamp of the start back with it, because no program was started.
    pub fn withdraw(self) -> Result<(), RepositoryError> {
        for (file, before) in &self.stamps {
            let _mutex = MutexGuard::lock(file)?;
            let header = Header::read(file)?;
            if header.is_of_start(self.started) {
                Header { last_start: *before, ..header }.write(file)?;
            }
        }
        Ok(())
    }
}
