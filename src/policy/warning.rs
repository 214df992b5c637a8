//! A probable mistake that harms no launch; `policy check` shows it. As with faults, each is a value with a
//! stable code, and all words are in this file.

use std::fmt;

use super::{At, Share, coded::coded};
use crate::{judge::terms::rule_title, text::Show};

coded! {
    /// A probable mistake.
    Warning {
        SkippedFile { name: String } = "skipped-file",
        UnusedRepository { name: String } = "unused-repository",
        UnusedAlias { name: String } = "unused-alias",
        OrderAlone = "order-without-first-of",
        FamilyOfOne { family: String } = "family-of-one",
        NoMembers { repository: String } = "no-members",
        NeverBinds { ceiling: Share, limit: u32 } = "never-binds",
        NeverReached { before: String } = "never-reached",
        NeverMatches { because: String } = "never-matches",
        Shadowed { by: String, first: At } = "shadowed",
        Overruled { by: String, first: At } = "overruled",
        WeakHold { commands: Vec<String>, rules: Vec<String>, ending: &'static str } = "weak-hold",
        UnknownUser { name: String, is_group: bool } = "unknown-user",
        UnknownGroup { name: String } = "unknown-group",
        RuntimeOfCaller = "runtime-of-caller",
        ChosenByCaller { repository: String, placeholder: String } = "chosen-by-caller",
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
                name.shown()
            ),
            Warning::UnusedRepository { name } => write!(f, "no rule uses repository \"{}\"", name.shown()),
            Warning::UnusedAlias { name } => write!(f, "no rule uses alias \"{}\"", name.shown()),
            Warning::OrderAlone => write!(f, "\"order\" has no effect without \"first_of\""),
            Warning::FamilyOfOne { family } => {
                write!(f, "only this rule has first_of = \"{}\", so it shadows no other rule", family.shown())
            }
            Warning::NoMembers { repository } => write!(
                f,
                "repository \"{}\" is one for all and has no members, so this has no effect",
                repository.shown()
            ),
            Warning::NeverBinds { ceiling, limit } => {
                write!(f, "a ceiling of {ceiling} has no effect with a limit of {limit}")
            }
            Warning::NeverReached { before } => {
                write!(f, "never reached: \"{}\" before it needs fewer slots", before.shown())
            }
            Warning::NeverMatches { because } => write!(f, "the rule can never match: {because}"),
            Warning::Shadowed { by, .. } => {
                write!(
                    f,
                    "the rule never counts: {} comes first, and matches all that it matches",
                    rule_title(by)
                )
            }
            Warning::Overruled { by, .. } => {
                write!(f, "the rule has no effect: {} decides all launches that it matches", rule_title(by))
            }
            Warning::WeakHold { commands, rules, ending } => {
                let (commands_shown, let_go) = match commands.as_slice() {
                    [one] => (in_quotes(std::slice::from_ref(one)), "releases its slot while it still runs"),
                    several => (in_quotes(several), "release their slots while they still run"),
                };
                write!(f, "{commands_shown} {let_go}; write hold = \"{ending}\"")?;
                match rules.as_slice() {
                    [_] => Ok(()),
                    several => write!(f, " in rules {}", in_quotes(several)),
                }
            }
            Warning::UnknownUser { name, is_group } => {
                let name = name.shown();
                write!(f, "there is no user \"{name}\"")?;
                if *is_group { write!(f, "; for the group write \"%{name}\"") } else { Ok(()) }
            }
            Warning::UnknownGroup { name } => {
                write!(f, "there is no group \"{}\"", name.shown())?;
                match name.strip_prefix('%') {
                    Some(plain) => write!(f, "; among groups write \"{}\"", plain.shown()),
                    None => Ok(()),
                }
            }
            Warning::RuntimeOfCaller => write!(
                f,
                "{{runtime}} follows XDG_RUNTIME_DIR: a caller who changes it evades every limit; write an absolute path"
            ),
            Warning::ChosenByCaller { repository, placeholder } => write!(
                f,
                "repository \"{}\" has a file for each {{{}}}, which the caller chooses: a caller who chooses another one \
                 evades the limit; callers cannot choose their groups: per = \"group\"",
                repository.shown(),
                placeholder.shown()
            ),
            Warning::LookupFailed { failure } => write!(f, "a look-up failed: {}", failure.shown()),
            Warning::ExpireNotAboveElapsed => {
                write!(
                    f,
                    "\"expire_after\" should be longer than \"if_elapsed\": a holder must be able to become overdue"
                )
            }
        }
    }
}

fn in_quotes(names: &[String]) -> String {
    names.iter().map(|name| format!("\"{}\"", name.shown())).collect::<Vec<_>>().join(", ")
}

impl Warning {
    /// Another place that belongs to it, with its text.
    pub(super) fn second(&self) -> Option<(At, &'static str)> {
        match self {
            Warning::Shadowed { first, .. } => Some((*first, "this rule comes first")),
            Warning::Overruled { first, .. } => Some((*first, "this rule decides")),
            _ => None,
        }
    }
}
