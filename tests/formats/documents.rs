//! What `--json` prints: each document of the day of the promise is a sample. A key may be added, so that a
//! present document has at least the keys of its sample, each with the same type. `report` is not promised.

use std::collections::BTreeMap;

use serde_json::Value;

use super::sample;
use crate::support::{Ending, Site, eventually, listing, log_of, started};

/// Each key by its path, with its type; the elements of a list are checked together.
fn shape(path: &str, value: &Value, found: &mut BTreeMap<String, Vec<&'static str>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    found.entry(path.to_owned()).or_default().push(kind);
    match value {
        Value::Array(elements) => {
            for element in elements {
                shape(&format!("{path}[]"), element, found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                shape(&format!("{path}.{name}"), field, found);
            }
        }
        _ => {}
    }
}

/// What of a sample is missing in a document, or has another type.
fn missing(sample: &Value, document: &Value) -> Vec<String> {
    let (mut expected, mut found) = (BTreeMap::new(), BTreeMap::new());
    shape("", sample, &mut expected);
    shape("", document, &mut found);
    let is_there = |path: &String, kind: &str| {
        found
            .get(path)
            .is_some_and(|kinds| kind == "null" || kinds.contains(&kind) || kinds.contains(&"null"))
    };
    let each = expected.iter().flat_map(|(path, kinds)| kinds.iter().map(move |kind| (path, kind)));
    each.filter(|(path, kind)| !is_there(path, kind)).map(|(path, kind)| format!("{path}: {kind}")).collect()
}

/// A moment is RFC 3339 in UTC with milliseconds.
fn check_moments(name: &str, value: &Value) {
    match value {
        Value::Array(elements) => {
            for element in elements {
                check_moments(name, element);
            }
        }
        Value::Object(fields) => {
            for field in fields.values() {
                check_moments(name, field);
            }
        }
        Value::String(text) if text.len() > 15 && text.ends_with('Z') && text.as_bytes()[10] == b'T' => {
            let point = text.len() - 5;
            assert_eq!((text.len(), &text[point..=point]), (24, "."), "{name}: {text}");
        }
        _ => {}
    }
}

const POLICY: &str = r#"
[repository.seats]
limit = 1
wait  = "1h"

[[rule]]
name     = "matlab"
commands = ["matlab"]
acquire  = ["seats"]
"#;

/// A policy with a fault; one whose test fails; and two that differ.
const FAULTY: &str = "version = 1\n[[rule]]\ncomands = [\"matlab\"]\nacquire = []\n";
const FAILING: &str =
    "version = 1\n[repository.a]\nlimit = 1\n[[test]]\nname = \"t\"\ncommand = \"x\"\nexpect = \"refuse\"\n";

/// Every document has what its sample has, and says its format.
#[test]
fn documents_keep_the_keys_of_their_samples() {
    let site = Site::with_policy(POLICY);
    site.program("matlab");
    site.write("work/faulty.toml", FAULTY);
    site.write("work/failing.toml", FAILING);
    site.write("work/given.toml", &format!("version = 1\n{POLICY}"));
    site.write("work/other.toml", &format!("version = 1\n{POLICY}").replace("limit = 1", "limit = 2"));
    log_of(&site, &[started(101), started(102)]);
    std::fs::create_dir(site.path("shims")).expect("a directory");
    site.test().args(["shim", "install", "$DIR/shims", "matlab"]).stdout("...\n").status(0);
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let _waits = site.test().args(["run", "-q", "--", "matlab"]).background();
    eventually("one waits", || listing(&site.test())[0]["waiting"][0].is_object().then_some(()));
    let documents: [(&str, &[&str], i32); 8] = [
        ("status", &["status", "--json"], 0),
        ("list", &["list", "--json"], 0),
        ("explain", &["explain", "--json", "--", "matlab"], 0),
        ("policy-check", &["policy", "check", "--json", "faulty.toml"], 1),
        ("policy-check-tests", &["policy", "check", "--json", "failing.toml"], 1),
        ("doctor", &["doctor", "--json", "policy"], 0),
        ("simulate", &["simulate", "--json", "given.toml", "log.jsonl"], 0),
        ("shim-list", &["shim", "list", "--json", "$DIR/shims"], 0),
    ];
    for (name, words, status) in documents {
        let outcome = site.test().args(words).outcome();
        let document: Value = serde_json::from_str(&outcome.stdout)
            .unwrap_or_else(|error| panic!("{name}: {error}: {outcome:?}"));
        let objects = document.as_array().cloned().unwrap_or_else(|| vec![document.clone()]);
        assert!(
            !objects.is_empty() && objects.iter().all(|object| object["format"] == 1),
            "{name}: {document:#}"
        );
        check_moments(name, &document);
        let sample: Value = serde_json::from_str(&sample(&format!("documents/{name}.json"))).expect("JSON");
        let missing = missing(&sample, &document);
        assert!(missing.is_empty(), "{name} has no longer {missing:#?}: {document:#}");
        assert_eq!(outcome.ending, Ending::Status(status), "{name}");
    }
}
