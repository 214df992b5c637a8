//! Colour on a terminal: five meanings, each of which the text also expresses in words. It is off if standard
//! output is no terminal, with `NO_COLOR` (<https://no-color.org>), `CLICOLOR=0` or `TERM=dumb`.
//! `CLICOLOR_FORCE` turns it on (<https://bixense.com/clicolors>).
//!
//! The colours can be read on a dark and on a light background: no yellow, no white and no blue.

use std::{borrow::Cow, env, ffi::OsString, sync::OnceLock};

use crate::sys::terminal;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a part of a text means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Style {
    /// As it should be.
    Good,
    /// Worth a look.
    Warning,
    /// Wrong, or refused.
    Fault,
    /// Less important than the rest: titles, and what is idle.
    Dim,
    /// The name of what the text is about.
    Name,
}

const END: char = '\u{e007f}';

impl Style {
    const ALL: [Self; 5] = [Self::Good, Self::Warning, Self::Fault, Self::Dim, Self::Name];

    /// Marks the style in a text. It has no width, and text of others never has it, because
    /// [`is_unsafe`](crate::text::escape::is_unsafe) is true for it. So tables and wrapped lines need not
    /// know of styles.
    fn mark(self) -> char {
        match self {
            Self::Good => '\u{e0041}',
            Self::Warning => '\u{e0042}',
            Self::Fault => '\u{e0043}',
            Self::Dim => '\u{e0044}',
            Self::Name => '\u{e0045}',
        }
    }

    fn sequence(self) -> &'static str {
        match self {
            Self::Good => "\x1b[32m",
            Self::Warning => "\x1b[1;35m",
            Self::Fault => "\x1b[1;31m",
            Self::Dim => "\x1b[2m",
            Self::Name => "\x1b[1m",
        }
    }

    /// The text in this style, for an answer, if answers are coloured.
    pub(crate) fn paint(self, text: &str) -> String {
        if is_on() { self.marked(text) } else { text.to_owned() }
    }

    /// The same for a message on standard error.
    pub(crate) fn paint_message(self, text: &str) -> String {
        static IS_ON: OnceLock<bool> = OnceLock::new();
        let is_on = IS_ON.get_or_init(|| is_wanted(|name| env::var_os(name), terminal::is_error));
        if *is_on { self.marked(text) } else { text.to_owned() }
    }

    /// Each word separately, because lines are broken between words.
    fn marked(self, text: &str) -> String {
        let word = |word: &str| match word {
            "" => String::new(),
            word => format!("{}{word}{END}", self.mark()),
        };
        text.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }
}

/// Whether answers are coloured.
pub(crate) fn is_on() -> bool {
    static IS_ON: OnceLock<bool> = OnceLock::new();
    *IS_ON.get_or_init(|| is_wanted(|name| env::var_os(name), terminal::is_output))
}

/// Whether text is coloured, by these variables of the environment.
fn is_wanted(var_os: impl Fn(&str) -> Option<OsString>, is_terminal: impl Fn() -> bool) -> bool {
    let is_set = |value: Option<OsString>| value.is_some_and(|value| !value.is_empty());
    if is_set(var_os("NO_COLOR")) {
        return false;
    }
    let is_forced = var_os("CLICOLOR_FORCE").filter(|value| value != "0");
    if is_set(is_forced) {
        return true;
    }
    let is_refused = var_os("CLICOLOR").is_some_and(|value| value == "0");
    let is_dumb = var_os("TERM").is_some_and(|value| value == "dumb");
    !is_refused && !is_dumb && is_terminal()
}

/// Removes the style of a text, and returns a function that applies it again.
pub(crate) fn split(text: &str) -> (String, impl Fn(&str) -> String + use<>) {
    let style = Style::ALL.into_iter().find(|style| text.starts_with(style.mark()));
    let plain = if style.is_some() { without(text) } else { text.to_owned() };
    (plain, move |part: &str| style.map_or_else(|| part.to_owned(), |style| style.marked(part)))
}

/// The text without its styles.
pub(crate) fn without(text: &str) -> String {
    text.chars().filter(|c| *c != END && Style::ALL.iter().all(|style| style.mark() != *c)).collect()
}

/// The text with its styles as a terminal obeys them.
pub(crate) fn rendered(text: &str) -> Cow<'_, str> {
    if !text.contains(END) {
        return Cow::Borrowed(text);
    }
    let marks = Style::ALL.iter();
    let text = marks.fold(text.to_owned(), |text, style| text.replace(style.mark(), style.sequence()));
    Cow::Owned(text.replace(END, "\x1b[0m"))
}

// The width of text on a terminal. Text that does not fit is cut, with a mark.

/// The marks after which a word may continue in the next line.
const BREAKABLE: [char; 8] = ['-', '.', '_', '/', ':', ',', '=', '@'];

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The beginning of a text that fits.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (text, in_style) = split(text);
    let mut left = columns.saturating_sub(1);
    let fits = |character: &char| {
        let rest = left.checked_sub(character.width().unwrap_or(0));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.extend((columns > 0).then_some('~'));
    in_style(&cut)
}

