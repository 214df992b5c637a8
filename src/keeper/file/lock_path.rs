//! Where a lock file is. The author of a repository's path trusts one directory. Below it, other users may
//! have created directories and links, so everything there is opened by descriptor and checked. A link counts
//! only if it was created by root, the owner of the trusted directory, or the user that the file is for. A
//! directory that another user owns or can write to is not used, unless it is sticky and for all users.

use std::{
    cell::RefCell,
    ffi::{OsStr, OsString},
    path::Path,
};

use super::{
    RepositoryError,
    error::{call, failed_call},
};
use crate::{
    judge::terms::{Creation, FileLocation},
    sys::{Errno, Failure, InsecurePath, Reason, Status, WalkedDirectory, accounts, regular_file},
};

/// The path to a lock file.
#[derive(Clone, Copy, Debug)]
pub struct LockPath<'a> {
    pub path: &'a Path,
    /// The directory that the author of the repository trusts.
    pub base: &'a Path,
    /// A directory at or above `base` that must belong to the caller alone, because in `/tmp` others could
    /// have created it.
    pub private: Option<&'a Path>,
    /// The user that the file counts for, who must own it if others could have created it.
    pub owner: Option<u32>,
    /// Whether the caller named it, and so is trusted below `base`.
    pub is_own: bool,
}

/// The bits of a directory that is the caller's own.
const OWN_DIRECTORY: u32 = 0o700;

impl<'a> LockPath<'a> {
    /// Where a location leads.
    pub fn of(location: &'a FileLocation) -> Self {
        let FileLocation { path, owner, creation } = location;
        let is_own = creation.create_base || creation.by_hand;
        Self { path, base: &creation.base, private: creation.private.as_deref(), owner: *owner, is_own }
    }

    /// The path of a file that the caller named on the command line, with its directory.
    pub fn named(path: &'a Path) -> Self {
        let base = path.parent().unwrap_or(path);
        Self { path, base, private: None, owner: None, is_own: true }
    }

