//! Selectors: entries become patterns, numbers and times, and each entry that can mean nothing is reported where it
//! stands, be that in a rule or in an alias.

use super::book::Book;
use crate::policy::{
    fault::Fault,
    findings::Findings,
    names::{LookupError, Names},
    pattern::{Pattern, Subject},
    principal::{GroupEntry, Principal},
    selectors::{ArgumentEntry, CommandEntry, DirectoryEntry, EnvironmentEntry, EnvironmentValue, Selectors},
    warning::Warning,
    window::Window,
    written::{Entry, WrittenArgument, WrittenList, WrittenSelectors, WrittenVariable},
};

pub(super) fn validate<'w>(book: &Book<'w>, written: &'w WrittenSelectors<'w>) -> Selectors {
    let findings = book.findings;
    Selectors {
        commands: list("commands", book, written.commands.as_ref(), command),
        arguments: written.arguments.as_ref().map(|arguments| {
            arguments.value.iter().flat_map(|argument| argument_entries(book, argument)).collect()
        }),
        users: written.users.as_ref().map(|users| parse_principals(book, &book.entries(&users.entries))),
        groups: written.groups.as_ref().map(|groups| {
            let group = |entry: &Entry<'_>| {
                let group = parse("groups", entry, findings, GroupEntry::parse);
                group.inspect(|group| warn_of_unknown_group(book, entry, group))
            };
            book.entries(&groups.entries).into_iter().filter_map(group).collect()
        }),
        hosts: list("hosts", book, written.hosts.as_ref(), |text| pattern(text, Subject::Host)),
        directories: list("directories", book, written.directories.as_ref(), directory),
        environment: written
            .environment
            .iter()
            .map(|(variable, value)| {
                if variable.value.is_empty() || variable.value.contains(['=', '\0']) {
                    findings.fault(variable.at, Fault::BadVariable { name: variable.value.to_owned() });
                }
                let value = match value {
                    WrittenVariable::Set(false) => EnvironmentValue::Unset,
                    WrittenVariable::Set(true) => EnvironmentValue::Set,
                    WrittenVariable::OneOf(list) => EnvironmentValue::OneOf(values(book, list)),
                };
                EnvironmentEntry { variable: variable.value.to_owned(), value }
            })
            .collect(),
        when: list("when", book, written.when.as_ref(), |text| {
            Window::parse(text).map_err(|problem| Fault::BadWindow { reason: problem.to_string() })
        }),
    }
}

/// The entries of `users`, or of `for` in a reservation.
pub(super) fn parse_principals(book: &Book<'_>, entries: &[&Entry<'_>]) -> Vec<Principal> {
    let principal = |entry: &&Entry<'_>| {
        let principal = parse("users", entry, book.findings, Principal::parse)?;
        match &principal {
            Principal::User(name) => warn_of_unknown(book, entry, name, |names, name| {
                names
                    .user_id(name)
                    .map(|uid| uid.is_none().then(|| Warning::UnknownUser { name: name.to_owned() }))
            }),
            Principal::Group(group) => warn_of_unknown_group(book, entry, group),
            Principal::Uids(_) | Principal::Netgroup(_) => {}
        }
        Some(principal)
    };
    entries.iter().filter_map(principal).collect()
}

fn warn_of_unknown_group(book: &Book<'_>, entry: &Entry<'_>, group: &GroupEntry) {
    if let GroupEntry::Named(name) = group {
        warn_of_unknown(book, entry, name, |names, name| {
            names
                .group_id(name)
                .map(|gid| gid.is_none().then(|| Warning::UnknownGroup { name: name.to_owned() }))
        });
    }
}

