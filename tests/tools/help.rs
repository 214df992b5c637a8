//! `rungate --help` and the help of each subcommand: their order, their width, and their examples.

use std::fs;

use clap::{CommandFactory, Parser};
use rungate::cli::CommandLine;

use crate::support::{Ending, Site, Test, log_of, needs_root, started};

/// Every subcommand with its path: `policy check`.
fn paths(command: &clap::Command, above: &str) -> Vec<String> {
    let each = |inner: &clap::Command| {
        let path = format!("{above} {}", inner.get_name()).trim_start().to_owned();
        let below = paths(inner, &path);
        [vec![path], below].concat()
    };
    command.get_subcommands().flat_map(each).collect()
}

/// The help of a subcommand; of `exectimes`, whose options are its own, only `help` tells.
fn help(path: &str) -> String {
    let words = path.split_whitespace();
    let outcome = Test::new().args(["help"].into_iter().chain(words)).outcome();
    assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(0), ""), "{path}");
    outcome.stdout
}

fn all() -> Vec<(String, String)> {
    let paths = paths(&CommandLine::command(), "");
    paths.into_iter().map(|path| (path.clone(), help(&path))).collect()
}

/// The examples with which a help ends.
fn examples(help: &str) -> Vec<&str> {
    let Some((_, examples)) = help.split_once("\nExamples:\n") else { return Vec::new() };
    let (examples, _) = examples.split_once("\nManual: ").unwrap_or((examples, ""));
    examples.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// The examples of the groups.
fn examples_of_groups(help: &str) -> Vec<&str> {
    help.lines().filter_map(|line| line.trim().strip_prefix("$ ")).collect()
}

#[test]
fn every_subcommand_is_in_one_group() {
    let help = help("");
    let listed =
        help.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with([' ', '-']));
    let mut listed: Vec<String> = listed.map(|line| line[..14].trim_end().to_owned()).collect();
    listed.sort();
    // Those that set up shims are listed in the help of `shim`, all others here.
    let all = paths(&CommandLine::command(), "");
    let mut known: Vec<String> =
        all.into_iter().filter(|path| path != "policy" && !path.starts_with("shim ")).collect();
    known.sort();
    assert_eq!(listed, known, "{help}");
    let groups =
        help.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ') && *line != "Options:");
    assert_eq!(groups.count(), examples_of_groups(&help).len(), "{help}");
    assert!(help.trim_end().lines().last().is_some_and(|last| last.starts_with("Manuals: ")), "{help}");
    Test::new().args(["--help"]).stdout(&help).status(0);
}

/// `rungate init --help` prints what `rungate help init` prints, and so does `-h`. Where a value has a description
/// of its own, `-h` is shorter.
#[test]
fn each_subcommand_has_its_help_as_an_option() {
    for (path, help) in all().into_iter().filter(|(path, _)| path != "exectimes") {
        let words: Vec<&str> = path.split_whitespace().collect();
        Test::new().args(&words).args(["--help"]).stdout(&help).status(0);
        Test::new()
            .args(&words)
            .args(["-h"])
            .stdout(&format!("{}\n...\n", help.lines().next().unwrap_or_default()))
            .status(0);
    }
}

/// The last line of each help names its page, as the shell takes it.
#[test]
fn every_help_fits_80_columns_and_ends_with_two_examples_and_its_page() {
    for (path, help) in all() {
        assert_eq!(examples(&help).len(), 2, "{path}: {help}");
        let manual = help.trim_end().lines().last().and_then(|line| line.strip_prefix("Manual: man "));
        let name = manual.unwrap_or_else(|| panic!("{path}: {help}")).trim_start_matches("1 ");
        let pages = [1, 8].map(|section| format!("{}/man/{name}.{section}", env!("CARGO_MANIFEST_DIR")));
        assert!(
            pages.iter().any(|page| fs::exists(page).is_ok_and(|is_there| is_there)),
            "{path}: {pages:?}"
        );
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{path}: {line}");
        }
    }
    assert!(help("").lines().all(|line| line.chars().count() <= 80), "{}", help(""));
}

const POLICY: &str = r#"
version = 1

[repository.matlab]
limit = 8
expire_after = "12h"

[[rule]]
commands = ["matlab"]
acquire  = ["matlab"]
"#;

/// Examples that do not come to an end by themselves.
const ENDLESS: [&str; 3] =
    ["rungate status --watch", "rungate history --follow --repository matlab", "rungate measure --every"];

