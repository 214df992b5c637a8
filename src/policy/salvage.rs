//! What can be shown of a policy with faults: its repositories, except those that a fault may have changed.
//! No launch is judged by it, so it has no rules.

use std::path::Path;

use super::{Policy, Repository, Sources, findings::Faults};
use crate::text::diagnostic::Diagnostic;

/// Tables whose faults change no repository.
const HARMLESS: [&str; 5] = ["rule", "test", "command", "log", "delegate"];

impl Policy {
    /// The policy; or, if it has faults, its sound repositories and the faults.
    pub fn salvage(sources: &Sources) -> (Policy, Option<Faults>) {
        let faults = match Self::load_sound(sources) {
            Ok(policy) => return (policy, None),
            Err(faults) => faults,
        };
        let (read, _) = Self::as_far_as_sound(sources.read(&|_| true), sources.caller == 0, None);
        let Policy { layers, mut repositories, files, .. } = read;
        let texts: Vec<(&Path, &str)> = files.iter().map(|file| (file.path(), file.text())).collect();
        repositories.retain(|known| !faults.iter().any(|fault| may_change(fault, known, &texts, sources)));
        (Policy { layers, repositories, files, ..Policy::default() }, Some(faults))
    }
}

/// Whether a fault may have changed a repository.
fn may_change(fault: &Diagnostic, known: &Repository, texts: &[(&Path, &str)], sources: &Sources) -> bool {
    let (file, of) = (fault.path.as_path(), known.place.path());
    let text = texts.iter().find(|(path, _)| *path == file).map(|(_, text)| text);
    let (Some(text), Some((line, _))) = (text, fault.line_column()) else { return false };
    match repositories_at(text, line) {
        Some(names) => of == file && names.contains(&known.name()),
        // Defaults and aliases are the layer's, and only the system's layer has several files.
        None => {
            let is_of_system = |path: &Path| path == sources.system || sources.is_drop_in(path);
            of == file || (is_of_system(of) && is_of_system(file))
        }
    }
}

/// The repositories whose tables a line belongs to; none if it may belong to what all have in common.
fn repositories_at(text: &str, line: usize) -> Option<Vec<&str>> {
    let headers = text.lines().enumerate().filter_map(|(index, text)| Some((index + 1, header(text)?)));
    let before: Vec<(usize, &str)> = headers.take_while(|(at, _)| *at <= line).collect();
    // The keys below a damaged header belong to the table before it.
    let count = if before.last()?.0 == line { 2 } else { 1 };
    let mut found = Vec::new();
    for (_, header) in before.iter().rev().take(count) {
        let mut names = header.split('.').map(|name| name.trim().trim_matches(['"', '\'']));
        match (names.next(), names.next()) {
            (Some(table), _) if HARMLESS.contains(&table) => {}
            (Some("repository"), Some(name)) => found.push(name),
            _ => return None,
        }
    }
    Some(found)
}

/// The name in a line that opens a table.
fn header(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix('[')?.trim_start_matches('[');
    Some(name.split([']', '#']).next().unwrap_or(name).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_belongs_to_the_table_above_it() {
        let text = "version = 1\n[alias]\na = 1\n[repository.one]\nlimit = 1\n[repository.\"two\"\nlimit = 2\n\
                    [[rule]]\nacquire = [\n[repository.one.limits]\n";
        let names = |line| repositories_at(text, line);
        assert_eq!((names(1), names(3)), (None, None));
        assert_eq!(names(5), Some(vec!["one"]));
        assert_eq!(names(6), Some(vec!["two", "one"]));
        assert_eq!(names(9), Some(Vec::new()));
        assert_eq!(names(10), Some(vec!["one"]));
    }
}
