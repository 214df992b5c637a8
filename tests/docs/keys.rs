//! The list of all keys in rungate-policy(5) is written from the table of keys of the code, by way of the schema.
//! `RUNGATE_SNAPSHOTS=write cargo test --test tests docs::keys` renews it. The sections before it are written by hand.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::snapshot;

const BEGIN: &str = ".\\\" Begin of the keys, written by a test; see tests/docs/keys.rs.\n";
const END: &str = ".\\\" End of the keys.\n";

/// The longest line of the page.
const WIDTH: usize = 78;

/// The keys of one table and of those below it. A table whose keys are all keys of one before is left out.
fn tables(title: &str, schema: &Value, seen: &mut Vec<BTreeSet<String>>, page: &mut String) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let names: BTreeSet<String> = properties.keys().cloned().collect();
    // Conditions of the schema have properties without a description.
    let is_table = properties.values().all(|key| key["description"].is_string());
    if !is_table || seen.iter().any(|before| names.is_subset(before)) {
        return;
    }
    for (name, key) in properties {
        let description = key["description"].as_str().expect("each key has a description");
        assert!(description.contains(" Needed by: "), "{name} says who needs it");
    }
    let mut lines = vec![".Cm".to_owned()];
    for name in &names {
        let last = lines.last_mut().expect("a first line");
        if last.len() + name.len() + 3 > WIDTH {
            last.push_str(" ,");
            lines.push(format!(".Cm {name}"));
        } else {
            last.push_str(if last == ".Cm" { " " } else { " , " });
            last.push_str(name);
        }
    }
    let _ = writeln!(page, ".It Li {title}\n{}", lines.join("\n"));
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !required.is_empty() {
        let _ = writeln!(page, "(required: {})", required.join(", "));
    }
    seen.push(names);
    for (name, key) in properties {
        inner(title, name, key, seen, page);
    }
}

/// The tables that a key has as its value.
fn inner(title: &str, name: &str, key: &Value, seen: &mut Vec<BTreeSet<String>>, page: &mut String) {
    let title = match (title == FILE, key["type"].as_str()) {
        (true, Some("array")) => format!("[[{name}]]"),
        (true, _) if key["additionalProperties"]["properties"].is_object() => format!("[{name}.NAME]"),
        (true, _) => format!("[{name}]"),
        (false, _) => format!("{name} in {title}"),
    };
    tables(&title, key, seen, page);
    for part in ["items", "additionalProperties"] {
        tables(&title, &key[part], seen, page);
        for alternative in key[part]["anyOf"].as_array().into_iter().flatten() {
            tables(&title, alternative, seen, page);
            tables(&title, &alternative["items"], seen, page);
        }
    }
    for alternative in key["anyOf"].as_array().into_iter().flatten() {
        tables(&title, alternative, seen, page);
        tables(&title, &alternative["items"], seen, page);
    }
}

/// The title of the outermost table.
const FILE: &str = "file";

#[test]
fn the_list_of_keys_in_the_manual_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/rungate-policy.5");
    let page = fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("the beginning of the list");
    let (_, after) = rest.split_once(END).expect("the end of the list");
    let (mut seen, mut list) = (Vec::new(), String::new());
    tables(FILE, &rungate::policy::schema(), &mut seen, &mut list);
    assert!(seen.iter().map(BTreeSet::len).sum::<usize>() > 80, "{list}");
    let page = format!("{before}{BEGIN}.Bl -hang -width 2n -compact\n{list}.El\n{END}{after}");
    snapshot::compare([(path, page)]);
}
