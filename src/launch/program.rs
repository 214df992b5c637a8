//! Which file a command is, by the rules of `execvp(3)`: a name with a slash is a path; any other is looked for along
//! `PATH`, where what cannot be executed is passed over, but remembered as the reason.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    output::visible::visible,
    sys::{executable, failure::Errno},
};

/// The search path where the environment has none: that of the C library.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A program that can be executed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Program {
    /// What is given to `execve`: as typed, or as found.
    pub file: PathBuf,
    /// The same, absolute, in the canonical directory.
    pub path: PathBuf,
    /// The same with every link resolved.
    pub canonical: PathBuf,
}

impl Program {
    /// Finds the program of a command that was typed in `directory`.
    pub fn find(command: &OsStr, directory: &Path) -> Result<Self, ProgramError> {
        let search = env::var_os("PATH").unwrap_or_else(|| OsString::from(DEFAULT_PATH));
        Self::find_along(&search, command, directory)
    }

    /// The same with a search path of one's own.
    pub fn find_along(search: &OsStr, command: &OsStr, directory: &Path) -> Result<Self, ProgramError> {
        if command.as_bytes().contains(&b'/') {
            let file = PathBuf::from(command);
            return match executable::check(&file) {
                Ok(()) => Ok(Self::at(file, directory)),
                Err(errno) => Err(ProgramError::of(file, errno)),
            };
        }
        let mut unusable = None;
        if !command.is_empty() {
            for entry in env::split_paths(search) {
                let file = if entry.as_os_str().is_empty() {
                    Path::new(".").join(command)
                } else {
                    entry.join(command)
                };
                match executable::check(&file) {
                    Ok(()) => return Ok(Self::at(file, directory)),
                    Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                    Err(errno) => unusable = unusable.or(Some((file, errno))),
                }
            }
        }
        Err(match unusable {
            Some((file, errno)) => ProgramError::of(file, errno),
            None => ProgramError::NotOnPath { command: command.to_owned(), search: search.to_owned() },
        })
    }

    /// A program that the policy names.
    pub fn named(path: &Path, directory: &Path) -> Result<Self, ProgramError> {
        match executable::check(path) {
            Ok(()) => Ok(Self::at(path.to_owned(), directory)),
            Err(errno) => Err(ProgramError::of(path.to_owned(), errno)),
        }
    }

    /// A program that is not here, for those who ask what would be said of it.
    pub fn supposed(command: &OsStr, directory: &Path) -> Self {
        Self::at(PathBuf::from(command), directory)
    }

    fn at(file: PathBuf, directory: &Path) -> Self {
        let typed = directory.join(&file);
        let canonical = typed.canonicalize().unwrap_or_else(|_| typed.clone());
        // The name stays as it was typed, a link included; how its directory was typed must not matter.
        let parent = typed.parent().and_then(|parent| parent.canonicalize().ok());
        let path = match (parent, typed.file_name()) {
            (Some(parent), Some(name)) => parent.join(name),
            _ => typed,
        };
        Self { file, path, canonical }
    }
}

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
    /// The path that was typed leads to nothing.
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// It is there and cannot be executed.
    CannotExecute {
        /// The file.
        path: PathBuf,
        /// Why.
        errno: Errno,
    },
}

impl ProgramError {
    fn of(path: PathBuf, errno: Errno) -> Self {
        match errno {
            Errno::ENOENT | Errno::ENOTDIR => Self::NotFound { path },
            errno => Self::CannotExecute { path, errno },
        }
    }

    /// Whether it is there at all: the difference between the statuses 126 and 127.
    pub fn was_found(&self) -> bool {
        matches!(self, Self::CannotExecute { .. })
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOnPath { command, search } => {
                write!(formatter, "{}: not found in PATH ({})", visible(command), visible(search))
            }
            Self::NotFound { path } => write!(formatter, "{}: not found", visible(path)),
            Self::CannotExecute { path, errno } => {
                write!(formatter, "{}: cannot be executed: {}", visible(path), errno.desc())
            }
        }
    }
}

impl std::error::Error for ProgramError {}
