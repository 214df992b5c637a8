//! Whether a rule matches a request. What costs nothing is judged first; names are looked up only when
//! everything else already matches.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::terms::names::LookupError;
use crate::policy::{Delegation, EvalContext, Rule, Selector};

/// What a rule's selectors say.
#[derive(Debug)]
pub(super) enum Judgement {
    Matches,
    No(Selector),
    /// It is delegated for other users.
    NotDelegated,
    /// This table of `except` matches.
    Excepted(usize),
    /// A look-up failed.
    Unknown(LookupError),
}

/// The first selector that does not match, of those that need no look-up; the commands of the delegation that
/// a rule stands under are as good as its own.
pub(super) fn mismatch(
    rule: &Rule,
    delegation: Option<&Delegation>,
    facts: &EvalContext<'_>,
) -> Option<Selector> {
    let delegation = delegation.filter(|delegation| !delegation.is_for_command(facts));
    delegation.map(|_| Selector::Commands).or_else(|| rule.selectors.mismatch(facts, rule.layer))
}

pub(super) fn judge(rule: &Rule, delegation: Option<&Delegation>, facts: &EvalContext<'_>) -> Judgement {
    if let Some(selector) = mismatch(rule, delegation, facts) {
        return Judgement::No(selector);
    }
    let excepted = |asking_who: bool| {
        let tables = rule.except.iter().enumerate().filter(move |(_, table)| table.ask_who() == asking_who);
        tables.filter(|(_, table)| table.mismatch(facts, rule.layer).is_none())
    };
    // An exception that can be judged without a look-up spares those of the rule.
    if let Some((index, _)) = excepted(false).next() {
        return Judgement::Excepted(index);
    }
    let mut open = match delegation.map(|delegation| delegation.is_for_user(facts)) {
        Some(Ok(false)) => return Judgement::NotDelegated,
        Some(Ok(true)) | None => None,
        Some(Err(failure)) => Some(failure),
    };
    match rule.selectors.stranger(facts, rule.layer) {
        Ok(Some(selector)) => return Judgement::No(selector),
        Ok(None) => {}
        Err(failure) => open = open.or(Some(failure)),
    }
    for (index, table) in excepted(true) {
        match table.stranger(facts, rule.layer) {
            Ok(None) => return Judgement::Excepted(index),
            Ok(Some(_)) => {}
            Err(failure) => open = open.or(Some(failure)),
        }
    }
    open.map_or(Judgement::Matches, Judgement::Unknown)
}

/// What of the request a rule matches, the most personal first, for people.
pub(super) fn what_matches(rule: &Rule, facts: &EvalContext<'_>) -> String {
    let group = rule.selectors.groups.iter().flatten().find_map(|group| group.what_matches(facts));
    let user = || rule.selectors.users.iter().flatten().find_map(|user| user.what_matches(facts));
    group.or_else(user).unwrap_or_else(|| {
        let name = OsStr::from_bytes(facts.command_name()).to_string_lossy();
        format!("command \"{name}\"")
    })
}
