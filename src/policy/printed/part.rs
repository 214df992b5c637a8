//! One table of a policy, with its keys in their order: what a file of it would hold under one header.

use std::fmt;

use crate::policy::{
    place::Place,
    toml_text::{Table, key, string},
};

/// What a table is about, in the order in which they are printed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PartKind {
    /// What holds where nothing else is said.
    Defaults,
    /// The word that a drop-in is a department's.
    Delegation,
    /// Where events go.
    Log,
    /// The program behind a command.
    Command,
    /// A repository.
    Repository,
    /// A rule.
    Rule,
    /// The order of rules of which the first that matches counts.
    Family,
    /// A test.
    Test,
}

impl PartKind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            PartKind::Defaults => "defaults",
            PartKind::Delegation => "delegation",
            PartKind::Log => "log",
            PartKind::Command => "command",
            PartKind::Repository => "repository",
            PartKind::Rule => "rule",
            PartKind::Family => "family",
            PartKind::Test => "test",
        }
    }
}

/// One table.
#[derive(Debug)]
pub(in crate::policy) struct Part<'p> {
    pub(in crate::policy) kind: PartKind,
    /// Unique among those of its kind in a layer; empty where there is but one.
    pub(in crate::policy) name: String,
    /// Where it was written, where that is one place.
    pub(in crate::policy) place: Option<&'p Place>,
    pub(in crate::policy) keys: Table,
}

impl Part<'_> {
    /// What there is but once.
    pub(super) fn only(kind: PartKind, keys: Table) -> Self {
        Part { kind, name: String::new(), place: None, keys }
    }
}

impl fmt::Display for Part<'_> {
    /// An empty line, the header, and a line for each key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { kind, name, place: _, keys } = self;
        match kind {
            PartKind::Defaults => writeln!(f, "\n[defaults]")?,
            PartKind::Delegation => writeln!(f, "\n[delegate.{}]", key(name))?,
            PartKind::Log => writeln!(f, "\n[log]")?,
            PartKind::Command => writeln!(f, "\n[command.{}]", key(name))?,
            PartKind::Repository => writeln!(f, "\n[repository.{}]", key(name))?,
            PartKind::Rule => writeln!(f, "\n[[rule]]\nname = {}", string(name))?,
            PartKind::Test => writeln!(f, "\n[[test]]\nname = {}", string(name))?,
            // Rules say themselves which family they are of.
            PartKind::Family => return Ok(()),
        }
        write!(f, "{keys}")
    }
}
