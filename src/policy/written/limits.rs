//! `limits` as written: a table of members, or a list of tables with selectors.

use std::borrow::Cow;

use crate::policy::{
    entries::{WrittenEntry, WrittenList},
    fault::Fault,
    limit::{HIGHEST_LIMIT, Limit},
    place::{At, Written},
    reader::{Section, Value},
    repository::limits::LIMITS,
    selector::{CommandEntry, DirectoryEntry, Entry, GroupEntry, HostEntry, Principal, Window},
};

/// `limits` as written.
pub(in crate::policy) enum WrittenLimits<'a> {
    ByMember(Vec<(WrittenEntry<'a>, Written<Limit>)>),
    List(Vec<WrittenLimit<'a>>),
}

/// One of a list.
pub(in crate::policy) struct WrittenLimit<'a> {
    pub(in crate::policy) at: At,
    pub(in crate::policy) users: Option<(At, WrittenList<'a>)>,
    pub(in crate::policy) groups: Option<(At, WrittenList<'a>)>,
    pub(in crate::policy) hosts: Option<(At, WrittenList<'a>)>,
    pub(in crate::policy) commands: Option<(At, WrittenList<'a>)>,
    pub(in crate::policy) directories: Option<(At, WrittenList<'a>)>,
    pub(in crate::policy) when: Option<(At, WrittenList<'a>)>,
    /// Whether any of them was written, well or badly.
    pub(in crate::policy) selects: bool,
    pub(in crate::policy) limit: Written<Limit>,
}

impl<'a> WrittenLimits<'a> {
    pub(in crate::policy) fn read(value: Value<'a>) -> Option<Self> {
        if !value.is_list() {
            let entry = |(name, value): (Written<&'a str>, Value<'a>)| {
                Some((Written { value: Cow::Borrowed(name.value), at: name.at }, limit(value)?))
            };
            return Some(Self::ByMember(value.by_name()?.into_iter().filter_map(entry).collect()));
        }
        let tables = value.list("a list of tables")?.value;
        let sections = tables.iter().filter_map(|table| table.section(&LIMITS));
        Some(Self::List(sections.filter_map(|section| WrittenLimit::read(&section)).collect()))
    }

    /// Every limit.
    pub(in crate::policy) fn limits(&self) -> impl Iterator<Item = Written<Limit>> {
        let (by_member, listed) = match self {
            Self::ByMember(entries) => (entries.as_slice(), &[][..]),
            Self::List(listed) => (&[][..], listed.as_slice()),
        };
        by_member.iter().map(|(_, limit)| *limit).chain(listed.iter().map(|other| other.limit))
    }

    /// Whether one of them holds at some times only.
    pub(in crate::policy) fn asks_for_the_time(&self) -> bool {
        matches!(self, Self::List(listed) if listed.iter().any(|other| other.when.is_some()))
    }
}

impl<'a> WrittenLimit<'a> {
    fn read(section: &Section<'a>) -> Option<Self> {
        let entries = |key| section.get(key).and_then(|value| Some((value.at, WrittenList::read(value)?)));
        let limit = section.require("limit").and_then(limit);
        Some(WrittenLimit {
            at: section.at,
            users: entries(Principal::KEY.name),
            groups: entries(GroupEntry::KEY.name),
            hosts: entries(HostEntry::KEY.name),
            commands: entries(CommandEntry::KEY.name),
            directories: entries(DirectoryEntry::KEY.name),
            when: entries(Window::KEY.name),
            selects: section.has_more_than("limit"),
            limit: limit?,
        })
    }
}

/// A limit, as it stands under `limit` and in `limits`.
pub(in crate::policy) fn limit(value: Value<'_>) -> Option<Written<Limit>> {
    if value.is_number() {
        let count = value.count(0, HIGHEST_LIMIT)?;
        return Some(Written { value: Limit::Fixed(count.value), at: count.at });
    }
    value.parsed("a number of slots, or \"2/cpu\"", Limit::parse, |_, text| Fault::BadLimit { text })
}
