//! The shims of this host: whether each leads to this rungate, and whether there is a program behind it.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{
    command_line::{command, word},
    context::Context,
    finding::{Finding, Section},
    page::counted,
};
use crate::{
    cli::Topic,
    launch::{
        installation::TOOLS,
        program::Search,
        run::stages,
        shim::{Shim, ShimDirectory},
    },
    policy::{Action, Rule},
    sys::executable,
    text::escape::Show,
};

/// Where the package has the system's.
pub(super) const SYSTEM: &str = "/etc/rungate/shims";

pub(super) fn look(examination: &Context) -> Section {
    let shims = all();
    let directories: Vec<String> =
        directories().iter().map(|directory| directory.path().shown().to_string()).collect();
    let summary = match shims.len() {
        0 => "none: only what is started by \"rungate run\" is limited".to_owned(),
        count => format!("{} in {}", counted(count, "shim"), directories.join(", ")),
    };
    let mut findings: Vec<Finding> = shims.iter().map(|shim| of_shim(shim, examination)).collect();
    findings.extend(without_shims(&shims, examination));
    Section::new(Topic::Shims, summary, findings)
}

/// The directories that have shims: the system's, and those of this session's `PATH`.
pub(super) fn directories() -> Vec<ShimDirectory> {
    let search = Search::of_environment();
    let is_first = |(at, entry): &(usize, &PathBuf)| search.position(entry) == Some(*at);
    let in_path = search.entries().iter().enumerate().filter(is_first).map(|(_, entry)| entry.clone());
    let system = PathBuf::from(SYSTEM);
    let others = in_path.filter(|path| executable::identity(path) != executable::identity(&system));
    let paths = [system.clone()].into_iter().chain(others.filter(|path| path.is_absolute()));
    let open = paths.filter_map(|path| ShimDirectory::open(path).ok());
    open.filter(|directory| directory.shims().is_ok_and(|shims| !shims.is_empty())).collect()
}

pub(super) fn all() -> Vec<Shim> {
    let of = |directory: ShimDirectory| {
        let names = directory.shims().unwrap_or_default();
        names.into_iter().map(move |name| Shim { path: directory.link(&name), name })
    };
    directories().into_iter().flat_map(of).collect()
}

fn of_shim(shim: &Shim, examination: &Context) -> Finding {
    let path = shim.path.shown();
    if let Some(fault) = Shim::fault_of(&shim.name) {
        let remove = command("rm", &shim.path);
        return Finding::fault("shim-name", format!("{path}: {fault}")).mend(remove);
    }
    if executable::identity(&shim.path).is_none() {
        return Finding::fault("shim-dangling", format!("{path} points to a rungate that does not exist"))
            .mend(anew(shim));
    }
    if leads_to_tools(&shim.path) {
        return Finding::fault("shim-of-tools", format!("{path} points to {TOOLS}, which starts no program"))
            .mend(anew(shim));
    }
    if executable::identity(&shim.path) != executable::own() {
        return Finding::warning("shim-of-another", format!("{path} points to a different rungate"))
            .mend(anew(shim));
    }
    let policy = examination.policy();
    let named = |name: &_| policy.and_then(|policy| policy.executable(name));
    match stages::find(named, &shim.name, Some(shim), &examination.situation.directory) {
        Ok(program) => Finding::fine("shim", format!("{path} starts {}", program.path.shown())),
        // A faulty policy may still name the program.
        Err(_) if policy.is_none() => {
            let text = format!("{path}: no program in this PATH; whether the policy names one is not known");
            Finding::note("shim-unknown", text)
        }
        Err(_) => {
            let table = format!("[command.{}] exec", shim.name.shown());
            let (text, mend) = match named(&shim.name) {
                Some(program) => (
                    format!("{} cannot be started", program.shown()),
                    format!(
                        "In the policy, correct \
                        {table}"
                    ),
                ),
                None => (
                    "there is no program behind it in this PATH".to_owned(),
                    format!("In the policy, say where it is: {table} = \"/path\""),
                ),
            };
            Finding::warning("shim-without-program", format!("{path}: {text}")).mend(mend)
        }
    }
}

/// Removes a link and creates it again.
fn anew(shim: &Shim) -> String {
    let directory = word(shim.path.parent().unwrap_or(Path::new("/")));
    let name = word(&shim.name);
    format!("rungate shim remove {directory} {name} && rungate shim install {directory} {name}")
}

fn leads_to_tools(link: &Path) -> bool {
    link.canonicalize().is_ok_and(|target| target.file_name().is_some_and(|name| name == TOOLS))
}

/// If some commands of the policy have a shim, those without one are reported. It matters for limited
/// commands on this host: their names start them past the policy.
fn without_shims(shims: &[Shim], examination: &Context) -> Vec<Finding> {
    let (Some(policy), Some(first)) = (examination.policy(), shims.first()) else { return Vec::new() };
    let directory = first.path.parent().unwrap_or(Path::new(SYSTEM));
    let limiting = policy.rules().iter().filter(|rule| rule.action() != Action::Exempt);
    let limited: BTreeSet<&str> = limiting.flat_map(Rule::literal_commands).collect();
    let is_here = |name: &str| {
        let program = |name: &_| policy.executable(name);
        stages::find(program, &OsString::from(name), None, &examination.situation.directory).is_ok()
    };
    let has_none = |name: &&str| {
        Shim::fault_of(name.as_ref()).is_none() && !shims.iter().any(|shim| shim.name == **name)
    };
    let missing = policy.command_names().into_iter().filter(has_none);
    let (urgent, others): (Vec<&str>, Vec<&str>) =
        missing.partition(|name| limited.contains(name) && is_here(name));
    let told =
        |names: &[&str]| names.iter().map(|name| name.shown().to_string()).collect::<Vec<_>>().join(", ");
    let install = |names: &[&str]| {
        let words: Vec<String> = names.iter().map(word).collect();
        format!("{} {}", command("rungate shim install", directory), words.join(" "))
    };
    let mut findings = Vec::new();
    if !urgent.is_empty() {
        let text = match urgent.as_slice() {
            [one] => {
                format!("{} is limited but has no shim: started by its name, it is not counted", one.shown())
            }
            _ => format!(
                "{} are limited but have no shim: started by name, they are not counted",
                told(&urgent)
            ),
        };
        findings.push(Finding::warning("no-shim", text).mend(install(&urgent)));
    }
    if !others.is_empty() {
        let text = format!("the policy names {}, without a shim", told(&others));
        findings.push(Finding::note("no-shim", text).mend(install(&others)));
    }
    findings
}
