//! Text of a TOML file, written key by key in the order that reads best, which no serializer of maps keeps.

use std::fmt::{Display, Write};

/// A document that grows.
#[derive(Default)]
pub(super) struct Document {
    text: String,
}

impl Document {
    /// Begins a table: `[name]`, or `[[name]]`.
    pub(super) fn table(&mut self, header: &str) {
        self.text.extend(["\n", header, "\n"]);
    }

    /// Sets a key to a value that is already TOML.
    pub(super) fn set(&mut self, key: &str, value: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{key} = {value}");
    }

    /// Sets a key where there is a value.
    pub(super) fn set_some(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// A string in double quotes, on one line whatever it holds.
pub(super) fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            other if other.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(other));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A key, in quotes where it needs them.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
