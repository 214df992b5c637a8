//! Untrusted text on a terminal. Names of users, hosts and commands, and all arguments, may hold anything: what moves the
//! cursor, starts a line or turns the direction of writing is shown as an escape instead.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{ffi::OsStr, path::Path};

/// Text with every character escaped that a terminal would obey instead of showing. Bytes that are no UTF-8 become `\xNN`.
pub fn visible(text: impl AsRef<OsStr>) -> String {
    let mut shown = String::new();
    for chunk in text.as_ref().as_encoded_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            if obeys(character) {
                shown.extend(character.escape_default());
            } else {
                shown.push(character);
            }
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}

/// A path, the same way.
pub fn visible_path(path: &Path) -> String {
    visible(path.as_os_str())
}

/// A control character, or one of those that turn the direction of writing or take no room.
pub(super) fn obeys(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[track_caller]
    fn case(bytes: &[u8], shown: &str) {
        assert_eq!(visible(OsStr::from_bytes(bytes)), shown);
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        case(b"matlab", "matlab");
        case("größe µ".as_bytes(), "größe µ");
        case(b"a\nb\tc", "a\\nb\\tc");
        case(b"\x1b[31mred", "\\u{1b}[31mred");
        case("\u{202e}abc\u{9b}2J".as_bytes(), "\\u{202e}abc\\u{9b}2J");
        case(b"\xff\xfe", "\\xff\\xfe");
    }
}
