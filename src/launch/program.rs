//! Finds the file of a command, by the rules of `execvp(3)`: a name with a slash is a path; any other is
//! searched in `PATH`. A file that cannot be executed is skipped there, and remembered as the reason. A link
//! to rungate under the command's name is a shim, and is skipped too.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{Shim, shim::is_own_name};
use crate::{
    sys::{Errno, FileId, executable},
    text::{visible, word},
};

/// A program that can be executed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Program {
    /// The path for `execve`: as typed, or as found.
    pub file: PathBuf,
    /// The same, absolute, in the canonical directory.
    pub path: PathBuf,
    /// The same with every link resolved.
    pub canonical: PathBuf,
    /// The shim that was skipped before it.
    pub shim: Option<PathBuf>,
}

impl Program {
    /// Finds the program of a command that was typed in `directory`.
    pub fn find(command: &OsStr, directory: &Path) -> Result<Self, ProgramError> {
        Self::find_along(&Search::of_environment(), command, directory)
    }

    /// The same, with a search path of one's own.
    pub fn find_along(search: &Search, command: &OsStr, directory: &Path) -> Result<Self, ProgramError> {
        Self::typed(command, directory)
            .unwrap_or_else(|| Self::in_entries(command, search.entries(), directory, Links::PassedBy))
            .map_err(|missing| missing.of(command, search))
    }

    /// Finds what `execvp(3)` would execute for it, which may be a shim.
    pub fn find_or_shim(command: &OsStr, directory: &Path) -> Result<Self, ProgramError> {
        let search = Search::of_environment();
        Self::typed(command, directory)
            .unwrap_or_else(|| Self::in_entries(command, search.entries(), directory, Links::Taken))
            .map_err(|missing| missing.of(command, &search))
    }

    /// Finds the program behind a shim.
    pub fn behind(shim: &Shim, directory: &Path) -> Result<Self, ProgramError> {
        let search = Search::of_environment();
        Self::in_entries(&shim.name, search.behind(&shim.path), directory, Links::PassedBy)
            .map(|program| Self { shim: Some(shim.path.clone()), ..program })
            .map_err(|missing| Missing { shim: Some(shim.path.clone()), ..missing }.of(&shim.name, &search))
    }

    /// A program that the policy names.
    pub fn named(path: &Path, directory: &Path) -> Result<Self, ProgramError> {
        match executable::check(path) {
            Ok(id) if executable::own() == Some(id) => Err(ProgramError::IsRungate { path: path.to_owned() }),
            Ok(_) => Ok(Self::at(path.to_owned(), directory)),
            Err(errno) => Err(ProgramError::of(path.to_owned(), errno)),
        }
    }

    /// A program that does not exist here, to show what the policy would decide for it.
    pub fn supposed(command: &OsStr, directory: &Path) -> Self {
        Self::at(PathBuf::from(command), directory)
    }

    /// A command with a slash is a path.
    fn typed(command: &OsStr, directory: &Path) -> Option<Result<Self, Missing>> {
        command.as_bytes().contains(&b'/').then(|| {
            let file = PathBuf::from(command);
            match executable::check(&file) {
                Ok(_) => Ok(Self::at(file, directory)),
                Err(errno) => Err(Missing { unusable: Some((file, errno)), shim: None }),
            }
        })
    }

    fn in_entries(
        command: &OsStr,
        entries: &[PathBuf],
        directory: &Path,
        links: Links,
    ) -> Result<Self, Missing> {
        let mut missing = Missing::default();
        let entries = if command.is_empty() { &[] } else { entries };
        for entry in entries {
            let file = entry.join(command);
            match executable::check(&file) {
                Ok(id) => {
                    let program = Self::at(file, directory);
                    if links == Links::Taken || !program.is_rungate(command, id) {
                        return Ok(Self { shim: missing.shim, ..program });
                    }
                    missing.shim = missing.shim.or(Some(program.file));
                }
                Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                Err(errno) => missing.unusable = missing.unusable.or(Some((file, errno))),
            }
        }
        Err(missing)
    }

    /// Whether this is rungate under another name: the file that this process executes, or that of another
    /// installation.
    fn is_rungate(&self, command: &OsStr, id: FileId) -> bool {
        !is_own_name(command)
            && (self.canonical.file_name().is_some_and(is_own_name) || executable::own() == Some(id))
    }

    fn at(file: PathBuf, directory: &Path) -> Self {
        let typed = directory.join(&file);
        // The name stays as it was typed, a link included; how its directory was typed must not matter.
        let parent = typed.parent().and_then(|parent| parent.canonicalize().ok());
        let path = match (parent, typed.file_name()) {
            (Some(parent), Some(name)) => parent.join(name),
            _ => typed,
        };
        // A file that is not a link, in a canonical directory, is canonical.
        let canonical = match path.read_link() {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => path.clone(),
            _ => path.canonicalize().unwrap_or_else(|_| path.clone()),
        };
        Self { file, path, canonical, shim: None }
    }
}

/// How links to rungate are treated.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Links {
    Taken,
    PassedBy,
}

