//! Every fault and every warning, to the letter: `path:line:col: message [code]`, the line, a caret. Each file
//! `*.cases` beside this one has policies with something wrong, and below each what is shown of it:
//!
//! ```text
//! === what is wrong
//! --- /etc/rungate/policy.toml
//! the text of this file, and then of the next one; below `/home` are those of the caller
//! >>>
//! what is shown
//! ```
//!
//! A control character is written as its picture (`␛`, `␀`, `␍`), and `␄` ends a text that has no newline there.
//! `RUNGATE_SNAPSHOTS=write cargo test --test tests policy::faults` renews what is shown.

mod case;
mod files;
mod pairs;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use rungate::policy::codes;

pub(crate) use case::Case;

use crate::support::snapshot;

/// Each file of cases, in the order of their names.
fn topics() -> Vec<(PathBuf, Vec<Case>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policy/faults");
    let files = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("a file").path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "cases")).collect();
    files.sort();
    let cases = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("cases");
        (path, text.trim_start_matches("=== ").split("\n=== ").map(Case::parse).collect())
    };
    files.into_iter().map(cases).collect()
}

pub(crate) fn cases() -> impl Iterator<Item = Case> {
    topics().into_iter().flat_map(|(_, cases)| cases)
}

#[test]
fn what_is_wrong_is_shown_with_its_place_and_what_to_write_instead() {
    let topics = topics();
    assert!(topics.len() >= 14 && cases().count() >= 208, "{} cases", cases().count());
    let shown = topics.iter().map(|(path, cases)| {
        let cases: Vec<String> = cases.iter().map(|case| case.with(&case.check().0)).collect();
        (path.clone(), cases.join("\n"))
    });
    snapshot::compare(shown);
}

/// Faults that only agent.toml can have: `tests/site/settings.rs` shows them.
const OF_SETTINGS: [&str; 3] = ["too-short", "too-long", "bad-endpoint"];

#[test]
fn every_code_is_shown_by_a_case_and_none_stands_for_two_things() {
    let known: Vec<&str> = codes().collect();
    let unique: HashSet<&str> = known.iter().copied().collect();
    assert_eq!(known.len(), unique.len(), "a code stands for two things");
    let shown = cases().flat_map(|case| case.check().1).chain(files::CODES).chain(OF_SETTINGS);
    let shown: HashSet<&str> = shown.collect();
    let never: Vec<&&str> = known.iter().filter(|code| !shown.contains(**code)).collect();
    assert!(never.is_empty(), "no case shows {never:?}");
}

#[test]
fn codes_are_kebab_case() {
    for code in codes() {
        let kebab =
            code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        assert!(kebab && !code.starts_with('-') && !code.ends_with('-'), "{code}");
    }
}
