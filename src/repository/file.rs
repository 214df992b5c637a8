//! A lock file, open. Opening follows no link and trusts no path twice; a file that this process already holds locks on is
//! reached through the descriptor that it inherited, because closing another one would drop those locks.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd},
    path::{Path, PathBuf},
};

use crate::{
    deliberate_fault::DeliberateFault,
    repository::{error::RepositoryError, hold::Hold},
    sys::{
        descriptor::{self, FileId, Inherited},
        failure::{Errno, Failure},
        positioned_io,
        record_lock::{self, Bytes, Conflict, Mode, Ownership},
        regular_file::{self, Access, Kind, Status},
    },
};

/// How a lock file that is not there yet comes to be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Creation {
    /// The directory below which missing directories are created.
    pub base: PathBuf,
    /// Whether `base` itself is created (0700) where it is missing.
    pub create_base: bool,
    /// A directory at or above `base` that is made where it is missing, and must belong to the caller alone: others could have
    /// made it, in `/tmp`.
    pub private: Option<PathBuf>,
    /// Permission bits of the file, exactly.
    pub file_mode: u32,
    /// Permission bits of directories below `base`, exactly.
    pub directory_mode: u32,
}

/// How often a file may be gone or there again between two system calls before it is given up.
const PATIENCE: usize = 100;

/// What a launch brings along for the opening of its files.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// The descriptors that the caller left open.
    pub inherited: &'a Inherited,
    /// The lowest number for descriptors that go to the program.
    pub floor: RawFd,
    /// What is to keep the slots.
    pub hold: Hold,
}

enum Descriptor {
    Own(OwnedFd),
    Inherited(BorrowedFd<'static>),
}

/// An open lock file. The descriptor is close-on-exec until [`LockFile::keep_across_exec`].
pub struct LockFile {
    path: PathBuf,
    id: FileId,
    descriptor: Descriptor,
    /// A description of its own that can only be read through, for the holds that go with a description.
    reader: Option<OwnedFd>,
}

impl AsFd for LockFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.descriptor {
            Descriptor::Own(descriptor) => descriptor.as_fd(),
            Descriptor::Inherited(descriptor) => *descriptor,
        }
    }
}

impl LockFile {
    /// Opens the file to look at it; none when it is not there.
    pub fn open_to_read(path: &Path) -> Result<Option<Self>, RepositoryError> {
        let Some(descriptor) = open(path, Access::Read)? else { return Ok(None) };
        let status = judge(path, &descriptor)?;
        Ok(Some(Self {
            path: path.to_owned(),
            id: status.id,
            descriptor: Descriptor::Own(descriptor),
            reader: None,
        }))
    }

    /// Opens the file to take slots, and creates it where it is missing. `owner` is the user whom the file must belong to if
    /// others may create files beside it.
    pub fn open_to_lock(
        path: &Path,
        creation: &Creation,
        owner: Option<u32>,
        opening: &Opening<'_>,
    ) -> Result<Self, RepositoryError> {
        let Opening { inherited, floor, hold } = *opening;
        if !inherited.is_plain()
            && let Some(file) = Self::inherited(path, inherited)
        {
            return Ok(file);
        }
        if let Some(private) = &creation.private {
            prepare_private(private)?;
        }
        for _ in 0..PATIENCE {
            let opened = match open(path, Access::ReadWrite)? {
                Some(descriptor) => Some(descriptor),
                None => create(path, creation)?,
            };
            let Some(descriptor) = opened else { continue };
            let status = judge(path, &descriptor)?;
            if status.links == 0 {
                continue;
            }
            if let Some(owner) = owner {
                judge_owner(path, &status, owner)?;
            }
            let descriptor = descriptor::move_high(descriptor, floor)
                .map_err(|errno| call("open", path, "fcntl(F_DUPFD)", errno))?;
            // Now, not later: moving it closes a descriptor of the file, which would drop locks of this process.
            let reader = match hold {
                Hold::Process => None,
                Hold::Descriptor | Hold::Supervisor | Hold::Tree => Some(
                    descriptor::reopen_to_read(descriptor.as_fd(), floor)
                        .map_err(|errno| call("open", path, "open", errno))?,
                ),
            };
            return Ok(Self {
                path: path.to_owned(),
                id: status.id,
                descriptor: Descriptor::Own(descriptor),
                reader,
            });
        }
        Err(RepositoryError::ReplacedTooOften { path: path.to_owned() })
    }

