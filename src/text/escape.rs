//! Escapes text of other users, so that it is safe to show. Names of users, groups, hosts, files, commands
//! and processes, and all arguments, may hold anything. Control characters and invisible ones are shown as
//! escapes. The code that builds a message escapes each part that it did not write itself; the code that
//! prints does nothing.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    ffi::OsStr,
    fmt::{self, Write as _},
};

/// Text, a path or a name of the system for people, as `path.shown()` in a message.
pub trait Show {
    /// The same text with escapes, which are produced only when it is written.
    fn shown(&self) -> Shown<'_>;
}

impl<T: AsRef<OsStr> + ?Sized> Show for T {
    fn shown(&self) -> Shown<'_> {
        Shown(self.as_ref().as_encoded_bytes())
    }
}

/// Text that is escaped while it is written. Bytes that are no UTF-8 become `\xNN`.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if is_unsafe(character) {
                    write!(f, "{}", character.escape_default())?;
                } else {
                    f.write_char(character)?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// [`Show::shown`] as a string of its own, for the cells of tables.
pub fn visible(text: impl AsRef<OsStr>) -> String {
    text.shown().to_string()
}

/// One word of a command line to paste: escaped, and quoted for a shell.
pub fn word(text: impl AsRef<OsStr>) -> String {
    let text = visible(text);
    let is_plain = |character: char| character.is_alphanumeric() || "%+,-./:=@_".contains(character);
    if !text.is_empty() && text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// A text of several lines: line breaks stay, everything else is escaped.
pub fn visible_lines(text: &str) -> String {
    text.lines().map(visible).collect::<Vec<_>>().join("\n")
}

/// Whether a character is shown as an escape. These are control characters (also U+0080 to U+009F, which
/// terminals treat like ESC), line separators, changes of direction, and invisible or zero-width characters.
pub fn is_unsafe(character: char) -> bool {
    // Called for every character, and most text is plain.
    if matches!(character, ' '..='~') {
        return false;
    }
    character.is_control()
        || matches!(character,
            // Soft hyphen, grapheme joiner, Arabic letter mark, and invisible fillers and inherent vowels.
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            // Spaces without width, marks, embeddings, overrides and isolates of direction, separators,
            // joiners.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            // Formats of shorthand and music, tags, and variants.
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use crate::text::escape::*;

    #[track_caller]
    fn case(bytes: &[u8], shown: &str) {
        assert_eq!(OsStr::from_bytes(bytes).shown().to_string(), shown);
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        case(b"matlab", "matlab");
        case("größe µ 数".as_bytes(), "größe µ 数");
        case(b"a\nb\tc", "a\\nb\\tc");
        case(b"\x1b[31mred", "\\u{1b}[31mred");
        case("\u{9b}2J\u{85}".as_bytes(), "\\u{9b}2J\\u{85}");
        case(b"a\xff\xfe\xc3", "a\\xff\\xfe\\xc3");
    }

    #[test]
    fn what_nobody_sees_or_reads_the_wrong_way_round_is_escaped() {
        for hidden in [
            '\u{61c}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2069}',
            '\u{206a}',
            '\u{ad}',
            '\u{feff}',
            '\u{e0041}',
            '\u{e0100}',
        ] {
            let text = format!("a{hidden}b");
            case(text.as_bytes(), &format!("a\\u{{{:x}}}b", u32::from(hidden)));
        }
    }

    #[test]
    fn lines_stay_apart() {
        assert_eq!(visible_lines("a\u{1b}\nb\r\n"), "a\\u{1b}\nb");
    }
}
