//! Why a text is not TOML, or not text, in messages that say what to write instead. The parser's own messages
//! are about its grammar, and are used only if nothing here fits.

use std::ops::Range;

use super::fault::Fault;

const NAME_IN_QUOTES: &str =
    "a name with other characters than letters, digits, \"_\" and \"-\" needs quotes";

const NO_EQUALS: &str = "a key and its value are separated by =, not :";

const MISSING_COMMA: &str = "a comma is missing between two elements";

const OPEN_TABLE: &str = "the closing brace of a table is missing";

const OPEN_LIST: &str = "the closing bracket of a list is missing";

const UNMERGED: &str = "an unresolved merge conflict; keep one of its sides, and delete the marks";

/// The message for a line if something is not closed in the previous one.
pub(super) const ECHOES: [&str; 3] = [MISSING_COMMA, OPEN_LIST, OPEN_TABLE];

/// What is wrong with bytes that are not UTF-8, with the place of the first of them.
pub(super) fn not_text(bytes: &[u8]) -> Fault {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Fault::NotText { what: "is UTF-16 text".into() };
    }
    let valid = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    let before = String::from_utf8_lossy(bytes.get(..valid).unwrap_or_default());
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
    Fault::NotText { what: format!("is not UTF-8 text from line {line}, column {column} on") }
}

/// Why every line of a text is wrong, and where. Such a text is reported as one fault.
pub(super) fn all_of(text: &str) -> Option<(usize, &'static str)> {
    let json = text.trim_start().starts_with('{').then(|| text.len() - text.trim_start().len());
    let json = json.map(|at| (at, "this looks like JSON; a policy is TOML, and begins with: version = 1"));
    let nul = "there are NUL bytes here, perhaps from a crash or UTF-16; restore the file, or save it as \
        UTF-8";
    json.or_else(|| Some((text.find('\0')?, nul)))
}

/// The place to show: for something that is not closed, its beginning.
pub(super) fn place(message: &str, text: &str, span: Range<usize>) -> Range<usize> {
    let start = line_start(text, span.start);
    if text.get(start..).is_some_and(|rest| is_mark_of_merge(rest.lines().next().unwrap_or_default())) {
        return start..start + MARK_LENGTH;
    }
    let Some(quotes) = open_quotes(message) else { return span };
    let begin = text.get(..span.start).and_then(|before| before.rfind(quotes));
    begin.map_or(span, |begin| begin..begin + quotes.len())
}

/// The quotes of a string over several lines that has no end.
fn open_quotes(message: &str) -> Option<&'static str> {
    if message.starts_with("invalid multi-line basic string, expected `\"") {
        Some("\"\"\"")
    } else if message.starts_with("invalid multi-line literal string, expected `'") {
        Some("'''")
    } else {
        None
    }
}

/// What is wrong at this place of the text, given the parser's message.
pub(super) fn reason(message: &str, text: &str, span: &Range<usize>) -> String {
    let found = text.get(span.start..).unwrap_or_default().trim_start_matches([' ', '\t']);
    let before = text.get(line_start(text, span.start)..span.start).unwrap_or_default();
    let plain = || message.replace('`', "").replace(", expected nothing", "");
    known(message, before, found).map_or_else(plain, str::to_owned)
}