    fn inherited(path: &Path, inherited: &Inherited) -> Option<Self> {
        let status = regular_file::status_of_path(path).ok()?;
        let descriptor = inherited.writable(status.id)?;
        Some(Self {
            path: path.to_owned(),
            id: status.id,
            descriptor: Descriptor::Inherited(descriptor),
            reader: None,
        })
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which file it is, whatever its spelling.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Whether the path still leads to this file. Means something only while the mutex is held.
    pub fn is_still_at(&self, path: &Path) -> bool {
        regular_file::status_of_path(path).is_ok_and(|status| status.id == self.id)
    }

    /// Whether the caller already had this file open, so that dropping this value does not close it.
    pub fn is_inherited(&self) -> bool {
        matches!(self.descriptor, Descriptor::Inherited(_))
    }

    /// Lets the locks of slots live on in the program.
    pub fn keep_across_exec(&self) -> Result<(), RepositoryError> {
        if self.is_inherited() {
            return Ok(());
        }
        descriptor::keep_across_exec(self.carrier())
            .map_err(|errno| call("keep", &self.path, "fcntl(F_SETFD)", errno))
    }

    /// A lock within `bytes` that anybody holds, this process included.
    pub fn conflict(&self, bytes: &Bytes) -> Result<Option<Conflict>, RepositoryError> {
        record_lock::conflict(self.as_fd(), bytes)
            .map_err(|errno| call("look at the locks of", &self.path, "fcntl(F_OFD_GETLK)", errno))
    }

    /// Takes a write lock of the process on `bytes`. Says whether nobody was in the way.
    pub fn try_lock(&self, bytes: &Bytes) -> Result<bool, RepositoryError> {
        record_lock::try_lock(self.as_fd(), bytes, Mode::Write, Ownership::Process)
            .map_err(|errno| call("lock", &self.path, "fcntl(F_SETLK)", errno))
    }

    /// Takes a read lock of the process on `bytes`, which a file that can only be read allows too. Says whether nobody was in
    /// the way.
    pub(super) fn try_lock_to_be_found(&self, bytes: &Bytes) -> Result<bool, RepositoryError> {
        record_lock::try_lock(self.as_fd(), bytes, Mode::Read, Ownership::Process)
            .map_err(|errno| call("lock", &self.path, "fcntl(F_SETLK)", errno))
    }

    /// Gives back a lock of the process.
    pub fn unlock(&self, bytes: &Bytes) -> Result<(), RepositoryError> {
        record_lock::unlock(self.as_fd(), bytes, Ownership::Process)
            .map_err(|errno| call("unlock", &self.path, "fcntl(F_SETLK)", errno))
    }

    /// Takes a lock that a description keeps, and not this process. Read locks do not exclude each other, so this asks first:
    /// to be called under the mutex.
    pub(super) fn try_lock_shared(&self, bytes: &Bytes) -> Result<bool, RepositoryError> {
        if self.conflict(bytes)?.is_some() {
            return Ok(false);
        }
        if DeliberateFault::NoMutex.is_on() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        record_lock::try_lock(self.carrier(), bytes, Mode::Read, Ownership::Description)
            .map_err(|errno| call("lock", &self.path, "fcntl(F_OFD_SETLK)", errno))
    }

    /// Gives back a lock that a description keeps.
    pub(super) fn unlock_shared(&self, bytes: &Bytes) -> Result<(), RepositoryError> {
        record_lock::unlock(self.carrier(), bytes, Ownership::Description)
            .map_err(|errno| call("unlock", &self.path, "fcntl(F_OFD_SETLK)", errno))
    }

    /// The descriptor that the program is to inherit: one that can only be read through, where the hold allows it.
    fn carrier(&self) -> BorrowedFd<'_> {
        self.reader.as_ref().map_or_else(|| self.as_fd(), AsFd::as_fd)
    }

    /// Reads content; answers how much there was.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, RepositoryError> {
        positioned_io::read_at(self.as_fd(), buffer, offset)
            .map_err(|errno| call("read", &self.path, "pread", errno))
    }

    /// Writes content.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), RepositoryError> {
        positioned_io::write_at(self.as_fd(), bytes, offset)
            .map_err(|errno| call("write", &self.path, "pwrite", errno))
    }
}

