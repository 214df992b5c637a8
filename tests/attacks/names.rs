//! Names that the system gives out and others have chosen: of users, groups and hosts, with a slash, with
//! `..`, with what a terminal would obey.

use std::fs;

use crate::support::{Ending, Site, needs_root};

const EACH: &str = r#"
    [repository.each]
    path  = "{user}-{host}.lock"
    limit = 1

    [[rule]]
    name     = "each"
    commands = ["matlab"]
    acquire  = ["each"]
"#;

fn is_harmless(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !c.is_control())
}

/// The directory holds one file, and its name is made of safe characters.
#[track_caller]
fn only_one_safe_file(site: &Site) {
    let names: Vec<String> = fs::read_dir(site.repository(""))
        .expect("the directory")
        .map(|entry| entry.expect("a file").file_name().into_string().expect("a name of safe characters"))
        .collect();
    let [name] = names.as_slice() else { panic!("{names:?}") };
    assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-%".contains(&byte)), "{name:?}");
    assert!(!name.starts_with('.'), "{name:?}");
}

/// None ever becomes part of a path unprocessed, and "control characters are escaped": the name of a user,
/// as a database that was made up has it.
#[test]
fn a_user_with_a_hostile_name() {
    needs_root!();
    for name in ["../../work/x", "..", "a/b", "x\u{1b}[2Jy", "a\rb", ".hidden", "#54000"] {
        let site = Site::new();
        site.system_policy(EACH);
        site.program("matlab");
        site.account(name, &[]);
        // To the C library the line of the last one is a comment, so that they have no name.
        let matlab = site.test().user(name).groups([]).args(["run", "--", "matlab"]);
        let _running = matlab.spawn();
        only_one_safe_file(&site);
        let refused = matlab.outcome();
        assert_eq!(refused.ending, Ending::Status(75), "{name:?}: {}", refused.stderr);
        for words in [&["list"][..], &["status"], &["explain", "--", "matlab"], &["list", "--json"]] {
            let shown = site.test().user(name).groups([]).args(words).outcome();
            assert!(is_harmless(&shown.stdout) && is_harmless(&shown.stderr), "{name:?}: {shown:?}");
        }
        assert!(is_harmless(&refused.stderr), "{refused:?}");
    }
}

/// The same of the node name, which root of a container chooses.
#[test]
fn a_host_with_a_hostile_name() {
    needs_root!();
    for name in ["../../x", "..", "a/b", "x\u{1b}[2Jy", "a\nb", ".hidden"] {
        let site = Site::with_policy(EACH);
        site.program("matlab");
        let rename = "printf %s \"$0\" >/proc/sys/kernel/hostname && exec \"$@\"";
        let there = ["unshare", "--uts", "sh", "-c", rename, name];
        let matlab = site.test().through(there).args(["run", "--", "matlab"]);
        let _running = matlab.spawn();
        only_one_safe_file(&site);
        let refused = matlab.outcome();
        assert_eq!(refused.ending, Ending::Status(75), "{name:?}: {}", refused.stderr);
        assert!(is_harmless(&refused.stderr), "{refused:?}");
        let listed = site.test().args(["list"]).through(there).outcome();
        assert!(is_harmless(&listed.stdout), "{listed:?}");
    }
}
