//! `rungate init`: a first policy, for the caller or, as root, for the system, with the files that it needs.
//! It never changes existing files, and creates everything or nothing.

mod repositories;

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    cli::{InitArguments, Place},
    launch::Situation,
    policy::{Policy, Proposal, Purpose, SYSTEM_POLICY, Sources},
    sys::{Errno, Failure, Kind, Status, accounts, regular_file, replaced_file},
    text::{Error, ExitStatus, answer, print, visible, word},
};

/// The default directory for repositories of a system policy.
const REPOSITORIES: &str = "/run/rungate";

/// The file that creates them at every boot, because `/run` is empty then. It has not the name of the
/// package's file, which would then not be read. It comes after that of `--repositories`: of two lines for
/// one path, the first counts.
const TMPFILES: &str = "/etc/tmpfiles.d/rungate-setup.conf";

/// How it begins, by which that of an earlier policy is known.
const HEAD: &str = "# The repositories of /etc/rungate/policy.toml, created at every boot.";

/// Writes the policy, and prints what was created and what to do next.
pub(crate) fn run(arguments: &InitArguments, situation: &Situation) -> Result<u8, Error> {
    if arguments.repositories {
        return repositories::run(arguments.dry_run, situation);
    }
    let policy = match arguments.place {
        Some(place) => FirstPolicy::of_place(place)?,
        None => FirstPolicy::new(&arguments.commands, arguments.limit)?,
    };
    let (path, plan) = if situation.credentials.uid == 0 {
        let path = PathBuf::from(SYSTEM_POLICY);
        not_there_yet(&path)?;
        let plan = for_the_system(&policy)?;
        fits_drop_ins(&policy, situation)?;
        (path, plan)
    } else {
        let path = situation.own_policy_to_write()?;
        not_there_yet(&path)?;
        let plan = for_the_caller(&policy, &path)?;
        (path, plan)
    };
    let made = if arguments.dry_run { plan.describe("would make") } else { plan.make()?.describe("made") };
    let next = next(&policy, &path, arguments.dry_run);
    print(&answer(&format!("{made}{next}")))
}

/// The package installs a policy that limits nothing, and a new user needs advice.
fn not_there_yet(path: &Path) -> Result<(), Error> {
    if regular_file::status_of_path(path).is_err() {
        return Ok(());
    }
    let text = format!("{} is there already", visible(path));
    let (now, old) = (word(path), word(path.with_extension("toml.old")));
    Err(Error::new(ExitStatus::System, text).advise(format!(
        "Nothing was created or changed.\nTo change it: rungate policy edit\nTo start from an empty policy, \
            first: mv {now} {old}"
    )))
}

fn for_the_system(policy: &FirstPolicy) -> Result<Plan, Error> {
    let mut plan = Plan::default();
    plan.directory(Path::new(REPOSITORIES), 0o1777)?;
    for name in policy.repositories() {
        // Lock files that users create belong to the first user, who may then remove them.
        plan.file(&lock_file(name), 0o666, Content::LockFile)?;
    }
    let earlier = fs::read_to_string(TMPFILES).ok().filter(|text| text.starts_with(HEAD));
    if earlier.is_none() {
        plan.directories_of(Path::new(TMPFILES), 0o755)?;
        plan.file(Path::new(TMPFILES), 0o644, Content::Text(tmpfiles(policy)))?;
    }
    plan.directories_of(Path::new(SYSTEM_POLICY), 0o755)?;
    plan.file(Path::new(SYSTEM_POLICY), 0o644, Content::Text(policy.for_the_system()))?;
    if let Some(earlier) = earlier {
        plan.add_lines(Path::new(TMPFILES), &earlier, &tmpfiles(policy));
    }
    Ok(plan)
}