/// For a call on `path` that failed.
pub(super) fn call(action: &'static str, path: &Path, call: &'static str, errno: Errno) -> RepositoryError {
    failed_call(action, path)(Failure { call, errno })
}

/// For `map_err`: what was being done to `path` when a call failed.
pub(super) fn failed_call(action: &'static str, path: &Path) -> impl Fn(Failure) -> RepositoryError {
    move |source| RepositoryError::Call { action, path: path.to_owned(), source }
}

/// None when there is nothing at the path.
fn open(path: &Path, access: Access) -> Result<Option<OwnedFd>, RepositoryError> {
    match regular_file::open_existing(path, access) {
        Ok(descriptor) => Ok(Some(descriptor)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(match regular_file::status_of_path(path) {
            Ok(Status { kind, .. }) if kind != Kind::Regular => {
                RepositoryError::NotRegular { path: path.to_owned(), kind }
            }
            _ => call("open", path, "open", errno),
        }),
    }
}

/// None when somebody else was faster.
fn create(path: &Path, creation: &Creation) -> Result<Option<OwnedFd>, RepositoryError> {
    for _ in 0..2 {
        match regular_file::create_new(path, creation.file_mode) {
            Ok(descriptor) => return Ok(Some(descriptor)),
            Err(Errno::EEXIST) => return Ok(None),
            Err(Errno::ENOENT) => create_directories(path, creation)?,
            Err(errno) => return Err(call("create", path, "open", errno)),
        }
    }
    Ok(None)
}

/// A directory that others could have prepared is looked at before anything in it is trusted.
fn prepare_private(base: &Path) -> Result<(), RepositoryError> {
    let status = match regular_file::status_of_path(base) {
        Err(Errno::ENOENT) => {
            regular_file::create_directory(base, 0o700)
                .map_err(|errno| call("create", base, "mkdir", errno))?;
            regular_file::status_of_path(base)
        }
        status => status,
    };
    let status = status.map_err(|errno| call("look at", base, "lstat", errno))?;
    if regular_file::is_private_directory(&status) {
        Ok(())
    } else {
        Err(RepositoryError::NotPrivate { path: base.to_owned() })
    }
}

fn create_directories(path: &Path, creation: &Creation) -> Result<(), RepositoryError> {
    let base = &creation.base;
    match regular_file::status_of_path(base) {
        Ok(_) => {}
        Err(Errno::ENOENT) if creation.create_base => {
            let parent = creation.private.as_deref().or_else(|| base.parent()).unwrap_or(base);
            create_below(parent, base, 0o700)?;
        }
        Err(Errno::ENOENT) => return Err(RepositoryError::NoDirectory { path: base.clone() }),
        Err(errno) => return Err(call("look at", base, "lstat", errno)),
    }
    let parent = path.parent().unwrap_or(path);
    create_below(base, parent, creation.directory_mode)
}

/// Creates what is missing of `directory` below `base`.
fn create_below(base: &Path, directory: &Path, mode: u32) -> Result<(), RepositoryError> {
    let Ok(below) = directory.strip_prefix(base) else {
        return Err(RepositoryError::NoDirectory { path: directory.to_owned() });
    };
    let mut made = base.to_owned();
    for component in below {
        made.push(component);
        regular_file::create_directory(&made, mode).map_err(|errno| call("create", &made, "mkdir", errno))?;
    }
    Ok(())
}

fn judge(path: &Path, descriptor: &OwnedFd) -> Result<Status, RepositoryError> {
    let status = regular_file::status(descriptor).map_err(|errno| call("look at", path, "fstat", errno))?;
    if status.kind != Kind::Regular {
        return Err(RepositoryError::NotRegular { path: path.to_owned(), kind: status.kind });
    }
    if status.links > 1 {
        return Err(RepositoryError::SeveralLinks { path: path.to_owned(), links: status.links });
    }
    Ok(status)
}

fn judge_owner(path: &Path, status: &Status, expected: u32) -> Result<(), RepositoryError> {
    if status.uid == expected {
        return Ok(());
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    let parent = regular_file::status_of_path(directory)
        .map_err(|errno| call("look at", directory, "lstat", errno))?;
    if parent.is_shared_directory() {
        return Err(RepositoryError::WrongOwner { path: path.to_owned(), owner: status.uid, expected });
    }
    Ok(())
}
