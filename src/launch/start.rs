//! The last step: the slots are handed over, and this process becomes the program.

use std::{
    ffi::{CString, OsStr, OsString},
    fmt,
};

use crate::{
    launch::{environment, program::Program},
    output::visible::visible,
    repository::{acquisition::Admitted, claim::NamedSlots, error::RepositoryError},
    sys::{exec, failure::Errno},
};

/// Why the program did not start although everything was had. Its slots are free again.
#[derive(Debug)]
pub enum StartError {
    /// A slot could not be handed over.
    Repository(RepositoryError),
    /// The kernel did not execute the file.
    Exec {
        /// The program.
        program: Program,
        /// Why.
        errno: Errno,
    },
}

impl StartError {
    /// Whether something that the program needs is not there: the difference between the statuses 126 and 127.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Exec { errno: Errno::ENOENT, .. })
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repository(error) => error.fmt(formatter),
            // The file itself was there a moment ago: what is missing is what its first line asks for.
            Self::Exec { program, errno: Errno::ENOENT } => write!(
                formatter,
                "{}: its interpreter, or the file itself, was not found",
                visible(&program.path)
            ),
            Self::Exec { program, errno } => {
                write!(formatter, "{}: cannot be executed: {}", visible(&program.path), errno.desc())
            }
        }
    }
}

impl std::error::Error for StartError {}

/// Becomes the program. `command` is what it finds as its name, as typed.
pub fn start(
    program: Program,
    command: &OsStr,
    arguments: &[OsString],
    ancestors: &[NamedSlots],
    admitted: &Admitted,
) -> StartError {
    if let Err(error) = admitted.keep_across_exec() {
        return StartError::Repository(error);
    }
    let words: Vec<CString> = std::iter::once(command)
        .chain(arguments.iter().map(OsString::as_os_str))
        .filter_map(exec::c_string)
        .collect();
    let environment = environment::with_slots(exec::environment(), ancestors, admitted.slots());
    let errno = exec::replace_process(&program.file, &words, &environment);
    StartError::Exec { program, errno }
}
