//! Slots that were taken, from any keeper. Dropped, they are free again; kept across exec, they belong to the
//! program.

use std::time::SystemTime;

use super::{
    Granted, Header, KeeperError, MutexGuard, PATIENCE,
    file::{self, record},
    memory,
};

/// The slots of one table that a launch holds, or shares with an ancestor.
#[must_use = "the slots are free again when this is dropped"]
pub enum Held {
    /// Locks on a file.
    File(file::held::Held),
    /// The slots that the agent granted, in all its tables.
    Agent(Granted),
    /// Entries in memory.
    Memory(memory::Held),
}

impl Held {
    /// In the order in which they were found.
    pub fn slots(&self) -> &[u64] {
        match self {
            Self::File(held) => held.slots(),
            // It names them itself.
            Self::Agent(_) => &[],
            Self::Memory(held) => held.slots(),
        }
    }

    /// Those of them that other programs of the group have.
    pub fn joined(&self) -> &[u64] {
        match self {
            Self::File(held) => held.joined(),
            Self::Agent(_) => &[],
            Self::Memory(held) => held.joined(),
        }
    }

    /// Hands the slots over to the program that this process, or a child of it, is about to become. Until it
    /// does, they are still released when this value is dropped.
    pub fn keep_across_exec(&self) -> Result<(), KeeperError> {
        match self {
            Self::File(held) => Ok(held.keep_across_exec()?),
            Self::Agent(granted) => Ok(granted.keep_across_exec()?),
            Self::Memory(_) => Ok(()),
        }
    }

    /// Records which process the slots were taken for, if that is not this one.
    pub fn record_command(&self, pid: i32, started: u64) -> Result<(), KeeperError> {
        match self {
            Self::File(held) if held.is_shared() => {}
            Self::File(held) => {
                for run in held.runs().iter() {
                    record::amend(held.file(), *run.end(), pid, started)?;
                }
            }
            Self::Agent(granted) => granted.runs_as(pid),
            Self::Memory(_) => {}
        }
        Ok(())
    }

    /// Releases the slots.
    pub fn release(&mut self) -> Result<(), KeeperError> {
        match self {
            Self::File(held) => Ok(held.release()?),
            Self::Agent(granted) => Ok(granted.give_back(false)?),
            Self::Memory(held) => {
                held.release();
                Ok(())
            }
        }
    }

    /// Releases the slots because the program has ended. It records the time first, so that the next holder
    /// sees it, and without the mutex, because waiting for it might not end. They are free even if it could
    /// not be written.
    pub fn finish(&mut self, now: SystemTime) -> Result<(), KeeperError> {
        match self {
            // The program that has these slots still runs.
            Self::File(held) if held.is_shared() => Ok(held.release()?),
            Self::File(held) => {
                let written = Header::write_end(held.file(), now);
                Ok(held.release().and(written)?)
            }
            Self::Agent(granted) => Ok(granted.give_back(true)?),
            Self::Memory(held) => {
                held.release();
                held.table().ended(now);
                Ok(())
            }
        }
    }

    /// Removes the recorded start of the moment `started`, because no program was started; `before` is the
    /// previous one. A later recorded start stays.
    pub fn withdraw(&self, started: SystemTime, before: Option<SystemTime>) -> Result<(), KeeperError> {
        match self {
            Self::File(held) => {
                let _mutex = MutexGuard::lock(held.file(), PATIENCE)?;
                let header = Header::read(held.file())?;
                if header.is_of_start(started) {
                    Header { last_start: before, ..header }.write(held.file())?;
                }
                Ok(())
            }
            // Slots that are released before a program ran count as never started.
            Self::Agent(_) => Ok(()),
            Self::Memory(held) => {
                if held.table().stamps().0 == Some(started) {
                    held.table().withdraw(before);
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{rc::Rc, time::Duration};

    use tempfile::NamedTempFile;

    use super::*;
    use crate::{
        judge::terms::{Creation, Hold},
        keeper::{
            BaseDirectories, LockPath,
            file::file::{LockFile, Opening},
        },
        sys::Inherited,
    };

    /// A launch whose program was not started takes back its own start, and not that of a later launch.
    #[test]
    fn the_start_of_a_later_launch_stays_in_the_file() {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let (inherited, bases) = (Inherited::default(), BaseDirectories::default());
        let opening = Opening { inherited: &inherited, hold: Hold::Process, bases: &bases };
        let creation = Creation::by_hand(&path, 0o600);
        let opened = LockFile::open_to_lock(&LockPath::named(&path), &creation, &opening);
        let lock_file = Rc::new(opened.expect("an empty file can be a lock file"));
        let held = Held::File(file::held::Held::nothing_of(&lock_file, Hold::Process));
        let times = [1_000, 2_000, 3_000].map(|since| SystemTime::UNIX_EPOCH + Duration::from_secs(since));
        let [before, own, later] = times;
        let left = |last: SystemTime| {
            let header = Header { last_start: Some(last), ..Header::default() };
            header.write(&lock_file).expect("the file can be written");
            held.withdraw(own, Some(before)).expect("the file can be written");
            Header::read(&lock_file).expect("the file can be read").last_start
        };
        assert_eq!((left(later), left(own)), (Some(later), Some(before)));
    }
}
