//! Files that can be executed, asked as `execve` will: with the effective ids, links followed. And the one file that this
//! very process executes, so that it can be told from others wherever it turns up under another name.

use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags},
    sys::stat::{SFlag, stat},
    unistd::{AccessFlags, faccessat},
};

use crate::sys::{descriptor::FileId, unsafe_calls};

/// The link that the kernel keeps to the file of this process.
const OWN: &str = "/proc/self/exe";

/// Which file it is that would be executed, or why none can be.
pub fn check(path: &Path) -> Result<FileId, Errno> {
    faccessat(AT_FDCWD, path, AccessFlags::X_OK, AtFlags::AT_EACCESS)?;
    let status = stat(path)?;
    if status.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits() {
        Ok(FileId::from(&status))
    } else {
        Err(Errno::EACCES)
    }
}

/// The file or directory that a path leads to.
pub fn identity(path: &Path) -> Option<FileId> {
    stat(path).ok().map(|status| FileId::from(&status))
}

/// The file that this process executes; none where `/proc` is missing.
pub fn own() -> Option<FileId> {
    identity(Path::new(OWN))
}

/// The path of that file, every link resolved.
pub fn own_path() -> Option<PathBuf> {
    fs::read_link(OWN).ok()
}

/// The path that the kernel was given to execute: a link stays a link. For a script it is the script's.
pub fn executed_path() -> Option<PathBuf> {
    unsafe_calls::executed_path().map(|path| PathBuf::from(OsString::from_vec(path.into_bytes())))
}
