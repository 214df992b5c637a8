//! Every fault and every warning, to the letter: `path:line:col: message [code]`, the line, a caret. Whoever
//! changes a wording changes it here too, and sees it as an admin does.

mod captures;
pub(crate) mod case;
mod delegation;
mod files;
mod keepers;
mod keys;
mod layers;
mod limits;
mod names;
mod paths;
mod repositories;
mod rules;
mod selectors;
mod several;
mod syntax;
mod warnings;

use std::collections::HashSet;

use rungate::policy::codes;

use case::Case;

/// Every case.
pub(crate) fn cases() -> impl Iterator<Item = &'static Case> {
    let topics = [
        syntax::CASES,
        keys::CASES,
        names::CASES,
        selectors::CASES,
        captures::CASES,
        paths::CASES,
        rules::CASES,
        repositories::CASES,
        keepers::CASES,
        limits::CASES,
        layers::CASES,
        delegation::CASES,
        several::CASES,
        warnings::CASES,
    ];
    topics.into_iter().flatten()
}

#[test]
fn what_is_wrong_is_shown_with_its_place_and_what_to_write_instead() {
    let mut wrong = Vec::new();
    for case in cases() {
        let (shown, _) = case.check();
        if shown != case.shown.trim_matches('\n') {
            wrong.push(format!("--- {}\n{shown}", case.about));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
