//! Directories and lock files: whether they are there, whose they are, and on what file system. Whoever owns
//! a lock file in a directory for everybody can remove it, and then its holders are forgotten.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{
    cli::Topic,
    commands::{
        doctor::{
            command_line::command,
            examination::Examination,
            file_system,
            finding::Finding,
            readers::{Want, barrier, how_to_mend},
            section::Section,
        },
        shared::{listed_file::ListedFile, repositories},
    },
    escape::Show,
    keeper::file::trial::{try_out, try_to_open},
    policy::{Policy, Repository},
    sys::{
        accounts,
        failure::{Errno, errno_of},
        ordinary_user::{as_ordinary_user, is_full},
    },
    terms::{keeper::Keeper, location::Creation},
};

/// What makes directories and lock files as the policy wants them.
pub(super) const INIT: &str = "rungate init --repositories";

/// The bits of a directory in which everybody can create files, and nobody remove another's.
const COMMON: u32 = 0o1777;

pub(super) fn look(examination: &Examination) -> Section {
    let Some(policy) = examination.policy() else {
        return Section::without_policy(Topic::Repositories);
    };
    let mut findings = Vec::new();
    let directories = directories(policy, examination);
    for (directory, known) in &directories {
        findings.extend(of_directory(directory, known, policy, &examination.situation.runtime));
        findings.extend(file_system::of(directory));
    }
    if let Ok(all) = repositories::wanted(policy, &examination.situation, &[]) {
        for (known, files) in policy.repositories().iter().zip(all) {
            findings.extend(of_files(known, &files.files, policy, examination));
        }
    }
    let names: Vec<String> = directories.keys().map(|path| path.shown().to_string()).collect();
    let summary = match names.as_slice() {
        [] => "none in lock files".to_owned(),
        names => format!("in {}", names.join(", ")),
    };
    Section::new(Topic::Repositories, summary, findings)
}

/// The directories that have to be there before any launch, each with the repositories in it.
fn directories<'p>(policy: &'p Policy, examination: &Examination) -> BTreeMap<PathBuf, Vec<&'p Repository>> {
    let runtime = &examination.situation.runtime;
    let mut directories: BTreeMap<PathBuf, Vec<&Repository>> = BTreeMap::new();
    for known in policy.repositories().iter().filter(|known| known.keeper() == Keeper::File) {
        let base = known.base(runtime);
        if !base.starts_with(runtime) {
            directories.entry(base).or_default().push(known);
        }
    }
    directories
}

/// Directories that are not there.
pub(super) fn missing(examination: &Examination) -> Vec<Finding> {
    let Some(policy) = examination.policy() else { return Vec::new() };
    let directories = directories(policy, examination);
    let gone = directories.iter().filter(|(directory, _)| fs::metadata(directory).is_err());
    gone.flat_map(|(directory, known)| of_directory(directory, known, policy, &examination.situation.runtime))
        .collect()
}

/// Directories on NFS whose locks do not hold for other hosts.
pub(super) fn on_nfs(examination: &Examination) -> Vec<Finding> {
    let Some(policy) = examination.policy() else { return Vec::new() };
    directories(policy, examination)
        .keys()
        .filter_map(|directory| file_system::of_network(directory))
        .collect()
}

fn of_directory(directory: &Path, known: &[&Repository], policy: &Policy, runtime: &Path) -> Vec<Finding> {
    let shown = directory.shown();
    let status = match fs::metadata(directory) {
        Ok(status) => status,
        Err(error) => {
            let why = errno_of(&error).desc();
            let text = format!("{shown}: {why}: launches that need {} are refused (74)", names_of(known));
            return vec![Finding::fault("directory-missing", text).mend(INIT)];
        }
    };
    if !status.is_dir() {
        let text = format!("{shown} is no directory: launches that need a repository in it are refused (74)");
        return vec![Finding::fault("directory-missing", text).mend(command("ls -ld", directory))];
    }
    if !known.iter().any(|known| policy.layers()[known.layer].is_of_system()) {
        return Vec::new();
    }
    let mut findings = of_system_directory(directory, status.uid(), status.mode() & 0o7777);
    findings.extend(tried(directory, known, policy, runtime));
    if findings.is_empty() {
        let mode = status.mode() & 0o7777;
        findings.push(Finding::fine("directory", format!("{shown}: root's, with mode {mode:04o}")));
    }
    findings
}

fn names_of(known: &[&Repository]) -> String {
    let names = known.iter().map(|known| known.shown_name().shown().to_string());
    names.collect::<Vec<_>>().join(", ")
}

/// A directory of the system's, in which users have lock files.
fn of_system_directory(directory: &Path, owner: u32, mode: u32) -> Vec<Finding> {
    let shown = directory.shown();
    let mut findings = Vec::new();
    if owner != 0 {
        let text =
            format!("{shown} belongs to {}, who can remove every lock file in it", accounts::shown(owner));
        findings.push(Finding::warning("directory-owner", text).mend(command("chown root:root", directory)));
    }
    if lets_others_remove(mode) {
        let text = format!("{shown} has mode {mode:04o}: {OTHERS_REMOVE}");
        findings.push(Finding::fault("directory-mode", text).mend(for_everybody(directory)));
    }
    findings
}

pub(super) const OTHERS_REMOVE: &str = "everyone who can write to it can remove the lock files of others";

/// Whether those who can write to a directory can remove what is not theirs.
pub(super) fn lets_others_remove(mode: u32) -> bool {
    mode & 0o022 != 0 && mode & 0o1000 == 0
}

