//! What the launcher was started as: the name that it was called by and its arguments become one thing to do.
//! A shim becomes the same as `rungate run`. What this cannot read is for the second program to do, or to
//! complain about.

use std::ffi::OsString;

use super::{
    refusals,
    run::{launch_options::LaunchOptions, plain_run},
    shim::{CalledAs, Shim},
};
use crate::text::error::Error;

/// The one thing to do.
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

/// All words are exectimes' own, but for dashes in front.
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
    use crate::launch::role::*;

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
}
