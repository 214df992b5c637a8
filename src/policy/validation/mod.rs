//! From files as they were written to a policy that holds together. It reports every fault it finds and goes on with a
//! harmless stand-in, so that the policy it gives is only one when nothing was reported.

mod advice;
mod book;
mod layers;
mod repositories;
mod rules;
mod scenarios;
mod selectors;

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use self::book::Book;
use super::{
    Policy,
    fault::Fault,
    findings::Findings,
    layer::LayerKind,
    names::Names,
    place::{At, Written},
    repository::Repository,
    rule::Rule,
    written::{WrittenFile, WrittenRule},
};
use crate::diagnostic::SourceText;

/// A file that is being validated.
pub(super) struct LayerFile<'a> {
    pub(super) source: Arc<SourceText>,
    /// The index of its layer.
    pub(super) layer: usize,
    pub(super) written: WrittenFile<'a>,
}

/// Validates the files of all layers, in the order in which they count.
pub(super) fn validate(
    kinds: &[LayerKind],
    caller_is_root: bool,
    files: &[LayerFile<'_>],
    findings: &Findings,
    checking: Option<&dyn Names>,
) -> Policy {
    let layers = layers::validate(kinds, caller_is_root, files, findings);
    let book = Book::new(&layers, files, findings, checking);
    let mut repositories = repositories::validate(&book);
    let mut rules = rules::validate(&book, &repositories);
    let executables = executables(&book);
    book.report_unused();
    set_shown_names(files, &mut rules, &mut repositories);
    let sequence = sequence(&rules);
    if checking.is_some() {
        let places: Vec<At> =
            files.iter().flat_map(|file| &file.written.rules).map(WrittenRule::place).collect();
        for (at, warning) in advice::advise(&layers, &rules, &places, &sequence, &repositories) {
            findings.warning(at, warning);
        }
    }
    let scenarios = scenarios::validate(&book, &rules);
    Policy { layers, rules, repositories, executables, sequence, scenarios, ..Policy::default() }
}

/// The programs behind commands. One of a later layer replaces one of an earlier where it may loosen.
fn executables(book: &Book<'_>) -> HashMap<String, (usize, PathBuf)> {
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

/// Gives rules and repositories the names that are shown: where two files use one name, the file's with it.
fn set_shown_names(files: &[LayerFile<'_>], rules: &mut [Rule], repositories: &mut [Repository]) {
    if files.len() < 2 {
        for rule in rules {
            rule.shown_name.clone_from(&rule.name);
        }
        for repository in repositories {
            repository.shown_name.clone_from(&repository.name);
        }
        return;
    }
    let names = shared_names(rules.iter().map(|rule| (rule.name.as_str(), rule.place.path())));
    for rule in rules {
        rule.shown_name = shown_name(&rule.name, rule.place.path(), &names, files);
    }
    let repository_names =
        repositories.iter().map(|repository| (repository.name.as_str(), repository.place.path()));
    let names = shared_names(repository_names);
    for repository in repositories {
        repository.shown_name = shown_name(&repository.name, repository.place.path(), &names, files);
    }
}

/// The names that more than one file uses.
fn shared_names<'a>(names: impl Iterator<Item = (&'a str, &'a Path)>) -> HashSet<String> {
    let mut files: HashMap<&str, &Path> = HashMap::new();
    let in_another_file = |(name, path): &(&'a str, &'a Path)| *files.entry(*name).or_insert(*path) != *path;
    names.filter(in_another_file).map(|(name, _)| name.to_owned()).collect()
}

fn shown_name(name: &str, path: &Path, shared: &HashSet<String>, files: &[LayerFile<'_>]) -> String {
    if !shared.contains(name) {
        return name.to_owned();
    }
    let namesakes = files.iter().filter(|file| file.source.path().file_name() == path.file_name()).count();
    let file = path.file_name().filter(|_| namesakes == 1).unwrap_or(path.as_os_str());
    format!("{name} ({})", file.to_string_lossy())
}
