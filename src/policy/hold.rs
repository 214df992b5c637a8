//! What keeps a slot taken. The holds have an order, because several rules and repositories may speak about one launch,
//! and of those that do the strongest counts.

use std::fmt;

use super::choice::Choice;

/// What keeps a slot taken, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Hold {
    /// The program itself, by a lock that its children never keep.
    #[default]
    Process,
    /// Every process that inherited the descriptor.
    Descriptor,
    /// A parent that waits for the command and then unlocks.
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
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
