//! The programs behind commands: whether the programs that the policy names exist.

use std::{
    cell::OnceCell,
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs,
    path::PathBuf,
};

use super::{
    context::Context,
    finding::{Finding, Section},
    page::counted,
    repositories::{Want, barrier},
};
use crate::{
    cli::Topic,
    launch::{program::Search, run::stages},
    policy::Policy,
    sys::executable,
    text::escape::Show,
};

/// Where programs are, besides the directories of `PATH`.
const USUAL: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

pub(super) fn look(examination: &Context) -> Section {
    let Some(policy) = examination.policy() else {
        return Section::without_policy(Topic::Programs);
    };
    let names = policy.command_names();
    let summary = match names.len() {
        0 => "the policy names no command literally".to_owned(),
        count => counted(count, "command") + " that the policy names",
    };
    let programs = Programs::default();
    let findings = names.into_iter().map(|name| of_command(name, policy, &programs, examination)).collect();
    Section::new(Topic::Programs, summary, findings)
}

fn of_command(name: &str, policy: &Policy, programs: &Programs, examination: &Context) -> Finding {
    match policy.executable(OsStr::new(name)) {
        Some(_) => missing(name, policy, examination).unwrap_or_else(|| {
            Finding::fine("program", format!("{}: the program of [command] exists", name.shown()))
        }),
        None => found(name, policy, programs, examination),
    }
}

/// Programs that `[command.NAME] exec` names and that no user, or none but root, can start.
pub(super) fn all_missing(examination: &Context) -> Vec<Finding> {
    let Some(policy) = examination.policy() else { return Vec::new() };
    policy.command_names().into_iter().filter_map(|name| missing(name, policy, examination)).collect()
}

/// What is wrong with the program that `[command.NAME] exec` names.
fn missing(name: &str, policy: &Policy, examination: &Context) -> Option<Finding> {
    let program = policy.executable(OsStr::new(name))?;
    let key = format!("[command.{}] exec = \"{}\"", name.shown(), program.shown());
    if let Err(errno) = executable::check(program) {
        let text = format!("{key}: {}: nobody can start {}", errno.desc(), name.shown());
        return Some(
            Finding::fault("program-missing", text)
                .mend("Name the path of the program, or remove the lines."),
        );
    }
    let barrier = barrier(program, Want::Execute).filter(|_| examination.is_root())?;
    let text = format!("{}: users cannot start {}", barrier.text(), name.shown());
    Some(Finding::warning("program-closed", text).mend(barrier.mend()))
}

/// A command without one is looked for in `PATH`, which others may have otherwise.
fn found(name: &str, policy: &Policy, programs: &Programs, examination: &Context) -> Finding {
    let typed = OsString::from(name);
    let found = stages::find(|name| policy.executable(name), &typed, None, &examination.situation.directory);
    match found {
        Ok(program) => Finding::fine("program", format!("{}: {}", name.shown(), program.path.shown())),
        Err(_) => misspelt(name, programs).unwrap_or_else(|| {
            Finding::note("program-unknown", format!("{} is not in this PATH", name.shown()))
        }),
    }
}

/// Commands that are nowhere on this host while a program with nearly the same name is.
pub(super) fn all_misspelt(examination: &Context) -> Vec<Finding> {
    let Some(policy) = examination.policy() else { return Vec::new() };
    let programs = Programs::default();
    let names = policy.command_names().into_iter();
    let unknown = names.filter(|name| policy.executable(OsStr::new(name)).is_none());
    unknown.filter_map(|name| misspelt(name, &programs)).collect()
}

/// The names of all programs of this host, read when the first of them is needed.
#[derive(Default)]
struct Programs(OnceCell<BTreeSet<String>>);

impl Programs {
    fn names(&self) -> &BTreeSet<String> {
        self.0.get_or_init(|| {
            let search = Search::of_environment();
            let usual = USUAL.map(PathBuf::from);
            let directories = search.entries().iter().chain(&usual).filter(|path| path.is_absolute());
            let entries = directories.filter_map(|path| fs::read_dir(path).ok()).flatten().flatten();
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
        })
    }
}

/// A command that only exists under a similar name. One without a neighbour may be a name for `--as`, or on
/// other hosts.
fn misspelt(name: &str, programs: &Programs) -> Option<Finding> {
    let slips = match name.chars().count() {
        ..4 => return None,
        4..8 => 1,
        _ => 2,
    };
    if programs.names().contains(name) {
        return None;
    }
    let distance = |known: &String| strsim::damerau_levenshtein(name, known);
    let near = programs.names().iter().map(|known| (distance(known), known)).min()?;
    (near.0 <= slips).then(|| {
        let text = format!("{} was not found on this host; did you mean {}?", name.shown(), near.1.shown());
        let place = format!("[command.{}] exec = \"/path/{}\"", name.shown(), name.shown());
        Finding::warning("program-misspelt", text)
            .mend(format!("Correct the name; or, if users have the program in another place: {place}"))
    })
}
