//! The policy as it was written: every value with its place, so that a fault found much later can still point at it.
//! These types say what the file says and no more. References are names, nothing has been held against anything else;
//! that is validation's, and after it nobody sees them again.

mod claim;
mod defaults;
mod repository;
mod rule;
mod scenario;
mod selectors;

pub(super) use claim::{WrittenAcquisition, WrittenClaim};
pub(super) use defaults::WrittenDefaults;
pub(super) use repository::WrittenRepository;
pub(super) use rule::WrittenRule;
pub(super) use scenario::{WrittenExpectedClaim, WrittenScenario};
pub(super) use selectors::{Entry, WrittenArgument, WrittenList, WrittenSelectors, WrittenVariable};

use super::{
    fault::Fault,
    keys::{COMMAND, DEFAULTS, LOG, REPOSITORY, RULE, TEST},
    log::{LogEvents, LogTarget},
    place::{At, Written},
    reader::{Section, Value},
};

/// A whole file.
pub(super) struct WrittenFile<'a> {
    pub(super) defaults: Option<WrittenDefaults<'a>>,
    pub(super) aliases: Vec<(Written<&'a str>, WrittenList<'a>)>,
    pub(super) repositories: Vec<WrittenRepository<'a>>,
    pub(super) rules: Vec<WrittenRule<'a>>,
    pub(super) commands: Vec<WrittenCommand<'a>>,
    pub(super) log: Option<WrittenLog>,
    pub(super) scenarios: Vec<WrittenScenario<'a>>,
}

/// One `[command.NAME]`.
pub(super) struct WrittenCommand<'a> {
    pub(super) name: Written<&'a str>,
    pub(super) exec: Option<Written<&'a str>>,
}

/// `[log]`.
pub(super) struct WrittenLog {
    pub(super) to: Option<Written<LogTarget>>,
    pub(super) events: Option<Written<LogEvents>>,
}

impl<'a> WrittenFile<'a> {
    /// Reads a file.
    pub(super) fn read(file: &Section<'a>) -> Self {
        if let Some(version) = file.number("version", i64::MIN, i64::MAX)
            && version.value != 1
        {
            file.fault(version.at, Fault::UnknownVersion);
        }
        let aliases = file.by_name("alias").into_iter();
        let repositories = file.by_name("repository").into_iter();
        let commands = file.by_name("command").into_iter();
        WrittenFile {
            defaults: file.section("defaults", &DEFAULTS).map(|section| WrittenDefaults::read(&section)),
            aliases: aliases.filter_map(|(name, value)| Some((name, WrittenList::read(value)?))).collect(),
            repositories: repositories
                .filter_map(|(name, value)| Some(WrittenRepository::read(name, &value.section(&REPOSITORY)?)))
                .collect(),
            rules: file.tables("rule", &RULE).iter().map(WrittenRule::read).collect(),
            commands: commands
                .filter_map(|(name, value)| {
                    let section = value.section(&COMMAND)?;
                    Some(WrittenCommand {
                        name,
                        exec: section.require("exec").and_then(|value| value.text()),
                    })
                })
                .collect(),
            log: file.section("log", &LOG).map(|section| WrittenLog::read(&section)),
            scenarios: file.tables("test", &TEST).iter().map(WrittenScenario::read).collect(),
        }
    }
}

impl WrittenLog {
    fn read(section: &Section<'_>) -> Self {
        let target = |value: Value<'_>| {
            let text = value.text()?;
            let target = LogTarget::parse(text.value);
            if target.is_none() {
                if text.value.contains('/') {
                    value.fault(Fault::RelativePath { key: "to" });
                } else {
                    value.unknown_word(text.value, LogTarget::WORDS.to_vec());
                }
            }
            target.map(|value| Written { value, at: text.at })
        };
        WrittenLog { to: section.get("to").and_then(target), events: section.choice("events") }
    }
}

/// A key whose value must not be empty; what to do instead.
fn filled<T>(value: Value<'_>, list: Vec<T>, at: At, instead: &'static str) -> Option<Written<Vec<T>>> {
    if list.is_empty() {
        value.fault(Fault::EmptyList { key: value.key.to_owned(), instead });
        return None;
    }
    Some(Written { value: list, at })
}
