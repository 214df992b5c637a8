//! A directory that only root or the caller can have changed, and the files in it, opened relative to the
//! descriptor that was judged.

use std::{
    cell::OnceCell,
    ffi::{OsStr, OsString},
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    path::{Path, PathBuf},
    rc::Rc,
};

use nix::{
    errno::Errno,
    fcntl::{AtFlags, OFlag},
    sys::stat::{FileStat, fstatat},
};
use rustix::fs::RawDir;

use crate::sys::{
    distrust::{Distrust, Reason},
    judged_directories::JudgedDirectories,
    stamp::Stamp,
    trust::Trust,
    trusted_file::TrustedFile,
    trusted_walk::{Found, Walk},
};

/// A directory that was judged; its files are opened relative to it.
#[derive(Debug)]
pub struct TrustedDirectory {
    descriptor: Rc<OwnedFd>,
    path: PathBuf,
    status: FileStat,
    names: OnceCell<Vec<OsString>>,
    caller: u32,
}

impl TrustedDirectory {
    /// Opens a directory; `None` when there is none.
    pub fn open(path: &Path, judged: &JudgedDirectories) -> Result<Option<TrustedDirectory>, Distrust> {
        judged.sparingly(|| Self::open_once(path, judged))
    }

    fn open_once(path: &Path, judged: &JudgedDirectories) -> Result<Option<TrustedDirectory>, Distrust> {
        let Some(found) = Walk::from_root(path, judged)?.end(OFlag::O_RDONLY | OFlag::O_DIRECTORY)? else {
            return Ok(None);
        };
        let Found { descriptor, path, status } = found;
        let judgement = judged.trust().judge_directory(&status);
        judgement.map_err(|reason| Distrust { path: path.clone(), reason })?;
        let (descriptor, names) = (Rc::new(descriptor), OnceCell::new());
        Ok(Some(TrustedDirectory { descriptor, path, status, names, caller: judged.caller }))
    }

    /// Opens a directory of the system: root's, or that of whoever owns the directory above it and so could
    /// put another in its place. Nobody else may have added even a name, and the files in it must belong to
    /// one of the two.
    pub fn open_systems(
        path: &Path,
        judged: &JudgedDirectories,
    ) -> Result<Option<TrustedDirectory>, Distrust> {
        let Some(directory) = Self::open(path, judged)? else { return Ok(None) };
        let (owner, mode) = (directory.status.st_uid, directory.status.st_mode & 0o7777);
        let above = || fstatat(&directory.descriptor, "..", AtFlags::empty()).map(|above| above.st_uid);
        let reason = if owner != 0 && above() != Ok(owner) {
            Reason::NotRoots(owner)
        } else if mode & 0o002 != 0 {
            Reason::WorldWritable(mode)
        } else {
            return Ok(Some(TrustedDirectory { caller: owner, ..directory }));
        };
        Err(Distrust { path: directory.path, reason })
    }

    /// The names that are in it when this is first asked, in byte order, without `.` and `..`.
    pub fn names(&self) -> Result<&[OsString], Distrust> {
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let failed = |error: rustix::io::Errno| Distrust {
            path: self.path.clone(),
            reason: Reason::System("getdents", Errno::from_raw(error.raw_os_error())),
        };
        // By the very descriptor that was judged, which can be read to the end once.
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(&self.descriptor, &mut buffer);
        let mut names = Vec::new();
        while let Some(entry) = entries.next() {
            let name = OsString::from_vec(entry.map_err(failed)?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(self.names.get_or_init(|| names))
    }

    /// Opens a file in it; `None` when it has gone.
    pub fn file(&self, name: &OsStr) -> Result<Option<TrustedFile>, Distrust> {
        self.file_trusting(name, &Trust::of_caller(self.caller))
    }

    /// The same, which may belong to this user too: it, and directories and links on the way to it.
    pub fn file_of(&self, name: &OsStr, owner: u32) -> Result<Option<TrustedFile>, Distrust> {
        self.file_trusting(name, &Trust::of_either(self.caller, owner))
    }

    fn file_trusting(&self, name: &OsStr, trust: &Trust) -> Result<Option<TrustedFile>, Distrust> {
        let walk = Walk::within(Rc::clone(&self.descriptor), &self.path, Path::new(name), trust.clone());
        TrustedFile::at_the_end_of(walk, trust)
    }

    /// What it is reached by.
    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Where it is, every link followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its state when it was opened: another one says that a file came or went.
    pub fn stamp(&self) -> Stamp {
        Stamp::from(&self.status)
    }
}
