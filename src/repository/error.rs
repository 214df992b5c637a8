//! What can go wrong with a lock file. Each variant names the file, what was tried, and why it failed; the launch is then
//! refused, and nothing is taken.

use std::{error::Error, fmt, path::PathBuf, time::Duration};

use crate::sys::{accounts, failure::Failure, process::Process, regular_file::Kind};

/// A lock file that cannot be opened, created, locked or trusted.
#[derive(Debug)]
pub enum RepositoryError {
    /// A system call on the file failed.
    Call {
        /// What was tried, as it continues "cannot".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The call and its answer.
        source: Failure,
    },
    /// The directory that the policy names for repositories is not there.
    NoDirectory {
        /// The missing directory.
        path: PathBuf,
    },
    /// A directory that has to be the caller's own is somebody else's, or open to others.
    NotPrivate {
        /// The directory.
        path: PathBuf,
    },
    /// Something that is not a regular file stands at the path.
    NotRegular {
        /// The path.
        path: PathBuf,
        /// What stands there.
        kind: Kind,
    },
    /// The file has other names: through one of them it may be somebody's data.
    SeveralLinks {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        links: u64,
    },
    /// A file for one user, in a directory where everybody may create files, belongs to another user.
    WrongOwner {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Whose it should be.
        expected: u32,
    },
    /// The file was replaced between opening and locking, again and again.
    ReplacedTooOften {
        /// The path.
        path: PathBuf,
    },
    /// Somebody keeps the file's mutex.
    MutexBusy {
        /// The file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
        /// Who keeps it, where the kernel can say.
        holder: Option<Process>,
    },
    /// Nobody can stand in line: somebody has locked the bytes where the places are.
    LineLocked {
        /// The file.
        path: PathBuf,
    },
    /// A lock that was proved to be free could not be taken, again and again: somebody locks slots without the mutex.
    LockedMeanwhile {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for RepositoryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { action, path, source } => {
                write!(formatter, "cannot {action} {}: {source}", path.display())
            }
            Self::NoDirectory { path } => {
                write!(formatter, "the directory of the repositories, {}, does not exist", path.display())
            }
            Self::NotPrivate { path } => write!(
                formatter,
                "{} is not a directory that belongs to you alone; someone else may have made it",
                path.display()
            ),
            Self::NotRegular { path, kind } => {
                write!(formatter, "{} is {kind}, not a lock file", path.display())
            }
            Self::SeveralLinks { path, links } => {
                write!(formatter, "{} has {links} names (hard links), a lock file has one", path.display())
            }
            Self::WrongOwner { path, owner, expected } => write!(
                formatter,
                "{} belongs to {}, but it counts for {}, who could be kept out with it",
                path.display(),
                accounts::shown(*owner),
                accounts::shown(*expected)
            ),
            Self::ReplacedTooOften { path } => {
                write!(formatter, "{} is being deleted and created again all the time", path.display())
            }
            Self::MutexBusy { path, waited, holder } => {
                write!(formatter, "{} stayed locked for {} s", path.display(), waited.as_secs())?;
                match holder {
                    Some(process) if process.is_stopped() => {
                        write!(formatter, " by PID {} ({}), which is stopped", process.pid, process.name)
                    }
                    Some(process) => write!(formatter, " by PID {} ({})", process.pid, process.name),
                    None => formatter.write_str(" by a process that cannot be seen from here"),
                }
            }
            Self::LineLocked { path } => write!(
                formatter,
                "{} is full, and some other program's lock on it leaves no place to stand in line",
                path.display()
            ),
            Self::LockedMeanwhile { path } => write!(
                formatter,
                "slots of {} are being locked by a program that does not take the file's mutex",
                path.display()
            ),
        }
    }
}

impl Error for RepositoryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Call { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl RepositoryError {
    /// What the reader may do about it, as a sentence; none where nothing general helps.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::NoDirectory { path } => {
                Some(format!("To create it (as root): install -d -m 1777 {}", path.display()))
            }
            Self::MutexBusy { holder: Some(process), .. } if process.is_stopped() => {
                Some(format!("Continue it: kill -CONT {}", process.pid))
            }
            Self::NotRegular { path, .. }
            | Self::SeveralLinks { path, .. }
            | Self::WrongOwner { path, .. }
            | Self::NotPrivate { path } => {
                Some(format!("Look at it, and move it away: ls -ld {}", path.display()))
            }
            _ => None,
        }
    }
}
