//! How much room text takes on a terminal, and text cut where it has none, with a mark that something is
//! missing.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::style;

/// The marks after which a word may go on in the next line.
const BREAKABLE: [char; 8] = ['-', '.', '_', '/', ':', ',', '=', '@'];

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// As much of a text as fits.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (text, in_style) = style::split(text);
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

/// A word in pieces that fit: broken after the last mark that still has room, and anywhere where there is
/// none.
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
        // What is wider than all of it goes past the edge.
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

#[cfg(test)]
mod tests {
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
