//! Who keeps the slots of a repository.

use super::choice::Choice;

/// A key of repositories, with its default for all of them.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Keeper {
    /// A lock file.
    #[default]
    File,
    /// The agent of this host.
    Agent,
    /// The agents of all hosts together.
    Site,
}

impl Choice for Keeper {
    const WORDS: &'static [(&'static str, Self)] =
        &[("file", Keeper::File), ("agent", Keeper::Agent), ("site", Keeper::Site)];
}
