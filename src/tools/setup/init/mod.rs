//! `rungate init`: a first policy, for the caller or, as root, for the system, with all that it needs. It
//! never touches what is there already, and makes all of it or nothing.

mod first_policy;
mod plan;
mod repositories;

use std::path::{Path, PathBuf};

use self::{
    first_policy::FirstPolicy,
    plan::{Content, Plan},
};
use crate::{
    cli::InitArguments,
    policy::SYSTEM_POLICY,
    sys::regular_file,
    text::{
        columns::answer,
        error::Error,
        escape::{visible, word},
        exit_status::ExitStatus,
    },
};
use crate::{launch::situation::Situation, text::print::print};

/// Where the repositories of a system policy are that does not say otherwise.
const REPOSITORIES: &str = "/run/rungate";

/// What makes them again at every boot, because `/run` is empty then.
const TMPFILES: &str = "/etc/tmpfiles.d/rungate.conf";

/// Writes the policy, and says what was made and what comes next.
pub(crate) fn run(arguments: &InitArguments, situation: &Situation) -> Result<u8, Error> {
    if arguments.repositories {
        return repositories::run(arguments.dry_run, situation);
    }
    let policy = FirstPolicy::new(&arguments.commands, arguments.limit)?;
    let (path, plan) = if situation.credentials.uid == 0 {
        let path = PathBuf::from(SYSTEM_POLICY);
        not_there_yet(&path)?;
        (path, for_the_system(&policy)?)
    } else {
        let path = situation.own_policy().ok_or_else(|| {
            Error::new(ExitStatus::System, "there is no place for a policy of yours").advise(
                "It would be below XDG_CONFIG_HOME, or below HOME, in a directory that is yours.".to_owned(),
            )
        })?;
        not_there_yet(&path)?;
        let plan = for_the_caller(&policy, &path)?;
        (path, plan)
    };
    let made = if arguments.dry_run { plan.describe("would make") } else { plan.make()?.describe("made") };
    let next = next(&policy, &path, arguments.dry_run);
    print(&answer(&format!("{made}{next}")))
}

/// A package brings a policy that limits nothing, and whoever begins there has to know how to go on.
fn not_there_yet(path: &Path) -> Result<(), Error> {
    if regular_file::status_of_path(path).is_err() {
        return Ok(());
    }
    let text = format!("{} is there already", visible(path));
    let (now, old) = (word(path), word(path.with_extension("toml.old")));
    Err(Error::new(ExitStatus::System, text).advise(format!(
        "Nothing was made, and nothing was changed.\nTo change it: rungate policy edit\nTo start from an empty policy, first: mv {now} {old}"
    )))
}

fn for_the_system(policy: &FirstPolicy) -> Result<Plan, Error> {
    let mut plan = Plan::default();
    plan.directory(Path::new(REPOSITORIES), 0o1777)?;
    for name in policy.repositories() {
        // Those that users create belong to whoever was first, who may then remove them.
        plan.file(&lock_file(name), 0o666, Content::LockFile)?;
    }
    plan.directories_of(Path::new(TMPFILES), 0o755)?;
    plan.file(Path::new(TMPFILES), 0o644, Content::Text(tmpfiles(policy)))?;
    plan.directories_of(Path::new(SYSTEM_POLICY), 0o755)?;
    plan.file(Path::new(SYSTEM_POLICY), 0o644, Content::Text(policy.for_the_system()))?;
    Ok(plan)
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
        "# The repositories of {SYSTEM_POLICY}, made again at every boot. A lock file that matters should be root's:\n\
         # in this directory whoever creates one may remove it, and then its holders are forgotten. Add a line for each.\n\
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
    let (first, command) = match policy.repositories().next() {
        Some(command) => ("", command),
        None => ("Nothing is limited yet: put your commands in with the first of them.\n", "COMMAND"),
    };
    let mut tries = [
        (format!("rungate explain -- {command}"), "what would happen, and why"),
        (format!("rungate run -- {command}"), "start it under the policy"),
        ("rungate policy edit".to_owned(), "change the policy; it is checked before it counts"),
    ];
    if policy.repositories().next().is_none() {
        tries.rotate_right(1);
    }
    let tries = tries.iter().map(|(line, what)| format!("  {line:<30}  # {what}\n")).collect::<String>();
    format!("{system}{first}Three to try:\n{tries}")
}
