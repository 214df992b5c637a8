//! A compiled policy: an index of the policy files that tells which parts of them the launch of a command can leave unread.
//! It holds no rule. What a launch obeys is always the text, parsed and validated as ever, without the rules for other
//! commands, the repositories that only those use, and the tests. That nothing is wrong with the parts that are left out
//! was found out once, when it was compiled.
//!
//! All it saves is time, and so it counts only where it is certain to fit: written by this version of rungate, of just
//! these files in just this state, and by somebody who could have written the files themselves. Otherwise the whole is
//! read.

mod index;
mod parts;
mod section;
mod sequence;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};

pub(super) use self::parts::{FileParts, Parts};
use self::{index::Index, section::sections};
use super::{Policy, faults::Faults, invocation::Invocation, source::FileStamp};

/// What the file's name ends in, instead of `.toml`.
const ENDING: &str = "compiled";

/// Where the compiled form of a policy is: beside its main file.
pub(super) fn path_of(policy: &Path) -> PathBuf {
    policy.with_extension(ENDING)
}

/// What comes first, and is read before the program of the command is known.
#[derive(Deserialize, Serialize)]
struct Head<'a> {
    version: &'a str,
    /// Every file and the directory of drop-ins, in the order in which they are read.
    stamps: Vec<FileStamp>,
    /// The programs behind commands.
    #[serde(borrow)]
    executables: Vec<(&'a str, &'a str)>,
}

/// Writes down which parts of a policy belong to what. The policy must be that of the stamped files.
pub(super) fn compile(policy: &Policy, stamps: &[FileStamp]) -> Result<Vec<u8>, postcard::Error> {
    let mut executables: Vec<(&str, &str)> = policy
        .executables
        .iter()
        .filter_map(|(name, (_, program))| Some((name.as_str(), program.to_str()?)))
        .collect();
    executables.sort_unstable();
    let head = Head { version: env!("CARGO_PKG_VERSION"), stamps: stamps.to_vec(), executables };
    let files: Vec<_> = policy.files.iter().map(|file| sections(file.text())).collect();
    let index = Index::of(policy, &files)?;
    postcard::to_extend(&index, postcard::to_stdvec(&head)?)
}

/// A compiled policy that fits the files it was found beside.
#[derive(Debug)]
pub(super) struct Compiled {
    executables: Vec<(String, PathBuf)>,
    /// The index, still to be read.
    index: Vec<u8>,
}

impl Compiled {
    /// Reads one; `None` where it is of other files, of another state of theirs, or by another version.
    pub(super) fn read(bytes: &[u8], stamps: &[FileStamp]) -> Option<Compiled> {
        let (head, index) = postcard::take_from_bytes::<Head<'_>>(bytes).ok()?;
        let fits = head.version == env!("CARGO_PKG_VERSION") && head.stamps == stamps;
        fits.then(|| Compiled {
            executables: head.executables.iter().map(|(name, path)| ((*name).into(), path.into())).collect(),
            index: index.to_vec(),
        })
    }

    /// The program that the policy names for a command.
    pub(super) fn executable(&self, command: &OsStr) -> Option<&Path> {
        let command = command.to_str()?;
        self.executables.iter().find(|(name, _)| name == command).map(|(_, program)| program.as_path())
    }

    /// What is left of the texts of the files for a command; `None` where the index does not fit them.
    pub(super) fn parts<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
        command: &Invocation<'_>,
    ) -> Option<Parts> {
        let index: Index<'_> = postcard::from_bytes(&self.index).ok()?;
        index.parts(texts, command)
    }
}

/// The outcome of compiling: a file to be written.
#[derive(Debug)]
pub struct Compilation {
    /// The policy's main file.
    pub main: PathBuf,
    /// Where the compiled form belongs.
    pub path: PathBuf,
    /// Its content.
    pub content: Vec<u8>,
    /// When the youngest of the files was last changed. One that changes twice within the same tick of its file system's clock
    /// can look the same both times, so that what is compiled has to be older than that.
    pub changed: SystemTime,
}

/// Why a policy is not compiled.
#[derive(Debug)]
pub enum CompileError {
    /// It has faults.
    Faults(Faults),
    /// There is none.
    NoPolicy,
    /// The index cannot be written down.
    Encoding(postcard::Error),
}
