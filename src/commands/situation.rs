//! Everything about this process and this host that a decision may depend on, gathered once.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use crate::{
    commands::names::SystemNames,
    decision::Request,
    diagnostic::Change,
    error::Error,
    exit_status::ExitStatus,
    launch::program::Program,
    output::{clock::Clock, visible::visible},
    policy::{Faults, Policy, SYSTEM_POLICY, Sources},
    sys::{accounts, credentials::Credentials, failure::Errno, host, regular_file},
};

/// The environment variable that does what `--policy` does.
const POLICY_VARIABLE: &str = "RUNGATE_POLICY";

/// The process that asks, and where it runs.
pub(super) struct Situation {
    pub(super) credentials: Credentials,
    pub(super) host: OsString,
    pub(super) directory: PathBuf,
    /// What `{runtime}` stands for.
    pub(super) runtime: PathBuf,
}

impl Situation {
    /// That of this process.
    pub(super) fn of_this_process() -> Result<Self, Error> {
        let credentials = Credentials::of_this_process()
            .map_err(|errno| Error::new(ExitStatus::System, format!("getgroups: {}", errno.desc())))?;
        let host = host::name()
            .map_err(|errno| Error::new(ExitStatus::System, format!("gethostname: {}", errno.desc())))?;
        // A directory that was removed has no path: a relative command is then not found, and a rule for it does not match.
        let directory = env::current_dir().unwrap_or_default();
        let runtime = runtime_directory(credentials.uid);
        Ok(Self { credentials, host, directory, runtime })
    }

    /// Takes back what belongs to the caller alone, after the user was changed to another one.
    pub(super) fn forget_caller(&mut self) {
        self.runtime = PathBuf::from(format!("/tmp/rungate-{}", self.credentials.uid));
    }

    /// The request to start a program.
    pub(super) fn request<'a>(
        &'a self,
        command: &'a OsString,
        arguments: &'a [OsString],
        program: &'a Program,
    ) -> Request<'a> {
        Request {
            typed: command,
            arguments,
            path: &program.path,
            canonical: &program.canonical,
            uid: self.credentials.uid,
            gids: &self.credentials.groups,
            host: &self.host,
            directory: &self.directory,
            environment: &|name| env::var_os(name),
            now: Timestamp::now(),
            cpus: &host::processors,
            runtime: &self.runtime,
            names: &SystemNames,
        }
    }

    /// The policy in force for the caller: the system's, the one that is named, and his own.
    pub(super) fn load_policy(&self, named: Option<PathBuf>) -> Result<Policy, Error> {
        Policy::load(&self.sources(named)).map_err(|faults| self.faulty(&faults))
    }

    /// What is said when nothing can be done because the policy has faults: where, since when, and who can mend it.
    pub(super) fn faulty(&self, faults: &Faults) -> Error {
        let count = match faults.count() {
            1 => "1 fault".to_owned(),
            count => format!("{count} faults"),
        };
        let clock = Clock::now();
        let mut changes: Vec<(String, Change)> = Vec::new();
        for fault in faults {
            let path = visible(&fault.path);
            if let Some(change) = fault.change()
                && changes.iter().all(|(known, _)| *known != path)
            {
                changes.push((path, change));
            }
        }
        let mut text = format!("the policy has {count}\n{}", faults.to_string().trim_end());
        for (path, change) in &changes {
            let who = accounts::shown(change.by);
            text.push_str(&format!("\n{path} was changed {} by {who}", clock.short(change.at)));
        }
        let others: Vec<String> = changes
            .iter()
            .filter(|(_, change)| change.by != self.credentials.uid)
            .map(|(_, change)| accounts::shown(change.by))
            .collect();
        let advice = match others.first() {
            Some(other) if *other != accounts::shown(0) => {
                format!("Tell {other}, or your administrator: rungate policy check")
            }
            Some(_) => "Tell your administrator: rungate policy check".to_owned(),
            None => "To see it whole, once it is mended: rungate policy check".to_owned(),
        };
        Error::new(ExitStatus::Policy, text).advise(advice)
    }

    /// Where the caller's own policy is, or would be.
    pub(super) fn own_policy(&self) -> Option<PathBuf> {
        own_policy(self.credentials.uid)
    }

    /// Where the policy in force for the caller comes from.
    pub(super) fn sources(&self, named: Option<PathBuf>) -> Sources {
        Sources {
            system: PathBuf::from(SYSTEM_POLICY),
            given: named
                .or_else(|| env::var_os(POLICY_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from)),
            own: self.own_policy(),
            caller: self.credentials.uid,
        }
    }
}

/// The caller's own policy, where the environment leads to a directory of his: after `su` or `sudo` it may lead to somebody
/// else's, whose policy is not the caller's.
fn own_policy(uid: u32) -> Option<PathBuf> {
    let belongs =
        |directory: &PathBuf| regular_file::status_of_target(directory).is_ok_and(|status| status.uid == uid);
    let directory = match absolute("XDG_CONFIG_HOME") {
        Some(directory) => Some(directory).filter(belongs)?,
        None => absolute("HOME").filter(belongs)?.join(".config"),
    };
    Some(directory.join("rungate/policy.toml"))
}

/// `$XDG_RUNTIME_DIR/rungate` where that directory is the caller's own (it is not after a change of user that kept the
/// environment), else a directory under `/tmp`, whose owner is checked before anything in it is used.
fn runtime_directory(uid: u32) -> PathBuf {
    absolute("XDG_RUNTIME_DIR")
        .filter(|directory| is_own(directory))
        .map_or_else(|| PathBuf::from(format!("/tmp/rungate-{uid}")), |directory| directory.join("rungate"))
}

fn is_own(directory: &Path) -> bool {
    let status: Result<regular_file::Status, Errno> = regular_file::status_of_path(directory);
    status.is_ok_and(|status| regular_file::is_private_directory(&status))
}

fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
