//! A probable mistake that harms no launch; `policy check` shows it. As with faults, each is a value with a
//! stable code and its text.

use super::{
    At, Share,
    coded::{all_quoted, coded},
};
use crate::{judge::terms::rule_title, text::Show};

coded! {
    /// A probable mistake.
    Warning {
        SkippedFile { name: String } = "skipped-file",
            "{name} is skipped: drop-ins end in \".toml\" and do not begin with \".\"";
        UnusedRepository { name: String } = "unused-repository", "no rule uses repository {name}";
        UnusedAlias { name: String } = "unused-alias", "no rule uses alias {name}";
        OrderAlone = "order-without-first-of", "\"order\" has no effect without \"first_of\"";
        FamilyOfOne { family: String } = "family-of-one",
            "only this rule has first_of = {family}, so it shadows no other rule";
        NoMembers { repository: String } = "no-members",
            "repository {repository} is one for all and has no members, so this has no effect";
        NeverBinds { ceiling: Share, limit: u32 } = "never-binds",
            "a ceiling of {ceiling} has no effect with a limit of {limit}";
        NeverReached { before: String } = "never-reached", "never reached: {before} before it needs fewer slots";
        NeverMatches { because: String } = "never-matches", (format!("the rule can never match: {because}"));
        Shadowed { by: String, first: At } = "shadowed",
            (format!("the rule never counts: {} comes first, and matches all that it matches", rule_title(by)));
        Overruled { by: String, first: At } = "overruled",
            (format!("the rule has no effect: {} decides all launches that it matches", rule_title(by)));
        WeakHold { commands: Vec<String>, rules: Vec<String>, ending: &'static str } = "weak-hold", ({
            let releases = match commands.as_slice() {
                [_] => "releases its slot while it still runs",
                _ => "release their slots while they still run",
            };
            let of_rules = if rules.len() == 1 { String::new() } else { format!(" in rules {}", all_quoted(rules)) };
            format!("{} {releases}; write hold = \"{ending}\"{of_rules}", all_quoted(commands))
        });
        UnknownUser { name: String, is_group: bool } = "unknown-user", ({
            let name = name.shown();
            let group = if *is_group { format!("; for the group write \"%{name}\"") } else { String::new() };
            format!("there is no user \"{name}\"{group}")
        });
        AnotherSpelling { name: String, known: String } = "another-spelling",
            "the user {name} is {known} in the database: the names of callers are compared with that, so write {known}";
        UnknownGroup { name: String } = "unknown-group", ({
            let plain = name.strip_prefix('%').map(|plain| format!("; among groups write \"{}\"", plain.shown()));
            format!("there is no group \"{}\"{}", name.shown(), plain.unwrap_or_default())
        });
        RuntimeOfCaller = "runtime-of-caller",
            "{{runtime}} follows XDG_RUNTIME_DIR: a caller who changes it evades every limit; write an absolute path";
        ChosenByCaller { repository: String, placeholder: String } = "chosen-by-caller", (format!(
            "repository \"{}\" has a file for each {{{}}}, which the caller chooses: a caller who chooses another one \
             evades the limit; callers cannot choose their groups: per = \"group\"",
            repository.shown(),
            placeholder.shown()
        ));
        LookupFailed { failure: String } = "look-up-failed", (format!("a look-up failed: {}", failure.shown()));
        ExpireNotAboveElapsed = "expire-not-above-elapsed",
            "\"expire_after\" should be longer than \"if_elapsed\": a holder must be able to become overdue";
    }
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
