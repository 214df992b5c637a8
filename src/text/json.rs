//! JSON for scripts that is also safe to show: characters that a terminal obeys are escaped, which a parser
//! reads as the same text.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::borrow::Cow;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::escape::is_unsafe;

/// The format of all JSON that rungate writes: `--json`, lines of the log, records in etcd, files of the
/// agent. It changes when a reader of the version before would misread something. It does not change for a
/// new field, because every reader ignores unknown fields.
pub(crate) const FORMAT: u8 = 1;

/// Whether this version may read what has this format: its own, older ones, and the next one.
pub(crate) fn is_readable(format: u8) -> bool {
    format <= FORMAT.saturating_add(1)
}

/// A value with its format in front.
#[derive(Serialize)]
pub(crate) struct Numbered<'a, T> {
    format: u8,
    #[serde(flatten)]
    value: &'a T,
}

impl<'a, T> Numbered<'a, T> {
    pub(crate) fn of(value: &'a T) -> Self {
        Self { format: FORMAT, value }
    }
}

/// The format of an object, whatever else is in it; 0 where it has none.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: u8,
}

/// The format of a value that could not be read. None if it is not an object.
pub(crate) fn format_of(json: &[u8]) -> Option<u8> {
    serde_json::from_slice::<Head>(json).ok().map(|head| head.format)
}

/// Reads a value of a format that this version may read. Unknown fields are ignored.
pub(crate) fn read<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    format_of(json).filter(|format| is_readable(*format)).and_then(|_| serde_json::from_slice(json).ok())
}

/// A document for scripts: indented, with a newline at the end. The object says its format; of a list each
/// element does.
pub(crate) fn render(value: &Value) -> String {
    let mut value = value.clone();
    let objects = match &mut value {
        Value::Array(objects) => objects.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    for object in objects.iter_mut().filter_map(Value::as_object_mut) {
        object.insert("format".to_owned(), FORMAT.into());
    }
    plain(&value)
}

/// The same without a format, for JSON whose format others define.
pub(crate) fn plain(value: &Value) -> String {
    escaped(&format!("{value:#}\n")).into_owned()
}

/// On one line, without its newline.
pub(crate) fn line(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(value)?;
    Ok(match escaped(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    })
}

/// Only strings can hold such characters, apart from newlines of the layout, and in a string an escape may
/// replace them.
fn escaped(json: &str) -> Cow<'_, str> {
    // Mostly there is none; for ASCII text this check is fast.
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if is_unsafe(character) && character != '\n' {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(character);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::text::json::*;

    #[test]
    fn what_is_escaped_reads_back_the_same() {
        let value = json!({ "command": "a\u{1b}[31m\u{9b}\u{7f}\u{202e}\n\u{e0041}ü" });
        let text = plain(&value);
        assert_eq!(text, "{\n  \"command\": \"a\\u001b[31m\\u009b\\u007f\\u202e\\n\\udb40\\udc41ü\"\n}\n");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("it is JSON"), value);
        assert_eq!(
            line(&value).expect("it is plain data"),
            "{\"command\":\"a\\u001b[31m\\u009b\\u007f\\u202e\\n\\udb40\\udc41ü\"}"
        );
    }
    #[test]
    fn every_document_says_its_format_and_a_list_in_each_element() {
        assert_eq!(render(&json!({ "a": 1 })), "{\n  \"a\": 1,\n  \"format\": 1\n}\n");
        assert_eq!(render(&json!([{}])), "[\n  {\n    \"format\": 1\n  }\n]\n");
        assert_eq!(render(&json!([])), "[]\n");
    }

    #[test]
    fn the_next_format_is_read_and_the_one_after_it_is_not() {
        #[derive(Debug, Deserialize, PartialEq)]
        struct Known {
            known: u8,
        }
        for (text, expected) in [
            (r#"{"known":7}"#, Some(Known { known: 7 })),
            (r#"{"format":1,"known":7}"#, Some(Known { known: 7 })),
            (r#"{"format":2,"known":7,"new":[1]}"#, Some(Known { known: 7 })),
            (r#"{"format":3,"known":7}"#, None),
            (r#"{"format":1}"#, None),
            ("7", None),
        ] {
            assert_eq!(read(text.as_bytes()), expected, "{text}");
        }
    }
}
