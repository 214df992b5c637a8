//! `[repository.NAME]` as written.

use std::borrow::Cow;

use crate::policy::{
    At, CommandEntry, GroupEntry, HIGHEST_LIMIT, Limit, PartitionKey, Placeholder, Principal, Section, Value,
    Written, WrittenEntry, WrittenList,
    capture::name_in_braces,
    fault::Fault,
    repository::{
        keeping::WrittenKeeping,
        limits::LIMITS,
        names::WrittenNames,
        outside::WrittenMeasuring,
        pace::WrittenPace,
        reservation::{RESERVE, WrittenReservation},
        settings::Settings,
        sharing::WrittenSharing,
    },
    selector::{DirectoryEntry, Entry, HostEntry, Window},
};

pub(in crate::policy) struct WrittenRepository<'a> {
    pub(in crate::policy) name: Written<&'a str>,
    pub(in crate::policy) path: Option<Written<&'a str>>,
    pub(in crate::policy) per: Option<Written<Vec<PartitionKey<'a>>>>,
    /// None if it is missing; a fault (already reported) if it is wrong.
    pub(in crate::policy) limit: Option<Result<Written<Limit>, ()>>,
    pub(in crate::policy) limits: Option<(At, WrittenLimits<'a>)>,
    pub(in crate::policy) reserve: Vec<WrittenReservation<'a>>,
    pub(in crate::policy) names: WrittenNames<'a>,
    pub(in crate::policy) outside: Option<WrittenMeasuring>,
    pub(in crate::policy) settings: Settings,
    pub(in crate::policy) enforce_at: Option<At>,
    pub(in crate::policy) keeping: WrittenKeeping,
    pub(in crate::policy) pace: WrittenPace,
    pub(in crate::policy) sharing: WrittenSharing<'a>,
}

impl<'a> WrittenRepository<'a> {
    pub(super) fn asks_for_the_time(&self) -> bool {
        self.limits.as_ref().is_some_and(|(_, limits)| limits.asks_for_the_time())
            || self.reserve.iter().any(WrittenReservation::asks_for_the_time)
    }

    pub(super) fn read(name: Written<&'a str>, section: &Section<'a>) -> Self {
        let limits_value = section.get("limits");
        // One mistake is one fault: the value was intended as the limit, so the limit is not missing.
        let is_limit = limits_value.as_ref().is_some_and(|value| !value.is_table() && !value.is_list());
        if let Some(value) = limits_value.as_ref().filter(|_| is_limit) {
            value.wrong("a table of members, such as { ann = 8 }; one limit for all is \"limit\"");
        }
        let limits = limits_value.filter(|_| !is_limit);
        let reserve = section.tables("reserve", &RESERVE);
        let settings = Settings::read(section);
        if let (Some(wait), Some(longest), Some(value)) =
            (settings.wait, settings.max_wait, section.get("wait"))
            && wait > longest
        {
            let repository = name.value.to_owned();
            value.fault(Fault::WaitAboveMax { longest: longest.to_string(), repository });
        }
        WrittenRepository {
            name,
            path: section.text("path"),
            per: section.get("per").and_then(|value| {
                PartitionKey::list(value, &|_, _| true, "leave it out for one file that all share")
            }),
            limit: section
                .get("limit")
                .map(|value| limit(value).ok_or(()))
                .or_else(|| is_limit.then_some(Err(()))),
            limits: limits.and_then(|value| Some((value.at, WrittenLimits::read(value)?))),
            reserve: reserve.iter().filter_map(WrittenReservation::read).collect(),
            names: WrittenNames::read(section),
            outside: WrittenMeasuring::read(section),
            settings,
            enforce_at: section.get("enforce").map(|enforce| enforce.at),
            keeping: WrittenKeeping::read(section),
            pace: WrittenPace::read(section),
            sharing: WrittenSharing::read(section),
        }
    }
}

// `limits` as written: a table of members, or a list of tables with selectors.

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

/// A limit, as written in `limit` and in `limits`.
pub(in crate::policy) fn limit(value: Value<'_>) -> Option<Written<Limit>> {
    if value.is_number() {
        let count = value.count(0, HIGHEST_LIMIT)?;
        return Some(Written { value: Limit::Fixed(count.value), at: count.at });
    }
    value.parsed("a number of slots, or \"2/cpu\"", Limit::parse, |_, text| Fault::BadLimit { text })
}

impl<'a> PartitionKey<'a> {
    /// One entry, or a list of them, each once; `is_known` reports entries that are not allowed here.
    /// `instead` is the advice for an empty list.
    pub(in crate::policy) fn list(
        value: Value<'a>,
        is_known: &dyn Fn(Value<'a>, PartitionKey<'a>) -> bool,
        instead: &'static str,
    ) -> Option<Written<Vec<PartitionKey<'a>>>> {
        let read = |value| Self::read(value).filter(|by| is_known(value, *by));
        if !value.is_list() {
            if value.as_text().is_none() {
                value.wrong(
                    "one of \"user\", \"group\", \"host\", \"command\", \"directory\", or a list of them",
                );
                return None;
            }
            return Some(Written { value: vec![read(value)?], at: value.at });
        }
        let list = value.list("a list of strings")?;
        let mut members = Vec::new();
        for element in &list.value {
            let member = read(*element)?;
            if members.contains(&member) {
                element.fault(Fault::Repeated { word: element.as_text().unwrap_or_default().to_owned() });
            }
            members.push(member);
        }
        value.filled(members, instead)
    }

    fn read(value: Value<'a>) -> Option<Self> {
        let is_capture = |name: &&str| matches!(Placeholder::parse(name), Ok(Placeholder::Captured(_)));
        match value.as_text().and_then(name_in_braces).filter(is_capture) {
            Some(name) => Some(PartitionKey::Captured(name)),
            None => value.choice().map(|word| PartitionKey::Each(word.value)),
        }
    }
}