/// Drop-ins may exist already. A policy that conflicts with them would stop every launch, and one whose lock
/// files they put elsewhere would have the wrong ones.
fn fits_drop_ins(policy: &FirstPolicy, situation: &Situation) -> Result<(), Error> {
    let proposal = Proposal { path: SYSTEM_POLICY.into(), text: Some(policy.for_the_system()) };
    let sources = Sources::system(situation.credentials.uid);
    let whole = Policy::propose_sound(&sources, &[proposal], Purpose::Launches(None)).map_err(|faults| {
        let text = format!("with this policy and its drop-ins, every launch would be refused\n{faults}");
        Error::new(ExitStatus::Policy, text.trim_end()).advise(
            "Nothing was created or changed.\nCorrect the drop-in, or limit other commands.".to_owned(),
        )
    })?;
    let has = |path: &Path| {
        let mut fixed = whole.repositories().iter().filter_map(|known| known.fixed_path(&situation.runtime));
        fixed.any(|known| known == path)
    };
    match policy.repositories().map(lock_file).find(|path| !has(path)) {
        None => Ok(()),
        Some(path) => {
            let text = format!(
                "{} would not be a lock file of the policy: [defaults] of a drop-in puts it elsewhere",
                visible(path)
            );
            Err(Error::new(ExitStatus::Policy, text).advise(
                "Nothing was created or changed.\nTo limit commands there: rungate policy edit\n\
                    Then create the lock files: rungate init --repositories"
                    .to_owned(),
            ))
        }
    }
}

fn for_the_caller(policy: &FirstPolicy, path: &Path) -> Result<Plan, Error> {
    let mut plan = Plan::default();
    plan.directories_of(path, 0o700)?;
    plan.file(path, 0o644, Content::Text(policy.for_a_user()))?;
    Ok(plan)
}

fn lock_file(name: &str) -> PathBuf {
    Path::new(REPOSITORIES).join(format!("{name}.lock"))
}

/// For systemd-tmpfiles(8): the directory, and the lock files that belong to root.
fn tmpfiles(policy: &FirstPolicy) -> String {
    let mut text = format!(
        "{HEAD} An important lock file should belong to root:\n\
         # in this directory the user who creates one may remove it, and then its holders are forgotten. Add a line for each.\n\
         d {REPOSITORIES} 1777 root root -\n"
    );
    for name in policy.repositories() {
        text += &format!("f {} 0666 root root -\n", visible(lock_file(name)));
    }
    text
}

fn next(policy: &FirstPolicy, path: &Path, dry_run: bool) -> String {
    if dry_run {
        return String::new();
    }
    let system = if regular_file::status_of_path(Path::new(SYSTEM_POLICY)).is_ok()
        && path != Path::new(SYSTEM_POLICY)
    {
        "The system has a policy too; yours is added to it and can only tighten it.\n"
    } else {
        ""
    };
    if let Some(place) = policy.place {
        let is_root = path == Path::new(SYSTEM_POLICY);
        let tries = tries(place, is_root);
        let width = tries.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
        let lines = tries.iter().map(|(line, what)| format!("  {line:<width$}  # {what}\n"));
        return format!("{system}Three to try:\n{}", lines.collect::<String>());
    }
    let (first, command) = match policy.repositories().next() {
        Some(command) => ("", command),
        None => ("Nothing is limited yet: insert your commands with the first one.\n", "COMMAND"),
    };
    let mut tries = [
        (format!("rungate explain -- {command}"), "what would happen, and why"),
        (format!("rungate run -- {command}"), "start it under the policy"),
        ("rungate policy edit".to_owned(), "change the policy; it is checked before it applies"),
    ];
    if policy.repositories().next().is_none() {
        tries.rotate_right(1);
    }
    let tries = tries.iter().map(|(line, what)| format!("  {line:<30}  # {what}\n")).collect::<String>();
    format!("{system}{first}Three to try:\n{tries}")
}

// The text of a first policy: comments and an example to start from, and a limit for each command that was
// named.

/// The system's, which the package installs too.
const SYSTEM: &str = include_str!("../../../../packaging/policy.toml");

/// A user's own.
const OWN: &str = include_str!("own.toml");

/// The common text, and the text without a command.
const NOTHING_YET: &str = "Nothing is limited yet. ";

/// The policy in force follows this line.
const VERSION: &str = "version = 1\n";

