//! The lock files of a listing: those of the policy, or the named ones. A repository with a file for each
//! member is a family of files, and the existing ones are found by their names.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, DirEntry},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use super::{KeptAt, ListedFile, Owner, Terms, listed_file::Way};
use crate::{
    cli::ListingArguments,
    judge::terms::{Keeper, LookupError, Member, Queue, claim, name_on_site, table_of_site},
    keeper::agent,
    launch::{Situation, SystemNames, refusals},
    policy::{self, Policy, SYSTEM_DIRECTORY, nearest},
    text::{Error, ExitStatus, stream, visible},
};
use jiff::Timestamp;

/// A repository of the policy, or a named lock file, and its existing files.
pub(crate) struct RepositoryFiles {
    pub(crate) name: String,
    /// The policy's limit for all.
    pub(crate) limit: Option<u64>,
    /// Whether there is a file for each member.
    pub(crate) of_members: bool,
    pub(crate) files: Vec<ListedFile>,
}

/// The repositories with these names, or all of the policy.
pub(crate) fn wanted(
    policy: &Policy,
    situation: &Situation,
    wanted: &[OsString],
) -> Result<Vec<RepositoryFiles>, Error> {
    if wanted.is_empty() {
        return Ok(policy.repositories().iter().map(|known| files_of(known, policy, situation)).collect());
    }
    wanted.iter().map(|name| named(policy, situation, name)).collect()
}

pub(super) fn files_of(
    known: &policy::Repository,
    policy: &Policy,
    situation: &Situation,
) -> RepositoryFiles {
    let name = known.shown_name().to_owned();
    if known.keeper() != Keeper::File {
        return tables_of(known, name, policy, situation);
    }
    let way = Way::to(known, policy, situation);
    let file = |members: Option<&[Member]>, path, terms: Result<Terms, LookupError>| ListedFile {
        name: name.clone(),
        member: members.map(whose),
        values: members.unwrap_or_default().to_vec(),
        queue: known.queue(),
        kept_at: KeptAt::File(path, way.clone()),
        terms,
    };
    let of = Owner { policy, known, situation };
    if let Some(path) = known.fixed_path(&situation.runtime) {
        let files = vec![file(None, path, of.terms(&[]))];
        return RepositoryFiles { limit: files[0].limit(), name, of_members: false, files };
    }
    let mut found = Vec::new();
    Search { known, way: &way }.below(&way.base, 0, &[], &mut found);
    let mut files: Vec<ListedFile> =
        found.into_iter().map(|(path, members)| file(Some(&members), path, of.terms(&members))).collect();
    files.sort_by(|one, other| one.member.cmp(&other.member));
    RepositoryFiles { limit: Some(of.limit_of_most()), name, of_members: true, files }
}

/// The tables of a repository that the agent keeps. If the agent cannot list them, one entry represents all,
/// to show the error.
fn tables_of(
    known: &policy::Repository,
    name: String,
    policy: &Policy,
    situation: &Situation,
) -> RepositoryFiles {
    let of = Owner { policy, known, situation };
    let table = |table: String, members: Option<&[Member]>, terms| ListedFile {
        name: name.clone(),
        queue: known.queue(),
        member: members.map(whose),
        values: members.unwrap_or_default().to_vec(),
        kept_at: KeptAt::Agent(table),
        terms,
    };
    let is_of_site = known.keeper() == Keeper::Site;
    let own = || if is_of_site { table_of_site(known.name()) } else { known.name().to_owned() };
    let of_members = known.fixed_path(&situation.runtime).is_none();
    let mut files = Vec::new();
    match of_members.then(agent::tables) {
        None => files.push(table(own(), None, of.terms(&[]))),
        Some(Err(_)) => files.push(table(own(), None, Ok(Terms::default()))),
        Some(Ok(tables)) => {
            for found in tables {
                let name = name_on_site(&found);
                if name.is_some() != is_of_site {
                    continue;
                }
                let name = name.unwrap_or(&found);
                if let Some(members) = known.read_name(0, &format!("{name}.lock")) {
                    files.push(table(found, Some(&members), of.terms(&members)));
                }
            }
            files.sort_by(|one, other| one.member.cmp(&other.member));
        }
    }
    let limit = if of_members { Some(of.limit_of_most()) } else { files.first().and_then(ListedFile::limit) };
    RepositoryFiles { name, limit, of_members, files }
}