/// The same, with what precedes it in its line, and what follows.
fn known(message: &str, before: &str, found: &str) -> Option<&'static str> {
    if message.starts_with("carriage return must be followed") {
        return Some("a carriage return without a line feed; lines end in a line feed");
    }
    if message.starts_with("string values must be quoted") || message.starts_with("invalid boolean") {
        return Some(no_string(found));
    }
    if let Some(quotes) = open_quotes(message) {
        return Some(match quotes {
            "'''" => "the closing quotes ''' of this string are missing",
            _ => r#"the closing quotes """ of this string are missing"#,
        });
    }
    if message.contains("non-double-quote visible characters") && !found.starts_with(['\n', '\r']) {
        return Some("a control character must be written as an escape, such as \\u001B");
    }
    if message.contains("basic string, expected") || message.contains("literal string, expected") {
        return Some("the closing quote of a string is missing");
    }
    if message.starts_with("missing escaped value") {
        return Some(r"a backslash in such a string is written twice, \\, or the string is in single quotes");
    }
    let line = found.lines().next().unwrap_or_default();
    if is_mark_of_merge(&format!("{before}{line}")) {
        return Some(UNMERGED);
    }
    match message {
        "unclosed table, expected `]`"
        | "unclosed array table, expected `]`"
        | "unclosed array table, expected `]]`"
            if line.contains(']') =>
        {
            Some(NAME_IN_QUOTES)
        }
        "unclosed table, expected `]`" => Some("the closing bracket of a header is missing"),
        _ if message.starts_with("unclosed array table") => Some("a closing bracket of a header is missing"),
        "missing comma between array elements, expected `,`"
            if before.trim().is_empty() && is_setting(line) =>
        {
            Some(OPEN_LIST)
        }
        "missing comma between array elements, expected `,`" => Some(MISSING_COMMA),
        "unclosed array, expected `]`" => Some(OPEN_LIST),
        "missing comma between key-value pairs, expected `,`"
            if before.trim().is_empty() && is_setting(line) =>
        {
            Some(OPEN_TABLE)
        }
        _ if message.starts_with("missing key for inline table") && found.starts_with('[') => {
            Some(OPEN_TABLE)
        }
        _ if message.starts_with("unquoted keys cannot be empty") => Some("a name is missing here"),
        _ if message.starts_with("invalid unquoted key") && found.starts_with(':') => Some(NO_EQUALS),
        _ if message.starts_with("invalid unquoted key") => Some(NAME_IN_QUOTES),
        _ if message.starts_with("key with no value") && before.contains(':') => Some(NO_EQUALS),
        _ if message.starts_with("key with no value") => Some("= and a value are missing after this key"),
        _ if message.starts_with("unexpected key or value") => Some(one_too_many(before, found)),
        _ => None,
    }
}

/// The length of the marks that git and similar tools write around the two sides of a conflict.
const MARK_LENGTH: usize = 7;

/// Whether a line is one of them.
fn is_mark_of_merge(line: &str) -> bool {
    ['<', '|', '=', '>'].iter().any(|mark| {
        let behind = line.trim_start_matches(*mark);
        line.len() - behind.len() == MARK_LENGTH && (behind.is_empty() || behind.starts_with(' '))
    })
}

/// Text that is not a value, in the place of one.
fn no_string(found: &str) -> &'static str {
    if found.is_empty() || found.starts_with(['\n', '\r', '#']) {
        "a value is missing"
    } else if found.starts_with(['“', '”', '„', '‘', '’', '«', '»']) {
        "these are typographic quotes; a string needs straight ones: \""
    } else if found.starts_with(|character: char| character.is_ascii_digit()) {
        if found.lines().next().is_some_and(|line| line.contains("//")) {
            "a comment begins with #"
        } else {
            "this is not a number; a string must be in quotes"
        }
    } else if ["true", "false"]
        .iter()
        .any(|word| found.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word)))
    {
        "true and false are written in small letters"
    } else {
        "a string must be in quotes"
    }
}

/// Text after a value on its line, which is not allowed.
fn one_too_many(before: &str, found: &str) -> &'static str {
    match before.trim_end().chars().next_back().filter(|_| !found.starts_with(['"', '\'', ','])) {
        Some('\'') => "a string with ' in it needs double quotes",
        Some('"') => "a string with \" in it needs single quotes",
        _ => "something follows the value; several values must be in brackets: [1, 2]",
    }
}

/// Whether a line sets a key.
fn is_setting(line: &str) -> bool {
    line.split_once('=').is_some_and(|(key, _)| {
        let key = key.trim();
        !key.is_empty()
            && key.chars().all(|each| each.is_ascii_alphanumeric() || ['_', '-', '.'].contains(&each))
    })
}

// Lines that open a table, recognized by their beginning, because invalid TOML has no tree.