    /// The file's own name.
    pub(super) fn name(&self) -> Result<&'a OsStr, RepositoryError> {
        self.path.file_name().ok_or_else(|| call("open", self.path, "open", Errno::EISDIR))
    }

    /// What is there now; none if there is nothing.
    pub(super) fn look(&self) -> Result<Option<Status>, RepositoryError> {
        let Some(directory) = self.directory(None, &BaseDirectories::default())? else { return Ok(None) };
        match directory.status_of(self.name()?) {
            Ok(status) => Ok(Some(status)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(call("look at", self.path, "fstatat", errno)),
        }
    }

    /// The names in a directory at or below the base; none if it may not be used.
    pub fn names_in(&self, directory: &Path) -> Vec<OsString> {
        let inside = directory.join("_");
        let inside = LockPath { path: &inside, ..*self };
        inside
            .directory(None, &BaseDirectories::default())
            .ok()
            .flatten()
            .map_or_else(Vec::new, |found| found.names())
    }

    /// Its directory, opened and checked, with missing directories created if needed; none if it does not
    /// exist.
    pub(super) fn directory(
        &self,
        creation: Option<&Creation>,
        bases: &BaseDirectories,
    ) -> Result<Option<WalkedDirectory>, RepositoryError> {
        let Some(mut base) = self.base(creation, bases)? else { return Ok(None) };
        if let Some(owner) = self.owner {
            base.trust(owner);
        }
        if self.is_own {
            base.trust(accounts::own_uid());
        }
        let directory = self.path.parent().unwrap_or(self.path);
        let Ok(below) = directory.strip_prefix(self.base) else {
            return Err(RepositoryError::NoDirectory { path: directory.to_owned() });
        };
        base.below(below, creation.map(|creation| creation.directory_mode))
            .map_err(|distrust| self.distrusted(distrust))
    }

    fn base(
        &self,
        creation: Option<&Creation>,
        bases: &BaseDirectories,
    ) -> Result<Option<WalkedDirectory>, RepositoryError> {
        let creates_base = creation.filter(|creation| creation.create_base).map(|_| OWN_DIRECTORY);
        if let Some(private) = self.private {
            let Some(private) = self.private_directory(private, creation, bases)? else { return Ok(None) };
            let below = self.base.strip_prefix(private.path()).unwrap_or(Path::new(""));
            return private.below(below, creates_base).map_err(|distrust| self.distrusted(distrust));
        }
        match bases.named(self.base) {
            Err(Failure { errno: Errno::ENOENT, .. }) if creates_base.is_some() => {
                self.child(self.base, creates_base, bases)
            }
            Err(Failure { errno: Errno::ENOENT, .. }) if creation.is_none() => Ok(None),
            Err(Failure { errno: Errno::ENOENT, .. }) => {
                Err(RepositoryError::NoDirectory { path: self.base.to_owned() })
            }
            found => found.map(Some).map_err(failed_call("look at", self.base)),
        }
    }

    /// A directory that others could have prepared is checked before anything in it is trusted.
    fn private_directory(
        &self,
        path: &Path,
        creation: Option<&Creation>,
        bases: &BaseDirectories,
    ) -> Result<Option<WalkedDirectory>, RepositoryError> {
        match self.child(path, creation.map(|_| OWN_DIRECTORY), bases) {
            Ok(Some(found)) if !regular_file::is_private_directory(&found.status()) => {
                Err(RepositoryError::NotPrivate { path: path.to_owned() })
            }
            Err(RepositoryError::Distrusted { .. }) => {
                Err(RepositoryError::NotPrivate { path: path.to_owned() })
            }
            found => found,
        }
    }

    /// A directory in an existing one, created with these permission bits if it is missing. It must belong to
    /// root, to the owner of the existing one, or to the caller, who may have created it a moment ago.
    fn child(
        &self,
        path: &Path,
        mode: Option<u32>,
        bases: &BaseDirectories,
    ) -> Result<Option<WalkedDirectory>, RepositoryError> {
        let (parent, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
        match bases.named(parent) {
            Ok(mut parent) => {
                parent.trust(accounts::own_uid());
                parent.below(Path::new(name), mode).map_err(|distrust| self.distrusted(distrust))
            }
            Err(Failure { errno: Errno::ENOENT, .. }) if mode.is_none() => Ok(None),
            Err(Failure { errno: Errno::ENOENT, .. }) => {
                Err(RepositoryError::NoDirectory { path: parent.to_owned() })
            }
            Err(failure) => Err(failed_call("look at", parent)(failure)),
        }
    }

    fn distrusted(&self, distrust: InsecurePath) -> RepositoryError {
        match distrust {
            InsecurePath { path, reason: Reason::System(name, errno) } => call("open", &path, name, errno),
            source => RepositoryError::Distrusted { path: self.path.to_owned(), source },
        }
    }
}

// The directories that the repositories of one launch are in, each opened once for all of its lock files.
// Drop it when the files are open: to open a replaced file, the current path must be resolved again.

/// Directories that the authors of the repositories trust.
#[derive(Debug, Default)]
pub struct BaseDirectories(RefCell<Vec<WalkedDirectory>>);

impl BaseDirectories {
    pub(super) fn named(&self, path: &Path) -> Result<WalkedDirectory, Failure> {
        let known = self.0.borrow().iter().find(|known| known.path() == path).cloned();
        known.map_or_else(
            || {
                let found = WalkedDirectory::named(path)?;
                self.0.borrow_mut().push(found.clone());
                Ok(found)
            },
            Ok,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, chown},
    };

    use super::*;

    /// A directory below the trusted one may belong to the user that the file is for, and to no other user.
    #[test]
    fn a_directory_of_the_user_that_the_file_is_for_is_trusted() {
        if !accounts::is_root() {
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let (base, below) = (directory.path(), directory.path().join("below"));
        fs::create_dir(&below).expect("a directory");
        chown(&below, Some(4711), None).expect("chown");
        let path = below.join("seats");
        let look = |owner| LockPath { path: &path, base, private: None, owner, is_own: false }.look();
        assert!(matches!(look(Some(4711)), Ok(None)));
        for owner in [None, Some(4712)] {
            assert!(matches!(look(owner), Err(RepositoryError::Distrusted { .. })));
        }
    }

    /// A repository whose directory does not exist is not used yet. A launch creates its own directory in an
    /// existing one. It is refused if others can write to it.
    #[test]
    fn a_directory_of_ones_own_is_created_in_an_existing_one() {
        for is_private in [false, true] {
            let directory = tempfile::tempdir().expect("a directory");
            let above = directory.path().join("above");
            let base = above.join("own");
            let path = base.join("seats");
            let private = is_private.then_some(base.as_path());
            let place = LockPath { path: &path, base: &base, private, owner: None, is_own: true };
            let creation = Creation { base: base.clone(), create_base: true, ..Creation::default() };
            let create = || place.directory(Some(&creation), &BaseDirectories::default());
            assert!(matches!(place.look(), Ok(None)));
            assert!(matches!(create(), Err(RepositoryError::NoDirectory { path }) if path == above));
            fs::create_dir(&above).expect("a directory");
            assert!(matches!(place.look(), Ok(None)));
            assert!(!base.exists(), "who only looks creates nothing");
            assert!(matches!(create(), Ok(Some(_))));
            let mode = fs::metadata(&base).expect("a directory").permissions().mode();
            assert_eq!(mode & 0o7777, 0o700);
            assert!(matches!(place.look(), Ok(None)), "there is no file in it");
            fs::write(&path, "").expect("a file");
            assert!(matches!(place.look(), Ok(Some(_))));
            if is_private {
                fs::set_permissions(&base, Permissions::from_mode(0o720)).expect("chmod");
                assert!(matches!(create(), Err(RepositoryError::NotPrivate { path }) if path == base));
            }
        }
    }
}
