//! A fault in a text file and how it is shown: `path:line:col: message [code]`, then the line with a caret
//! and, if there is one, a second label. It knows nothing of policies; the caller has the wording.

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet, renderer::DecorStyle};

use super::escape::{Show, is_unsafe, visible};

/// The text of a file, kept so that faults can show its lines.
#[derive(Debug)]
pub struct SourceText {
    path: PathBuf,
    text: String,
    changed: Option<Change>,
    /// Where lines begin, counted on first use.
    lines: OnceLock<Vec<usize>>,
}

/// When a file was last written, and its owner: the user to inform about a fault in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Change {
    /// The time of the last write.
    pub at: SystemTime,
    /// The uid that owns the file.
    pub by: u32,
}

impl SourceText {
    /// A text that stands for a file, from any source.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        SourceText { path: path.into(), text: text.into(), changed: None, lines: OnceLock::new() }
    }

    /// The same, of a file that was changed then.
    #[must_use]
    pub fn changed(self, change: Change) -> Self {
        SourceText { changed: Some(change), ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its time of change and its owner, if it was read from a file.
    pub fn change(&self) -> Option<Change> {
        self.changed
    }

    /// Line and column of an offset in bytes, both counted from 1, the column in characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let offset = boundary(&self.text, offset);
        let newlines = || self.text.match_indices('\n').map(|(newline, _)| newline + 1);
        let lines = self.lines.get_or_init(|| std::iter::once(0).chain(newlines()).collect());
        let line = lines.partition_point(|start| *start <= offset);
        (line, self.text[lines[line - 1]..offset].chars().count() + 1)
    }

    /// The part of a span on its first line: a label is never longer than what it underlines.
    fn first_line(&self, span: &Range<usize>) -> Range<usize> {
        let part = self.text.get(span.clone()).unwrap_or_default();
        let length = part.find(['\n', '\r']).unwrap_or(part.len());
        span.start..span.start + length
    }
}

/// Whether a launch must stop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Severity {
    /// Nothing of the policy is applied.
    Fault,
    /// Probably a mistake, but harmless to a launch.
    Warning,
}

/// A part of a text, with a label.
#[derive(Clone, Debug)]
pub struct Label {
    pub(crate) source: Arc<SourceText>,
    /// The part, in bytes.
    pub(crate) span: Range<usize>,
    /// The text beside it; may be empty.
    pub(crate) note: &'static str,
}

/// One fault or warning.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    pub(crate) severity: Severity,
    /// Stable, in kebab-case.
    pub code: &'static str,
    /// What is wrong and, if it is known, what was likely meant.
    pub(crate) message: String,
    pub(crate) path: PathBuf,
    /// Where in it; `None` for the file as a whole, for example if it cannot be read.
    pub(crate) label: Option<Label>,
    /// Another place that belongs to it.
    pub(crate) second: Option<Label>,
}

impl Diagnostic {
    /// Line and column, counted from 1.
    pub(crate) fn line_column(&self) -> Option<(usize, usize)> {
        self.label.as_ref().map(|label| label.source.line_column(label.span.start))
    }

    /// When the file was changed, and its owner.
    pub(crate) fn change(&self) -> Option<Change> {
        self.label.as_ref().and_then(|label| label.source.change())
    }

    /// The first line: `path:line:col: message [code]`.
    pub fn headline(&self) -> String {
        self.line(match self.severity {
            Severity::Fault => "",
            Severity::Warning => "warning: ",
        })
    }

    /// The same for a page that shows the severity beside it.
    pub fn plain_headline(&self) -> String {
        self.line("")
    }

    fn line(&self, kind: &str) -> String {
        let path = self.path.shown();
        let place = match self.line_column() {
            Some((line, column)) => format!("{path}:{line}:{column}"),
            None => path.to_string(),
        };
        format!("{place}: {kind}{} [{}]", self.message, self.code)
    }

