//! Which file it is, whatever path or descriptor leads to it.

use std::path::Path;

use nix::sys::stat::{FileStat, makedev};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// A file's identity: two paths that lead to the same are one file.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FileId {
    /// The device number.
    pub device: u64,
    /// The inode number on that device.
    pub inode: u64,
}

impl FileId {
    /// Of the file that a path leads to, as the kernel has it in memory, if it leads anywhere.
    pub(crate) fn in_memory(path: &Path) -> Option<Self> {
        let status = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::INO).ok()?;
        let device = makedev(status.stx_dev_major.into(), status.stx_dev_minor.into());
        Some(Self { device, inode: status.stx_ino })
    }
}

impl From<&FileStat> for FileId {
    fn from(stat: &FileStat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}
