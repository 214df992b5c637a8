//! What rules capture, checked against the repositories that use it.

use std::collections::HashSet;

use super::symbol_table::SymbolTable;
use crate::policy::{
    fault::Fault, place::Written, repository::Repository, template::Placeholder, written::WrittenClaim,
};

/// The captures of one rule.
pub(super) struct Captures(Vec<Written<String>>);

impl Captures {
    /// The captures of the selectors that were validated last.
    pub(super) fn of_selectors(book: &SymbolTable<'_>) -> Self {
        let noted = book.aliases.captures.take();
        let mut known: Vec<Written<String>> = Vec::with_capacity(noted.len());
        for capture in noted {
            match known.iter().find(|first| first.value == capture.value) {
                Some(first) => {
                    let fault = Fault::CapturedTwice { name: capture.value, first: first.at };
                    book.findings.fault(capture.at, fault);
                }
                None => known.push(capture),
            }
        }
        Captures(known)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A capture that no claim of the rule uses was probably not intended.
    pub(super) fn report_unused<'r>(
        &self,
        claimed: impl Iterator<Item = &'r Repository>,
        book: &SymbolTable<'_>,
    ) {
        if self.is_empty() {
            return;
        }
        let used: HashSet<&str> = claimed.flat_map(by_captures).collect();
        for capture in self.0.iter().filter(|capture| !used.contains(capture.value.as_str())) {
            book.findings.fault(capture.at, Fault::UnusedCapture { name: capture.value.clone() });
        }
    }
}

/// The captures of rules, and claims whose capture is missing.
#[derive(Default)]
pub(super) struct Missing<'w> {
    captured: HashSet<String>,
    claims: Vec<(Written<&'w str>, usize, String)>,
}

impl<'w> Missing<'w> {
    pub(super) fn add(&mut self, captures: &Captures) {
        self.captured.extend(captures.0.iter().map(|capture| capture.value.clone()));
    }

    /// Compares a claim on the repository with this index with the captures of its rule.
    pub(super) fn claim(
        &mut self,
        claim: &WrittenClaim<'w>,
        index: usize,
        repository: &Repository,
        captures: &Captures,
    ) {
        for name in by_captures(repository) {
            if !captures.0.iter().any(|capture| capture.value == name) {
                self.claims.push((claim.repository, index, name.to_owned()));
            }
        }
    }

    /// If no rule captures this name, and it resembles a known placeholder, it is a typing error in the path.
    pub(super) fn report(self, book: &SymbolTable<'_>) {
        let mut slips = HashSet::new();
        for (claim, index, name) in self.claims {
            let nearest = Placeholder::nearest(&name).filter(|_| !self.captured.contains(&name));
            let path = book.written_repository(index).and_then(|written| written.path);
            match (nearest, path) {
                (Some(nearest), Some(path)) => {
                    if slips.insert((index, name.clone())) {
                        let fault = Fault::UnknownPlaceholder { name, nearest: Some(nearest) };
                        book.findings.fault(path.at, fault);
                    }
                }
                _ => {
                    let repository = claim.value.to_owned();
                    book.findings.fault(claim.at, Fault::NotCaptured { repository, name });
                }
            }
        }
    }
}

/// The names of the captures that a repository is by.
pub(super) fn by_captures(repository: &Repository) -> impl Iterator<Item = &str> {
    let all = repository.path.placeholders().chain(repository.sharing.placeholders());
    all.filter_map(|placeholder| match placeholder {
        Placeholder::Captured(name) => Some(name.as_str()),
        _ => None,
    })
}
