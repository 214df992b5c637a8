//! `docs/guarantees.md`, `docs/security.md` and `docs/stability.md` name a test for each of their promises: all
//! of these are there.

use std::fs;
use std::path::Path;

/// What stands between backquotes and looks like the path of a test:
/// `attacks/names::a_user_with_a_hostile_name`.
fn tests_of(page: &str) -> Vec<(&str, &str)> {
    let is_path =
        |text: &&str| text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_/:".contains(c));
    page.split('`').skip(1).step_by(2).filter(is_path).filter_map(|text| text.rsplit_once("::")).collect()
}

pub(crate) fn is_there(module: &str, test: &str) -> bool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(module);
    let sources = [folder.with_extension("rs"), folder.join("mod.rs")].map(fs::read_to_string);
    sources.iter().flatten().any(|source| source.contains(&format!("fn {test}(")))
}

#[test]
fn every_test_that_a_promise_names_is_there() {
    let mut missing = Vec::new();
    let mut named = 0;
    for page in ["docs/guarantees.md", "docs/security.md", "docs/stability.md"] {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).expect(page);
        let tests = tests_of(&text);
        named += tests.len();
        missing.extend(
            tests
                .iter()
                .filter(|(module, test)| !is_there(module, test))
                .map(|(module, test)| format!("{page}: {module}::{test}")),
        );
    }
    assert!(named > 60, "{named}");
    assert!(missing.is_empty(), "{missing:#?}");
}
