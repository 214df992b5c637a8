//! What becomes of a launch when the keeper of a repository cannot be reached.

use super::choice::Choice;

/// A key of repositories that the agent keeps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unreachable {
    /// It is refused.
    #[default]
    Refuse,
    /// It starts without a slot, and the log says so.
    Start,
}

impl Choice for Unreachable {
    const WORDS: &'static [(&'static str, Self)] =
        &[("refuse", Unreachable::Refuse), ("start", Unreachable::Start)];
}
