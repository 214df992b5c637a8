//! A directory that only root or the caller can have changed, and the files in it, opened relative to the descriptor
//! that was judged.

use std::{
    ffi::{OsStr, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    path::{Path, PathBuf},
};

use nix::{errno::Errno, fcntl::OFlag, libc, sys::stat::FileStat};
use rustix::fs::Dir;

use crate::sys::{
    distrust::{Distrust, Reason},
    stamp::Stamp,
    trusted_file::TrustedFile,
    trusted_walk::{Found, Walk, judge_directory},
};

/// A directory that was judged; its files are opened relative to it.
#[derive(Debug)]
pub struct TrustedDirectory {
    descriptor: OwnedFd,
    path: PathBuf,
    status: FileStat,
    caller: u32,
}

impl TrustedDirectory {
    /// Opens a directory for a caller with this real uid; `None` when there is none.
    pub fn open(path: &Path, caller: u32) -> Result<Option<TrustedDirectory>, Distrust> {
        let Some(found) = Walk::from_root(path, caller)?.end(OFlag::O_RDONLY | OFlag::O_DIRECTORY)? else {
            return Ok(None);
        };
        let Found { descriptor, path, status } = found;
        judge_directory(&status, caller).map_err(|reason| Distrust { path: path.clone(), reason })?;
        Ok(Some(TrustedDirectory { descriptor, path, status, caller }))
    }

    /// The names in it, in byte order, without `.` and `..`.
    pub fn names(&self) -> Result<Vec<OsString>, Distrust> {
        let failed = |error: rustix::io::Errno| Distrust {
            path: self.path.clone(),
            reason: Reason::System("getdents", Errno::from_raw(error.raw_os_error())),
        };
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor).map_err(failed)? {
            let name = OsString::from_vec(entry.map_err(failed)?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens a file in it; `None` when it has gone.
    pub fn file(&self, name: &OsStr) -> Result<Option<TrustedFile>, Distrust> {
        let descriptor = self.descriptor.try_clone().map_err(|error| Distrust {
            path: self.path.clone(),
            reason: Reason::System(
                "fcntl(F_DUPFD_CLOEXEC)",
                Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)),
            ),
        })?;
        let walk = Walk::within(descriptor, &self.path, name, self.caller);
        TrustedFile::at_the_end_of(walk, self.caller)
    }

    /// Its state when it was opened: another one says that a file came or went.
    pub fn stamp(&self) -> Stamp {
        Stamp::from(&self.status)
    }
}
