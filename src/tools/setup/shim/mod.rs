//! `rungate shim`: links to rungate in front of programs.

mod links;
mod list;
mod reach;

use crate::{cli::ShimAction, launch::situation::Situation, text::error::Error};

/// Does what was asked for.
pub(crate) fn run(arguments: &ShimAction, situation: &Situation) -> Result<u8, Error> {
    match arguments {
        ShimAction::Install(arguments) => links::install(arguments, situation),
        ShimAction::List(arguments) => list::run(arguments, situation),
        ShimAction::Remove(arguments) => links::remove(arguments, situation),
    }
}
