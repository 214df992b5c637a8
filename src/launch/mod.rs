//! The launcher, from its command line to the running program: judge the request, acquire the slots, find the
//! program, tell it what it holds, and become it. This room must not reach [`crate::tools`]. Nothing of what
//! the caller arranged is changed: working directory, umask, descriptors, signal mask and dispositions,
//! arguments and environment reach the program as they came, except for the `RUNGATE_*` variables.

pub mod depth;
pub mod environment;
pub(crate) mod exectimes;
pub(crate) mod expired;
pub mod installation;
pub(crate) mod journal;
pub mod log;
pub mod program;
pub(crate) mod refusals;
pub(crate) mod role;
pub(crate) mod run;
pub mod shim;
pub(crate) mod situation;
pub mod start;
pub mod supervision;

use std::{env, ffi::OsString};

use self::role::Role;
use crate::{
    sys::credentials,
    text::{error::Error, stream},
};

/// The launcher: does what the arguments of this process ask for, and answers with the status to end with.
/// When a program was started, or the second program does what was asked for, it does not come back.
pub fn main() -> u8 {
    end(|arguments| match Role::of(arguments)? {
        Role::Run(options) => run::launch(&options),
        Role::Exectimes(arguments) => Ok(exectimes::main(&arguments)),
        Role::Tools(arguments) => Err(refusals::no_tools(&installation::become_tools(&arguments))),
    })
}

/// The arguments of this process go in, the status to end with comes out.
pub(crate) fn end(main: impl FnOnce(Vec<OsString>) -> Result<u8, Error>) -> u8 {
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
