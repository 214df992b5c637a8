//! The last step: the slots are handed over, and this process becomes the program.

use std::{
    ffi::{CString, OsStr, OsString},
    fmt,
};

use super::{
    depth::Depth,
    environment,
    program::Program,
    supervision::{NotSpawned, supervise},
};
use crate::{
    acquire::grant::Grant,
    judge::terms::{keyword::Hold, slots_wanted::NamedSlots},
    keeper::error::KeeperError,
    sys::{
        child::Ending,
        executable,
        failure::{Errno, Failure},
    },
    text::escape::visible,
};

/// Why the program did not start although everything was had. Its slots are free again.
#[derive(Debug)]
pub enum StartError {
    /// A slot could not be handed over.
    Keeper(KeeperError),
    /// The parent of a supervised command could not get ready, or lost its child.
    Call(Failure),
    /// The kernel did not execute the file.
    Exec {
        program: Program,
        /// Why.
        errno: Errno,
    },
}

impl StartError {
    /// Whether something that the program needs is not there: the difference between the statuses 126 and
    /// 127.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Exec { errno: Errno::ENOENT, .. })
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keeper(error) => error.fmt(formatter),
            Self::Call(failure) => write!(formatter, "the command could not be supervised: {failure}"),
            // The file itself was there a moment ago: what is missing is what its first line asks for.
            Self::Exec { program, errno: Errno::ENOENT } => write!(
                formatter,
                "{}: its interpreter, or the file itself, was not found",
                visible(&program.path)
            ),
            Self::Exec { program, errno: Errno::E2BIG } => write!(
                formatter,
                "{}: not executed: its arguments and the environment, or one of them alone, are longer than the kernel allows \
                 ({})",
                visible(&program.path),
                Errno::E2BIG.desc()
            ),
            Self::Exec { program, errno } => {
                write!(formatter, "{}: cannot be executed: {}", visible(&program.path), errno.desc())
            }
        }
    }
}

impl std::error::Error for StartError {}

/// A command that is about to start.
pub struct Command<'a> {
    /// The file to execute.
    pub program: Program,
    /// What it finds as its name, as typed.
    pub name: &'a OsStr,
    pub arguments: &'a [OsString],
    /// The slots that ancestors hold, as the environment says.
    pub ancestors: &'a [NamedSlots],
    /// How deep below itself it is, where that is counted.
    pub depth: Option<&'a Depth>,
}

/// Becomes the program or, where the hold asks for it, stays as its parent until it has ended. `grant` was
/// taken with the same hold.
pub fn start(command: Command<'_>, hold: Hold, mut grant: Grant<'_>) -> Result<Ending, StartError> {
    grant.keep_across_exec().map_err(StartError::Keeper)?;
    let words: Vec<CString> = std::iter::once(command.name)
        .chain(command.arguments.iter().map(OsString::as_os_str))
        .filter_map(executable::c_string)
        .collect();
    let mut environment =
        environment::with_slots(executable::environment(), command.ancestors, grant.slots());
    if let Some(depth) = command.depth {
        depth.tell(&mut environment);
    }
    let file = &command.program.file;
    let failure = match hold {
        Hold::Process | Hold::Descriptor => {
            NotSpawned::Exec(executable::replace_process(file, &words, &environment))
        }
        Hold::Supervisor | Hold::Tree => match supervise(file, &words, &environment, hold, &mut grant) {
            Ok(ending) => return Ok(ending),
            Err(NotSpawned::Lost(failure)) => {
                // What the program inherited keeps its slots, as long as nobody gives them back.
                std::mem::forget(grant);
                return Err(StartError::Call(failure));
            }
            Err(failure) => failure,
        },
    };
    // No program was started, so none counts; if even that cannot be written, the first failure is still the
    // one to tell.
    let _ = grant.withdraw();
    Err(match failure {
        NotSpawned::Exec(errno) => StartError::Exec { program: command.program, errno },
        NotSpawned::Call(failure) | NotSpawned::Lost(failure) => StartError::Call(failure),
    })
}
