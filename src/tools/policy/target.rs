//! A file of a policy to edit or to put in place: its location, its present text, and its owner.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    rc::Rc,
};

use crate::{
    launch::Situation,
    policy::{Proposal, SYSTEM_POLICY, Sources, is_drop_in},
    sys::{
        Attributes, Before, EditLock, Errno, InsecurePath, JudgedDirectories, NoLock, Process,
        TrustedDirectory, TrustedFile, accounts, owner, regular_file,
    },
    text::{Error, ExitStatus, Show, stream, visible},
};

/// The mode of a new file, which every launch reads.
const NEW: Attributes = Attributes { before: None, mode: 0o644 };

/// One file of a policy.
pub(super) struct Target {
    /// Where it is.
    pub(super) location: Location,
    /// The present text, which need not be UTF-8; none if there is no file.
    pub(super) before: Option<Vec<u8>>,
    /// The present attributes; those of a new file if there is none.
    present: Attributes,
    /// Those that it gets with its new text.
    attributes: Attributes,
}

impl Target {
    /// The file of this path.
    pub(super) fn of_path(path: &Path, situation: &Situation) -> Result<Self, Error> {
        Self::at(Location::of_path(path, situation)?)
    }

    /// The file at a place.
    pub(super) fn at(location: Location) -> Result<Self, Error> {
        let (before, attributes) = match &location.directory {
            Some(directory) => read(directory, &location.name, &location.path)?,
            None => (None, NEW),
        };
        Ok(Self { location, before, present: attributes.clone(), attributes })
    }

    /// The same; the file gets these attributes with its new text.
    pub(super) fn with(self, attributes: Attributes) -> Self {
        Self { attributes, ..self }
    }

    /// Where the policy names it.
    pub(super) fn path(&self) -> &Path {
        &self.location.path
    }

    /// The file with this text.
    pub(super) fn proposal(&self, text: String) -> Proposal {
        Proposal { path: self.path().to_owned(), text: Some(text) }
    }

    /// Whether it was changed since it was read, or its path now leads to another file.
    pub(super) fn has_changed(&self, situation: &Situation) -> Result<bool, Error> {
        let now = Self::of_path(self.path(), situation)?;
        let is_same = now.location.is_same_as(&self.location);
        Ok(!is_same || now.before != self.before || now.present != self.present)
    }

    /// Puts the text in place as a part of these proposals.
    pub(super) fn put(&self, text: &str, proposals: &[Proposal], situation: &Situation) -> Result<(), Error> {
        let (directory, name) = (self.location.directory(situation)?, &self.location.name);
        let may_keep = self.may_belong_to(owner_of(&self.attributes), proposals)?;
        let attributes = if may_keep { &self.attributes } else { &NEW };
        directory.place(name, text.as_bytes(), attributes).map_err(|failure| {
            let text = format!("{} cannot be put in place: {failure}", visible(self.path()));
            Error::new(ExitStatus::System, text)
        })
    }
}

impl Target {
    /// Whether the policy with these proposals distrusts the present owner. That is not known if a look-up
    /// fails.
    pub(super) fn is_distrusted(&self, proposals: &[Proposal]) -> bool {
        self.may_belong_to(owner_of(&self.present), proposals).is_ok_and(|may_belong| !may_belong)
    }

    /// Whether the policy with these proposals trusts this owner. If not, root's new text is root's.
    fn may_belong_to(&self, owner: u32, proposals: &[Proposal]) -> Result<bool, Error> {
        let Location { sources, .. } = &self.location;
        let is_of_system = sources.given.is_none() && sources.own.is_none();
        if !is_of_system || accounts::own_uid() != 0 {
            return Ok(true);
        }
        self.location.may_belong_to(owner, proposals)
    }
}

fn owner_of(attributes: &Attributes) -> u32 {
    attributes.before.as_ref().map_or(0, |before| before.uid)
}

/// The text under a name and its owner; the owner of the delegation may also own it.
pub(super) fn read(
    directory: &TrustedDirectory,
    name: &OsStr,
    path: &Path,
) -> Result<(Option<Vec<u8>>, Attributes), Error> {
    let owner = regular_file::status_of_path(&directory.path().join(name)).map_or(0, |status| status.uid);
    read_of(directory, name, path, owner)
}

