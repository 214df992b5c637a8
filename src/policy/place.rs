//! Where something stands in a policy file. While a policy is read a place is a few numbers ([`At`]); what is left of
//! it afterwards ([`Place`]) keeps the text alive and counts the line only when somebody wants to read it, which a
//! launch that starts never does.

use std::{fmt, ops::Range, path::Path, sync::Arc};

use crate::diagnostic::{Label, SourceText};

/// A part of one of the files that are being read.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct At {
    /// The index of the file, in the order in which they count.
    pub(super) file: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl At {
    pub(super) fn new(file: usize, span: Range<usize>) -> Self {
        At { file, start: span.start, end: span.end }
    }

    /// A file as a whole.
    pub(super) fn whole(file: usize) -> Self {
        At { file, start: 0, end: 0 }
    }

    pub(super) fn label(self, source: &Arc<SourceText>, note: &'static str) -> Label {
        Label { source: Arc::clone(source), span: self.start..self.end, note }
    }
}

/// A value and where it was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<T> {
    pub(super) value: T,
    pub(super) at: At,
}

/// A place in a policy file, shown as `path:line`.
#[derive(Clone, Debug)]
pub struct Place {
    source: Arc<SourceText>,
    offset: usize,
}

impl Place {
    pub(super) fn new(source: &Arc<SourceText>, offset: usize) -> Self {
        Place { source: Arc::clone(source), offset }
    }

    /// Whether it is in this very text.
    pub(super) fn is_in(&self, source: &Arc<SourceText>) -> bool {
        Arc::ptr_eq(&self.source, source)
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
        write!(f, "{}:{}", self.source.shown_path(), self.line())
    }
}