    /// The lines with their carets; empty for the file as a whole.
    fn excerpt(&self) -> String {
        let Some(label) = &self.label else { return String::new() };
        let is_near = |second: &&Label| {
            Arc::ptr_eq(&second.source, &label.source)
                && second.span.start.abs_diff(label.span.start) <= LONGEST_EXCERPT
        };
        let (beside, elsewhere): (Vec<&Label>, Vec<&Label>) = self.second.iter().partition(is_near);
        let here = Excerpt::new(label, &beside);
        if here.text.len() > 2 * LONGEST_EXCERPT {
            return String::new();
        }
        let snippet = here.snippet().annotation(here.annotation(AnnotationKind::Primary, label));
        let contexts = beside.iter().map(|second| here.annotation(AnnotationKind::Context, second));
        let mut group = Group::with_level(Level::ERROR).element(snippet.annotations(contexts));
        let others: Vec<(&Label, Excerpt)> =
            elsewhere.into_iter().map(|second| (second, Excerpt::new(second, &[]))).collect();
        for (second, there) in others.iter().filter(|(_, there)| there.text.len() <= 2 * LONGEST_EXCERPT) {
            let snippet = there.snippet().path(visible(second.source.path()));
            group = group.element(snippet.annotation(there.annotation(AnnotationKind::Context, second)));
        }
        Renderer::plain().decor_style(DecorStyle::Ascii).render(&[group])
    }
}

/// How far apart, in bytes, two labels of one excerpt can be. An excerpt that is longer than twice that, such
/// as a very long line, is not shown: the agent draws up to a hundred for each launch that they refuse.
const LONGEST_EXCERPT: usize = 4096;

/// The lines with the labels of one file, and the lines between them, because a file can be long.
struct Excerpt {
    text: String,
    start: usize,
    first_line: usize,
}

impl Excerpt {
    fn new(label: &Label, beside: &[&Label]) -> Self {
        let text = label.source.text.as_str();
        let labels = || std::iter::once(label).chain(beside.iter().copied());
        let within = |offset: usize| boundary(text, offset);
        let first = labels().map(|label| label.span.start).min().map_or(0, within);
        let last = labels().map(|label| label.source.first_line(&label.span).end).max().map_or(0, within);
        let start = text[..first].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[last..].find('\n').map_or(text.len(), |newline| last + newline);
        Excerpt {
            text: with_stand_ins(&text[start..end]),
            start,
            first_line: label.source.line_column(first).0,
        }
    }

    fn snippet<T: Clone>(&self) -> Snippet<'_, T> {
        Snippet::source(self.text.as_str()).line_start(self.first_line)
    }

    fn annotation(&self, kind: AnnotationKind, label: &Label) -> Annotation<'static> {
        let span = label.source.first_line(&label.span);
        let within = |offset: usize| boundary(&self.text, offset.saturating_sub(self.start));
        kind.span(within(span.start)..within(span.end)).label(shown_note(label))
    }
}

/// The offset itself, or where the character begins that it lies in; never beyond the end.
fn boundary(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len())).rev().find(|offset| text.is_char_boundary(*offset)).unwrap_or(0)
}

fn shown_note(label: &Label) -> Option<&'static str> {
    (!label.note.is_empty()).then_some(label.note)
}

impl fmt::Display for Diagnostic {
    /// The headline and the excerpt, without a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        let excerpt = self.excerpt();
        if excerpt.is_empty() { Ok(()) } else { write!(f, "\n{excerpt}") }
    }
}