/// A name that does not exist matches nobody, which is rarely meant.
fn warn_of_unknown(
    book: &Book<'_>,
    entry: &Entry<'_>,
    name: &Pattern,
    ask: impl Fn(&dyn Names, &str) -> Result<Option<Warning>, LookupError>,
) {
    let (Some(names), Some(name)) = (book.checking, name.literal()) else { return };
    let answer = ask(names, name);
    let failed = |failure: LookupError| Some(Warning::LookupFailed { failure: failure.to_string() });
    if let Some(warning) = answer.unwrap_or_else(failed) {
        book.findings.warning(entry.at, warning);
    }
}

fn list<'w, T>(
    key: &'static str,
    book: &Book<'w>,
    list: Option<&'w WrittenList<'w>>,
    parse_one: impl Fn(&str) -> Result<T, Fault>,
) -> Option<Vec<T>> {
    let entries = book.entries(&list?.entries);
    Some(entries.into_iter().filter_map(|entry| parse(key, entry, book.findings, &parse_one)).collect())
}

fn parse<T>(
    key: &'static str,
    entry: &Entry<'_>,
    findings: &Findings,
    parse: impl Fn(&str) -> Result<T, Fault>,
) -> Option<T> {
    let parsed = if entry.value.starts_with('!') {
        Err(Fault::Negation { entry: entry.value.to_string(), key })
    } else if entry.value.is_empty() {
        Err(Fault::EmptyEntry)
    } else {
        parse(&entry.value)
    };
    parsed.map_err(|fault| findings.fault(entry.at, fault)).ok()
}

/// Values may begin with anything, and an empty one is a value.
fn values<'w>(book: &Book<'w>, list: &'w WrittenList<'w>) -> Vec<Pattern> {
    let value = |entry: &Entry<'_>| {
        pattern(&entry.value, Subject::Name).map_err(|fault| book.findings.fault(entry.at, fault)).ok()
    };
    book.entries(&list.entries).into_iter().filter_map(value).collect()
}

fn pattern(text: &str, subject: Subject) -> Result<Pattern, Fault> {
    Pattern::new(text, subject).map_err(|reason| Fault::BadPattern { reason })
}

fn command(text: &str) -> Result<CommandEntry, Fault> {
    let is_path = text.contains('/');
    if is_path && !can_be_absolute(text) {
        return Err(Fault::RelativeCommand { entry: text.to_owned() });
    }
    Ok(CommandEntry { pattern: pattern(text, Subject::Path)?, is_path })
}

/// `/proj/apollo/**` means the directory itself too; that pattern alone would only match what is below.
fn directory(text: &str) -> Result<DirectoryEntry, Fault> {
    let text = if text.len() > 1 { text.trim_end_matches('/') } else { text };
    if !can_be_absolute(text) {
        return Err(Fault::RelativeDirectory { entry: text.to_owned() });
    }
    let itself = text.strip_suffix("/**").filter(|itself| !itself.is_empty());
    Ok(DirectoryEntry {
        pattern: pattern(text, Subject::Path)?,
        itself: itself.map(|itself| pattern(itself, Subject::Path)).transpose()?,
    })
}

/// Whether a pattern can match a text that begins with `/`.
fn can_be_absolute(pattern: &str) -> bool {
    pattern.starts_with(['/', '*', '?', '[', '{', '\\'])
}

fn argument_entries<'w>(book: &Book<'w>, argument: &'w WrittenArgument<'w>) -> Vec<ArgumentEntry> {
    let compile = |entry: &Entry<'_>| {
        pattern(&entry.value, Subject::Name).map_err(|fault| book.findings.fault(entry.at, fault)).ok()
    };
    match argument {
        WrittenArgument::One(entry) => book
            .entries(std::slice::from_ref(entry))
            .into_iter()
            .filter_map(compile)
            .map(|pattern| ArgumentEntry { patterns: vec![pattern] })
            .collect(),
        // In a list of consecutive arguments each must be one, so that an alias has no meaning there.
        WrittenArgument::Consecutive(entries) => {
            vec![ArgumentEntry { patterns: entries.iter().filter_map(compile).collect() }]
        }
    }
}
