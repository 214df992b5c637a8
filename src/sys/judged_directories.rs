//! The directories that were judged on the way to one file, kept open for the way to the next: within one
//! launch the policy's files have most of their way in common. An open descriptor stays what was judged,
//! whatever its path leads to by then, so that files that are read one after the other come from one and the
//! same directory.

use std::{
    cell::{Cell, RefCell},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    rc::Rc,
};

use nix::errno::Errno;

use crate::sys::{
    distrust::{Distrust, Reason},
    trust::Trust,
};

/// Directories that were entered and judged for one caller. To be dropped as soon as all files are open: who
/// looks again later has to see what the paths lead to then.
#[derive(Debug)]
pub struct JudgedDirectories {
    pub(super) caller: u32,
    known: RefCell<Vec<(PathBuf, Rc<OwnedFd>)>>,
    /// Whether the caller has so few descriptors that none can be kept.
    has_few: Cell<bool>,
}

impl JudgedDirectories {
    /// None yet, for a caller with this real uid.
    pub fn for_caller(caller: u32) -> Self {
        Self { caller, known: RefCell::default(), has_few: Cell::new(false) }
    }

    /// For whom they are judged.
    pub fn caller(&self) -> u32 {
        self.caller
    }

    pub(super) fn trust(&self) -> Trust {
        Trust::of_caller(self.caller)
    }

    /// The directory that a walk has come to by this path, if one has.
    pub(super) fn find(&self, path: &Path) -> Option<Rc<OwnedFd>> {
        let known = self.known.borrow();
        known.iter().find(|(other, _)| other == path).map(|(_, directory)| Rc::clone(directory))
    }

    /// Opens something, and where descriptors are too few for that and for what is kept, once more without
    /// keeping any.
    pub(super) fn sparingly<T>(&self, open: impl Fn() -> Result<T, Distrust>) -> Result<T, Distrust> {
        open().or_else(|distrust| match distrust.reason {
            Reason::System(_, Errno::EMFILE | Errno::ENFILE) if !self.has_few.replace(true) => {
                self.known.take();
                open()
            }
            _ => Err(distrust),
        })
    }

    /// Keeps a directory. The path must be the one by which it was entered, name by name, without links and
    /// `..`.
    pub(super) fn keep(&self, path: &Path, directory: &Rc<OwnedFd>) {
        if !self.has_few.get() {
            self.known.borrow_mut().push((path.to_owned(), Rc::clone(directory)));
        }
    }
}
