//! What `status` and `list` show: the repositories of the policy, or those that its faults leave.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::{
    listed_file::{KeptAt, ListedFile, Way},
    owner::Terms,
    repositories::{RepositoryFiles, files_of, wanted},
};
use crate::launch::situation::Situation;
use crate::{
    cli::ListingArguments,
    judge::terms::keyword::Queue,
    keeper::agent,
    launch::refusals,
    policy::{Policy, SYSTEM_DIRECTORY},
    text::{error::Error, escape::visible, exit_status::ExitStatus, stream},
};

/// The message for a policy without any.
pub(crate) const NONE: &str = "The policy has no repository: nothing is limited.\n";

/// The content of a listing.
pub(crate) struct Shown {
    pub(crate) repositories: Vec<RepositoryFiles>,
    /// Which policy gives the limits.
    pub(crate) generation: u16,
    /// Whether the policy has faults, so that this is not all.
    pub(crate) is_faulty: bool,
}

/// Finds what a listing shows. The faults of a policy are printed before what they leave.
pub(crate) fn to_show(situation: &Situation, arguments: &ListingArguments) -> Result<Shown, Error> {
    let (policy, error) = situation.salvage_policy();
    let generation = policy.generation(Timestamp::now());
    let Some(error) = error else {
        if policy.is_empty() && arguments.repositories.is_empty() && !arguments.json {
            return Err(refusals::nothing_to_show());
        }
        let repositories = wanted(&policy, situation, &arguments.repositories)?;
        return Ok(Shown { repositories, generation, is_faulty: false });
    };
    let repositories = called_despite_faults(&policy, situation, &arguments.repositories);
    if repositories.is_empty() {
        return Err(error);
    }
    stream::complain(&error.to_string());
    Ok(Shown { repositories, generation, is_faulty: true })
}

/// The status of a listing, if the policy has faults, a file could not be checked, or a name could not
/// be looked up.
pub(crate) fn status(is_faulty: bool, failed: bool, unknown: bool) -> u8 {
    let status = match (is_faulty, failed, unknown) {
        (true, ..) => ExitStatus::Policy,
        (_, true, _) => ExitStatus::Repository,
        (_, _, true) => ExitStatus::System,
        _ => ExitStatus::Success,
    };
    status as u8
}

impl RepositoryFiles {
    /// Whether a name on the command line is for it: its own, or for a lock file that was found, the path or
    /// the name of the file.
    fn is_called(&self, name: &OsString) -> bool {
        let path = self.files.first().and_then(ListedFile::path).filter(|_| !self.of_members);
        *name == *self.name || path.is_some_and(|path| path == name || path.file_stem() == Some(name))
    }
}

/// Those of [`despite_faults`] with these names; all of them without names.
pub(crate) fn called_despite_faults(
    policy: &Policy,
    situation: &Situation,
    names: &[OsString],
) -> Vec<RepositoryFiles> {
    let mut repositories = despite_faults(policy, situation);
    repositories.retain(|known| names.is_empty() || names.iter().any(|name| known.is_called(name)));
    repositories
}

/// The repositories that the faults of a policy leave, and every other table of slots that can be found: lock
/// files in the directories of the policy, and tables of the agent.
pub(crate) fn despite_faults(policy: &Policy, situation: &Situation) -> Vec<RepositoryFiles> {
    let mut all: Vec<RepositoryFiles> =
        policy.repositories().iter().map(|known| files_of(known, policy, situation)).collect();
    let mut directories: BTreeSet<PathBuf> =
        policy.repositories().iter().map(|known| known.base(&situation.runtime)).collect();
    directories.extend([PathBuf::from(SYSTEM_DIRECTORY), situation.runtime.clone()]);
    let mut paths = BTreeSet::new();
    for directory in directories {
        lock_files(&Way::within(directory.clone(), situation), &directory, 0, &mut paths);
    }
    let is_known = |found: &KeptAt| {
        all.iter().flat_map(|known| &known.files).any(|file| match found {
            KeptAt::File(path, _) | KeptAt::Named(path) => file.path() == Some(path),
            KeptAt::Agent(table) => file.table() == Some(table),
        })
    };
    let tables = agent::tables().unwrap_or_default().into_iter();
    let tables = tables.map(|table| (table.clone(), KeptAt::Agent(table)));
    let files = paths.into_iter().map(|(path, base)| {
        let way = Way::within(base, situation);
        (visible(&path), KeptAt::File(path, way))
    });
    let others: Vec<(String, KeptAt)> = files.chain(tables).filter(|(_, found)| !is_known(found)).collect();
    all.extend(others.into_iter().map(|(name, kept_at)| {
        let file = ListedFile {
            name: name.clone(),
            member: None,
            queue: Queue::default(),
            kept_at,
            terms: Ok(Terms::default()),
        };
        RepositoryFiles { name, limit: None, of_members: false, files: vec![file] }
    }));
    all
}

/// How deep the lock files of members are below the directory of their repository, at most.
const DEPTH: usize = 3;

/// The lock files below a directory, each with the directory that is trusted.
fn lock_files(way: &Way, directory: &Path, depth: usize, found: &mut BTreeSet<(PathBuf, PathBuf)>) {
    for name in way.place(directory).names_in(directory) {
        let path = directory.join(&name);
        if name.as_bytes().ends_with(b".lock") {
            found.insert((path, way.base.clone()));
        } else if depth < DEPTH {
            lock_files(way, &path, depth + 1, found);
        }
    }
}
