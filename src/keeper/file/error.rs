//! Errors of a lock file. Each variant names the file, the attempt, and the reason. The launch is then
//! refused, and takes nothing.

use std::{
    error::Error,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    sys::{Errno, Failure, InsecurePath, Kind, Process, accounts, process},
    text::{Show, word},
};

/// A lock file that cannot be opened, created, locked or trusted.
#[derive(Debug)]
pub enum RepositoryError {
    /// A system call on the file failed.
    Call {
        /// The attempt, as the words after "cannot".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The call and its answer.
        source: Failure,
    },
    /// A process has a lease on the file, so that it cannot be opened now.
    Leased {
        path: PathBuf,
        /// Who has it, if the kernel shows that here.
        holder: Option<Process>,
    },
    /// The directory that the policy names for repositories does not exist.
    NoDirectory {
        /// The missing directory.
        path: PathBuf,
    },
    /// A directory that must be the caller's own belongs to another user, or is open to others.
    NotPrivate { path: PathBuf },
    /// The path to the file has a directory or a link of an untrusted user.
    Distrusted {
        path: PathBuf,
        /// What is wrong, and where.
        source: InsecurePath,
    },
    /// The path leads to something that is not a regular file.
    NotRegular {
        path: PathBuf,
        /// What is there.
        kind: Kind,
    },
    /// A file that the caller named holds something that is no repository.
    NoRepository { path: PathBuf },
    /// The file has other names: through one of them it may be another user's data.
    SeveralLinks {
        path: PathBuf,
        /// How many names it has.
        links: u64,
    },
    /// A file for one user, in a directory where all users may create files, belongs to another user.
    WrongOwner {
        path: PathBuf,
        owner: u32,
        /// Its required owner.
        expected: u32,
    },
    /// The caller has opened no descriptor of the file that should keep the slots, or its descriptor is of a
    /// file that was replaced.
    NoCarrier { path: PathBuf },
    /// The file was replaced between opening and locking, again and again.
    ReplacedTooOften { path: PathBuf },
    /// Another process keeps the file's mutex.
    MutexBusy {
        path: PathBuf,
        /// How long the launch waited for it.
        waited: Duration,
        /// Who keeps it, if the kernel can say.
        holder: Option<Process>,
        /// Whether the process at the beginning was another one: then many use it in turn, and none is stuck.
        was_handed_on: bool,
    },
    /// The file has too many locks to tell, with a bounded amount of work, whether there is room.
    TooManyLocks { path: PathBuf },
    /// No launch can join the queue: another program has locked the bytes of the places.
    LineLocked { path: PathBuf },
    /// A lock that was proved to be free could not be taken, again and again: another program locks slots
    /// without the mutex.
    LockedMeanwhile { path: PathBuf },
}

impl fmt::Display for RepositoryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { action, path, source } => {
                write!(formatter, "cannot {action} {}: {source}", path.shown())
            }
            Self::NoDirectory { path } => {
                write!(formatter, "the directory of the repositories, {}, does not exist", path.shown())
            }
            Self::NotPrivate { path } => write!(
                formatter,
                "{} is not a directory that belongs to you alone; another user may have created it",
                path.shown()
            ),
            Self::Distrusted { path, source } => {
                write!(formatter, "{} cannot be used: {source}", path.shown())
            }
            Self::NotRegular { path, kind } => {
                write!(formatter, "{} is {kind}, not a lock file", path.shown())
            }
            Self::NoRepository { path } => {
                write!(formatter, "{} has other content than slots, and is not changed", path.shown())
            }
            Self::SeveralLinks { path, links } => {
                write!(formatter, "{} has {links} names (hard links), a lock file has one", path.shown())
            }
            Self::NoCarrier { path } => {
                write!(formatter, "none of the descriptors given is open for {}", path.shown())
            }
            Self::WrongOwner { path, owner, expected } => write!(
                formatter,
                "{} belongs to {}, but it counts for {}, whose launches its owner could block",
                path.shown(),
                accounts::shown(*owner),
                accounts::shown(*expected)
            ),
            Self::ReplacedTooOften { path } => {
                write!(formatter, "{} is deleted and created again repeatedly", path.shown())
            }
            Self::Leased { path, holder: Some(process) } => {
                write!(formatter, "cannot open {}: {} has a lease on it", path.shown(), shown(process))
            }
            Self::Leased { path, holder: None } => write!(
                formatter,
                "cannot open {}: a process that cannot be seen from here has a lease on it",
                path.shown()
            ),
            Self::MutexBusy { path, waited, holder, .. } => {
                write!(formatter, "{} stayed locked for {} s", path.shown(), waited.as_secs())?;
                match holder {
                    Some(process) if process.is_stopped() => {
                        write!(formatter, " by {}, which is stopped", shown(process))
                    }
                    Some(process) => write!(formatter, " by {}", shown(process)),
                    None => formatter.write_str(" by a process that cannot be seen from here"),
                }
            }
            Self::TooManyLocks { path } => write!(
                formatter,
                "{} has too many scattered locks to tell whether there is room",
                path.shown()
            ),
            Self::LineLocked { path } => write!(
                formatter,
                "{} is full, and some other program's lock on it leaves no place in the queue",
                path.shown()
            ),
            Self::LockedMeanwhile { path } => write!(
                formatter,
                "slots of {} are being locked by a program that does not take the file's mutex",
                path.shown()
            ),
        }
    }
}

