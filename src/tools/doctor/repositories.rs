//! Directories and lock files: whether they exist, who owns them, and on what file system. A user who owns a
//! lock file in a directory for all users can remove it, and then its holders are forgotten.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    sync::mpsc::channel,
    thread,
    time::Duration,
};

use super::{Context, Finding, Health, Section, finding::command};
use crate::{
    cli::Topic,
    judge::terms::{Creation, Keeper},
    keeper::file::prune::{try_out, try_to_open},
    policy::{Policy, Repository},
    sys::{
        Errno, Mount, access, accounts, as_ordinary_user, errno_of, is_full,
        mount::{may_hide_processes, sees_others},
        record_lock,
    },
    text::Show,
    tools::shared::{ListedFile, elsewhere, not_for_users, repositories},
};

/// The command that creates directories and lock files as the policy requires.
pub(super) const INIT: &str = "rungate init --repositories";

/// The bits of a directory in which all users can create files, and none can remove another's.
const COMMON: u32 = 0o1777;

pub(super) fn look(examination: &Context) -> Section {
    let Some(policy) = examination.policy() else {
        return Section::without_policy(Topic::Repositories);
    };
    let mut findings = Vec::new();
    let directories = directories(policy, examination);
    for (directory, known) in &directories {
        findings.extend(of_directory(directory, known, policy, &examination.situation.runtime));
        findings.extend(of(directory));
    }
    for (directory, known) in &below(policy, examination) {
        findings.extend(of_directory(directory, known, policy, &examination.situation.runtime));
    }
    if let Ok(all) = repositories::wanted(policy, &examination.situation, &[]) {
        for (known, files) in policy.repositories().iter().zip(all) {
            findings.extend(of_files(known, &files.files, policy, examination));
            findings.extend(of_use_outside(known, &files.files));
            findings.extend(hidden_from_measuring(known));
        }
    }
    let names: Vec<String> = directories.keys().map(|path| path.shown().to_string()).collect();
    let summary = match names.as_slice() {
        [] => "none in lock files".to_owned(),
        names => format!("in {}", names.join(", ")),
    };
    Section::new(Topic::Repositories, summary, findings)
}

/// The directories that must exist before any launch, each with the repositories in it.
fn directories<'p>(policy: &'p Policy, examination: &Context) -> BTreeMap<PathBuf, Vec<&'p Repository>> {
    let runtime = &examination.situation.runtime;
    with_repositories(policy, runtime, |known| vec![known.base(runtime)])
}

/// Those below them that exist. The first launch creates one that is missing.
fn below<'p>(policy: &'p Policy, examination: &Context) -> BTreeMap<PathBuf, Vec<&'p Repository>> {
    let runtime = &examination.situation.runtime;
    let mut below = with_repositories(policy, runtime, |known| known.directories(runtime).split_off(1));
    below.retain(|directory, _| directory.exists());
    below
}

fn with_repositories<'p>(
    policy: &'p Policy,
    runtime: &Path,
    directories_of: impl Fn(&Repository) -> Vec<PathBuf>,
) -> BTreeMap<PathBuf, Vec<&'p Repository>> {
    let mut directories: BTreeMap<PathBuf, Vec<&Repository>> = BTreeMap::new();
    for known in policy.repositories().iter().filter(|known| known.keeper() == Keeper::File) {
        for directory in directories_of(known).into_iter().filter(|path| !path.starts_with(runtime)) {
            directories.entry(directory).or_default().push(known);
        }
    }
    directories
}

/// Directories that do not exist.
pub(super) fn missing(examination: &Context) -> Vec<Finding> {
    let Some(policy) = examination.policy() else { return Vec::new() };
    let directories = directories(policy, examination);
    let gone = directories.iter().filter(|(directory, _)| fs::metadata(directory).is_err());
    gone.flat_map(|(directory, known)| of_directory(directory, known, policy, &examination.situation.runtime))
        .collect()
}

/// Directories on NFS whose locks do not hold for other hosts.
pub(super) fn on_nfs(examination: &Context) -> Vec<Finding> {
    let Some(policy) = examination.policy() else { return Vec::new() };
    directories(policy, examination).keys().filter_map(|directory| of_network(directory)).collect()
}

