//! The directories that the repositories of one launch are in, each opened once for all of its lock files. To
//! be dropped when they are open: who opens one again, because it was replaced, has to see what the path
//! leads to then.

use std::{cell::RefCell, path::Path};

use crate::sys::{failure::Failure, walked_directory::WalkedDirectory};

/// Directories that whoever named the repositories vouches for.
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
