//! Slots of a repository, as the environment of a program names them.

use super::runs::Runs;

/// A repository and its slots.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NamedSlots {
    /// The repository's name.
    pub name: String,
    /// Counted from 1.
    pub slots: Runs,
    /// What they are called, in the same order; nothing where slots have no names.
    pub called: Vec<String>,
}

impl NamedSlots {
    /// A repository's name as one word: where two files use one name, it is shown with the file's, behind a
    /// blank.
    pub fn word(name: &str) -> String {
        name.replace(' ', "_")
    }
}
