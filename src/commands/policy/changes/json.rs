//! What differs between two policies, for scripts.

use serde_json::{Map, Value, json};

use crate::{
    escape::visible,
    policy::{Change, Difference, KeyChange, LayerKind},
    terms::place::Place,
};

/// Every change, with whole values before and after.
pub(in crate::commands::policy) fn to_json(difference: &Difference) -> Value {
    Value::Array(difference.changes().iter().map(change).collect())
}

fn change(change: &Change) -> Value {
    let Change { kind, turn, name, former_name, layer, old_place, new_place, keys } = change;
    let of_layer = match layer.kind {
        LayerKind::System => "system",
        LayerKind::Delegated => "delegated",
        LayerKind::Given => "given",
        LayerKind::Own => "own",
    };
    let keys: Map<String, Value> = keys.iter().map(key).collect();
    json!({
        "change": turn.word(),
        "kind": kind.word(),
        "name": Some(name).filter(|name| !name.is_empty()),
        "former_name": former_name,
        "layer": of_layer,
        "file": layer.file,
        "old": old_place.as_ref().map(place),
        "new": new_place.as_ref().map(place),
        "keys": keys,
    })
}

fn place(place: &Place) -> Value {
    json!({ "path": visible(place.path()), "line": place.line() })
}

fn key(change: &KeyChange) -> (String, Value) {
    let KeyChange { key, old, new } = change;
    ((*key).to_owned(), json!({ "old": old.as_deref().map(value), "new": new.as_deref().map(value) }))
}

/// What was printed as TOML reads back as it.
fn value(printed: &str) -> Value {
    let document: Option<Value> = toml::from_str(&format!("value = {printed}")).ok();
    document.and_then(|mut document| document.get_mut("value").map(Value::take)).unwrap_or_default()
}
