//! `users`: the caller, by name, number, group or netgroup. Reservations use the same entries.

use std::{fmt, ops::RangeInclusive, slice};

use super::alternatives::{Entry, pattern};
use crate::{
    judge::terms::{LookupError, Names},
    policy::{
        EvalContext, Key, Lookups, Pattern, RelevantInputs, Shape, Subject, eval_context::any, fault::Fault,
        key::key, warning::Warning,
    },
};

#[derive(Debug)]
pub(crate) enum Principal {
    /// The user with such a name.
    User(Pattern),
    Uids(Ids),
    /// `%group`: the members of such a group.
    Group(GroupEntry),
    /// `+netgroup`: its members on this host.
    Netgroup(String),
}

impl Principal {
    /// Whether any of these names the caller.
    pub(crate) fn any(principals: &[Principal], facts: &EvalContext<'_>) -> Result<bool, LookupError> {
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

    fn is_caller(&self, facts: &EvalContext<'_>) -> Result<bool, LookupError> {
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

    /// The matched property of the caller, for people.
    pub(crate) fn what_matches(&self, facts: &EvalContext<'_>) -> Option<String> {
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
    const KEY: Key = key(
        "users",
        Shape::TextsOrNumbers,
        "Names, %groups, +netgroups, uids and ranges of uids.",
        "Rules for some people.",
    )
    .filled();
    const ASKS_WHO: bool = true;
    const IS_PERSONAL: bool = true;

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
                if let Some(uid) = names.user_id(name)? {
                    let known = names.user_name(uid)?.filter(|known| known != name);
                    return Ok(known.map(|known| Warning::AnotherSpelling { name: name.to_owned(), known }));
                }
                let is_group = names.group_id(name).is_ok_and(|gid| gid.is_some());
                Ok(Some(Warning::UnknownUser { name: name.to_owned(), is_group }))
            }
            Principal::Group(group) => group.unknown(names),
            Principal::Uids(_) | Principal::Netgroup(_) => Ok(None),
        }
    }

    fn matches(&self, facts: &EvalContext<'_>, _layer: usize) -> Result<bool, LookupError> {
        self.is_caller(facts)
    }

    /// A netgroup has users of some hosts.
    fn inputs(&self) -> RelevantInputs {
        match self {
            Principal::Netgroup(_) => RelevantInputs::HOSTS,
            Principal::User(_) | Principal::Uids(_) | Principal::Group(_) => RelevantInputs::NONE,
        }
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

// Numbers of users and groups, which are compared as numbers and need no look-up.

/// One number, or a range of them.
#[derive(Debug)]
pub(crate) struct Ids(RangeInclusive<u32>);

impl Ids {
    /// Reads `1000` or `1000-1999`; `None` when the text is neither.
    pub(in crate::policy) fn parse(text: &str) -> Result<Option<Ids>, Fault> {
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        if !all_digits(first) || !all_digits(last) {
            return Ok(None);
        }
        // System calls use the highest number for "not given".
        let number =
            |text: &str| text.parse().ok().filter(|number| *number != u32::MAX).ok_or(Fault::IdTooLarge);
        let (first, last) = (number(first)?, number(last)?);
        if first > last { Err(Fault::EmptyRange) } else { Ok(Some(Ids(first..=last))) }
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.0.contains(&id)
    }

    pub(super) fn covers(&self, narrow: &Ids) -> bool {
        self.contains(*narrow.0.start()) && self.contains(*narrow.0.end())
    }

    pub(in crate::policy) fn is_one(&self) -> bool {
        self.0.start() == self.0.end()
    }
}

impl fmt::Display for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0.start(), self.0.end());
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}

// `groups`: the caller's groups, by name or by number.

#[derive(Debug)]
pub(crate) enum GroupEntry {
    Named(Pattern),
    Gids(Ids),
}

impl GroupEntry {
    /// Whether it can name only one group.
    pub(in crate::policy) fn is_one(&self) -> bool {
        match self {
            GroupEntry::Named(name) => name.literal().is_some(),
            GroupEntry::Gids(gids) => gids.is_one(),
        }
    }

