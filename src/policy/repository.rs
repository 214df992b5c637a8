//! A repository as it was validated: a lock file, or a family of lock files, whose bytes are slots. Which file a launch
//! uses depends on the request and is worked out with the decision.

use std::path::Path;
use std::time::Duration;

use super::place::Place;

/// What a launch below a holder of the same repository does.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Nested {
    /// It uses the ancestor's slot, when that was taken for the same command.
    #[default]
    Join,
    /// It takes a slot of its own.
    Take,
}

/// When a repository may be used again, and how long one may keep it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pace {
    /// Not again within this time.
    pub if_elapsed: Option<Duration>,
    /// Whether `if_elapsed` counts from the last end instead of from the last start.
    pub from_end: bool,
    /// A holder older than this is ended when the next launch wants its slot.
    pub expire_after: Option<Duration>,
    /// The time between the signals that end it.
    pub expire_grace: Option<Duration>,
    /// Whether its whole process group is signalled.
    pub expire_group: bool,
    /// Whether a launch that comes too soon ends silently with success.
    pub silent_too_soon: bool,
}

/// One `[repository.NAME]`.
#[derive(Debug)]
pub struct Repository {
    pub(crate) name: String,
    pub(crate) shown: String,
    pub(crate) place: Place,
    pub(crate) nested: Nested,
    pub(crate) pace: Pace,
}

impl Repository {
    /// The name as the file says it: letters, digits, `.`, `_` and `-`.
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

    /// What a launch below a holder does.
    pub fn nested(&self) -> Nested {
        self.nested
    }

    /// Too soon and too late.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// The file, where it is the same for every launch (a path without placeholders).
    pub fn fixed_path(&self, _runtime: &Path) -> Option<std::path::PathBuf> {
        None
    }
}