/// The same; besides root and the caller, only this user may own it.
pub(super) fn read_of(
    directory: &TrustedDirectory,
    name: &OsStr,
    path: &Path,
    owner: u32,
) -> Result<(Option<Vec<u8>>, Attributes), Error> {
    let distrusted = |distrust: InsecurePath| distrusted(path, &distrust);
    let Some(mut file) = directory.file_of(name, owner).map_err(distrusted)? else { return Ok((None, NEW)) };
    let extended = file.extended_attributes().map_err(|failure| unkept(path, &failure.to_string()))?;
    if extended.is_signed() {
        return Err(unkept(path, "it has a signature, which would not match other content"));
    }
    let before = Before { uid: file.owner(), gid: file.group(), extended };
    // No policy is executed, and a copy is root's: a user's setuid bit on it would be root's too.
    let attributes = Attributes { before: Some(before), mode: file.mode() & 0o666 };
    Ok((Some(file.read().map_err(distrusted)?), attributes))
}

fn unkept(path: &Path, why: &str) -> Error {
    let text = format!("{} cannot be replaced: {why}", visible(path));
    Error::new(ExitStatus::System, text)
        .advise("Change it where it is, and then: rungate policy check".to_owned())
}

// Removes a drop-in: the file, or the link, even if the policy does not trust it.

/// Distinguishes it from a later file.
type State = (u64, u64, i64, i64);

/// A drop-in to remove.
pub(super) struct Removal {
    pub(super) location: Location,
    before: Option<State>,
}

impl Removal {
    /// The location of the system's drop-in with this name.
    pub(super) fn of(name: &OsStr, situation: &Situation) -> Result<Self, Error> {
        if situation.credentials.uid != 0 {
            let text = "only root can remove a drop-in of the system";
            return Err(Error::new(ExitStatus::System, text)
                .advise("Your own policy is one file: remove it with rm.".to_owned()));
        }
        let directory = Sources::system(0).drop_ins();
        if !names(&directory).iter().any(|known| known == name) {
            if Some(name) == Path::new(SYSTEM_POLICY).file_name() {
                let text = format!("--remove takes the name of a drop-in; {SYSTEM_POLICY} is the main file");
                return Err(Error::new(ExitStatus::Usage, text)
                    .advise("A policy without a limit is a file with one line: version = 1".to_owned()));
            }
            return Err(unknown(name, &directory));
        }
        let location = Location::of_drop_in(name, situation)?;
        let before = state(&location.path);
        Ok(Self { location, before })
    }

    /// The policy without it.
    pub(super) fn proposal(&self) -> Proposal {
        Proposal { path: self.location.path.clone(), text: None }
    }

    /// Whether another file was put there since.
    pub(super) fn has_changed(&self) -> bool {
        state(&self.location.path) != self.before
    }

    /// Takes it away.
    pub(super) fn take_away(&self, situation: &Situation) -> Result<(), Error> {
        self.location.directory(situation)?.remove(&self.location.name).map_err(|failure| {
            let text = format!("{} cannot be removed: {failure}", self.location.path.shown());
            Error::new(ExitStatus::System, text)
        })
    }
}

/// A drop-in of the system that becomes a link to a text of a department.
pub(super) struct Link {
    pub(super) location: Location,
    before: Option<State>,
    to: PathBuf,
    /// The text of the department, and the owner of its file.
    pub(super) text: String,
    pub(super) owner: u32,
}

impl Link {
    /// The drop-in with this name as a link to this path; none if it is that already.
    pub(super) fn of(name: &OsStr, to: PathBuf, situation: &Situation) -> Result<Option<Self>, Error> {
        let location = Location::of_drop_in(name, situation)?;
        if fs::read_link(&location.path).is_ok_and(|present| present == to) {
            return Ok(None);
        }
        let path = location.directory(situation)?.path().join(&to);
        let unread = || {
            let text = format!("{} was a link to {}", location.path.shown(), path.shown());
            Error::new(ExitStatus::Policy, format!("{text}, where no policy is"))
        };
        let owner = regular_file::status_of_target(&path).map_err(|_| unread())?.uid;
        let distrusted = |distrust: InsecurePath| distrusted(&location.path, &distrust);
        let file = TrustedFile::open_of(&path, situation.credentials.uid, owner).map_err(distrusted)?;
        let bytes = file.ok_or_else(unread)?.read().map_err(distrusted)?;
        let text = String::from_utf8(bytes).map_err(|_| unread())?;
        let before = state(&location.path);
        Ok(Some(Self { location, before, to, text, owner }))
    }

    /// The policy with it.
    pub(super) fn proposal(&self) -> Proposal {
        Proposal { path: self.location.path.clone(), text: Some(self.text.clone()) }
    }

    /// Whether another file was put there since.
    pub(super) fn has_changed(&self) -> bool {
        state(&self.location.path) != self.before
    }