    /// The caller's groups that it names.
    fn gids(&self, facts: &EvalContext<'_>) -> Result<Vec<u32>, LookupError> {
        let mine = facts.request.gids;
        match self {
            GroupEntry::Gids(gids) => Ok(mine.iter().copied().filter(|gid| gids.contains(*gid)).collect()),
            // Also those that have no name.
            GroupEntry::Named(pattern) if pattern.is_everything() => Ok(mine.to_vec()),
            GroupEntry::Named(pattern) => {
                if let Some(name) = pattern.literal() {
                    let gid = facts.lookups.group_id(name)?;
                    return Ok(gid.filter(|gid| mine.contains(gid)).into_iter().collect());
                }
                let mut gids = Vec::new();
                for gid in mine {
                    if facts.lookups.group_name(*gid)?.is_some_and(|name| pattern.matches(name.as_bytes())) {
                        gids.push(*gid);
                    }
                }
                Ok(gids)
            }
        }
    }

    /// Whether it names this group.
    pub(in crate::policy) fn is_gid(&self, gid: u32, lookups: &Lookups<'_>) -> Result<bool, LookupError> {
        match self {
            GroupEntry::Gids(gids) => Ok(gids.contains(gid)),
            GroupEntry::Named(pattern) if pattern.is_everything() => Ok(true),
            GroupEntry::Named(pattern) => match pattern.literal() {
                // A group may have several names.
                Some(name) => Ok(lookups.group_id(name)? == Some(gid)),
                None => Ok(lookups.group_name(gid)?.is_some_and(|name| pattern.matches(name.as_bytes()))),
            },
        }
    }

    /// The caller's groups that any of the entries names, each once, in the order of the entries.
    pub(crate) fn gids_of_any(
        groups: &[GroupEntry],
        facts: &EvalContext<'_>,
    ) -> Result<Vec<u32>, LookupError> {
        let mut gids = Vec::new();
        for group in groups {
            for gid in group.gids(facts)? {
                if !gids.contains(&gid) {
                    gids.push(gid);
                }
            }
        }
        Ok(gids)
    }

    /// The matched property of the caller, for people.
    pub(crate) fn what_matches(&self, facts: &EvalContext<'_>) -> Option<String> {
        let gid = Self::gids_of_any(slice::from_ref(self), facts).ok()?.first().copied()?;
        let name = facts.lookups.group_name(gid).ok().flatten().unwrap_or_else(|| gid.to_string());
        Some(format!("your group \"{name}\""))
    }
}

impl Entry for GroupEntry {
    const KEY: Key = key(
        "groups",
        Shape::TextsOrNumbers,
        "Names and gids of groups. The caller must be in one of them, and match `users`.",
        "Rules for the members of a group among some users.",
    )
    .filled();
    const ASKS_WHO: bool = true;
    const IS_PERSONAL: bool = true;

    fn parse(text: &str) -> Result<Self, Fault> {
        if text.is_empty() {
            return Err(Fault::EmptyEntry);
        }
        Ok(match Ids::parse(text)? {
            Some(gids) => GroupEntry::Gids(gids),
            None => GroupEntry::Named(pattern(text, Subject::Name)?),
        })
    }

    fn unknown(&self, names: &dyn Names) -> Result<Option<Warning>, LookupError> {
        let GroupEntry::Named(name) = self else { return Ok(None) };
        let Some(name) = name.literal() else { return Ok(None) };
        let gid = names.group_id(name)?;
        Ok(gid.is_none().then(|| Warning::UnknownGroup { name: name.to_owned() }))
    }

    fn matches(&self, facts: &EvalContext<'_>, _layer: usize) -> Result<bool, LookupError> {
        match self {
            GroupEntry::Named(pattern) if pattern.is_everything() => Ok(!facts.request.gids.is_empty()),
            _ => Ok(!self.gids(facts)?.is_empty()),
        }
    }

    fn inputs(&self) -> RelevantInputs {
        RelevantInputs::NONE
    }

    fn covers(&self, narrow: &Self) -> bool {
        match (self, narrow) {
            (GroupEntry::Named(wide), _) if wide.is_everything() => true,
            (GroupEntry::Named(wide), GroupEntry::Named(narrow)) => wide.covers(narrow),
            (GroupEntry::Gids(wide), GroupEntry::Gids(narrow)) => wide.covers(narrow),
            (GroupEntry::Named(_), GroupEntry::Gids(_)) | (GroupEntry::Gids(_), GroupEntry::Named(_)) => {
                false
            }
        }
    }

    fn is_everything(&self) -> bool {
        matches!(self, GroupEntry::Named(name) if name.is_everything())
    }

    fn is_plain(&self) -> bool {
        self.is_one()
    }

    fn text(&self) -> String {
        match self {
            GroupEntry::Named(pattern) => pattern.text().to_owned(),
            GroupEntry::Gids(gids) => gids.to_string(),
        }
    }
}
