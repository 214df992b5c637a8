//! Which file it is, whatever path or descriptor leads to it.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use nix::sys::stat::FileStat;

/// A file's identity: two paths that lead to the same are one file.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FileId {
    /// The device number.
    pub device: u64,
    /// The inode number on that device.
    pub inode: u64,
}

impl FileId {
    /// Of the file that a path leads to, if it leads anywhere.
    pub(crate) fn of_target(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|status| Self { device: status.dev(), inode: status.ino() })
    }
}

impl From<&FileStat> for FileId {
    fn from(stat: &FileStat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}
