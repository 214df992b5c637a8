//! Where something stands in a policy file. Only a byte offset is kept: the line is counted when somebody wants to read
//! it, which a launch that starts never does.

use std::fmt::{Display, Formatter};
use std::path::Path;
use std::sync::Arc;

use crate::diagnostic::SourceText;

/// A place in a policy file, shown as `path:line`.
#[derive(Clone, Debug)]
pub struct Place {
    source: Arc<SourceText>,
    offset: usize,
}

impl Place {
    /// A place at a byte offset.
    pub fn new(source: Arc<SourceText>, offset: usize) -> Self {
        Place { source, offset }
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

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.source.shown_path(), self.line())
    }
}
