//! Detects that a file changed.

use std::path::Path;

use nix::sys::{
    stat::{FileStat, lstat, makedev, stat},
    statfs::{BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, FsType, TMPFS_MAGIC, XFS_SUPER_MAGIC, statfs},
};
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Statx, StatxFlags, openat2, statx},
    io::Errno,
};

/// File systems that have the state of an open file in memory, and that only this host changes. With other
/// file systems, a server or a daemon may have to be asked.
const LOCAL: [FsType; 4] = [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC];

/// Distinguishes one state of a file from the next, as cheaply as one `stat`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The state of the file at a path now; `None` if nothing can be seen there.
    pub fn of(path: &Path) -> Option<Stamp> {
        stat(path).ok().as_ref().map(Stamp::from)
    }

    /// The same of a link itself.
    pub fn of_link(path: &Path) -> Option<Stamp> {
        lstat(path).ok().as_ref().map(Stamp::from)
    }

    /// Whether the file at a path surely still has this state, or is surely absent: by what the kernel has in
    /// memory, without waiting for a disk. The file system was seen to [be local](Self::is_local).
    pub fn is_surely_still(path: &Path, stamp: Option<Stamp>) -> bool {
        let opened = openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::CACHED);
        match (opened, stamp) {
            (Ok(file), Some(stamp)) => {
                // Even if the path leads elsewhere by now, no server is contacted.
                let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
                let status = statx(file, "", flags, StatxFlags::BASIC_STATS);
                status.is_ok_and(|status| Stamp::from(&status) == stamp)
            }
            (Err(error), None) => error == Errno::NOENT,
            // `AGAIN` where the kernel would have to ask a disk.
            _ => false,
        }
    }

    /// Whether the file at a path is on a file system for which [`Self::is_surely_still`] works. May have to
    /// wait for the disk, or the server.
    pub fn is_local(path: &Path) -> bool {
        statfs(path).is_ok_and(|found| LOCAL.contains(&found.filesystem_type()))
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

impl From<&Statx> for Stamp {
    fn from(status: &Statx) -> Self {
        let at = |time: rustix::fs::StatxTimestamp| (time.tv_sec, i64::from(time.tv_nsec));
        Stamp {
            device: makedev(status.stx_dev_major.into(), status.stx_dev_minor.into()),
            inode: status.stx_ino,
            size: i64::try_from(status.stx_size).unwrap_or(i64::MAX),
            modified: at(status.stx_mtime),
            changed: at(status.stx_ctime),
        }
    }
}

// Which file it is, whatever path or descriptor leads to it.

/// A file's identity: two paths that lead to the same are one file.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FileId {
    /// The device number.
    pub device: u64,
    /// The inode number on that device.
    pub inode: u64,
}

impl FileId {
    /// The state of a path's file from the kernel's cache, if it exists.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
        assert!(!Stamp::is_surely_still(&path.join("below"), None), "it is no directory");
        let now = Stamp::of(&path).expect("a file");
        assert!(stamp.is_some_and(|stamp| stamp.is_of_same_file(&now)));
        let other = Stamp::of(directory.path()).expect("a directory");
        assert!(!other.is_of_same_file(&now));
        fs::remove_file(&path).expect("a file");
        assert!(!Stamp::is_surely_still(&path, stamp));
    }

    #[test]
    fn what_is_made_up_when_it_is_read_is_not_local() {
        assert!(!Stamp::is_local(Path::new("/proc/self/status")));
        assert!(!Stamp::is_local(Path::new("/nowhere")));
    }
}
