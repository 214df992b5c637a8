//! A file that is always complete: it is written under another name in its directory, and then renamed. So
//! readers see the old text or the new one.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use nix::errno::Errno;

use super::{failure::Failure, unguessable};

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

/// The umask stays as it is, because other threads may start programs. Before the file has its name, its mode
/// may be set in a second step; a file system without modes refuses that.
fn write_beside(path: &Path, text: &[u8], mode: u32) -> Result<PathBuf, Failure> {
    let beside = name_beside(path)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside);
    let mut file = file.map_err(Failure::of_io("open"))?;
    let _ = file.set_permissions(Permissions::from_mode(mode));
    put(&beside, file.write_all(text), "write")?;
    Ok(beside)
}

/// On failure, the temporary file is removed.
fn put(beside: &Path, done: io::Result<()>, call: &'static str) -> Result<(), Failure> {
    done.map_err(|error| {
        let _ = fs::remove_file(beside);
        Failure::of_io(call)(error)
    })
}

/// Hidden, and without the ending by which other programs select files. What a killed process left, or
/// another user placed in the directory, has another name. A process id would not do: in containers all have
/// the same.
fn name_beside(path: &Path) -> Result<PathBuf, Failure> {
    let failed = Failure { call: "open", errno: Errno::EISDIR };
    let name = path.file_name().ok_or(failed)?;
    let number = unguessable().map_err(Failure::of("getrandom"))?;
    Ok(path.with_file_name(format!(".{}.{:08x}", name.to_string_lossy(), number >> 32)))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use crate::sys::{process, regular_file::status_of_path};

    use super::*;

    /// A file that a killed process left, or another user placed, does not prevent a later replacement. It is
    /// neither written to nor removed.
    #[test]
    fn leftovers_of_any_process_are_not_in_the_way() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("sample");
        let left = [".sample.1".to_owned(), format!(".sample.{}", process::own_pid())];
        for name in &left {
            fs::write(directory.path().join(name), "half of a te").expect("a file");
        }
        let unfinished = write_beside(&path, b"of a killed process", 0o644).expect("a file beside");
        for text in ["one", "another"] {
            replace(&path, text.as_bytes(), 0o640).expect("it is replaced");
            assert_eq!(fs::read_to_string(&path).expect("the file"), text);
            assert_eq!(status_of_path(&path).expect("the file").mode, 0o640);
        }
        assert_eq!(create(&path, b"new", 0o644).map_err(|failure| failure.errno), Err(Errno::EEXIST));
        create(&path.with_file_name("free"), b"new", 0o644).expect("the path is free");
        for name in &left {
            assert_eq!(fs::read(directory.path().join(name)).expect("a file"), b"half of a te");
        }
        let names = fs::read_dir(directory.path()).expect("a directory").flatten().map(|entry| entry.path());
        assert_eq!(names.filter(|path| path.file_name().is_some_and(is_hidden)).count(), 3);
        assert!(unfinished.file_name().is_some_and(is_hidden));
    }

    fn is_hidden(name: &OsStr) -> bool {
        name.as_encoded_bytes().starts_with(b".sample.")
    }
}
