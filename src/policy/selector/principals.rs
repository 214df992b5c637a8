//! `users`: the caller, by name, number, group or netgroup. Reservations are for entries of the same kind.

use super::{
    alternatives::{Entry, pattern},
    groups::GroupEntry,
    ids::Ids,
};
use crate::policy::{
    facts::Facts,
    fault::Fault,
    key::{Key, Shape, key},
    lookups::any,
    names::{LookupError, Names},
    pattern::{Pattern, Subject},
    warning::Warning,
};

#[derive(Debug)]
pub(crate) enum Principal {
    /// The user with such a name.
    User(Pattern),
    Uids(Ids),
    /// `%group`: who is in such a group.
    Group(GroupEntry),
    /// `+netgroup`: who is in it on this host.
    Netgroup(String),
}

impl Principal {
    /// Whether any of these names the caller.
    pub(crate) fn any(principals: &[Principal], facts: &Facts<'_>) -> Result<bool, LookupError> {
        any(principals, |principal| principal.is_caller(facts))
    }

    /// Whether it names one user, by name or by number.
    pub(in crate::policy) fn is_one_user(&self) -> bool {
        match self {
            Principal::User(name) => name.literal().is_some(),
            Principal::Uids(uids) => uids.is_one(),
            Principal::Group(_) | Principal::Netgroup(_) => false,
        }
    }

    fn is_caller(&self, facts: &Facts<'_>) -> Result<bool, LookupError> {
        match self {
            Principal::Uids(uids) => Ok(uids.contains(facts.request.uid)),
            Principal::User(pattern) if pattern.is_everything() => Ok(true),
            Principal::User(pattern) => {
                Ok(facts.lookups.user_name()?.is_some_and(|name| pattern.matches(name.as_bytes())))
            }
            Principal::Group(group) => group.matches(facts, 0),
            Principal::Netgroup(netgroup) => facts.lookups.is_in_netgroup(netgroup),
        }
    }

    /// What of the caller it matches, for people.
    pub(crate) fn what_matches(&self, facts: &Facts<'_>) -> Option<String> {
        match self {
            Principal::Group(entry) => entry.what_matches(facts),
            principal if !principal.is_caller(facts).unwrap_or(false) => None,
            Principal::User(_) => facts.lookups.user_name().ok()?.map(|name| format!("user \"{name}\"")),
            Principal::Uids(_) => Some(format!("uid {}", facts.request.uid)),
            Principal::Netgroup(netgroup) => Some(format!("netgroup \"{netgroup}\"")),
        }
    }
}

impl Entry for Principal {
    const KEY: Key =
        key("users", Shape::TextsOrNumbers, "Names, %groups, +netgroups, uids and ranges of uids.").filled();
    const ASKS_WHO: bool = true;

    fn parse(text: &str) -> Result<Self, Fault> {
        if let Some(group) = text.strip_prefix('%') {
            return GroupEntry::parse(group).map(Principal::Group);
        }
        if let Some(netgroup) = text.strip_prefix('+') {
            let netgroup = Some(netgroup).filter(|netgroup| !netgroup.is_empty());
            return netgroup.map(|netgroup| Principal::Netgroup(netgroup.into())).ok_or(Fault::EmptyEntry);
        }
        Ok(match Ids::parse(text)? {
            Some(uids) => Principal::Uids(uids),
            None => Principal::User(pattern(text, Subject::Name)?),
        })
    }

    fn unknown(&self, names: &dyn Names) -> Result<Option<Warning>, LookupError> {
        match self {
            Principal::User(name) => {
                let Some(name) = name.literal() else { return Ok(None) };
                if names.user_id(name)?.is_some() {
                    return Ok(None);
                }
                let is_group = names.group_id(name).is_ok_and(|gid| gid.is_some());
                Ok(Some(Warning::UnknownUser { name: name.to_owned(), is_group }))
            }
            Principal::Group(group) => group.unknown(names),
            Principal::Uids(_) | Principal::Netgroup(_) => Ok(None),
        }
    }

    fn matches(&self, facts: &Facts<'_>, _layer: usize) -> Result<bool, LookupError> {
        self.is_caller(facts)
    }

    fn covers(&self, narrow: &Self) -> bool {
        match (self, narrow) {
            (Principal::User(wide), _) if wide.is_everything() => true,
            (Principal::User(wide), Principal::User(narrow)) => wide.covers(narrow),
            (Principal::Uids(wide), Principal::Uids(narrow)) => wide.covers(narrow),
            (Principal::Group(wide), Principal::Group(narrow)) => wide.covers(narrow),
            (Principal::Netgroup(wide), Principal::Netgroup(narrow)) => wide == narrow,
            _ => false,
        }
    }

    fn is_everything(&self) -> bool {
        matches!(self, Principal::User(name) if name.is_everything())
    }

    fn is_plain(&self) -> bool {
        match self {
            Principal::User(name) => name.literal().is_some(),
            Principal::Uids(uids) => uids.is_one(),
            Principal::Group(_) | Principal::Netgroup(_) => false,
        }
    }

    fn text(&self) -> String {
        match self {
            Principal::User(pattern) => pattern.text().to_owned(),
            Principal::Uids(uids) => uids.to_string(),
            Principal::Group(group) => format!("%{}", group.text()),
            Principal::Netgroup(netgroup) => format!("+{netgroup}"),
        }
    }
}
