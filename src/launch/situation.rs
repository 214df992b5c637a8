//! Everything about this process and this host that a decision may depend on, gathered once.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::{Program, refusals};
use crate::{
    judge::{
        Request,
        terms::{LookupError, Names},
    },
    policy::{Faults, Policy, SYSTEM_POLICY, Sources},
    sys::{Account, Credentials, Errno, LookupFailure, accounts, regular_file},
    text::{Error, ExitStatus, stream, visible, word},
};

/// The environment variable with the effect of `--policy`.
const POLICY_VARIABLE: &str = "RUNGATE_POLICY";

/// The process that asks, and where it runs.
#[derive(Clone)]
pub(crate) struct Situation {
    pub(crate) credentials: Credentials,
    pub(crate) host: OsString,
    pub(crate) directory: PathBuf,
    /// The directory that `{runtime}` means.
    pub(crate) runtime: PathBuf,
    /// The policy that `--policy` names.
    policy: Option<PathBuf>,
}

impl Situation {
    pub(crate) fn of_this_process(policy: Option<PathBuf>) -> Result<Self, Error> {
        let credentials = Credentials::of_this_process()
            .map_err(|errno| Error::new(ExitStatus::System, format!("getgroups: {}", errno.desc())))?;
        let host = accounts::name()
            .map_err(|errno| Error::new(ExitStatus::System, format!("gethostname: {}", errno.desc())))?;
        // A directory that was removed has no path: a relative command is then not found, and a rule for it
        // does not match.
        let directory = env::current_dir().unwrap_or_default();
        let runtime = runtime_directory(credentials.uid);
        Ok(Self { credentials, host, directory, runtime, policy })
    }

    /// Removes what belongs only to the caller, after a change of the user.
    pub(crate) fn forget_caller(&mut self) {
        self.runtime = PathBuf::from(format!("/tmp/rungate-{}", self.credentials.uid));
    }

    /// The request to start a program.
    pub(crate) fn request<'a>(
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
            cpus: &accounts::processors,
            runtime: &self.runtime,
            names: &SystemNames,
        }
    }

    /// The file that `--policy` names.
    #[cfg(feature = "tools")]
    pub(crate) fn named_policy(&self) -> Option<&Path> {
        self.policy.as_deref()
    }

    /// The policy in force for the caller: the system's, the named one, and their own. The caller gets a
    /// message about delegated files that are missing because of faults.
    pub(crate) fn load_policy(&self) -> Result<Policy, Error> {
        let policy = self.load_silently()?;
        for (delegation, faults) in policy.withheld() {
            stream::complain(&refusals::withheld(delegation, faults));
        }
        Ok(policy)
    }

    /// The policy in force, to be shown. If it has faults: the unaffected repositories, and the error.
    pub(crate) fn salvage_policy(&self) -> (Policy, Option<Error>) {
        let (policy, error) = self.salvage_silently();
        for (delegation, faults) in policy.withheld() {
            stream::complain(&refusals::withheld(delegation, faults));
        }
        (policy, error)
    }

    /// The same, without messages on standard error.
    pub(crate) fn salvage_silently(&self) -> (Policy, Option<Error>) {
        let (policy, faults) = Policy::salvage(&self.sources());
        (policy, faults.map(|faults| self.faulty(&faults)))
    }

    /// The policy in force, without messages on standard error.
    pub(crate) fn load_silently(&self) -> Result<Policy, Error> {
        Policy::load_sound(&self.sources()).map_err(|faults| self.faulty(&faults))
    }

    /// The files that were named, as if they were the system's. Messages name them as they were typed.
    pub(crate) fn load_files(&self, files: &[PathBuf]) -> Result<Policy, Faults> {
        Policy::check_files(files, self.credentials.uid, &SystemNames)
    }

    /// The message for a policy with faults, including a named one.
    pub(crate) fn faulty(&self, faults: &Faults) -> Error {
        let words =
            self.policy.as_ref().map_or_else(String::new, |path| format!(" --policy {}", visible(path)));
        refusals::faulty(self.credentials.uid, faults, &words)
    }

    /// The same for named files that are treated as the system's.
    pub(crate) fn faulty_files(&self, faults: &Faults, files: &[PathBuf]) -> Error {
        let words: String = files.iter().map(|file| format!(" {}", visible(file))).collect();
        refusals::faulty(self.credentials.uid, faults, &words)
    }

    /// The path of the caller's own policy.
    pub(crate) fn own_policy(&self) -> Option<PathBuf> {
        own_policy(self.credentials.uid)
    }

    /// The same for a command that writes it; what is wrong with the environment if it has no place.
    pub(crate) fn own_policy_to_write(&self) -> Result<PathBuf, Error> {
        self.own_policy().ok_or_else(|| {
            let named =
                ["XDG_CONFIG_HOME", "HOME"].into_iter().find_map(|name| Some((name, absolute(name)?)));
            let Some((name, directory)) = named else {
                return no_place("neither XDG_CONFIG_HOME nor HOME names a directory")
                    .advise("Set HOME to your home directory.".to_owned());
            };
            let shown = visible(&directory);
            let set = format!("Set {name} to a directory that is yours.");
            let (what, advice) = match regular_file::status_of_target(&directory) {
                Err(Errno::ENOENT) => {
                    ("does not exist".to_owned(), format!("To create it: mkdir -m 700 {}", word(&directory)))
                }
                Err(errno) => (format!("cannot be read: {}", errno.desc()), set),
                Ok(_) => ("belongs to another user".to_owned(), set),
            };
            no_place(&format!("{shown}, which {name} names, {what}")).advise(advice)
        })
    }

    /// The sources of the policy in force for the caller.
    pub(crate) fn sources(&self) -> Sources {
        Sources {
            system: PathBuf::from(SYSTEM_POLICY),
            given: self
                .policy
                .clone()
                .or_else(|| env::var_os(POLICY_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from)),
            given_by: accounts::own_uid(),
            own: self.own_policy(),
            caller: self.credentials.uid,
        }
    }
}

