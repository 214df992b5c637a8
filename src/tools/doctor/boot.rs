//! The files that a boot removes, and what creates them again: `/run` is empty then, and without its
//! directory a repository cannot count.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    Context, Finding, Health, INIT, Section,
    finding::{self, counted},
    repositories,
};
use crate::{
    cli::Topic,
    judge::terms::{Keeper, show_duration},
    policy::{Policy, Repository},
    sys::{Mount, executable},
    text::{Show, word},
};

/// If nothing creates a directory that must exist before any launch.
const REFUSED: &str = "launches that need it are refused (74) after the next boot";

/// If nothing creates one below it: the first launch does, or the line of a lock file in it, for root alone.
const BELOW: &str =
    "after the next boot its first user will own it, or launches that need it are refused (74)";

/// Only administrators may remove their own lines.
const OF_LINE: &str = "Remove the line, then: rungate init --repositories";

/// What a directory needs at boot.
#[derive(Default)]
struct Needs {
    /// A line. If users create no lock file in it, the lines of its lock files create it.
    line: bool,
    /// A mode for all users, and not only for its group.
    mode_for_all: bool,
}

/// The files that a boot removes.
#[derive(Default)]
struct Gone {
    directories: BTreeMap<PathBuf, Needs>,
    /// Lock files, each with the mode that its users need.
    files: Vec<(PathBuf, u32)>,
}

pub(super) fn look(examination: &Context) -> Section {
    let Some(policy) = examination.policy() else {
        return Section::without_policy(Topic::Boot);
    };
    let gone = Gone::of(policy, examination);
    if gone.directories.is_empty() {
        return Section::new(Topic::Boot, "nothing to create at boot: no lock file is lost", Vec::new());
    }
    let directories: Vec<String> = gone.directories.keys().map(|path| path.shown().to_string()).collect();
    let files = match gone.files.len() {
        0 => String::new(),
        count => format!(" and {}", counted(count, "lock file")),
    };
    let summary = format!("needed after each boot: {}{files}", directories.join(", "));
    Section::new(Topic::Boot, summary, gone.findings())
}

impl Gone {
    fn of(policy: &Policy, examination: &Context) -> Self {
        let runtime = &examination.situation.runtime;
        let mut gone = Self::default();
        for known in policy.repositories().iter().filter(|known| known.keeper() == Keeper::File) {
            let (base, layer) = (known.base(runtime), &policy.layers()[known.layer]);
            if !layer.is_of_system() || !Mount::is_gone_at_boot(&base) || base.starts_with(runtime) {
                continue;
            }
            let file = known.fixed_path(runtime);
            for directory in known.directories(runtime) {
                let needs_line = directory == base || file.is_none();
                let needs = gone.directories.entry(directory).or_default();
                needs.line |= needs_line;
                needs.mode_for_all |= layer.is_for_all();
            }
            let file = file.filter(|path| Mount::is_gone_at_boot(path));
            gone.files.extend(file.map(|path| (path, layer.create_mode())));
        }
        gone.files.sort();
        gone.files.dedup();
        gone
    }

    fn findings(&self) -> Vec<Finding> {
        if let Some(job) = finding::saying(INIT) {
            return vec![Finding::fine("boot", format!("{}: {INIT}", job.shown()))];
        }
        if !is_systemd() && repositories::is_container() {
            let text = "this container does not boot: what starts it creates them, or mounts the host's";
            return vec![Finding::note("boot-container", text).fix(format!("As its first command: {INIT}"))];
        }
        if !is_systemd() && !are_read() {
            let text = "nothing here reads tmpfiles.d(5) at boot: launches that need them are refused (74) from then on";
            return vec![Finding::warning("boot-unread", text).fix(format!("As root at each boot: {INIT}"))];
        }
        let lines = lines();
        let of = |(path, needs): (&PathBuf, &Needs)| {
            let is_below = path.parent().is_some_and(|above| self.directories.contains_key(above));
            of_directory(path, needs, if is_below { BELOW } else { REFUSED }, &lines)
        };
        let directories = self.directories.iter().filter_map(of);
        let mut findings: Vec<Finding> = directories.chain(self.of_files(&lines)).collect();
        if findings.is_empty() {
            findings.push(Finding::fine("boot", "lines of tmpfiles.d(5) create all of it"));
        }
        findings
    }

    /// Lock files that are not created, or created so that users cannot open them.
    fn of_files(&self, lines: &[Line]) -> Vec<Finding> {
        let unmade: Vec<&Path> = self
            .files
            .iter()
            .map(|(path, _)| path.as_path())
            .filter(|path| line_for(path, lines).is_none())
            .collect();
        let wrong = self.files.iter().filter_map(|(path, mode)| of_file(path, *mode, line_for(path, lines)?));
        unmade_files(&unmade).into_iter().chain(wrong).collect()
    }
}

