//! Long texts that are compared to the letter are in files beside their tests. `RUNGATE_SNAPSHOTS=write` writes what
//! is shown now into these files instead, to be read in the difference before it is committed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Compares each file with the text that it should have.
#[track_caller]
pub(crate) fn compare(files: impl IntoIterator<Item = (PathBuf, String)>) {
    let mut wrong = String::new();
    for (path, text) in files {
        let old = fs::read_to_string(&path).unwrap_or_default();
        if old == text {
            continue;
        }
        if env::var_os("RUNGATE_SNAPSHOTS").is_some_and(|value| value == "write") {
            fs::write(&path, text).expect("a file beside the tests");
        } else {
            wrong += &difference(&path, &old, &text);
        }
    }
    assert!(wrong.is_empty(), "{wrong}Where this is as it should be, RUNGATE_SNAPSHOTS=write writes it.");
}

/// The lines that are not the same, with their numbers.
fn difference(path: &Path, old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let first = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let same_at_the_end =
        old[first..].iter().rev().zip(new[first..].iter().rev()).take_while(|(old, new)| old == new).count();
    let mut text = format!("{}:{}\n", path.display(), first + 1);
    for (sign, lines) in [('-', &old), ('+', &new)] {
        for line in &lines[first..lines.len() - same_at_the_end] {
            let _ = writeln!(text, "{sign} {line}");
        }
    }
    text
}
