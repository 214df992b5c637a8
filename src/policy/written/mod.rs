//! The policy as written: every value with its position, so that a fault found much later can point at it.
//! These types say what the file says and no more. References are names, and nothing is checked against
//! anything else; validation does that, and after it these types are gone.

mod defaults;
mod repository;
mod rule;
mod scenario;

pub(super) use self::defaults::WrittenDelegation;
pub(super) use self::repository::{WrittenLimit, WrittenLimits};
pub(super) use self::rule::{WrittenAcquisition, WrittenAlternative, WrittenClaim};
pub(super) use defaults::WrittenDefaults;
pub(super) use repository::WrittenRepository;
pub(super) use rule::WrittenRule;
pub(super) use scenario::{
    WrittenExpectedClaim, WrittenHolder, WrittenHolders, WrittenPerson, WrittenScenario, WrittenUser,
};

use super::{
    aliases::WrittenList,
    fault::Fault,
    keys::{COMMAND, DEFAULTS, LOG},
    log::LogTarget,
    place::Written,
    reader::{Section, Value},
    repository::REPOSITORY,
};

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
    /// Whether a rule holds at some times only.
    rules_ask_for_the_time: bool,
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
    /// Whether anything in it holds at some times only.
    pub(super) fn asks_for_the_time(&self) -> bool {
        self.rules_ask_for_the_time || self.repositories.iter().any(WrittenRepository::asks_for_the_time)
    }

    /// Everything but the rules and the tests, which are read one by one when all else is known.
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
                .filter_map(|(name, value)| Some(WrittenRepository::read(name, &value.section(&REPOSITORY)?)))
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
            rules_ask_for_the_time: WrittenRule::ask_for_the_time(file),
        }
    }
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