    /// Puts it in place.
    pub(super) fn put(&self, situation: &Situation) -> Result<(), Error> {
        let Location { name, path, .. } = &self.location;
        self.location.directory(situation)?.place_link(name, &self.to).map_err(|failure| {
            Error::new(ExitStatus::System, format!("{} cannot be put in place: {failure}", path.shown()))
        })
    }
}

fn state(path: &Path) -> Option<State> {
    let status = fs::symlink_metadata(path).ok()?;
    Some((status.dev(), status.ino(), status.ctime(), status.ctime_nsec()))
}

fn unknown(name: &OsStr, directory: &Path) -> Error {
    let text = format!("there is no drop-in {} in {}", visible(name), directory.shown());
    let there: Vec<String> = names(directory).iter().map(visible).collect();
    let advice = match there.as_slice() {
        [] => "There are no drop-ins.".to_owned(),
        there => format!("There are: {}", there.join(", ")),
    };
    Error::new(ExitStatus::Usage, text).advise(advice)
}

// Where a file of a policy is, and whose policy it belongs to. Its directory was checked, and a lock
// prevents other users from changing a file in it meanwhile.

/// Where a file of a policy is.
pub(super) struct Location {
    /// The path that the policy names.
    pub(super) path: PathBuf,
    /// The policy that it belongs to.
    pub(super) sources: Sources,
    /// The resolved path: its directory, which may be missing, and the name in it.
    above: PathBuf,
    directory: Option<Rc<TrustedDirectory>>,
    name: OsString,
}

impl Location {
    /// The location of the system's main file for root, and of their own policy for other users.
    pub(super) fn usual(situation: &Situation) -> Result<Self, Error> {
        if situation.credentials.uid == 0 {
            return Self::of_path(Path::new(SYSTEM_POLICY), situation);
        }
        Self::of_path(&situation.own_policy_to_write()?, situation)
    }

    /// The location of a file that is read and written: a link stays, and points to the new text. The file
    /// behind a link of the policy in force is that file of the policy.
    pub(super) fn of_path(path: &Path, situation: &Situation) -> Result<Self, Error> {
        let (sources, path) = place_of(&situation.directory.join(path), situation)?;
        if let Some(link) = link_to(&path, &sources, situation) {
            return Self::of_path(&link, situation);
        }
        let real = if is_link(&path) { end_of(&path, situation)? } else { path.clone() };
        if real.is_dir() {
            let text = format!("{} is a directory, not a policy", visible(&path));
            return Err(Error::new(ExitStatus::Usage, text)
                .advise("Name a file in it, or move it out of the way.".to_owned()));
        }
        Self::at(path, &real, sources, situation)
    }

    /// The location of a drop-in of the system itself, without following links.
    pub(super) fn of_drop_in(name: &OsStr, situation: &Situation) -> Result<Self, Error> {
        let sources = Sources::system(situation.credentials.uid);
        let path = sources.drop_ins().join(name);
        Self::at(path.clone(), &path, sources, situation)
    }

    fn at(path: PathBuf, real: &Path, sources: Sources, situation: &Situation) -> Result<Self, Error> {
        let (Some(above), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(Error::new(ExitStatus::Usage, format!("{} is no file", visible(&path))));
        };
        let directory = open(above, &path, situation)?;
        Ok(Self { path, sources, above: above.to_owned(), directory, name: name.to_owned() })
    }

    /// The directory for a change. That of the system's policy, or of the caller's own, is created if it is
    /// missing.
    fn directory(&self, situation: &Situation) -> Result<Rc<TrustedDirectory>, Error> {
        if let Some(directory) = &self.directory {
            return Ok(Rc::clone(directory));
        }
        make_directory(&self.path, &self.sources, situation)?;
        open(&self.above, &self.path, situation)?.ok_or_else(|| {
            Error::new(ExitStatus::System, format!("there is no directory {}", visible(&self.above)))
        })
    }

    /// Whether both are the same name in the same directory, which may have been created in between.
    fn is_same_as(&self, earlier: &Self) -> bool {
        let is_same = |before: &Rc<TrustedDirectory>| {
            let now = self.directory.as_ref();
            now.is_some_and(|now| now.stamp().is_of_same_file(&before.stamp()))
        };
        self.name == earlier.name && earlier.directory.as_ref().is_none_or(is_same)
    }

