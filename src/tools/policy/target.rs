//! A file of a policy that is to be edited or put in place: where it is, its present text, and its owner.

use std::{ffi::OsStr, path::Path};

use super::location::{Location, distrusted};
use crate::{
    launch::situation::Situation,
    policy::Proposal,
    sys::{
        atomic_write::{Attributes, Before},
        regular_file,
        trust::InsecurePath,
        trusted_file::TrustedDirectory,
    },
    text::{error::Error, escape::visible, exit_status::ExitStatus},
};

/// The mode of a file that was not there: every launch reads it.
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

/// The text under a name and its owner; an owner of the delegation counts as any.
fn read(
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
