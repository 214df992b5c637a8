//! JSON for scripts that is also safe to look at: whatever a terminal would obey is escaped, which is the same text to whoever
//! parses it.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::borrow::Cow;

use serde_json::Value;

use crate::output::visible::obeys;

/// Indented, with a newline at the end.
pub fn render(value: &Value) -> String {
    escaped(&format!("{value:#}\n")).into_owned()
}

/// JSON with every character escaped that a terminal would obey. Only strings can hold such characters, newlines of the layout
/// aside, and in a string an escape may stand for them.
pub fn escaped(json: &str) -> Cow<'_, str> {
    // Mostly there is none, which is seen quickly where all of it is ASCII.
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if obeys(character) && character != '\n' {
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
        let value = json!({ "command": "a\u{1b}[31m\u{9b}\u{7f}\u{202e}\nb" });
        let text = render(&value);
        assert_eq!(text, "{\n  \"command\": \"a\\u001b[31m\\u009b\\u007f\\u202e\\nb\"\n}\n");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("it is JSON"), value);
    }
}
