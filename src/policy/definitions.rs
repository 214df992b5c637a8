//! What a name means where it stands: what its own file defines, else what one other file of its layer does,
//! else what an earlier layer does.

use std::{cell::Cell, collections::HashMap};

use super::{
    place::{At, Written},
    spelling::nearest,
};

/// Where each name of one kind is defined: the repositories of all files, or their aliases.
pub(super) struct Definitions<'w> {
    /// The layer of each file.
    layers: &'w [usize],
    names: HashMap<&'w str, Vec<Definition>>,
    count: usize,
}

pub(super) struct Definition {
    /// Which of them it is, counted over all files.
    pub(super) index: usize,
    pub(super) at: At,
    used: Cell<bool>,
    /// Whether it means something in its own file alone.
    is_private: bool,
}

pub(super) enum Meaning<'d> {
    /// The nearest name that there is.
    Nothing(Option<String>),
    One(&'d Definition),
    /// The first of several.
    Several(&'d Definition),
}

impl<'w> Definitions<'w> {
    pub(super) fn new(layers: &'w [usize]) -> Self {
        Definitions { layers, names: HashMap::new(), count: 0 }
    }

    pub(super) fn add(&mut self, name: Written<&'w str>) {
        let definition =
            Definition { index: self.count, at: name.at, used: Cell::new(false), is_private: false };
        self.names.entry(name.value).or_default().push(definition);
        self.count += 1;
    }

    /// Keeps to their own files what these define.
    pub(super) fn keep_private(&mut self, is_private: impl Fn(usize) -> bool) {
        for definition in self.names.values_mut().flatten() {
            definition.is_private = is_private(definition.at.file);
        }
    }

    /// What a name means in a file.
    pub(super) fn meaning(&self, name: &str, file: usize) -> Meaning<'_> {
        let definitions = self.names.get(name).map_or(&[][..], Vec::as_slice);
        if let Some(own) = definitions.iter().find(|definition| definition.at.file == file) {
            return Meaning::One(own);
        }
        for layer in (0..=self.layers[file]).rev() {
            let is_here = |known: &&Definition| !known.is_private && self.layers[known.at.file] == layer;
            let mut here = definitions.iter().filter(is_here);
            match (here.next(), here.next()) {
                (None, _) => {}
                (Some(only), None) => return Meaning::One(only),
                (Some(first), Some(_)) => return Meaning::Several(first),
            }
        }
        let is_seen = |known: &Definition| !known.is_private || known.at.file == file;
        let seen = self.names.iter().filter(|(_, known)| known.iter().any(is_seen));
        Meaning::Nothing(nearest(name, seen.map(|(name, _)| *name)))
    }

    /// What is defined and never used.
    pub(super) fn unused(&self) -> impl Iterator<Item = (At, &'w str)> {
        let all = self.names.iter().flat_map(|(name, all)| all.iter().map(move |one| (one, *name)));
        all.filter(|(definition, _)| !definition.used.get()).map(|(definition, name)| (definition.at, name))
    }
}

impl Definition {
    pub(super) fn is_used(&self) -> bool {
        self.used.get()
    }

    pub(super) fn mark_used(&self) -> usize {
        self.used.set(true);
        self.index
    }
}
