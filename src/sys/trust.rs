//! Who may own what leads to a trusted file, and who may write to it.

use nix::{libc, sys::stat::FileStat};

use crate::sys::{accounts, distrust::Reason, failure::Failure, user_namespace};

/// Whom a walk trusts with the directories and links on its way, besides root.
#[derive(Clone, Debug, Default)]
pub(super) struct Trust {
    pub(super) owners: Vec<u32>,
    /// Whether a directory may be anybody's that everybody can write to and that is sticky: whoever came
    /// first made it for all.
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
            owner => match user_namespace::hides_owner(owner) {
                Err(Failure { call, errno }) => Err(Reason::System(call, errno)),
                Ok(true) => Err(Reason::HiddenOwner),
                Ok(false) if self.owners.contains(&owner) => Ok(()),
                Ok(false) => Err(Reason::Owner(owner)),
            },
        }
    }

    /// A sticky directory is as good as one that is not writable: others can add names, but not replace ours.
    pub(super) fn judge_directory(&self, status: &FileStat) -> Result<(), Reason> {
        let mode = status.st_mode & 0o7777;
        if self.common && mode & 0o1002 == 0o1002 {
            return Ok(());
        }
        self.judge_owner(status)?;
        if mode & libc::S_ISVTX == 0 { judge_writers(status) } else { Ok(()) }
    }

    /// Whether nobody else can put a name into a directory.
    pub(super) fn is_closed_to_others(&self, status: &FileStat) -> bool {
        self.judge_owner(status).is_ok() && judge_writers(status).is_ok()
    }
}

/// Group 0 is root's, and some distributions let it write to system directories.
fn judge_writers(status: &FileStat) -> Result<(), Reason> {
    let mode = status.st_mode & 0o7777;
    if mode & 0o002 != 0 {
        return Err(Reason::WorldWritable(mode));
    }
    if mode & 0o020 != 0 && status.st_gid != 0 && !is_private_group(status) {
        return Err(Reason::GroupWritable(mode));
    }
    Ok(())
}

/// Whether the group is the owner's alone, as distributions set it up that give every user a group of their
/// name: what such a group can write, only they can. Root's is none, because others are put into it.
pub(super) fn is_private_group(status: &FileStat) -> bool {
    status.st_uid != 0 && accounts::is_private_group(status.st_uid, status.st_gid)
}
