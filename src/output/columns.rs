//! How much room text takes on a terminal, and text cut where it has none, with a mark that something is
//! missing.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// As much of a text as fits.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |character: &char| {
        let rest = left.checked_sub(character.width().unwrap_or(0));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.extend((columns > 0).then_some('~'));
    cut
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
}
