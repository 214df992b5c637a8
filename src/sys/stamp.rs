//! What tells that a file changed.

use std::path::Path;

use nix::sys::stat::{FileStat, fstat, stat};
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
};

/// What tells one state of a file from the next, as cheaply as one `stat`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The state of whatever stands at a path now; `None` when nothing can be seen there.
    pub fn of(path: &Path) -> Option<Stamp> {
        stat(path).ok().as_ref().map(Stamp::from)
    }

    /// Whether the state of whatever stands at a path is known to be this one still, or that nothing stands
    /// there: by what the kernel has in memory, so that no disk is waited for.
    pub fn is_surely_still(path: &Path, stamp: Option<Stamp>) -> bool {
        let opened = openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::CACHED);
        match (opened, stamp) {
            (Ok(file), Some(stamp)) => fstat(file).is_ok_and(|status| Stamp::from(&status) == stamp),
            (Err(error), None) => error == Errno::NOENT,
            // `AGAIN` where the kernel would have to ask a disk.
            _ => false,
        }
    }

    /// Whether it is of the same file, changed or not.
    pub fn is_of_same_file(&self, other: &Stamp) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl From<&FileStat> for Stamp {
    fn from(status: &FileStat) -> Self {
        Stamp {
            device: status.st_dev,
            inode: status.st_ino,
            size: status.st_size,
            modified: (status.st_mtime, status.st_mtime_nsec),
            changed: (status.st_ctime, status.st_ctime_nsec),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_surely_what_it_was_as_long_as_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::write(&path, "one").expect("a file");
        let stamp = Stamp::of(&path);
        assert!(Stamp::is_surely_still(&path, stamp));
        assert!(!Stamp::is_surely_still(&path, None));
        fs::write(&path, "three").expect("a file");
        assert!(!Stamp::is_surely_still(&path, stamp));
        fs::remove_file(&path).expect("a file");
        assert!(!Stamp::is_surely_still(&path, stamp));
    }
}
