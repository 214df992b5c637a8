//! JSON for scripts that is also safe to look at: what a terminal would obey is escaped, which is the same
//! text to whoever parses it.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::escape::is_unsafe;

/// Indented, with a newline at the end.
pub(crate) fn render(value: &Value) -> String {
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

/// Only strings can hold such characters, newlines of the layout aside, and in a string an escape may stand
/// for them.
fn escaped(json: &str) -> Cow<'_, str> {
    // Mostly there is none, which is seen quickly where all of it is ASCII.
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

    use super::*;

    #[test]
    fn what_is_escaped_reads_back_the_same() {
        let value = json!({ "command": "a\u{1b}[31m\u{9b}\u{7f}\u{202e}\n\u{e0041}ü" });
        let text = render(&value);
        assert_eq!(text, "{\n  \"command\": \"a\\u001b[31m\\u009b\\u007f\\u202e\\n\\udb40\\udc41ü\"\n}\n");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("it is JSON"), value);
        assert_eq!(
            line(&value).expect("it is plain data"),
            "{\"command\":\"a\\u001b[31m\\u009b\\u007f\\u202e\\n\\udb40\\udc41ü\"}"
        );
    }
}
