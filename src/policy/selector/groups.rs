//! `groups`: the caller's groups, by name or by number.

use std::slice;

use super::{
    alternatives::{Entry, pattern},
    ids::Ids,
};
use crate::policy::{
    facts::Facts,
    fault::Fault,
    key::{Key, Shape, key},
    lookups::Lookups,
    names::{LookupError, Names},
    pattern::{Pattern, Subject},
    warning::Warning,
};

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
    fn gids(&self, facts: &Facts<'_>) -> Result<Vec<u32>, LookupError> {
        let mine = facts.request.gids;
        match self {
            GroupEntry::Gids(gids) => Ok(mine.iter().copied().filter(|gid| gids.contains(*gid)).collect()),
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
            GroupEntry::Named(pattern) => {
                Ok(lookups.group_name(gid)?.is_some_and(|name| pattern.matches(name.as_bytes())))
            }
        }
    }

    /// The caller's groups that any of the entries names, each once, in the order of the entries.
    pub(crate) fn gids_of_any(groups: &[GroupEntry], facts: &Facts<'_>) -> Result<Vec<u32>, LookupError> {
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

    /// What of the caller it matches, for people.
    pub(crate) fn what_matches(&self, facts: &Facts<'_>) -> Option<String> {
        let gid = Self::gids_of_any(slice::from_ref(self), facts).ok()?.first().copied()?;
        let name = facts.lookups.group_name(gid).ok().flatten().unwrap_or_else(|| gid.to_string());
        Some(format!("your group \"{name}\""))
    }
}

impl Entry for GroupEntry {
    const KEY: Key = key("groups", Shape::TextsOrNumbers, "Names and gids of groups.").filled();
    const ASKS_WHO: bool = true;

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

    fn matches(&self, facts: &Facts<'_>, _layer: usize) -> Result<bool, LookupError> {
        match self {
            GroupEntry::Named(pattern) if pattern.is_everything() => Ok(!facts.request.gids.is_empty()),
            _ => Ok(!self.gids(facts)?.is_empty()),
        }
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
