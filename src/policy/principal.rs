//! Whom a selector names: the entries of `users` and `groups`. Numbers are compared as numbers; names and patterns need
//! a look-up, which is why the two are told apart when the policy is read.

use std::{fmt, ops::RangeInclusive};

use super::{
    fault::Fault,
    pattern::{Pattern, Subject},
};

/// An entry of `users`.
#[derive(Debug)]
pub(crate) enum Principal {
    /// The user with such a name.
    User(Pattern),
    /// The users with these numbers.
    Uids(RangeInclusive<u32>),
    /// `%group`: who is in such a group.
    Group(GroupEntry),
    /// `+netgroup`: who is in it on this host.
    Netgroup(String),
}

/// An entry of `groups`.
#[derive(Debug)]
pub(crate) enum GroupEntry {
    /// Groups with such a name.
    Named(Pattern),
    /// Groups with these numbers.
    Gids(RangeInclusive<u32>),
}

impl Principal {
    pub(super) fn parse(text: &str) -> Result<Principal, Fault> {
        if let Some(group) = text.strip_prefix('%') {
            return GroupEntry::parse(group).map(Principal::Group);
        }
        if let Some(netgroup) = text.strip_prefix('+') {
            return if netgroup.is_empty() {
                Err(Fault::EmptyEntry)
            } else {
                Ok(Principal::Netgroup(netgroup.into()))
            };
        }
        Ok(match numbers(text)? {
            Some(uids) => Principal::Uids(uids),
            None => Principal::User(name(text)?),
        })
    }
}

impl GroupEntry {
    pub(super) fn parse(text: &str) -> Result<GroupEntry, Fault> {
        Ok(match numbers(text)? {
            Some(gids) => GroupEntry::Gids(gids),
            None => GroupEntry::Named(name(text)?),
        })
    }
}

fn name(text: &str) -> Result<Pattern, Fault> {
    if text.is_empty() {
        return Err(Fault::EmptyEntry);
    }
    Pattern::new(text, Subject::Name).map_err(|reason| Fault::BadPattern { reason })
}

/// Reads `1000` or `1000-1999`; `None` when the text is neither.
fn numbers(text: &str) -> Result<Option<RangeInclusive<u32>>, Fault> {
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    if !all_digits(first) || !all_digits(last) {
        return Ok(None);
    }
    // The highest number is what system calls take for "nobody said".
    let number = |text: &str| text.parse().ok().filter(|number| *number != u32::MAX).ok_or(Fault::IdTooLarge);
    let (first, last) = (number(first)?, number(last)?);
    if first > last { Err(Fault::EmptyRange) } else { Ok(Some(first..=last)) }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Principal::User(pattern) => f.write_str(pattern.text()),
            Principal::Uids(uids) => show_numbers(uids, f),
            Principal::Group(group) => write!(f, "%{group}"),
            Principal::Netgroup(netgroup) => write!(f, "+{netgroup}"),
        }
    }
}

impl fmt::Display for GroupEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupEntry::Named(pattern) => f.write_str(pattern.text()),
            GroupEntry::Gids(gids) => show_numbers(gids, f),
        }
    }
}

fn show_numbers(numbers: &RangeInclusive<u32>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if numbers.start() == numbers.end() {
        write!(f, "{}", numbers.start())
    } else {
        write!(f, "{}-{}", numbers.start(), numbers.end())
    }
}
