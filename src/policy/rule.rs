//! A rule as it was validated: what it selects, what it does, and what it wants of repositories. It holds nothing that
//! depends on the request; whether it counts is for the evaluator to say.

use super::patience::{Hold, Wait};
use super::place::Place;

/// What a rule that counts does with the launch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    /// It takes what it acquires; the rule of a limit.
    Limit,
    /// It refuses the launch.
    Deny,
    /// It lets the launch start with no slot, or with none of the repositories it names.
    Exempt,
}

/// One `[[rule]]`.
#[derive(Debug)]
pub struct Rule {
    pub(crate) name: String,
    pub(crate) shown: String,
    pub(crate) place: Place,
    pub(crate) action: Action,
    pub(crate) message: Option<String>,
    pub(crate) wait: Option<Wait>,
    pub(crate) hold: Option<Hold>,
}

impl Rule {
    /// The name as the file says it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name to show: with the file's where two files use it.
    pub fn shown_name(&self) -> &str {
        &self.shown
    }

    /// Where it stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What it does.
    pub fn action(&self) -> Action {
        self.action
    }

    /// What its author wants to say to whoever it refuses.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// How long its launches may wait, where it says.
    pub fn wait(&self) -> Option<Wait> {
        self.wait
    }

    /// What keeps its launches' slots, where it says.
    pub fn hold(&self) -> Option<Hold> {
        self.hold
    }
}
