//! Who is called what: the names of repositories and aliases in all files, and what a name means where it stands. A name
//! means what its own file defines, else what one other file of its layer does, else what an earlier layer does.

use std::{cell::Cell, collections::HashMap};

use super::LayerFile;
use crate::policy::{
    fault::Fault,
    findings::Findings,
    layer::Layer,
    names::Names,
    place::{At, Written},
    spelling::nearest,
    warning::Warning,
    written::{Entry, WrittenList},
};

pub(super) struct Book<'w> {
    pub(super) layers: &'w [Layer],
    pub(super) files: &'w [LayerFile<'w>],
    pub(super) findings: &'w Findings,
    /// Whom to ask who exists, where the policy is checked and not only used.
    pub(super) checking: Option<&'w dyn Names>,
    repositories: HashMap<&'w str, Vec<Definition>>,
    aliases: HashMap<&'w str, Vec<Definition>>,
    alias_lists: Vec<&'w WrittenList<'w>>,
}

struct Definition {
    file: usize,
    layer: usize,
    /// Which repository or alias it is, counted over all files.
    index: usize,
    at: At,
    used: Cell<bool>,
}

enum Meaning<'d> {
    Nothing,
    One(&'d Definition),
    Several(&'d Definition),
}

impl<'w> Book<'w> {
    pub(super) fn new(
        layers: &'w [Layer],
        files: &'w [LayerFile<'w>],
        findings: &'w Findings,
        checking: Option<&'w dyn Names>,
    ) -> Self {
        let mut book = Book {
            layers,
            files,
            findings,
            checking,
            repositories: HashMap::new(),
            aliases: HashMap::new(),
            alias_lists: Vec::new(),
        };
        let mut repositories = 0;
        for (number, file) in files.iter().enumerate() {
            let define = |name: &Written<&'w str>, index| Definition {
                file: number,
                layer: file.layer,
                index,
                at: name.at,
                used: Cell::new(false),
            };
            for repository in &file.written.repositories {
                let name = &repository.name;
                book.repositories.entry(name.value).or_default().push(define(name, repositories));
                repositories += 1;
            }
            for (name, list) in &file.written.aliases {
                let index = book.alias_lists.len();
                book.aliases.entry(name.value).or_default().push(define(name, index));
                book.alias_lists.push(list);
            }
        }
        book
    }

    /// The repository that a name means in a file; reports when it means none, or several.
    pub(super) fn repository(&self, name: Written<&str>) -> Option<usize> {
        let definition = self.definition(name)?;
        definition.used.set(true);
        Some(definition.index)
    }

    /// The same, for whoever speaks of a repository without using it.
    pub(super) fn mentioned(&self, name: Written<&str>) -> Option<usize> {
        self.definition(name).map(|definition| definition.index)
    }

    fn definition(&self, name: Written<&str>) -> Option<&Definition> {
        let definitions = self.repositories.get(name.value).map_or(&[][..], Vec::as_slice);
        let name_owned = name.value.to_owned();
        let fault = match self.meaning(definitions, name.at.file) {
            Meaning::One(definition) => return Some(definition),
            Meaning::Several(first) => Fault::AmbiguousRepository { name: name_owned, first: first.at },
            Meaning::Nothing => Fault::UnknownRepository {
                name: name_owned,
                nearest: nearest(name.value, self.repositories.keys().copied()),
            },
        };
        self.findings.fault(name.at, fault);
        None
    }

    /// The entries of a list with its aliases replaced by what they stand for.
    pub(super) fn entries(&self, list: &'w [Entry<'w>]) -> Vec<&'w Entry<'w>> {
        let mut entries = Vec::with_capacity(list.len());
        self.add_entries(list, &mut Vec::new(), &mut entries);
        entries
    }

    fn add_entries(&self, list: &'w [Entry<'w>], within: &mut Vec<usize>, entries: &mut Vec<&'w Entry<'w>>) {
        for entry in list {
            let Some(name) = entry.value.strip_prefix('@') else {
                entries.push(entry);
                continue;
            };
            let definitions = self.aliases.get(name).map_or(&[][..], Vec::as_slice);
            let fault = match self.meaning(definitions, entry.at.file) {
                Meaning::One(definition) if within.contains(&definition.index) => {
                    Fault::AliasLoop { name: name.to_owned() }
                }
                Meaning::One(definition) => {
                    definition.used.set(true);
                    within.push(definition.index);
                    self.add_entries(&self.alias_lists[definition.index].entries, within, entries);
                    within.pop();
                    continue;
                }
                Meaning::Several(first) => Fault::AmbiguousAlias { name: name.to_owned(), first: first.at },
                Meaning::Nothing => Fault::UnknownAlias {
                    name: name.to_owned(),
                    nearest: nearest(name, self.aliases.keys().copied()),
                },
            };
            self.findings.fault(entry.at, fault);
        }
    }

    fn meaning<'d>(&self, definitions: &'d [Definition], file: usize) -> Meaning<'d> {
        if let Some(own) = definitions.iter().find(|definition| definition.file == file) {
            return Meaning::One(own);
        }
        for layer in (0..=self.files[file].layer).rev() {
            let mut here = definitions.iter().filter(|definition| definition.layer == layer);
            match (here.next(), here.next()) {
                (None, _) => {}
                (Some(only), None) => return Meaning::One(only),
                (Some(first), Some(_)) => return Meaning::Several(first),
            }
        }
        Meaning::Nothing
    }

    /// Warns, where the policy is checked.
    pub(super) fn warn(&self, at: At, warning: impl FnOnce() -> Warning) {
        if self.checking.is_some() {
            self.findings.warning(at, warning());
        }
    }

    /// Warns of what is defined and never named.
    pub(super) fn report_unused(&self) {
        let unused = |names: &HashMap<&'w str, Vec<Definition>>, warning: fn(String) -> Warning| {
            for (name, definitions) in names {
                for definition in definitions.iter().filter(|definition| !definition.used.get()) {
                    self.warn(definition.at, || warning((*name).to_owned()));
                }
            }
        };
        unused(&self.repositories, |name| Warning::UnusedRepository { name });
        unused(&self.aliases, |name| Warning::UnusedAlias { name });
    }
}
