//! A rule during validation.

use std::cell::RefCell;

use super::{LayerFile, captures::Missing, symbol_table::SymbolTable};
use crate::policy::{
    fault::Fault,
    place::{At, Written},
    repository::Repository,
    written::WrittenRule,
};

/// A rule that is being read, and where.
pub(super) struct Reading<'b, 'w> {
    pub(super) book: &'b SymbolTable<'w>,
    pub(super) repositories: &'b [Repository],
    pub(super) written: &'b WrittenRule<'w>,
    pub(super) file: &'b LayerFile<'w>,
    pub(super) missing: &'b RefCell<Missing<'w>>,
}

impl Reading<'_, '_> {
    pub(super) fn fault(&self, at: At, fault: Fault) {
        self.book.findings.fault(at, fault);
    }
}

/// The value, without its place.
pub(super) fn value<T>(written: Option<Written<T>>) -> Option<T> {
    written.map(|written| written.value)
}
