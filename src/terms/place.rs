//! A place in a policy file. It keeps the text alive and counts the line only when somebody wants to read it,
//! which a launch that starts never does.

use std::{fmt, path::Path, sync::Arc};

use crate::{diagnostic::SourceText, escape::Show};

/// Shown as `path:line`.
#[derive(Clone, Debug)]
pub struct Place {
    source: Arc<SourceText>,
    offset: usize,
}

impl Place {
    pub(crate) fn new(source: &Arc<SourceText>, offset: usize) -> Self {
        Place { source: Arc::clone(source), offset }
    }
    /// The file.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// The line, counted from 1.
    pub fn line(&self) -> usize {
        self.source.line_column(self.offset).0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path().shown(), self.line())
    }
}
