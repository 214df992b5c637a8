//! Collects what reading and validation find. They do not stop at the first fault: they report it and
//! continue with the rest, and the whole list decides in the end.

use std::{cell::RefCell, error::Error, fmt, ops::Range, path::PathBuf, sync::Arc};

use super::{
    At, ECHOES,
    fault::Fault,
    malformed::{is_header, line_start, next_header},
    spelling::nearest,
    warning::Warning,
};
use crate::text::{Diagnostic, Severity, SourceText};

/// How many faults of a file are kept, besides what is not TOML, which the reader limits: all of that may be
/// shown as one. Each is compared with the others, and shown to each user whom it affects.
const MOST: usize = 100;

/// For how many unknown names a similar one is searched, and among how many: any file can have thousands of
/// both.
const MOST_SEARCHED: usize = 10;
const MOST_COMPARED: usize = 1000;

/// Everything found so far, with its place.
#[derive(Debug, Default)]
pub(super) struct Findings {
    faults: RefCell<Vec<(At, Fault)>>,
    warnings: RefCell<Vec<(At, Warning)>>,
    /// The names for which a similar one was searched, each with its place, and what was found.
    searched: RefCell<Vec<(At, String, Option<String>)>>,
}

impl Findings {
    pub(super) fn fault(&self, at: At, fault: Fault) {
        if self.are_full(at.file) {
            return;
        }
        let (mut faults, fault) = (self.faults.borrow_mut(), (at, fault));
        // The entries of an alias are read wherever it is used.
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }

    /// Whether no more faults of a file are kept.
    pub(super) fn are_full(&self, file: usize) -> bool {
        let counts = |(at, fault): &&(At, Fault)| at.file == file && !matches!(fault, Fault::Syntax { .. });
        self.faults.borrow().iter().filter(counts).count() >= MOST
    }

    /// The most similar of the names that files define, for the first ones that are unknown.
    pub(super) fn nearest<'n>(
        &self,
        at: At,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) -> Option<String> {
        let mut searched = self.searched.borrow_mut();
        if let Some((.., found)) = searched.iter().find(|(place, word, _)| *place == at && word == name) {
            return found.clone();
        }
        if searched.len() == MOST_SEARCHED {
            return None;
        }
        let found = nearest(name, known.into_iter().take(MOST_COMPARED));
        searched.push((at, name.to_owned(), found.clone()));
        found
    }

    pub(super) fn warning(&self, at: At, warning: Warning) {
        self.warnings.borrow_mut().push((at, warning));
    }

    pub(super) fn are_clean(&self) -> bool {
        self.faults.borrow().is_empty()
    }

    /// The faults, or, when there is none, the warnings.
    pub(super) fn close(self, files: &[Arc<SourceText>]) -> Result<Vec<Diagnostic>, Faults> {
        let mut faults = self.faults.into_inner();
        if !faults.is_empty() {
            drop_echoes(&mut faults, files);
            drop_undefined(&mut faults, files);
            faults.sort_by_key(|(at, _)| *at);
            let shown = faults.iter().map(|(at, fault)| {
                let message = fault.to_string();
                diagnostic(files, Severity::Fault, *at, fault.code(), message, fault.second())
            });
            return Err(Faults::new(shown.collect()));
        }
        let mut warnings = self.warnings.into_inner();
        warnings.sort_by_key(|(at, _)| *at);
        warnings.dedup();
        let shown = warnings.iter().map(|(at, warning)| {
            let message = warning.to_string();
            diagnostic(files, Severity::Warning, *at, warning.code(), message, warning.second())
        });
        Ok(shown.collect())
    }
}

