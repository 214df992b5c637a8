//! The launcher, from its command line to the running program: judge the request, acquire the slots, find the
//! program, put its slots into its environment, and execute it. This room must not use [`crate::tools`]. The
//! program gets working directory, umask, descriptors, signal mask and dispositions, arguments and
//! environment of the caller unchanged, except for the `RUNGATE_*` variables.

pub mod environment;
pub(crate) mod exectimes;
pub mod installation;
pub(crate) mod journal;
pub mod log;
pub mod program;
pub(crate) mod refusals;
pub(crate) mod run;
pub mod shim;
pub(crate) mod situation;
pub mod start;

pub use self::{
    environment::{Depth, HELD, TooDeep, parse_held},
    installation::{NoTools, TOOLS},
    program::{Program, ProgramError, Search, directory_of},
    shim::{DirectoryError, Shim, ShimDirectory, Standing, is_own_name},
    start::{Command, StartError},
};
pub(crate) use self::{
    journal::{JOURNAL, Journal, sink},
    refusals::Hints,
    run::{LaunchOptions, LaunchSpec, ancestors, find},
    situation::{Situation, SystemNames, account, failed, uid_of},
};

use std::{env, ffi::OsString};

use self::{run::plain_run, shim::CalledAs};
use crate::{
    sys::accounts,
    text::{Error, stream},
};

/// The launcher: carries out the arguments of this process, and returns the exit status. If it executes a
/// program, or the second program, it does not return.
pub fn main() -> u8 {
    end(|arguments| match Role::of(arguments)? {
        Role::Run(options) => run::launch(&options),
        Role::Exectimes(arguments) => Ok(exectimes::main(&arguments)),
        Role::Tools(arguments) => Err(refusals::no_tools(&installation::become_tools(&arguments))),
    })
}

/// From the arguments of this process to its exit status.
pub(crate) fn end(main: impl FnOnce(Vec<OsString>) -> Result<u8, Error>) -> u8 {
    let ended = refuse_set_id().and_then(|()| main(env::args_os().collect()));
    ended.unwrap_or_else(|error| {
        stream::complain(&error.to_string());
        error.status() as u8
    })
}

/// A launcher with the rights of another user would start every program with them.
fn refuse_set_id() -> Result<(), Error> {
    if !accounts::is_set_id() {
        return Ok(());
    }
    Err(refusals::set_id())
}

// Determines one task from the launcher's name and arguments. A shim becomes the same as `rungate run`.
// Anything else is left to the second program, which does it or reports an error.

/// The task.
pub(crate) enum Role {
    /// Start a command.
    Run(LaunchOptions),
    /// Be exectimes.
    Exectimes(Vec<OsString>),
    /// Become the second program, with the same arguments.
    Tools(Vec<OsString>),
}

impl Role {
    /// Reads all arguments of this process, argv\[0\] included.
    pub(crate) fn of(arguments: Vec<OsString>) -> Result<Self, Error> {
        match CalledAs::of_this_process(arguments.first().map(OsString::as_os_str)) {
            CalledAs::Shim(shim) => of_shim(shim, arguments),
            CalledAs::Exectimes => Ok(Self::Exectimes(arguments.into_iter().skip(1).collect())),
            CalledAs::Rungate => Ok(match arguments.get(1).and_then(|word| word.to_str()) {
                Some("run") => plain_run::read(&arguments[2..]).map_or(Self::Tools(arguments), Self::Run),
                Some("exectimes") => Self::Exectimes(of_exectimes(&arguments[2..]).to_vec()),
                _ => Self::Tools(arguments),
            }),
        }
    }
}

fn of_shim(shim: Shim, arguments: Vec<OsString>) -> Result<Role, Error> {
    match Shim::fault_of(&shim.name) {
        None => Ok(Role::Run(LaunchOptions::through(shim, arguments.into_iter()))),
        Some(fault) => Err(refusals::link(&shim, &format!("a link to rungate, and {fault}"))),
    }
}

/// All words belong to exectimes, except for leading dashes.
fn of_exectimes(words: &[OsString]) -> &[OsString] {
    match words {
        [dashes, rest @ ..] if dashes == "--" => rest,
        words => words,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::{Action, CommandLine, ExectimesArguments};
    use crate::launch::*;

    #[test]
    fn exectimes_gets_the_words_that_clap_would_give_it() {
        for line in
            ["", "--", "l 1 x", "-- l 1 x", "-- -- l", "l 1 -- x", "l check", "-h", "--help x", "-V", "-1 --"]
        {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let whole = ["rungate", "exectimes"].map(OsString::from).into_iter().chain(words.clone());
            let action = CommandLine::try_parse_from(whole).map(|line| line.action);
            let Ok(Action::Exectimes(ExectimesArguments { arguments })) = action else {
                panic!("{line}: {action:?}")
            };
            assert_eq!(of_exectimes(&words), arguments, "{line}");
        }
    }

    /// The launcher itself does `run` and `exectimes`. Everything else is for the second program, also `run`
    /// with an option that the launcher does not know.
    #[test]
    fn the_launcher_does_run_and_exectimes_itself() {
        let role = |line: &str| {
            let words = ["rungate"].into_iter().chain(line.split_whitespace());
            match Role::of(words.map(OsString::from).collect()) {
                Ok(Role::Run(options)) => format!("run {}", options.command.to_string_lossy()),
                Ok(Role::Exectimes(words)) => format!("exectimes {}", words.len()),
                Ok(Role::Tools(words)) => format!("tools {}", words.len()),
                Err(error) => error.to_string(),
            }
        };
        assert_eq!([role("run -- matlab"), role("run run")], ["run matlab", "run run"]);
        assert_eq!([role("exectimes -- l 1 x"), role("exectimes l")], ["exectimes 3", "exectimes 1"]);
        assert_eq!([role(""), role("help run"), role("list exectimes")], ["tools 1", "tools 3", "tools 3"]);
        assert_eq!(role("run --help"), "tools 3");
    }
}
