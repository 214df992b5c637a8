//! Which lock files a listing is about: those of the policy, or those that were named. A repository with a
//! file for each member is a family of files; the ones that exist are found by their names.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    rc::Rc,
};

use crate::{
    cli::ListingArguments,
    commands::{
        refusals,
        shared::{
            listed_file::{KeptAt, ListedFile, Way},
            names::SystemNames,
            owner::{Owner, Terms},
            situation::Situation,
        },
    },
    error::Error,
    escape::visible,
    exit_status::ExitStatus,
    keeper::agent,
    policy::{self, Policy, nearest},
    terms::{
        keeper::Keeper,
        location::{name_on_site, table_of_site},
        member::Member,
        names::LookupError,
        queue::Queue,
    },
};

/// A repository of the policy, or a lock file that was named, and the files that there are of it.
pub(in crate::commands) struct RepositoryFiles {
    pub(in crate::commands) name: String,
    /// The limit that the policy gives for everybody.
    pub(in crate::commands) limit: Option<u64>,
    /// Whether there is a file for each member.
    pub(in crate::commands) of_members: bool,
    pub(in crate::commands) files: Vec<ListedFile>,
}

/// What is shown of a policy without any.
pub(in crate::commands) const NONE: &str = "The policy has no repository: nothing is limited.\n";

/// What a listing shows; without a policy there is nothing.
pub(in crate::commands) fn to_show(
    policy: &Policy,
    situation: &Situation,
    arguments: &ListingArguments,
) -> Result<Vec<RepositoryFiles>, Error> {
    if policy.is_empty() && arguments.repositories.is_empty() && !arguments.json {
        return Err(refusals::nothing_to_show());
    }
    wanted(policy, situation, &arguments.repositories)
}

/// The status of a listing, where a file could not be looked at, or a name could not be looked up.
pub(in crate::commands) fn status(failed: bool, unknown: bool) -> u8 {
    let status = match (failed, unknown) {
        (true, _) => ExitStatus::Repository,
        (false, true) => ExitStatus::System,
        (false, false) => ExitStatus::Success,
    };
    status as u8
}

/// The repositories with these names, or all of the policy.
pub(in crate::commands) fn wanted(
    policy: &Policy,
    situation: &Situation,
    wanted: &[OsString],
) -> Result<Vec<RepositoryFiles>, Error> {
    if wanted.is_empty() {
        return Ok(policy.repositories().iter().map(|known| files_of(known, policy, situation)).collect());
    }
    wanted.iter().map(|name| named(policy, situation, name)).collect()
}

fn files_of(known: &policy::Repository, policy: &Policy, situation: &Situation) -> RepositoryFiles {
    let name = known.shown_name().to_owned();
    if known.keeper() != Keeper::File {
        return tables_of(known, name, policy, situation);
    }
    let way = Way::to(known, policy, situation);
    let inhabited = Rc::default();
    let file = |member: Option<String>, path, terms: Result<Terms, LookupError>| ListedFile {
        inhabited: Rc::clone(&inhabited),
        name: name.clone(),
        member,
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
    search(known, &way, &way.base, 0, &[], &mut found);
    let mut files: Vec<ListedFile> = found
        .into_iter()
        .map(|(path, members)| {
            let member: Vec<String> = members.iter().map(|member| member.name(&SystemNames)).collect();
            file(Some(member.join(" ")), path, of.terms(&members))
        })
        .collect();
    files.sort_by(|one, other| one.member.cmp(&other.member));
    RepositoryFiles { limit: Some(of.limit_of_most()), name, of_members: true, files }
}

/// The tables of a repository that the agent keeps. Where it cannot be asked which there are, one stands for
/// all, so that it is seen that nobody knows.
fn tables_of(
    known: &policy::Repository,
    name: String,
    policy: &Policy,
    situation: &Situation,
) -> RepositoryFiles {
    let of = Owner { policy, known, situation };
    let inhabited = Rc::default();
    let table = |table: String, member: Option<String>, terms| ListedFile {
        inhabited: Rc::clone(&inhabited),
        name: name.clone(),
        queue: known.queue(),
        member,
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
                    let member: Vec<String> =
                        members.iter().map(|member| member.name(&SystemNames)).collect();
                    files.push(table(found, Some(member.join(" ")), of.terms(&members)));
                }
            }
            files.sort_by(|one, other| one.member.cmp(&other.member));
        }
    }
    let limit = if of_members { Some(of.limit_of_most()) } else { files.first().and_then(ListedFile::limit) };
    RepositoryFiles { name, limit, of_members, files }
}

/// Every file below `directory` whose names are those of the repository, with whose it is. A directory that
/// cannot be read or may not be used, has none to show.
fn search(
    known: &policy::Repository,
    way: &Way,
    directory: &Path,
    depth: usize,
    above: &[Member],
    found: &mut Vec<(PathBuf, Vec<Member>)>,
) {
    for name in way.place(directory).names_in(directory) {
        let Some(read) = name.to_str().and_then(|name| known.read_name(depth, name)) else {
            continue;
        };
        let (path, members) = (directory.join(&name), [above, &read].concat());
        if depth + 1 == known.depth() {
            found.push((path, members));
        } else {
            search(known, way, &path, depth + 1, &members, found);
        }
    }
}

/// The names of repositories, as many as anybody reads.
fn names_of(known: &[policy::Repository]) -> String {
    let shown: Vec<String> = known.iter().take(8).map(|one| visible(one.shown_name())).collect();
    match (shown.as_slice(), known.len() - shown.len()) {
        ([], _) => "none".to_owned(),
        (names, 0) => names.join(", "),
        (names, more) => format!("{} and {more} more", names.join(", ")),
    }
}

fn named(policy: &Policy, situation: &Situation, name: &OsString) -> Result<RepositoryFiles, Error> {
    if name.as_bytes().contains(&b'/') {
        let path = situation.directory.join(name);
        let name = visible(name);
        let file = ListedFile {
            name: name.clone(),
            member: None,
            queue: Queue::default(),
            inhabited: Rc::default(),
            kept_at: KeptAt::Named(path),
            terms: Ok(Terms::default()),
        };
        return Ok(RepositoryFiles { name, limit: None, of_members: false, files: vec![file] });
    }
    let known = policy.repositories();
    if let Some(known) = known.iter().find(|known| name == known.shown_name() || name == known.name()) {
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
