//! The JSON Schema of policies, for editors that complete and check TOML. It is written from the table of
//! keys that the reader uses, so that both know the same keys.

use std::ptr;

use serde_json::{Map, Value, json};

use super::{
    DELEGATE, FILE, HIGHEST_LIMIT, Key, Keys, LogTarget, Placeholder, REPOSITORY, RULE, SELECTORS, Shape,
    Together,
};

/// The schema of a policy file.
pub fn schema() -> Value {
    let mut schema = table(&FILE);
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["$comment"] = "made by: rungate policy schema".into();
    schema["title"] = "rungate policy".into();
    schema
}

fn table(keys: &Keys) -> Value {
    let property = |key: &Key| {
        let mut property = shape(key.shape);
        if key.is_filled {
            fill(&mut property);
        }
        property["description"] = format!("{} Needed by: {}", key.about, key.needed_by).into();
        (key.name.to_owned(), property)
    };
    let properties: Map<String, Value> = keys.iter().map(property).collect();
    let mut table = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    let required: Vec<&str> = keys.required().collect();
    if !required.is_empty() {
        table["required"] = required.into();
    }
    let needs: Map<String, Value> = keys
        .together
        .iter()
        .filter_map(|together| match together {
            Together::Needs(key, other) => Some(((*key).to_owned(), json!([other]))),
            _ => None,
        })
        .collect();
    if !needs.is_empty() {
        table["dependencies"] = needs.into();
    }
    let others: Vec<Value> = keys
        .together
        .iter()
        .filter_map(|together| match together {
            Together::Needs(..) | Together::Must(_) => None,
            Together::Either(one, other) => Some(json!({ "not": { "required": [one, other] } })),
            Together::Some(one, other) => {
                Some(json!({ "anyOf": [{ "required": [one] }, { "required": [other] }] }))
            }
            Together::One(one, other) => {
                Some(json!({ "oneOf": [{ "required": [one] }, { "required": [other] }] }))
            }
        })
        .collect();
    if !others.is_empty() {
        table["allOf"] = others.into();
    }
    table
}

/// A list, or names, without entries are allowed nowhere.
fn fill(shape: &mut Value) {
    if shape["type"] == "array" {
        shape["minItems"] = 1.into();
    }
    if shape["type"] == "object" && shape.get("properties").is_none() {
        shape["minProperties"] = 1.into();
    }
    for alternative in shape.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten() {
        fill(alternative);
    }
}

/// A rule must have an effect: it acquires slots, or has another action.
fn rule(keys: &Keys) -> Value {
    let mut rule = table(keys);
    rule["anyOf"] = json!([
        { "required": ["acquire"], "properties": { "action": { "enum": ["limit", "count"] } } },
        { "required": ["action"], "properties": { "action": { "enum": ["deny", "exempt"] }, "acquire": false } },
    ]);
    rule
}

/// An exception must have a selector.
fn exception(keys: &Keys) -> Value {
    let mut exception = table(keys);
    exception["minProperties"] = 1.into();
    exception
}

/// A limit for some members only.
fn limit_of_some(keys: &Keys) -> Value {
    let mut limit = table(keys);
    limit["minProperties"] = 2.into();
    limit
}

