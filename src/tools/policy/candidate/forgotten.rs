//! Holders of slots that a new policy would not count: those of a repository that gets another keeper or
//! another lock file.

use std::{fmt::Write as _, path::Path};

use crate::{
    launch::situation::Situation,
    policy::Policy,
    text::escape::{Show, visible},
    tools::shared::{
        listed_file::ListedFile,
        repositories::{RepositoryFiles, wanted},
    },
};

/// A line for each place in which slots are held that would not be counted.
pub(super) fn describe(old: &Policy, new: &Policy, situation: &Situation) -> String {
    let before = wanted(old, situation, &[]).unwrap_or_default();
    let after = wanted(new, situation, &[]).unwrap_or_default();
    let is_counted = |file: &ListedFile| {
        after.iter().flat_map(|repository| &repository.files).any(|known| place(known) == place(file))
    };
    let stays = |repository: &&RepositoryFiles| after.iter().any(|known| known.name == repository.name);
    let mut text = String::new();
    for file in before.iter().filter(stays).flat_map(|repository| &repository.files) {
        let used = file.survey().map_or(0, |survey| survey.used);
        if used > 0 && !is_counted(file) {
            let (slots, are) = if used == 1 { ("slot", "is") } else { ("slots", "are") };
            let place = file.path().map_or_else(|| "the agent".to_owned(), |path| path.shown().to_string());
            let title = visible(file.title());
            let _ =
                writeln!(text, "{used} {slots} of {title} {are} held in {place}, and would not be counted.");
        }
    }
    if !text.is_empty() {
        text.push_str("Until these programs end, more can run than the limit allows.\n");
    }
    text
}

/// Where the slots are, as listings tell places apart.
fn place(file: &ListedFile) -> (Option<&Path>, Option<&str>) {
    (file.path(), file.table())
}