fn line_for<'a>(path: &Path, lines: &'a [Line]) -> Option<&'a Line> {
    lines.iter().find(|line| line.path == path)
}

/// What users cannot do in a directory with this mode, or can do to the lock files of others.
fn wrong_mode(mode: u32, is_for_all: bool) -> Option<(Health, &'static str)> {
    if is_for_all && mode & 0o001 == 0 {
        Some((Health::Fault, "users cannot reach the lock files in it"))
    } else if repositories::lets_others_remove(mode) {
        Some((Health::Fault, repositories::OTHERS_REMOVE))
    } else if is_for_all && mode & 0o002 == 0 {
        Some((Health::Note, "users cannot create lock files in it, so each has to be created beforehand"))
    } else {
        None
    }
}

fn of_directory(path: &Path, needs: &Needs, otherwise: &str, lines: &[Line]) -> Option<Finding> {
    let shown = path.shown();
    let Some(line) = line_for(path, lines) else {
        let text = format!("nothing creates {shown} at boot: {otherwise}");
        return needs.line.then(|| Finding::warning("boot-directory", text).fix(INIT));
    };
    let mode = line.mode?;
    let (health, what) = match wrong_mode(mode, needs.mode_for_all) {
        Some((health, what)) => (health, format!("with mode {mode:04o}: {what}")),
        None if line.is_roots() => return None,
        None => (Health::Warning, format!("{}'s, who can remove every lock file in it", line.owner.shown())),
    };
    let text = format!("{} makes {shown} {what}", line.place);
    Some(
        Finding { health: health.min(Health::Warning), ..Finding::fine("boot-directory", text) }.fix(OF_LINE),
    )
}

fn unmade_files(files: &[&Path]) -> Option<Finding> {
    let first = files.first()?.shown();
    let text = match files.len() {
        1 => format!(
            "nothing creates {first} at boot: after the next boot its first user will own it, and can \
                remove it"
        ),
        count => format!(
            "nothing creates {count} lock files at boot ({first} is the first of them): after the next boot \
                their first users will own them, and can remove them"
        ),
    };
    Some(Finding::warning("boot-lock-file", text).fix(INIT))
}

fn of_file(path: &Path, needed: u32, line: &Line) -> Option<Finding> {
    let mode = line.mode?;
    let what = if mode & needed != needed {
        format!("with mode {mode:04o}; the policy wants {needed:04o}")
    } else if line.is_roots() {
        return None;
    } else {
        format!("{}'s, who can remove it, and with it the count", line.owner.shown())
    };
    let text = format!("{} makes {} {what}", line.place, path.shown());
    Some(Finding::warning("boot-lock-file", text).fix(OF_LINE))
}

impl Line {
    fn is_roots(&self) -> bool {
        self.owner == "root" || self.owner == "0"
    }
}

// The files that tmpfiles.d(5) creates at boot, read like systemd-tmpfiles(8). Of several files with one
// name, the one in the first directory counts. Of several lines for one path, the first in the order of file
// names counts.

const DIRECTORIES: [&str; 4] =
    ["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"];

/// The programs that read them, also without systemd as service manager.
const READERS: [&str; 4] =
    ["/usr/bin/systemd-tmpfiles", "/bin/systemd-tmpfiles", "/bin/tmpfiles", "/usr/lib/rc/sh/tmpfiles.sh"];

/// The specifiers of a line.
const SPECIFIERS: [(char, &str); 7] = [
    ('t', "/run"),
    ('S', "/var/lib"),
    ('C', "/var/cache"),
    ('L', "/var/log"),
    ('T', "/tmp"),
    ('V', "/var/tmp"),
    ('%', "%"),
];

/// A line that creates something.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Line {
    /// `FILE:LINE`
    pub(super) place: String,
    pub(super) path: PathBuf,
    /// None if it makes a link or a copy, which has what it leads to.
    pub(super) mode: Option<u32>,
    /// As it is written: a name or a number.
    pub(super) owner: String,
}

/// Whether anything reads such files at boot.
pub(super) fn are_read() -> bool {
    READERS.iter().any(|program| Path::new(program).exists())
}

/// All lines that create something; lines that count come first.
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
    // systemd reads older spellings in this way.
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

// The state of systemd's units, if systemd runs.

/// This exists if systemd has started the host.
const SYSTEMD: &str = "/run/systemd/system";

/// The known state of a unit.
pub(super) struct Unit(BTreeMap<String, String>);

/// Whether systemd starts services here.
pub(super) fn is_systemd() -> bool {
    Path::new(SYSTEMD).exists()
}