/// A policy to begin with.
struct FirstPolicy {
    /// The commands, each with a repository of its name; of an example policy the repositories.
    commands: Vec<String>,
    limit: u32,
    /// The example policy that it is.
    place: Option<Place>,
}

impl FirstPolicy {
    /// A policy that limits these commands, each to this many at once.
    fn new(commands: &[String], limit: u32) -> Result<Self, Error> {
        for (index, command) in commands.iter().enumerate() {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if command.is_empty() || command.starts_with(['.', '-']) || !command.chars().all(is_plain) {
                let text = format!("\"{}\" is not a plain name of a command", visible(command));
                return Err(Error::new(ExitStatus::Usage, text).advise(
                    "Letters, digits, \".\", \"_\" and \"-\" are allowed. For any other name, edit the policy."
                        .to_owned(),
                ));
            }
            if commands[..index].contains(command) {
                return Err(Error::new(ExitStatus::Usage, format!("\"{command}\" is named twice")));
            }
        }
        Ok(Self { commands: commands.to_vec(), limit, place: None })
    }

    /// One of the example policies.
    fn of_place(place: Place) -> Result<Self, Error> {
        Ok(Self { commands: repositories(place)?, limit: 1, place: Some(place) })
    }

    /// Its repositories with one lock file: one for each command, with its name.
    fn repositories(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().map(String::as_str)
    }

    /// For everybody.
    fn for_the_system(&self) -> String {
        self.place.map_or_else(|| self.within(SYSTEM), example_for_the_system)
    }

    fn for_a_user(&self) -> String {
        self.place.map_or_else(|| self.within(OWN), |place| example(place).to_owned())
    }

    fn within(&self, text: &str) -> String {
        if self.commands.is_empty() {
            return text.to_owned();
        }
        let mut rules = VERSION.to_owned();
        let at_once =
            if self.limit == 1 { "one at a time".to_owned() } else { format!("{} at once", self.limit) };
        for command in &self.commands {
            let key = if command.contains('.') { format!("\"{command}\"") } else { command.clone() };
            let _ = write!(
                rules,
                "\n[repository.{key}]\nlimit = {}\n\n[[rule]]\nname     = \"{command}, {at_once}\"\n\
                 commands = [\"{command}\"]\nacquire  = [\"{command}\"]\n",
                self.limit
            );
        }
        text.replace(NOTHING_YET, "").replace(VERSION, &rules)
    }
}

// The plan, step by step. A plan is made only if nothing prevents it. If a step fails nevertheless, the steps
// before it are undone.

/// The content of a file.
enum Content {
    /// An empty file, to be locked. An existing one of root is accepted.
    LockFile,
    Text(String),
    /// The text of a file that an earlier run wrote, with more lines. Its step is the last, and is never
    /// undone.
    Longer(String),
}

enum Step {
    Directory { path: PathBuf, mode: u32 },
    File { path: PathBuf, mode: u32, content: Content },
}

/// Steps in their order.
#[derive(Default)]
struct Plan {
    steps: Vec<Step>,
}

impl Plan {
    /// A directory with exactly this mode; an existing one must have the same owner and mode.
    fn directory(&mut self, path: &Path, mode: u32) -> Result<(), Error> {
        match status(path)? {
            None => self.steps.push(Step::Directory { path: path.to_owned(), mode }),
            Some(there) if is_roots(&there, Kind::Directory) && there.mode == mode => {}
            Some(there) => {
                let text = format!(
                    "{} exists already, and is not a directory of root with mode {mode:04o}: {}",
                    visible(path),
                    described(&there)
                );
                return Err(stands_in_the_way(text));
            }
        }
        Ok(())
    }

    /// The missing directories above a file.
    fn directories_of(&mut self, file: &Path, mode: u32) -> Result<(), Error> {
        let missing = |path: &&Path| matches!(regular_file::status_of_target(path), Err(Errno::ENOENT));
        let missing: Vec<&Path> = file.ancestors().skip(1).take_while(missing).collect();
        for path in missing.into_iter().rev() {
            if status(path)?.is_some() {
                return Err(stands_in_the_way(format!("{} leads to nothing", visible(path))));
            }
            self.steps.push(Step::Directory { path: path.to_owned(), mode });
        }
        Ok(())
    }

