//! What tmpfiles.d(5) makes at boot, read as systemd-tmpfiles(8) reads it: of files with one name that in the
//! first directory counts, and of lines for one path the first, in the order of the files' names.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use crate::escape::Show;

const DIRECTORIES: [&str; 4] =
    ["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"];

/// What reads them, also where systemd is not what starts services.
const READERS: [&str; 4] =
    ["/usr/bin/systemd-tmpfiles", "/bin/systemd-tmpfiles", "/bin/tmpfiles", "/usr/lib/rc/sh/tmpfiles.sh"];

/// What a line may have instead of a directory's name.
const SPECIFIERS: [(char, &str); 7] = [
    ('t', "/run"),
    ('S', "/var/lib"),
    ('C', "/var/cache"),
    ('L', "/var/log"),
    ('T', "/tmp"),
    ('V', "/var/tmp"),
    ('%', "%"),
];

/// A line that makes something.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Line {
    /// `FILE:LINE`
    pub(super) place: String,
    pub(super) path: PathBuf,
    /// None where it makes a link or a copy, which has what it leads to.
    pub(super) mode: Option<u32>,
    /// As it is written: a name or a number.
    pub(super) owner: String,
}

/// Whether anything reads such files at boot.
pub(super) fn are_read() -> bool {
    READERS.iter().any(|program| Path::new(program).exists())
}

/// All lines that make something, those first that count.
pub(super) fn lines() -> Vec<Line> {
    let mut files: BTreeMap<OsString, PathBuf> = BTreeMap::new();
    let entries = DIRECTORIES.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
    for entry in entries {
        files.entry(entry.file_name()).or_insert_with(|| entry.path());
    }
    let configured = files.into_values().filter(|path| path.extension().is_some_and(|end| end == "conf"));
    configured.flat_map(|path| lines_of(&path)).collect()
}

fn lines_of(path: &Path) -> Vec<Line> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let parsed = |(index, line)| parse(line, format!("{}:{}", path.shown(), index + 1));
    text.lines().enumerate().filter_map(parsed).collect()
}

/// `d /run/rungate 1777 root root -`
fn parse(line: &str, place: String) -> Option<Line> {
    let fields = fields(line);
    let usual = match fields.first()?.chars().next()? {
        'd' | 'D' | 'v' | 'q' | 'Q' => Some(0o755),
        'f' | 'F' => Some(0o644),
        'L' | 'C' => None,
        _ => return None,
    };
    let said = |at: usize| {
        fields.get(at).map(|field| field.trim_start_matches([':', '~'])).filter(|field| *field != "-")
    };
    let mode = usual.map(|usual| said(2).and_then(|mode| u32::from_str_radix(mode, 8).ok()).unwrap_or(usual));
    Some(Line { place, path: path(fields.get(1)?), mode, owner: said(3).unwrap_or("root").to_owned() })
}

fn path(field: &str) -> PathBuf {
    let mut text = String::new();
    let mut characters = field.chars();
    while let Some(c) = characters.next() {
        let letter = if c == '%' { characters.next() } else { None };
        match SPECIFIERS.iter().find(|(known, _)| Some(*known) == letter) {
            Some((_, meaning)) => text += meaning,
            None => text.extend([Some(c), letter].into_iter().flatten()),
        }
    }
    // Where older lines say it otherwise, systemd reads it so.
    let path = text.strip_prefix("/var/run/").map_or(text.clone(), |rest| format!("/run/{rest}"));
    PathBuf::from(path.trim_end_matches('/'))
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (field, after) = first_field(rest);
        fields.push(field);
        rest = after.trim_start();
    }
    fields
}

/// The first word, which may be quoted, and what comes behind it.
fn first_field(text: &str) -> (String, &str) {
    let is_quoted = text.starts_with('"');
    let mut field = String::new();
    let mut characters = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => field.extend(characters.next().map(|(_, escaped)| escaped)),
            '"' if is_quoted => return (field, &text[at + 1..]),
            c if c.is_whitespace() && !is_quoted => return (field, &text[at..]),
            c => field.push(c),
        }
    }
    (field, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(line: &str, expected: Option<(&str, Option<u32>, &str)>) {
        let parsed = parse(line, String::new());
        let parsed =
            parsed.as_ref().map(|line| (line.path.to_str().expect("text"), line.mode, line.owner.as_str()));
        assert_eq!(parsed, expected, "{line}");
    }

    #[test]
    fn lines_are_read_as_systemd_reads_them() {
        case("d /run/rungate 1777 root root -", Some(("/run/rungate", Some(0o1777), "root")));
        case("d! %t/rungate/ - - -", Some(("/run/rungate", Some(0o755), "root")));
        case("D /var/run/rungate ~0750 daemon", Some(("/run/rungate", Some(0o750), "daemon")));
        case("f+ \"/run/a \\\"b%%t\" 0666 0 0 - text", Some(("/run/a \"b%t", Some(0o666), "0")));
        case("L /run/rungate - - - - /srv/locks", Some(("/run/rungate", None, "root")));
        case("z /run/rungate 0700", None);
        case("# d /run/rungate", None);
        case("", None);
    }
}