/// After a line that is not TOML the rest of the file is read as well as possible. Faults on that line,
/// faults about something that may have been there, and repeated faults of one name at one place follow from
/// the first.
fn drop_echoes(faults: &mut Vec<(At, Fault)>, files: &[Arc<SourceText>]) {
    let line = |at: &At| files.get(at.file).map_or(0, |file| file.line_column(at.start).0);
    let syntax = faults.iter().filter(|(_, fault)| matches!(fault, Fault::Syntax { .. }));
    let broken: Vec<(usize, usize)> = syntax.clone().map(|(at, _)| (at.file, line(at))).collect();
    if broken.is_empty() {
        return;
    }
    let lines: Vec<&str> = syntax.clone().filter_map(|(at, _)| line_of(files, at)).collect();
    let mentioned = |name: &str| lines.iter().any(|line| line.contains(name));
    // After an invalid header, its keys belong to the table before it.
    let below_header = |(at, _): &(At, Fault)| {
        let text = files.get(at.file)?.text();
        is_header(text, at.start).then(|| (at.file, at.start..next_header(text, at.start)))
    };
    let strays: Vec<(usize, Range<usize>)> = syntax.filter_map(below_header).collect();
    let strays = |at: &At| strays.iter().any(|(file, range)| *file == at.file && range.contains(&at.start));
    let mut shown_lines = Vec::new();
    faults.sort_by_key(|(at, _)| *at);
    faults.retain(|(at, fault)| {
        let place = (at.file, line(at));
        let in_broken_file = broken.iter().any(|(file, _)| *file == at.file);
        match fault {
            // Only the first of a line: the parser also reports every token after it, and after a missing
            // quote the next line.
            Fault::Syntax { reason } => {
                let before = (at.file, place.1.saturating_sub(1));
                let is_echo = ECHOES.contains(&reason.as_str()) && shown_lines.contains(&before);
                let first = !shown_lines.contains(&place) && !is_echo;
                shown_lines.push(place);
                first
            }
            Fault::MissingKey { .. }
            | Fault::NoLimit { .. }
            | Fault::NothingToDo
            | Fault::NeedsKey { .. } => !in_broken_file,
            Fault::UnknownRepository { name, .. } | Fault::UnknownAlias { name, .. } => !mentioned(name),
            _ => !broken.contains(&place) && !strays(at),
        }
    });
}

/// The line that a fault begins in.
fn line_of<'f>(files: &'f [Arc<SourceText>], at: &At) -> Option<&'f str> {
    let text = files.get(at.file)?.text();
    text.get(line_start(text, at.start)..)?.lines().next()
}

/// A table with a misspelt header counts as defined.
fn drop_undefined(faults: &mut Vec<(At, Fault)>, files: &[Arc<SourceText>]) {
    let misspelt = faults.iter().filter_map(|(at, fault)| match fault {
        Fault::UnknownKey { nearest: Some(nearest), .. }
            if ["repository", "alias"].contains(&nearest.as_str()) =>
        {
            line_of(files, at)
        }
        _ => None,
    });
    let misspelt: Vec<&str> = misspelt.collect();
    faults.retain(|(_, fault)| match fault {
        Fault::UnknownRepository { name, .. } | Fault::UnknownAlias { name, .. } => {
            !misspelt.iter().any(|line| line.contains(name.as_str()))
        }
        _ => true,
    });
}

fn diagnostic(
    files: &[Arc<SourceText>],
    severity: Severity,
    at: At,
    code: &'static str,
    message: String,
    second: Option<(At, &'static str)>,
) -> Diagnostic {
    let file = files.get(at.file);
    let second = second.and_then(|(at, note)| files.get(at.file).map(|file| at.label(file, note)));
    Diagnostic {
        severity,
        code,
        message,
        path: file.map_or_else(PathBuf::new, |file| file.path().to_owned()),
        label: file.filter(|_| at != At::whole(at.file)).map(|file| at.label(file, "")),
        second,
    }
}

// Everything that is wrong with a policy, at once. If this value exists, there is no policy: nothing was
// applied.

/// All faults of all files, sorted by file and place; never empty.
#[derive(Clone, Debug)]
pub struct Faults {
    diagnostics: Vec<Diagnostic>,
    affected: Affected,
}

/// Who can start nothing because of faults.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Affected {
    Everybody,
    /// The users of delegated files, which alone have faults.
    Department,
    /// The caller: the system's policy is sound, and that of the caller is not.
    Caller,
}

impl Faults {
    pub(super) fn new(diagnostics: Vec<Diagnostic>) -> Self {
        Faults { diagnostics, affected: Affected::Everybody }
    }

