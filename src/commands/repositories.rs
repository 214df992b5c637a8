//! Which lock files a listing is about: those of the policy, or those that were named. A repository with a file for each
//! member is a family of files; the ones that exist are found by their names.

use std::{ffi::OsString, os::unix::ffi::OsStrExt, path::PathBuf};

use crate::{
    commands::situation::Situation,
    error::Error,
    exit_status::ExitStatus,
    output::visible::visible,
    policy::{self, Policy},
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
}

impl LockFileOf {
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
    let files = known
        .fixed_path(&situation.runtime)
        .map(|path| LockFileOf { name: name.clone(), member: None, path, limit: None })
        .into_iter()
        .collect();
    RepositoryFiles { name, limit: None, of_members: false, files }
}

fn named(policy: &Policy, situation: &Situation, name: &OsString) -> Result<RepositoryFiles, Error> {
    if name.as_bytes().contains(&b'/') {
        let path = situation.directory.join(name);
        let name = visible(name);
        let file = LockFileOf { name: name.clone(), member: None, path, limit: None };
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
