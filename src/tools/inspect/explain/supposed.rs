//! What `explain` is to suppose: another time, host, directory or environment than there is.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
};

use jiff::Timestamp;

use crate::{
    cli::ExplainArguments,
    launch::situation::Situation,
    policy::Policy,
    text::{clock::Clock, error::Error, escape::visible, exit_status::ExitStatus},
};

/// What the command line supposes instead of what is.
pub(crate) struct Supposed {
    pub(crate) now: Timestamp,
    /// Variables with their values; without one they are not set.
    environment: Vec<(String, Option<OsString>)>,
}

impl Supposed {
    /// Reads it, and puts host and directory in their place. A time is that of the policy's zone, as in a
    /// rule's `when`.
    pub(crate) fn of(
        arguments: &ExplainArguments,
        policy: &Policy,
        situation: &mut Situation,
    ) -> Result<Self, Error> {
        let now = match &arguments.at {
            None => Timestamp::now(),
            Some(text) => Clock::in_zone(policy.time_zone()).read(text).ok_or_else(|| {
                let text = format!(
                    "--at takes a time such as 14:02 or \"2026-11-20 14:02\", not \"{}\"",
                    visible(text)
                );
                Error::new(ExitStatus::Usage, text)
            })?,
        };
        if let Some(host) = &arguments.host {
            situation.host.clone_from(host);
        }
        if let Some(directory) = &arguments.directory {
            situation.directory = situation.directory.join(directory);
        }
        let environment = arguments.environment.iter().map(|entry| variable(entry)).collect();
        Ok(Self { now, environment })
    }

    /// A variable of the environment.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        match self.environment.iter().rev().find(|(known, _)| known == name) {
            Some((_, value)) => value.clone(),
            None => env::var_os(name),
        }
    }
}

fn variable(entry: &OsStr) -> (String, Option<OsString>) {
    let bytes = entry.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => {
            let name = String::from_utf8_lossy(&bytes[..at]).into_owned();
            (name, Some(OsStr::from_bytes(&bytes[at + 1..]).to_owned()))
        }
        None => (entry.to_string_lossy().into_owned(), None),
    }
}
