//! What keeps a slot taken. The holds have an order, because several rules and repositories may speak about
//! one launch, and of those that do the strongest counts.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::choice::Choice;

/// From the weakest to the strongest.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hold {
    /// The program itself: free again when it ends or closes the descriptor. No child keeps it.
    #[default]
    Process,
    /// Every process that inherited the descriptor.
    Descriptor,
    /// A parent that waits for the command and then gives the slot back.
    Supervisor,
    /// The same, until all descendants have ended.
    Tree,
}

impl Choice for Hold {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("process", Hold::Process),
        ("descriptor", Hold::Descriptor),
        ("supervisor", Hold::Supervisor),
        ("tree", Hold::Tree),
    ];
}

impl Hold {
    /// Reads the word of a policy or of the command line.
    pub fn parse(word: &str) -> Option<Hold> {
        Hold::of(word)
    }

    /// As policies and listings write it.
    pub fn name(self) -> &'static str {
        self.word()
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