fn of_directory(directory: &Path, known: &[&Repository], policy: &Policy, runtime: &Path) -> Vec<Finding> {
    let shown = directory.shown();
    let is_of_system = known.iter().any(|known| policy.layers()[known.layer].is_of_system());
    let status = match fs::metadata(directory) {
        Ok(status) => status,
        Err(error) => {
            let errno = errno_of(&error);
            let above = directory.parent().unwrap_or(directory);
            let fix = match errno {
                _ if is_of_system => INIT.to_owned(),
                // The first launch creates it.
                Errno::ENOENT => match access(above, 0o3) {
                    Ok(()) => return Vec::new(),
                    Err(Errno::ENOENT) => command("mkdir -p", directory),
                    Err(errno) => how_to_mend(errno, above),
                },
                errno => how_to_mend(errno, directory),
            };
            let why = errno.desc();
            let text = format!("{shown}: {why}: launches that need {} are refused (74)", names_of(known));
            return vec![Finding::fault("directory-missing", text).fix(fix)];
        }
    };
    if !status.is_dir() {
        let text = format!("{shown} is no directory: launches that need a repository in it are refused (74)");
        return vec![Finding::fault("directory-missing", text).fix(command("ls -ld", directory))];
    }
    if !is_of_system {
        return Vec::new();
    }
    let is_taken = || not_for_users(directory, policy, runtime).is_some();
    let mut findings = of_system_directory(directory, status.uid(), status.mode() & 0o7777, is_taken);
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

/// A directory of the system's, in which users have lock files. One that other programs use keeps its owner.
fn of_system_directory(directory: &Path, owner: u32, mode: u32, is_taken: impl Fn() -> bool) -> Vec<Finding> {
    let shown = directory.shown();
    let mut findings = Vec::new();
    if owner != 0 {
        let text =
            format!("{shown} belongs to {}, who can remove every lock file in it", accounts::shown(owner));
        let fix = if is_taken() { elsewhere(directory) } else { command("chown -h root", directory) };
        findings.push(Finding::warning("directory-owner", text).fix(fix));
    }
    if lets_others_remove(mode) {
        let text = format!("{shown} has mode {mode:04o}: {OTHERS_REMOVE}");
        findings.push(Finding::fault("directory-mode", text).fix(command("chmod +t", directory)));
    }
    findings
}

pub(super) const OTHERS_REMOVE: &str = "everyone who can write to it can remove the lock files of others";

/// Whether users who can write to a directory can remove files of others.
pub(super) fn lets_others_remove(mode: u32) -> bool {
    mode & 0o022 != 0 && mode & 0o1000 == 0
}

/// How the users of a directory get the lock files that are missing. Where only fixed files are missing, root
/// creates them, and users need not write to the directory if they can reach what is in it.
fn for_everybody(directory: &Path, known: &[&Repository], policy: &Policy, runtime: &Path) -> String {
    let are_fixed = known.iter().all(|known| known.fixed_path(runtime).is_some());
    let is_changed =
        || fs::metadata(directory).is_ok_and(|status| status.uid() != 0 || status.mode() & 1 == 0);
    match not_for_users(directory, policy, runtime) {
        Some(_) if !are_fixed || is_changed() => elsewhere(directory),
        _ if are_fixed => INIT.to_owned(),
        _ => command(&format!("chmod {COMMON:o}"), directory),
    }
}

/// Does in a directory what a launch of an ordinary user does there, unless it is for a group alone.
fn tried(directory: &Path, known: &[&Repository], policy: &Policy, runtime: &Path) -> Option<Finding> {
    if !known.iter().any(|known| policy.layers()[known.layer].is_for_all()) {
        return None;
    }
    let refused = || format!("launches that need {} are refused (74)", names_of(known));
    let paths: Vec<Option<PathBuf>> = known.iter().map(|known| known.fixed_path(runtime)).collect();
    let is_there = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.exists());
    let creates = !paths.iter().all(is_there);
    if let Some(barrier) = barrier(directory, Want::Execute) {
        let text = format!("{}: users cannot reach the lock files in it: {}", barrier.text(), refused());
        let is_own = creates && barrier.path == directory;
        let fix = if is_own { for_everybody(directory, known, policy, runtime) } else { barrier.fix() };
        return Some(Finding::fault("directory-closed", text).fix(fix));
    }
    if !creates {
        return is_full(directory).then(|| {
            let text = format!("the file system of {} is full: {}", directory.shown(), refused());
            Finding::fault("directory-full", text).fix(how_to_mend(Errno::ENOSPC, &directory.join("_")))
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
    let fix = match error.errno() {
        Some(Errno::EACCES) => for_everybody(directory, known, policy, runtime),
        Some(errno) => how_to_mend(errno, &directory.join("_")),
        None => error.advice().unwrap_or_else(|| command("ls -ld", directory)),
    };
    Some(Finding::fault("directory-unusable", text).fix(fix))
}

/// The samples of use that rungate did not start, and the programs that they name.
fn of_use_outside(known: &Repository, files: &[ListedFile]) -> Vec<Finding> {
    let name = known.shown_name().shown();
    // All members have one sample.
    let Some((file, outside)) = files.iter().find_map(|file| Some((file, file.outside()?))) else {
        return Vec::new();
    };
    match outside {
        Ok(outside) => {
            let age = outside.age.as_secs();
            let fine = Finding::fine("outside", format!("{name}: use outside was measured {age} s ago"));
            let past = outside.programs.iter().map(|program| {
                let (user, command) = (program.user.shown(), program.command.as_deref().unwrap_or_default());
                let pid = program.pid.unwrap_or_default();
                let text = format!("{name}: {} (PID {pid}) of {user} runs without a slot", command.shown());
                Finding::warning("past-rungate", text).fix("rungate shim list")
            });
            std::iter::once(fine).chain(past).collect()
        }
        Err(unknown) => {
            let text = format!("{name}: {unknown}");
            let (health, effect) = if file.needs_sample() {
                (Health::Fault, "launches are refused (74)")
            } else {
                (Health::Warning, "nothing counts as used outside")
            };
            let finding = Finding { health, ..Finding::fine("outside-unknown", format!("{text}: {effect}")) };
            // One that runs may be of an older version.
            let start =
                "systemctl enable rungate-measure.service && systemctl restart rungate-measure.service";
            vec![finding.fix("rungate measure").fix(start)]
        }
    }
}

/// The command `processes` runs as an ordinary user for root, and then sees none of those that it should
/// count.
fn hidden_from_measuring(known: &Repository) -> Option<Finding> {
    let of = known.outside.as_ref()?;
    let is_processes = |word: &String| {
        word == "--processes" || Path::new(word).file_name().is_some_and(|name| name == "processes")
    };
    let is_hidden = of.command.iter().any(is_processes)
        && may_hide_processes()
        && as_ordinary_user(sees_others) == Some(false);
    is_hidden.then(|| {
        let text = format!(
            "{}: /proc hides the processes of other users (hidepid) from the command that counts them: nothing \
                is measured",
            known.shown_name().shown()
        );
        Finding::fault("processes-hidden", text).fix("mount -o remount,hidepid=0 /proc")
    })
}

fn of_files(
    known: &Repository,
    files: &[ListedFile],
    policy: &Policy,
    examination: &Context,
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
                    Some(advice) => finding.fix(advice),
                    None => finding,
                });
            }
            (Ok(status), Ok(_)) => {
                findings.extend(closed(path, layer.create_mode()));
                let group = path.parent().and_then(|above| fs::metadata(above).ok()).map(|above| above.gid());
                let is_of_group = !layer.is_for_all() && !known.is_by_user();
                if is_of_group && group.is_some_and(|group| group != status.gid()) {
                    let text = format!(
                        "{} has another group than its directory: launches of that group are refused (74)",
                        path.shown()
                    );
                    findings.push(Finding::fault("lock-file-closed", text).fix(INIT));
                }
                if status.uid() != 0 {
                    of_users.push(path);
                }
            }
            (Err(_), _) if is_fixed && path.parent().is_some_and(Path::is_dir) => {
                let text = format!(
                    "{} does not exist yet: its first user will own it, and can remove it",
                    path.shown()
                );
                findings.push(Finding::warning("lock-file-missing", text).fix(INIT));
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
            Finding::fault("lock-file-closed", text).fix(barrier.fix())
        });
    }
    let base = path.parent().unwrap_or(path).to_owned();
    let creation = Creation { base, file_mode: create_mode, ..Creation::default() };
    let error = as_ordinary_user(|| try_to_open(path, &creation))?.err()?;
    let text = format!("tried as an ordinary user: {error}: launches of users who need it are refused (74)");
    let finding = Finding::fault("lock-file-closed", text);
    Some(match error.advice() {
        Some(advice) => finding.fix(advice),
        None => finding.fix(command("ls -l", path)),
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
        let fix = format!("In the policy: [repository.{name}] keeper = \"agent\"");
        return Some(Finding::warning("lock-file-own", text).fix(fix));
    }
    let text = match files.len() {
        1 => format!("{} belongs to {owner}, who can remove it, and with it the count", first.shown()),
        count => format!(
            "{count} files of {} belong to users, who can remove them, and with them the count: {} to {owner}",
            known.shown_name().shown(),
            first.shown()
        ),
    };
    Some(Finding::warning("lock-file-owner", text).fix(INIT))
}

