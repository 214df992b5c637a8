//! Whose lock file it is, where a repository has one for each.

use super::names::Names;

/// Several of them, for people: `ann, /opt/matlab/bin`.
pub fn shown(members: &[Member], names: &dyn Names) -> String {
    members.iter().map(|member| member.name(names)).collect::<Vec<_>>().join(", ")
}

/// Whose file of a `per` repository it is.
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
    /// The text, where it is known by one.
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
