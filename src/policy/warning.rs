//! What is likely not meant but harms no launch: shown by `policy check`. As with faults, each is a value with a stable
//! code, and all wording is in this file.

use std::fmt;

use super::{fault::coded, place::At};
use crate::diagnostic::escaped;

coded! {
    /// What is likely not meant.
    Warning {
        SkippedFile { name: String } = "skipped-file",
        UnusedRepository { name: String } = "unused-repository",
        UnusedAlias { name: String } = "unused-alias",
        OrderAlone = "order-without-first-of",
        FamilyOfOne { family: String } = "family-of-one",
        NeverBinds { ceiling: u32, limit: u32 } = "never-binds",
        NeverMatches { because: String } = "never-matches",
        Shadowed { by: String, first: At } = "shadowed",
        Overruled { by: String, first: At } = "overruled",
        WeakHold { command: String, ending: &'static str } = "weak-hold",
        UnknownUser { name: String } = "unknown-user",
        UnknownGroup { name: String } = "unknown-group",
        LookupFailed { failure: String } = "look-up-failed",
        ExpireNotAboveElapsed = "expire-not-above-elapsed",
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::SkippedFile { name } => write!(
                f,
                "\"{}\" is skipped: drop-ins end in \".toml\" and do not begin with \".\"",
                escaped(name)
            ),
            Warning::UnusedRepository { name } => write!(f, "no rule uses repository \"{}\"", escaped(name)),
            Warning::UnusedAlias { name } => write!(f, "no rule uses alias \"{}\"", escaped(name)),
            Warning::OrderAlone => write!(f, "\"order\" says nothing without \"first_of\""),
            Warning::FamilyOfOne { family } => {
                write!(
                    f,
                    "\"{}\" is the first_of of this rule alone, so that it shadows nothing",
                    escaped(family)
                )
            }
            Warning::NeverBinds { ceiling, limit } => {
                write!(f, "a ceiling of {ceiling} says nothing beside a limit of {limit}")
            }
            Warning::NeverMatches { because } => write!(f, "the rule can never match: {because}"),
            Warning::Shadowed { by, .. } => {
                write!(
                    f,
                    "the rule never counts: whatever it matches, rule \"{}\" matches before it",
                    escaped(by)
                )
            }
            Warning::Overruled { by, .. } => {
                write!(f, "the rule never binds: whatever it matches, rule \"{}\" decides", escaped(by))
            }
            Warning::WeakHold { command, ending } => write!(
                f,
                "\"{}\" lets go of its slot while it still runs; write hold = \"{ending}\"",
                escaped(command)
            ),
            Warning::UnknownUser { name } => write!(f, "there is no user \"{}\"", escaped(name)),
            Warning::UnknownGroup { name } => write!(f, "there is no group \"{}\"", escaped(name)),
            Warning::LookupFailed { failure } => write!(f, "a look-up failed: {}", escaped(failure)),
            Warning::ExpireNotAboveElapsed => {
                write!(
                    f,
                    "\"expire_after\" should be longer than \"if_elapsed\": a holder must be able to become overdue"
                )
            }
        }
    }
}

impl Warning {
    /// Another place that belongs to it, and what to say there.
    pub(super) fn second(&self) -> Option<(At, &'static str)> {
        match self {
            Warning::Shadowed { first, .. } => Some((*first, "this rule comes first")),
            Warning::Overruled { first, .. } => Some((*first, "this rule decides")),
            _ => None,
        }
    }
}
