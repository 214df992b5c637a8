//! An entry for an argument, or for the value of a variable: a pattern, or a capture at its end.

use super::alternatives::report;
use crate::policy::{
    Aliases, At, Captured, Pattern, Subject, Written, WrittenEntry,
    capture::{captures, is_literal},
    fault::Fault,
};

/// Instead of an argument or a value that is unknown, except that no entry names it. No real one has a NUL.
pub(crate) const UNNAMED: &str = "\0";

#[derive(Debug)]
pub(crate) struct TextEntry(Form);

#[derive(Debug)]
enum Form {
    Pattern(Pattern),
    Capture {
        text: String,
        /// How many bytes precede the capture, all literal.
        before: usize,
        name: Written<String>,
    },
}

impl TextEntry {
    fn parse(text: &str, at: At) -> Result<Self, Fault> {
        let captures = if text.contains('{') { captures(text, Subject::Name)? } else { Vec::new() };
        let Some(capture) = captures.first() else {
            let pattern = Pattern::new(text, Subject::Name).map_err(|reason| Fault::BadPattern { reason })?;
            return Ok(TextEntry(Form::Pattern(pattern)));
        };
        let name = capture.name.to_owned();
        if capture.end != text.len() {
            return Err(Fault::PartialCapture { name });
        }
        if !is_literal(&text[..capture.start], Subject::Name) {
            return Err(Fault::CaptureAfterPattern { name });
        }
        Ok(TextEntry(Form::Capture {
            text: text.to_owned(),
            before: capture.start,
            name: Written { value: name, at },
        }))
    }

    pub(super) fn text(&self) -> &str {
        match &self.0 {
            Form::Pattern(pattern) => pattern.text(),
            Form::Capture { text, .. } => text,
        }
    }

    pub(super) fn matches(&self, value: &[u8]) -> bool {
        match &self.0 {
            _ if value == UNNAMED.as_bytes() => self.is_everything(),
            Form::Pattern(pattern) => pattern.matches(value),
            Form::Capture { .. } => self.taken(value).is_some(),
        }
    }

    /// Whether it matches everything.
    pub(super) fn is_everything(&self) -> bool {
        matches!(&self.0, Form::Pattern(pattern) if pattern.is_everything())
    }

    /// Whether it certainly matches everything that another one matches.
    pub(super) fn covers(&self, narrow: &TextEntry) -> bool {
        match (&self.0, &narrow.0) {
            (Form::Pattern(wide), Form::Pattern(narrow)) => wide.covers(narrow),
            (Form::Pattern(wide), Form::Capture { .. }) => wide.is_everything(),
            (Form::Capture { .. }, Form::Pattern(narrow)) => {
                narrow.literal().is_some_and(|value| self.matches(value.as_bytes()))
            }
            (Form::Capture { text, before, .. }, Form::Capture { text: other, before: length, .. }) => {
                text[..*before] == other[..*length]
            }
        }
    }

    /// The name that it captures, if any.
    pub(super) fn captures(&self) -> Option<Written<&str>> {
        match &self.0 {
            Form::Pattern(_) => None,
            Form::Capture { name, .. } => Some(Written { value: name.value.as_str(), at: name.at }),
        }
    }

    /// What it captures of a value that it matches.
    pub(super) fn captured(&self, value: &[u8]) -> Option<Captured> {
        let taken = self.taken(value)?;
        self.captures().map(|name| Captured { name: name.value.to_owned(), value: taken.to_vec() })
    }

    fn taken<'v>(&self, value: &'v [u8]) -> Option<&'v [u8]> {
        let Form::Capture { text, before, .. } = &self.0 else { return None };
        value.strip_prefix(&text.as_bytes()[..*before]).filter(|taken| !taken.is_empty())
    }
}

/// An entry, which may begin with anything, and be empty.
pub(super) fn text_entry(entry: &WrittenEntry<'_>, aliases: &Aliases<'_>) -> Option<TextEntry> {
    aliases.spend_on_pattern(entry, false).then_some(())?;
    TextEntry::parse(&entry.value, entry.at).map_err(|fault| report(fault, entry.at, aliases)).ok()
}

/// The same in a list that has no aliases.
pub(super) fn sole_entry(entry: &WrittenEntry<'_>, aliases: &Aliases<'_>) -> Option<TextEntry> {
    aliases.spend_on(entry, entry.at, 0).then(|| text_entry(entry, aliases))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> TextEntry {
        TextEntry::parse(text, At::whole(0)).expect("an entry")
    }

    #[track_caller]
    fn case(text: &str, value: &str, expected: Option<&str>) {
        let captured = entry(text).captured(value.as_bytes());
        assert_eq!(captured.map(|captured| captured.value).as_deref(), expected.map(str::as_bytes));
        assert_eq!(entry(text).matches(value.as_bytes()), expected.is_some(), "{text} and {value}");
    }

    #[test]
    fn a_capture_takes_the_rest_and_is_never_empty() {
        case("{job}", "x", Some("x"));
        case("{job}", "", None);
        case("--job={job}", "--job=a=b", Some("a=b"));
        case("--job={job}", "--job=", None);
        case("--job={job}", "--jobs=a", None);
        case(r"CORP\{who}", r"CORP\ann", Some("ann"));
    }

    /// An unlogged value is one that only an entry for everything matches.
    #[test]
    fn a_value_that_no_entry_names_is_matched_by_everything_alone() {
        for text in ["", "?*", "{,x}", "[!a]*", "{job}", "-*"] {
            assert!(!entry(text).matches(UNNAMED.as_bytes()), "{text}");
        }
        assert!(entry("*").matches(UNNAMED.as_bytes()));
    }

    #[test]
    fn a_capture_covers_what_it_certainly_matches() {
        let covers = |wide: &str, narrow: &str| entry(wide).covers(&entry(narrow));
        assert!(covers("{a}", "{b}") && covers("*", "{a}") && covers("--a={a}", "--a=1"));
        assert!(!covers("{a}", "--a={a}") && !covers("{a}", "*") && !covers("--a={a}", "--a="));
    }

    #[test]
    fn only_literal_text_stands_before_it_and_nothing_after_it() {
        let fault = |text: &str| TextEntry::parse(text, At::whole(0)).expect_err("a fault");
        assert_eq!(fault("{a}.cfg"), Fault::PartialCapture { name: "a".into() });
        assert_eq!(fault("{a}{b}"), Fault::PartialCapture { name: "a".into() });
        assert_eq!(fault("*={a}"), Fault::CaptureAfterPattern { name: "a".into() });
    }
}