/// The member of the file, as listings name it.
fn whose(members: &[Member]) -> String {
    claim::shown(members, &SystemNames)
}

/// A search for the files of a repository.
struct Search<'a> {
    known: &'a policy::Repository,
    way: &'a Way,
}

impl Search<'_> {
    /// Every file below `directory` whose names are those of the repository, with its member. A directory
    /// that cannot be read or may not be used has none.
    fn below(
        &self,
        directory: &Path,
        depth: usize,
        above: &[Member],
        found: &mut Vec<(PathBuf, Vec<Member>)>,
    ) {
        for name in self.way.place(directory).names_in(directory) {
            let Some(members) = name.to_str().and_then(|name| self.known.read_name(depth, name)) else {
                continue;
            };
            let (path, members) = (directory.join(&name), [above, &members].concat());
            if depth + 1 == self.known.depth() {
                found.push((path, members));
            } else {
                self.below(&path, depth + 1, &members, found);
            }
        }
    }
}

/// The names of repositories, up to a readable number.
fn names_of(known: &[policy::Repository]) -> String {
    let shown: Vec<String> = known.iter().take(8).map(|one| visible(one.shown_name())).collect();
    match (shown.as_slice(), known.len() - shown.len()) {
        ([], _) => "none".to_owned(),
        (names, 0) => names.join(", "),
        (names, more) => format!("{} and {more} more", names.join(", ")),
    }
}

/// The repository, and the member if the name has one, as in listings: `seats [ann]`.
fn with_member<'a>(policy: &'a Policy, name: &'a OsString) -> Option<(&'a policy::Repository, &'a str)> {
    let (repository, member) = name.to_str()?.strip_suffix(']')?.split_once(" [")?;
    let is_it = |known: &&policy::Repository| repository == known.shown_name() || repository == known.name();
    Some((policy.repositories().iter().find(is_it)?, member))
}

/// The tables of one member; all of them if the agent does not answer.
fn of_member(mut repository: RepositoryFiles, member: &str) -> RepositoryFiles {
    let is_it = |of: &Option<String>| of.as_ref().is_some_and(|of| of == member || visible(of) == member);
    repository.files.retain(|file| file.member.is_none() || is_it(&file.member));
    if repository.files.is_empty() {
        repository.name = format!("{} [{member}]", repository.name);
    }
    repository
}

fn named(policy: &Policy, situation: &Situation, name: &OsString) -> Result<RepositoryFiles, Error> {
    let exact = |known: &policy::Repository| name == known.shown_name() || name == known.name();
    if let Some((known, member)) = with_member(policy, name)
        && !policy.repositories().iter().any(exact)
    {
        let files = files_of(known, policy, situation);
        if files.of_members {
            return Ok(of_member(files, member));
        }
        let text = format!("repository \"{}\" has no members", visible(known.shown_name()));
        return Err(Error::new(ExitStatus::Usage, text));
    }
    if name.as_bytes().contains(&b'/') {
        let path = situation.directory.join(name);
        let name = visible(name);
        let file = ListedFile {
            name: name.clone(),
            member: None,
            values: Vec::new(),
            queue: Queue::default(),
            kept_at: KeptAt::Named(path),
            terms: Ok(Terms::default()),
        };
        return Ok(RepositoryFiles { name, limit: None, of_members: false, files: vec![file] });
    }
    let known = policy.repositories();
    if let Some(known) = known.iter().find(|known| exact(known)) {
        return Ok(files_of(known, policy, situation));
    }
    let near = nearest(&name.to_string_lossy(), known.iter().map(policy::Repository::shown_name));
    let advice = match near {
        Some(near) => format!("Did you mean \"{}\"?", visible(near)),
        None => format!("It has: {}. A lock file is named by a path with a slash.", names_of(known)),
    };
    let text = format!("the policy has no repository \"{}\"", visible(name));
    Err(Error::new(ExitStatus::Usage, text).advise(advice))
}