/// A word in pieces that fit: broken after the last mark that fits, or anywhere if there is none.
pub(crate) fn broken(word: &str, columns: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while width(rest) > columns {
        let mut room = columns;
        let fits = |(_, character): &(usize, char)| {
            let left = room.checked_sub(character.width().unwrap_or(0));
            room = left.unwrap_or(0);
            left.is_some()
        };
        let ends = rest
            .char_indices()
            .take_while(fits)
            .map(|(at, character)| (at + character.len_utf8(), character));
        let ends: Vec<(usize, char)> = ends.collect();
        let marked = ends.iter().rev().find(|(end, character)| *end > 1 && BREAKABLE.contains(character));
        // A part wider than the terminal exceeds it.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = marked.or(ends.last()).map_or(first, |(end, _)| *end);
        let (piece, others) = rest.split_at(end);
        pieces.push(piece);
        rest = others;
    }
    if pieces.is_empty() || !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

// Long lines of a message on a terminal, broken between their words. Text to be copied stays in one piece,
// because the terminal omits its own line breaks from the copy. Drawings stay in one piece too, such as the
// excerpts of a policy: their carets point at the line above.

/// The indent of continuation lines, after that of the line itself.
const INDENT: &str = "  ";

/// A message whose lines are broken where standard error is a terminal with fewer columns.
pub(crate) fn fitted(text: &str) -> String {
    terminal::error_columns().map_or_else(|| text.to_owned(), |columns| wrapped(text, usize::from(columns)))
}

/// The same of an answer, where standard output is a terminal.
pub(crate) fn answer(text: &str) -> String {
    terminal::columns().map_or_else(|| text.to_owned(), |columns| wrapped(text, usize::from(columns)))
}

fn wrapped(text: &str, columns: usize) -> String {
    text.split('\n').map(|line| line_wrapped(line, columns)).collect::<Vec<String>>().join("\n")
}

fn line_wrapped(line: &str, columns: usize) -> String {
    if width(line) <= columns || is_drawn(line) {
        return line.to_owned();
    }
    let words = line.trim_start_matches(' ');
    let (indent, _) = line.split_at(line.len() - words.len());
    let room = columns.saturating_sub(width(indent) + INDENT.len());
    let mut lines: Vec<String> = Vec::new();
    for (blank, unit) in units(words).into_iter().flat_map(|unit| pieces(unit, room)) {
        match lines.last_mut() {
            None => lines.push(format!("{indent}{unit}")),
            Some(last) if width(last) + blank.len() + width(unit) <= columns => last.extend([blank, unit]),
            // The additional blanks of a sequence.
            Some(_) if unit.is_empty() => {}
            Some(last) => {
                last.truncate(last.trim_end().len());
                lines.push(format!("{indent}{INDENT}{unit}"));
            }
        }
    }
    lines.join("\n")
}

/// A unit with the blank before it. If it is too long for a line, a list of words in brackets, or of paths
/// such as `PATH`, is split into its elements. Anything else stays whole.
fn pieces(unit: &str, room: usize) -> Vec<(&str, &str)> {
    let is_wide = width(unit) > room && !unit.contains('"');
    if is_wide && unit.starts_with('[') {
        return unit.split(' ').map(|word| (" ", word)).collect();
    }
    if !is_wide || unit.contains(' ') || !unit.contains(":/") {
        return vec![(" ", unit)];
    }
    let each = unit.split_inclusive(':').enumerate();
    each.map(|(index, path)| (if index == 0 { " " } else { "" }, path)).collect()
}

/// Whether a line is one of an excerpt: a number or none, and an edge.
fn is_drawn(line: &str) -> bool {
    let edge = line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
    ["|", "-->", ":::", "..."].iter().any(|drawn| edge.starts_with(drawn))
}

/// The parts that stay on one line: words, strings, lists and tables, a key with its value, and commands.
fn units(line: &str) -> Vec<&str> {
    let mut units = Vec::new();
    let begins_command = |text: &str| COMMANDS.iter().any(|command| text.starts_with(command));
    let (mut begin, mut quoted, mut depth, mut in_command) = (0, false, 0_u32, begins_command(line));
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
                in_command |= begins_command(&after[1..]);
            }
            _ => {}
        }
    }
    units.push(&line[begin..]);
    units
}

/// The first words of commands that messages suggest.
const COMMANDS: &[&str] = &[
    "rungate ",
    "sudo ",
    "chmod ",
    "chown ",
    "getent ",
    "install -",
    "journalctl ",
    "kill -",
    "ls -",
    "mkdir ",
    "mv ",
    "rm ",
    "systemctl ",
];

#[cfg(test)]
mod columns_tests {
    use super::*;

    #[track_caller]
    fn case(text: &str, columns: usize, expected: &str) {
        assert_eq!(cut(text, columns), expected);
        assert!(width(expected) <= columns);
    }

