//! The messages of clap: for a command line that it cannot read, or one that asks for help.

use std::ffi::OsString;

use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::CommandLine;
use crate::text::{
    error::{Error, ExitStatus},
    escape::{visible, visible_lines, word},
    stream::print,
};

/// Prints the help that was asked for, or the error of a command line that cannot be read.
pub(crate) fn complain(error: &clap::Error, arguments: &[OsString]) -> Result<u8, Error> {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => print(&text),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Error::plain(ExitStatus::Usage, text.trim_end()))
        }
        _ => {
            // The suggestion repeats the typed words.
            let text = visible_lines(text.trim_end().trim_start_matches("error: "));
            Err(Error::new(ExitStatus::Usage, text).advise(meant(error, arguments)))
        }
    }
}

/// The likely intention: a word that is no subcommand is a program to start, and a subcommand below another
/// one is meant by itself.
fn meant(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let is_first = arguments.get(1).is_some_and(|first| first == typed.as_str());
    let is_near = error.get(ContextKind::SuggestedSubcommand).is_some();
    if !is_first && CommandLine::command().find_subcommand(typed).is_some() {
        return Some(format!("There is: rungate {}", visible(typed)));
    }
    (is_first && !is_near).then(|| format!("To start a program: rungate run -- {}", word(typed)))
}
