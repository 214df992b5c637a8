//! A file of a policy to edit or to put in place: its location, its present text, and its owner.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::location::{Location, distrusted, names};
use crate::{
    launch::situation::Situation,
    policy::{Proposal, SYSTEM_POLICY, Sources},
    sys::{
        atomic_write::{Attributes, Before},
        regular_file,
        trust::InsecurePath,
        trusted_file::{TrustedDirectory, TrustedFile},
    },
    text::{
        error::{Error, ExitStatus},
        escape::{Show, visible},
    },
};

/// The mode of a new file, which every launch reads.
const NEW: Attributes = Attributes { before: None, mode: 0o644 };

/// One file of a policy.
pub(super) struct Target {
    /// Where it is.
    pub(super) location: Location,
    /// The present text; empty if there is no file.
    pub(super) before: Option<String>,
    attributes: Attributes,
}

impl Target {
    /// The file of this path.
    pub(super) fn of_path(path: &Path, situation: &Situation) -> Result<Self, Error> {
        Self::at(Location::of_path(path, situation)?)
    }

    /// The file at a place.
    pub(super) fn at(location: Location) -> Result<Self, Error> {
        let (before, attributes) = read(&location.directory, &location.name, &location.path)?;
        Ok(Self { location, before, attributes })
    }

    /// The same; a new file gets these attributes.
    pub(super) fn or_new_with(self, attributes: Attributes) -> Self {
        if self.before.is_some() { self } else { Self { attributes, ..self } }
    }

    /// Where the policy names it.
    pub(super) fn path(&self) -> &Path {
        &self.location.path
    }

    /// The file with this text.
    pub(super) fn proposal(&self, text: String) -> Proposal {
        Proposal { path: self.path().to_owned(), text: Some(text) }
    }

    /// Whether it was changed since it was read.
    pub(super) fn has_changed(&self) -> Result<bool, Error> {
        let Location { directory, name, path, .. } = &self.location;
        Ok(read(directory, name, path)?.0 != self.before)
    }

    pub(super) fn put(&self, text: &str) -> Result<(), Error> {
        let Location { directory, name, .. } = &self.location;
        directory.place(name, text.as_bytes(), &self.attributes).map_err(|failure| {
            let text = format!("{} cannot be put in place: {failure}", visible(self.path()));
            Error::new(ExitStatus::System, text)
        })
    }
}

/// The text under a name and its owner; the owner of the delegation may also own it.
pub(super) fn read(
    directory: &TrustedDirectory,
    name: &OsStr,
    path: &Path,
) -> Result<(Option<String>, Attributes), Error> {
    let owner = regular_file::status_of_path(&directory.path().join(name)).map_or(0, |status| status.uid);
    let distrusted = |distrust: InsecurePath| distrusted(path, &distrust);
    let Some(mut file) = directory.file_of(name, owner).map_err(distrusted)? else { return Ok((None, NEW)) };
    let extended = file.extended_attributes().map_err(|failure| unkept(path, &failure.to_string()))?;
    if extended.is_signed() {
        return Err(unkept(path, "it has a signature, which would not match other content"));
    }
    let before = Before { uid: file.owner(), gid: file.group(), extended };
    let attributes = Attributes { before: Some(before), mode: file.mode() };
    let text = String::from_utf8(file.read().map_err(distrusted)?)
        .map_err(|_| Error::new(ExitStatus::Policy, format!("{} is not UTF-8 text", visible(path))))?;
    Ok((Some(text), attributes))
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
        if Some(name) == Path::new(SYSTEM_POLICY).file_name() {
            let text = format!("--remove takes the name of a drop-in; {SYSTEM_POLICY} is the main file");
            return Err(Error::new(ExitStatus::Usage, text)
                .advise("A policy without a limit is a file with one line: version = 1".to_owned()));
        }
        let directory = Sources::system(0).drop_ins();
        if !names(&directory).iter().any(|known| known == name) {
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
    pub(super) fn take_away(&self) -> Result<(), Error> {
        self.location.directory.remove(&self.location.name).map_err(|failure| {
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
    /// The text of the department.
    text: String,
}

impl Link {
    /// The drop-in with this name as a link to this path; none if it is that already.
    pub(super) fn of(name: &OsStr, to: PathBuf, situation: &Situation) -> Result<Option<Self>, Error> {
        let location = Location::of_drop_in(name, situation)?;
        if fs::read_link(&location.path).is_ok_and(|present| present == to) {
            return Ok(None);
        }
        let path = location.directory.path().join(&to);
        let owner = regular_file::status_of_target(&path).map_or(0, |status| status.uid);
        let distrusted = |distrust: InsecurePath| distrusted(&location.path, &distrust);
        let file = TrustedFile::open_of(&path, situation.credentials.uid, owner).map_err(distrusted)?;
        let unread = || {
            let text = format!("{} was a link to {}", location.path.shown(), path.shown());
            Error::new(ExitStatus::Policy, format!("{text}, where no policy is"))
        };
        let bytes = file.ok_or_else(unread)?.read().map_err(distrusted)?;
        let text = String::from_utf8(bytes).map_err(|_| unread())?;
        let before = state(&location.path);
        Ok(Some(Self { location, before, to, text }))
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
    pub(super) fn put(&self) -> Result<(), Error> {
        let Location { directory, name, path, .. } = &self.location;
        directory.place_link(name, &self.to).map_err(|failure| {
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
