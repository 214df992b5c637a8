//! A file that is always whole: it is written under another name beside its place and then put there in one step, so that
//! whoever reads it meets the old text or the new one. What was there before is replaced, also where it is a link.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use nix::errno::Errno;

use crate::sys::{
    failure::{Failure, errno_of},
    process, regular_file,
};

/// Puts a text at the path, with exactly these permission bits.
pub fn replace(path: &Path, text: &[u8], mode: u32) -> Result<(), Failure> {
    let beside = name_beside(path)?;
    let descriptor =
        regular_file::create_new(&beside, mode).map_err(|errno| Failure { call: "open", errno })?;
    let written = File::from(descriptor).write_all(text).map_err(|error| ("write", error));
    let put = written.and_then(|()| fs::rename(&beside, path).map_err(|error| ("rename", error)));
    put.map_err(|(call, error)| {
        let _ = fs::remove_file(&beside);
        Failure { call, errno: errno_of(&error) }
    })
}

/// Hidden, and without the ending, by which others tell what they should read.
fn name_beside(path: &Path) -> Result<PathBuf, Failure> {
    let failed = Failure { call: "open", errno: Errno::EISDIR };
    let name = path.file_name().ok_or(failed)?;
    Ok(path.with_file_name(format!(".{}.{}", name.to_string_lossy(), process::own_pid())))
}
