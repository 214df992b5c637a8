//! `rungate init --repositories`: creates the directories and lock files of the system's policy, owned by
//! root, and the file that creates them again at boot. It can run again when the policy has changed. Correct
//! files are not changed. Files of other users get root as owner, and their holders keep their slots.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{
    judge::terms::{Creation, Keeper},
    keeper::{Before, file::prune},
    launch::Situation,
    policy::{Policy, Repository},
    sys::{
        Failure, InsecurePath, JudgedDirectories, Mount, Status, TrustedDirectory, accounts, errno_of,
        regular_file, replaced_file,
    },
    text::{Error, ExitStatus, Show, print, visible, word},
    tools::shared::{ListedFile, elsewhere, not_for_users, wanted},
};

/// The file that creates them at every boot. The package's own file, and that of a first policy, have another
/// name.
const TMPFILES: &str = "/etc/tmpfiles.d/rungate-repositories.conf";

/// Its first line.
const HEAD: &str = "# Written by: rungate init --repositories\n";

/// The bits of a directory in which all users can create files, and none can remove another's.
const COMMON: u32 = 0o1777;

/// The bit of a directory for a group: what is created in it gets its group.
const OF_GROUP: u32 = 0o2000;

/// The users of a directory.
#[derive(Default)]
struct Users {
    /// Whether they create files in it themselves, because each has one.
    create_files: bool,
    /// Whether they are all users, and not only those of its group.
    are_all: bool,
}

impl Users {
    /// Whether its group, which is not root's, can do there what they do.
    fn have_group(&self, status: &Status) -> bool {
        let needed = if self.create_files { 0o030 } else { 0o010 };
        status.gid != 0 && status.mode & needed == needed
    }
}

/// The steps, and those that are done.
struct Making<'a> {
    situation: &'a Situation,
    policy: &'a Policy,
    is_dry_run: bool,
    /// A line for each thing.
    told: String,
    directories: BTreeMap<PathBuf, u32>,
    files: BTreeSet<(PathBuf, u32)>,
}

/// Creates what is missing, and prints it.
pub(super) fn run(is_dry_run: bool, situation: &Situation) -> Result<u8, Error> {
    if situation.credentials.uid != 0 {
        let text = "only root can create files of root";
        return Err(Error::new(ExitStatus::System, text)
            .advise("Repositories of your own policy are created when they are first used.".to_owned()));
    }
    let policy = situation.load_policy()?;
    let (told, directories, files) = (String::new(), BTreeMap::new(), BTreeSet::new());
    let mut making = Making { situation, policy: &policy, is_dry_run, told, directories, files };
    let is_of_system = |known: &&Repository| {
        known.keeper() == Keeper::File
            && policy.layers()[known.layer].is_of_system()
            && !known.base(&situation.runtime).starts_with(&situation.runtime)
    };
    let repositories: Vec<&Repository> = policy.repositories().iter().filter(is_of_system).collect();
    let mut directories: BTreeMap<PathBuf, Users> = BTreeMap::new();
    for known in &repositories {
        for directory in known.directories(&situation.runtime) {
            let users = directories.entry(directory).or_default();
            users.create_files |= known.fixed_path(&situation.runtime).is_none();
            users.are_all |= policy.layers()[known.layer].is_for_all();
        }
    }
    // One above others comes before them.
    for (directory, users) in &directories {
        making.directory(directory, users)?;
    }
    for known in repositories {
        making.repository(known)?;
    }
    making.tmpfiles()?;
    let nothing = "Nothing to create: all of it exists and belongs to root.\n";
    print(if making.told.is_empty() { nothing } else { &making.told })
}

