//! What a rule selects, and each table of its `except`: the same keys, all of which must match. A selector that is
//! missing matches everything; the entries of one are alternatives.

use std::fmt;

use super::{
    pattern::Pattern,
    principal::{GroupEntry, Principal},
    window::Window,
};

/// The name of a selector.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Selector {
    /// The command.
    Commands,
    /// Its arguments.
    Arguments,
    /// The user.
    Users,
    /// The groups.
    Groups,
    /// The host.
    Hosts,
    /// The working directory.
    Directories,
    /// The environment.
    Environment,
    /// The time.
    When,
}

impl Selector {
    /// The key in the policy.
    pub fn key(self) -> &'static str {
        match self {
            Selector::Commands => "commands",
            Selector::Arguments => "arguments",
            Selector::Users => "users",
            Selector::Groups => "groups",
            Selector::Hosts => "hosts",
            Selector::Directories => "directories",
            Selector::Environment => "environment",
            Selector::When => "when",
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// The selectors of a rule or of an exception.
#[derive(Debug, Default)]
pub(crate) struct Selectors {
    pub(crate) commands: Option<Vec<CommandEntry>>,
    pub(crate) arguments: Option<Vec<ArgumentEntry>>,
    pub(crate) users: Option<Vec<Principal>>,
    pub(crate) groups: Option<Vec<GroupEntry>>,
    pub(crate) hosts: Option<Vec<Pattern>>,
    pub(crate) directories: Option<Vec<DirectoryEntry>>,
    pub(crate) environment: Vec<EnvironmentEntry>,
    pub(crate) when: Option<Vec<Window>>,
}

/// An entry of `commands`.
#[derive(Debug)]
pub(crate) struct CommandEntry {
    pub(crate) pattern: Pattern,
    /// Whether it is matched against paths instead of against names.
    pub(crate) is_path: bool,
}

impl CommandEntry {
    /// The one name it matches, where it is neither a path nor a pattern.
    pub(crate) fn literal_name(&self) -> Option<&str> {
        self.pattern.literal().filter(|_| !self.is_path)
    }
}

/// An entry of `arguments`: patterns for consecutive arguments, mostly one.
#[derive(Debug)]
pub(crate) struct ArgumentEntry {
    pub(crate) patterns: Vec<Pattern>,
}

/// An entry of `directories`.
#[derive(Debug)]
pub(crate) struct DirectoryEntry {
    pub(crate) pattern: Pattern,
    /// What `/proj/**` means beside all that is below it.
    pub(crate) itself: Option<Pattern>,
}

impl DirectoryEntry {
    pub(crate) fn matches(&self, directory: &[u8]) -> bool {
        self.pattern.matches(directory)
            || self.itself.as_ref().is_some_and(|itself| itself.matches(directory))
    }
}

/// A variable and what it must be.
#[derive(Debug)]
pub(crate) struct EnvironmentEntry {
    pub(crate) variable: String,
    pub(crate) value: EnvironmentValue,
}

/// What a variable must be.
#[derive(Debug)]
pub(crate) enum EnvironmentValue {
    Unset,
    Set,
    OneOf(Vec<Pattern>),
}

impl Selectors {
    /// The selectors that are there.
    pub(crate) fn selectors(&self) -> impl Iterator<Item = Selector> {
        let there = [
            (Selector::Commands, self.commands.is_some()),
            (Selector::Arguments, self.arguments.is_some()),
            (Selector::Users, self.users.is_some()),
            (Selector::Groups, self.groups.is_some()),
            (Selector::Hosts, self.hosts.is_some()),
            (Selector::Directories, self.directories.is_some()),
            (Selector::Environment, !self.environment.is_empty()),
            (Selector::When, self.when.is_some()),
        ];
        there.into_iter().filter(|(_, there)| *there).map(|(selector, _)| selector)
    }

    /// The entries of a selector as the policy writes them, aliases replaced.
    pub(crate) fn shown(&self, selector: Selector) -> Vec<String> {
        match selector {
            Selector::Commands => shown(self.commands.as_ref(), |entry| entry.pattern.text().to_owned()),
            Selector::Arguments => shown(self.arguments.as_ref(), |entry| {
                entry.patterns.iter().map(Pattern::text).collect::<Vec<_>>().join(" ")
            }),
            Selector::Users => shown(self.users.as_ref(), ToString::to_string),
            Selector::Groups => shown(self.groups.as_ref(), ToString::to_string),
            Selector::Hosts => shown(self.hosts.as_ref(), |pattern| pattern.text().to_owned()),
            Selector::Directories => {
                shown(self.directories.as_ref(), |entry| entry.pattern.text().to_owned())
            }
            Selector::Environment => self.environment.iter().map(|entry| entry.variable.clone()).collect(),
            Selector::When => shown(self.when.as_ref(), ToString::to_string),
        }
    }
}

fn shown<T>(entries: Option<&Vec<T>>, show: impl Fn(&T) -> String) -> Vec<String> {
    entries.into_iter().flatten().map(show).collect()
}