    /// Prevents other users from editing the same policy. All files of the system's have one lock, beside the
    /// place of the main file, also if that is a link. The owner of a delegated drop-in cannot take it there,
    /// and takes one beside the file itself.
    pub(super) fn lock(&self, situation: &Situation) -> Result<EditLock, Error> {
        let directory = self.directory(situation)?;
        let own = || EditLock::take(&directory, &self.name);
        let main = self.sources.system.as_path();
        let taken_lock = match (main.parent(), main.file_name()) {
            (Some(above), Some(name)) if self.is_drop_in() || self.path == main => {
                match open(above, main, situation)?.map(|opened| EditLock::take(&opened, name)) {
                    None => own(),
                    // Where no file can be created, no other edit has the lock.
                    Some(Err(NoLock::Failed(failure)))
                        if situation.credentials.uid != 0 || failure.errno == Errno::EROFS =>
                    {
                        own()
                    }
                    Some(lock) => lock,
                }
            }
            _ => own(),
        };
        let lock = taken_lock.map_err(|none| match none {
            NoLock::Taken(pid) => taken(&self.path, pid),
            NoLock::Failed(failure) => {
                let text = format!("{} cannot be changed by you: {failure}", visible(&self.path));
                Error::new(ExitStatus::System, text).advise(advice(directory.path(), situation))
            }
        })?;
        // This lock replaces the only record of it.
        if let Some(left) = lock.left() {
            let left = visible(left);
            stream::complain(&format!("rungate: an earlier edit was interrupted; its text is in {left}"));
        }
        Ok(lock)
    }

    /// Whether the policy with these proposals trusts the file if this user owns it.
    pub(super) fn may_belong_to(&self, owner: u32, proposals: &[Proposal]) -> Result<bool, Error> {
        if owner == 0 {
            return Ok(true);
        }
        let delegate = self.sources.delegate_with(proposals, &self.path).map_err(|failure| {
            let text = format!("{} cannot be put in place: {failure}", visible(&self.path));
            Error::new(ExitStatus::System, text)
        })?;
        Ok(delegate == Some(owner))
    }

    /// Whether it is a drop-in of the system's policy.
    pub(super) fn is_drop_in(&self) -> bool {
        self.path.parent() == Some(&self.sources.drop_ins())
    }
}

/// How to change a file in this directory, where the caller can create none.
fn advice(directory: &Path, situation: &Situation) -> String {
    let owner = regular_file::status_of_path(directory).map_or(0, |status| status.uid);
    if owner == situation.credentials.uid {
        return "A new file is first written beside the old one, and then renamed.".to_owned();
    }
    let whose = accounts::shown(owner);
    format!(
        "The directory {} belongs to {whose}, where the new file must be written. Your drop-in can be a link that \
        they create, to a file in a directory of yours.",
        visible(directory)
    )
}

/// A directory with a file of this path, if there is one.
fn open(above: &Path, path: &Path, situation: &Situation) -> Result<Option<Rc<TrustedDirectory>>, Error> {
    let judged = JudgedDirectories::for_caller(situation.credentials.uid);
    let opened = TrustedDirectory::open(above, &judged).map_err(|distrust| distrusted(path, &distrust))?;
    Ok(opened.map(Rc::new))
}

/// The path of the system's main file, or of the drop-in with this name.
pub(super) fn path_of_system(name: &OsStr, option: &str) -> Result<PathBuf, Error> {
    let system = Path::new(SYSTEM_POLICY);
    if Some(name) == system.file_name() {
        return Ok(system.to_owned());
    }
    let bytes = name.as_encoded_bytes();
    if bytes.contains(&b'/') {
        let text = format!("{option} takes policy.toml or the name of a drop-in, not {}", visible(name));
        return Err(Error::new(ExitStatus::Usage, text));
    }
    let path = Sources::system(0).drop_ins().join(name);
    if !is_drop_in(name) {
        return Err(no_drop_in(&path));
    }
    Ok(path)
}

fn no_drop_in(path: &Path) -> Error {
    let text = format!("{} would not be read: the name of a drop-in ends in .toml", visible(path));
    Error::new(ExitStatus::Usage, text)
}

/// The text of a file that may become one of the policy: no other user can have written it.
pub(super) fn read_candidate(path: &Path, situation: &Situation) -> Result<String, Error> {
    let refused = |why: String| Error::new(ExitStatus::Policy, why);
    let judged = JudgedDirectories::for_caller(situation.credentials.uid);
    let opened = TrustedFile::open(path, &judged).map_err(|distrust| refused(distrust.to_string()))?;
    let mut opened = opened.ok_or_else(|| refused(format!("there is no file {}", visible(path))))?;
    let bytes = opened.read().map_err(|distrust| refused(distrust.to_string()))?;
    text_of(bytes, path)
}

/// The text of a policy.
fn text_of(bytes: Vec<u8>, path: &Path) -> Result<String, Error> {
    String::from_utf8(bytes)
        .map_err(|_| Error::new(ExitStatus::Policy, format!("{} is not UTF-8 text", visible(path))))
}

