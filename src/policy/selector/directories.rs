//! `directories`: the working directory. `/proj/apollo/**` includes the directory itself, which the plain
//! pattern would not match.

use std::os::unix::ffi::OsStrExt;

use super::alternatives::{Entry, can_be_absolute, pattern};
use crate::{
    judge::terms::LookupError,
    policy::{
        Capture, Captured, EvalContext, Key, Pattern, RelevantInputs, Shape, Subject,
        capture::{captures, is_literal},
        fault::Fault,
        key::key,
    },
};

#[derive(Debug)]
pub(crate) struct DirectoryEntry {
    /// With a star for each captured part.
    pattern: Pattern,
    /// `/proj/**` also matches the directory itself.
    itself: Option<Pattern>,
    capturing: Option<Box<Capturing>>,
}

#[derive(Debug)]
struct Capturing {
    /// The entry as it is written.
    text: String,
    /// The number of each part, counted from 0 at the root, with its name.
    parts: Vec<(usize, String)>,
}

impl Capturing {
    /// Extracts the captures of an entry, and returns the pattern.
    fn of(text: &str, captures: &[Capture<'_>]) -> Result<(Self, String), Fault> {
        let (mut pattern, mut parts, mut slashes, mut end) = (String::new(), Vec::new(), 0, 0);
        for capture in captures {
            let name = capture.name.to_owned();
            let (before, after) = (&text[end..capture.start], &text[capture.end..]);
            if !before.ends_with('/') || !(after.is_empty() || after.starts_with('/')) {
                return Err(Fault::PartialCapture { name });
            }
            if !is_literal(before, Subject::Path) {
                return Err(Fault::CaptureAfterPattern { name });
            }
            pattern.extend([before, "*"]);
            slashes += before.matches('/').count();
            parts.push((slashes - 1, name));
            end = capture.end;
        }
        pattern.push_str(&text[end..]);
        Ok((Capturing { text: text.to_owned(), parts }, pattern))
    }
}

/// The parts between the slashes; one slash is at the start.
fn parts_of(directory: &[u8]) -> impl Iterator<Item = &[u8]> {
    directory.split(|byte| *byte == b'/').skip(1)
}

impl DirectoryEntry {
    fn has(&self, directory: &[u8]) -> bool {
        (self.pattern.matches(directory)
            || self.itself.as_ref().is_some_and(|itself| itself.matches(directory)))
            && self
                .parts()
                .all(|(part, _)| parts_of(directory).nth(*part).is_some_and(|part| !part.is_empty()))
    }

    fn parts(&self) -> impl Iterator<Item = &(usize, String)> {
        self.capturing.iter().flat_map(|capturing| &capturing.parts)
    }
}

impl Entry for DirectoryEntry {
    const KEY: Key = key("directories", Shape::Texts, "Working directories.", "Limits by project.").filled();

    fn parse(text: &str) -> Result<Self, Fault> {
        let text = if text.len() > 1 { text.trim_end_matches('/') } else { text };
        if !can_be_absolute(text) {
            return Err(Fault::RelativeDirectory { entry: text.to_owned() });
        }
        let captures = if text.contains('{') { captures(text, Subject::Path)? } else { Vec::new() };
        let (capturing, text) = match captures.as_slice() {
            [] => (None, text.to_owned()),
            captures => Capturing::of(text, captures).map(|(parts, text)| (Some(Box::new(parts)), text))?,
        };
        let itself = text.strip_suffix("/**").filter(|itself| !itself.is_empty());
        Ok(DirectoryEntry {
            itself: itself.map(|itself| pattern(itself, Subject::Path)).transpose()?,
            pattern: pattern(&text, Subject::Path)?,
            capturing,
        })
    }

    fn matches(&self, facts: &EvalContext<'_>, _layer: usize) -> Result<bool, LookupError> {
        Ok(self.has(facts.request.directory.as_os_str().as_bytes()))
    }

    fn inputs(&self) -> RelevantInputs {
        RelevantInputs::DIRECTORIES
    }

    fn covers(&self, narrow: &Self) -> bool {
        self.pattern.text() == narrow.pattern.text()
            || narrow.pattern.literal().is_some_and(|directory| self.has(directory.as_bytes()))
    }

    fn is_plain(&self) -> bool {
        self.pattern.literal().is_some()
    }

    fn text(&self) -> String {
        self.capturing.as_ref().map_or(self.pattern.text(), |capturing| &capturing.text).to_owned()
    }

    fn captures(&self) -> Vec<&str> {
        self.parts().map(|(_, name)| name.as_str()).collect()
    }

    fn captured(&self, facts: &EvalContext<'_>) -> Vec<Captured> {
        let directory = facts.request.directory.as_os_str().as_bytes();
        let part = |(part, name): &(usize, String)| {
            let value = parts_of(directory).nth(*part)?.to_vec();
            Some(Captured { name: name.clone(), value })
        };
        if self.has(directory) { self.parts().filter_map(part).collect() } else { Vec::new() }
    }
}
