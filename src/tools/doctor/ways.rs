//! The ways by which people and programs reach commands, and whether each leads to the shims. Those with the
//! same fix are one finding.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{
    Context, Finding, Health, Section, Want,
    finding::{command, counted},
    repositories::barrier,
};
use crate::{
    cli::Topic,
    launch::{Search, Shim, ShimDirectory, TOOLS, directory_of, run},
    policy::{Action, Rule},
    sys::executable,
    text::{Show, word},
    tools::shared::{
        Reach, WayIn,
        ways_in::{NOT_ASKED, Way, ways_in},
    },
};

/// A way that misses a shim, or for which that is unknown.
struct Missed<'a> {
    way: &'a WayIn,
    shim: &'a Shim,
    reach: Reach,
}

pub(super) fn look(examination: &Context) -> Section {
    let shims = all();
    if shims.is_empty() {
        return Section::new(Topic::Ways, "no shims are installed", Vec::new());
    }
    let closed = if examination.is_root() { closed() } else { Vec::new() };
    let is_open = |shim: &Shim| closed.iter().all(|(directory, _)| directory_of(&shim.path) != directory);
    let shims: Vec<Shim> = shims.into_iter().filter(is_open).collect();
    let closed: Vec<Finding> = closed.into_iter().map(|(_, finding)| finding).collect();
    if shims.is_empty() {
        return Section::new(Topic::Ways, "the shims work for root alone", closed);
    }
    let Some(ways) = ways_in() else {
        let mut findings = closed;
        findings.push(Finding::note("ways-not-asked", NOT_ASKED).fix("unset RUNGATE_WAYS"));
        return Section::new(Topic::Ways, "not known", findings);
    };
    let missed: Vec<Missed<'_>> = ways.iter().filter_map(|way| missed(way, &shims)).collect();
    let mut findings = closed;
    findings.extend(by_remedy(&missed));
    let is_served = |way: &&WayIn| missed.iter().all(|missed| missed.way.way != way.way);
    let served: Vec<String> = ways.iter().filter(is_served).map(|way| way.way.name()).collect();
    if !served.is_empty() {
        findings.push(Finding::fine("way", format!("the shims work: {}", served.join("; "))));
    }
    if !examination.is_root() {
        findings.push(of_session(&shims));
    }
    Section::new(Topic::Ways, format!("the shims work on {} of {}", served.len(), ways.len()), findings)
}

/// Directories that users cannot search, so that all of their shells pass over them. Root can; and what is
/// below the caller's home is not for others.
fn closed() -> Vec<(PathBuf, Finding)> {
    let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.parent().is_some());
    let is_private = |path: &Path| home.as_ref().is_some_and(|home| path.starts_with(home));
    let directories = directories().into_iter().filter(|directory| !is_private(directory.path()));
    let finding = |directory: ShimDirectory| {
        let barrier = barrier(directory.path(), Want::Execute)?;
        let text = format!("{}: users cannot reach the shims, and start the programs", barrier.text());
        Some((directory.path().to_owned(), Finding::fault("shims-closed", text).fix(barrier.fix())))
    };
    directories.filter_map(finding).collect()
}

/// Missed shims with a program come before dangling ones.
fn missed<'a>(way: &'a WayIn, shims: &'a [Shim]) -> Option<Missed<'a>> {
    let reached = shims.iter().map(|shim| Missed { way, shim, reach: way.reach(shim) });
    reached.filter(|missed| missed.reach != Reach::Shim).min_by_key(|missed| match missed.reach {
        Reach::Other(_) => 0,
        Reach::Nothing => 1,
        Reach::Unknown | Reach::Shim => 2,
    })
}

