//! A path, walked from `/` down by descriptor. Each directory is judged on the descriptor it is entered with,
//! and links are followed by hand, so that nobody can swap a component between the check and the use.

use std::{
    borrow::Cow,
    collections::VecDeque,
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path, PathBuf},
    rc::Rc,
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, open, openat, readlinkat},
    libc,
    sys::stat::{FileStat, Mode, fstat},
};

use crate::{
    deliberate_fault::DeliberateFault,
    sys::{
        distrust::{Distrust, Reason},
        judged_directories::JudgedDirectories,
        regular_file::create_directory_at,
        trust::Trust,
    },
};

/// As many links as the kernel follows in one path.
const MOST_LINKS: u32 = 40;

/// The end of a walk: opened, not yet judged.
pub(super) struct Found {
    pub(super) descriptor: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) status: FileStat,
}

/// A directory that a walk has come to.
pub(super) struct Reached {
    pub(super) descriptor: Rc<OwnedFd>,
    pub(super) path: PathBuf,
    /// None where the walk has not gone a step.
    pub(super) status: Option<FileStat>,
}

/// A path on the way down.
pub(super) struct Walk<'j> {
    at: Rc<OwnedFd>,
    path: PathBuf,
    status: Option<FileStat>,
    left: VecDeque<OsString>,
    links: u32,
    trust: Trust,
    /// What need not be judged again. None once the way went up: what is above a directory is not always what
    /// its path says.
    judged: Option<&'j JudgedDirectories>,
}

impl<'j> Walk<'j> {
    /// A walk that begins in a directory that was judged.
    pub(super) fn within(at: Rc<OwnedFd>, path: &Path, below: &Path, trust: Trust) -> Self {
        let (path, left) = (path.to_owned(), VecDeque::new());
        let mut walk = Walk { at, path, status: None, left, links: 0, trust, judged: None };
        walk.queue(below);
        walk
    }

    /// A walk from the root directory, or, for a relative path, from the working directory.
    pub(super) fn from_root(path: &Path, judged: &'j JudgedDirectories) -> Result<Self, Distrust> {
        Self::from_root_trusting(path, judged.trust(), Some(judged))
    }

    /// The same for whom this trusts; what was judged must have been so for the same.
    pub(super) fn from_root_trusting(
        path: &Path,
        trust: Trust,
        judged: Option<&'j JudgedDirectories>,
    ) -> Result<Self, Distrust> {
        let failed = |call, errno| Distrust { path: path.to_owned(), reason: Reason::System(call, errno) };
        let absolute = if path.is_absolute() {
            Cow::Borrowed(path)
        } else {
            Cow::Owned(std::path::absolute(path).map_err(|error| {
                failed("getcwd", Errno::from_raw(error.raw_os_error().unwrap_or(libc::EINVAL)))
            })?)
        };
        let root = root(&trust, judged)?;
        Ok(Walk { judged, ..Self::within(root, Path::new("/"), &absolute, trust) })
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

    fn open(&self, name: &OsStr, flags: OFlag) -> Result<OwnedFd, Errno> {
        openat(&self.at, name, flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())
    }

    /// Goes down to the last component and opens it with these flags; `None` when something on the way is
    /// absent.
    pub(super) fn end(mut self, flags: OFlag) -> Result<Option<Found>, Distrust> {
        while let Some(name) = self.left.pop_front() {
            let here = self.join(&name);
            if self.left.is_empty() {
                match self.open(&name, flags) {
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
        Err(Distrust { path: self.path, reason: Reason::NotAFile(libc::S_IFDIR) })
    }

    /// Goes down through all that is left, and creates what is missing with these permission bits, where
    /// there are any. None when something is absent.
    pub(super) fn directory(mut self, missing: Option<u32>) -> Result<Option<Reached>, Distrust> {
        while let Some(name) = self.left.pop_front() {
            let here = self.join(&name);
            if self.step(&name, here.clone())? {
                continue;
            }
            let Some(mode) = missing else { return Ok(None) };
            create_directory_at(&self.at, name.as_os_str(), mode)
                .map_err(|errno| Distrust { path: here.clone(), reason: Reason::System("mkdirat", errno) })?;
            if !self.step(&name, here)? {
                return Ok(None);
            }
        }
        Ok(Some(Reached { descriptor: self.at, path: self.path, status: self.status }))
    }

    /// Enters a directory or follows a link; false when there is nothing.
    fn step(&mut self, name: &OsStr, here: PathBuf) -> Result<bool, Distrust> {
        let blame = |reason| Distrust { path: here.clone(), reason };
        if name == ".." {
            self.judged = None;
        } else if let Some(known) = self.judged.and_then(|judged| judged.find(&here)) {
            (self.at, self.path) = (known, here);
            return Ok(true);
        }
        let next = match self.open(name, OFlag::O_PATH) {
            Ok(next) => next,
            Err(Errno::ENOENT) => return Ok(false),
            Err(errno) => return Err(blame(Reason::System("open", errno))),
        };
        let status = status(&next, &here)?;
        match kind(&status) {
            libc::S_IFDIR => {
                self.trust.judge_directory(&status).map_err(blame)?;
                self.at = Rc::new(next);
                if let Some(judged) = self.judged {
                    judged.keep(&here, &self.at);
                }
                (self.path, self.status) = (here, Some(status));
            }
            libc::S_IFLNK => {
                // In a sticky directory anybody can leave a link, and it says where to go on.
                if !DeliberateFault::StrangersLinks.is_on() {
                    self.trust.judge_owner(&status).map_err(blame)?;
                }
                self.links += 1;
                if self.links > MOST_LINKS {
                    return Err(blame(Reason::TooManyLinks));
                }
                let target =
                    readlinkat(&next, "").map_err(|errno| blame(Reason::System("readlink", errno)))?;
                if target.as_bytes().starts_with(b"/") {
                    self.at = root(&self.trust, self.judged)?;
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

fn root(trust: &Trust, judged: Option<&JudgedDirectories>) -> Result<Rc<OwnedFd>, Distrust> {
    let root = Path::new("/");
    if let Some(known) = judged.and_then(|judged| judged.find(root)) {
        return Ok(known);
    }
    let blame = |reason| Distrust { path: root.to_owned(), reason };
    let descriptor = open(root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
        .map_err(|errno| blame(Reason::System("open", errno)))?;
    trust.judge_directory(&status(&descriptor, root)?).map_err(blame)?;
    let descriptor = Rc::new(descriptor);
    if let Some(judged) = judged {
        judged.keep(root, &descriptor);
    }
    Ok(descriptor)
}

fn status(descriptor: impl AsFd, path: &Path) -> Result<FileStat, Distrust> {
    fstat(descriptor)
        .map_err(|errno| Distrust { path: path.to_owned(), reason: Reason::System("fstat", errno) })
}

pub(super) fn kind(status: &FileStat) -> u32 {
    status.st_mode & libc::S_IFMT
}