/// The renderer shows the control characters of ASCII as pictures but lets most others through. A replacement
/// is as long as what it replaces, so that spans stay right.
fn with_stand_ins(text: &str) -> String {
    let stand_in = |c: char| match c.len_utf8() {
        2 => "\u{b7}",
        3 => "\u{fffd}",
        _ => "\u{b7}\u{b7}",
    };
    let replaced = |c: char| !c.is_ascii() && is_unsafe(c);
    text.split_inclusive(replaced).fold(String::with_capacity(text.len()), |shown, part| {
        match part.chars().next_back().filter(|last| replaced(*last)) {
            Some(last) => shown + part.trim_end_matches(last) + stand_in(last),
            None => shown + part,
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::text::diagnostic::*;

    fn fault(source: &Arc<SourceText>, span: Range<usize>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Fault,
            code: "some-code",
            message: "something is wrong".into(),
            path: source.path().to_owned(),
            label: Some(Label { source: Arc::clone(source), span, note: "" }),
            second: None,
        }
    }

    #[test]
    fn the_place_comes_first_then_the_line_and_a_caret() {
        let source = Arc::new(SourceText::new("/p.toml", "a = 1\nbü = 22\n"));
        let rendered = fault(&source, 12..14).to_string();
        assert_eq!(rendered, "/p.toml:2:6: something is wrong [some-code]\n  |\n2 | bü = 22\n  |      ^^");
    }

    /// Labels that are far from each other have an excerpt each, and a very long line has none.
    #[test]
    fn an_excerpt_is_only_so_long() {
        let shown = |between: usize| {
            let text = format!("a = 1\n{}a = 2\n", "#\n".repeat(between));
            let length = text.len();
            let source = Arc::new(SourceText::new("/p.toml", text));
            let mut twice = fault(&source, length - 6..length - 5);
            twice.second =
                Some(Label { source: Arc::clone(&source), span: 0..1, note: "first defined here" });
            twice.to_string()
        };
        for (between, is_apart) in [(2045, false), (2046, true)] {
            let shown = shown(between);
            assert_eq!(shown.contains("::: /p.toml:1:1\n"), is_apart, "{shown}");
            assert!(shown.contains("a = 1\n") && shown.contains("first defined here"), "{shown}");
        }
        let line = |length: usize| {
            let source = Arc::new(SourceText::new("/p.toml", "a".repeat(length)));
            fault(&source, 0..1).to_string()
        };
        let headline = "/p.toml:1:1: something is wrong [some-code]";
        assert!(line(8192).starts_with(&format!("{headline}\n")), "an excerpt");
        assert_eq!(line(8193), headline);
    }

    #[test]
    fn a_second_label_stands_in_the_same_excerpt_or_names_its_file() {
        let source = Arc::new(SourceText::new("/p.toml", "a = 1\na = 2\n"));
        let mut twice = fault(&source, 6..7);
        twice.second = Some(Label { source: Arc::clone(&source), span: 0..1, note: "first defined here" });
        assert_eq!(
            twice.to_string(),
            "/p.toml:2:1: something is wrong [some-code]\n  |\n1 | a = 1\n  | - first defined here\n2 | a = 2\n  | ^"
        );
        let other = Arc::new(SourceText::new("/q.toml", "a = 3\n"));
        twice.second = Some(Label { source: other, span: 0..1, note: "first defined here" });
        assert!(twice.to_string().contains("/q.toml:1:1"));
    }

    #[test]
    fn a_span_over_several_lines_is_cut_and_one_beyond_the_end_harms_nothing() {
        let source = Arc::new(SourceText::new("/p.toml", "a = [\n1]"));
        assert!(fault(&source, 4..8).to_string().ends_with("1 | a = [\n  |     ^"));
        assert!(fault(&source, 8..8).to_string().starts_with("/p.toml:2:3: "));
        assert!(fault(&source, 90..99).headline().starts_with("/p.toml:2:3: "));
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let source = Arc::new(SourceText::new("/p\u{1b}.toml", "a = '\u{1b}[31m\u{9b}31m\u{202e}'\n"));
        let rendered = fault(&source, 0..1).to_string();
        assert!(rendered.starts_with("/p\\u{1b}.toml:1:1: "));
        assert!(!rendered.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{rendered}");
    }
}
