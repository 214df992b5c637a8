//! A position in the policy files while they are read, as a few numbers. Afterwards it becomes a
//! [`Place`](crate::judge::terms::provenance::Place).

use std::{ops::Range, sync::Arc};

pub(super) use crate::judge::terms::Place;
use crate::text::{Label, SourceText};

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
