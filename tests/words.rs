//! `docs/words.md`, tried: each policy of the page has no fault, and its tests come out.

use std::fs;
use std::path::Path;

use crate::policies::keeps_what_it_intends;
use crate::support::Site;

/// The policies of the page with the names in their first lines.
fn policies(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("\n```toml\n# ").skip(1);
    blocks
        .map(|block| {
            let (name, text) = block.split_once('\n').expect("a name");
            (name, text.split("\n```\n").next().expect("an end"))
        })
        .collect()
}

#[test]
fn every_translation_says_what_the_original_does() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/words.md");
    let page = fs::read_to_string(page).expect("the page");
    let policies = policies(&page);
    let languages = page.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!((policies.len(), page.matches("```toml").count()), (languages, languages));
    let site = Site::new();
    for (name, text) in policies {
        assert!(text.contains("[[test]]"), "{name} does not say what it intends");
        site.write(name, text);
        keeps_what_it_intends(&[site.path(name)]);
    }
}