// The file system of a directory of repositories: whether the kernel keeps locks there, and for whom.

/// File systems of one host that keep locks.
const LOCAL: [&str; 10] =
    ["ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "bcachefs", "reiserfs"];

/// File systems for several hosts whose locks hold in the whole cluster, if mounted accordingly.
const CLUSTER: [&str; 6] = ["gpfs", "lustre", "ceph", "gfs2", "ocfs2", "beegfs"];

/// The files by which a container is recognized.
const CONTAINER: [&str; 3] = ["/.dockerenv", "/run/.containerenv", "/run/host/container-manager"];

/// How long the lock service of a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The finding on the file system of a directory; none if it does not exist.
pub(super) fn of(directory: &Path) -> Option<Finding> {
    let mount = Mount::of(directory)?;
    let shown = format!("{} is on {}", directory.shown(), mount.kind.shown());
    Some(match mount.kind.as_str() {
        _ if is_nfs(&mount) => of_nfs(&mount, directory, &shown),
        "tmpfs" | "ramfs" => within(&mount, directory, &format!("{shown}: one host's, until its next boot")),
        "overlay" | "aufs" => of_overlay(&shown),
        kind if LOCAL.contains(&kind) => within(&mount, directory, &format!("{shown}: one host's")),
        kind if CLUSTER.contains(&kind) => Finding::note(
            "file-system",
            format!("{shown}: limits hold for all hosts if its locks do, which a mount option may have turned off"),
        )
        .fix("On two hosts: rungate run --repository FILE --limit 1 -- sleep 60; one of the two must be refused."),
        kind if kind == "proc" || kind == "sysfs" || kind == "vfat" || kind == "exfat" => {
            Finding::fault("file-system", format!("{shown}, which has no owners or modes"))
                .fix("In the policy, name a directory elsewhere: [defaults] directory = \"/run/rungate\"")
        }
        _ => Finding::warning("file-system", format!("{shown}: it is not known whether its locks hold for \
            other hosts"))
            .fix("Twice at once: rungate run --repository FILE --limit 1 -- sleep 60; one of the two must be refused."),
    })
}

/// The same for NFS.
pub(super) fn of_network(directory: &Path) -> Option<Finding> {
    Mount::of(directory).filter(is_nfs).and_then(|_| of(directory))
}

fn is_nfs(mount: &Mount) -> bool {
    mount.kind == "nfs" || mount.kind == "nfs4"
}

/// Locks of NFS go to the server, unless the mount keeps them on the host. Before version 4 they are a
/// separate service.
fn of_nfs(mount: &Mount, directory: &Path, shown: &str) -> Finding {
    let point = mount.point.shown();
    if ["nolock", "local_lock=all", "local_lock=posix"].iter().any(|option| mount.has(option)) {
        let text = format!("{shown} with locks that stay on this host: each host counts for itself");
        return Finding::warning("file-system", text)
            .fix(format!("Mount {point} without nolock and local_lock, best as NFS 4."));
    }
    if !are_locks_answered(directory) {
        let text = format!("{shown}, whose server does not answer lock requests: launches hang");
        return Finding::fault("file-system", text)
            .fix("On the server: rpcinfo -p | grep nlockmgr; NFS 4 does not need this service.");
    }
    Finding::fine("file-system", format!("{shown}: limits hold for all hosts that mount it"))
}

/// Whether the server answers a query about a lock of some file in it. A query to a server that does not
/// answer hangs, so a separate thread makes it, which may be abandoned.
fn are_locks_answered(directory: &Path) -> bool {
    let files = directory.read_dir().into_iter().flatten().flatten();
    let file = files
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .find_map(|entry| File::options().read(true).write(true).open(entry.path()).ok());
    let Some(file) = file else { return true };
    let (sender, answer) = channel();
    thread::spawn(move || {
        let _ = sender.send(record_lock::conflict_with_process(file.as_fd(), &(0..=0)).is_ok());
    });
    answer.recv_timeout(PATIENCE).unwrap_or(false)
}

fn of_overlay(shown: &str) -> Finding {
    let text = format!(
        "{shown}, which belongs to this container: the host and other containers do not count with it"
    );
    Finding::warning("file-system", text)
        .fix("Mount the host's directory into the container: docker run -v /run/rungate:/run/rungate …")
}

/// Whether this is a container, according to its files.
pub(super) fn is_container() -> bool {
    CONTAINER.iter().any(|mark| Path::new(mark).exists())
}

/// A directory in a container belongs to the container or is mounted into it.
fn within(mount: &Mount, directory: &Path, text: &str) -> Finding {
    if !is_container() {
        return Finding::fine("file-system", text);
    }
    if mount.root == "/" {
        let own =
            format!("{} belongs to this container: launches outside of it do not count", directory.shown());
        return Finding::note("file-system", own).fix(
            "To share it, mount the host's into the container: docker run -v \
                /run/rungate:/run/rungate …",
        );
    }
    Finding::note(
        "file-system",
        format!(
            "{} is mounted into this container ({}): holders outside of it count, but are not visible",
            directory.shown(),
            mount.root.shown()
        ),
    )
}

// The barriers between ordinary users and a file, directory by directory.

/// The access that users need to a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Want {
    Read,
    Execute,
    /// To append to it, without reading.
    Write,
    /// To lock it, and write a record.
    ReadWrite,
}