fn for_everybody(directory: &Path) -> String {
    command(&format!("chmod {COMMON:o}"), directory)
}

/// Does in a directory what a launch of an ordinary user does there.
fn tried(directory: &Path, known: &[&Repository], policy: &Policy, runtime: &Path) -> Option<Finding> {
    let refused = || format!("launches that need {} are refused (74)", names_of(known));
    let paths: Vec<Option<PathBuf>> = known.iter().map(|known| known.fixed_path(runtime)).collect();
    let is_there = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.exists());
    let creates = !paths.iter().all(is_there);
    if let Some(barrier) = barrier(directory, Want::Execute) {
        let text = format!("{}: users cannot reach the lock files in it: {}", barrier.text(), refused());
        let is_own = creates && barrier.path == directory;
        let mend = if is_own { for_everybody(directory) } else { barrier.mend() };
        return Some(Finding::fault("directory-closed", text).mend(mend));
    }
    if !creates {
        return is_full(directory).then(|| {
            let text = format!("the file system of {} is full: {}", directory.shown(), refused());
            Finding::fault("directory-full", text).mend(how_to_mend(Errno::ENOSPC, &directory.join("_")))
        });
    }
    let layer = &policy.layers()[known.first()?.layer];
    let creation = Creation {
        base: directory.to_owned(),
        file_mode: layer.create_mode(),
        directory_mode: layer.directory_mode(),
        ..Creation::default()
    };
    let error = as_ordinary_user(|| try_out(&creation))?.err()?;
    let text = format!("tried as an ordinary user: {error}: {}", refused());
    let mend = match error.errno() {
        Some(Errno::EACCES) => for_everybody(directory),
        Some(errno) => how_to_mend(errno, &directory.join("_")),
        None => error.advice().unwrap_or_else(|| command("ls -ld", directory)),
    };
    Some(Finding::fault("directory-unusable", text).mend(mend))
}

fn of_files(
    known: &Repository,
    files: &[ListedFile],
    policy: &Policy,
    examination: &Examination,
) -> Vec<Finding> {
    let layer = &policy.layers()[known.layer];
    if known.keeper() != Keeper::File || !layer.is_of_system() {
        return Vec::new();
    }
    let is_fixed = known.fixed_path(&examination.situation.runtime).is_some();
    let mut findings = Vec::new();
    let mut of_users: Vec<&Path> = Vec::new();
    for file in files {
        let Some(path) = file.path() else { continue };
        match (fs::symlink_metadata(path), file.survey()) {
            (Ok(_), Err(error)) => {
                let finding = Finding::fault("lock-file", error.to_string());
                findings.push(match error.advice() {
                    Some(advice) => finding.mend(advice),
                    None => finding,
                });
            }
            (Ok(status), Ok(_)) => {
                findings.extend(closed(path, layer.create_mode()));
                if status.uid() != 0 {
                    of_users.push(path);
                }
            }
            (Err(_), _) if is_fixed && path.parent().is_some_and(Path::is_dir) => {
                let text = format!(
                    "{} is not there yet: whoever is first will own it, and can remove it",
                    path.shown()
                );
                findings.push(Finding::warning("lock-file-missing", text).mend(INIT));
            }
            (Err(_), _) => {}
        }
    }
    findings.extend(owned_by_users(known, &of_users));
    findings
}

/// Users who cannot open a file that they need are refused.
fn closed(path: &Path, create_mode: u32) -> Option<Finding> {
    if create_mode & 0o006 != 0o006 {
        return None;
    }
    if let Some(barrier) = barrier(path, Want::ReadWrite) {
        // A fault of the directory is reported for the directory.
        return (barrier.path == path).then(|| {
            let text = format!("{}: launches of users who need it are refused (74)", barrier.text());
            Finding::fault("lock-file-closed", text).mend(barrier.mend())
        });
    }
    let base = path.parent().unwrap_or(path).to_owned();
    let creation = Creation { base, file_mode: create_mode, ..Creation::default() };
    let error = as_ordinary_user(|| try_to_open(path, &creation))?.err()?;
    let text = format!("tried as an ordinary user: {error}: launches of users who need it are refused (74)");
    let finding = Finding::fault("lock-file-closed", text);
    Some(match error.advice() {
        Some(advice) => finding.mend(advice),
        None => finding.mend(command("ls -l", path)),
    })
}

/// The owner of a lock file can remove it, even in a sticky directory. A file that counts one user is created
/// by that user.
fn owned_by_users(known: &Repository, files: &[&Path]) -> Option<Finding> {
    let first = files.first()?;
    let owner = fs::symlink_metadata(first).map(|status| accounts::shown(status.uid())).ok()?;
    if known.is_by_user() {
        let name = known.shown_name().shown();
        let text = format!(
            "each user owns the lock file of {name} that counts them, and can remove it, and with it the count"
        );
        let mend = format!("In the policy: [repository.{name}] keeper = \"agent\"");
        return Some(Finding::warning("lock-file-own", text).mend(mend));
    }
    let text = match files.len() {
        1 => format!("{} belongs to {owner}, who can remove it, and with it the count", first.shown()),
        count => format!(
            "{count} files of {} belong to users, who can remove them, and with them the count: {} to {owner}",
            known.shown_name().shown(),
            first.shown()
        ),
    };
    Some(Finding::warning("lock-file-owner", text).mend(INIT))
}
