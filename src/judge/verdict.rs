//! The outcome of a policy and a request. It is data with terms, never a boolean. The launcher obeys it
//! without knowing a policy.

use std::{ffi::OsStr, iter, os::unix::ffi::OsStrExt};

use super::terms::{Demand, Hold, LookupError, Setting, Unclear};
use crate::{
    policy::{Captured, Delegation, Policy, Rule, Selector, Selectors},
    text::{Show, visible},
};

/// What to do, and the result of every rule.
#[derive(Debug)]
#[must_use]
pub struct Decision<'p> {
    /// What to do.
    pub verdict: Verdict<'p>,
    /// Every rule, in the order of the files.
    pub trace: Vec<TraceEntry<'p>>,
}

/// What to do.
#[derive(Debug)]
pub enum Verdict<'p> {
    /// Start, once all demands are met.
    Start(Start<'p>),
    /// A `deny` rule refuses.
    Denied {
        rule: &'p Rule,
        /// The matched part of the request, for people: `your group "contractors"`.
        matches: String,
    },
    /// No rule matches, and the policy refuses what it does not name.
    Unmatched,
    /// A look-up failed, so it is unknown what applies.
    LookupFailed {
        /// The rule that needed it.
        rule: &'p Rule,
        /// The call and what the system said.
        failure: LookupError,
    },
}

/// A start, and what it depends on.
#[derive(Debug)]
pub struct Start<'p> {
    /// The demands, in the order of the rules; empty if nothing is limited.
    pub demands: Vec<Demand>,
    /// The rule that exempts the launch from everything, if there is one.
    pub exempt: Option<&'p Rule>,
    /// What keeps its slots.
    pub hold: Setting<Hold>,
    /// What would have refused the launch if it were enforced.
    pub would_refuse: Vec<Unenforced<'p>>,
    /// Where the command line should name a number of slots, and names none.
    pub unclear: Vec<Unclear>,
}

/// A refusal that is not enforced.
#[derive(Clone, Debug)]
pub enum Unenforced<'p> {
    /// By a `deny` rule.
    Denied(&'p Rule),
    /// Because no rule matches.
    Unmatched,
}

// The result of every rule. `run` drops it, `explain` prints it; both come out of the same evaluation.

/// The result of one rule. Other rules are named by their index among the rules of the policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    Counts,
    /// It counts as the first of the rules that share its `first_of`.
    CountsFirstOf(usize),
    /// This selector does not match.
    No(Selector),
    /// Its file is delegated for other users.
    NotDelegated,
    /// This table of its `except` matches, counted from 0.
    Excepted(usize),
    /// An earlier rule of its `first_of` counts.
    Shadowed(usize),
    /// It matches, but this rule exempts the launch from it.
    Exempted(usize),
    /// It would refuse, were it enforced.
    WouldRefuse,
    /// Unknown: a look-up failed.
    Unknown,
}

/// One rule and its result.
#[derive(Debug)]
pub struct TraceEntry<'p> {
    pub rule: &'p Rule,
    pub outcome: Outcome,
    /// What it captured, if it counts.
    pub captured: Vec<Captured>,
}

impl TraceEntry<'_> {
    /// Whether the rule matches: then it counts, is shadowed, or the launch is exempt from it.
    pub fn matches(&self) -> bool {
        !matches!(self.outcome, Outcome::No(_) | Outcome::NotDelegated | Outcome::Excepted(_))
    }

    /// The outcome in words: `counts (first of 2)`, `no: groups (students)`.
    pub fn describe(&self, policy: &Policy) -> String {
        let rule = self.rule;
        let other = |index: &usize| escaped_name(policy.rules().get(*index));
        match &self.outcome {
            Outcome::Counts => format!("counts{}", captured(&self.captured)),
            Outcome::CountsFirstOf(count) => {
                format!("counts (first of {count}){}", captured(&self.captured))
            }
            Outcome::No(selector) => format!("no: {}", with_entries(*selector, &rule.selectors)),
            Outcome::NotDelegated => {
                let layer = policy.layers().get(rule.layer);
                let users = layer.and_then(|layer| layer.delegation()).map(Delegation::users);
                format!("no: delegated for {}", few(&users.unwrap_or_default()).shown())
            }
            Outcome::Excepted(table) => {
                let selectors = rule.except.get(*table).into_iter();
                let of_table =
                    selectors.flat_map(|table| table.selectors().map(|one| with_entries(one, table)));
                iter::once("no: except".to_owned()).chain(of_table).collect::<Vec<_>>().join(" ")
            }
            Outcome::Shadowed(by) => format!("shadowed by \"{}\"", other(by)),
            Outcome::Exempted(by) => format!("exempted by \"{}\"", other(by)),
            Outcome::WouldRefuse => "would refuse, but is not enforced".to_owned(),
            Outcome::Unknown => "unknown: a look-up failed".to_owned(),
        }
    }
}

/// `, project = apollo`
fn captured(captured: &[Captured]) -> String {
    let shown = |Captured { name, value }: &Captured| {
        format!(", {} = {}", name.shown(), OsStr::from_bytes(value).shown())
    };
    captured.iter().map(shown).collect()
}

fn escaped_name(rule: Option<&Rule>) -> String {
    rule.map_or_else(String::new, |rule| visible(rule.shown_name()))
}

/// A selector with its entries, if they are few and helpful. A command that does not match is not worth
/// showing.
fn with_entries(selector: Selector, selectors: &Selectors) -> String {
    let entries = selectors.shown(selector);
    if selector == Selector::Commands || entries.is_empty() {
        return selector.key().to_owned();
    }
    format!("{} ({})", selector.key(), few(&entries).shown())
}

/// The first of some entries.
fn few(entries: &[String]) -> String {
    const MOST: usize = 3;
    let more = if entries.len() > MOST { ", …" } else { "" };
    entries[..entries.len().min(MOST)].join(", ") + more
}