/// What was found if nothing could be executed.
#[derive(Default)]
struct Missing {
    /// The first file that cannot be executed, and why.
    unusable: Option<(PathBuf, Errno)>,
    /// The first shim.
    shim: Option<PathBuf>,
}

impl Missing {
    fn of(self, command: &OsStr, search: &Search) -> ProgramError {
        let search = search.text().to_owned();
        match self {
            Self { unusable: Some((file, errno)), .. } => match file.parent() {
                Some(directory)
                    if !command.as_bytes().contains(&b'/') && executable::is_out_of_sight(&file) =>
                {
                    let (command, directory) = (command.to_owned(), directory.to_owned());
                    ProgramError::OutOfSight { command, directory, errno }
                }
                _ => ProgramError::of(file, errno),
            },
            Self { shim: Some(path), .. } => {
                let is_copy = path.symlink_metadata().is_ok_and(|found| found.is_file());
                ProgramError::NotBehind { shim: Shim { name: command.to_owned(), path }, search, is_copy }
            }
            Self { .. } => ProgramError::NotOnPath { command: command.to_owned(), search },
        }
    }
}

// Why there is no program to start, in a message that names the command and the searched places.

/// Why there is no program to start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ProgramError {
    /// No directory of `PATH` has it.
    NotOnPath {
        command: OsString,
        /// The `PATH` that was searched.
        search: OsString,
    },
    /// No directory of `PATH` that comes after the shim's has it.
    NotBehind {
        shim: Shim,
        /// Whether it is a copy of rungate, or a hard link to it, where people expect a symbolic link.
        is_copy: bool,
        /// The `PATH` that was searched.
        search: OsString,
    },
    /// The path that was typed leads to nothing.
    NotFound { path: PathBuf },
    /// No directory of `PATH` is seen to have it, and one cannot be looked into.
    OutOfSight {
        command: OsString,
        /// The first such directory.
        directory: PathBuf,
        /// Why.
        errno: Errno,
    },
    /// It is there and cannot be executed.
    CannotExecute {
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

    /// Whether it exists, as `execvp` would report: the difference between the statuses 126 and 127.
    pub fn was_found(&self) -> bool {
        matches!(self, Self::CannotExecute { .. } | Self::OutOfSight { .. } | Self::IsRungate { .. })
    }

    /// What to do about it, if that is not obvious.
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
                "{}: not found in PATH; {} in it cannot be searched: {}",
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

// The search path, and the part of it behind a shim: the entries after the one that led to the shim. Entries
// are compared by the directory that they lead to, so that a trailing slash or a link makes no difference.

/// The search path where the environment has none: that of the C library.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// `PATH`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Search {
    text: OsString,
    /// An empty entry is the working directory.
    entries: Vec<PathBuf>,
}

impl Search {
    pub fn of_environment() -> Self {
        Self::of(env::var_os("PATH").unwrap_or_else(|| OsString::from(DEFAULT_PATH)))
    }

    /// The directories that a text names.
    pub fn of(text: OsString) -> Self {
        let entries = env::split_paths(&text)
            .map(|entry| if entry.as_os_str().is_empty() { PathBuf::from(".") } else { entry })
            .collect();
        Self { text, entries }
    }

    /// As it is written.
    pub fn text(&self) -> &OsStr {
        &self.text
    }

    /// Its directories, in order.
    pub fn entries(&self) -> &[PathBuf] {
        &self.entries
    }

    /// The place of the first entry that leads to a directory.
    pub fn position(&self, directory: &Path) -> Option<usize> {
        self.entries.iter().position(|entry| entry == directory).or_else(|| {
            let wanted = executable::identity(directory)?;
            self.entries.iter().position(|entry| executable::identity(entry) == Some(wanted))
        })
    }

    /// The entries after a shim. All of PATH, if no entry leads to the shim: it was called by its path.
    pub fn behind(&self, shim: &Path) -> &[PathBuf] {
        match self.position(directory_of(shim)) {
            Some(position) => &self.entries[position + 1..],
            None => &self.entries,
        }
    }
}

/// The directory of a file, as its path says it.
pub fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(path: &str, shim: &str, behind: &[&str]) {
        let search = Search::of(path.into());
        assert_eq!(search.behind(Path::new(shim)), behind.iter().map(PathBuf::from).collect::<Vec<_>>());
    }

    #[test]
    fn behind_a_shim_is_what_comes_after_its_entry() {
        case("/a:/b:/c", "/a/x", &["/b", "/c"]);
        case("/a:/b:/c", "/c/x", &[]);
        case("/a/:/b", "/a/x", &["/b"]);
        case("/usr/./bin:/b", "/usr/bin/x", &["/b"]);
        case("/usr/sbin/../bin:/b", "/usr/bin/x", &["/b"]);
        case(":/b", "x", &["/b"]);
        case("/b:", "./x", &[]);
        case("/a::/b", "./x", &["/b"]);
    }

    #[test]
    fn a_shim_that_no_entry_leads_to_has_all_of_them_behind_it() {
        case("/a:/b", "/nowhere/x", &["/a", "/b"]);
        case("", "/nowhere/x", &["."]);
    }
}
