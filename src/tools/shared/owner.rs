//! The owner of one file of a repository, known only by the name of the file: for the policy's settings for
//! their launches. Their groups are those of the database, because there is no session to ask.

use std::{ffi::OsStr, ops::RangeInclusive, path::Path};

use jiff::Timestamp;

use crate::launch::situation::{Situation, SystemNames, failed};
use crate::{
    judge::{
        Request, limit_of_most, listed,
        terms::names::{LookupError, Member, Names},
    },
    policy::{Placeholder, Policy, Repository},
    sys::{accounts, credentials},
};

/// The policy's settings for one file.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    pub(super) limit: Option<u64>,
    /// `limit of %power`
    pub(super) limit_note: Option<String>,
    /// What its slots are called, from the first on.
    pub(super) names: Vec<String>,
    /// Which of them no launch gets.
    pub(super) out_of_order: Vec<String>,
    /// The slots that only some may use, each range with the users that it is kept for.
    pub(super) kept: Vec<(RangeInclusive<u64>, String)>,
}

/// The owner of files of a repository.
pub(super) struct Owner<'a> {
    pub(super) policy: &'a Policy,
    pub(super) known: &'a Repository,
    pub(super) situation: &'a Situation,
}

/// No user and no group has this number.
const NOBODY: u32 = u32::MAX;

/// The member by the name of a file, as far as the system knows it.
#[derive(Default)]
struct Named {
    user: Known,
    group: Known,
}

/// A number, and the name where the file has it.
type Known = Option<(u32, Option<String>)>;

impl Owner<'_> {
    /// The policy's settings for the file of these members, one for each placeholder of the path.
    pub(super) fn terms(&self, members: &[Member]) -> Result<Terms, LookupError> {
        let mut names = Named::default();
        let mut value = "";
        let mut host = self.situation.host.as_os_str();
        let (mut command, mut directory) = (OsStr::new(""), Path::new("/"));
        // If all have one limit, no look-up is needed.
        let members = if self.known.limits.is_empty() { &[] } else { members };
        for (placeholder, member) in self.known.placeholders().zip(members) {
            let text = member.text();
            match placeholder {
                Placeholder::User | Placeholder::Uid => names.user = Some(user(member)?),
                Placeholder::Group | Placeholder::Gid => names.group = Some(group(member)?),
                Placeholder::Host => host = OsStr::new(text),
                Placeholder::Command => command = OsStr::new(text),
                Placeholder::Directory => directory = Path::new(text),
                Placeholder::Argument(_)
                | Placeholder::Arguments
                | Placeholder::Environment(_)
                | Placeholder::Captured(_) => {
                    value = text;
                }
            }
        }
        let uid = names.user.as_ref().map_or(NOBODY, |(uid, _)| *uid);
        let gid = names.group.as_ref().map(|(gid, _)| *gid);
        let gids = if self.known.asks_for_groups() { groups_of(uid)? } else { Vec::new() };
        let request = Request {
            typed: command,
            path: Path::new(command),
            canonical: Path::new(command),
            uid,
            gids: &gids,
            host,
            directory,
            names: &names,
            ..self.nobody()
        };
        let listed = listed(self.policy, self.known, &request, gid, value.as_bytes())?;
        Ok(Terms {
            limit: Some(listed.limit),
            limit_note: listed.limit_of.map(|because| because.limit()),
            names: listed.names.to_vec(),
            out_of_order: listed.out_of_order.into_iter().cloned().collect(),
            kept: listed.kept.into_iter().map(|(slots, whom)| (slots, whom.to_string())).collect(),
        })
    }

    /// The limit of those that are not named.
    pub(super) fn limit_of_most(&self) -> u64 {
        limit_of_most(self.policy, self.known, &self.nobody())
    }

    /// A launch of nothing by no user, now.
    fn nobody(&self) -> Request<'_> {
        Request {
            typed: OsStr::new(""),
            arguments: &[],
            path: Path::new(""),
            canonical: Path::new(""),
            uid: NOBODY,
            gids: &[],
            host: &self.situation.host,
            directory: Path::new("/"),
            environment: &|_| None,
            now: Timestamp::now(),
            cpus: &credentials::processors,
            runtime: &self.situation.runtime,
            names: &SystemNames,
        }
    }
}

/// The number of a user, and their name if the file has it. A name that could not be in a path reads back as
/// what it became.
fn user(member: &Member) -> Result<(u32, Option<String>), LookupError> {
    match member {
        Member::User(uid) => Ok((*uid, None)),
        Member::Group(_) => Ok((NOBODY, None)),
        Member::Text(name) => Ok((SystemNames.user_id(name)?.unwrap_or(NOBODY), Some(name.clone()))),
    }
}

fn group(member: &Member) -> Result<(u32, Option<String>), LookupError> {
    match member {
        Member::Group(gid) => Ok((*gid, None)),
        Member::User(_) => Ok((NOBODY, None)),
        Member::Text(name) => Ok((SystemNames.group_id(name)?.unwrap_or(NOBODY), Some(name.clone()))),
    }
}

fn groups_of(uid: u32) -> Result<Vec<u32>, LookupError> {
    let account = accounts::account_of_uid(uid).map_err(failed)?;
    account.map_or(Ok(Vec::new()), |account| accounts::groups_of(&account).map_err(failed))
}

impl Names for Named {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        match &self.user {
            Some((known, Some(name))) if *known == uid => Ok(Some(name.clone())),
            _ => SystemNames.user_name(uid),
        }
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        SystemNames.user_id(name)
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        SystemNames.group_id(name)
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        match &self.group {
            Some((known, Some(name))) if *known == gid => Ok(Some(name.clone())),
            _ => SystemNames.group_name(gid),
        }
    }

    fn in_netgroup(&self, netgroup: &str, host: &str, user: &str) -> Result<bool, LookupError> {
        SystemNames.in_netgroup(netgroup, host, user)
    }
}
