//! Which file a command is, by the rules of `execvp(3)`: a name with a slash is a path; any other is looked
//! for along `PATH`, where what cannot be executed is passed over, but remembered as the reason. What is
//! rungate itself under the command's name is a shim, and passed by: a program is wanted, not the way to it.

use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    launch::{
        program_error::ProgramError,
        search::Search,
        shim::{Shim, is_own_name},
    },
    sys::{executable, failure::Errno, file_id::FileId},
};

/// A program that can be executed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Program {
    /// What is given to `execve`: as typed, or as found.
    pub file: PathBuf,
    /// The same, absolute, in the canonical directory.
    pub path: PathBuf,
    /// The same with every link resolved.
    pub canonical: PathBuf,
    /// The shim that was passed by on the way to it.
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

    /// A program that is not here, for those who ask what would be said of it.
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
        // What is no link itself, in a directory that is canonical, is canonical.
        let canonical = match path.read_link() {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => path.clone(),
            _ => path.canonicalize().unwrap_or_else(|_| path.clone()),
        };
        Self { file, path, canonical, shim: None }
    }
}

/// What becomes of links to rungate on the way.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Links {
    Taken,
    PassedBy,
}

/// What there was where nothing could be executed.
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
