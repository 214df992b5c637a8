//! `rungate shim`: links to rungate in front of programs.

mod links;
mod list;
mod reach;

use crate::{cli::ShimAction, text::error::Error};

/// Does what was asked for.
pub(crate) fn run(arguments: &ShimAction) -> Result<u8, Error> {
    match arguments {
        ShimAction::Install(arguments) => links::install(arguments),
        ShimAction::List(arguments) => list::run(arguments),
        ShimAction::Remove(arguments) => links::remove(arguments),
    }
}
