//! A path, walked from `/` down by descriptor. Each directory is judged on the descriptor it is entered with, and links
//! are followed by hand, so that nobody can swap a component between the check and the use.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, open, openat, readlinkat},
    libc,
    sys::stat::{FileStat, Mode, fstat},
};

use crate::sys::{
    accounts,
    distrust::{Distrust, Reason},
};

/// As many links as the kernel follows in one path.
const MOST_LINKS: u32 = 40;

/// The end of a walk: opened, not yet judged.
pub(super) struct Found {
    pub(super) descriptor: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) status: FileStat,
}

/// A path on the way down.
pub(super) struct Walk {
    at: OwnedFd,
    path: PathBuf,
    left: VecDeque<OsString>,
    links: u32,
    caller: u32,
}

impl Walk {
    /// A walk that begins in a directory that was judged.
    pub(super) fn within(at: OwnedFd, path: &Path, name: &OsStr, caller: u32) -> Walk {
        Walk { at, path: path.to_owned(), left: VecDeque::from([name.to_owned()]), links: 0, caller }
    }

    pub(super) fn from_root(path: &Path, caller: u32) -> Result<Walk, Distrust> {
        let failed = |call, errno| Distrust { path: path.to_owned(), reason: Reason::System(call, errno) };
        let absolute = std::path::absolute(path).map_err(|error| {
            failed("getcwd", Errno::from_raw(error.raw_os_error().unwrap_or(libc::EINVAL)))
        })?;
        let mut walk = Walk {
            at: open_root(caller)?,
            path: PathBuf::from("/"),
            left: VecDeque::new(),
            links: 0,
            caller,
        };
        walk.queue(&absolute);
        Ok(walk)
    }

    /// Puts the components of a path before those that are left.
    fn queue(&mut self, path: &Path) {
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => self.left.push_front(name.to_owned()),
                Component::ParentDir => self.left.push_front("..".into()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }

    /// Goes down to the last component and opens it with these flags; `None` when something on the way is absent.
    pub(super) fn end(mut self, flags: OFlag) -> Result<Option<Found>, Distrust> {
        while let Some(name) = self.left.pop_front() {
            let here = self.join(&name);
            if self.left.is_empty() {
                match openat(
                    &self.at,
                    name.as_os_str(),
                    flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
                    Mode::empty(),
                ) {
                    Ok(descriptor) => {
                        let status = status(&descriptor, &here)?;
                        return Ok(Some(Found { descriptor, path: here, status }));
                    }
                    Err(Errno::ENOENT) => return Ok(None),
                    // A link, or, where a directory was asked for, something that is none.
                    Err(Errno::ELOOP | Errno::ENOTDIR) => {}
                    Err(errno) => return Err(Distrust { path: here, reason: Reason::System("open", errno) }),
                }
            }
            if !self.step(&name, here)? {
                return Ok(None);
            }
        }
        Err(Distrust { path: self.path, reason: Reason::NotAFile })
    }

    /// Enters a directory or follows a link; false when there is nothing.
    fn step(&mut self, name: &OsStr, here: PathBuf) -> Result<bool, Distrust> {
        let blame = |reason| Distrust { path: here.clone(), reason };
        let next =
            match openat(&self.at, name, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())
            {
                Ok(next) => next,
                Err(Errno::ENOENT) => return Ok(false),
                Err(errno) => return Err(blame(Reason::System("open", errno))),
            };
        let status = status(&next, &here)?;
        match kind(&status) {
            libc::S_IFDIR => {
                judge_directory(&status, self.caller).map_err(blame)?;
                self.at = next;
                self.path = here;
            }
            libc::S_IFLNK => {
                // In a sticky directory anybody can leave a link, and it says where to go on.
                judge_owner(&status, self.caller).map_err(blame)?;
                self.links += 1;
                if self.links > MOST_LINKS {
                    return Err(blame(Reason::TooManyLinks));
                }
                let target =
                    readlinkat(&next, "").map_err(|errno| blame(Reason::System("readlink", errno)))?;
                if target.as_bytes().starts_with(b"/") {
                    self.at = open_root(self.caller)?;
                    self.path = PathBuf::from("/");
                }
                self.queue(Path::new(&target));
            }
            _ => return Err(blame(Reason::NotADirectory)),
        }
        Ok(true)
    }

    /// The path of an entry of the directory that was reached, for messages.
    fn join(&self, name: &OsStr) -> PathBuf {
        if name == ".." { self.path.parent().unwrap_or(&self.path).to_owned() } else { self.path.join(name) }
    }
}

fn open_root(caller: u32) -> Result<OwnedFd, Distrust> {
    let root = Path::new("/");
    let blame = |reason| Distrust { path: root.to_owned(), reason };
    let descriptor = open(root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(|errno| blame(Reason::System("open", errno)))?;
    judge_directory(&status(&descriptor, root)?, caller).map_err(blame)?;
    Ok(descriptor)
}

fn status(descriptor: impl AsFd, path: &Path) -> Result<FileStat, Distrust> {
    fstat(descriptor)
        .map_err(|errno| Distrust { path: path.to_owned(), reason: Reason::System("fstat", errno) })
}

pub(super) fn kind(status: &FileStat) -> u32 {
    status.st_mode & libc::S_IFMT
}

pub(super) fn judge_owner(status: &FileStat, caller: u32) -> Result<(), Reason> {
    if status.st_uid == 0 || status.st_uid == caller { Ok(()) } else { Err(Reason::Owner(status.st_uid)) }
}

/// Whether the group is the owner's alone, as distributions set it up that give every user a group of his name: what such a
/// group can write, only he can. Root's is none, because others are put into it.
pub(super) fn is_private_group(status: &FileStat) -> bool {
    status.st_uid != 0 && accounts::is_private_group(status.st_uid, status.st_gid)
}

/// A sticky directory is as good as one that is not writable: others can add names, but not replace ours. Group 0 is
/// root's, and some distributions let it write to system directories.
pub(super) fn judge_directory(status: &FileStat, caller: u32) -> Result<(), Reason> {
    judge_owner(status, caller)?;
    let mode = status.st_mode & 0o7777;
    if mode & libc::S_ISVTX != 0 {
        return Ok(());
    }
    if mode & 0o002 != 0 {
        return Err(Reason::WorldWritable(mode));
    }
    if mode & 0o020 != 0 && status.st_gid != 0 && !is_private_group(status) {
        return Err(Reason::GroupWritable(mode));
    }
    Ok(())
}
