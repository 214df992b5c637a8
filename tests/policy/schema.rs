//! `rungate policy schema`: what editors complete and check policies with, judged by a validator that others
//! keep: that of Debian's package python3-jsonschema, with Python's own reader of TOML.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::policy::{examples, faults};
use crate::support::{Ending, Site, skip};

/// Where the package puts it, and every policy looks for it.
const INSTALLED: &str = "/usr/share/rungate/policy.schema.json";

/// Reads a schema and texts; answers for each text what is wrong with it, `null` where nothing is.
const VALIDATOR: &str = r#"
import json, sys, tomllib, jsonschema
asked = json.load(sys.stdin)
jsonschema.Draft7Validator.check_schema(asked["schema"])
validator = jsonschema.Draft7Validator(asked["schema"])
def fault(text):
    try:
        error = next(validator.iter_errors(tomllib.loads(text)), None)
        return error and "/".join(map(str, error.absolute_path)) + ": " + error.message
    except tomllib.TOMLDecodeError:
        return "no TOML"
json.dump([fault(text) for text in asked["texts"]], sys.stdout)
"#;

/// What is wrong with each text; none if there is no validator.
fn validate(texts: &[String]) -> Option<Vec<Option<String>>> {
    let site = Site::new();
    let python = site.test().program("/usr/bin/env").args(["python3", "-W", "ignore", "-c"]);
    if python.clone().args(["import jsonschema, tomllib"]).outcome().ending != Ending::Status(0) {
        skip("there is no validator: it is in Debian's package python3-jsonschema");
        return None;
    }
    let schema: Value = serde_json::from_str(&schema(&site)).expect("JSON");
    let asked = json!({ "schema": schema, "texts": texts }).to_string();
    let outcome = python.args([VALIDATOR]).stdin(asked).outcome();
    assert_eq!(outcome.stderr, "");
    Some(serde_json::from_str(&outcome.stdout).expect("an answer for each text"))
}

fn schema(site: &Site) -> String {
    site.test().args(["policy", "schema"]).outcome().stdout
}

/// What a schema can see: names and shapes. What depends on other tables, on patterns or on the system it
/// cannot.
const SEEN: [&str; 14] = [
    "bad-duration",
    "bad-limit",
    "bad-mode",
    "bad-name",
    "empty-exception",
    "empty-list",
    "missing-key",
    "no-limit",
    "nothing-to-do",
    "out-of-range",
    "unknown-key",
    "unknown-version",
    "unknown-word",
    "wrong-type",
];

/// Every faulty policy of the tests whose fault a schema can see is refused, and nothing that rungate accepts
/// is.
#[test]
fn it_refuses_what_is_faulty_and_nothing_else() {
    let texts: Vec<String> = faults::cases().flat_map(|case| case.files).map(|(_, text)| text).collect();
    let Some(answers) = validate(&texts) else { return };
    let mut answers = answers.into_iter();
    let mut seen = BTreeSet::new();
    for case in faults::cases() {
        let answers: Vec<Option<String>> = answers.by_ref().take(case.files.len()).collect();
        let (shown, codes) = case.check();
        let is_refused = answers.iter().any(Option::is_some);
        if shown.split("\n\n").all(|one| one.lines().next().is_some_and(|line| line.contains(": warning: ")))
        {
            assert!(!is_refused, "{}: {answers:?}", case.about);
        }
        if let Some(code) = codes.iter().find(|code| SEEN.contains(code)) {
            assert!(is_refused, "{} [{code}] is not seen", case.about);
            seen.insert(*code);
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<&str>>(), SEEN, "each of them has a case");
}

/// Every policy names its schema in the first line, as taplo and the editors that use it read it; and keeps
/// to it.
#[test]
fn every_policy_names_it_and_keeps_to_it() {
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let others = ["packaging/policy.toml", "src/tools/setup/init/own.toml"].map(|name| package.join(name));
    let files: Vec<PathBuf> = examples::policies().into_iter().flatten().chain(others).collect();
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).expect("a policy")).collect();
    for (file, text) in files.iter().zip(&texts) {
        let first = text.lines().next();
        assert_eq!(first, Some(format!("#:schema {INSTALLED}").as_str()), "{}", file.display());
    }
    let Some(answers) = validate(&texts) else { return };
    for (file, answer) in files.iter().zip(answers) {
        assert_eq!(answer, None, "{}", file.display());
    }
}

/// The package installs a copy, which is the one that is printed.
#[test]
fn the_packaged_copy_is_the_one_that_is_printed() {
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let copy = fs::read_to_string(package.join("packaging/policy.schema.json")).expect("the copy");
    let printed = schema(&Site::new());
    assert_eq!(copy, printed, "rungate policy schema > packaging/policy.schema.json");
    let manifest = fs::read_to_string(package.join("Cargo.toml")).expect("the manifest");
    let directory = INSTALLED.trim_start_matches('/').trim_end_matches("policy.schema.json");
    let asset = format!("[\"packaging/policy.schema.json\", \"{directory}\"");
    assert!(manifest.contains(&asset), "{asset}");
}

/// Each key has a sentence that says what it does, and one that says who needs it.
#[test]
fn every_key_is_described() {
    let schema: Value = serde_json::from_str(&schema(&Site::new())).expect("JSON");
    let mut keys = 0;
    let mut todo = vec![&schema];
    while let Some(next) = todo.pop() {
        for (name, key) in next.get("properties").and_then(Value::as_object).into_iter().flatten() {
            // Where an alternative forbids or narrows a key, it is described elsewhere.
            if next.get("type") == Some(&json!("object")) {
                let description = key["description"].as_str().unwrap_or_default();
                let (about, needed_by) = description.split_once(" Needed by: ").unwrap_or_default();
                let is_sentence = |text: &str| text.len() > 8 && text.ends_with('.');
                assert!(is_sentence(about) && is_sentence(needed_by), "{name}: {key}");
                keys += 1;
            }
        }
        match next {
            Value::Object(object) => todo.extend(object.values()),
            Value::Array(array) => todo.extend(array),
            _ => {}
        }
    }
    assert!(keys > 80, "{keys}");
}
