//! The programs of rungate: whether every user can start them, and only their owner can change them.

use std::{
    cell::OnceCell,
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    Context, Finding, Section, Want,
    finding::{command, counted},
    repositories::barrier,
};
use crate::{
    cli::Topic,
    launch::{Search, TOOLS, run},
    policy::Policy,
    sys::{
        accounts, as_ordinary_user, executable,
        mount::{may_hide_processes, sees_others},
    },
    text::{Show, visible},
};

pub(super) fn look(examination: &Context) -> Section {
    let is_launcher = |path: &PathBuf| path.is_absolute() && path.file_name() != Some(OsStr::new(TOOLS));
    let Some(launcher) = executable::own_path().filter(is_launcher) else {
        let finding = Finding::warning("launcher-unknown", "the launcher, rungate, is not beside its tools")
            .fix("Install both programs again, from one package.");
        return Section::new(
            Topic::Installation,
            concat!("rungate ", env!("CARGO_PKG_VERSION")),
            vec![finding],
        );
    };
    let summary = format!("rungate {}, {}", env!("CARGO_PKG_VERSION"), launcher.shown());
    let mut findings = of_launcher(&launcher, examination.is_root());
    findings.extend(others_in_path());
    findings.extend(hidden_processes(examination.is_root()));
    findings.extend(untried());
    Section::new(Topic::Installation, summary, findings)
}

/// In some containers root cannot become another user.
fn untried() -> Option<Finding> {
    as_ordinary_user(|| ()).is_none().then(|| {
        let text = "root cannot become nobody here: what users can do with files was not tested";
        Finding::note("not-tried", text).fix("Ask a user to run: rungate doctor")
    })
}

fn of_launcher(launcher: &Path, is_root: bool) -> Vec<Finding> {
    let Ok(status) = fs::metadata(launcher) else { return Vec::new() };
    let shown = launcher.shown();
    let mut findings = Vec::new();
    if status.mode() & 0o6000 != 0 {
        let text = format!("{shown} is set-user-id or set-group-id, and refuses to run");
        findings.push(Finding::fault("launcher-set-id", text).fix(command("chmod ug-s", launcher)));
    }
    if status.mode() & 0o022 != 0 {
        let text = format!(
            "{shown} has mode {:04o}: others can replace the program that all users start",
            status.mode() & 0o7777
        );
        findings.push(Finding::warning("launcher-writable", text).fix(command("chmod go-w", launcher)));
    }
    if is_root && status.uid() != 0 {
        let text = format!(
            "{shown} belongs to {}, who can replace the program that all users start",
            accounts::shown(status.uid())
        );
        findings.push(Finding::note("launcher-owner", text).fix(command("chown root:root", launcher)));
    }
    if let Some(barrier) = barrier(launcher, Want::Execute).filter(|_| is_root) {
        let text = format!("{}: users cannot start rungate", barrier.text());
        findings.push(Finding::fault("launcher-closed", text).fix(barrier.fix()));
    }
    if findings.is_empty() {
        findings.push(Finding::fine("launcher", format!("{shown}: all users can start it")));
    }
    findings
}

/// Another rungate that comes before this one in `PATH`, or after it.
fn others_in_path() -> Vec<Finding> {
    let search = Search::of_environment();
    let places = search.entries().iter().map(|entry| entry.join("rungate"));
    let others =
        places.filter(|path| executable::check(path).is_ok_and(|found| Some(found) != executable::own()));
    let others: Vec<PathBuf> = others.collect();
    others.iter().map(|other| other_in_path(other)).collect()
}

fn other_in_path(other: &Path) -> Finding {
    let text =
        format!("{} is a different rungate; two versions can read one policy differently", visible(other));
    Finding::warning("second-rungate", text).fix("Keep one of them: the package's, or that of /usr/local.")
}

/// Otherwise holders are invisible, and a refusal cannot name them.
fn hidden_processes(is_root: bool) -> Option<Finding> {
    (!is_root && may_hide_processes() && !sees_others()).then(|| {
        Finding::note(
            "hidden-processes",
            "/proc hides the processes of others (hidepid): holders are shown only by their records",
        )
        .fix("To see the holders that the kernel proves, run as root: rungate list")
    })
}

// The programs behind commands: whether the programs that the policy names exist.

/// Where programs are, besides the directories of `PATH`.
const USUAL: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

pub(super) fn look_at_programs(examination: &Context) -> Section {
    let Some(policy) = examination.policy() else {
        return Section::without_policy(Topic::Programs);
    };
    let names = policy.command_names();
    let summary = match names.len() {
        0 => "the policy names no command literally".to_owned(),
        count => counted(count, "command") + " that the policy names",
    };
    let programs = Programs::default();
    let named = names.into_iter().map(|name| of_command(name, policy, &programs, examination));
    Section::new(Topic::Programs, summary, named.chain(all_linked(examination)).collect())
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
        let text = format!("{key}: {}: no user can start {}", errno.desc(), name.shown());
        return Some(
            Finding::fault("program-missing", text).fix("Name the path of the program, or remove the lines."),
        );
    }
    let barrier = barrier(program, Want::Execute).filter(|_| examination.is_root())?;
    let text = format!("{}: users cannot start {}", barrier.text(), name.shown());
    Some(Finding::warning("program-closed", text).fix(barrier.fix()))
}

/// A command without one is searched in `PATH`, which may be different for other users.
fn found(name: &str, policy: &Policy, programs: &Programs, examination: &Context) -> Finding {
    let typed = OsString::from(name);
    let found = run::find(|name| policy.executable(name), &typed, None, &examination.situation.directory);
    match found {
        Ok(program) => Finding::fine("program", format!("{}: {}", name.shown(), program.path.shown())),
        Err(_) => misspelt(name, programs).unwrap_or_else(|| {
            Finding::note("program-unknown", format!("{} is not in this PATH", name.shown()))
        }),
    }
}

/// Commands that do not exist on this host, although a program with nearly the same name does.
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

/// A command that only exists under a similar name. A command without a similar one may be a name for `--as`,
/// or exist on other hosts.
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
            .fix(format!("Correct the name; or, if users have the program in another place: {place}"))
    })
}

/// Paths of commands over a directory that is a link: programs are known by directories without links.
pub(super) fn all_linked(examination: &Context) -> Vec<Finding> {
    let rules = examination.policy().into_iter().flat_map(Policy::rules);
    let paths = rules.flat_map(|rule| rule.paths().map(move |path| (rule, path)));
    let linked = paths.filter_map(|(rule, (path, directory))| {
        let real = Path::new(directory).canonicalize().ok().filter(|real| real != Path::new(directory))?;
        let text = format!(
            "{}: no program has the path {}, because {} leads to {}",
            rule.title(),
            path.shown(),
            directory.shown(),
            real.shown()
        );
        let correct = real.join(path.get(directory.len() + 1..).unwrap_or_default());
        Some(Finding::warning("program-linked", text).fix(format!("Write {}", correct.shown())))
    });
    linked.collect()
}
