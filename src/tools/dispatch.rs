//! The second program, `rungate-tools`: everything but launches, and what clap has to say of a launch that
//! cannot be read. The launcher becomes it, under the launcher's name and with the launcher's arguments.

use std::{ffi::OsString, path::Path};

use clap::{
    CommandFactory, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{
    act::{end, reset},
    doctor,
    inspect::{explain, list, metrics, status},
    logs::{history, report, simulate},
    policy,
    setup::{completions, init, shim},
};
use crate::{
    cli::{self, Action, CommandLine},
    launch::{
        exectimes,
        installation::{self, TOOLS},
        refusals, run,
        shim::{Shim, is_own_name},
    },
    sys::executable,
    text::{
        error::Error,
        escape::{visible, visible_lines, word},
        exit_status::ExitStatus,
        print::print,
    },
};

/// Does what the arguments say.
pub(super) fn main(arguments: &[OsString]) -> Result<u8, Error> {
    refuse_other_names()?;
    let called = arguments.first().map_or(Path::new(TOOLS), Path::new);
    if let Some(launcher) = installation::launcher(called) {
        executable::stand_for(launcher);
    }
    let read = cli::command().try_get_matches_from(arguments);
    match read.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(line) => act(&line.action),
        Err(error) => complain(&error, arguments),
    }
}

/// A shim that leads here instead of to the launcher would start nothing, and say nothing that helps.
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

/// What is said of a command line that cannot be read, or of one that asks for help.
pub(crate) fn complain(error: &clap::Error, arguments: &[OsString]) -> Result<u8, Error> {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => print(&text),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Error::plain(ExitStatus::Usage, text.trim_end()))
        }
        _ => {
            // It repeats what was typed.
            let text = visible_lines(text.trim_end().trim_start_matches("error: "));
            Err(Error::new(ExitStatus::Usage, text).advise(meant(error, arguments)))
        }
    }
}

/// Who puts a command where a subcommand stands wants it started; who puts a subcommand below another one
/// wants that.
fn meant(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let is_first = arguments.get(1).is_some_and(|first| first == typed.as_str());
    let is_near = error.get(ContextKind::SuggestedSubcommand).is_some();
    if !is_first && CommandLine::command().find_subcommand(typed).is_some() {
        return Some(format!("There is: rungate {}", visible(typed)));
    }
    (is_first && !is_near).then(|| format!("To start a program: rungate run -- {}", word(typed)))
}

fn act(action: &Action) -> Result<u8, Error> {
    match action {
        Action::Run(arguments) => run::run(arguments),
        Action::Explain(arguments) => explain::run(arguments),
        Action::Status(arguments) => status::run(arguments),
        Action::List(arguments) => list::run(arguments),
        Action::Policy(arguments) => policy::run(arguments),
        Action::Reset(arguments) => reset::run(arguments),
        Action::End(arguments) => end::run(arguments),
        Action::History(arguments) => history::run(arguments),
        Action::Report(arguments) => report::run(arguments),
        Action::Simulate(arguments) => simulate::run(arguments),
        Action::Metrics(arguments) => metrics::run(arguments),
        Action::Shim(arguments) => shim::run(arguments),
        Action::Init(arguments) => init::run(arguments),
        Action::Doctor(arguments) => doctor::run(arguments),
        Action::Completions(arguments) => completions::run(arguments),
        Action::Exectimes(arguments) => exectimes::run(arguments),
    }
}