// The content of `status` and `list`: the repositories of the policy, or those that its faults do not affect.

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

/// Finds what a listing shows. The faults of a policy are printed before the unaffected repositories.
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
    /// Whether a name on the command line means it: its own name or, for a found lock file, the path or the
    /// name of the file.
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

/// The repositories that the faults of a policy do not affect, and all other tables that can be found: lock
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
            values: Vec::new(),
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

// Existing directories in which users get no permission to create lock files: those of other programs.

/// Why users may not get that permission in a directory, and root may not take it from its owner, if it is
/// not for lock files alone. Root's directories in the root directory belong to the system, even if they are
/// empty, as `/run` in some containers.
pub(crate) fn not_for_users(directory: &Path, policy: &Policy, runtime: &Path) -> Option<String> {
    let real = real(directory);
    if real.ancestors().count() <= 2 && fs::metadata(&real).is_ok_and(|status| status.uid() == 0) {
        return Some(format!("{} belongs to the system", visible(&real)));
    }
    let known = policy.repositories().iter().map(|known| (known, known.directories(runtime)));
    let (mut ours, mut places) = (BTreeSet::new(), Vec::new());
    for (known, directories) in known {
        places.extend(directories.iter().position(|own| own == directory).map(|depth| (depth, known)));
        ours.extend(directories);
    }
    let other = Others { ours }.below(directory, &places)?;
    let name = other.strip_prefix(directory).unwrap_or(&other);
    Some(format!("it has {}, which is not a lock file", visible(name)))
}

/// A search for what is not of rungate.
struct Others {
    /// The directories that are the same for every launch.
    ours: BTreeSet<PathBuf>,
}

impl Others {
    /// In a directory where these repositories have names at these depths. A name without any text of its own
    /// shows nothing about a file.
    fn below(&self, directory: &Path, places: &[(usize, &policy::Repository)]) -> Option<PathBuf> {
        fs::read_dir(directory).into_iter().flatten().flatten().find_map(|entry: DirEntry| {
            let (name, path) = (entry.file_name(), entry.path());
            // Of the file system itself.
            if name == "lost+found" || name.as_bytes().starts_with(b".nfs") {
                return None;
            }
            let reads = |(depth, known): &(usize, &policy::Repository)| {
                name.to_str().is_some_and(|name| known.read_name(*depth, name).is_some())
            };
            let places = places.iter().filter(|place| reads(place));
            let mut below = places.map(|(depth, known)| (depth + 1, *known)).collect::<Vec<_>>();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                below.retain(|(depth, known)| *depth < known.depth());
                return match below.as_slice() {
                    _ if self.ours.contains(&path) || name.as_bytes().starts_with(b"@") => None,
                    [] => Some(path),
                    below => self.below(&path, below),
                };
            }
            let is_of = |(depth, known): &(usize, &policy::Repository)| {
                *depth == known.depth() && known.has_text_in_file_name()
            };
            let is_lock_file = name.as_bytes().ends_with(b".lock") || below.iter().any(is_of);
            (!is_lock_file).then_some(path)
        })
    }
}

/// What an administrator writes into the policy instead: a directory below it, if users can reach that and
/// root alone can replace it.
pub(crate) fn elsewhere(directory: &Path) -> String {
    let is_open = |above: &Path| {
        fs::metadata(above).is_ok_and(|status| status.uid() == 0 && status.mode() & 0o001 != 0)
    };
    let (what, place) = if real(directory).ancestors().all(is_open) {
        ("a directory below it", directory.join("rungate"))
    } else {
        ("another directory", SYSTEM_DIRECTORY.into())
    };
    format!("In the policy, name {what}, such as {}", visible(place))
}

fn real(directory: &Path) -> PathBuf {
    directory.canonicalize().unwrap_or_else(|_| directory.to_owned())
}
