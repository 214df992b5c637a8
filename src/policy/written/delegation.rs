//! A `[delegate."NAME"]` as it was written.

use crate::policy::{
    entries::{WrittenEntry, WrittenList, entry},
    fault::Fault,
    place::{At, Written},
    reader::{Section, Value},
};

pub(in crate::policy) struct WrittenDelegation<'a> {
    pub(in crate::policy) file: Written<&'a str>,
    pub(in crate::policy) owner: Option<WrittenEntry<'a>>,
    pub(in crate::policy) users: Option<WrittenList<'a>>,
    pub(in crate::policy) commands: Option<WrittenList<'a>>,
}

impl<'a> WrittenDelegation<'a> {
    pub(in crate::policy) fn read(file: Written<&'a str>, section: &Section<'a>) -> Self {
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

    /// Its lists, in which aliases can stand.
    pub(in crate::policy) fn lists(&self) -> impl Iterator<Item = &WrittenList<'a>> {
        self.users.iter().chain(&self.commands)
    }
}

/// An empty list would be a delegation to nobody, and none must be missing.
fn list_of(value: Value<'_>) -> Option<WrittenList<'_>> {
    if value.is_list() && !value.has_elements() {
        value.fault(Fault::EmptyList { key: value.key.to_owned(), instead: "for all of them write \"*\"" });
        return None;
    }
    WrittenList::read(value)
}
