//! Descriptors that must reach the program, and those that came from the caller. A descriptor is moved to a high number
//! *before* it carries a lock, because closing the low one would drop every POSIX lock of the process on that file; and
//! a file that the process already holds locks on is reached only through the descriptor that it inherited.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    fs,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
        unix::fs::MetadataExt,
    },
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl, open},
    sys::{
        resource::{Resource, getrlimit},
        stat::{FileStat, Mode, fstat},
    },
};

use crate::sys::unsafe_calls;

/// Where descriptors that go to the program are put, unless the policy says otherwise: out of the way of scripts, which
/// number theirs from 3.
pub const DEFAULT_FLOOR: RawFd = 200;

/// A file's identity: two paths that lead to the same are one file.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FileId {
    /// The device number.
    pub device: u64,
    /// The inode number on that device.
    pub inode: u64,
}

impl From<&FileStat> for FileId {
    fn from(stat: &FileStat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

/// The descriptors above 2 (and files behind 0 to 2) that this process was started with.
#[derive(Debug, Default)]
pub struct Inherited {
    files: Vec<(RawFd, FileId)>,
}

impl Inherited {
    /// Looks at what the caller left open. To be called before rungate opens files of its own that it keeps.
    pub fn scan() -> Self {
        let standard: Vec<(RawFd, FileId)> = (0..=2).filter_map(identify).collect();
        // Since Linux 6.2 the size of this directory is the number of open descriptors: in the usual case the whole answer.
        let open = fs::metadata("/proc/self/fd").map_or(0, |directory| directory.size());
        if open == standard.len() as u64 {
            return Self { files: standard };
        }
        let mut files = standard;
        match fs::read_dir("/proc/self/fd") {
            Ok(entries) => files.extend(
                entries
                    .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
                    .filter(|number| *number > 2)
                    .filter_map(identify),
            ),
            Err(_) => files.extend((3..soft_limit()).filter_map(identify)),
        }
        Self { files }
    }

    /// Whether nothing but the standard three came along.
    pub fn is_plain(&self) -> bool {
        self.files.iter().all(|(number, _)| *number <= 2)
    }

    /// An inherited descriptor through which `file` can be read and written, if there is one: the only kind that can carry a
    /// POSIX write lock of this process.
    pub fn writable(&self, file: FileId) -> Option<BorrowedFd<'static>> {
        self.of(file).find(|descriptor| access(*descriptor) == Some(OFlag::O_RDWR))
    }

    /// Every inherited descriptor of `file`.
    pub fn of(&self, file: FileId) -> impl Iterator<Item = BorrowedFd<'static>> {
        self.files
            .iter()
            .filter(move |(_, id)| *id == file)
            .map(|(number, _)| unsafe_calls::inherited(*number))
    }
}

fn access(descriptor: BorrowedFd<'_>) -> Option<OFlag> {
    let flags = fcntl(descriptor, FcntlArg::F_GETFL).ok()?;
    Some(OFlag::from_bits_truncate(flags) & OFlag::O_ACCMODE)
}

fn identify(number: RawFd) -> Option<(RawFd, FileId)> {
    let stat = fstat(unsafe_calls::inherited(number)).ok()?;
    Some((number, FileId::from(&stat)))
}

/// One more than the highest number that a new descriptor may get.
fn soft_limit() -> RawFd {
    getrlimit(Resource::RLIMIT_NOFILE)
        .ok()
        .and_then(|(soft, _)| RawFd::try_from(soft).ok())
        .unwrap_or(RawFd::MAX)
}

/// Moves a descriptor that carries no lock yet to the lowest free number at or above `floor`, or as high as the soft limit
/// of open files allows. It stays close-on-exec.
pub fn move_high(descriptor: OwnedFd, floor: RawFd) -> Result<OwnedFd, Errno> {
    if descriptor.as_raw_fd() >= floor {
        return Ok(descriptor);
    }
    match duplicate_at_or_above(&descriptor, floor) {
        Err(Errno::EINVAL | Errno::EMFILE) => {}
        moved => return moved,
    }
    let ceiling = soft_limit().min(floor);
    (3..ceiling)
        .rev()
        .take_while(|number| *number > descriptor.as_raw_fd())
        .find_map(|number| duplicate_at_or_above(&descriptor, number).ok())
        .or_else(|| (descriptor.as_raw_fd() > 2).then_some(descriptor))
        .ok_or(Errno::EMFILE)
}

fn duplicate_at_or_above(descriptor: &OwnedFd, number: RawFd) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(descriptor, number).map_err(|error| Errno::from_raw(error.raw_os_error()))
}

/// Opens the same file once more, only to be read, with a description of its own and a number at or above `floor`. By way of
/// `/proc`, because the path may lead elsewhere by now.
pub fn reopen_to_read(descriptor: BorrowedFd<'_>, floor: RawFd) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let reader = open(path.as_str(), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    move_high(reader, floor)
}

/// Lets a descriptor live on in the program that this process becomes.
pub fn keep_across_exec(descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
    fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty())).map(drop)
}

/// The identity of the file behind a descriptor, with what else `fstat` says.
pub fn stat(descriptor: impl AsFd) -> Result<FileStat, Errno> {
    fstat(descriptor)
}
