//! Reads the command line of the second program, `rungate-tools`, and calls the subcommand. The launcher
//! executes this program under its own name and with its own arguments.

use std::{ffi::OsString, path::Path};

use clap::FromArgMatches;

use super::{
    act::{end, measure, prune, reset},
    doctor,
    inspect::{explain, list, metrics, status},
    logs::{history, report, simulate},
    policy,
    setup::{completions, init, shim},
};
use crate::{
    cli::{self, Action, CommandLine, help},
    launch::{
        Shim, Situation, TOOLS, exectimes, installation, is_own_name, refusals,
        run::{self, acquire},
    },
    sys::executable,
    text::Error,
};

/// Runs the subcommand of the arguments.
pub(super) fn main(arguments: &[OsString]) -> Result<u8, Error> {
    refuse_other_names()?;
    let called = arguments.first().map_or(Path::new(TOOLS), Path::new);
    if let Some(launcher) = installation::launcher(called) {
        executable::stand_for(launcher);
    }
    let read = cli::command().try_get_matches_from(arguments);
    let line = read.and_then(|matches| {
        cli::refuse_unread_policy(&matches)?;
        CommandLine::from_arg_matches(&matches)
    });
    match line {
        Ok(line) => act(line),
        Err(error) => help::complain(&error, arguments),
    }
}

/// A shim that points here instead of to the launcher would start nothing, and print no helpful message.
fn refuse_other_names() -> Result<(), Error> {
    let Some(path) = executable::executed_path() else { return Ok(()) };
    match path.file_name() {
        Some(name) if (!is_own_name(name) || name == "exectimes") && !path.starts_with("/dev/fd") => {
            let shim = Shim { name: name.to_owned(), path: path.clone() };
            Err(refusals::link(
                &shim,
                &format!("a link to {TOOLS}, which starts nothing; a shim is a link to rungate"),
            ))
        }
        _ => Ok(()),
    }
}

fn act(CommandLine { policy, action }: CommandLine) -> Result<u8, Error> {
    let here = || Situation::of_this_process(policy.clone());
    match &action {
        Action::Run(arguments) => run::run(arguments, policy),
        Action::Acquire(arguments) => acquire::run(arguments, policy),
        Action::Explain(arguments) => explain::run(arguments, here()?),
        Action::Status(arguments) => status::run(arguments, here()?),
        Action::List(arguments) => list::run(arguments, &here()?),
        Action::Policy(arguments) => policy::run(arguments, here()?),
        Action::Reset(arguments) => reset::run(arguments, &here()?),
        Action::Prune(arguments) => prune::run(arguments, &here()?),
        Action::End(arguments) => end::run(arguments, &here()?),
        Action::History(arguments) => history::run(arguments, &here()?),
        Action::Report(arguments) => report::run(arguments, &here()?),
        Action::Simulate(arguments) => simulate::run(arguments, &here()?),
        Action::Metrics(arguments) => metrics::run(arguments, &here()?),
        Action::Measure(arguments) => measure::run(arguments, &here()?),
        Action::Shim(arguments) => shim::run(arguments, &here()?),
        Action::Init(arguments) => init::run(arguments, &here()?),
        Action::Doctor(arguments) => doctor::run(arguments, here()?),
        Action::Completions(arguments) => completions::run(arguments),
        Action::Exectimes(arguments) => exectimes::run(arguments),
    }
}
