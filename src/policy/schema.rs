//! The JSON Schema of a policy, for editors that complete and check TOML. It is written from the table of keys that the
//! reader uses, so that the two cannot differ in what they know.

use serde_json::{Map, Value, json};

use super::{
    keys::{FILE, Keys, Shape},
    limit::HIGHEST_LIMIT,
    log::LogTarget,
};

/// The schema of a policy file.
pub fn schema() -> Value {
    let mut schema = table(&FILE);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "rungate policy".into();
    schema
}

fn table(keys: &Keys) -> Value {
    let property = |key: &super::keys::Key| {
        let mut property = shape(key.shape);
        property["description"] = key.about.into();
        (key.name.to_owned(), property)
    };
    let properties: Map<String, Value> = keys.iter().map(property).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn shape(shape: Shape) -> Value {
    let texts = || list(&text());
    let texts_or_numbers = || list(&one_of(&[text(), number(0, i64::from(u32::MAX))]));
    match shape {
        Shape::Text => text(),
        Shape::Time => json!({ "type": "string", "description": "2026-11-20 14:02" }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Number { least, most } => number(least, most),
        Shape::Duration => duration(),
        Shape::Wait => one_of(&[duration(), json!({ "const": "forever" })]),
        Shape::Limit => limit(),
        Shape::Slots => one_of(&[number(1, HIGHEST_LIMIT.into()), json!({ "const": "all" })]),
        Shape::Mode => pattern("^(0o)?[0-7]{3,}$"),
        Shape::OneOf(words) => json!({ "enum": words() }),
        Shape::SomeOf(words) => one_of(&[json!({ "enum": words() }), list(&json!({ "enum": words() }))]),
        Shape::LogTarget => one_of(&[json!({ "enum": LogTarget::WORDS }), pattern("^/")]),
        Shape::Texts => texts(),
        Shape::TextsOrNumbers => texts_or_numbers(),
        Shape::TextsOrLists => list(&one_of(&[text(), texts()])),
        Shape::TextByName => by_name(&text()),
        Shape::TextsOrNumbersByName => by_name(&texts_or_numbers()),
        Shape::LimitByName => by_name(&limit()),
        Shape::NumberByName => by_name(&number(0, HIGHEST_LIMIT.into())),
        Shape::Environment => by_name(&one_of(&[texts(), json!({ "type": "boolean" })])),
        Shape::Claims(keys) | Shape::Expected(keys) => list(&one_of(&[text(), table(keys)])),
        Shape::Table(keys) => table(keys),
        Shape::Tables(keys) => list(&table(keys)),
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
