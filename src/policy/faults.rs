//! Everything that is wrong with a policy, at once. Whoever holds this has no policy: nothing was applied.

use std::{error::Error, fmt};

use crate::diagnostic::Diagnostic;

/// All faults of all files, sorted by file and place; never none.
#[derive(Clone, Debug)]
pub struct Faults {
    diagnostics: Vec<Diagnostic>,
    are_delegated: bool,
}

impl Faults {
    pub(super) fn new(diagnostics: Vec<Diagnostic>) -> Self {
        Faults { diagnostics, are_delegated: false }
    }

    /// The same, with whose they are.
    pub(super) fn of_delegated(self, is_delegated: impl Fn(&Diagnostic) -> bool) -> Self {
        Faults { are_delegated: self.iter().all(is_delegated), ..self }
    }

    /// Whether only delegated files have them: then they are not for everybody.
    pub fn are_delegated(&self) -> bool {
        self.are_delegated
    }

    /// One after the other.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.diagnostics.iter()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.diagnostics.len()
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Faults {
    /// All of them in full, with an empty line between two.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.diagnostics.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{diagnostic}")?;
        }
        Ok(())
    }
}

impl Error for Faults {}
