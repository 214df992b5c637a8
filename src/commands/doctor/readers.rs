//! What keeps ordinary users from a file, directory by directory.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{
    commands::doctor::command_line::command,
    escape::Show,
    sys::{
        failure::Errno,
        ordinary_user::{access, as_ordinary_user},
    },
};

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
    /// Whether the permission bits are the reason.
    is_by_mode: bool,
    errno: Errno,
}

impl Barrier {
    /// `/etc/rungate has mode 0750`
    pub(super) fn text(&self) -> String {
        let path = self.path.shown();
        if self.is_by_mode {
            return format!("{path} has mode {:04o}", self.mode);
        }
        format!("{path}: {}", self.errno.desc())
    }

    pub(super) fn mend(&self) -> String {
        if self.is_by_mode {
            return command(&format!("chmod o+{}", self.letters), &self.path);
        }
        how_to_mend(self.errno, &self.path)
    }
}

/// What shows, or removes, the reason why a call on a file failed.
pub(super) fn how_to_mend(errno: Errno, path: &Path) -> String {
    match errno {
        Errno::ENOSPC | Errno::EDQUOT => {
            format!("Make room: {}", command("df -h", path.parent().unwrap_or(path)))
        }
        Errno::EROFS => command("findmnt -T", path),
        _ => command("getfacl", path),
    }
}

/// The first thing that keeps ordinary users from a file that is there, found by trying as one of them.
pub(super) fn barrier(path: &Path, want: Want) -> Option<Barrier> {
    let path = path.canonicalize().ok()?;
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    let directories = above.into_iter().rev().map(|directory| (directory, ("x", 0o1)));
    let mut steps = directories.chain([(path.as_path(), want.letters())]);
    let tried = || steps.find_map(|(path, wanted)| Some((path, wanted, access(path, wanted.1).err()?)));
    let (path, (letters, bits), errno) = as_ordinary_user(tried)??;
    let mode = fs::metadata(path).ok()?.mode() & 0o7777;
    let is_by_mode = errno == Errno::EACCES && mode & bits != bits;
    Some(Barrier { path: path.to_owned(), mode, letters, is_by_mode, errno })
}
