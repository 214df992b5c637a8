//! Which lock files a listing is about: those of the policy, or those that were named. A repository with a file for each
//! member is a family of files; the ones that exist are found by their names.

use std::{
    ffi::OsString,
    fs,
    ops::RangeInclusive,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    commands::{names::SystemNames, situation::Situation},
    error::Error,
    exit_status::ExitStatus,
    output::visible::visible,
    policy::{self, Member, Policy},
    repository::{error::RepositoryError, survey::Survey},
    sys::host,
};

/// A repository of the policy, or a lock file that was named, and the files that there are of it.
pub(super) struct RepositoryFiles {
    pub(super) name: String,
    /// The limit that the policy gives for everybody.
    pub(super) limit: Option<u64>,
    /// Whether there is a file for each member.
    pub(super) of_members: bool,
    pub(super) files: Vec<LockFileOf>,
}

/// One lock file.
pub(super) struct LockFileOf {
    /// The repository's name.
    pub(super) name: String,
    /// Whose it is, where there is one for each.
    pub(super) member: Option<String>,
    pub(super) path: PathBuf,
    pub(super) limit: Option<u64>,
    /// The slots that only some may use, each stretch with those for whom it is kept.
    kept: Vec<(RangeInclusive<u64>, String)>,
    /// Whether it was named by its path, so that it should be there.
    is_named: bool,
}

impl LockFileOf {
    /// What is found there.
    pub(super) fn survey(&self) -> Result<Survey, RepositoryError> {
        if self.is_named { Survey::of_existing(&self.path) } else { Survey::of(&self.path) }
    }

    /// The same, without a search for whom no record accounts for.
    pub(super) fn glance(&self) -> Result<Survey, RepositoryError> {
        Survey::at_a_glance(&self.path)
    }

    /// Whether slots are kept for some.
    pub(super) fn keeps(&self) -> bool {
        !self.kept.is_empty()
    }

    /// How many of the slots that only some may use are idle.
    pub(super) fn kept_idle(&self, survey: &Survey) -> u64 {
        self.kept.iter().map(|(slots, _)| survey.free_among(slots)).sum()
    }

    /// `3 kept for %cad`, of what is idle.
    pub(super) fn kept_note(&self, survey: &Survey) -> Option<String> {
        let idle = self.kept.iter().map(|(slots, whom)| (survey.free_among(slots), whom));
        let notes: Vec<String> = idle
            .filter(|(idle, _)| *idle > 0)
            .map(|(idle, whom)| format!("{idle} kept for {}", visible(whom)))
            .collect();
        (!notes.is_empty()).then(|| notes.join(", "))
    }

    /// `seats-per-user [ann]`
    pub(super) fn title(&self) -> String {
        match &self.member {
            Some(member) => format!("{} [{member}]", self.name),
            None => self.name.clone(),
        }
    }
}

/// The repositories named by `wanted`, or all of the policy.
pub(super) fn wanted(
    policy: &Policy,
    situation: &Situation,
    wanted: &[OsString],
) -> Result<Vec<RepositoryFiles>, Error> {
    if wanted.is_empty() {
        return Ok(policy.repositories().iter().map(|known| files_of(known, situation)).collect());
    }
    wanted.iter().map(|name| named(policy, situation, name)).collect()
}

fn files_of(known: &policy::Repository, situation: &Situation) -> RepositoryFiles {
    let name = known.shown_name().to_owned();
    let limit = u64::from(known.limit().resolve(host::processors));
    if let Some(path) = known.fixed_path(&situation.runtime) {
        let kept = kept(known, limit);
        let file =
            LockFileOf { name: name.clone(), member: None, path, limit: Some(limit), kept, is_named: false };
        return RepositoryFiles { name, limit: Some(limit), of_members: false, files: vec![file] };
    }
    let mut found = Vec::new();
    search(known, &known.base(&situation.runtime), 0, &[], &mut found);
    let mut files: Vec<LockFileOf> = found
        .into_iter()
        .map(|(path, members)| {
            let member: Vec<String> = members.iter().map(|member| member.name(&SystemNames)).collect();
            let limit = u64::from(known.limit_of(&known_as(&members)).resolve(host::processors));
            LockFileOf {
                name: name.clone(),
                member: Some(member.join(" ")),
                path,
                limit: Some(limit),
                kept: kept(known, limit),
                is_named: false,
            }
        })
        .collect();
    files.sort_by(|one, other| one.member.cmp(&other.member));
    RepositoryFiles { name, limit: Some(limit), of_members: true, files }
}

/// The slots that are kept for some, as far as there are any.
fn kept(known: &policy::Repository, limit: u64) -> Vec<(RangeInclusive<u64>, String)> {
    let within = |(slots, whom): (RangeInclusive<u32>, &str)| {
        (u64::from(*slots.start())..=u64::from(*slots.end()).min(limit), whom.to_owned())
    };
    known.kept().into_iter().map(within).filter(|(slots, _)| !slots.is_empty()).collect()
}

/// Every file below `directory` whose names are those of the repository, with whose it is. A directory that cannot be read
/// has none to show.
fn search(
    known: &policy::Repository,
    directory: &Path,
    depth: usize,
    above: &[Member],
    found: &mut Vec<(PathBuf, Vec<Member>)>,
) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        let Some(read) = entry.file_name().to_str().and_then(|name| known.read_name(depth, name)) else {
            continue;
        };
        let members = [above, &read].concat();
        if depth + 1 == known.depth() {
            found.push((entry.path(), members));
        } else {
            search(known, &entry.path(), depth + 1, &members, found);
        }
    }
}

/// What a member may be called in `limits`: by number and by name.
fn known_as(members: &[Member]) -> Vec<String> {
    let numbers = members.iter().filter_map(|member| match member {
        Member::User(id) | Member::Group(id) => Some(id.to_string()),
        Member::Text(_) => None,
    });
    numbers.chain(members.iter().map(|member| member.name(&SystemNames))).collect()
}

fn named(policy: &Policy, situation: &Situation, name: &OsString) -> Result<RepositoryFiles, Error> {
    if name.as_bytes().contains(&b'/') {
        let path = situation.directory.join(name);
        let name = visible(name);
        let file = LockFileOf {
            name: name.clone(),
            member: None,
            path,
            limit: None,
            kept: Vec::new(),
            is_named: true,
        };
        return Ok(RepositoryFiles { name, limit: None, of_members: false, files: vec![file] });
    }
    let known = policy.repositories();
    if let Some(known) = known.iter().find(|known| name == known.shown_name() || name == known.name()) {
        return Ok(files_of(known, situation));
    }
    let nearest = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&name.to_string_lossy(), known.shown_name()), known))
        .filter(|(distance, _)| *distance <= 3)
        .min_by_key(|(distance, _)| *distance);
    let advice = match nearest {
        Some((_, known)) => format!("Did you mean \"{}\"?", known.shown_name()),
        None => "To see all: rungate status. A lock file is named by a path with a slash.".to_owned(),
    };
    let text = format!("the policy has no repository \"{}\"", visible(name));
    Err(Error::new(ExitStatus::Usage, text).advise(advice))
}
