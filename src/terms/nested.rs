//! What a launch below a holder of the same repository does.

use super::choice::Choice;

/// A key of repositories.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Nested {
    /// It uses the ancestor's slot, if that was taken for the same command and nobody else uses it.
    #[default]
    Join,
    /// It takes a slot of its own.
    Take,
}

impl Choice for Nested {
    const WORDS: &'static [(&'static str, Self)] = &[("join", Nested::Join), ("take", Nested::Take)];
}
