//! The users who may own, and write to, the directories and links that lead to a trusted file.

use std::{error::Error, fmt, path::PathBuf};

use nix::{errno::Errno, libc, sys::stat::FileStat};

use super::{accounts, failure::Failure, process};
use crate::text::Show;

/// The users whom a walk trusts with the directories and links on its way, besides root.
#[derive(Clone, Debug, Default)]
pub(super) struct Trust {
    pub(super) owners: Vec<u32>,
    /// Whether a directory may belong to any user if all can write to it and it is sticky: its first user
    /// made it for all.
    pub(super) common: bool,
}

impl Trust {
    pub(super) fn of_caller(caller: u32) -> Self {
        Self { owners: vec![caller], common: false }
    }

    pub(super) fn of_either(caller: u32, owner: u32) -> Self {
        Self { owners: vec![caller, owner], common: false }
    }

    pub(super) fn judge_owner(&self, status: &FileStat) -> Result<(), Reason> {
        match status.st_uid {
            0 => Ok(()),
            owner => match process::hides_owner(owner) {
                Err(Failure { call, errno }) => Err(Reason::System(call, errno)),
                Ok(true) => Err(Reason::HiddenOwner),
                Ok(false) if self.owners.contains(&owner) => Ok(()),
                Ok(false) => Err(Reason::Owner(owner)),
            },
        }
    }

    /// A sticky directory is as safe as one that is not writable: others can add names, but not replace ours.
    pub(super) fn judge_directory(&self, status: &FileStat) -> Result<(), Reason> {
        let mode = status.st_mode & 0o7777;
        if self.common && mode & 0o1002 == 0o1002 {
            return Ok(());
        }
        self.judge_owner(status)?;
        if mode & libc::S_ISVTX == 0 { judge_writers(status) } else { Ok(()) }
    }

    /// Whether no other user can put a name into a directory.
    pub(super) fn is_closed_to_others(&self, status: &FileStat) -> bool {
        self.judge_owner(status).is_ok() && judge_writers(status).is_ok()
    }
}

/// Group 0 is root's, and some distributions let it write to system directories.
pub(super) fn judge_writers(status: &FileStat) -> Result<(), Reason> {
    let mode = status.st_mode & 0o7777;
    if mode & 0o002 != 0 {
        return Err(Reason::WorldWritable(mode));
    }
    if mode & 0o020 != 0 && status.st_gid != 0 && !is_private_group(status) {
        return Err(Reason::GroupWritable(mode));
    }
    Ok(())
}

/// Whether the group has only the owner as a member, as in distributions that give every user a group: then
/// write permission of the group concerns only the owner. Root's group does not count, because others may be
/// members of it.
pub(super) fn is_private_group(status: &FileStat) -> bool {
    status.st_uid != 0 && accounts::is_private_group(status.st_uid, status.st_gid)
}

// Why a file is not read or not trusted, in a message that says what to fix.

/// The maximum size of a policy in MiB; no person writes a longer one.
pub(super) const LONGEST: u64 = 8;

/// Why a file cannot be read, or must not be believed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InsecurePath {
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
    /// It belongs to this uid, and should be root's as drop-ins of the system are.
    NotRoots(u32),
    /// It belongs to the first of these uids, and is delegated to the second.
    NotTheDelegates(u32, u32),
    /// It belongs to a user whom this user namespace does not know.
    HiddenOwner,
    /// Its group may write to it.
    GroupWritable(u32),
    /// All users may write to it.
    WorldWritable(u32),
    /// It may have secrets, and others can read or write it.
    ForOthers(u32),
    /// It is where a directory is needed.
    NotADirectory,
    /// It is a directory, a device, a FIFO: this kind of inode.
    NotAFile(libc::mode_t),
    /// The links form a loop.
    TooManyLinks,
    /// It is longer than any policy.
    TooLong,
}

impl InsecurePath {
    /// Whether the file is readable but not trusted, in contrast to unreadable.
    pub fn is_about_trust(&self) -> bool {
        use Reason::{
            ForOthers, GroupWritable, HiddenOwner, NotRoots, NotTheDelegates, Owner, WorldWritable,
        };
        matches!(
            self.reason,
            Owner(_)
                | NotRoots(_)
                | NotTheDelegates(..)
                | HiddenOwner
                | GroupWritable(_)
                | WorldWritable(_)
                | ForOthers(_)
        )
    }

    /// The same, in the words for files that must belong to root.
    #[must_use]
    pub fn for_roots(self) -> Self {
        let reason = match self.reason {
            Reason::Owner(uid) => Reason::NotRoots(uid),
            other => other,
        };
        InsecurePath { reason, ..self }
    }

    /// The same, in the words for files that are delegated to this user.
    #[must_use]
    pub fn for_delegate(self, delegate: u32) -> Self {
        let reason = match self.reason {
            Reason::Owner(owner) => Reason::NotTheDelegates(owner, delegate),
            other => other,
        };
        InsecurePath { reason, ..self }
    }

