//! Names that several files use, and the names of such rules and repositories in messages.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use super::{repository::Repository, rule::Rule};

/// The names that more than one file uses.
#[derive(Default)]
pub(super) struct SharedNames {
    rules: Vec<String>,
    repositories: Vec<String>,
}

impl SharedNames {
    /// The names that these share; `elsewhere` tells whether a rule that is not among them has the name in
    /// another file.
    pub(super) fn of(
        rules: &[Rule],
        repositories: &[Repository],
        elsewhere: impl Fn(&str, &Path) -> bool,
    ) -> Self {
        let in_files = || rules.iter().map(|rule| (rule.name.as_str(), rule.place.path()));
        let others = in_files().filter(|(name, path)| elsewhere(name, path)).map(|(name, _)| name.to_owned());
        SharedNames {
            rules: shared(in_files()).into_iter().chain(others).collect(),
            repositories: shared(
                repositories.iter().map(|repository| (repository.name.as_str(), repository.place.path())),
            ),
        }
    }

    /// Sets the shown names of rules and repositories: with the file's name if they are shared.
    pub(super) fn show(&self, rules: &mut [Rule], repositories: &mut [Repository], files: &[PathBuf]) {
        for rule in rules {
            rule.shown_name = shown(&rule.name, rule.place.path(), &self.rules, files);
        }
        for repository in repositories {
            repository.shown_name =
                shown(&repository.name, repository.place.path(), &self.repositories, files);
        }
    }
}

fn shared<'a>(names: impl Iterator<Item = (&'a str, &'a Path)>) -> Vec<String> {
    let mut files: HashMap<&str, &Path> = HashMap::new();
    let in_another_file = |(name, path): &(&'a str, &'a Path)| *files.entry(*name).or_insert(*path) != *path;
    let mut shared: Vec<String> = names.filter(in_another_file).map(|(name, _)| name.to_owned()).collect();
    shared.sort_unstable();
    shared.dedup();
    shared
}

fn shown(name: &str, path: &Path, shared: &[String], files: &[PathBuf]) -> String {
    if !shared.iter().any(|known| known == name) {
        return name.to_owned();
    }
    let namesakes = files.iter().filter(|file| file.file_name() == path.file_name()).count();
    let file = path.file_name().filter(|_| namesakes == 1).unwrap_or(path.as_os_str());
    format!("{name} ({})", file.to_string_lossy())
}
