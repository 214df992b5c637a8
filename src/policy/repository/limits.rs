//! Other limits than the repository's own: for some members, for some hours, or both. They are a table of
//! members, or a list: the first entry whose keys all match applies.

use std::sync::Arc;

use super::Repository;
use crate::{
    judge::terms::{LookupError, Provenance},
    policy::{
        CommandEntry, EvalContext, GroupEntry, Keys, Limit, Pattern, Principal, Shape,
        eval_context::any,
        key::key,
        selector::{DirectoryEntry, Entry, HostEntry, Window, until},
        toml_text::{inline_table, key as toml_key, list, string},
    },
};

pub(in crate::policy) static LIMITS: Keys = Keys {
    what: "a limit",
    groups: &[&[
        Principal::KEY,
        GroupEntry::KEY,
        HostEntry::KEY,
        CommandEntry::KEY,
        DirectoryEntry::KEY,
        Window::KEY,
        key(
            "limit",
            Shape::Limit,
            "How many slots these may have in use at once; 0 drains.",
            "Every other limit.",
        )
        .required(),
    ]],
    together: &[],
};

/// A limit for some members only.
#[derive(Debug)]
pub(crate) struct OtherLimit {
    /// All of them must match; those that may need a look-up come last.
    pub(in crate::policy) whom: Vec<Whom>,
    /// When it holds; always if empty.
    pub(in crate::policy) when: Vec<Window>,
    pub(in crate::policy) limit: Limit,
    /// The users that it is for, as written; empty if it is a name, which the user has anyway.
    pub(in crate::policy) shown: Arc<str>,
    /// Its key, if it was in a table.
    pub(in crate::policy) key: Option<String>,
}

#[derive(Debug)]
pub(in crate::policy) enum Whom {
    Hosts(Vec<HostEntry>),
    Commands(Vec<CommandEntry>),
    Directories(Vec<DirectoryEntry>),
    /// Any other value of a placeholder.
    Value(Pattern),
    Users(Vec<Principal>),
    Groups(Vec<GroupEntry>),
}

/// One file of a repository with a file for each member: its owner, and the time.
pub(crate) struct FileOf<'a> {
    /// For a launch by this member, or an equivalent one.
    pub(crate) facts: &'a EvalContext<'a>,
    /// The group that is charged.
    pub(crate) gid: Option<u32>,
    /// The value of the placeholder.
    pub(crate) value: &'a [u8],
}

impl Whom {
    fn is(&self, file: &FileOf<'_>) -> Result<bool, LookupError> {
        let FileOf { facts, gid, value } = file;
        match self {
            Whom::Hosts(hosts) => any(hosts, |host| host.matches(facts, 0)),
            Whom::Commands(commands) => {
                Ok(commands.iter().any(|entry| entry.pattern.matches(facts.command_name())))
            }
            Whom::Directories(directories) => any(directories, |directory| directory.matches(facts, 0)),
            // All arguments together are joined by NUL. A policy writes them, and listings know them, with
            // blanks.
            Whom::Value(pattern) => {
                let blank = |byte: &u8| if *byte == 0 { b' ' } else { *byte };
                Ok(pattern.matches(&value.iter().map(blank).collect::<Vec<u8>>()))
            }
            Whom::Users(users) => Principal::any(users, facts),
            Whom::Groups(groups) => {
                any(groups, |group| gid.map_or(Ok(false), |gid| group.is_gid(gid, &facts.lookups)))
            }
        }
    }

    fn key(&self) -> &'static str {
        match self {
            Whom::Hosts(_) => HostEntry::KEY.name,
            Whom::Commands(_) => CommandEntry::KEY.name,
            Whom::Directories(_) => DirectoryEntry::KEY.name,
            Whom::Value(_) => "value",
            Whom::Users(_) => Principal::KEY.name,
            Whom::Groups(_) => GroupEntry::KEY.name,
        }
    }

    fn printed(&self) -> String {
        fn texts<E: Entry>(entries: &[E]) -> String {
            list(entries.iter().map(|entry| string(&entry.text())))
        }
        match self {
            Whom::Hosts(hosts) => texts(hosts),
            Whom::Commands(commands) => texts(commands),
            Whom::Directories(directories) => texts(directories),
            Whom::Value(pattern) => string(pattern.text()),
            Whom::Users(users) => texts(users),
            Whom::Groups(groups) => texts(groups),
        }
    }
}

