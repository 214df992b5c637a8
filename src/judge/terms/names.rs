//! What judgement asks about users and groups. A trait keeps the evaluator pure: the launcher answers from
//! the databases of the system, tests from a table. Absence (`Ok(None)`) and failure (`Err`) differ: a failed
//! look-up refuses the launch, an absent name only matches nothing.

use std::{
    error::Error,
    fmt::{Display, Formatter},
};

/// Look-ups in the databases of users, groups and netgroups. Each may cost hundreds of microseconds, so the
/// evaluator asks only for rules whose other selectors already match.
pub trait Names {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError>;
    /// The uid of a user's name. Only `policy check` asks.
    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError>;
    /// The gid of a group's name.
    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError>;
    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError>;
    /// Whether `netgroup` holds this host and this user.
    fn in_netgroup(&self, netgroup: &str, host: &str, user: &str) -> Result<bool, LookupError>;
}

/// A look-up that failed, which is not the same as one that found nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LookupError {
    /// The call, as a person can grep for it: `getgrnam("students")`.
    pub call: String,
    /// What the system said: `Connection timed out`.
    pub error: String,
}

impl Display for LookupError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.call, self.error)
    }
}

impl Error for LookupError {}

// The member of a lock file, if a repository has one for each.

/// Several of them, for people: `ann, /opt/matlab/bin`.
pub fn shown(members: &[Member], names: &dyn Names) -> String {
    members.iter().map(|member| member.name(names)).collect::<Vec<_>>().join(", ")
}

/// The member of a file of a `per` repository.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Member {
    /// A user, by uid.
    User(u32),
    /// A group, by gid.
    Group(u32),
    /// A host, a command, a directory, an argument: as it was, before it was made safe for a file name.
    Text(String),
}

impl Member {
    /// The text, if it is known by one.
    pub fn text(&self) -> &str {
        match self {
            Member::Text(text) => text,
            Member::User(_) | Member::Group(_) => "",
        }
    }

    /// The name for people; a number where none can be found.
    pub fn name(&self, names: &dyn Names) -> String {
        match self {
            Member::User(uid) => names.user_name(*uid).ok().flatten().unwrap_or_else(|| uid.to_string()),
            Member::Group(gid) => names.group_name(*gid).ok().flatten().unwrap_or_else(|| gid.to_string()),
            Member::Text(text) => text.clone(),
        }
    }
}
