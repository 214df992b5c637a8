//! What the fuzzers found worth keeping, read again by every test run: files of `fuzz/corpus`, each fed to
//! the same function as cargo-fuzz feeds it. CONTRIBUTING.md says how to look for more.

#![allow(unreachable_pub, reason = "in the crate of the fuzzers it can be reached")]
#![allow(
    clippy::unnecessary_debug_formatting,
    reason = "what bytes there are matters more than how they look"
)]

use std::{fs, panic::catch_unwind, path::Path};

#[path = "../fuzz/src/contents.rs"]
mod contents;
#[path = "../fuzz/src/launches.rs"]
pub(crate) mod launches;
#[path = "../fuzz/src/messages.rs"]
mod messages;
#[path = "../fuzz/src/paths.rs"]
mod paths;
#[path = "../fuzz/src/policy.rs"]
pub(crate) mod policy;
#[path = "../fuzz/src/small_site.rs"]
mod small_site;
#[path = "../fuzz/src/words.rs"]
mod words;

fn replay(target: &str, judge: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = fs::read_dir(&corpus).expect("a corpus").map(|entry| entry.expect("an entry").path());
    let inputs: Vec<_> = entries.filter(|path| path.is_file()).collect();
    assert!(inputs.len() >= 10, "{corpus:?} holds nothing to speak of");
    for input in inputs {
        let bytes = fs::read(&input).expect("an input");
        assert!(catch_unwind(|| judge(&bytes)).is_ok(), "{} breaks a promise", input.display());
    }
}

/// Otherwise the fuzzers, which nothing else builds, do not compile: their values are those of the package.
#[test]
fn the_fuzzers_have_the_crates_of_the_package() {
    let dependencies = |path: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let manifest: toml::Table = fs::read_to_string(path).expect("a manifest").parse().expect("TOML");
        manifest["dependencies"].as_table().expect("a table").clone()
    };
    let version = |of: &toml::Value| of.as_str().or_else(|| of.get("version")?.as_str()).map(str::to_owned);
    let (of_package, of_fuzzers) = (dependencies("Cargo.toml"), dependencies("fuzz/Cargo.toml"));
    let shared: Vec<_> =
        of_fuzzers.iter().filter_map(|(name, of)| Some((name, of, of_package.get(name)?))).collect();
    assert!(shared.len() >= 3, "{shared:?}");
    for (name, of, of_package) in shared {
        assert_eq!((name, version(of)), (name, version(of_package)));
    }
}

/// What is printed decides as what was read does, and a user's own policy only tightens the system's.
#[test]
fn policies() {
    replay("policy", policy::judge);
}

/// What a launch does not keep cannot matter to it, and has no fault.
#[test]
fn policies_of_launches() {
    replay("policy", launches::judge);
}

/// Only kernel locks admit or refuse; records are for people: whatever the file says.
#[test]
fn contents_of_lock_files() {
    replay("contents", contents::judge);
}

/// Arguments and environment pass through untouched as bytes.
#[test]
fn command_lines_and_environments() {
    replay("words", words::judge);
}

/// A stream of bytes becomes messages, and nothing else is ever made of it.
#[test]
fn messages_of_launchers_and_agents() {
    replay("messages", messages::judge);
}

/// "Two values never share a file by accident", and none leads out of the directory.
#[test]
fn values_in_paths() {
    replay("paths", paths::judge);
}
