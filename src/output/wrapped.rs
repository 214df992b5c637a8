//! A long line of a message on a terminal, broken between its words. What readers are to copy stays in one
//! piece, because the terminal knows where it breaks a line itself and leaves that out of what is copied.

use crate::{output::columns::width, sys::terminal};

/// What further lines begin with.
const INDENT: &str = "  ";

/// A message whose first line is broken where standard error is a terminal with fewer columns.
pub(crate) fn fitted(text: &str) -> String {
    terminal::error_columns().map_or_else(|| text.to_owned(), |columns| wrapped(text, usize::from(columns)))
}

fn wrapped(text: &str, columns: usize) -> String {
    let (first, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    let mut lines = vec![String::new()];
    for unit in units(first) {
        let Some(line) = lines.last_mut() else { continue };
        if line.trim().is_empty() {
            line.push_str(unit);
        } else if width(line) + 1 + width(unit) <= columns {
            line.extend([" ", unit]);
        } else {
            lines.push(format!("{INDENT}{unit}"));
        }
    }
    lines.join("\n") + rest
}

/// What stays in one line: words, strings, lists and tables, a key with its value, and commands.
fn units(line: &str) -> Vec<&str> {
    let mut units = Vec::new();
    let (mut begin, mut quoted, mut depth, mut in_command) = (0, false, 0_u32, false);
    let has_pairs = line.matches('"').count().is_multiple_of(2);
    let has_ends = line.matches(['[', '{']).count() == line.matches([']', '}']).count();
    for (at, character) in line.char_indices() {
        let (before, after) = (&line[..at], &line[at..]);
        match character {
            '"' if has_pairs && !before.ends_with('\\') => quoted = !quoted,
            '[' | '{' if has_ends && !quoted => depth += 1,
            ']' | '}' if has_ends && !quoted => depth = depth.saturating_sub(1),
            ' ' => {
                in_command &= !before.ends_with([',', ';', '.', ':']);
                let is_of_key = before.ends_with('=') || after.starts_with(" = ");
                if !quoted && depth == 0 && !in_command && !is_of_key {
                    units.push(&line[begin..at]);
                    begin = at + 1;
                }
                in_command |= COMMANDS.iter().any(|command| after[1..].starts_with(command));
            }
            _ => {}
        }
    }
    units.push(&line[begin..]);
    units
}

/// What commands that a message suggests begin with.
const COMMANDS: &[&str] = &["rungate ", "chmod ", "chown ", "mv ", "rm "];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(text: &str, columns: usize, expected: &str) {
        assert_eq!(wrapped(text, columns), expected);
        assert_eq!(expected.replace("\n  ", " "), text, "nothing is lost");
    }

    #[test]
    fn words_stay_whole() {
        case("/p:1:1: what is wrong [code]", 80, "/p:1:1: what is wrong [code]");
        case("/p:1:1: what is wrong [code]", 16, "/p:1:1: what is\n  wrong [code]");
        case("/a/long/path:1:1: what", 10, "/a/long/path:1:1:\n  what");
    }

    #[test]
    fn what_is_to_be_copied_stays_whole() {
        case("write limit = 5 or more", 14, "write\n  limit = 5 or\n  more");
        case("write a = [\"x y\", \"z\"] here", 12, "write\n  a = [\"x y\", \"z\"]\n  here");
        case("the rule \"three of them\" is", 16, "the rule\n  \"three of them\"\n  is");
        case("ask it: rungate policy check x; or not", 12, "ask it:\n  rungate policy check x;\n  or not");
    }

    #[test]
    fn what_has_no_end_is_broken_all_the_same() {
        case("a string \"has no end there", 14, "a string \"has\n  no end there");
        case("a list [ has no end there", 14, "a list [ has\n  no end there");
    }

    #[test]
    fn only_the_first_line_is_broken() {
        assert_eq!(wrapped("one two\n   | three four five", 5), "one\n  two\n   | three four five");
        assert_eq!(wrapped("漢字 漢字", 6), "漢字\n  漢字");
        assert_eq!(wrapped("", 6), "");
    }
}
