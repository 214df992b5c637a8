//! Whether a file can be executed, asked as `execve` will: with the effective ids, links followed.

use std::path::Path;

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags},
    sys::stat::{SFlag, stat},
    unistd::{AccessFlags, faccessat},
};

/// Says why a file cannot be executed.
pub fn check(path: &Path) -> Result<(), Errno> {
    faccessat(AT_FDCWD, path, AccessFlags::X_OK, AtFlags::AT_EACCESS)?;
    let mode = stat(path)?.st_mode & SFlag::S_IFMT.bits();
    if mode == SFlag::S_IFREG.bits() { Ok(()) } else { Err(Errno::EACCES) }
}