    /// A file with exactly this mode.
    fn file(&mut self, path: &Path, mode: u32, content: Content) -> Result<(), Error> {
        match (status(path)?, &content) {
            (Some(there), Content::LockFile) if is_roots(&there, Kind::Regular) && there.mode == mode => {
                Ok(())
            }
            (Some(there), Content::LockFile) => Err(stands_in_the_way(format!(
                "{} exists already, and is not a file of root with mode {mode:04o}: {}",
                visible(path),
                described(&there)
            ))),
            (Some(_), Content::Text(_) | Content::Longer(_)) => {
                Err(stands_in_the_way(format!("{} is there already", visible(path))))
            }
            (None, _) => {
                self.steps.push(Step::File { path: path.to_owned(), mode, content });
                Ok(())
            }
        }
    }

    /// The lines that a file of an earlier run does not have yet. It keeps its own, which an administrator
    /// may have added.
    fn add_lines(&mut self, path: &Path, earlier: &str, text: &str) {
        let new = text.lines().filter(|line| !earlier.lines().any(|known| known == *line));
        let new: String = new.map(|line| format!("{line}\n")).collect();
        if !new.is_empty() {
            let content = Content::Longer(format!("{}\n{new}", earlier.trim_end()));
            self.steps.push(Step::File { path: path.to_owned(), mode: 0o644, content });
        }
    }

    /// One line for each step.
    fn describe(&self, verb: &str) -> String {
        let lines = self.steps.iter().map(|step| match step {
            Step::Directory { path, mode } => format!("{verb} {}/ (mode {mode:04o})\n", visible(path)),
            Step::File { path, mode, .. } => format!("{verb} {} (mode {mode:04o})\n", visible(path)),
        });
        lines.collect()
    }

    /// Makes all steps, or none.
    fn make(self) -> Result<Self, Error> {
        for (done, step) in self.steps.iter().enumerate() {
            if let Err(failure) = step.make() {
                self.steps[..done].iter().rev().for_each(Step::undo);
                let text = format!("cannot create {}: {failure}", visible(step.path()));
                return Err(Error::new(ExitStatus::System, text).advise("Nothing was made.".to_owned()));
            }
        }
        Ok(self)
    }
}

impl Step {
    fn path(&self) -> &Path {
        match self {
            Self::Directory { path, .. } | Self::File { path, .. } => path,
        }
    }

    fn make(&self) -> Result<(), Failure> {
        match self {
            Self::Directory { path, mode } => {
                regular_file::create_directory(path, *mode).map_err(Failure::of("mkdir"))
            }
            Self::File { path, mode, content: Content::LockFile } => {
                regular_file::create_new(path, *mode).map(drop).map_err(Failure::of("open"))
            }
            Self::File { path, mode, content: Content::Text(text) } => {
                replaced_file::create(path, text.as_bytes(), *mode)
            }
            Self::File { path, mode, content: Content::Longer(text) } => {
                replaced_file::replace(path, text.as_bytes(), *mode)
            }
        }
    }

    fn undo(&self) {
        let _ = match self {
            Self::Directory { path, .. } => fs::remove_dir(path),
            Self::File { path, .. } => fs::remove_file(path),
        };
    }
}

fn status(path: &Path) -> Result<Option<Status>, Error> {
    match regular_file::status_of_path(path) {
        Ok(status) => Ok(Some(status)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => {
            let text = format!("{} cannot be inspected: lstat: {}", visible(path), errno.desc());
            Err(Error::new(ExitStatus::System, text))
        }
    }
}

fn is_roots(status: &Status, kind: Kind) -> bool {
    status.kind == kind && status.uid == 0
}

fn described(status: &Status) -> String {
    format!("it is {} of {} with mode {:04o}", status.kind, accounts::shown(status.uid), status.mode)
}

fn stands_in_the_way(text: String) -> Error {
    Error::new(ExitStatus::System, text).advise("Nothing was created or changed.".to_owned())
}

// `rungate init --for`: an example policy for a common situation. The text is that of `policies`, which tests
// execute; only the directory of the repositories differs for root.

/// The text of a policy, for a user.
fn example(place: Place) -> &'static str {
    match place {
        Place::Agents => include_str!("../../../../policies/coding-agents.toml"),
        Place::Gpu => include_str!("../../../../policies/gpu-lab.toml"),
        Place::Licences => include_str!("../../../../policies/licence-seats.toml"),
        Place::Cron => include_str!("../../../../policies/nightly-sync.toml"),
        Place::Ci => include_str!("../../../../policies/ci-host.toml"),
    }
}

