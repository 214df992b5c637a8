//! What this process is to do: arguments as they were typed, and the name they were typed under, become one thing. A shim
//! becomes the same as `rungate run`, and neither it nor a plain `run` ever meets clap.

use std::ffi::OsString;

use clap::{Parser, error::ErrorKind};

use crate::{
    cli::{Action, CommandLine},
    commands::{completer, order::Order, plain_run, print},
    error::Error,
    exit_status::ExitStatus,
    launch::shim::{CalledAs, Shim},
    output::visible::visible,
};

/// The one thing to do.
pub(super) enum Errand {
    /// Start a command.
    Run(Order),
    /// Be exectimes.
    Exectimes(Vec<OsString>),
    /// What a command line says that clap read.
    Typed(Action),
    /// Answer a shell that completes these words.
    Complete(OsString, Vec<OsString>),
    /// Nothing any more: help or the version was asked for, and printed.
    Done,
}

impl Errand {
    /// Reads all arguments of this process, argv\[0\] included.
    pub(super) fn of(arguments: Vec<OsString>) -> Result<Self, Error> {
        match CalledAs::of_this_process(arguments.first().map(OsString::as_os_str)) {
            CalledAs::Shim(shim) => of_shim(shim, arguments),
            CalledAs::Exectimes => Ok(Self::Exectimes(arguments.into_iter().skip(1).collect())),
            CalledAs::Rungate => match arguments.as_slice() {
                [_, run, words @ ..] if run == "run" => {
                    plain_run::read(words).map_or_else(|| typed(&arguments), |order| Ok(Self::Run(order)))
                }
                [_, dashes, words @ ..] if dashes == "--" => match completer::asking_shell() {
                    Some(shell) => Ok(Self::Complete(shell, words.to_vec())),
                    None => typed(&arguments),
                },
                _ => typed(&arguments),
            },
        }
    }
}

fn of_shim(shim: Shim, arguments: Vec<OsString>) -> Result<Errand, Error> {
    match Shim::fault_of(&shim.name) {
        None => Ok(Errand::Run(Order::through(shim, arguments.into_iter()))),
        Some(fault) => {
            let Shim { name, path } = &shim;
            let text = format!(
                "{}: not started: {} is a link to rungate, and {fault}",
                visible(name),
                visible(path)
            );
            Err(Error::new(ExitStatus::Policy, text).advise(format!("Remove the link: rm {}", visible(path))))
        }
    }
}

fn typed(arguments: &[OsString]) -> Result<Errand, Error> {
    match CommandLine::try_parse_from(arguments) {
        Ok(line) => Ok(Errand::Typed(line.action)),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            print(&error.to_string()).map(|_| Errand::Done)
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Error::plain(ExitStatus::Usage, error.to_string().trim_end()))
        }
        Err(error) => {
            let text = error.to_string();
            let text = text.trim_end().trim_start_matches("error: ");
            Err(Error::new(ExitStatus::Usage, text))
        }
    }
}
