//! The repositories and aliases of all files, by name.

use super::LayerFile;
use crate::policy::{
    aliases::{Aliases, Definition, Definitions, Meaning},
    fault::Fault,
    findings::Findings,
    layer::{Layer, LayerKind},
    names::Names,
    place::{At, Written},
    repository::Repository,
    warning::Warning,
    written::WrittenRepository,
};

pub(super) struct SymbolTable<'w> {
    pub(super) layers: &'w [Layer],
    pub(super) files: &'w [LayerFile<'w>],
    pub(super) findings: &'w Findings,
    pub(super) aliases: Aliases<'w>,
    repositories: Definitions<'w>,
}

impl<'w> SymbolTable<'w> {
    pub(super) fn new(
        layers: &'w [Layer],
        files: &'w [LayerFile<'w>],
        layer_of_file: &'w [usize],
        findings: &'w Findings,
        checking: Option<&'w dyn Names>,
    ) -> Self {
        let mut repositories = Definitions::new(layer_of_file);
        for repository in files.iter().flat_map(|file| &file.written.repositories) {
            repositories.add(repository.name);
        }
        let aliases = files.iter().flat_map(|file| &file.written.aliases);
        let mut aliases = Aliases::new(aliases, layer_of_file, findings, checking);
        let is_private = |file: usize| layers[layer_of_file[file]].kind == LayerKind::Delegated;
        if layers.iter().any(|layer| layer.kind == LayerKind::Delegated) {
            repositories.keep_private(is_private);
            aliases.keep_private(is_private);
        }
        for delegation in files.iter().flat_map(|file| &file.written.delegations) {
            delegation.lists().for_each(|list| aliases.mark_used(&list.entries));
        }
        SymbolTable { layers, files, findings, aliases, repositories }
    }

    /// The repository that a name means in a file; reports when it means none, or several.
    pub(super) fn repository(&self, name: Written<&str>) -> Option<usize> {
        self.definition(name).map(Definition::mark_used)
    }

    /// The definition of the repository with this index.
    pub(super) fn written_repository(&self, index: usize) -> Option<&'w WrittenRepository<'w>> {
        self.files.iter().flat_map(|file| &file.written.repositories).nth(index)
    }

    /// The same, for code that names a repository without using it.
    pub(super) fn mentioned(&self, name: Written<&str>) -> Option<usize> {
        self.definition(name).map(|definition| definition.index)
    }

    fn definition(&self, name: Written<&str>) -> Option<&Definition> {
        let owned = name.value.to_owned();
        let fault = match self.repositories.meaning(name.value, name.at.file) {
            Meaning::One(definition) => return Some(definition),
            Meaning::Several(first) => Fault::AmbiguousRepository { name: owned, first: first.at },
            Meaning::Nothing(nearest) => Fault::UnknownRepository { name: owned, nearest },
        };
        self.findings.fault(name.at, fault);
        None
    }

    /// Whether a delegated file, of this layer, would speak of a repository that is not its own.
    pub(super) fn is_of_others(&self, layer: usize, repository: &Repository) -> bool {
        self.layers[layer].kind == LayerKind::Delegated && repository.layer != layer
    }

    /// Warns, if the policy is checked.
    pub(super) fn warn(&self, at: At, warning: impl FnOnce() -> Warning) {
        self.aliases.warn(at, warning);
    }

    /// Warns of what is defined and never named.
    pub(super) fn report_unused(&self) {
        for (at, name) in self.repositories.unused() {
            self.warn(at, || Warning::UnusedRepository { name: name.to_owned() });
        }
        for (at, name) in self.aliases.unused() {
            self.warn(at, || Warning::UnusedAlias { name: name.to_owned() });
        }
    }
}
