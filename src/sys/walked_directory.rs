//! A directory in which a file is searched, opened or created, although other users may have prepared its
//! path. It is reached by a walk that checks each directory by its descriptor, and the file is opened
//! relative to the checked descriptor.

use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Path, PathBuf},
    rc::Rc,
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, open, openat},
    sys::stat::{FileStat, Mode, fstat},
    unistd::{UnlinkatFlags, unlinkat},
};
use rustix::fs::Dir;

use super::{
    failure::Failure,
    regular_file::{self, Access, Status},
    trust::{InsecurePath, Trust},
    trusted_file::{Reached, Walk},
};

/// A directory that was reached, open.
#[derive(Clone, Debug)]
pub(crate) struct WalkedDirectory {
    descriptor: Rc<OwnedFd>,
    path: PathBuf,
    status: FileStat,
    trust: Trust,
}

impl WalkedDirectory {
    /// Opens a directory that the caller trusts, together with its owner: links are followed.
    pub(crate) fn named(path: &Path) -> Result<Self, Failure> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let descriptor = open(path, flags, Mode::empty()).map_err(Failure::of("open"))?;
        let status = fstat(&descriptor).map_err(Failure::of("fstat"))?;
        let trust = Trust { owners: vec![status.st_uid], common: true };
        Ok(Self { descriptor: Rc::new(descriptor), path: path.to_owned(), status, trust })
    }

    /// Also trusts another user below it.
    pub(crate) fn trust(&mut self, uid: u32) {
        self.trust.owners.push(uid);
    }

    /// Walks to a directory below, and creates missing ones with exactly these permission bits, if given.
    /// None when something does not exist.
    pub(crate) fn below(self, path: &Path, missing: Option<u32>) -> Result<Option<Self>, InsecurePath> {
        if path.as_os_str().is_empty() {
            return Ok(Some(self));
        }
        let Self { descriptor, path: at, status: before, trust } = self;
        let walk = Walk::within(descriptor, &at, path, trust.clone());
        let Some(Reached { descriptor, path, status }) = walk.directory(missing)? else { return Ok(None) };
        Ok(Some(Self { descriptor, path, status: status.unwrap_or(before), trust }))
    }

    /// Where it is, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What kind of directory it is.
    pub(crate) fn status(&self) -> Status {
        Status::from(self.status)
    }

    /// Whether an untrusted user could have put a file here.
    pub(crate) fn is_open_to_others(&self) -> bool {
        !self.trust.is_closed_to_others(&self.status)
    }

    /// What the name leads to now, links not followed.
    pub(crate) fn status_of(&self, name: &OsStr) -> Result<Status, Errno> {
        regular_file::status_at(&self.descriptor, name)
    }

    /// Opens an existing file. `ELOOP` means that it is a symbolic link.
    pub(crate) fn open(&self, name: &OsStr, access: Access) -> Result<OwnedFd, Errno> {
        regular_file::open_existing_at(&self.descriptor, name, access)
    }

    /// Creates a file that must not be there yet, with exactly these permission bits.
    pub(crate) fn create(&self, name: &OsStr, mode: u32) -> Result<OwnedFd, Errno> {
        regular_file::create_new_at(&self.descriptor, name, mode)
    }

    /// Removes a name of a file.
    pub(crate) fn remove(&self, name: &OsStr) -> Result<(), Errno> {
        unlinkat(self.descriptor.as_fd(), name, UnlinkatFlags::NoRemoveDir)
    }

    /// The names in it, without `.` and `..`; none if it may not be read.
    pub(crate) fn names(&self) -> Vec<OsString> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let Ok(readable) = openat(self.descriptor.as_fd(), ".", flags, Mode::empty()) else {
            return Vec::new();
        };
        let entries = Dir::read_from(readable).into_iter().flatten().filter_map(Result::ok);
        let names = entries.map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_vec()));
        names.filter(|name| name != "." && name != "..").collect()
    }
}
