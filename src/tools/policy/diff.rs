//! `rungate policy diff`: compares two policies by rules, repositories and settings instead of lines.

use std::{
    fmt::Write as _,
    io::{self, Read},
    path::Path,
};

use crate::{
    cli::DiffArguments,
    judge::terms::provenance::Place,
    launch::situation::Situation,
    policy::{Change, Detail, Difference, KeyChange, PartKind, Policy, Turn},
    sys::failure::errno_of,
    text::{
        columns::width,
        error::{Error, ExitStatus},
        escape::visible,
        stream::print,
    },
};

/// The name of standard input.
const STANDARD_INPUT: &str = "-";

/// Prints the differences; the status shows whether there are any, like that of diff(1).
pub(super) fn run(arguments: &DiffArguments, situation: &Situation) -> Result<u8, Error> {
    let DiffArguments { old, new } = arguments;
    if [old, new].iter().all(|path| path.as_os_str() == STANDARD_INPUT) {
        let text = "standard input can be one of the two policies, and not both";
        return Err(Error::new(ExitStatus::Usage, text));
    }
    let (old, new) = (read(old, situation)?, read(new, situation)?);
    let difference = Difference::between(&old, &new);
    print(&describe(&difference))?;
    Ok(if difference.is_empty() { ExitStatus::Success } else { ExitStatus::Failure } as u8)
}

fn read(path: &Path, situation: &Situation) -> Result<Policy, Error> {
    let read = if path.as_os_str() == STANDARD_INPUT {
        Policy::of_text("standard input", text_of_standard_input()?)
    } else {
        Policy::at(path, situation.credentials.uid)
    };
    read.map_err(|faults| situation.faulty(&faults).advise(advice(path)))
}

fn text_of_standard_input() -> Result<String, Error> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text).map_err(|error| {
        let why = if error.kind() == io::ErrorKind::InvalidData {
            "it is no UTF-8"
        } else {
            errno_of(&error).desc()
        };
        Error::new(ExitStatus::System, format!("standard input cannot be read: {why}"))
    })?;
    Ok(text)
}

/// A single file is compared without drop-ins and main file.
fn advice(path: &Path) -> Option<String> {
    let is_file = path.is_file();
    is_file.then(|| {
        "To compare with other files, name a directory that has policy.toml and policy.d.".to_owned()
    })
}

// The differences of two policies, for people: a mark, the part and its place; below it a line for each key.

/// The part before the lines about keys.
const INDENT: &str = "    ";

/// All of it, each line with its newline.
pub(super) fn describe(difference: &Difference) -> String {
    difference.changes().iter().fold(String::new(), |mut text, change| {
        describe_one(change, &mut text);
        text
    })
}

fn describe_one(change: &Change, text: &mut String) {
    let mark = match change.turn {
        Turn::Added => '+',
        Turn::Removed => '-',
        Turn::Changed | Turn::Renamed => '~',
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{mark} {}", headline(change));
    let lines: Vec<(String, String)> = lines(change);
    let column = lines.iter().map(|(key, _)| width(key)).max().unwrap_or_default();
    for (key, value) in lines {
        let gap = column - width(&key);
        let _ = writeln!(text, "{INDENT}{key}{:gap$}  {value}", "");
    }
}

fn headline(change: &Change) -> String {
    let mut line = change.kind.word().to_owned();
    if !change.name.is_empty() {
        line += &format!(" {}", shown_name(change.kind, &change.name));
    }
    if let Some(former) = &change.former_name {
        line += &format!(", before: {}", shown_name(change.kind, former));
    }
    match change.new_place.as_ref().or(change.old_place.as_ref()) {
        Some(place) => format!("{line} ({})", short(place)),
        None => line,
    }
}

/// The names of rules and tests are sentences.
fn shown_name(kind: PartKind, name: &str) -> String {
    let name = visible(name);
    if matches!(kind, PartKind::Rule | PartKind::Test) { format!("\"{name}\"") } else { name }
}

fn short(place: &Place) -> String {
    let file = place.path().file_name().unwrap_or(place.path().as_os_str());
    format!("{}:{}", visible(file), place.line())
}

/// Each key with its change.
fn lines(change: &Change) -> Vec<(String, String)> {
    // For a new or removed test, its name is enough.
    if change.kind == PartKind::Test && change.turn != Turn::Changed {
        return Vec::new();
    }
    // The order of a family is shown as one change; for a new or removed table, every key is.
    if change.kind == PartKind::Family || matches!(change.turn, Turn::Added | Turn::Removed) {
        return change
            .keys
            .iter()
            .map(|key| whole(change.turn, key.key, key.old.as_deref(), key.new.as_deref()))
            .collect();
    }
    change.keys.iter().flat_map(KeyChange::details).map(|detail| line(&detail)).collect()
}

fn line(detail: &Detail<'_>) -> (String, String) {
    match detail {
        Detail::Value { key, old, new } => whole(Turn::Changed, key, *old, *new),
        Detail::Lost { key, value } => (visible(key), format!("- {}", visible(value))),
        Detail::Gained { key, value } => (visible(key), format!("+ {}", visible(value))),
    }
}

fn whole(turn: Turn, key: &str, old: Option<&str>, new: Option<&str>) -> (String, String) {
    let shown = |value: Option<&str>| value.map_or_else(|| "not set".to_owned(), visible);
    let value = match turn {
        Turn::Added => shown(new),
        Turn::Removed => shown(old),
        Turn::Changed | Turn::Renamed => format!("{} -> {}", shown(old), shown(new)),
    };
    (visible(key), value)
}