fn no_place(why: &str) -> Error {
    Error::new(ExitStatus::System, format!("there is no place for your own policy: {why}"))
}

/// The caller's own policy, if the environment names a directory of the caller. After `su` or `sudo` it may
/// name that of another user, whose policy does not apply.
fn own_policy(uid: u32) -> Option<PathBuf> {
    let belongs =
        |directory: &PathBuf| regular_file::status_of_target(directory).is_ok_and(|status| status.uid == uid);
    let directory = match absolute("XDG_CONFIG_HOME") {
        Some(directory) => Some(directory).filter(belongs)?,
        None => absolute("HOME").filter(belongs)?.join(".config"),
    };
    Some(directory.join("rungate/policy.toml"))
}

/// `$XDG_RUNTIME_DIR/rungate` if that directory is the caller's own, which it is not after a change of user
/// that kept the environment. Otherwise a directory under `/tmp`, whose owner is checked before anything in
/// it is used.
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

// Look-ups of users and groups for judgement, in the name service of this system.

/// The name service.
pub(crate) struct SystemNames;

impl Names for SystemNames {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        accounts::user_name(uid).map_err(failed)
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        Ok(accounts::account_of_name(name).map_err(failed)?.map(|account| account.uid))
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        accounts::group_id(name).map_err(failed)
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        accounts::group_name(gid).map_err(failed)
    }

    fn in_netgroup(&self, netgroup: &str, host: &str, user: &str) -> Result<bool, LookupError> {
        Ok(accounts::in_netgroup(netgroup, host, user))
    }
}

/// The failure, in the judge's type.
pub(crate) fn failed(failure: LookupFailure) -> LookupError {
    LookupError { call: failure.call, error: failure.errno.desc().to_owned() }
}

/// The account of a user by name or number.
pub(crate) fn account(user: &str) -> Result<Account, Error> {
    let account = match user.parse() {
        Ok(uid) => accounts::account_of_uid(uid),
        Err(_) => accounts::account_of_name(user),
    };
    let account = account.map_err(|error| Error::new(ExitStatus::System, failed(error).to_string()))?;
    account.ok_or_else(|| Error::new(ExitStatus::Usage, format!("there is no user \"{}\"", visible(user))))
}

/// The number of such a user: a deleted account may still hold slots.
pub(crate) fn uid_of(user: &str) -> Result<u32, Error> {
    user.parse().or_else(|_| account(user).map(|account| account.uid))
}
