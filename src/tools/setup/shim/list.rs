//! `rungate shim list`: what each shim starts, whether it is found at all, and which rules match. It uses the
//! search and the evaluator of a launch. For each way in it says whether it leads to the shims.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::{
    cli::ShimListArguments,
    judge::decide,
    launch::{Program, Search, Shim, ShimDirectory, Situation, TOOLS, directory_of, run},
    policy::Policy,
    sys::executable,
    text::{Error, ExitStatus, json, print, stream, table::Table, visible},
    tools::shared::{
        Reach, WayIn,
        ways_in::{NOT_ASKED, ways_in},
    },
};
use serde_json::{Map, Value, json};

/// Where the package has login shells look for shims.
const USUAL: &str = "/etc/rungate/shims";

const NONE: &str = "rungate: there are no shims in PATH, nor in /etc/rungate/shims
To create one for each command that the policy names: rungate shim install /etc/rungate/shims";

/// Shows the shims in these directories, or in all of `PATH` and where they usually are.
pub(super) fn run(arguments: &ShimListArguments, situation: &Situation) -> Result<u8, Error> {
    let policy = situation.load_policy()?;
    let search = Search::of_environment();
    let mut shims: Vec<Listed> = Vec::new();
    for directory in wanted(&arguments.directories, &search, situation)? {
        let names = directory.shims().map_err(|error| Error::new(ExitStatus::System, error.to_string()))?;
        shims.extend(names.into_iter().map(|name| Listed::of(&directory, name, &search, &policy, situation)));
    }
    if shims.is_empty() && arguments.directories.is_empty() {
        stream::complain(NONE);
    }
    let ways = if shims.is_empty() { Some(Vec::new()) } else { ways_in() };
    let ways = ways.as_deref();
    print(&if arguments.json { to_json(&shims, ways.unwrap_or_default()) } else { to_text(&shims, ways) })
}

/// Named directories must exist; those of `PATH` need not.
fn wanted(
    directories: &[PathBuf],
    search: &Search,
    situation: &Situation,
) -> Result<Vec<ShimDirectory>, Error> {
    let open = |path: &PathBuf| ShimDirectory::open(situation.directory.join(path));
    if directories.is_empty() {
        let is_first = |(at, entry): &(usize, &PathBuf)| search.position(entry) == Some(*at);
        let entries = search.entries().iter().enumerate().filter(is_first);
        let usual = Some(PathBuf::from(USUAL)).filter(|usual| search.position(usual).is_none());
        let entries = entries.map(|(_, entry)| entry.clone()).chain(usual);
        return Ok(entries.filter_map(|entry| open(&entry).ok()).collect());
    }
    let opened: Result<Vec<ShimDirectory>, _> = directories.iter().map(open).collect();
    opened.map_err(|error| Error::new(ExitStatus::System, error.to_string()))
}

/// A shim, and the facts about it.
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
            "points to a rungate that does not exist".to_owned()
        } else if leads_to_tools(&shim.path) {
            format!("points to {TOOLS}, which starts no program")
        } else if let Some(other) = &shadowed_by {
            format!("shadowed by {}", visible(other))
        } else if found.is_err() {
            "no program behind it".to_owned()
        } else if position.is_none() {
            "its directory is not in PATH".to_owned()
        } else if executable::identity(&shim.path) != executable::own() {
            "points to a different rungate".to_owned()
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

fn leads_to_tools(link: &Path) -> bool {
    link.canonicalize().is_ok_and(|target| target.file_name().is_some_and(|name| name == TOOLS))
}

/// The rules that match the command for the caller, with no arguments.
fn rules(policy: &Policy, situation: &Situation, shim: &Shim, program: &Program) -> Vec<String> {
    let decision = decide(policy, &situation.request(&shim.name, &[], program));
    let matching = decision.trace.iter().filter(|entry| entry.matches());
    matching.map(|entry| entry.rule.shown_name().to_owned()).collect()
}

fn to_text(shims: &[Listed], ways: Option<&[WayIn]>) -> String {
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
    let shims: Vec<&Shim> = shims.iter().map(|listed| &listed.shim).collect();
    let reach = ways.map_or_else(|| format!("Ways in: {NOT_ASKED}\n"), |ways| reach_to_text(&shims, ways));
    format!("{}\n{reach}", table.render())
}

fn to_json(shims: &[Listed], ways: &[WayIn]) -> String {
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
                "ways": reach_to_json(&listed.shim, ways),
                "note": (!listed.note.is_empty()).then_some(&listed.note),
            })
        })
        .collect();
    json::render(&Value::Array(listed))
}

// Which ways in lead to the listed shims, and what the others need.

/// How many shims that a way misses are named.
const NAMED: usize = 3;

/// A table of the ways, and below it the fixes for those that miss a shim.
pub(super) fn reach_to_text(shims: &[&Shim], ways: &[WayIn]) -> String {
    let mut table = Table::new(&["WAY IN", "SHIMS"]);
    let mut remedies: Vec<String> = Vec::new();
    for way in ways {
        let missed: Vec<&Shim> = shims.iter().copied().filter(|shim| misses(way, shim)).collect();
        table.row([way.way.name(), verdict(way, shims, &missed)]);
        let remedy = missed.first().map(|shim| way.way.remedy(directory_of(&shim.path)));
        remedies.extend(remedy.filter(|remedy| !remedies.contains(remedy)));
    }
    let advice = if remedies.is_empty() {
        String::new()
    } else {
        format!("To use them on more ways, see rungate-shim(8), or:\n  {}\n", remedies.join("\n  "))
    };
    format!("{}{advice}", table.render())
}

fn misses(way: &WayIn, shim: &Shim) -> bool {
    matches!(way.reach(shim), Reach::Other(_) | Reach::Nothing)
}

fn verdict(way: &WayIn, shims: &[&Shim], missed: &[&Shim]) -> String {
    if shims.iter().any(|shim| way.reach(shim) == Reach::Unknown) {
        way.way.unknown().to_owned()
    } else if missed.is_empty() {
        "work".to_owned()
    } else if missed.len() == shims.len() {
        "do not work".to_owned()
    } else {
        let named: Vec<String> = missed.iter().take(NAMED).map(|shim| visible(&shim.name)).collect();
        let more = missed.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("work, except for {}{more}", named.join(", "))
    }
}

/// Each way by its name, with whether it leads to the shim; null if unknown.
pub(super) fn reach_to_json(shim: &Shim, ways: &[WayIn]) -> Value {
    let reaches = |way: &WayIn| match way.reach(shim) {
        Reach::Shim => Value::Bool(true),
        Reach::Other(_) | Reach::Nothing => Value::Bool(false),
        Reach::Unknown => Value::Null,
    };
    Value::Object(ways.iter().map(|way| (way.way.key(), reaches(way))).collect::<Map<_, _>>())
}
