//! One editor at a time. The lock is on a file of its own that no other user can open, so that no other user
//! can keep it locked. The file contains the path of the edited copy, so that the copy is found after a
//! crash. It is removed when editing ends.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{Read, Seek, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
    rc::Rc,
};

use nix::{
    errno::Errno,
    unistd::{UnlinkatFlags, unlinkat},
};

use super::{
    failure::Failure,
    record_lock::{self, Bytes, Mode, Ownership},
    regular_file::{Access, create_new_at, open_existing_at, status, status_at},
    trusted_file::TrustedDirectory,
};

const WHOLE: Bytes = 0..=0;

/// The lock, until it is dropped.
#[must_use = "the lock goes when this is dropped"]
#[derive(Debug)]
pub(crate) struct EditLock {
    directory: Rc<TrustedDirectory>,
    name: OsString,
    file: File,
    left: Option<PathBuf>,
}

/// Why there is no lock.
#[derive(Debug)]
pub(crate) enum NoLock {
    /// Another process has it; its process id, if the kernel shows it.
    Taken(Option<i32>),
    /// A call failed.
    Failed(Failure),
}

impl EditLock {
    /// Takes it for the files of a policy whose main file has this name in a directory.
    pub(crate) fn take(directory: &Rc<TrustedDirectory>, main: &OsStr) -> Result<Self, NoLock> {
        let mut name = OsString::from(".");
        name.push(main);
        name.push(".lock");
        loop {
            let file = File::from(open(directory, &name).map_err(|errno| failed("open", errno))?);
            let taken = record_lock::try_lock(file.as_fd(), &WHOLE, Mode::Write, Ownership::Process);
            if !taken.map_err(|errno| failed("fcntl", errno))? {
                let other = record_lock::conflict_with_process(file.as_fd(), &WHOLE).ok().flatten();
                return Err(NoLock::Taken(other.and_then(|other| other.pid)));
            }
            // Its previous holder may have removed the file: then this lock is void.
            let here = status_at(directory.descriptor(), name.as_os_str()).map(|status| status.id);
            let ours = status(&file).map(|status| status.id);
            if here.is_ok() && here == ours {
                let left = what_was_left(&file);
                return Ok(Self { directory: Rc::clone(directory), name, file, left });
            }
        }
    }

    /// The copy that was being edited when an earlier lock was lost, if it still exists.
    pub(crate) fn left(&self) -> Option<&Path> {
        self.left.as_deref()
    }

    /// Records what is being edited.
    pub(crate) fn note(&mut self, copy: &Path) -> Result<(), Failure> {
        self.file.set_len(0).map_err(Failure::of_io("ftruncate"))?;
        self.file.rewind().map_err(Failure::of_io("lseek"))?;
        self.file.write_all(copy.as_os_str().as_bytes()).map_err(Failure::of_io("write"))
    }
}

impl Drop for EditLock {
    fn drop(&mut self) {
        let _ = unlinkat(self.directory.descriptor(), self.name.as_os_str(), UnlinkatFlags::NoRemoveDir);
    }
}

fn failed(call: &'static str, errno: Errno) -> NoLock {
    NoLock::Failed(Failure { call, errno })
}

fn open(directory: &TrustedDirectory, name: &OsStr) -> Result<OwnedFd, Errno> {
    loop {
        match open_existing_at(directory.descriptor(), name, Access::ReadWrite) {
            Err(Errno::ENOENT) => {}
            opened => return opened,
        }
        match create_new_at(directory.descriptor(), name, 0o600) {
            Err(Errno::EEXIST) => {}
            created => return created,
        }
    }
}

fn what_was_left(file: &File) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    file.take(4096).read_to_end(&mut bytes).ok()?;
    let path = PathBuf::from(OsString::from_vec(bytes));
    (path.is_absolute() && path.exists()).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::sys::{JudgedDirectories, own_uid};

    use super::*;

    /// The lock names the copy that is edited. If its process is killed, the next one finds the copy.
    #[test]
    fn the_copy_is_found_by_the_next_editor() {
        let temporary = tempfile::tempdir().expect("a directory");
        let judged = JudgedDirectories::for_caller(own_uid());
        let directory = TrustedDirectory::open(temporary.path(), &judged).expect("trusted").expect("there");
        let directory = Rc::new(directory);
        let (file, copy) = (temporary.path().join(".policy.toml.lock"), temporary.path().join("copy"));
        let take = || EditLock::take(&directory, OsStr::new("policy.toml")).expect("it is free");
        let mut lock = take();
        assert_eq!(lock.left(), None);
        lock.note(&temporary.path().join("a name that is longer")).expect("room");
        lock.note(&copy).expect("room");
        assert_eq!(fs::read(&file).expect("the lock"), copy.as_os_str().as_bytes());
        fs::write(&copy, "").expect("a file");
        // A killed process removes nothing.
        std::mem::forget(lock);
        assert_eq!(take().left(), Some(copy.as_path()));
        assert!(!file.exists(), "the second one has ended");
        assert_eq!(take().left(), None);
    }
}