fn shape(shape: Shape) -> Value {
    let texts = || list(&text());
    let texts_or_numbers = || list(&one_of(&[text(), number(0, i64::from(u32::MAX) - 1)]));
    match shape {
        Shape::Text => text(),
        Shape::Time => json!({ "type": "string", "description": "2026-11-20 14:02" }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Number { least, most } => number(least, most),
        Shape::Duration => duration(),
        Shape::Wait => one_of(&[duration(), json!({ "const": "forever" })]),
        Shape::Limit => limit(),
        Shape::Slots { least } => one_of(&[number(least, HIGHEST_LIMIT.into()), json!({ "const": "all" })]),
        Shape::Mode => pattern("^(0o)?[0-7]{3,}$"),
        Shape::OneOf(words) => json!({ "enum": words() }),
        Shape::Per(words) => {
            let taken = Placeholder::names().collect::<Vec<_>>().join("|");
            let capture = format!("^\\{{(?!({taken}|arg[1-9])\\}})[A-Za-z_][A-Za-z0-9_-]*\\}}$");
            let by = [json!({ "enum": words() }), pattern(&capture)];
            one_of(&[by[0].clone(), by[1].clone(), list(&one_of(&by))])
        }
        Shape::LogTarget => one_of(&[json!({ "enum": LogTarget::WORDS }), pattern("^/")]),
        Shape::Texts => texts(),
        Shape::TextOrNumber => one_of(&[text(), number(0, i64::from(u32::MAX) - 1)]),
        Shape::TextsOrNumbers => texts_or_numbers(),
        Shape::TextsOrLists => list(&one_of(&[text(), texts()])),
        Shape::Arguments(keys) => one_of(&[self::shape(Shape::TextsOrLists), table(keys)]),
        Shape::TextByName => by_name(&text()),
        Shape::TextsOrTextsByName => {
            let names = json!({ "type": "array", "items": text(), "minItems": 1 });
            one_of(&[names.clone(), by_name(&names)])
        }
        Shape::TextsOrNumbersByName => by_name(&texts_or_numbers()),
        Shape::Limits(keys) => one_of(&[by_name(&limit()), list(&limit_of_some(keys))]),
        Shape::Share { least } => {
            one_of(&[number(least, HIGHEST_LIMIT.into()), pattern("^([1-9][0-9]?|100)%$")])
        }
        Shape::TextOrTexts => one_of(&[text(), texts()]),
        Shape::SlotsByNumber => {
            let mut slots = by_name(&number(1, HIGHEST_LIMIT.into()));
            slots["propertyNames"] = json!({ "pattern": "^[1-9][0-9]*$" });
            slots
        }
        Shape::UsersByName { most, keys } => by_name(&one_of(&[number(0, most), list(&table(keys))])),
        Shape::Environment => by_name(&one_of(&[texts(), json!({ "type": "boolean" })])),
        Shape::Claims(keys) | Shape::Expected(keys) => list(&one_of(&[text(), table(keys)])),
        Shape::Alternatives(keys) => {
            let claim = || one_of(&[text(), table(keys)]);
            let mut together = list(&claim());
            fill(&mut together);
            list(&one_of(&[text(), table(keys), together]))
        }
        Shape::Table(keys) => table(keys),
        Shape::Tables(keys) if ptr::eq(keys, &raw const RULE) => list(&rule(keys)),
        Shape::Tables(keys) if ptr::eq(keys, &raw const SELECTORS) => list(&exception(keys)),
        Shape::Tables(keys) => list(&table(keys)),
        Shape::TableByName(keys) if ptr::eq(keys, &raw const REPOSITORY) => {
            let mut repositories = by_name(&table(keys));
            repositories["propertyNames"] = json!({ "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]*$" });
            repositories
        }
        Shape::TableByName(keys) if ptr::eq(keys, &raw const DELEGATE) => {
            let mut delegations = by_name(&table(keys));
            delegations["propertyNames"] = json!({ "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]*\\.toml$" });
            delegations
        }
        Shape::TableByName(keys) => by_name(&table(keys)),
    }
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

fn duration() -> Value {
    pattern("^\\s*([0-9]+(w|d|h|m|s|ms)\\s*)+$")
}

fn limit() -> Value {
    one_of(&[number(0, HIGHEST_LIMIT.into()), pattern("^[0-9]+\\s*/cpu$")])
}

fn number(least: i64, most: i64) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most })
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn by_name(values: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": values })
}

fn one_of(shapes: &[Value]) -> Value {
    json!({ "anyOf": shapes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_of_the_language_is_there_with_its_keys() {
        let schema = schema();
        let rule = &schema["properties"]["rule"]["items"]["properties"];
        assert_eq!(rule["hold"]["enum"], json!(["process", "descriptor", "supervisor", "tree"]));
        assert_eq!(rule["except"]["items"]["properties"]["users"]["type"], "array");
        let repository = &schema["properties"]["repository"]["additionalProperties"]["properties"];
        assert_eq!(repository["limit"]["anyOf"][0]["maximum"], 1_048_575);
        assert!(repository["limit"]["description"].is_string());
    }
}
