//! What judgement asks about users and groups, as a trait, so that the evaluator stays pure: the launcher
//! answers from the system's databases, tests and `[[test]]` tables answer from a table. Absence (`Ok(None)`)
//! and failure (`Err`) must stay apart: a look-up that fails refuses the launch, one that finds nothing only
//! means that nobody matches.

use std::error::Error;
use std::fmt::{Display, Formatter};

/// Look-ups in the databases of users, groups and netgroups. Each may cost hundreds of microseconds, so the
/// evaluator asks only for rules whose other selectors already match.
pub trait Names {
    /// The name of a uid.
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError>;
    /// The uid of a user's name. Only `policy check` asks.
    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError>;
    /// The gid of a group's name.
    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError>;
    /// The name of a gid.
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
