//! What each subcommand does: composition only. Here, and nowhere else, the two wings meet: judgement says
//! what a launch wants, this module turns that into claims on lock files, and mechanism takes them.

#[cfg(feature = "agent")]
mod agent;
#[cfg(feature = "tools")]
mod completions;
#[cfg(feature = "tools")]
mod doctor;
#[cfg(feature = "tools")]
mod end;
mod exectimes;
#[cfg(feature = "tools")]
mod explain;
#[cfg(feature = "tools")]
mod history;
#[cfg(feature = "tools")]
mod init;
#[cfg(feature = "tools")]
mod list;
#[cfg(feature = "tools")]
mod metrics;
#[cfg(feature = "tools")]
mod policy;
mod refusals;
#[cfg(feature = "tools")]
mod report;
#[cfg(feature = "tools")]
mod reset;
mod role;
mod run;
mod shared;
#[cfg(feature = "tools")]
mod shim;
#[cfg(feature = "tools")]
mod simulate;
#[cfg(feature = "tools")]
mod status;
#[cfg(feature = "tools")]
mod tools;
#[cfg(feature = "tools")]
mod watch;

use std::{env, ffi::OsString};

use self::role::Role;
use crate::{error::Error, launch::installation, output::stream, sys::credentials};

/// The launcher: does what the arguments of this process ask for, and answers with the status to end with.
/// When a program was started, or the second program does what was asked for, it does not come back.
pub fn launch() -> u8 {
    end(|arguments| match Role::of(arguments)? {
        Role::Run(options) => run::launch(&options),
        Role::Exectimes(arguments) => Ok(exectimes::main(&arguments)),
        Role::Tools(arguments) => Err(refusals::no_tools(&installation::become_tools(&arguments))),
    })
}

/// The second program: everything else.
#[cfg(feature = "tools")]
pub fn tools() -> u8 {
    end(|arguments| tools::main(&arguments))
}

/// The agent. It comes back when it cannot serve.
#[cfg(feature = "agent")]
pub fn agent() -> u8 {
    end(|arguments| agent::main(&arguments))
}

fn end(main: impl FnOnce(Vec<OsString>) -> Result<u8, Error>) -> u8 {
    let ended = refuse_set_id().and_then(|()| main(env::args_os().collect()));
    ended.unwrap_or_else(|error| {
        stream::complain(&error.to_string());
        error.status() as u8
    })
}

/// A launcher that runs with another one's rights would start every program with them.
fn refuse_set_id() -> Result<(), Error> {
    if !credentials::is_set_id() {
        return Ok(());
    }
    Err(refusals::set_id())
}
