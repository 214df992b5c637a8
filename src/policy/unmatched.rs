//! What happens to a launch that no rule matches.

use super::choice::Choice;

/// What happens when no rule matches.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unmatched {
    /// The program starts.
    #[default]
    Run,
    /// It is refused.
    Refuse,
}

impl Choice for Unmatched {
    const WORDS: &'static [(&'static str, Self)] = &[("run", Unmatched::Run), ("refuse", Unmatched::Refuse)];
}