impl Unit {
    /// Asks systemd for these properties; none if it does not answer.
    pub(super) fn ask(name: &str, properties: &str) -> Option<Self> {
        let mut show = Command::new("systemctl");
        show.args(["show", name, "--property", properties]).stdin(Stdio::null()).stderr(Stdio::null());
        let output = show.output().ok().filter(|output| output.status.success())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(Self(text.lines().filter_map(pair).collect()))
    }

    /// Its answer about one; none if it does not know it.
    pub(super) fn said(&self, property: &str) -> &str {
        self.0.get(property).map_or("", String::as_str)
    }
}

// Overdue holders: whether anything ends them while no launch needs their slot. Otherwise they continue until
// a launch comes that may end them, of root or of their own user.

const TIMER: &str = "rungate-overdue.timer";
const SERVICE: &str = "rungate-overdue.service";

/// The findings that depend on time.
const END_OVERDUE: &str = "rungate end --overdue";

/// What happens to overdue holders if nothing ends them.
const OTHERWISE: &str =
    "overdue holders continue until a launch of root, or of their own user, needs the slot";

pub(super) fn look_at_expiry(examination: &Context) -> Section {
    let Some(policy) = examination.policy() else {
        return Section::without_policy(Topic::Expiry);
    };
    let limited = limited(policy);
    if limited.is_empty() {
        return Section::new(Topic::Expiry, "not needed: nothing in lock files is ever overdue", Vec::new());
    }
    let finding = match finding::saying(END_OVERDUE) {
        Some(job) => Finding::fine("expiry", format!("{}: {END_OVERDUE}", job.shown())),
        None if is_systemd() => of_timer(),
        None => {
            Finding::warning("expiry-off", format!("nothing runs \"{END_OVERDUE}\": {OTHERWISE}")).fix(cron())
        }
    };
    Section::new(Topic::Expiry, limited.join(", "), vec![finding])
}

/// The system's repositories whose holders can be overdue, each with how long they have. The agent ends its
/// own.
fn limited(policy: &Policy) -> Vec<String> {
    let is_looked_after =
        |known: &&Repository| known.keeper() == Keeper::File && policy.layers()[known.layer].is_of_system();
    let shown = |known: &Repository| {
        let after = known.pace().expiry?.after;
        Some(format!("{} after {}", known.shown_name().shown(), show_duration(after)))
    };
    policy.repositories().iter().filter(is_looked_after).filter_map(shown).collect()
}

fn of_timer() -> Finding {
    let unit = Unit::ask(TIMER, "LoadState,ActiveState,UnitFileState,LastTriggerUSec");
    let Some(unit) = unit else {
        return Finding::note("expiry-unknown", format!("systemctl does not report the state of {TIMER}"))
            .fix(format!("systemctl status {TIMER}"));
    };
    let off = |what: &str| Finding::warning("expiry-off", format!("{TIMER} {what}: {OTHERWISE}"));
    let enable = format!("systemctl enable --now {TIMER}");
    match (unit.said("LoadState"), unit.said("ActiveState"), unit.said("UnitFileState")) {
        ("not-found", ..) => off("is not installed").fix(cron()),
        ("masked", ..) => off("is masked").fix(format!("systemctl unmask {TIMER} && {enable}")),
        (_, state, _) if state != "active" => off("is not running").fix(enable),
        (.., "disabled") => Finding::warning(
            "expiry-until-boot",
            format!("{TIMER} runs, but is not enabled for the next boot"),
        )
        .fix(enable),
        _ => of_last_run(unit.said("LastTriggerUSec")),
    }
}

/// A running timer may start a service that fails.
fn of_last_run(last: &str) -> Finding {
    let service = Unit::ask(SERVICE, "Result,ExecMainStatus");
    let result = service.as_ref().map_or("", |service| service.said("Result"));
    let when = match last {
        "" | "n/a" => "has not run yet".to_owned(),
        last => format!("last run {}", last.shown()),
    };
    if result.is_empty() || result == "success" {
        return Finding::fine("expiry", format!("{TIMER} is on; {when}"));
    }
    let status = service.as_ref().map_or("", |service| service.said("ExecMainStatus")).shown().to_string();
    let text = format!("{SERVICE} failed ({}, status {status}; {when}): {OTHERWISE}", result.shown());
    Finding::warning("expiry-failed", text).fix(format!("journalctl -u {SERVICE}"))
}

/// A job that does what the timer does.
fn cron() -> String {
    let rungate = executable::own_path().map_or_else(|| "rungate".to_owned(), word);
    format!("echo '*/5 * * * * root {rungate} end --overdue' >/etc/cron.d/rungate")
}

#[cfg(test)]
mod tests {
    use crate::tools::doctor::boot::*;

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
