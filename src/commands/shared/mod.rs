//! What subcommands share: who asks and from where, the files of repositories, names, the journal, and how
//! answers are printed.

#[cfg(feature = "tools")]
pub(super) mod differences;
pub(super) mod expired;
#[cfg(feature = "tools")]
pub(super) mod file_accounts;
pub(super) mod journal;
#[cfg(feature = "tools")]
pub(super) mod listed_file;
#[cfg(feature = "tools")]
pub(super) mod listing;
#[cfg(feature = "tools")]
pub(super) mod logs;
#[cfg(feature = "tools")]
mod owner;
#[cfg(feature = "tools")]
pub(super) mod repositories;
pub(super) mod situation;
#[cfg(feature = "tools")]
pub(super) mod unseen_ends;
#[cfg(feature = "tools")]
pub(super) mod waits_for;
#[cfg(feature = "tools")]
pub(super) mod ways_in;

use std::io;

use crate::{error::Error, exit_status::ExitStatus, output::stream, sys::failure::errno_of};

/// Prints what was asked for; success is the status when it got there.
pub(super) fn print(text: &str) -> Result<u8, Error> {
    printed(stream::print(text))
}

/// The status of what was printed.
pub(super) fn printed(written: io::Result<()>) -> Result<u8, Error> {
    match written {
        Ok(()) => Ok(ExitStatus::Success as u8),
        Err(error) => Err(Error::new(
            ExitStatus::System,
            format!("standard output cannot be written: {}", errno_of(&error).desc()),
        )),
    }
}