/// Each example is a command line of rungate's, and does what it says on a host with that policy and those
/// files.
#[test]
fn every_example_works() {
    needs_root!();
    let site = Site::new();
    site.account("ann", &[]);
    site.directory_over_run();
    fs::create_dir_all(site.path("system-run/lock")).expect("a directory");
    fs::create_dir_all(site.path("etc/bash_completion.d")).expect("a directory");
    site.system_file("policy.toml", &format!("{POLICY}[log]\nto = \"/run/lock/log.jsonl\"\n"));
    for name in ["policy.toml", "next.toml", "old.toml"] {
        site.write(format!("work/{name}"), POLICY);
    }
    site.write("work/cad.toml", "[[rule]]\nname = \"cad\"\ncommands = [\"spice\"]\naction = \"deny\"\n");
    log_of(&site, &[started(7)]);
    for name in ["ws1.jsonl", "ws2.jsonl"] {
        fs::copy(site.path("work/log.jsonl"), site.path(format!("work/{name}"))).expect("a log");
    }
    for name in ["matlab", "make", "less", "nano"] {
        site.script(name, "#!/bin/sh\nexit 0\n");
    }
    site.rungate_in_bin();
    let over = r#"mount -t tmpfs none /usr/local/bin && exec "$@""#;
    let play = |line: &str| {
        let shell = if line.ends_with("| source") { "fish" } else { "sh" };
        let isolated = ["unshare", "--mount", "--propagation", "private", "sh", "-c", over, "sh"];
        site.test()
            .env_remove("RUNGATE_POLICY")
            .env("EDITOR", "/bin/true")
            .program(format!("/usr/bin/{shell}"))
            .args(["-c", line])
            .through(isolated)
            .outcome()
    };
    let mut helps = all();
    helps.push((String::new(), help("")));
    for (path, help) in helps {
        for line in examples(&help).into_iter().chain(examples_of_groups(&help)) {
            let words = line.split(' ').skip_while(|word| *word != "rungate");
            let words: Vec<&str> = words.take_while(|word| !["|", ">", "<"].contains(word)).collect();
            if let Err(error) = CommandLine::try_parse_from(words) {
                panic!("{path}: {line}: {error}");
            }
            if ENDLESS.contains(&line) {
                continue;
            }
            // Each has a /usr/local/bin of its own; and there must be a shim to remove, and no policy to write one.
            let (before, after) = match line.split(' ').nth(1) {
                Some("shim") if line.contains("remove") => {
                    ("rungate shim install /usr/local/bin matlab && ", "")
                }
                Some("acquire") if line.contains("--fd 9") => {
                    ("exec 9<\"$(rungate acquire --path matlab)\" && ", "")
                }
                Some("init") if line.contains("matlab") => {
                    ("cd /etc/rungate && mv policy.toml old && ", " && mv old policy.toml")
                }
                _ => ("", ""),
            };
            let outcome = play(&format!("{before}{line}{after}"));
            // The doctor finds something on a host that is made of a few files, and the policies differ.
            let finds = ["rungate doctor", "rungate policy diff"].iter().any(|begin| line.starts_with(begin));
            let is_fine = outcome.ending == Ending::Status(0) || finds && outcome.ending == Ending::Status(1);
            assert!(is_fine, "{path}: {line}: {outcome:?}");
        }
    }
}

/// "Subcommands that read no policy in force refuse it", and their help does not mention it.
#[test]
fn no_policy_is_named_in_vain() {
    let site = Site::with_policy("[[rule]]\nname = \"no\"\naction = \"deny\"\n");
    let mut refusing = Vec::new();
    for (path, help) in all() {
        if help.contains("--policy <FILE>") || ["policy", "shim"].contains(&path.as_str()) {
            continue;
        }
        let words = [&["--policy", "$DIR/policy.toml"][..], &path.split(' ').collect::<Vec<_>>()].concat();
        let more: &[&str] = match path.as_str() {
            "policy diff" => &["old.toml", "new.toml"],
            "policy install" | "shim remove" => &["file"],
            "completions" => &["bash"],
            _ => &[],
        };
        let refused = format!("rungate: --policy has no effect on rungate {path}\n");
        site.test().args(words).args(more).stderr(&refused).status(64);
        refusing.push(path);
    }
    refusing.sort();
    let expected = [
        "completions",
        "exectimes",
        "init",
        "policy diff",
        "policy edit",
        "policy install",
        "policy log",
        "policy schema",
        "policy undo",
        "shim remove",
    ];
    assert_eq!(refusing, expected);
}