impl Error for RepositoryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Call { source, .. } => Some(source),
            Self::Distrusted { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl RepositoryError {
    /// Why a call failed, if that is what happened.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Call { source, .. } => Some(source.errno),
            _ => None,
        }
    }

    /// What the user can do about it, as a sentence; none if there is no general advice.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::NoDirectory { path } => {
                Some(format!("To create it (as root): install -d -m 1777 {}", word(path)))
            }
            Self::NoRepository { path } => Some(format!(
                "Name a file that is empty or does not exist; to erase this one: truncate -s 0 {}",
                word(path)
            )),
            Self::NoCarrier { path } => Some(format!("Open it first, and add --fd 9: exec 9<{}", word(path))),
            Self::TooManyLocks { .. } => Some("To see who has them: lslocks -o PID,COMMAND,PATH".to_owned()),
            Self::MutexBusy { holder: Some(process), .. } if process.is_stopped() => {
                Some(for_owner(process, "continue it", &format!("kill -CONT {}", process.pid)))
            }
            Self::MutexBusy { holder: Some(process), .. } => {
                Some(for_owner(process, "end it if it is stuck", &format!("kill {}", process.pid)))
            }
            Self::Leased { holder: Some(process), .. } => Some(for_owner(
                process,
                "end it, or try again in a minute, when the kernel has ended the lease",
                &format!("kill {}", process.pid),
            )),
            Self::MutexBusy { path, holder: None, .. } | Self::Leased { path, holder: None } => {
                Some(format!("Ask your administrator to find it: fuser -v {}", word(path)))
            }
            Self::NotRegular { path, .. }
            | Self::Distrusted { source: InsecurePath { path, .. }, .. }
            | Self::SeveralLinks { path, .. }
            | Self::WrongOwner { path, .. }
            | Self::NotPrivate { path } => {
                Some(format!("Look at it, and move it away: ls -ld {}", word(path)))
            }
            _ => None,
        }
    }
}

/// `PID 812 (python3) of ann`
fn shown(process: &Process) -> String {
    let owner = process::owner(process.pid).map_or_else(String::new, |uid| format!(" of {}", name_of(uid)));
    format!("PID {} ({}){owner}", process.pid, process.name.shown())
}

fn name_of(uid: u32) -> String {
    accounts::user_name(uid).ok().flatten().map_or_else(|| uid.to_string(), |name| name.shown().to_string())
}

/// A command for a user who may do this to the process, and advice for one who has to ask.
fn for_owner(process: &Process, what: &str, command: &str) -> String {
    let me = accounts::own_uid();
    match process::owner(process.pid) {
        Some(owner) if me != 0 && owner != me => {
            format!("Ask {} or your administrator to {what}: {command}", name_of(owner))
        }
        _ => {
            let (first, rest) = what.split_at(1);
            format!("{}{rest}: {command}", first.to_uppercase())
        }
    }
}

/// For a call on `path` that failed.
pub(super) fn call(action: &'static str, path: &Path, call: &'static str, errno: Errno) -> RepositoryError {
    failed_call(action, path)(Failure { call, errno })
}

/// For `map_err`: what was being done to `path` when a call failed.
pub(super) fn failed_call(action: &'static str, path: &Path) -> impl Fn(Failure) -> RepositoryError {
    move |source| RepositoryError::Call { action, path: path.to_owned(), source }
}
