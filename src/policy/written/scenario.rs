//! `[[test]]` as written.

use super::rule::slots;
use crate::policy::{
    aliases::{WrittenEntry, WrittenList},
    keys::{EXPECTED_CLAIM, HOLDER, TEST},
    keyword::Hold,
    limit::{HIGHEST_LIMIT, LONGEST_QUEUE},
    place::{At, Written},
    reader::{Section, Value},
    rule::Slots,
    scenario::Expectation,
    span_of_time::Wait,
};

pub(in crate::policy) struct WrittenScenario<'a> {
    pub(in crate::policy) at: At,
    pub(in crate::policy) name: Option<Written<&'a str>>,
    pub(in crate::policy) person: WrittenPerson<'a>,
    pub(in crate::policy) command: Option<Written<&'a str>>,
    pub(in crate::policy) path: Option<Written<&'a str>>,
    pub(in crate::policy) arguments: Option<Written<Vec<Written<&'a str>>>>,
    pub(in crate::policy) host: Option<Written<&'a str>>,
    pub(in crate::policy) directory: Option<Written<&'a str>>,
    pub(in crate::policy) environment: Vec<(&'a str, &'a str)>,
    pub(in crate::policy) time: Option<Written<String>>,
    pub(in crate::policy) cpus: Option<Written<u32>>,
    pub(in crate::policy) held: Vec<(Written<&'a str>, WrittenHolders<'a>)>,
    pub(in crate::policy) waiting: Vec<(Written<&'a str>, u32)>,
    pub(in crate::policy) expect: Option<Written<Expectation>>,
    pub(in crate::policy) by: Option<Written<&'a str>>,
    pub(in crate::policy) claims: Option<Vec<WrittenExpectedClaim<'a>>>,
    pub(in crate::policy) wait: Option<Written<Wait>>,
    pub(in crate::policy) hold: Option<Written<Hold>>,
}

/// A user who starts a command.
pub(in crate::policy) struct WrittenPerson<'a> {
    pub(in crate::policy) user: Option<WrittenUser<'a>>,
    pub(in crate::policy) groups: Option<WrittenList<'a>>,
}

pub(in crate::policy) enum WrittenUser<'a> {
    Name(&'a str),
    Uid(u32),
}

/// Who holds slots.
pub(in crate::policy) enum WrittenHolders<'a> {
    Alike(u32),
    These(Vec<WrittenHolder<'a>>),
}

pub(in crate::policy) struct WrittenHolder<'a> {
    pub(in crate::policy) person: WrittenPerson<'a>,
    pub(in crate::policy) slots: Option<u32>,
}

pub(in crate::policy) struct WrittenExpectedClaim<'a> {
    /// The name, perhaps with the member in brackets.
    pub(in crate::policy) repository: Written<&'a str>,
    pub(in crate::policy) slots: Option<Slots>,
    pub(in crate::policy) limit: Option<u32>,
}

impl<'a> WrittenScenario<'a> {
    /// The tests of a file, one after the other.
    pub(in crate::policy) fn each(file: &Section<'a>) -> impl Iterator<Item = Self> {
        file.each("test", &TEST).map(|section| Self::read(&section))
    }

    fn read(section: &Section<'a>) -> Self {
        let environment = section.by_name("environment").into_iter();
        let held = section.by_name("use").into_iter();
        let waiting = section.by_name("waiting").into_iter();
        let claims = section.get("claims").and_then(|value| value.list("a list of repositories"));
        WrittenScenario {
            at: section.at,
            name: section.require("name").and_then(|value| value.text()),
            person: WrittenPerson::read(section),
            command: section.require("command").and_then(|value| value.text()),
            path: section.text("path"),
            arguments: section.texts("arguments"),
            host: section.text("host"),
            directory: section.text("directory"),
            environment: environment
                .filter_map(|(name, value)| Some((name.value, value.text()?.value)))
                .collect(),
            time: section.get("time").and_then(|value| value.time()),
            cpus: section.count("cpus", 1, 1_000_000),
            held: held.filter_map(|(name, value)| Some((name, WrittenHolders::read(value)?))).collect(),
            waiting: waiting
                .filter_map(|(name, value)| Some((name, value.count(0, LONGEST_QUEUE)?.value)))
                .collect(),
            expect: section.require("expect").and_then(|value| value.choice()),
            by: section.text("by"),
            claims: claims
                .map(|claims| claims.value.into_iter().filter_map(WrittenExpectedClaim::read).collect()),
            wait: section.wait("wait"),
            hold: section.choice("hold"),
        }
    }
}

impl<'a> WrittenPerson<'a> {
    fn read(section: &Section<'a>) -> Self {
        WrittenPerson {
            user: section.get("user").and_then(|value| {
                if value.is_number() {
                    value.count(0, u32::MAX - 1).map(|uid| WrittenUser::Uid(uid.value))
                } else {
                    value.text().map(|name| WrittenUser::Name(name.value))
                }
            }),
            groups: section.get("groups").filter(Value::has_elements).and_then(WrittenList::read),
        }
    }

    pub(in crate::policy) fn groups(&self) -> &[WrittenEntry<'a>] {
        self.groups.as_ref().map_or(&[], |groups| groups.entries.as_slice())
    }
}

impl<'a> WrittenHolders<'a> {
    fn read(value: Value<'a>) -> Option<Self> {
        if !value.is_list() {
            if !value.is_number() {
                value.wrong("a number of slots, or a list of holders");
                return None;
            }
            return value.count(0, HIGHEST_LIMIT).map(|slots| WrittenHolders::Alike(slots.value));
        }
        let holder = |value: Value<'a>| {
            let section = value.section(&HOLDER)?;
            Some(WrittenHolder {
                person: WrittenPerson::read(&section),
                slots: section.count("slots", 1, HIGHEST_LIMIT).map(|slots| slots.value),
            })
        };
        let list = value.list("a list of holders")?.value;
        Some(WrittenHolders::These(list.into_iter().filter_map(holder).collect()))
    }
}

impl<'a> WrittenExpectedClaim<'a> {
    fn read(value: Value<'a>) -> Option<Self> {
        if let Some(name) = value.as_text() {
            let repository = Written { value: name, at: value.at };
            return Some(WrittenExpectedClaim { repository, slots: None, limit: None });
        }
        let section = value.section(&EXPECTED_CLAIM)?;
        Some(WrittenExpectedClaim {
            repository: section.require("repository")?.text()?,
            slots: section.get("slots").and_then(|value| slots(value, 1)).map(|slots| slots.value),
            limit: section.count("limit", 0, HIGHEST_LIMIT).map(|limit| limit.value),
        })
    }
}
