//! The outcome of a policy and a request. It is data with terms, never a boolean: the launcher obeys it and
//! has never seen a policy.

use std::{ffi::OsString, fmt};

use super::trace::TraceEntry;
use crate::{
    escape::Show,
    policy::Rule,
    terms::{claim::Demand, hold::Hold, names::LookupError, setting::Setting, slots::Slots},
};

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
    Start(Start<'p>),
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

/// A start, and what it depends on.
#[derive(Debug)]
pub struct Start<'p> {
    /// What must be had, in the order of the rules; empty where nothing is limited.
    pub demands: Vec<Demand<'p>>,
    /// The rule that exempts the launch from everything, where there is one.
    pub exempt: Option<&'p Rule>,
    /// What keeps its slots.
    pub hold: Setting<Hold>,
    /// What would have refused the launch, had it been enforced.
    pub would_refuse: Vec<Unenforced<'p>>,
    /// Where the command line should name a number of slots, and names none.
    pub unclear: Vec<Unclear>,
}

/// An argument that should stand before a number of slots (`slots_from`), and does not.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unclear {
    /// The argument.
    pub after: String,
    /// What follows it, if anything does.
    pub text: Option<OsString>,
    /// The repository.
    pub repository: String,
    /// How many slots are wanted of it all the same.
    pub slots: Slots,
}

impl fmt::Display for Unclear {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { after, text, repository, slots } = self;
        let after = after.shown();
        match text {
            Some(text) => write!(formatter, "\"{after} {}\" names no number of slots", text.shown())?,
            None => write!(formatter, "no number of slots follows \"{after}\"")?,
        }
        let taken = match slots {
            Slots::Number(1) => "1 slot".to_owned(),
            Slots::Number(number) => format!("{number} slots"),
            Slots::All => "all slots".to_owned(),
        };
        write!(formatter, ": it takes {taken} of {}", repository.shown())
    }
}

/// A refusal that is not enforced.
#[derive(Clone, Debug)]
pub enum Unenforced<'p> {
    /// By a `deny` rule.
    Denied(&'p Rule),
    /// Because no rule matches.
    Unmatched,
}