impl OtherLimit {
    /// Whether it applies to this file at this time. If one key does not match, the entry does not, even if
    /// another key could not be looked up.
    fn is_of(&self, file: &FileOf<'_>, layer: usize) -> Result<bool, LookupError> {
        if !self.when.is_empty() && !any(&self.when, |window| window.matches(file.facts, layer))? {
            return Ok(false);
        }
        let mut open = Ok(true);
        for whom in &self.whom {
            match whom.is(file) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(failure) => open = open.and(Err(failure)),
            }
        }
        open
    }

    /// Whether it depends on the groups that a user is in.
    fn asks_for_groups(&self) -> bool {
        let is_group = |principal: &Principal| matches!(principal, Principal::Group(_));
        self.whom.iter().any(|whom| matches!(whom, Whom::Users(users) if users.iter().any(is_group)))
    }

    fn because(&self, facts: &EvalContext<'_>, layer: usize) -> Option<Provenance> {
        let says_something = !self.shown.is_empty() || !self.when.is_empty();
        says_something
            .then(|| Provenance { whom: Arc::clone(&self.shown), until: until(&self.when, facts, layer) })
    }

    fn printed(&self) -> Vec<(&'static str, String)> {
        let OtherLimit { whom, when, limit, shown: _, key: _ } = self;
        let when =
            (!when.is_empty()).then(|| ("when", list(when.iter().map(|window| string(&window.text())))));
        let whom = whom.iter().map(|whom| (whom.key(), whom.printed()));
        whom.chain(when).chain([("limit", limit.printed())]).collect()
    }
}

/// Whether it is for the same users, as far as known.
impl PartialEq for OtherLimit {
    fn eq(&self, other: &Self) -> bool {
        self.printed() == other.printed()
    }
}

impl Repository {
    /// The limit of one of its files, and why it differs from that of all.
    pub(crate) fn limit_for(&self, file: &FileOf<'_>) -> Result<(Limit, Option<Provenance>), LookupError> {
        for other in &self.limits {
            if other.is_of(file, self.layer)? {
                return Ok((other.limit, other.because(file.facts, self.layer)));
            }
        }
        Ok((self.limit, None))
    }

    /// The limit of users who are not named, at this time.
    pub(crate) fn limit_of_most(&self, facts: &EvalContext<'_>) -> Limit {
        let is_on = |other: &&OtherLimit| {
            other.whom.is_empty() && any(&other.when, |window| window.matches(facts, self.layer)) == Ok(true)
        };
        self.limits.iter().find(is_on).map_or(self.limit, |other| other.limit)
    }

    /// Whether a limit depends on the groups that a user is in.
    pub(crate) fn asks_for_groups(&self) -> bool {
        self.limits.iter().any(OtherLimit::asks_for_groups)
    }
}

/// As TOML: a table if it was one.
pub(in crate::policy) fn print(limits: &[OtherLimit]) -> String {
    let Some(keys) = limits.iter().map(|other| other.key.as_deref()).collect::<Option<Vec<_>>>() else {
        return list(limits.iter().map(|other| inline_table(other.printed())));
    };
    // An entry of an alias may be named a second time, which then has no effect.
    let is_first = |(index, _): &(usize, &OtherLimit)| !keys[..*index].contains(&keys[*index]);
    let entry = |(index, other): (usize, &OtherLimit)| (toml_key(keys[index]), other.limit.printed());
    inline_table(limits.iter().enumerate().filter(is_first).map(entry))
}

#[cfg(test)]
mod tests {
    use crate::policy::Policy;

    /// The groups of a user matter if any limit is for a group of users, whatever else it is for.
    #[test]
    fn a_limit_asks_for_groups_if_one_of_its_users_is_a_group() {
        let asks = |limits: &str| {
            let keys = format!("per = [\"user\", \"host\"]\nlimit = 9\nlimits = [{limits}]");
            let text = format!("[repository.a]\n{keys}\n[[rule]]\nacquire = [\"a\"]\n");
            let policy = Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
            policy.repositories()[0].asks_for_groups()
        };
        assert!(asks("{ users = [\"%cad\"], limit = 1 }"));
        assert!(asks("{ users = [\"ann\", \"%cad\"], hosts = [\"ws1\"], limit = 1 }"));
        assert!(asks("{ users = [\"ann\"], limit = 1 }, { users = [\"%cad\"], limit = 2 }"));
        assert!(!asks("{ users = [\"ann\", \"+lab\"], hosts = [\"ws1\"], limit = 1 }"));
        assert!(!asks("{ hosts = [\"ws1\"], limit = 1 }"));
    }
}