/// Where the line begins that an offset lies in.
pub(super) fn line_start(text: &str, offset: usize) -> usize {
    text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

/// Whether an offset lies in a line that opens a table.
pub(super) fn is_header(text: &str, offset: usize) -> bool {
    text[line_start(text, offset)..].trim_start_matches([' ', '\t']).starts_with('[')
}

/// Where the next line begins that opens a table, or the text ends.
pub(super) fn next_header(text: &str, offset: usize) -> usize {
    let lines = text.match_indices('\n').map(|(newline, _)| newline + 1).filter(|line| *line > offset);
    let mut headers = lines.filter(|line| is_header(text, *line));
    headers.next().unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fault of a text at the place of the mark `¦`, for this message of the parser.
    fn said(message: &str, marked: &str) -> String {
        let at = marked.find('¦').expect("a mark");
        reason(message, &marked.replacen('¦', "", 1), &(at..at))
    }

    /// A list or a table is not closed if the next line sets a key. Otherwise only a comma is missing.
    #[test]
    fn what_is_missing_is_told_by_the_line() {
        let list = |text: &str| said("missing comma between array elements, expected `,`", text);
        assert_eq!(list("a = [\n  \"b\"\n  ¦\"c\",\n]\n"), MISSING_COMMA);
        assert_eq!(list("a = [\"b\" ¦c = 1]\n"), MISSING_COMMA);
        assert_eq!(list("a = [\"b\"\n¦c = 1\n"), OPEN_LIST);
        assert_eq!(list("a = [\"b\"\n¦c.d_1-e = 1\n"), OPEN_LIST);
        let table = |text: &str| said("missing comma between key-value pairs, expected `,`", text);
        let plain = "missing comma between key-value pairs, expected ,";
        assert_eq!(table("a = { b = 1\n¦c = 2\n"), OPEN_TABLE);
        assert_eq!(table("a = { b = 1\n¦\"c\" = 2\n"), plain);
        assert_eq!(table("a = { b = 1 ¦c = 2 }\n"), plain);
        assert_eq!(said("missing key for inline table element", "a = {\n¦[b]\n"), OPEN_TABLE);
    }

    /// A word in the place of a value says what was meant, also at the end of the file.
    #[test]
    fn a_value_that_is_none_says_what_was_meant() {
        let value = |text: &str| said("string values must be quoted, expected literal string", text);
        for word in ["a = ¦on", "a = ¦falß", "a = ¦truth\n"] {
            assert_eq!(value(word), "a string must be in quotes", "{word}");
        }
        assert_eq!(said("invalid boolean, expected `true`", "a = ¦tree\n"), "a string must be in quotes");
        for word in ["a = ¦TRUE", "a = ¦False\n"] {
            assert_eq!(value(word), "true and false are written in small letters", "{word}");
        }
        for nothing in ["a = ¦", "a = ¦\nb = 1\n", "a = ¦\r\n", "a = ¦  # x\n"] {
            assert_eq!(value(nothing), "a value is missing", "{nothing}");
        }
        let twice = r"a backslash in such a string is written twice, \\, or the string is in single quotes";
        assert_eq!(said("missing escaped value, expected `b`", "a = \"C:\\¦x\"\n"), twice);
        assert_eq!(value("a = ¦“b”\n"), "these are typographic quotes; a string needs straight ones: \"");
        assert_eq!(value("a = ¦5 seats\n"), "this is not a number; a string must be in quotes");
        assert_eq!(value("a = ¦5x\n// b\n"), "this is not a number; a string must be in quotes");
        assert_eq!(value("a = ¦5 // b\n"), "a comment begins with #");
    }

    /// What follows a value shows that a quote is in a string, or that there are several values.
    #[test]
    fn what_follows_a_value_says_what_was_meant() {
        let value = |text: &str| said("unexpected key or value, expected newline, `#`", text);
        let several = "something follows the value; several values must be in brackets: [1, 2]";
        assert_eq!(value("a = 'it'¦s'\n"), "a string with ' in it needs double quotes");
        assert_eq!(value("a = \"say \"¦hi\"\n"), "a string with \" in it needs single quotes");
        for text in ["a = \"b\" ¦\"c\"\n", "a = 'b' ¦'c'\n", "a = 'b'¦, 'c'\n", "a = 1 ¦2\n"] {
            assert_eq!(value(text), several, "{text}");
        }
    }

    /// A key needs an equals sign, and quotes if it has other characters than names have. A header needs its
    /// brackets.
    #[test]
    fn a_key_and_a_header_say_what_they_need() {
        let key = |text: &str| said("invalid unquoted key, expected letters", text);
        assert_eq!(key("a¦: 1\n"), NO_EQUALS);
        assert_eq!(key("a¦ü = 1\n"), NAME_IN_QUOTES);
        let alone = |text: &str| said("key with no value, expected `=`", text);
        assert_eq!(alone("a: b¦\n"), NO_EQUALS);
        assert_eq!(alone("a¦\nb: c\n"), "= and a value are missing after this key");
        let header = |text: &str| said("unclosed table, expected `]`", text);
        assert_eq!(header("[a ¦b]\n"), NAME_IN_QUOTES);
        assert_eq!(header("[a¦\nb = [1]\n"), "the closing bracket of a header is missing");
        let headers = |text: &str| said("unclosed array table, expected `]]`", text);
        assert_eq!(headers("[[a ¦b]]\n"), NAME_IN_QUOTES);
        assert_eq!(headers("[[a]¦\nb = [1]\n"), "a closing bracket of a header is missing");
    }

    /// Marks of a merge are seven equal characters, alone or before a blank. The whole mark is shown, and of
    /// a string that is not closed its beginning.
    #[test]
    fn the_place_is_where_it_begins() {
        for mark in ["<<<<<<< HEAD", "||||||| 1a2b", "=======", ">>>>>>> more"] {
            assert!(is_mark_of_merge(mark), "{mark}");
            assert_eq!(place("any", &format!("{mark}\n"), 1..2), 0..7);
            assert_eq!(place("any", &format!("a = 1\n{mark}\n"), 8..9), 6..13);
        }
        for other in ["<<<<<< HEAD", "<<<<<<<< HEAD", "<<<<<<<HEAD", "======", "", "-------"] {
            assert!(!is_mark_of_merge(other), "{other}");
        }
        let text = "a = \"\"\"b\nc\n";
        let message = "invalid multi-line basic string, expected `\"\"\"`";
        assert_eq!(place(message, text, text.len()..text.len()), 4..7);
        assert_eq!(said(message, "a = \"\"\"b\n¦"), "the closing quotes \"\"\" of this string are missing");
        assert_eq!(place("any", text, 9..10), 9..10);
    }

    /// A byte that is no text is named by its line and column, counted from 1.
    #[test]
    fn bytes_that_are_no_text_are_named_by_their_place() {
        let what = |bytes: &[u8]| match not_text(bytes) {
            Fault::NotText { what } => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(what(b"\xff\xfea\0"), "is UTF-16 text");
        assert_eq!(what(b"\xfe\xff\0a"), "is UTF-16 text");
        assert_eq!(what(b"\xffa"), "is not UTF-8 text from line 1, column 1 on");
        assert_eq!(what(b"ab\ncd\xff"), "is not UTF-8 text from line 2, column 3 on");
        assert_eq!(what(b"\xc3\xbc\xff"), "is not UTF-8 text from line 1, column 2 on");
    }

    /// A line that opens a table begins with a bracket, behind blanks at most.
    #[test]
    fn the_next_header_is_that_of_a_later_line() {
        let text = "[a]\nb = [1]\n  [c]\n[d]\n";
        let line = |number: usize| text.match_indices('\n').nth(number).map_or(0, |(at, _)| at + 1);
        assert_eq!((line_start(text, 2), line_start(text, 6)), (0, 4));
        assert!(is_header(text, 1) && !is_header(text, 6) && is_header(text, 15));
        assert_eq!((next_header(text, 0), next_header(text, 12)), (line(1), line(2)));
        assert_eq!(next_header(text, line(2)), text.len());
    }
}
