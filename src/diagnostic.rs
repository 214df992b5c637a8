//! Places in text files, and how what is wrong there is shown to people: `path:line:col: message [code]`, the line, a
//! caret. It knows nothing of policies; the wording comes from whoever found the fault.

use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};

/// The text of a file, kept so that faults can show its lines.
#[derive(Debug)]
pub struct SourceText {
    path: PathBuf,
    text: String,
}

impl SourceText {
    /// A file that was read, or a text that stands for one.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        SourceText { path: path.into(), text: text.into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its path for people, control characters escaped.
    pub fn shown_path(&self) -> impl Display {
        self.path.display().to_string().escape_debug().to_string()
    }

    /// Line and column of an offset, both counted from 1, the column in characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..offset.min(self.text.len())];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
    }
}

/// One fault or warning.
#[derive(Debug)]
pub struct Diagnostic {
    code: &'static str,
    message: String,
}

impl Diagnostic {
    /// The stable code, in kebab-case.
    pub fn code(&self) -> &'static str {
        self.code
    }
}

impl Display for Diagnostic {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}]", self.message, self.code)
    }
}
