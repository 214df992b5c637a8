//! What tells that a file changed.

use std::path::Path;

use nix::sys::stat::{FileStat, stat};

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
