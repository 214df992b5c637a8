//! `--json`: whatever shows something can show it to scripts, in shapes that the manual describes.

use std::collections::BTreeSet;

use clap::CommandFactory;
use rungate::cli::CommandLine;
use serde_json::{Value, json};

use crate::support::{Ending, Site};

/// Commands that show nothing of their own, or what is read by machines anyway.
const OTHERS: [&str; 20] = [
    "run",
    "acquire",
    "reset",
    "prune",
    "measure",
    "metrics",
    "init",
    "completions",
    "exectimes",
    "policy schema",
    // TOML, which scripts read as well as JSON.
    "policy show",
    // A script asks whether two policies differ, and the status says so.
    "policy diff",
    "policy edit",
    "policy install",
    "policy undo",
    // A script reads the copies themselves.
    "policy log",
    "policy",
    "end",
    "shim",
    "shim install",
];

#[test]
fn everything_that_shows_something_can_show_json() {
    let mut todo: Vec<(String, clap::Command)> = CommandLine::command()
        .get_subcommands()
        .map(|inner| (inner.get_name().to_owned(), inner.clone()))
        .collect();
    let mut without = Vec::new();
    while let Some((path, command)) = todo.pop() {
        todo.extend(
            command.get_subcommands().map(|inner| (format!("{path} {}", inner.get_name()), inner.clone())),
        );
        let has_json = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
        if !has_json && !OTHERS.contains(&path.as_str()) && path != "shim remove" {
            without.push(path);
        }
    }
    assert!(without.is_empty(), "{without:?}");
}

#[track_caller]
fn answer(site: &Site, arguments: &[&str], status: i32) -> Value {
    let outcome = site.test().args(arguments).outcome();
    assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(status), ""), "{}", outcome.stdout);
    let mut document: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let objects = match &mut document {
        Value::Array(objects) => objects.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    for object in objects.iter_mut().filter_map(Value::as_object_mut) {
        assert_eq!(object.remove("format"), Some(json!(1)), "{arguments:?}");
    }
    document
}

/// An object with faults, warnings and failed tests; nothing on standard error, and the same status.
#[test]
fn policy_check_tells_faults_warnings_and_tests() {
    let site = Site::new();
    site.write("work/policy.toml", "version = 1\n[[rule]]\ncomands = [\"matlab\"]\nacquire = []\n");
    let fault = json!({
        "path": "policy.toml",
        "line": 3,
        "column": 1,
        "code": "unknown-key",
        "message": "unknown key \"comands\" in a rule; did you mean \"commands\"?",
    });
    assert_eq!(
        answer(&site, &["policy", "check", "--json", "policy.toml"], 1),
        json!({ "faults": [fault], "warnings": [], "host": [], "tests": [], "from": null })
    );
    site.write(
        "work/policy.toml",
        "version = 1\n[repository.a]\nlimit = 1\n[[test]]\nname = \"t\"\ncommand = \"x\"\nexpect = \"refuse\"\n",
    );
    let checked = answer(&site, &["policy", "check", "--json", "policy.toml"], 1);
    assert_eq!(checked["warnings"][0]["code"], "unused-repository");
    assert_eq!((&checked["tests"][0]["name"], &checked["tests"][0]["line"]), (&json!("t"), &json!(4)));
    site.write("work/policy.toml", "version = 1\n[repository.a]\nlimit = 1\n");
    assert_eq!(answer(&site, &["policy", "check", "--json", "policy.toml"], 0)["faults"], json!([]));
    answer(&site, &["policy", "check", "--json", "--strict", "policy.toml"], 1);
    // A file that does not exist has no line.
    let missing = answer(&site, &["policy", "check", "--json", "missing.toml"], 1);
    assert_eq!(
        (&missing["faults"][0]["path"], &missing["faults"][0]["line"]),
        (&json!("missing.toml"), &Value::Null)
    );
}

/// An object with all tests, passed or not.
#[test]
fn policy_check_tells_every_test() {
    let site = Site::new();
    let test = |name: &str, expect: &str| {
        format!("[[test]]\nname = \"{name}\"\ncommand = \"x\"\nexpect = \"{expect}\"\n")
    };
    site.write(
        "work/policy.toml",
        &format!("version = 1\n{}{}", test("one", "start"), test("two", "refuse")),
    );
    let tested = answer(&site, &["policy", "check", "--json", "policy.toml"], 1);
    assert_eq!(
        tested["tests"][0],
        json!({ "name": "one", "path": "policy.toml", "line": 2, "passed": true, "expected": "starts", "got": "starts with no slot" })
    );
    assert_eq!((&tested["tests"][1]["passed"], &tested["tests"][1]["name"]), (&json!(false), &json!("two")));
    site.write("work/policy.toml", &format!("version = 1\n{}", test("one", "start")));
    answer(&site, &["policy", "check", "--json", "policy.toml"], 0);
}

/// The fields of a structure, which the text begins with, by the names that documents have.
fn fields(structure: &str) -> Vec<&str> {
    let mut renamed = None;
    let mut fields = Vec::new();
    for line in structure.split("\n}").next().unwrap_or_default().lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("#[serde(rename = \"") {
            renamed = name.split('"').next();
        } else if let Some((name, _)) = line.strip_prefix("pub ").and_then(|field| field.split_once(':')) {
            fields.push(renamed.take().unwrap_or(name));
        }
    }
    fields
}

/// Every key that is printed is in rungate-json(5), and every key of that page is printed: the page has keys as
/// tags of its lists and within sentences, the sources in the macros that build the values, and in the
/// structures that are values themselves.
#[test]
fn every_key_is_in_the_manual() {
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(package.join("man/rungate-json.5")).expect("the page");
    let told: BTreeSet<&str> = page
        .split("\n.Sh EXAMPLES")
        .next()
        .expect("a description")
        .lines()
        .filter_map(|line| line.strip_prefix(".It Cm ").or_else(|| line.strip_prefix(".Cm ")))
        .flat_map(|words| words.split(" , "))
        .map(|words| words.trim_end_matches([' ', ',', ';', '.', ':', ')']))
        .collect();
    let mut printed = BTreeSet::new();
    for path in crate::modules::sources() {
        let source = std::fs::read_to_string(package.join(&path)).expect("a source");
        if !path.starts_with("src/tools") {
            continue;
        }
        let name = path.display();
        for key in source.split("Serialize)]\npub struct ").skip(1).flat_map(fields) {
            assert!(told.contains(key), "{name}: {key} is not in the manual");
            printed.insert(key.to_owned());
        }
        if !source.contains("json!") {
            continue;
        }
        for (at, _) in source.match_indices("\": ") {
            let key = source[..at].rsplit('"').next().expect("a first quote");
            if !key.is_empty()
                && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            {
                assert!(told.contains(key), "{name}: {key} is not in the manual");
                printed.insert(key.to_owned());
            }
        }
        let indexed = source.match_indices("value[\"").map(|(at, found)| &source[at + found.len()..]);
        printed.extend(indexed.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
    }
    // Those of an event, which its type names, and what every document has.
    let events = [
        "format",
        "time",
        "event",
        "seconds",
        "holder",
        "holder_uid",
        "uid",
        "command",
        "pid",
        "repositories",
        "rules",
        "joined",
        "status",
        "cut",
        "decided",
        "arrived",
        "between",
        "launch",
        "tables",
        // Of a test, if it is said by index.
        "from",
    ];
    printed.extend(events.map(str::to_owned));
    let unknown: Vec<&&str> = told.iter().filter(|key| !printed.contains(**key)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(printed.len() > 40, "{printed:?}");
}