impl Want {
    /// The letters of chmod, and their bits for others.
    fn letters(self) -> (&'static str, u32) {
        match self {
            Self::Read => ("r", 0o4),
            Self::Execute => ("x", 0o1),
            Self::Write => ("w", 0o2),
            Self::ReadWrite => ("rw", 0o6),
        }
    }
}

/// The barrier between users and a file: itself, or a directory above it.
#[derive(Debug)]
pub(super) struct Barrier {
    pub(super) path: PathBuf,
    mode: u32,
    letters: &'static str,
    /// Whether the permission bits are the reason.
    is_by_mode: bool,
    errno: Errno,
}

impl Barrier {
    /// `/etc/rungate has mode 0750`
    pub(super) fn text(&self) -> String {
        let path = self.path.shown();
        if self.is_by_mode {
            return format!("{path} has mode {:04o}", self.mode);
        }
        format!("{path}: {}", self.errno.desc())
    }

    pub(super) fn fix(&self) -> String {
        if self.is_by_mode {
            return command(&format!("chmod o+{}", self.letters), &self.path);
        }
        how_to_mend(self.errno, &self.path)
    }
}

/// The command that shows or removes the reason of a failed call on a file.
pub(super) fn how_to_mend(errno: Errno, path: &Path) -> String {
    match errno {
        Errno::ENOSPC | Errno::EDQUOT => {
            format!("Make room: {}", command("df -h", path.parent().unwrap_or(path)))
        }
        Errno::EROFS => command("findmnt -T", path),
        _ => command("getfacl", path),
    }
}

/// The first barrier between ordinary users and an existing file, found by trying as one of them.
pub(super) fn barrier(path: &Path, want: Want) -> Option<Barrier> {
    let path = path.canonicalize().ok()?;
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    let directories = above.into_iter().rev().map(|directory| (directory, ("x", 0o1)));
    let mut steps = directories.chain([(path.as_path(), want.letters())]);
    let tried = || steps.find_map(|(path, wanted)| Some((path, wanted, access(path, wanted.1).err()?)));
    let (path, (letters, bits), errno) = as_ordinary_user(tried)??;
    let mode = fs::metadata(path).ok()?.mode() & 0o7777;
    let is_by_mode = errno == Errno::EACCES && mode & bits != bits;
    Some(Barrier { path: path.to_owned(), mode, letters, is_by_mode, errno })
}
