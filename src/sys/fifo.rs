//! A FIFO without a writer's data: while any process has its write end open, its read end does not reach its
//! end. So it shows whether a program, or a process that inherited from it, is still alive, and it outlives
//! the process that reads it.

use std::{
    ffi::OsStr,
    fs,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use nix::{
    fcntl::{OFlag, open},
    sys::stat::{Mode, fstat},
    unistd::{mkfifo, read},
};

use super::{
    failure::{Errno, errno_of},
    stamp::FileId,
};

/// How the names of all of them end.
const ENDING: &[u8] = b".fifo";

/// The lowest descriptors of a process, which are checked for FIFOs: what it inherits is there.
const MOST: usize = 1024;

/// The FIFOs of this kind that a process has open. Only files with the name of one are checked, and only in
/// the kernel's memory, so no server has to answer.
pub fn of_process(pid: i32) -> Vec<FileId> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let found = entries.take(MOST).filter_map(|entry| {
        let path = entry.ok()?.path();
        let target = fs::read_link(&path).ok()?;
        target.file_name().map(OsStr::as_bytes)?.ends_with(ENDING).then(|| FileId::in_memory(&path))?
    });
    found.collect()
}

/// The read end.
#[derive(Debug)]
pub struct Fifo {
    reader: OwnedFd,
    id: FileId,
}

impl Fifo {
    /// Makes one for its owner alone. Nothing may be at the path.
    pub fn create(path: &Path) -> Result<Self, Errno> {
        mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        Self::open(path)
    }

    pub fn open(path: &Path) -> Result<Self, Errno> {
        let reader = open(
            path,
            OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW,
            Mode::empty(),
        )?;
        let id = FileId::from(&fstat(&reader)?);
        Ok(Self { reader, id })
    }

    /// Another write end.
    pub fn writer(path: &Path) -> Result<OwnedFd, Errno> {
        open(path, OFlag::O_WRONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW, Mode::empty())
    }

    /// Whether any process has its write end. What is written into it is ignored.
    pub fn is_held(&self) -> bool {
        let mut bytes = [0; 4096];
        loop {
            match read(&self.reader, &mut bytes) {
                Ok(0) => return false,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return true,
            }
        }
    }

    pub fn id(&self) -> FileId {
        self.id
    }

    /// Takes the name away.
    pub fn remove(path: &Path) -> Result<(), Errno> {
        fs::remove_file(path).map_err(|error| errno_of(&error))
    }
}

impl AsFd for Fifo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}
