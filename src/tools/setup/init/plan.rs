//! What is to be made, step by step. A plan is only made where nothing stands in the way; should a step fail
//! all the same, the steps before it are undone.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    sys::{
        accounts,
        failure::{Errno, Failure},
        regular_file::{self, Kind, Status},
        replaced_file,
    },
    text::{error::Error, escape::visible, exit_status::ExitStatus},
};

/// What a file has in it.
pub(super) enum Content {
    /// Nothing: it is there to be locked. One of root's that is there already will do.
    LockFile,
    Text(String),
}

enum Step {
    Directory { path: PathBuf, mode: u32 },
    File { path: PathBuf, mode: u32, content: Content },
}

/// Steps in their order.
#[derive(Default)]
pub(super) struct Plan {
    steps: Vec<Step>,
}

impl Plan {
    /// A directory with exactly this mode; one that is there must be as it would be made.
    pub(super) fn directory(&mut self, path: &Path, mode: u32) -> Result<(), Error> {
        match status(path)? {
            None => self.steps.push(Step::Directory { path: path.to_owned(), mode }),
            Some(there) if is_roots(&there, Kind::Directory) && there.mode == mode => {}
            Some(there) => {
                let text = format!(
                    "{} is there already, and is not a directory of root's with mode {mode:04o}: {}",
                    visible(path),
                    described(&there)
                );
                return Err(stands_in_the_way(text));
            }
        }
        Ok(())
    }

    /// Those directories above a file that are missing.
    pub(super) fn directories_of(&mut self, file: &Path, mode: u32) -> Result<(), Error> {
        let missing = |path: &&Path| matches!(regular_file::status_of_target(path), Err(Errno::ENOENT));
        let missing: Vec<&Path> = file.ancestors().skip(1).take_while(missing).collect();
        for path in missing.into_iter().rev() {
            if status(path)?.is_some() {
                return Err(stands_in_the_way(format!("{} leads to nothing", visible(path))));
            }
            self.steps.push(Step::Directory { path: path.to_owned(), mode });
        }
        Ok(())
    }

    /// A file with exactly this mode.
    pub(super) fn file(&mut self, path: &Path, mode: u32, content: Content) -> Result<(), Error> {
        match (status(path)?, &content) {
            (Some(there), Content::LockFile) if is_roots(&there, Kind::Regular) && there.mode == mode => {
                Ok(())
            }
            (Some(there), Content::LockFile) => Err(stands_in_the_way(format!(
                "{} is there already, and is not a file of root's with mode {mode:04o}: {}",
                visible(path),
                described(&there)
            ))),
            (Some(_), Content::Text(_)) => {
                Err(stands_in_the_way(format!("{} is there already", visible(path))))
            }
            (None, _) => {
                self.steps.push(Step::File { path: path.to_owned(), mode, content });
                Ok(())
            }
        }
    }

    /// One line for each step.
    pub(super) fn describe(&self, verb: &str) -> String {
        let lines = self.steps.iter().map(|step| match step {
            Step::Directory { path, mode } => format!("{verb} {}/ (mode {mode:04o})\n", visible(path)),
            Step::File { path, mode, .. } => format!("{verb} {} (mode {mode:04o})\n", visible(path)),
        });
        lines.collect()
    }

    /// Does all of it, or nothing.
    pub(super) fn make(self) -> Result<Self, Error> {
        for (done, step) in self.steps.iter().enumerate() {
            if let Err(failure) = step.make() {
                self.steps[..done].iter().rev().for_each(Step::undo);
                let text = format!("{} cannot be made: {failure}", visible(step.path()));
                return Err(Error::new(ExitStatus::System, text).advise("Nothing was made.".to_owned()));
            }
        }
        Ok(self)
    }
}

impl Step {
    fn path(&self) -> &Path {
        match self {
            Self::Directory { path, .. } | Self::File { path, .. } => path,
        }
    }

    fn make(&self) -> Result<(), Failure> {
        match self {
            Self::Directory { path, mode } => {
                regular_file::create_directory(path, *mode).map_err(Failure::of("mkdir"))
            }
            Self::File { path, mode, content: Content::LockFile } => {
                regular_file::create_new(path, *mode).map(drop).map_err(Failure::of("open"))
            }
            Self::File { path, mode, content: Content::Text(text) } => {
                replaced_file::create(path, text.as_bytes(), *mode)
            }
        }
    }

    fn undo(&self) {
        let _ = match self {
            Self::Directory { path, .. } => fs::remove_dir(path),
            Self::File { path, .. } => fs::remove_file(path),
        };
    }
}

fn status(path: &Path) -> Result<Option<Status>, Error> {
    match regular_file::status_of_path(path) {
        Ok(status) => Ok(Some(status)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => {
            let text = format!("{} cannot be looked at: lstat: {}", visible(path), errno.desc());
            Err(Error::new(ExitStatus::System, text))
        }
    }
}

fn is_roots(status: &Status, kind: Kind) -> bool {
    status.kind == kind && status.uid == 0
}

fn described(status: &Status) -> String {
    format!("it is {} of {} with mode {:04o}", status.kind, accounts::shown(status.uid), status.mode)
}

fn stands_in_the_way(text: String) -> Error {
    Error::new(ExitStatus::System, text).advise("Nothing was made, and nothing was changed.".to_owned())
}
