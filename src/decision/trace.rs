//! What became of every rule. `run` drops it, `explain` prints it; both come out of the same evaluation.

use crate::policy::Rule;

/// The selectors of a rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Selector {
    /// `commands`
    Commands,
    /// `arguments`
    Arguments,
    /// `users`
    Users,
    /// `groups`
    Groups,
    /// `hosts`
    Hosts,
    /// `directories`
    Directories,
    /// `environment`
    Environment,
    /// `when`
    When,
}

/// What became of one rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It counts.
    Counts,
    /// `enabled = false`
    Disabled,
    /// A selector does not match.
    No(Selector),
    /// This table of its `except` matches, counted from 0.
    Excepted(usize),
    /// An earlier rule of its `first_of` counts: its index among the rules.
    Shadowed(usize),
    /// It matches, but an exempt rule frees the launch of it: that rule's index.
    Exempted(usize),
    /// A look-up failed, so that nobody knows.
    Unknown,
}

/// One rule and what became of it.
#[derive(Debug)]
pub struct TraceEntry<'p> {
    /// The rule.
    pub rule: &'p Rule,
    /// What became of it.
    pub outcome: Outcome,
}
