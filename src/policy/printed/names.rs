//! What repositories are called in what is printed.

use std::collections::HashSet;

use crate::policy::{Policy, repository::Repository};

/// The names of repositories, unique within a layer: those that two files share are told apart by a number.
pub(super) struct RepositoryNames(Vec<String>);

impl RepositoryNames {
    pub(super) fn new(policy: &Policy) -> Self {
        let mut taken = HashSet::new();
        let unique = |repository: &Repository| {
            let numbered = (2..).map(|number| format!("{}-{number}", repository.name));
            let mut candidates = std::iter::once(repository.name.clone()).chain(numbered);
            let free = |name: &String| taken.insert((repository.layer, name.clone()));
            candidates.find(free).unwrap_or_default()
        };
        RepositoryNames(policy.repositories.iter().map(unique).collect())
    }

    /// The name of a repository, by its index.
    pub(super) fn of(&self, repository: usize) -> &str {
        &self.0[repository]
    }
}