/// The same for all users of the host.
fn example_for_the_system(place: Place) -> String {
    let line = |line: &str| match line.strip_prefix("directory = \"{runtime}\"") {
        Some(_) => format!("directory = \"{REPOSITORIES}\"\n"),
        None => format!("{line}\n"),
    };
    example(place).lines().map(line).collect()
}

/// The repositories that have one lock file each.
fn repositories(place: Place) -> Result<Vec<String>, Error> {
    let policy = Policy::of_text("policy.toml", example(place))
        .map_err(|faults| Error::new(ExitStatus::Policy, faults.to_string()))?;
    let fixed = policy.repositories().iter().filter(|known| known.fixed_path(Path::new("/")).is_some());
    Ok(fixed.map(|known| known.name().to_owned()).collect())
}

/// Three commands to try, and what they do.
fn tries(place: Place, is_root: bool) -> [(String, &'static str); 3] {
    let shims = if is_root { "/etc/rungate/shims" } else { "~/.local/lib/rungate/shims" };
    let shim = format!("rungate shim install {shims}");
    let of_command = |command: &str| {
        [
            (format!("rungate explain -- {command}"), "what would happen, and why"),
            (format!("rungate run -- {command}"), "start it under the policy"),
            (
                "rungate policy edit".to_owned(),
                "insert your commands; the policy is checked before it applies",
            ),
        ]
    };
    match place {
        Place::Agents => [
            (shim, "then put this directory first in the PATH of the agents"),
            ("rungate explain -- cargo test".to_owned(), "what would happen, and why"),
            ("rungate status --watch".to_owned(), "who builds, and who waits"),
        ],
        Place::Gpu => of_command("train"),
        Place::Licences => of_command("matlab"),
        Place::Cron => of_command("nightly-sync"),
        Place::Ci => [
            ("rungate explain --as board-job -- make".to_owned(), "what would happen, and why"),
            ("rungate run --as board-job --wait 50m -- make".to_owned(), "a job that needs the board"),
            ("rungate policy edit".to_owned(), "insert your boards; the policy is checked before it applies"),
        ],
    }
}

#[cfg(test)]
mod places_tests {
    use clap::ValueEnum;

    use super::*;

    /// For root the repositories are for the whole host.
    #[test]
    fn every_text_becomes_a_policy_of_the_system() {
        for place in Place::value_variants() {
            let text = example_for_the_system(*place);
            assert!(text.contains("directory = \"/run/rungate\"\n") && !text.contains("{runtime}"), "{text}");
            assert!(Policy::of_text("policy.toml", text).is_ok());
            assert!(!repositories(*place).expect("no faults").is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::setup::init::*;

    #[test]
    fn both_texts_have_the_places_where_something_is_put() {
        for text in [SYSTEM, OWN] {
            assert_eq!((text.matches(NOTHING_YET).count(), text.matches(VERSION).count()), (1, 1), "{text}");
        }
    }

    #[track_caller]
    fn case(command: &str, is_fine: bool) {
        assert_eq!(FirstPolicy::new(&[command.to_owned()], 1).is_ok(), is_fine, "{command:?}");
    }

    #[test]
    fn only_plain_names_become_repositories() {
        case("matlab", true);
        case("clang++", false);
        case("g.5_x-y", true);
        case("../x", false);
        case(".hidden", false);
        case("a\"b", false);
        case("", false);
        assert!(FirstPolicy::new(&["a".to_owned(), "a".to_owned()], 1).is_err());
    }
}
