//! Answers on standard output: the result of a subcommand, and its status.

use std::io;

use super::{error::Error, exit_status::ExitStatus, stream};
use crate::sys::failure::errno_of;

/// Prints what was asked for; success is the status when it got there.
pub(crate) fn print(text: &str) -> Result<u8, Error> {
    printed(stream::print(text))
}

/// The status of what was printed.
pub(crate) fn printed(written: io::Result<()>) -> Result<u8, Error> {
    match written {
        Ok(()) => Ok(ExitStatus::Success as u8),
        Err(error) => Err(Error::new(
            ExitStatus::System,
            format!("standard output cannot be written: {}", errno_of(&error).desc()),
        )),
    }
}
