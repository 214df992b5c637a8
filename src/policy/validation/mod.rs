//! From files as they were written to a policy that holds together. It reports every fault it finds and goes
//! on with a harmless stand-in, so that the policy it gives is only one when nothing was reported.

mod advice;
mod captures;
mod claims;
mod delegations;
mod layers;
mod reading;
mod repositories;
mod rules;
mod scenarios;
mod skimmed;
mod symbol_table;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(super) use self::delegations::delegations_of;
use self::symbol_table::SymbolTable;
use super::{
    Policy,
    fault::Fault,
    findings::Findings,
    layer::LayerKind,
    names::Names,
    place::{At, Place, Written},
    rule::Rule,
    shared_names::SharedNames,
    skim::{Extract, KeptRules},
    written::{WrittenFile, WrittenRule},
};
use crate::text::diagnostic::SourceText;

/// A file that is being validated.
pub(super) struct LayerFile<'a> {
    pub(super) source: Arc<SourceText>,
    /// The index of its layer.
    pub(super) layer: usize,
    pub(super) written: WrittenFile<'a>,
    /// What is known of rules that were left out, and where those that were kept stood.
    pub(super) kept: Option<&'a KeptRules<'a>>,
    pub(super) head: Option<&'a Extract>,
}

impl LayerFile<'_> {
    /// The number in the file, counted from 0, of each rule that was read.
    fn rule_numbers(&self) -> Vec<usize> {
        self.kept.map_or_else(|| (0..self.written.rules.len()).collect(), |kept| kept.numbers().collect())
    }

    /// The place of a rule, for as long as the policy is there.
    fn place_of_rule(&self, at: At) -> Place {
        let offset = self.kept.map_or(at.start, |kept| kept.extract.in_whole(at.start));
        Place::new(&self.source, offset)
    }

    /// The place of anything else.
    fn place(&self, at: At) -> Place {
        Place::new(&self.source, self.head.map_or(at.start, |head| head.in_whole(at.start)))
    }

    /// Whether a rule that was left out is called so.
    fn omits(&self, name: &str) -> bool {
        self.kept.is_some_and(|kept| kept.omits(name))
    }
}

/// Validates the files of all layers, in the order in which they count.
pub(super) fn validate(
    kinds: &[LayerKind],
    caller_is_root: bool,
    files: &[LayerFile<'_>],
    findings: &Findings,
    checking: Option<&dyn Names>,
) -> Policy {
    let layer_of_file: Vec<usize> = files.iter().map(|file| file.layer).collect();
    let delegations = delegations::validate(kinds, files, &layer_of_file, findings, checking);
    let layers = layers::validate(kinds, caller_is_root, files, findings, &delegations);
    let book = SymbolTable::new(&layers, files, &layer_of_file, findings, checking);
    let mut repositories = repositories::validate(&book);
    let mut rules = rules::validate(&book, &repositories);
    let executables = executables(&book);
    skimmed::check(&book, &rules, &repositories);
    book.report_unused();
    // With one file there is no namesake, and nothing to look for.
    let elsewhere =
        |name: &str, path: &Path| files.iter().any(|file| file.source.path() != path && file.omits(name));
    let shared = if files.len() < 2 {
        SharedNames::default()
    } else {
        SharedNames::of(&rules, &repositories, elsewhere)
    };
    let paths: Vec<PathBuf> = files.iter().map(|file| file.source.path().to_owned()).collect();
    shared.show(&mut rules, &mut repositories, &paths);
    let sequence = sequence(&rules);
    if checking.is_some() {
        let places: Vec<At> =
            files.iter().flat_map(|file| &file.written.rules).map(WrittenRule::place).collect();
        for (at, warning) in advice::advise(&layers, &rules, &places, &sequence, &repositories) {
            findings.warning(at, warning);
        }
    }
    let scenarios = scenarios::validate(&book, &rules, &repositories);
    Policy { layers, rules, repositories, executables, sequence, scenarios, delegations, ..Policy::default() }
}

/// The programs behind commands. One of a later layer replaces one of an earlier where it may loosen.
fn executables(book: &SymbolTable<'_>) -> HashMap<String, (usize, PathBuf)> {
    let mut found: HashMap<&str, (usize, Written<&str>)> = HashMap::new();
    for file in book.files {
        for command in &file.written.commands {
            let Some(exec) = command.exec else { continue };
            if !exec.value.starts_with('/') {
                book.findings.fault(exec.at, Fault::RelativePath { key: "exec" });
            }
            if let Some((layer, first)) = found.get(command.name.value) {
                if *layer == file.layer {
                    let fault =
                        Fault::DuplicateCommand { name: command.name.value.to_owned(), first: first.at };
                    book.findings.fault(command.name.at, fault);
                } else if !book.layers[file.layer].may_loosen {
                    let fault = Fault::Loosens { what: "another program for this command" };
                    book.findings.fault(command.name.at, fault);
                }
            }
            found.insert(command.name.value, (file.layer, exec));
        }
    }
    found.into_iter().map(|(name, (layer, exec))| (name.to_owned(), (layer, exec.value.into()))).collect()
}

/// The order in which rules are judged: within a family the lowest `order` first, otherwise as written.
fn sequence(rules: &[Rule]) -> Vec<usize> {
    let mut sequence: Vec<usize> = (0..rules.len()).collect();
    if rules.iter().any(|rule| rule.order != 0) {
        sequence.sort_by_key(|&index| rules[index].order);
    }
    sequence
}