impl Making<'_> {
    fn repository(&mut self, known: &Repository) -> Result<(), Error> {
        let fixed = known.fixed_path(&self.situation.runtime);
        let base = known.base(&self.situation.runtime);
        let layer = &self.policy.layers()[known.layer];
        let creation = Creation {
            base,
            file_mode: layer.create_mode(),
            directory_mode: layer.directory_mode(),
            ..Creation::default()
        };
        for file in self.files_of(known)? {
            self.file(&file, &creation)?;
        }
        self.files.extend(fixed.map(|path| (path, creation.file_mode)));
        Ok(())
    }

    /// The file of a repository, or the existing files of its members. Files for one user belong to that
    /// user.
    fn files_of(&self, known: &Repository) -> Result<Vec<ListedFile>, Error> {
        if known.is_by_user() {
            return Ok(Vec::new());
        }
        let found = wanted(self.policy, self.situation, &[known.shown_name().into()])?;
        Ok(found.into_iter().flat_map(|repository| repository.files).collect())
    }

    fn file(&mut self, file: &ListedFile, creation: &Creation) -> Result<(), Error> {
        let Some(place) = file.place() else { return Ok(()) };
        let before = if self.is_dry_run {
            prune::look(&place, creation.file_mode)
        } else {
            prune::make_roots(&place, creation)
        };
        let before = before
            .map_err(|error| Error::new(ExitStatus::Repository, error.to_string()).advise(error.advice()))?;
        let (path, mode) = (place.path.shown(), creation.file_mode);
        match before {
            Before::Same => {}
            Before::Missing => self.tell("make", "made", &format!("{path} (mode {mode:04o})")),
            Before::Other { uid, gid, mode: old } => {
                let (new, was) = (accounts::shown(0), accounts::shown(uid));
                let mut what = format!("{path}: {new}, mode {mode:04o}; it was {was}, mode {old:04o}");
                if (uid, old) == (0, mode) {
                    what = format!("{path}: the group of its directory; it was group {gid}");
                }
                self.tell("change", "changed", &what);
            }
        }
        Ok(())
    }

    /// A directory for lock files. An existing one keeps its mode, unless it gives users too few or too many
    /// permissions. In one that is not for lock files alone, users get none, and another owner keeps it.
    fn directory(&mut self, path: &Path, users: &Users) -> Result<(), Error> {
        let is_below = path.ancestors().skip(1).any(|above| self.directories.contains_key(above));
        let judged = JudgedDirectories::for_caller(0);
        let distrusted = |distrust: InsecurePath| distrusted(path, &distrust);
        let opened = match TrustedDirectory::open_to_change(path, &judged) {
            // The one above it may be distrusted as it is now.
            Err(_) if self.is_dry_run && is_below && !self.told.is_empty() => return Ok(()),
            opened => opened.map_err(distrusted)?,
        };
        let status_of = |directory| {
            let status = regular_file::status(&directory);
            status
                .map(|status| (status, directory))
                .map_err(|errno| failed(path, &Failure { call: "fstat", errno }))
        };
        let before = opened.map(status_of).transpose()?;
        let new = if users.are_all { COMMON } else { COMMON | OF_GROUP };
        let mode = before.as_ref().map_or(new, |(status, _)| right_mode(status, users));
        if let Some((status, _)) = &before
            && (status.uid != 0 || mode & !status.mode & 0o002 != 0)
            && let Some(reason) = not_for_users(path, self.policy, &self.situation.runtime)
        {
            let shown = path.shown();
            let text = match status.uid {
                0 => format!("users must not create files in {shown}: {reason}"),
                uid => format!("{shown} stays with its owner, {}: {reason}", accounts::shown(uid)),
            };
            return Err(Error::new(ExitStatus::Repository, text)
                .advise(format!("What was created before stays.\n{}", elsewhere(path))));
        }
        let has_group = before.as_ref().map_or(is_below, |(status, _)| users.have_group(status));
        self.directories.insert(path.to_owned(), mode);
        let shown = path.shown();
        match before {
            _ if !users.are_all && !has_group => {
                let text = match before {
                    None => format!("{shown} does not exist, and it is not known for which group it is"),
                    Some(_) => format!("{shown} has no group that can use it"),
                };
                let make = format!("install -d -m 3770 -g GROUP {}", word(path));
                return Err(Error::new(ExitStatus::Repository, text)
                    .advise(format!("Name the group, then run the same command again: {make}")));
            }
            None => {
                if !self.is_dry_run {
                    TrustedDirectory::create(path, COMMON, &judged).map_err(distrusted)?;
                }
                self.tell("make", "made", &format!("{shown}/ (mode {mode:04o})"));
            }
            Some((status, directory)) if status.uid != 0 || status.mode != mode => {
                if !self.is_dry_run {
                    regular_file::give_to_root(&directory, mode, status.gid)
                        .map_err(|failure| failed(path, &failure))?;
                }
                let (new, was) = (accounts::shown(0), accounts::shown(status.uid));
                let what =
                    format!("{shown}/: {new}, mode {mode:04o}; it was {was}, mode {:04o}", status.mode);
                self.tell("change", "changed", &what);
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// systemd-tmpfiles(8) creates those again that the next boot removes.
    fn tmpfiles(&mut self) -> Result<(), Error> {
        let directories = self.directories.iter().filter(|(path, _)| Mount::is_gone_at_boot(path));
        let files = self.files.iter().filter(|(path, _)| Mount::is_gone_at_boot(path));
        let line = |kind: char, path: &Path, mode: u32| {
            format!("{kind} {} {mode:04o} root {} -\n", field(path), group(path, mode))
        };
        let lines = directories.map(|(path, mode)| line('d', path, *mode));
        let files = files.map(|(path, mode)| line('f', path, *mode));
        let lines: String = lines.chain(files).collect();
        if lines.is_empty() {
            return self.no_tmpfiles();
        }
        let text = format!("{HEAD}{lines}");
        if fs::read_to_string(TMPFILES).is_ok_and(|known| known == text) {
            return Ok(());
        }
        if !self.is_dry_run {
            let path = Path::new(TMPFILES);
            fs::create_dir_all(path.parent().unwrap_or(path))
                .map_err(|error| failed(path, &Failure { call: "mkdir", errno: errno_of(&error) }))?;
            replaced_file::replace(path, text.as_bytes(), 0o644).map_err(|failure| failed(path, &failure))?;
        }
        self.tell("write", "wrote", TMPFILES);
        Ok(())
    }

    /// An earlier policy may have needed some.
    fn no_tmpfiles(&mut self) -> Result<(), Error> {
        if !fs::read_to_string(TMPFILES).is_ok_and(|text| text.starts_with(HEAD)) {
            return Ok(());
        }
        if !self.is_dry_run {
            fs::remove_file(TMPFILES).map_err(|error| {
                failed(Path::new(TMPFILES), &Failure { call: "unlink", errno: errno_of(&error) })
            })?;
        }
        self.tell("remove", "removed", TMPFILES);
        Ok(())
    }

    fn tell(&mut self, to_do: &str, done: &str, what: &str) {
        let verb = if self.is_dry_run { format!("would {to_do}") } else { done.to_owned() };
        self.told += &format!("{verb} {what}\n");
    }
}

/// The right mode of a directory.
fn right_mode(status: &Status, users: &Users) -> u32 {
    let sticky = if status.mode & 0o022 == 0 { 0 } else { 0o1000 };
    if !users.are_all {
        status.mode | OF_GROUP | sticky
    } else if users.create_files || status.mode & 0o001 == 0 {
        COMMON
    } else {
        status.mode | sticky
    }
}

/// The group that a boot gives to it.
fn group(path: &Path, mode: u32) -> String {
    let gid = fs::metadata(path).map_or(0, |status| status.gid());
    if gid != 0 && regular_file::is_for_group(mode) { gid.to_string() } else { "root".to_owned() }
}

/// A path as tmpfiles.d(5) reads it, which has specifiers, and blanks between its fields.
fn field(path: &Path) -> String {
    let text = visible(path).replace('%', "%%");
    if text.contains([' ', '"', '\\']) {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        text
    }
}

/// Another user could put a link to any directory of the system in its place.
fn distrusted(path: &Path, distrust: &InsecurePath) -> Error {
    let reason = if distrust.path == path { distrust.reason.to_string() } else { distrust.to_string() };
    not_roots(ExitStatus::Repository, path, &reason)
}

fn failed(path: &Path, failure: &Failure) -> Error {
    not_roots(ExitStatus::System, path, &failure.to_string())
}

fn not_roots(status: ExitStatus, path: &Path, why: &str) -> Error {
    Error::new(status, format!("{} cannot be given to root: {why}", path.shown()))
        .advise("What was created before stays. Correct this, then run the same command again.".to_owned())
}
