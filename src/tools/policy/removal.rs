//! A drop-in that is removed: the file, or the link, also one that the policy distrusts.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::location::Location;
use crate::{
    launch::situation::Situation,
    policy::{Proposal, SYSTEM_POLICY, Sources},
    text::{
        error::Error,
        escape::{Show, visible},
        exit_status::ExitStatus,
    },
};

/// Distinguishes it from a later file.
type State = (u64, u64, i64, i64);

/// A drop-in that is to go.
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
        if !names(&directory).iter().any(|known| known.file_name() == Some(name)) {
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

fn state(path: &Path) -> Option<State> {
    let status = fs::symlink_metadata(path).ok()?;
    Some((status.dev(), status.ino(), status.ctime(), status.ctime_nsec()))
}

/// The files of a directory that would be read.
fn names(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut names: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "toml")).collect();
    names.sort();
    names
}

fn unknown(name: &OsStr, directory: &Path) -> Error {
    let text = format!("there is no drop-in {} in {}", visible(name), directory.shown());
    let there: Vec<String> =
        names(directory).iter().filter_map(|path| path.file_name()).map(visible).collect();
    let advice = match there.as_slice() {
        [] => "There are no drop-ins.".to_owned(),
        there => format!("There are: {}", there.join(", ")),
    };
    Error::new(ExitStatus::Usage, text).advise(advice)
}
