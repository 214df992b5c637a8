//! Users and groups: those of this system, or those of another one, from copies of its `passwd` and `group`.

use std::{
    collections::{BTreeSet, HashMap},
    fs, io,
    path::Path,
};

use crate::launch::{Situation, SystemNames};
use crate::{
    judge::terms::{LookupError, Names},
    sys::accounts,
    text::{Error, ExitStatus, visible},
    tools::logs::simulation::Accounts,
};

/// Where names are looked up.
pub(crate) enum KnownAccounts {
    /// The name service.
    System,
    /// Files.
    FileAccounts(FileAccounts),
}

/// The content of two files.
#[derive(Default)]
pub(crate) struct FileAccounts {
    users: HashMap<u32, (String, u32)>,
    uids: HashMap<String, u32>,
    groups: HashMap<u32, String>,
    gids: HashMap<String, u32>,
    members: HashMap<String, BTreeSet<u32>>,
}

impl KnownAccounts {
    /// Reads `passwd` and `group` of a directory, if one is given.
    pub(crate) fn of(situation: &Situation, directory: Option<&Path>) -> Result<Self, Error> {
        let Some(directory) = directory else { return Ok(Self::System) };
        let directory = situation.directory.join(directory);
        FileAccounts::read(&directory).map(Self::FileAccounts).map_err(|error| {
            let name = visible(&directory);
            Error::new(ExitStatus::System, format!("passwd and group of {name} cannot be read: {error}"))
        })
    }
}

impl FileAccounts {
    fn read(directory: &Path) -> io::Result<Self> {
        let mut brought = Self::default();
        let read = |name: &str| fs::read_to_string(directory.join(name));
        read("passwd")?.lines().for_each(|line| brought.add_user(line));
        read("group")?.lines().for_each(|line| brought.add_group(line));
        Ok(brought)
    }

    fn add_user(&mut self, line: &str) {
        let mut fields = line.split(':');
        let (Some(name), Some(_), Some(uid), Some(gid)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return;
        };
        let (Ok(uid), Ok(gid)) = (uid.parse(), gid.parse()) else { return };
        self.users.entry(uid).or_insert((name.to_owned(), gid));
        self.uids.entry(name.to_owned()).or_insert(uid);
    }

    fn add_group(&mut self, line: &str) {
        let mut fields = line.split(':');
        let (Some(name), Some(_), Some(gid), members) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return;
        };
        let Ok(gid) = gid.parse() else { return };
        self.groups.entry(gid).or_insert(name.to_owned());
        self.gids.entry(name.to_owned()).or_insert(gid);
        for member in members.unwrap_or_default().split(',').filter(|member| !member.is_empty()) {
            self.members.entry(member.to_owned()).or_default().insert(gid);
        }
    }
}

impl Names for KnownAccounts {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        match self {
            Self::System => SystemNames.user_name(uid),
            Self::FileAccounts(brought) => Ok(brought.users.get(&uid).map(|(name, _)| name.clone())),
        }
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        match self {
            Self::System => SystemNames.user_id(name),
            Self::FileAccounts(brought) => Ok(brought.uids.get(name).copied()),
        }
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        match self {
            Self::System => SystemNames.group_id(name),
            Self::FileAccounts(brought) => Ok(brought.gids.get(name).copied()),
        }
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        match self {
            Self::System => SystemNames.group_name(gid),
            Self::FileAccounts(brought) => Ok(brought.groups.get(&gid).cloned()),
        }
    }

    fn in_netgroup(&self, netgroup: &str, host: &str, user: &str) -> Result<bool, LookupError> {
        match self {
            Self::System => SystemNames.in_netgroup(netgroup, host, user),
            Self::FileAccounts(_) => Ok(false),
        }
    }
}

impl Accounts for KnownAccounts {
    fn groups_of(&self, uid: u32) -> Vec<u32> {
        match self {
            Self::System => {
                let account = accounts::account_of_uid(uid).ok().flatten();
                account.and_then(|account| accounts::groups_of(&account).ok()).unwrap_or_default()
            }
            Self::FileAccounts(brought) => {
                let Some((name, gid)) = brought.users.get(&uid) else { return Vec::new() };
                let others = brought.members.get(name).into_iter().flatten().copied();
                [*gid].into_iter().chain(others.filter(|other| other != gid)).collect()
            }
        }
    }
}
