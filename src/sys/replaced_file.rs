//! A file that is always complete: it is written under another name in its directory, and then renamed. So
//! readers see the old text or the new one.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use nix::errno::Errno;

use crate::sys::{failure::Failure, process, regular_file};

/// Puts a text at the path, with exactly these permission bits.
pub(crate) fn replace(path: &Path, text: &[u8], mode: u32) -> Result<(), Failure> {
    let beside = write_beside(path, text, mode)?;
    put(&beside, fs::rename(&beside, path), "rename")
}

/// The same for a free path: `EEXIST` means that it exists.
pub(crate) fn create(path: &Path, text: &[u8], mode: u32) -> Result<(), Failure> {
    let beside = write_beside(path, text, mode)?;
    let linked = fs::hard_link(&beside, path).and_then(|()| fs::remove_file(&beside));
    put(&beside, linked, "link")
}

fn write_beside(path: &Path, text: &[u8], mode: u32) -> Result<PathBuf, Failure> {
    let beside = name_beside(path)?;
    let descriptor = regular_file::create_new(&beside, mode).map_err(Failure::of("open"))?;
    put(&beside, File::from(descriptor).write_all(text), "write")?;
    Ok(beside)
}

/// On failure, the temporary file is removed.
fn put(beside: &Path, done: io::Result<()>, call: &'static str) -> Result<(), Failure> {
    done.map_err(|error| {
        let _ = fs::remove_file(beside);
        Failure::of_io(call)(error)
    })
}

/// Hidden, and without the ending by which other programs select files.
fn name_beside(path: &Path) -> Result<PathBuf, Failure> {
    let failed = Failure { call: "open", errno: Errno::EISDIR };
    let name = path.file_name().ok_or(failed)?;
    Ok(path.with_file_name(format!(".{}.{}", name.to_string_lossy(), process::own_pid())))
}
