//! The tables of docs/security.md and docs/guarantees.md: what they call a test is one.

use std::{fs, path::Path};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names of tests in a document, in backquotes: of the file, which may be in a folder, and of the
/// function. What has blanks is a command.
fn named(text: &str) -> Vec<(&str, &str)> {
    let quoted = text.split('`').skip(1).step_by(2).filter(|word| !word.contains(' '));
    quoted.filter_map(|word| word.split_once("::")).collect()
}

#[test]
fn every_test_that_the_documents_name_exists() {
    for document in ["docs/security.md", "docs/guarantees.md"] {
        let text = read(document);
        let named = named(&text);
        assert!(named.len() >= 20, "{document} names only {} tests", named.len());
        for (file, name) in named {
            let source = read(&format!("tests/{file}.rs"));
            assert!(
                source.contains(&format!("fn {name}(")),
                "{document}: tests/{file}.rs has no test {name}"
            );
        }
    }
}