/// The policy to which a path belongs: the system's, the caller's own, or the file itself. With the path by
/// which that policy names it.
fn place_of(path: &Path, situation: &Situation) -> Result<(Sources, PathBuf), Error> {
    let system = Sources::system(situation.credentials.uid);
    let own = situation.own_policy();
    let is_in = |directory: &Path| {
        let of = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        path.parent().is_some_and(|above| of(above) == of(directory))
    };
    let name = path.file_name().unwrap_or_default();
    let drop_ins = system.drop_ins();
    if is_in(&drop_ins) {
        return if is_drop_in(name) { Ok((system, drop_ins.join(name))) } else { Err(no_drop_in(path)) };
    }
    let is_of_system = system.system.parent().is_some_and(is_in) && Some(name) == system.system.file_name();
    let is_it = |own: &PathBuf| own.file_name() == Some(name) && own.parent().is_some_and(is_in);
    Ok(if is_of_system {
        let main = system.system.clone();
        (system, main)
    } else if let Some(own) = own.filter(is_it) {
        (Sources { own: Some(own.clone()), ..system }, own)
    } else {
        (Sources { given: Some(path.to_owned()), ..system }, path.to_owned())
    })
}

/// The file of the policy in force that is a link to a file in another place. Another name of the same inode
/// is no such link: an edit gives only one of the names a new file.
fn link_to(path: &Path, sources: &Sources, situation: &Situation) -> Option<PathBuf> {
    let real = sources.given.as_ref().and_then(|_| path.canonicalize().ok())?;
    let drop_ins = sources.drop_ins();
    let mut of_policy = vec![sources.system.clone()];
    of_policy.extend(names(&drop_ins).iter().map(|name| drop_ins.join(name)));
    of_policy.extend(situation.own_policy());
    of_policy.into_iter().find(|known| known.canonicalize().is_ok_and(|known| known == real))
}

/// The directory of the system's policy, or of the caller's own, is created if it is missing.
fn make_directory(path: &Path, sources: &Sources, situation: &Situation) -> Result<(), Error> {
    let Some(directory) = path.parent().filter(|_| sources.given.is_none()) else { return Ok(()) };
    let mode = if sources.own.is_some() { 0o700 } else { 0o755 };
    let missing = |path: &&Path| regular_file::status_of_target(path).is_err();
    let missing: Vec<&Path> = directory.ancestors().take_while(missing).collect();
    if sources.own.is_none() && situation.credentials.uid != 0 {
        return Ok(());
    }
    for directory in missing.into_iter().rev() {
        regular_file::create_directory(directory, mode).map_err(|errno| {
            let text = format!("cannot create {}: mkdir: {}", visible(directory), errno.desc());
            Error::new(ExitStatus::System, text)
        })?;
    }
    Ok(())
}

fn is_link(path: &Path) -> bool {
    regular_file::status_of_path(path).is_ok_and(|status| status.kind == regular_file::Kind::SymbolicLink)
}

/// Where a link leads. Behind a link that another user could replace, that user would choose which file is
/// replaced.
fn end_of(path: &Path, situation: &Situation) -> Result<PathBuf, Error> {
    let judged = JudgedDirectories::for_caller(situation.credentials.uid);
    let end = TrustedFile::resolve(path, &judged).map_err(|distrust| distrusted(path, &distrust))?;
    end.ok_or_else(|| {
        let text = format!("{} leads nowhere: {}", visible(path), Errno::ENOENT.desc());
        Error::new(ExitStatus::System, text)
    })
}

/// The finding that another user may have written it.
pub(super) fn distrusted(path: &Path, distrust: &InsecurePath) -> Error {
    let text =
        if distrust.path == path { distrust.to_string() } else { format!("{}: {distrust}", visible(path)) };
    Error::new(ExitStatus::Policy, text)
}

fn taken(path: &Path, pid: Option<i32>) -> Error {
    let who = pid.map_or_else(String::new, |pid| {
        let user = owner(pid).map_or_else(String::new, |uid| format!("{}, ", accounts::shown(uid)));
        let since = Process::find(pid).and_then(|process| process.age());
        let since = since.map_or_else(String::new, |age| format!(", for {}", crate::text::clock::age(age)));
        format!(" ({user}PID {pid}{since})")
    });
    let text = format!("{} is being edited by another user{who}", visible(path));
    Error::new(ExitStatus::Full, text).advise("Try again when they are done.".to_owned())
}

/// The drop-ins of a directory, as policies are read.
pub(super) fn names(directory: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<OsString> = entries.filter(|name| is_drop_in(name)).collect();
    names.sort();
    names
}
