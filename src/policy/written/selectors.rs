//! Selectors as written: lists of entries, in which aliases are still names.

use std::borrow::Cow;

use super::filled;
use crate::policy::{
    place::{At, Written},
    reader::{Section, Value},
};

/// What to write instead of a list that nothing matches.
const MATCH_ALL: &str = "leave it out to match everything";

/// An entry of a list; a number is kept as its digits.
pub(in crate::policy) type Entry<'a> = Written<Cow<'a, str>>;

/// A list of entries that is not empty.
pub(in crate::policy) struct WrittenList<'a> {
    pub(in crate::policy) entries: Vec<Entry<'a>>,
}

/// An entry of `arguments`.
pub(in crate::policy) enum WrittenArgument<'a> {
    One(Entry<'a>),
    Consecutive(Vec<Entry<'a>>),
}

/// What a variable must be.
pub(in crate::policy) enum WrittenVariable<'a> {
    Set(bool),
    OneOf(WrittenList<'a>),
}

/// The selectors of a rule, or of one table of its `except`.
pub(in crate::policy) struct WrittenSelectors<'a> {
    pub(in crate::policy) at: At,
    pub(in crate::policy) commands: Option<WrittenList<'a>>,
    pub(in crate::policy) arguments: Option<Written<Vec<WrittenArgument<'a>>>>,
    pub(in crate::policy) users: Option<WrittenList<'a>>,
    pub(in crate::policy) groups: Option<WrittenList<'a>>,
    pub(in crate::policy) hosts: Option<WrittenList<'a>>,
    pub(in crate::policy) directories: Option<WrittenList<'a>>,
    pub(in crate::policy) environment: Vec<(Written<&'a str>, WrittenVariable<'a>)>,
    pub(in crate::policy) when: Option<WrittenList<'a>>,
    /// Whether any selector was written, well or badly.
    pub(in crate::policy) any: bool,
}

impl<'a> WrittenList<'a> {
    /// Reads a list of strings, in which numbers may stand too.
    pub(super) fn read(value: Value<'a>) -> Option<Self> {
        let list = value.list("a list of strings")?;
        let entries = list.value.into_iter().filter_map(entry).collect::<Vec<_>>();
        // A list of which no entry could be read has had its fault.
        if entries.is_empty() && value.has_elements() {
            return None;
        }
        filled(value, entries, list.at, MATCH_ALL).map(|list| WrittenList { entries: list.value })
    }
}

fn entry(value: Value<'_>) -> Option<Entry<'_>> {
    if value.is_number() {
        let number = value.number(0, u32::MAX.into())?;
        return Some(Written { value: Cow::Owned(number.value.to_string()), at: number.at });
    }
    value.text().map(|text| Written { value: Cow::Borrowed(text.value), at: text.at })
}

impl<'a> WrittenSelectors<'a> {
    pub(super) fn read(section: &Section<'a>) -> Self {
        let list = |key| section.get(key).and_then(WrittenList::read);
        WrittenSelectors {
            at: section.at,
            commands: list("commands"),
            arguments: section.get("arguments").and_then(arguments),
            users: list("users"),
            groups: list("groups"),
            hosts: list("hosts"),
            directories: list("directories"),
            environment: section
                .by_name("environment")
                .into_iter()
                .filter_map(|(name, value)| Some((name, variable(value)?)))
                .collect(),
            when: list("when"),
            any: !section.is_empty(),
        }
    }
}

fn arguments(value: Value<'_>) -> Option<Written<Vec<WrittenArgument<'_>>>> {
    let list = value.list("a list of strings, or of lists of strings")?;
    let arguments = list.value.iter().copied().filter_map(argument).collect::<Vec<_>>();
    if arguments.is_empty() && value.has_elements() {
        return None;
    }
    filled(value, arguments, list.at, MATCH_ALL)
}

fn argument(value: Value<'_>) -> Option<WrittenArgument<'_>> {
    if value.is_list() {
        WrittenList::read(value).map(|list| WrittenArgument::Consecutive(list.entries))
    } else {
        entry(value).map(WrittenArgument::One)
    }
}

fn variable(value: Value<'_>) -> Option<WrittenVariable<'_>> {
    match value.as_flag() {
        Some(set) => Some(WrittenVariable::Set(set)),
        None if value.is_list() => WrittenList::read(value).map(WrittenVariable::OneOf),
        None => {
            value.wrong("a list of strings, or false where it must be unset");
            None
        }
    }
}