/// Ways with one fix are one finding with their worst state, even if they lead to different programs: a line
/// must not be added to a file twice.
fn by_remedy(missed: &[Missed<'_>]) -> Vec<Finding> {
    let mut remedies: Vec<(String, Vec<&Missed<'_>>)> = Vec::new();
    for missed in missed {
        let remedy = missed.way.way.remedy(directory_of(&missed.shim.path));
        match remedies.iter_mut().find(|(known, _)| *known == remedy) {
            Some((_, alike)) => alike.push(missed),
            None => remedies.push((remedy, vec![missed])),
        }
    }
    let finding = |(remedy, alike): (String, Vec<&Missed<'_>>)| {
        let gravest = alike.iter().max_by_key(|missed| missed.health())?;
        let plain = Finding::fine(gravest.code(), told(&alike));
        Some(Finding { health: gravest.health(), ..plain }.fix(remedy))
    };
    remedies.into_iter().filter_map(finding).collect()
}

/// The result of a name on these ways: `sh, logged in; bash, logged in: matlab is not found`.
fn told(missed: &[&Missed<'_>]) -> String {
    let mut ends: Vec<(String, Vec<String>)> = Vec::new();
    for missed in missed {
        let (what, way) = (missed.what(), missed.way.way.name());
        match ends.iter_mut().find(|(known, _)| *known == what) {
            Some((_, ways)) => ways.push(way),
            None => ends.push((what, vec![way])),
        }
    }
    let ends = ends.into_iter().map(|(what, ways)| format!("{}: {what}", ways.join("; ")));
    ends.collect::<Vec<String>>().join("; ")
}

impl Missed<'_> {
    /// A user who types a name and finds nothing misses the shim; a job that finds nothing names its program
    /// differently.
    fn health(&self) -> Health {
        let is_typed = matches!(self.way.way, Way::Login(_) | Way::Ssh(_) | Way::Su | Way::Desktop);
        match self.reach {
            Reach::Other(_) => Health::Warning,
            Reach::Nothing if is_typed => Health::Warning,
            Reach::Nothing | Reach::Unknown | Reach::Shim => Health::Note,
        }
    }

    fn code(&self) -> &'static str {
        match self.reach {
            Reach::Other(_) => "way-past-shims",
            Reach::Nothing => "way-without-shims",
            Reach::Unknown | Reach::Shim => "way-unknown",
        }
    }

    fn what(&self) -> String {
        let name = self.shim.name.shown();
        match &self.reach {
            Reach::Other(program) => format!("{name} is {}, and not its shim", program.shown()),
            Reach::Nothing => format!("{name} is not found"),
            Reach::Unknown | Reach::Shim => self.way.way.unknown().to_owned(),
        }
    }
}

/// The session of the caller: the search path of this process.
fn of_session(shims: &[Shim]) -> Finding {
    let search = Search::of_environment();
    let found = |shim: &Shim| {
        let mut places = search.entries().iter().map(|entry| entry.join(&shim.name));
        places.find(|path| executable::check(path).is_ok())
    };
    let missed = shims.iter().find(|shim| {
        found(shim).is_none_or(|found| executable::identity(&found) != executable::identity(&shim.path))
    });
    let Some(shim) = missed else {
        return Finding::fine("way", "this session: the shims come first");
    };
    let what = match found(shim) {
        Some(program) => format!("{} is {}, and not its shim", shim.name.shown(), program.shown()),
        None => format!("{} is not found", shim.name.shown()),
    };
    Finding::warning("way-past-shims", format!("this session: {what}"))
        .fix(format!("PATH={}:$PATH", directory_of(&shim.path).shown()))
}

// The shims of this host: whether each leads to this rungate, and whether there is a program behind it.

/// The directory of the system's shims in the package.
pub(super) const SYSTEM: &str = "/etc/rungate/shims";

pub(super) fn look_at_shims(examination: &Context) -> Section {
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
        return Finding::fault("shim-name", format!("{path}: {fault}")).fix(remove);
    }
    if executable::identity(&shim.path).is_none() {
        return Finding::fault("shim-dangling", format!("{path} points to a rungate that does not exist"))
            .fix(anew(shim));
    }
    if leads_to_tools(&shim.path) {
        return Finding::fault("shim-of-tools", format!("{path} points to {TOOLS}, which starts no program"))
            .fix(anew(shim));
    }
    if executable::identity(&shim.path) != executable::own() {
        return Finding::warning("shim-of-another", format!("{path} points to a different rungate"))
            .fix(anew(shim));
    }
    let policy = examination.policy();
    let named = |name: &_| policy.and_then(|policy| policy.executable(name));
    match run::find(named, &shim.name, Some(shim), &examination.situation.directory) {
        Ok(program) => Finding::fine("shim", format!("{path} starts {}", program.path.shown())),
        // A faulty policy may still name the program.
        Err(_) if policy.is_none() => {
            let text =
                format!("{path}: no program in this PATH; it is not known whether the policy names one");
            Finding::note("shim-unknown", text)
        }
        Err(_) => {
            let table = format!("[command.{}] exec", shim.name.shown());
            let (text, fix) = match named(&shim.name) {
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
            Finding::warning("shim-without-program", format!("{path}: {text}")).fix(fix)
        }
    }
}

/// The command that replaces a link.
fn anew(shim: &Shim) -> String {
    let directory = word(shim.path.parent().unwrap_or(Path::new("/")));
    let name = word(&shim.name);
    format!("rungate shim install {directory} {name}")
}

fn leads_to_tools(link: &Path) -> bool {
    link.canonicalize().is_ok_and(|target| target.file_name().is_some_and(|name| name == TOOLS))
}

/// If some commands of the policy have a shim, those without one are reported. This matters for limited
/// commands on this host: typing the name starts them without the policy.
fn without_shims(shims: &[Shim], examination: &Context) -> Vec<Finding> {
    let (Some(policy), Some(first)) = (examination.policy(), shims.first()) else { return Vec::new() };
    let directory = first.path.parent().unwrap_or(Path::new(SYSTEM));
    let limiting = policy.rules().iter().filter(|rule| rule.action() != Action::Exempt);
    let limited: BTreeSet<&str> = limiting.flat_map(Rule::literal_commands).collect();
    let is_here = |name: &str| {
        let program = |name: &_| policy.executable(name);
        run::find(program, &OsString::from(name), None, &examination.situation.directory).is_ok()
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
        findings.push(Finding::warning("no-shim", text).fix(install(&urgent)));
    }
    if !others.is_empty() {
        let text = format!("the policy names {}, without a shim", told(&others));
        findings.push(Finding::note("no-shim", text).fix(install(&others)));
    }
    findings
}
