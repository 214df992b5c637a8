//! The last step: hand over the slots, and execute the program.

use std::{
    ffi::{CString, OsStr, OsString},
    fmt,
};

use super::{Depth, Program, environment};
use crate::{
    acquire::Grant,
    judge::terms::{Hold, NamedSlots},
    keeper::KeeperError,
    sys::{
        Change, Ending, Errno, Event, Failure, SupervisedSignals, descriptor, executable,
        process::{self, ReportPipe, Spawned},
        signals,
    },
    text::visible,
};

/// Why the program did not start although all slots were acquired. Its slots are free again.
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
    /// Whether something that the program needs is missing: the difference between the statuses 126 and
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
            // The file itself existed a moment ago, so the interpreter of its first line is missing.
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
    /// Its own name (argv\[0\]), as typed.
    pub name: &'a OsStr,
    pub arguments: &'a [OsString],
    /// The slots that ancestors hold, as the environment says.
    pub ancestors: &'a [NamedSlots],
    /// How many launches of it are above, if that is counted.
    pub depth: Option<&'a Depth>,
}

/// Becomes the program or, if the hold requires it, stays as its parent until it has ended. `grant` was
/// acquired with the same hold.
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
        Hold::Supervisor | Hold::Tree => {
            let become_program = || executable::replace_process(file, &words, &environment);
            match supervise(become_program, hold, &mut grant) {
                Ok(ending) => return Ok(ending),
                Err(NotSpawned::Lost(failure)) => {
                    // The inherited descriptors keep the program's slots until they are released.
                    std::mem::forget(grant);
                    return Err(StartError::Call(failure));
                }
                Err(failure) => failure,
            }
        }
    };
    // No program was started, so no start is recorded. If that cannot be written either, the first failure is
    // still reported.
    let _ = grant.withdraw();
    Err(match failure {
        NotSpawned::Exec(errno) => StartError::Exec { program: command.program, errno },
        NotSpawned::Call(failure) | NotSpawned::Lost(failure) => StartError::Call(failure),
    })
}

// A parent that stays, waits for the command, and releases the slots itself: also slots that a daemon of the
// command would keep. It passes signals on, stops with the command where a shell has to see that, and ends as
// the command ended.

/// Why a supervised command did not start, or runs unobserved.
#[derive(Debug)]
pub enum NotSpawned {
    /// The kernel did not execute the file.
    Exec(Errno),
    /// The parent could not get ready.
    Call(Failure),
    /// It was started and continues with its slots, but its parent cannot wait for it.
    Lost(Failure),
}

/// Starts the command as a child, which `become_program` executes, and stays until it has ended; with
/// [`Hold::Tree`], until all of its descendants have.
pub fn supervise(
    become_program: impl FnOnce() -> Errno,
    hold: Hold,
    grant: &mut Grant<'_>,
) -> Result<Ending, NotSpawned> {
    let failed = |call: &'static str| move |errno: Errno| NotSpawned::Call(Failure { call, errno });
    if hold == Hold::Tree {
        process::adopt_orphans().map_err(failed("prctl(PR_SET_CHILD_SUBREAPER)"))?;
    }
    // A script may have started some, and become this process: they are not the command's.
    let others = process::own_children();
    let pipe = ReportPipe::open().map_err(NotSpawned::Call)?;
    let mut signals = SupervisedSignals::block().map_err(failed("sigprocmask"))?;
    let spawned = pipe.spawn(|| match signals.restore() {
        Ok(()) => become_program(),
        Err(errno) => errno,
    });
    let command = match spawned {
        Ok(command) => command,
        Err(failure) => {
            let _ = signals.restore();
            return Err(NotSpawned::Call(failure));
        }
    };
    descriptor::let_go_of_pipes();
    // A record is only for people: the slots are held even if it cannot be written.
    let _ = grant.record_command(command.pid);
    let waited = wait(&command, others, hold, &mut signals, grant);
    let _ = signals.end();
    waited.map_err(Failure::of("waitid")).map_err(NotSpawned::Lost)?.map_err(NotSpawned::Exec)
}

/// Returns how the command ended, or why it was not executed.
fn wait(
    child: &Spawned,
    mut others: Vec<i32>,
    hold: Hold,
    signals: &mut SupervisedSignals,
    grant: &mut Grant<'_>,
) -> Result<Result<Ending, Errno>, Errno> {
    let command = child.pid;
    let mut ending = None;
    loop {
        match process::next_change() {
            Ok(Some(Change::Ended(pid, how))) if pid == command => {
                if let Some(errno) = child.why_not() {
                    process::reap(command)?;
                    return Ok(Err(errno));
                }
                ending = Some(how);
                if hold == Hold::Tree {
                    signals.let_through()?;
                } else {
                    // First the slots, then the child: a process that waits for its end finds free slots.
                    let _ = grant.finish();
                    process::reap(command)?;
                    return Ok(Ok(how));
                }
                process::reap(command)?;
            }
            Ok(Some(Change::Ended(pid, _))) => {
                others.retain(|other| *other != pid);
                process::reap(pid)?;
            }
            Ok(Some(Change::Stopped(pid, signal))) if pid == command => signals::stop_with(command, signal),
            Ok(Some(Change::Stopped(..))) => {}
            Ok(None) => {
                if let Some(how) = ending.filter(|_| are_all_left(&others)) {
                    let _ = grant.finish();
                    return Ok(Ok(how));
                }
                if let Event::Forward(signal) = signals.next()?
                    && ending.is_none()
                {
                    signals::forward(signal, command);
                }
            }
            Err(Errno::ECHILD) => {
                let _ = grant.finish();
                return ending.map(Ok).ok_or(Errno::ECHILD);
            }
            Err(errno) => return Err(errno),
        }
    }
}

/// Whether no other children are left than these.
fn are_all_left(others: &[i32]) -> bool {
    if others.is_empty() {
        return false;
    }
    let children = process::own_children();
    !children.is_empty() && children.iter().all(|child| others.contains(child))
}
