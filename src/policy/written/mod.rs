//! What must be known of a file before the rest of it is read and checked, and rules as written: every value
//! with its position, so that a fault found much later can point at it. References are names, and nothing is
//! checked against anything else; validation does that, and after it these types are gone.

mod rule;

pub(super) use self::rule::{WrittenAcquisition, WrittenAlternative, WrittenClaim, WrittenRule, slots};
use super::{
    At, DEFAULTS, DELEGATE, Item, LOG, REPOSITORY, Section, Value, Written, WrittenEntry, WrittenList,
    aliases::entry,
    fault::Fault,
    selector::{Entry, Window},
};

/// An alias with its entries.
pub(super) type WrittenAlias<'a> = (Written<&'a str>, WrittenList<'a>);

pub(super) fn aliases<'a>(file: &Section<'a>) -> Vec<WrittenAlias<'a>> {
    let aliases = file.by_name("alias").into_iter();
    aliases.filter_map(|(name, value)| Some((name, WrittenList::read(value)?))).collect()
}

pub(super) struct WrittenFile<'a> {
    pub(super) defaults: Option<Section<'a>>,
    pub(super) aliases: Vec<WrittenAlias<'a>>,
    pub(super) repositories: Vec<WrittenRepository<'a>>,
    pub(super) delegations: Vec<WrittenDelegation<'a>>,
    pub(super) log: Option<Section<'a>>,
    /// Whether anything in it holds at some times only.
    pub(super) asks_for_the_time: bool,
}

pub(super) struct WrittenRepository<'a> {
    pub(super) name: Written<&'a str>,
    pub(super) section: Section<'a>,
}

impl<'a> WrittenFile<'a> {
    /// Everything that must be known before repositories, rules, commands and tests are read, one by one.
    pub(super) fn read(file: &Section<'a>) -> Self {
        if let Some(version) = file.number("version", i64::MIN, i64::MAX)
            && version.value != 1
        {
            file.fault(version.at, Fault::UnknownVersion);
        }
        let repositories = file.by_name("repository").into_iter();
        WrittenFile {
            defaults: file.section("defaults", &DEFAULTS),
            aliases: aliases(file),
            repositories: repositories
                .filter_map(|(name, value)| {
                    Some(WrittenRepository { name, section: value.section(&REPOSITORY)? })
                })
                .collect(),
            delegations: WrittenDelegation::all(file),
            log: file.section("log", &LOG),
            asks_for_the_time: asks_for_the_time(file),
        }
    }
}

/// Whether a rule, an exception, a limit or a reservation holds at some times only.
fn asks_for_the_time(file: &Section<'_>) -> bool {
    let when = Window::KEY.name;
    if !file.may_list(when) {
        return false;
    }
    let has = |table: Item<'_>| table.get(when).is_some();
    let lists = |table: Item<'_>, key: &str| table.get(key).is_some_and(|list| list.items().any(has));
    file.items_of("rule").any(|rule| has(rule) || lists(rule, "except"))
        || file.items_of("repository").any(|one| lists(one, "limits") || lists(one, "reserve"))
}

// A `[delegate."NAME"]` as it was written.

pub(super) struct WrittenDelegation<'a> {
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
    if value.is_empty_list() {
        value.fault(Fault::EmptyList { key: value.key.to_owned(), instead: "for all of them write \"*\"" });
        return None;
    }
    WrittenList::read(value)
}