    #[test]
    fn a_mark_says_that_something_is_missing() {
        case("matlab", 6, "matlab");
        case("matlab", 4, "mat~");
        case("matlab", 1, "~");
        case("matlab", 0, "");
        case("", 0, "");
        case("漢字漢字", 8, "漢字漢字");
        case("漢字漢字", 6, "漢字~");
        case("漢字漢字", 2, "~");
    }

    #[test]
    fn a_word_is_broken_after_a_mark() {
        for (word, columns, expected) in [
            ("matlab", 6, &["matlab"][..]),
            ("matlab-per-user", 8, &["matlab-", "per-user"]),
            ("matlab-per-user", 14, &["matlab-per-", "user"]),
            ("matlab-per-user", 3, &["mat", "lab", "-pe", "r-", "use", "r"]),
            ("/department/seats", 6, &["/depar", "tment/", "seats"]),
            ("a/b.c_d:e", 4, &["a/b.", "c_d:", "e"]),
            ("漢字漢字", 5, &["漢字", "漢字"]),
            ("漢字", 1, &["漢", "字"]),
            ("", 0, &[""]),
        ] {
            assert_eq!(broken(word, columns), expected, "{word} in {columns}");
        }
    }
}

#[cfg(test)]
mod wrapped_tests {
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
        assert_eq!(wrapped("it is\n  chmod o+r /etc/a/b", 14), "it is\n  chmod o+r /etc/a/b");
    }

    #[test]
    fn what_has_no_end_is_broken_all_the_same() {
        case("a string \"has no end there", 14, "a string \"has\n  no end there");
        case("a list [ has no end there", 14, "a list [ has\n  no end there");
    }

    #[test]
    fn each_line_is_broken_below_where_it_begins() {
        assert_eq!(wrapped("one two\n  three four", 9), "one two\n  three\n    four");
        assert_eq!(wrapped("  seats [ann]  3 of 3 used", 15), "  seats [ann]\n    3 of 3 used");
        assert_eq!(wrapped("  seats [ann]  3 of 3 used", 19), "  seats [ann]  3 of\n    3 used");
        assert_eq!(wrapped("漢字 漢字", 6), "漢字\n  漢字");
        assert_eq!(wrapped("", 6), "");
        assert_eq!(wrapped("one\n\n  \ntwo\n", 3), "one\n\n  \ntwo\n");
        assert_eq!(wrapped("       ", 3), "       ");
    }

    #[test]
    fn a_list_of_words_is_broken_where_no_line_has_room() {
        case("it is [one, two, three] or not", 20, "it is\n  [one, two, three]\n  or not");
        case("it is [one, two, three] or not", 14, "it is [one,\n  two, three]\n  or not");
    }

    #[test]
    fn a_list_of_paths_is_broken_between_them() {
        assert_eq!(wrapped("not in (/a/bin:/b/bin:/bin)", 20), "not in (/a/bin:\n  /b/bin:/bin)");
        case("/a/long/path/to:1:1: what", 10, "/a/long/path/to:1:1:\n  what");
    }

    #[test]
    fn what_is_drawn_is_not_broken() {
        for drawn in ["  |", "17 | three four five", "   |       ^^^^ first here", "   ::: /a/b.toml:1:1"] {
            assert_eq!(wrapped(&format!("one two\n{drawn}"), 5), format!("one\n  two\n{drawn}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::width;
    use crate::text::{escape::is_unsafe, style::*};

    #[track_caller]
    fn case(variables: &[(&str, &str)], is_terminal: bool, expected: bool) {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        assert_eq!(is_wanted(variable, || is_terminal), expected, "{variables:?} {is_terminal}");
    }

    #[test]
    fn colour_is_for_terminals_and_users_decide() {
        case(&[], true, true);
        case(&[], false, false);
        case(&[("NO_COLOR", "")], true, true);
        case(&[("NO_COLOR", "0")], true, false);
        case(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true, false);
        case(&[("CLICOLOR_FORCE", "1")], false, true);
        case(&[("CLICOLOR_FORCE", "0")], false, false);
        case(&[("CLICOLOR", "0")], true, false);
        case(&[("CLICOLOR", "0"), ("CLICOLOR_FORCE", "1")], true, true);
        case(&[("TERM", "dumb")], true, false);
    }

    #[test]
    fn a_style_takes_no_room_and_cannot_come_from_others() {
        for style in Style::ALL {
            let marked = style.marked("two words");
            assert_eq!((width(&marked), without(&marked).as_str()), (9, "two words"));
            let end = "\x1b[0m";
            let expected = format!("{0}two{end} {0}words{end}", style.sequence());
            assert_eq!(rendered(&marked), expected);
            assert!(is_unsafe(style.mark()) && is_unsafe(END));
            let (plain, painted) = split(&marked);
            assert_eq!((plain.as_str(), painted("two words")), ("two words", marked.clone()));
        }
        assert_eq!(rendered("no style"), "no style");
    }
}
