//! A directory with shims: what stands there under a name, and the making and removing of links. Nothing that
//! is not a link to rungate is ever written over or removed, and of several links all are made, or none.

use std::{
    ffi::{OsStr, OsString},
    fmt, fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use crate::{
    escape::visible,
    launch::shim::is_own_name,
    sys::{executable, failure},
};

/// The directory.
#[derive(Clone, Debug)]
pub struct ShimDirectory {
    path: PathBuf,
}

/// What stands under a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Nothing.
    Free,
    /// A link to rungate: to this one, to another, or to one that is gone.
    Shim,
    /// Anything else.
    Taken(&'static str),
}

/// A call that failed, and on what.
#[derive(Debug)]
pub struct DirectoryError {
    call: &'static str,
    path: PathBuf,
    error: io::Error,
}

impl DirectoryError {
    /// Whether it failed because the directory is not there.
    pub fn is_missing(&self) -> bool {
        self.call == "opendir" && self.error.kind() == io::ErrorKind::NotFound
    }
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = failure::errno_of(&self.error).desc();
        write!(formatter, "{} {}: {why}", self.call, visible(&self.path))
    }
}

impl std::error::Error for DirectoryError {}

impl ShimDirectory {
    /// The directory of this path, which must be absolute.
    pub fn open(path: PathBuf) -> Result<Self, DirectoryError> {
        match fs::read_dir(&path) {
            Ok(_) => Ok(Self { path }),
            Err(error) => Err(DirectoryError { call: "opendir", path, error }),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a name in it.
    pub fn link(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }

    /// The names of all shims in it, in order.
    pub fn shims(&self) -> Result<Vec<OsString>, DirectoryError> {
        let failed = |error| DirectoryError { call: "readdir", path: self.path.clone(), error };
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let name = entry.file_name();
            if is_link && !is_own_name(&name) && self.standing(&name) == Standing::Shim {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// What stands under a name.
    pub fn standing(&self, name: &OsStr) -> Standing {
        let path = self.link(name);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Standing::Free,
            Err(_) => Standing::Taken("cannot be looked at"),
            Ok(found) if found.is_symlink() && leads_to_rungate(&path) => Standing::Shim,
            Ok(found) if found.is_symlink() => Standing::Taken("is a link to something else"),
            Ok(found) if found.is_dir() => Standing::Taken("is a directory"),
            Ok(_) if executable::own().is_some_and(|own| executable::identity(&path) == Some(own)) => {
                Standing::Taken("is rungate itself, and no symbolic link to it")
            }
            Ok(_) => Standing::Taken("is a file, and no link to rungate"),
        }
    }

    /// Makes links to `target` under names that are free; of several all are made, or none.
    pub fn make(&self, names: &[&OsStr], target: &Path) -> Result<(), DirectoryError> {
        for (made, name) in names.iter().enumerate() {
            let path = self.link(name);
            if let Err(error) = symlink(target, &path) {
                for name in &names[..made] {
                    // What was made a moment ago is taken back; the first failure is the one to tell.
                    let _ = fs::remove_file(self.link(name));
                }
                return Err(DirectoryError { call: "symlink", path, error });
            }
        }
        Ok(())
    }

    /// Removes the links under these names; of several all go, or those that went come back.
    pub fn remove(&self, names: &[&OsStr]) -> Result<(), DirectoryError> {
        let mut removed: Vec<(PathBuf, PathBuf)> = Vec::new();
        for name in names {
            let path = self.link(name);
            let target = fs::read_link(&path);
            if let Err(error) = fs::remove_file(&path) {
                for (path, target) in &removed {
                    let _ = symlink(target, path);
                }
                return Err(DirectoryError { call: "unlink", path, error });
            }
            removed.extend(target.ok().map(|target| (path, target)));
        }
        Ok(())
    }
}

/// Whether a symbolic link leads to this rungate, to that of another installation, or to one that is not
/// there any more.
fn leads_to_rungate(link: &Path) -> bool {
    let is_rungate =
        |path: &Path| path.file_name().is_some_and(|name| name != "exectimes" && is_own_name(name));
    if executable::own().is_some_and(|own| executable::identity(link) == Some(own)) {
        return true;
    }
    match link.canonicalize() {
        Ok(target) => is_rungate(&target),
        Err(_) => fs::read_link(link).is_ok_and(|target| is_rungate(&target)),
    }
}
