//! The messages of exectimes, in the words of the original.

use std::{ffi::OsStr, fmt::Display};

use crate::{
    acquire::refusal::{Full, Reason, Refusal},
    text::escape::visible,
};

pub(crate) const USAGE: &str = "Usage: exectimes lock-file max-instances command";

/// MAX is not a number, which the original would take for 0.
pub(crate) fn no_number(most: &OsStr) -> String {
    format!("exectimes: max-instances is a number from 0 to 4294967295, not \"{}\"\n{USAGE}", visible(most))
}

/// The lock file cannot be checked.
pub(crate) fn cannot_open(error: impl Display) -> String {
    format!("Failed to open file: {error}")
}

/// Its locks cannot be checked or taken.
pub(crate) fn cannot_lock(error: impl Display) -> String {
    format!("Failed to lock file: {error}")
}

/// The answer cannot be printed.
pub(crate) fn cannot_write(error: impl Display) -> String {
    format!("Failed to write: {error}")
}

/// The program cannot be started.
pub(crate) fn cannot_execute(error: impl Display) -> String {
    format!("exec failed: {error}")
}

/// Waiting launches have a claim to free slots. If that is the reason, the original's message would be wrong
/// without it.
pub(crate) fn cannot_start(refusal: &Refusal<'_>, limit: u32) -> String {
    let full = refusal.claims().find_map(|refused| match &refused.reason {
        Reason::Full(full) => Some(full),
        Reason::Never | Reason::TooSoon { .. } => None,
    });
    let used = full.map_or(0, Full::used);
    let waiting = full.filter(|_| used < u64::from(limit)).map_or(0, Full::waiting);
    let waiting = if waiting > 0 { format!(", {waiting} waiting") } else { String::new() };
    format!("Cannot start, {used} instances already running{waiting}")
}
