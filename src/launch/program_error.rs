//! Why there is no program to start, in words that name what was looked for, and where.

use std::{ffi::OsString, fmt, path::PathBuf};

use crate::{
    escape::{visible, word},
    launch::shim::Shim,
    sys::failure::Errno,
};

/// Why there is no program to start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ProgramError {
    /// No directory of `PATH` has it.
    NotOnPath {
        /// The command.
        command: OsString,
        /// The `PATH` that was searched.
        search: OsString,
    },
    /// No directory of `PATH` that comes after the shim's has it.
    NotBehind {
        /// The shim.
        shim: Shim,
        /// Whether it is a copy of rungate, or a hard link to it, where people expect a symbolic link.
        is_copy: bool,
        /// The `PATH` that was searched.
        search: OsString,
    },
    /// The path that was typed leads to nothing.
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// No directory of `PATH` is seen to have it, and one cannot be looked into.
    OutOfSight {
        /// The command.
        command: OsString,
        /// The first such directory.
        directory: PathBuf,
        /// Why.
        errno: Errno,
    },
    /// It is there and cannot be executed.
    CannotExecute {
        /// The file.
        path: PathBuf,
        /// Why.
        errno: Errno,
    },
    /// The policy says that rungate itself is the program.
    IsRungate {
        /// The path in the policy.
        path: PathBuf,
    },
}

impl ProgramError {
    pub(super) fn of(path: PathBuf, errno: Errno) -> Self {
        match errno {
            Errno::ENOENT | Errno::ENOTDIR => Self::NotFound { path },
            errno => Self::CannotExecute { path, errno },
        }
    }

    /// Whether it is there at all, as far as `execvp` would tell: the difference between the statuses 126 and
    /// 127.
    pub fn was_found(&self) -> bool {
        matches!(self, Self::CannotExecute { .. } | Self::OutOfSight { .. } | Self::IsRungate { .. })
    }

    /// What to do about it, where that is not plain.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::NotBehind { shim, is_copy: true, .. } => Some(format!(
                "rungate is a shim under any other name. To run rungate, call the file rungate: mv {0} {1}",
                word(&shim.path),
                word(shim.path.with_file_name("rungate"))
            )),
            Self::NotBehind { shim, .. } => Some(format!(
                "Put the directory of the program into PATH, or name the program in the policy: [command.{}] exec = \"/path\"",
                visible(&shim.name)
            )),
            Self::IsRungate { .. } => {
                Some("Name the program itself there, not the shim: [command.NAME] exec".to_owned())
            }
            _ => None,
        }
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOnPath { command, search } => {
                write!(formatter, "{}: not found in PATH ({})", visible(command), visible(search))
            }
            Self::NotBehind { shim: Shim { name, path }, search, is_copy } => write!(
                formatter,
                "{}: not found behind the shim {}{}\n  PATH={}",
                visible(name),
                visible(path),
                if *is_copy { ", a copy of rungate" } else { "" },
                visible(search)
            ),
            Self::NotFound { path } => write!(formatter, "{}: not found", visible(path)),
            Self::OutOfSight { command, directory, errno } => write!(
                formatter,
                "{}: not found in PATH, of which {} cannot be looked into: {}",
                visible(command),
                visible(directory),
                errno.desc()
            ),
            Self::CannotExecute { path, errno } => {
                write!(formatter, "{}: cannot be executed: {}", visible(path), errno.desc())
            }
            Self::IsRungate { path } => {
                write!(
                    formatter,
                    "{}: not started: the policy names it as the program, and it is rungate itself",
                    visible(path)
                )
            }
        }
    }
}

impl std::error::Error for ProgramError {}
