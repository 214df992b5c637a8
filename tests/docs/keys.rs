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

/// What a pattern of the schema means to a reader.
const MEANINGS: [(&str, &str); 7] = [
    ("(w|d|h|m|s|ms)", "duration"),
    ("/cpu", "N/cpu"),
    ("100)%", "share"),
    ("[0-7]{3,}", "mode"),
    ("^/", "/path"),
    ("\\{", "{capture}"),
    ("", "string"),
];

/// The values that a key takes, in a few words.
fn values(schema: &Value) -> BTreeSet<String> {
    let inner = |key: &str| schema.get(key).map(values).unwrap_or_default();
    let joined = |values: BTreeSet<String>| values.into_iter().collect::<Vec<String>>().join(" | ");
    if let Some(alternatives) = schema["anyOf"].as_array() {
        return alternatives.iter().flat_map(values).collect();
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(ToString::to_string).collect();
    }
    if let Some(word) = schema.get("const") {
        return [word.to_string()].into();
    }
    let value = match schema["type"].as_str() {
        Some("boolean") => "true | false".to_owned(),
        Some("integer") => "number".to_owned(),
        Some("array") if schema["items"]["properties"].is_object() => "list of tables".to_owned(),
        Some("array") => {
            let inner = joined(inner("items"));
            if inner.contains('|') { format!("list of ({inner})") } else { format!("list of {inner}") }
        }
        Some("object") => "table".to_owned(),
        _ => {
            let pattern = schema["pattern"].as_str().unwrap_or_default();
            let meaning = MEANINGS.iter().find(|(part, _)| pattern.contains(part));
            meaning.expect("the last one is in every pattern").1.to_owned()
        }
    };
    [value].into()
}

/// What keeps mandoc from taking a bracket for punctuation.
const NO_PUNCTUATION: &str = "\\&";

/// The keys of one table and of those below it. A table with the same keys as one before is left out.
fn tables(title: &str, schema: &Value, seen: &mut BTreeSet<String>, page: &mut String) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    // Conditions of the schema have properties without a description.
    let is_table = properties.values().all(|key| key["description"].is_string());
    if !is_table || !seen.insert(names.join(" ")) {
        return;
    }
    let required = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|required| required.iter().any(|key| key == name))
    };
    let widest = names.iter().max_by_key(|name| name.len()).expect("a table has keys");
    let _ =
        writeln!(page, ".Pp\n.Sy {title}{NO_PUNCTUATION}\n.Bl -column \"{widest}\" -offset indent -compact");
    let mut below = String::new();
    for (name, key) in properties {
        let description = key["description"].as_str().expect("each key has a description");
        assert!(description.contains(" Needed by: "), "{name} says who needs it");
        let values: Vec<String> = values(key).into_iter().collect();
        let values = values.join(" | ").replace('"', "\\(dq").replace(')', &format!("){NO_PUNCTUATION}"));
        let needed = if required(name) { ", required" } else { "" };
        let _ = writeln!(page, ".It Cm {name} Ta {values}{needed}");
        inner(title, name, key, seen, &mut below);
    }
    *page += ".El\n";
    *page += &below;
}

/// The tables that a key has as its value.
fn inner(title: &str, name: &str, key: &Value, seen: &mut BTreeSet<String>, page: &mut String) {
    let title = match (title.starts_with('T'), key["type"].as_str()) {
        (true, Some("array")) => format!("[[{name}]]"),
        (true, _) if key["additionalProperties"]["properties"].is_object() => format!("[{name}.NAME]"),
        (true, _) => format!("[{name}]"),
        (false, _) => format!("A table of {name}, in {title}"),
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

#[test]
fn the_list_of_keys_in_the_manual_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/rungate-policy.5");
    let page = fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("the beginning of the list");
    let (_, after) = rest.split_once(END).expect("the end of the list");
    let mut list = String::new();
    tables("The file", &rungate::policy::schema(), &mut BTreeSet::new(), &mut list);
    assert!(list.matches("\n.It Cm ").count() > 80, "{list}");
    let page = format!("{before}{BEGIN}{list}{END}{after}");
    snapshot::compare([(path, page)]);
}
