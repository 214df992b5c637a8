//! Who else than root can use a file: what keeps ordinary users from it, directory by directory. Where an
//! access control list says more than the permission bits, nothing is held against them.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{commands::doctor::command_line::command, escape::Show, sys::acl};

/// What users want of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Want {
    Read,
    Execute,
    /// To append to it, without reading.
    Write,
    /// To lock it, and write a record.
    ReadWrite,
}

impl Want {
    /// The letters of chmod, and their bits for others.
    fn letters(self) -> (&'static str, u32) {
        match self {
            Self::Read => ("r", 0o4),
            Self::Execute => ("x", 0o1),
            Self::Write => ("w", 0o2),
            Self::ReadWrite => ("rw", 0o6),
        }
    }
}

/// What keeps users from a file: it, or a directory above it.
#[derive(Debug)]
pub(super) struct Barrier {
    pub(super) path: PathBuf,
    mode: u32,
    letters: &'static str,
}

impl Barrier {
    /// `/etc/rungate has mode 0750`
    pub(super) fn text(&self) -> String {
        format!("{} has mode {:04o}", self.path.shown(), self.mode)
    }

    pub(super) fn mend(&self) -> String {
        command(&format!("chmod o+{}", self.letters), &self.path)
    }
}

/// The first thing that keeps ordinary users from a file that is there.
pub(super) fn barrier(path: &Path, want: Want) -> Option<Barrier> {
    let path = path.canonicalize().ok()?;
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    let directories = above.into_iter().rev().map(|directory| (directory, ("x", 0o1)));
    directories.chain([(path.as_path(), want.letters())]).find_map(|(path, (letters, bits))| {
        let mode = fs::metadata(path).ok()?.mode() & 0o7777;
        let is_closed = mode & bits != bits && !acl::has_acl(path);
        is_closed.then(|| Barrier { path: path.to_owned(), mode, letters })
    })
}
