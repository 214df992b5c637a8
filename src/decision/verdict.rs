//! The outcome of a policy and a request. It is data with terms, never a boolean: the launcher obeys it and has never
//! seen a policy.

use std::time::Duration;

use super::claim::Demand;
use super::trace::TraceEntry;
use crate::policy::{Hold, LookupError, Rule, Wait};

/// What is to be done, and what became of every rule.
#[derive(Debug)]
#[must_use]
pub struct Decision<'p> {
    /// What is to be done.
    pub verdict: Verdict<'p>,
    /// Every rule, in the order of the files.
    pub trace: Vec<TraceEntry<'p>>,
}

/// What is to be done.
#[derive(Debug)]
pub enum Verdict<'p> {
    /// Start, once everything that is demanded was had.
    Start(Terms<'p>),
    /// A `deny` rule refuses.
    Denied {
        /// The rule.
        rule: &'p Rule,
        /// What of the request it matches, for people: `your group "contractors"`.
        matches: String,
    },
    /// No rule matches, and the policy refuses what it does not name.
    Unmatched,
    /// A look-up failed, so nobody knows what applies.
    LookupFailed {
        /// The rule that needed it.
        rule: &'p Rule,
        /// The call and what the system said.
        failure: LookupError,
    },
}

/// The terms of a start.
#[derive(Debug)]
pub struct Terms<'p> {
    /// What must be had; empty where nothing is limited.
    pub demands: Vec<Demand<'p>>,
    /// The rule that exempts from everything, where there is one.
    pub exempt: Option<&'p Rule>,
    /// How long it may wait.
    pub wait: Setting<Wait>,
    /// What keeps its slots.
    pub hold: Setting<Hold>,
    /// Rules that would have refused, had they been enforced.
    pub would_refuse: Vec<&'p Rule>,
}

/// What the policy says about a wait or a hold: the command line may replace the default, and only tighten what was
/// said.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Setting<T> {
    /// The strictest that a rule or a repository says.
    pub said: Option<T>,
    /// What the defaults say where rules and repositories are silent.
    pub default: Option<T>,
}

impl<T> Default for Setting<T> {
    fn default() -> Self {
        Setting { said: None, default: None }
    }
}

impl Setting<Wait> {
    /// The wait that counts, where the command line asks for `asked`. Without a word from anybody there is none.
    pub fn resolve(self, asked: Option<Wait>) -> Wait {
        let open = asked.or(self.default);
        self.said.into_iter().chain(open).min().unwrap_or(Wait::For(Duration::ZERO))
    }
}

impl Setting<Hold> {
    /// The hold that counts, where the command line asks for `asked`.
    pub fn resolve(self, asked: Option<Hold>) -> Hold {
        let open = asked.or(self.default);
        self.said.into_iter().chain(open).max().unwrap_or_default()
    }
}
