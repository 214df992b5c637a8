//! `[defaults]` as written.

use crate::{
    judge::terms::keyword::Keeper,
    policy::{
        aliases::{WrittenEntry, WrittenList, entry},
        delegation::DELEGATE,
        fault::Fault,
        keyword::Hold,
        layer::Unmatched,
        place::{At, Written},
        reader::{Section, Value},
        span_of_time::Wait,
    },
};

pub(in crate::policy) struct WrittenDefaults<'a> {
    pub(in crate::policy) directory: Option<Written<&'a str>>,
    pub(in crate::policy) wait: Option<Written<Wait>>,
    pub(in crate::policy) hold: Option<Written<Hold>>,
    pub(in crate::policy) unmatched: Option<Written<Unmatched>>,
    pub(in crate::policy) enforce: Option<Written<bool>>,
    pub(in crate::policy) create_mode: Option<Written<u32>>,
    pub(in crate::policy) keeper: Option<Written<Keeper>>,
    pub(in crate::policy) contact: Option<Written<&'a str>>,
    pub(in crate::policy) time_zone: Option<Written<&'a str>>,
}

impl<'a> WrittenDefaults<'a> {
    pub(super) fn read(section: &Section<'a>) -> Self {
        WrittenDefaults {
            directory: section.text("directory"),
            wait: section.wait("wait"),
            hold: section.choice("hold"),
            unmatched: section.choice("unmatched"),
            enforce: section.flag("enforce"),
            create_mode: section.get("create_mode").and_then(mode),
            keeper: section.choice("keeper"),
            contact: section.contact("contact"),
            time_zone: section.text("time_zone"),
        }
    }
}

/// A mode is a string of octal digits, because TOML reads a bare 0666 as a mistake and 666 as a decimal
/// number.
fn mode(value: Value<'_>) -> Option<Written<u32>> {
    let parse = |text: &str| {
        let octal = text.strip_prefix("0o").unwrap_or(text);
        u32::from_str_radix(octal, 8).ok().filter(|mode| *mode <= 0o777 && octal.len() >= 3)
    };
    value.parsed("a string such as \"0666\"", parse, |_, text| Fault::BadMode { text })
}

// A `[delegate."NAME"]` as it was written.

pub(in crate::policy) struct WrittenDelegation<'a> {
    pub(in crate::policy) file: Written<&'a str>,
    pub(in crate::policy) owner: Option<WrittenEntry<'a>>,
    pub(in crate::policy) users: Option<WrittenList<'a>>,
    pub(in crate::policy) commands: Option<WrittenList<'a>>,
}

impl<'a> WrittenDelegation<'a> {
    /// The defaults of a file.
    pub(in crate::policy) fn all(file: &Section<'a>) -> Vec<Self> {
        let tables = file.by_name("delegate").into_iter();
        tables.filter_map(|(name, value)| Some(Self::read(name, &value.section(&DELEGATE)?))).collect()
    }

    fn read(file: Written<&'a str>, section: &Section<'a>) -> Self {
        WrittenDelegation {
            file,
            owner: section.require("owner").and_then(entry),
            users: section.require("users").and_then(list_of),
            commands: section.require("commands").and_then(list_of),
        }
    }

    pub(in crate::policy) fn at(&self) -> At {
        self.file.at
    }

    /// Its lists, which may have aliases.
    pub(in crate::policy) fn lists(&self) -> impl Iterator<Item = &WrittenList<'a>> {
        self.users.iter().chain(&self.commands)
    }
}

/// An empty list would be a delegation to no user, and none must be missing.
fn list_of(value: Value<'_>) -> Option<WrittenList<'_>> {
    if value.is_list() && !value.has_elements() {
        value.fault(Fault::EmptyList { key: value.key.to_owned(), instead: "for all of them write \"*\"" });
        return None;
    }
    WrittenList::read(value)
}
