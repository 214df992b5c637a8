//! Expected text with holes for what varies from run to run.
//!
//! | in the expected text | stands for |
//! | --- | --- |
//! | `[..]` | anything within the line, also nothing |
//! | `[pid]` | a process id: digits |
//! | `[age]` | how long ago: `0s`, `2h11m`, `6d04h` |
//! | `[time]` | a date or a time of day: letters, digits, blanks, `:` and `-` |
//! | `[gap]` | one or more blanks, where a table pads its columns |
//! | a line `...` | any number of lines, also none |
//!
//! Everything else is compared as it stands. A hole is an admission that the test does not look there, so the
//! narrow ones are to be preferred.

/// Whether the text is what the pattern describes, to the last line.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('\n').collect();
    let text: Vec<&str> = text.split('\n').collect();
    lines_match(&pattern, &text)
}

fn lines_match(pattern: &[&str], text: &[&str]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        (["...", rest @ ..], _) => (0..=text.len()).any(|skipped| lines_match(rest, &text[skipped..])),
        ([expected, pattern @ ..], [line, text @ ..]) => {
            line_matches(expected, line) && lines_match(pattern, text)
        }
        _ => false,
    }
}

/// How a hole is written, the least number of characters that it stands for, and which those may be.
type Hole = (&'static str, usize, fn(char) -> bool);

const HOLES: [Hole; 5] = [
    ("[..]", 0, |_| true),
    ("[pid]", 1, |c| c.is_ascii_digit()),
    ("[age]", 2, |c| c.is_ascii_digit() || "dhms".contains(c)),
    ("[time]", 5, |c| c.is_ascii_alphanumeric() || " :-".contains(c)),
    ("[gap]", 1, |c| c == ' '),
];

fn line_matches(pattern: &str, line: &str) -> bool {
    for (hole, least, allowed) in HOLES {
        if let Some(rest) = pattern.strip_prefix(hole) {
            let longest = line.chars().take_while(|&c| allowed(c)).count();
            let mut ends =
                line.char_indices().map(|(at, _)| at).chain([line.len()]).take(longest + 1).skip(least);
            return ends.any(|end| line_matches(rest, &line[end..]));
        }
    }
    let mut expected = pattern.chars();
    let mut actual = line.chars();
    match (expected.next(), actual.next()) {
        (None, None) => true,
        (Some(one), Some(other)) => one == other && line_matches(expected.as_str(), actual.as_str()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[track_caller]
    fn accepts(pattern: &str, text: &str) {
        assert!(matches(pattern, text), "{pattern:?} must accept {text:?}");
    }

    #[track_caller]
    fn rejects(pattern: &str, text: &str) {
        assert!(!matches(pattern, text), "{pattern:?} must reject {text:?}");
    }

    #[test]
    fn text_without_holes_is_compared_exactly() {
        accepts("a\nb\n", "a\nb\n");
        rejects("a\nb\n", "a\nb");
        rejects("a", "ab");
        rejects("ab", "a");
        rejects("", "\n");
    }

    #[test]
    fn a_hole_takes_only_what_it_stands_for() {
        accepts("PID [pid] ([age])", "PID 8123 (6d04h)");
        rejects("PID [pid] ([age])", "PID  (6d)");
        rejects("PID [pid] ([age])", "PID 81x3 (6d)");
        rejects("PID [pid]", "PID 1 2");
        accepts("since [time].", "since 20 Nov 14:02.");
        rejects("since [time].", "since 20.");
        accepts("a[gap]b", "a   b");
        rejects("a[gap]b", "ab");
        accepts("[..]b[..]", "abc");
        rejects("[..]b[..]", "a\nbc");
    }

    #[test]
    fn three_dots_on_a_line_stand_for_lines() {
        accepts("a\n...\nd\n", "a\nb\nc\nd\n");
        accepts("a\n...\nd\n", "a\nd\n");
        rejects("a\n...\nd\n", "a\nb\nc\n");
        rejects("a ...", "a b");
    }
}
