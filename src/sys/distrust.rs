//! Why a file is not read, or is not believed, in words that say what to mend.

use std::{error::Error, fmt, path::PathBuf};

use nix::errno::Errno;

use crate::sys::accounts;

/// A file that is longer is no policy that a person wrote, in MiB.
pub(super) const LONGEST: u64 = 8;

/// Why a file cannot be read, or must not be believed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Distrust {
    /// The file, or the directory above it, or the link that led to it.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a file or with a directory above it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reason {
    /// A system call failed.
    System(&'static str, Errno),
    /// It belongs to neither root nor the caller, but to this uid.
    Owner(u32),
    /// Its group may write to it.
    GroupWritable(u32),
    /// Everybody may write to it.
    WorldWritable(u32),
    /// It stands where a directory is needed.
    NotADirectory,
    /// It is a directory, a device, a FIFO.
    NotAFile,
    /// Following it never ends.
    TooManyLinks,
    /// It is longer than any policy.
    TooLong,
}

impl Distrust {
    /// Whether the file could be had but must not be believed, as against one that could not be read.
    pub fn is_about_trust(&self) -> bool {
        matches!(self.reason, Reason::Owner(_) | Reason::GroupWritable(_) | Reason::WorldWritable(_))
    }

    /// Whether a directory on the way is closed to the caller, so that nobody can say what is in it, or is none, as the
    /// `/dev/null` that services have for a home.
    pub fn is_out_of_reach(&self) -> bool {
        matches!(self.reason, Reason::System(_, Errno::EACCES) | Reason::NotADirectory)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::System(call, errno) => write!(f, "{call}: {}", errno.desc()),
            Reason::Owner(uid) => {
                write!(f, "belongs to {}, neither to root nor to you", accounts::shown(*uid))
            }
            Reason::GroupWritable(mode) => {
                write!(f, "its group can write to it (mode {mode:04o}); chmod g-w mends that")
            }
            Reason::WorldWritable(mode) => {
                write!(f, "everybody can write to it (mode {mode:04o}); chmod o-w mends that")
            }
            Reason::NotADirectory => f.write_str("is not a directory"),
            Reason::NotAFile => f.write_str("is not a regular file"),
            Reason::TooManyLinks => f.write_str("too many symbolic links"),
            Reason::TooLong => write!(f, "is longer than {LONGEST} MiB"),
        }
    }
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display().to_string().escape_debug(), self.reason)
    }
}

impl Error for Distrust {}
