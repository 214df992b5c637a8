//! Words that texts for people do not use, because a sentence with them is read twice: in the manual, the pages,
//! the policies, the help of each subcommand, and the messages of the program. `tests/docs/sentences` draws sentences
//! to be read.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Test;

/// The words, in small letters, and what to write instead.
const AVOIDED: [(&str, &str); 26] = [
    ("whoever", "the user, the launch, the process that ..."),
    ("whosoever", "the user who ..."),
    ("anew", "again"),
    ("mends", "fixes, corrects"),
    ("mended", "fixed, corrected"),
    ("thereof", "of it"),
    ("is said", "the message says"),
    ("goes on", "continues"),
    ("stands", "is, waits"),
    ("stand in line", "wait in the queue"),
    ("nobody but", "only"),
    ("so many", "the number"),
    ("is told", "learns, the message says"),
    ("says otherwise", "overrides"),
    ("of which one", "one of them"),
    ("makes no sense", "is invalid, is useless"),
    ("says nothing", "has no effect, is empty"),
    ("taken for gone", "considered dead"),
    ("who is none", "who is not a ..."),
    ("for want of", "for lack of, without"),
    ("be mended", "be fixed"),
    ("is no plain", "is not a plain"),
    ("whom it is for", "the users that it applies to"),
    ("somebody who cannot", "a process that cannot"),
    ("had not heard of", "had no contact with"),
    ("taken off the", "subtracted from"),
];

/// Where one of them is right: the end of a path, and the text around the word.
const EXCEPTIONS: [(&str, &str); 0] = [];

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(below: &str, of: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(package().join(below)).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(package()).expect("a path of ours").display().to_string();
        if path.is_dir() {
            files(&name, of, found);
        } else if of.iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
}

/// A text without what stands between backticks, which may be the name of a test or a command.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<&str>>().join("_")
}

/// The strings of a source, without those of its tests, a line each.
fn messages(source: &str) -> String {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<&str>>().join("\n").replace("\\\"", "'").replace("'\"'", "''");
    code.split('"').skip(1).step_by(2).collect::<Vec<&str>>().join("\n")
}

/// All texts, each with where it is.
fn texts() -> Vec<(String, String)> {
    let mut pages =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|page| package().join(page)).to_vec();
    files("docs", &[".md"], &mut pages);
    files("man", &[".1", ".5", ".7", ".8"], &mut pages);
    files("policies", &[".toml"], &mut pages);
    files("packaging", &[".service", ".timer", ".socket", ".toml", ".yml", ".json", ".conf"], &mut pages);
    files("src", &[".toml"], &mut pages);
    let mut sources = Vec::new();
    files("src", &[".rs"], &mut sources);
    sources.retain(|path| {
        !path.ends_with("tests.rs") && !path.components().any(|part| part.as_os_str() == "tests")
    });
    let read = |path: &PathBuf| {
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let name = |path: &PathBuf| path.strip_prefix(package()).expect("a path of ours").display().to_string();
    let mut texts: Vec<(String, String)> =
        pages.iter().map(|path| (name(path), without_code(&read(path)))).collect();
    texts.extend(sources.iter().map(|path| (name(path), messages(&read(path)))));
    let overview = Test::new().args(["--help"]).outcome().stdout;
    for subcommand in overview.lines().filter_map(|line| line.strip_prefix("  ")) {
        if !subcommand.starts_with([' ', '-']) {
            let words: Vec<&str> = subcommand[..14].split_whitespace().collect();
            let help = Test::new().args(["help"]).args(&words).outcome().stdout;
            texts.push((format!("rungate {} --help", words.join(" ")), help));
        }
    }
    texts.push(("rungate --help".into(), overview));
    texts
}

/// Where a text uses a word as a word.
fn uses<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let small = text.to_ascii_lowercase();
    let found = small
        .match_indices(word)
        .filter(|(at, _)| !small[..*at].ends_with(is_part) && !small[at + word.len()..].starts_with(is_part));
    let around = |at: usize| {
        let begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
        &text[begin..end]
    };
    found.map(|(at, _)| around(at)).collect()
}

#[test]
fn no_text_uses_words_that_are_read_twice() {
    let texts = texts();
    assert!(texts.len() > 400, "{}", texts.len());
    let mut found = Vec::new();
    let mut used = Vec::new();
    for (place, text) in &texts {
        for (word, instead) in AVOIDED {
            for line in uses(text, word) {
                match EXCEPTIONS
                    .iter()
                    .position(|(end, around)| place.ends_with(end) && line.contains(around))
                {
                    Some(index) => used.push(index),
                    None => found.push(format!("{place}: \"{word}\" ({instead}): {}", line.trim())),
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!((0..EXCEPTIONS.len()).all(|index| used.contains(&index)), "an exception is left over");
}

#[test]
fn words_are_found_as_words_only() {
    assert_eq!(uses("one\nWhoever comes\n", "whoever"), ["Whoever comes"]);
    assert!(uses("whoever_comes, canewx", "whoever").is_empty());
    assert_eq!(
        messages("// \"a\"\nlet x = \"b \\\"c\\\"\" + '\"' + \"d\";\n#[cfg(test)]\n\"e\""),
        "b 'c'\nd"
    );
    assert_eq!(without_code("a `stands` b"), "a _ b");
}
