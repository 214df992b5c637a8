//! `rungate shim list`: what each shim starts, whether it is reached at all, and which rules match. The search is that of a
//! launch, and so is the evaluator.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    commands::{print, run, situation::Situation},
    decision::decide,
    error::Error,
    exit_status::ExitStatus,
    launch::{program::Program, search::Search, shim::Shim, shim_directory::ShimDirectory},
    output::{json, table::Table, visible::visible},
    policy::Policy,
    sys::executable,
};

/// Shows the shims in these directories, or in all of `PATH`.
pub(super) fn list(directories: &[PathBuf], as_json: bool, policy: Option<PathBuf>) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let policy = situation.load_policy(policy)?;
    let search = Search::of_environment();
    let mut shims: Vec<Listed> = Vec::new();
    for directory in wanted(directories, &search, &situation)? {
        let names = directory.shims().map_err(|error| Error::new(ExitStatus::System, error.to_string()))?;
        shims
            .extend(names.into_iter().map(|name| Listed::of(&directory, name, &search, &policy, &situation)));
    }
    print(&if as_json { to_json(&shims) } else { to_text(&shims) })
}

/// Directories that are named must be there; those of `PATH` need not be.
fn wanted(
    directories: &[PathBuf],
    search: &Search,
    situation: &Situation,
) -> Result<Vec<ShimDirectory>, Error> {
    let open = |path: &PathBuf| ShimDirectory::open(situation.directory.join(path));
    if directories.is_empty() {
        let is_first = |(at, entry): &(usize, &PathBuf)| search.position(entry) == Some(*at);
        let entries = search.entries().iter().enumerate().filter(is_first);
        return Ok(entries.filter_map(|(_, entry)| open(entry).ok()).collect());
    }
    let opened: Result<Vec<ShimDirectory>, _> = directories.iter().map(open).collect();
    opened.map_err(|error| Error::new(ExitStatus::System, error.to_string()))
}

/// A shim, and what there is to know of it.
struct Listed {
    shim: Shim,
    program: Option<PathBuf>,
    rules: Vec<String>,
    /// The program that an earlier entry of `PATH` has.
    shadowed_by: Option<PathBuf>,
    is_in_path: bool,
    note: String,
}

impl Listed {
    fn of(
        directory: &ShimDirectory,
        name: OsString,
        search: &Search,
        policy: &Policy,
        situation: &Situation,
    ) -> Self {
        let shim = Shim { path: directory.link(&name), name };
        let found = run::find(|name| policy.executable(name), &shim.name, Some(&shim), &situation.directory);
        let position = search.position(directory.path());
        let shadowed_by = search.entries()[..position.unwrap_or(0)]
            .iter()
            .map(|entry| entry.join(&shim.name))
            .find(|path| executable::check(path).is_ok_and(|id| executable::own() != Some(id)));
        let note = if let Some(fault) = Shim::fault_of(&shim.name) {
            fault.to_owned()
        } else if executable::identity(&shim.path).is_none() {
            "leads to a rungate that is gone".to_owned()
        } else if let Some(other) = &shadowed_by {
            format!("shadowed by {}", visible(other))
        } else if found.is_err() {
            "no program behind it".to_owned()
        } else if position.is_none() {
            "its directory is not in PATH".to_owned()
        } else if executable::identity(&shim.path) != executable::own() {
            "leads to another rungate".to_owned()
        } else if policy.is_empty() {
            "there is no policy, so it starts nothing".to_owned()
        } else {
            String::new()
        };
        let supposed = || Program::supposed(&shim.name, Path::new("/"));
        let rules = rules(policy, situation, &shim, found.as_ref().ok().unwrap_or(&supposed()));
        let program = found.ok().map(|program| program.path);
        Self { program, rules, shadowed_by, is_in_path: position.is_some(), note, shim }
    }
}

/// The rules that match the command for the caller, with no arguments.
fn rules(policy: &Policy, situation: &Situation, shim: &Shim, program: &Program) -> Vec<String> {
    let decision = decide(policy, &situation.request(&shim.name, &[], program));
    let matching = decision.trace.iter().filter(|entry| entry.matches());
    matching.map(|entry| entry.rule.shown_name().to_owned()).collect()
}

fn to_text(shims: &[Listed]) -> String {
    if shims.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["SHIM", "STARTS", "RULES", "NOTE"]);
    for listed in shims {
        let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        table.row([
            visible(&listed.shim.path),
            or_dash(listed.program.as_ref().map_or_else(String::new, visible)),
            or_dash(visible(listed.rules.join(", "))),
            listed.note.clone(),
        ]);
    }
    table.render()
}

fn to_json(shims: &[Listed]) -> String {
    let listed: Vec<Value> = shims
        .iter()
        .map(|listed| {
            json!({
                "name": visible(&listed.shim.name),
                "path": visible(&listed.shim.path),
                "program": listed.program.as_ref().map(visible),
                "rules": listed.rules,
                "in_path": listed.is_in_path,
                "shadowed_by": listed.shadowed_by.as_ref().map(visible),
                "note": (!listed.note.is_empty()).then_some(&listed.note),
            })
        })
        .collect();
    json::render(&Value::Array(listed))
}
