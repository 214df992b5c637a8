//! Everything that is wrong with a policy, at once. Whoever holds this has no policy: nothing was applied.

use std::error::Error;
use std::fmt::{Display, Formatter};

use crate::diagnostic::Diagnostic;

/// All faults of all files, sorted by place.
#[derive(Debug)]
pub struct Faults {
    diagnostics: Vec<Diagnostic>,
}

impl Faults {
    /// One after the other, sorted by file and place.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.diagnostics.iter()
    }

    /// How many there are; never none.
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

impl Display for Faults {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for diagnostic in &self.diagnostics {
            writeln!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl Error for Faults {}
