//! Aliases, and lists of entries in which they are replaced by what they stand for.

use std::{cell::RefCell, collections::BTreeSet};

use super::{
    definitions::{Definitions, Meaning},
    entries::{WrittenEntry, WrittenList},
    fault::Fault,
    findings::Findings,
    names::Names,
    place::{At, Written},
    warning::Warning,
};

/// The aliases of all files, who must be told of entries that mean nothing, and what entries capture.
pub(super) struct Aliases<'w> {
    pub(super) findings: &'w Findings,
    /// Whom to ask who exists, where the policy is checked and not only used.
    pub(super) checking: Option<&'w dyn Names>,
    /// What the selectors that were read last capture, until somebody takes it.
    pub(super) captures: RefCell<Vec<Written<String>>>,
    names: Definitions<'w>,
    lists: Vec<&'w WrittenList<'w>>,
    /// Of each loop that was told, the alias that stands first.
    loops: RefCell<BTreeSet<usize>>,
}

impl<'w> Aliases<'w> {
    pub(super) fn new(
        written: impl Iterator<Item = &'w (Written<&'w str>, WrittenList<'w>)>,
        layers: &'w [usize],
        findings: &'w Findings,
        checking: Option<&'w dyn Names>,
    ) -> Self {
        let mut aliases = Aliases {
            findings,
            checking,
            captures: RefCell::default(),
            names: Definitions::new(layers),
            lists: Vec::new(),
            loops: RefCell::default(),
        };
        for (name, list) in written {
            aliases.names.add(*name);
            aliases.lists.push(list);
        }
        aliases
    }

    /// Keeps to their own files what these define.
    pub(super) fn keep_private(&mut self, is_private: impl Fn(usize) -> bool) {
        self.names.keep_private(is_private);
    }

    /// Notes that the aliases of a list are used, by somebody who has looked at them elsewhere.
    pub(super) fn mark_used(&self, list: &[WrittenEntry<'_>]) {
        for entry in list {
            let name = entry.value.strip_prefix('@');
            if let Some(Meaning::One(alias)) = name.map(|name| self.names.meaning(name, entry.at.file))
                && !alias.is_used()
            {
                self.mark_used(&self.lists[alias.mark_used()].entries);
            }
        }
    }

    /// The entries of a list with its aliases replaced by what they stand for.
    pub(super) fn entries(&self, list: &'w [WrittenEntry<'w>]) -> Vec<&'w WrittenEntry<'w>> {
        let mut entries = Vec::with_capacity(list.len());
        self.add_entries(list, &mut Vec::new(), &mut entries);
        entries
    }

    fn add_entries(
        &self,
        list: &'w [WrittenEntry<'w>],
        within: &mut Vec<usize>,
        entries: &mut Vec<&'w WrittenEntry<'w>>,
    ) {
        for entry in list {
            let Some(name) = entry.value.strip_prefix('@') else {
                entries.push(entry);
                continue;
            };
            let owned = || name.to_owned();
            let fault = match self.names.meaning(name, entry.at.file) {
                Meaning::One(alias) if within.contains(&alias.index) => {
                    let around = within.iter().skip_while(|index| **index != alias.index);
                    // Whoever enters it elsewhere goes round the same loop.
                    if !self.loops.borrow_mut().insert(around.copied().min().unwrap_or(alias.index)) {
                        continue;
                    }
                    Fault::AliasLoop { name: owned() }
                }
                Meaning::One(alias) => {
                    within.push(alias.mark_used());
                    self.add_entries(&self.lists[alias.index].entries, within, entries);
                    within.pop();
                    continue;
                }
                Meaning::Several(first) => Fault::AmbiguousAlias { name: owned(), first: first.at },
                Meaning::Nothing(nearest) => Fault::UnknownAlias { name: owned(), nearest },
            };
            self.findings.fault(entry.at, fault);
        }
    }

    pub(super) fn unused(&self) -> impl Iterator<Item = (At, &'w str)> {
        self.names.unused()
    }

    /// Warns, where the policy is checked.
    pub(super) fn warn(&self, at: At, warning: impl FnOnce() -> Warning) {
        if self.checking.is_some() {
            self.findings.warning(at, warning());
        }
    }
}
