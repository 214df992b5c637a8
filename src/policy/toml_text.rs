//! Text of a TOML file, written key by key in the most readable order, which serializers of maps do not keep.
//! Text that was written here can be read back.

use std::fmt::{self, Display, Write};

use crate::text::is_unsafe;

/// The keys of a table, in their order, with values that are TOML.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Table {
    keys: Vec<(&'static str, String)>,
}

impl Table {
    /// Sets a key to a value that is already TOML.
    pub(super) fn set(&mut self, key: &'static str, value: impl Display) {
        self.keys.push((key, value.to_string()));
    }

    /// Sets a key if there is a value.
    pub(super) fn set_some(&mut self, key: &'static str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// The keys that were set.
    pub(super) fn keys(&self) -> &[(&'static str, String)] {
        &self.keys
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.keys.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str())
    }
}

impl Display for Table {
    /// A line for each key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.keys.iter().try_for_each(|(key, value)| writeln!(f, "{key} = {value}"))
    }
}

/// A string in double quotes, always on one line.
pub(super) fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            other if is_unsafe(other) => {
                let _ = write!(quoted, "\\U{:08X}", u32::from(other));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A key, in quotes if necessary.
pub(super) fn key(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { string(name) }
}

/// A list of values that are already TOML.
pub(super) fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(", "))
}

/// A table on one line, of values that are already TOML.
pub(super) fn inline_table<K: AsRef<str>>(keys: impl IntoIterator<Item = (K, String)>) -> String {
    let keys: Vec<String> =
        keys.into_iter().map(|(key, value)| format!("{} = {value}", key.as_ref())).collect();
    if keys.is_empty() { "{}".into() } else { format!("{{ {} }}", keys.join(", ")) }
}

/// The values of a list as [`list`] writes it; `None` where it is no list.
pub(super) fn elements(value: &str) -> Option<Vec<&str>> {
    Some(parts(value.strip_prefix('[')?.strip_suffix(']')?, ','))
}

/// The keys and values of a table as [`inline_table`] writes it; `None` where it is no table.
pub(super) fn entries(value: &str) -> Option<Vec<(&str, &str)>> {
    let entry = |entry| match parts(entry, '=')[..] {
        [key, value] => Some((key, value)),
        _ => None,
    };
    parts(value.strip_prefix('{')?.strip_suffix('}')?, ',').into_iter().map(entry).collect()
}

/// The parts between separators that are in no string, no list and no table.
fn parts(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let is_between = |character: char| {
        let is_plain = !quoted && depth == 0;
        match character {
            '\\' if quoted && !escaped => {
                escaped = true;
                return false;
            }
            '"' if !escaped => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        escaped = false;
        is_plain && character == separator
    };
    let parts: Vec<&str> = text.split(is_between).map(str::trim).collect();
    if parts == [""] { Vec::new() } else { parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn apart(values: &[&str]) {
        let text = list(values.iter().map(|value| (*value).to_owned()));
        assert_eq!(elements(&text).as_deref(), Some(values), "{text}");
        let table = inline_table(values.iter().map(|value| (key(value), (*value).to_owned())));
        let keys: Vec<String> = values.iter().map(|value| key(value)).collect();
        let expected: Vec<(&str, &str)> =
            keys.iter().map(String::as_str).zip(values.iter().copied()).collect();
        assert_eq!(entries(&table), Some(expected), "{table}");
    }

    #[test]
    fn what_was_put_together_comes_apart() {
        apart(&[]);
        apart(&["1"]);
        apart(&["\"[\"", "\"{\"", "\"}\"", "2"]);
        apart(&["1", "\"a, b = c\"", "{ x = [1, 2], y = \"]\" }", "[[\"\\\\\"], \"\\\"\"]", "true"]);
        assert_eq!((elements("1"), entries("[1]")), (None, None));
    }

    #[track_caller]
    fn case(text: &str) {
        let document = format!("{} = {}", key(text), string(text));
        let table: toml::Table = document.parse().expect("a document");
        assert_eq!(table.get(text).and_then(toml::Value::as_str), Some(text));
    }

    #[test]
    fn every_string_and_every_key_reads_back_as_it_was() {
        case("plain");
        case("");
        case("a.b");
        case("say \"x\" \\ 'y'");
        case("line\nline\ttab\r\u{1b}\u{7f}\u{85}");
        case("ünï ☃");
        case("\u{9b}31m\u{202e}\u{e0041}");
        assert_eq!(string("\u{9b}\u{e0041}"), "\"\\U0000009B\\U000E0041\"");
    }
}
