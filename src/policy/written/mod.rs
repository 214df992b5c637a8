//! The policy as written: every value with its position, so that a fault found much later can point at it.
//! These types contain only what the file contains. References are names, and nothing is checked against
//! anything else; validation does that, and after it these types are gone.

mod rule;

pub(super) use self::rule::{WrittenAcquisition, WrittenAlternative, WrittenClaim, WrittenRule, slots};
use super::{
    At, COMMAND, DEFAULTS, DELEGATE, Item, LOG, LogTarget, REPOSITORY, Section, Unmatched, Value, Written,
    WrittenEntry, WrittenList,
    aliases::entry,
    fault::Fault,
    limit::digits,
    selector::{Entry, Window},
};
use crate::judge::terms::{Hold, Keeper, Wait};

/// An alias with its entries.
pub(super) type WrittenAlias<'a> = (Written<&'a str>, WrittenList<'a>);

pub(super) fn aliases<'a>(file: &Section<'a>) -> Vec<WrittenAlias<'a>> {
    let aliases = file.by_name("alias").into_iter();
    aliases.filter_map(|(name, value)| Some((name, WrittenList::read(value)?))).collect()
}

pub(super) struct WrittenFile<'a> {
    pub(super) defaults: Option<WrittenDefaults<'a>>,
    pub(super) aliases: Vec<WrittenAlias<'a>>,
    pub(super) repositories: Vec<WrittenRepository<'a>>,
    pub(super) commands: Vec<WrittenCommand<'a>>,
    pub(super) delegations: Vec<WrittenDelegation<'a>>,
    pub(super) log: Option<WrittenLog>,
    /// Whether anything in it holds at some times only.
    pub(super) asks_for_the_time: bool,
}

pub(super) struct WrittenRepository<'a> {
    pub(super) name: Written<&'a str>,
    pub(super) section: Section<'a>,
}

pub(super) struct WrittenCommand<'a> {
    pub(super) name: Written<&'a str>,
    pub(super) exec: Option<Written<&'a str>>,
}

pub(super) struct WrittenLog {
    pub(super) to: Option<Written<LogTarget>>,
    pub(super) replay: Option<Written<bool>>,
}

impl<'a> WrittenFile<'a> {
    /// Everything but the repositories, the rules and the tests, which are read one by one when all else is
    /// known.
    pub(super) fn read(file: &Section<'a>) -> Self {
        if let Some(version) = file.number("version", i64::MIN, i64::MAX)
            && version.value != 1
        {
            file.fault(version.at, Fault::UnknownVersion);
        }
        let repositories = file.by_name("repository").into_iter();
        let commands = file.by_name("command").into_iter();
        WrittenFile {
            defaults: file.section("defaults", &DEFAULTS).map(|section| WrittenDefaults::read(&section)),
            aliases: aliases(file),
            repositories: repositories
                .filter_map(|(name, value)| {
                    Some(WrittenRepository { name, section: value.section(&REPOSITORY)? })
                })
                .collect(),
            commands: commands
                .filter_map(|(name, value)| {
                    let section = value.section(&COMMAND)?;
                    Some(WrittenCommand {
                        name,
                        exec: section.require("exec").and_then(|value| value.text()),
                    })
                })
                .collect(),
            delegations: WrittenDelegation::all(file),
            log: file.section("log", &LOG).map(|section| WrittenLog::read(&section)),
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

impl WrittenLog {
    fn read(section: &Section<'_>) -> Self {
        let target = |value: Value<'_>| {
            let text = value.text()?;
            let target = match LogTarget::parse(text.value) {
                Ok(Some(target)) => Some(target),
                Ok(None) => {
                    value.unknown_word(text.value, LogTarget::WORDS.to_vec());
                    None
                }
                Err(fault) => {
                    value.fault(fault);
                    None
                }
            };
            target.map(|value| Written { value, at: text.at })
        };
        WrittenLog { to: section.get("to").and_then(target), replay: section.flag("replay") }
    }
}

// `[defaults]` as written.

pub(super) struct WrittenDefaults<'a> {
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
    fn read(section: &Section<'a>) -> Self {
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
        digits(octal, 8).filter(|mode| *mode <= 0o777 && octal.len() >= 3)
    };
    value.parsed("a string such as \"0666\"", parse, |_, text| Fault::BadMode { text })
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