    /// The command that corrects it, without the file, if only the owner is wrong.
    pub fn chown(&self) -> Option<String> {
        match self.reason {
            Reason::Owner(_) | Reason::NotRoots(_) => Some("chown root".to_owned()),
            Reason::NotTheDelegates(_, delegate) => {
                let name = accounts::user_name(delegate).ok().flatten();
                Some(format!(
                    "chown {}",
                    name.map_or_else(|| delegate.to_string(), |name| name.shown().to_string())
                ))
            }
            _ => None,
        }
    }

    /// Whether a directory of the path is closed to the caller, so that its content is unknown. Or it is not
    /// a directory, such as `/dev/null` as the home of services.
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
            Reason::NotRoots(uid) => {
                write!(f, "belongs to {}; drop-ins of the system belong to root", accounts::shown(*uid))
            }
            Reason::NotTheDelegates(owner, delegate) => write!(
                f,
                "belongs to {}; it is delegated to {}",
                accounts::shown(*owner),
                accounts::shown(*delegate)
            ),
            Reason::HiddenOwner => f.write_str(
                "belongs to a user who is not mapped into this user namespace, and may be any user; start \
                    rungate outside of it",
            ),
            Reason::GroupWritable(mode) => {
                write!(f, "its group can write to it (mode {mode:04o}); chmod g-w fixes that")
            }
            Reason::WorldWritable(mode) => {
                write!(f, "all users can write to it (mode {mode:04o}); chmod o-w fixes that")
            }
            Reason::ForOthers(mode) => {
                write!(
                    f,
                    "may contain secrets, but is not private to its owner (mode {mode:04o}); chmod 0600 \
                        fixes that"
                )
            }
            Reason::NotADirectory => f.write_str("is not a directory"),
            Reason::NotAFile(kind) => write!(f, "is not a regular file, but {}", what_it_is(*kind)),
            Reason::TooManyLinks => f.write_str("too many symbolic links"),
            Reason::TooLong => write!(f, "is longer than {LONGEST} MiB"),
        }
    }
}

fn what_it_is(kind: libc::mode_t) -> &'static str {
    match kind {
        libc::S_IFDIR => "a directory",
        libc::S_IFIFO => "a FIFO",
        libc::S_IFSOCK => "a socket",
        libc::S_IFLNK => "a link",
        _ => "a device",
    }
}

impl fmt::Display for InsecurePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.shown(), self.reason)
    }
}

impl Error for InsecurePath {}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(uid: u32, gid: u32, mode: u32) -> FileStat {
        let mut status = nix::sys::stat::stat("/").expect("the root directory");
        (status.st_uid, status.st_gid, status.st_mode) = (uid, gid, libc::S_IFDIR | mode);
        status
    }

    /// A directory is trusted if it belongs to root or to a trusted user, and if no other user can replace
    /// what is in it.
    #[test]
    fn a_directory_is_judged_by_its_owner_and_by_its_writers() {
        let trust = Trust::of_caller(4711);
        let judged = |uid, gid, mode| trust.judge_directory(&directory(uid, gid, mode));
        for (uid, gid, mode) in [(0, 0, 0o755), (4711, 9, 0o755), (0, 0, 0o775), (4711, 9, 0o1777)] {
            assert_eq!(judged(uid, gid, mode), Ok(()), "{uid} {gid} {mode:o}");
        }
        for mode in [0o755, 0o1755, 0o1777] {
            assert_eq!(judged(4712, 9, mode), Err(Reason::Owner(4712)), "{mode:o}");
        }
        assert_eq!(judged(0, 0, 0o757), Err(Reason::WorldWritable(0o757)));
        for uid in [0, 4711] {
            assert_eq!(judged(uid, 9, 0o775), Err(Reason::GroupWritable(0o775)), "{uid}");
        }
        assert_eq!(Trust::of_either(4711, 4712).judge_directory(&directory(4712, 9, 0o755)), Ok(()));
    }

    /// A directory that was made for all users may belong to any of them.
    #[test]
    fn a_directory_for_all_may_belong_to_any_user() {
        let trust = Trust { owners: Vec::new(), common: true };
        let judged = |mode| trust.judge_directory(&directory(4712, 9, mode));
        assert_eq!(judged(0o1777), Ok(()));
        for mode in [0o777, 0o1775, 0o755] {
            assert_eq!(judged(mode), Err(Reason::Owner(4712)), "{mode:o}");
        }
        assert!(!trust.is_closed_to_others(&directory(4712, 9, 0o755)));
        assert!(!trust.is_closed_to_others(&directory(0, 0, 0o777)));
        assert!(trust.is_closed_to_others(&directory(0, 0, 0o755)));
    }
}
