//! The policy: from the text of its files to rules and repositories that hold together. Three stages, each with its own
//! types: as written (with spans), validated (here), decided ([`crate::decision`]). Nothing takes a written one once it
//! is validated, and nothing of a policy with a fault is ever applied.

mod faults;
mod limit;
mod names;
mod patience;
mod place;
mod repository;
mod rule;
mod source;

pub use faults::Faults;
pub use limit::{HIGHEST_LIMIT, Limit};
pub use names::{LookupError, Names};
pub use patience::{Hold, Wait};
pub use place::Place;
pub use repository::{Nested, Pace, Repository};
pub use rule::{Action, Rule};
pub use source::Sources;

use std::ffi::OsStr;
use std::path::Path;

/// The whole of the policy files, validated.
#[derive(Debug, Default)]
pub struct Policy {
    rules: Vec<Rule>,
    repositories: Vec<Repository>,
}

impl Policy {
    /// Reads and validates every file. Where there is none the policy is empty.
    pub fn load(_sources: &Sources) -> Result<Policy, Faults> {
        Ok(Policy::default())
    }

    /// Whether no file says anything.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.repositories.is_empty()
    }

    /// Every rule, in the order of the files.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Every repository, in the order of the files.
    pub fn repositories(&self) -> &[Repository] {
        &self.repositories
    }

    /// The program that `[command.NAME] exec` names for a command.
    pub fn executable(&self, _command: &OsStr) -> Option<&Path> {
        None
    }

    /// Whether a file of the policy came, went or changed since it was read.
    pub fn is_stale(&self) -> bool {
        false
    }
}