    /// If all of them are in files that affect these alone.
    pub(super) fn affecting(self, affected: Affected, is_theirs: impl Fn(&Diagnostic) -> bool) -> Self {
        if self.iter().all(is_theirs) { Faults { affected, ..self } } else { self }
    }

    /// Whom they affect.
    pub fn affected(&self) -> Affected {
        self.affected
    }

    /// One after the other.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.diagnostics.iter()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.diagnostics.len()
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Faults {
    /// All of them in full, with an empty line between two.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.diagnostics.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{diagnostic}")?;
        }
        Ok(())
    }
}

impl Error for Faults {}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::policy::{LayerKind, LayerText, Policy};

    /// Faults affect one user, or a department, only if all of them are in files of theirs.
    #[test]
    fn a_fault_in_another_file_affects_everybody() {
        let affected = |names: &[&str]| {
            let files = names.iter().map(|name| SourceText::new(*name, "unknown = 1\n")).collect();
            let layer = LayerText { kind: LayerKind::System, files };
            let faults = Policy::of_layers(vec![layer], false).expect_err("unknown keys");
            assert_eq!(faults.count(), names.len());
            faults.affecting(Affected::Caller, |fault| fault.path == Path::new("/own.toml")).affected()
        };
        assert_eq!(affected(&["/own.toml"]), Affected::Caller);
        assert_eq!(affected(&["/main.toml"]), Affected::Everybody);
        assert_eq!(affected(&["/main.toml", "/own.toml"]), Affected::Everybody);
    }

    /// Of a file the first hundred faults are kept, and a similar name is searched for the first ten unknown
    /// names. Another file has faults of its own.
    #[test]
    fn of_thousands_of_faults_the_first_hundred_are_kept() {
        let aliases: String = (0..500).map(|n| format!("name{n} = [\"x\"]\n")).collect();
        let users: String = (0..20_000).map(|n| format!("\"@nam{n}\", ")).collect();
        let text = format!("[alias]\n{aliases}[[rule]]\nusers = [{users}]\naction = \"deny\"\n");
        let files = [text, "unknown = 1\n".to_owned()].into_iter().zip(["/main.toml", "/main.d/10.toml"]);
        let files = files.map(|(text, path)| SourceText::new(path, text)).collect();
        let faults = Policy::of_layers(vec![LayerText { kind: LayerKind::System, files }], false);
        let faults = faults.expect_err("unknown aliases");
        let codes: Vec<&str> = faults.iter().map(|fault| fault.code).collect();
        assert_eq!(codes, [vec!["unknown-alias"; 100], vec!["unknown-key"]].concat());
        let suggests = |(n, fault): (usize, &Diagnostic)| {
            fault.message.ends_with(&format!("unknown alias \"@nam{n}\"; did you mean \"@name{n}\"?"))
        };
        let found: Vec<bool> = faults.iter().take(100).enumerate().map(suggests).collect();
        assert_eq!(found, [[true; 10].as_slice(), &[false; 90]].concat());
    }

    /// What is not TOML in many lines is shown as one fault, and hides no other one.
    #[test]
    fn a_hundred_lines_that_are_not_toml_hide_nothing() {
        let names: String = (0..120).map(|n| format!("\"name{n}\"\n")).collect();
        let text = format!(
            "[[rule]]\nusers = [\n{names}]\naction = \"deny\"\n[repository.a]\nlimit = 1\nunknown = 2\n"
        );
        let faults = Policy::of_text("/p.toml", text).expect_err("two faults");
        let found: Vec<_> = faults.iter().map(|fault| (fault.line_column(), fault.code)).collect();
        assert_eq!(found, [(Some((4, 1)), "syntax"), (Some((127, 1)), "unknown-key")]);
    }

    /// What is wrong in an alias is one fault, however often the alias is used.
    #[test]
    fn a_fault_in_an_alias_is_one() {
        let rule = "[[rule]]\nusers = [\"@list\"]\naction = \"deny\"\n";
        let text = format!("[alias]\nname = [\"x\"]\nlist = [\"@nam\"]\n{}", rule.repeat(20));
        let faults = Policy::of_text("/p.toml", text).expect_err("an unknown alias");
        let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(messages, ["unknown alias \"@nam\"; did you mean \"@name\"?"]);
    }
}
