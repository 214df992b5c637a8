//! The stages of a launch before it acquires anything: which program it is, and whether it may start.

use std::{ffi::OsStr, path::Path};

use super::launch_options::LaunchOptions;
use crate::{
    judge::{Request, Start, Verdict, decide},
    launch::{
        depth::Depth,
        journal::Journal,
        log::circumstances::Circumstances,
        program::Program,
        refusals::{self, hints::Hints},
        shim::Shim,
        situation::Situation,
    },
    policy::{LazyPolicy, Policy},
    text::error::Error,
};

/// A program that was found, and how deep below itself it would run.
pub(super) struct Located {
    pub(super) program: Program,
    pub(super) depth: Depth,
}

/// Finds the program of a command line that a policy or its own `--limit` applies to.
pub(super) fn locate(
    options: &LaunchOptions,
    opened: &LazyPolicy<'_>,
    situation: &Situation,
    depth: &Depth,
) -> Result<Located, Error> {
    if opened.is_empty() && options.cap.is_none() {
        return Err(refusals::no_policy(options));
    }
    let named = |name: &OsStr| opened.executable(name);
    let program = find(named, &options.command, options.shim.as_ref(), &situation.directory)?;
    let depth = deeper(options, depth, &program)?;
    Ok(Located { program, depth })
}

/// The program of a command: the one that the policy names, or the one that is found. A shim is never the
/// program.
pub(crate) fn find<'p>(
    named: impl Fn(&OsStr) -> Option<&'p Path>,
    command: &OsStr,
    shim: Option<&Shim>,
    directory: &Path,
) -> Result<Program, Error> {
    let typed = if shim.is_none() { Shim::at(Path::new(command)) } else { None };
    let shim = shim.or(typed.as_ref());
    let name = shim.map_or(command, |shim| &shim.name);
    let found = match (named(name), shim) {
        (Some(path), shim) => {
            return Program::named(path, directory)
                .map(|program| Program { shim: shim.map(|shim| shim.path.clone()), ..program })
                .map_err(|error| refusals::no_named_program(name, &error));
        }
        (None, Some(shim)) => Program::behind(shim, directory),
        (None, None) => Program::find(command, directory),
    };
    found.map_err(|error| refusals::no_program(&error))
}

/// What the policy says of a launch.
#[must_use]
pub(super) enum Judged<'p> {
    Start(Start<'p>),
    Refused(Error),
}

/// Judges a launch; a denied one is written into the journal. `told` is the part that a log may contain.
pub(super) fn judge<'p>(
    command: &OsStr,
    policy: &'p Policy,
    request: &Request<'_>,
    journal: &Journal<'_>,
    hints: &Hints,
    told: impl FnOnce() -> Circumstances,
) -> Judged<'p> {
    let decision = decide(policy, request);
    journal.tell(told);
    Judged::Refused(match decision.verdict {
        Verdict::Start(start) => return Judged::Start(start),
        Verdict::Denied { rule, matches } => {
            journal.denied(Some(rule));
            refusals::denied(command, rule, &matches)
        }
        Verdict::Unmatched => {
            journal.denied(None);
            refusals::unmatched(command, policy, hints)
        }
        Verdict::LookupFailed { rule, failure } => refusals::lookup_failed(command, rule, &failure),
    })
}

// A command that is launched below itself: a wrapper that finds itself where it looks for the program, or two
// that find each other. Some recursion is intended, endless recursion is not.

/// How deep below itself the command will be, or that it is too deep.
pub(crate) fn deeper(options: &LaunchOptions, depth: &Depth, program: &Program) -> Result<Depth, Error> {
    let name = Path::new(&options.command).file_name().unwrap_or(&options.command);
    depth.clone().below(name).map_err(|too_deep| refusals::too_deep(name, &too_deep, program))
}
