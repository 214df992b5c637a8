//! What `run` is asked to do, however it was asked: by a command line that clap read, by one so plain that it need not be
//! bothered, or by a shim. What excludes each other cannot be written here.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use crate::{
    cli::RunArguments,
    error::Error,
    exit_status::ExitStatus,
    launch::shim::Shim,
    output::visible::visible,
    policy::{Hold, Wait},
};

/// One command to start, and how.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Order {
    /// The command as it was typed; for a shim, the name that it bears.
    pub(super) command: OsString,
    /// What the program finds as its own name: argv\[0\].
    pub(super) zeroth: OsString,
    pub(super) arguments: Vec<OsString>,
    /// The shim that this process was started through.
    pub(super) shim: Option<Shim>,
    /// Another name for the rules.
    pub(super) typed_as: Option<OsString>,
    pub(super) wait: Option<Wait>,
    pub(super) hold: Option<Hold>,
    /// Instead of 75 and 124.
    pub(super) conflict_status: Option<u8>,
    pub(super) cap: Option<Cap>,
    pub(super) policy: Option<PathBuf>,
    pub(super) voice: Voice,
}

/// A limit of the command line's own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Cap {
    pub(super) limit: u32,
    /// One where it does not say.
    pub(super) slots: Option<u32>,
    /// The lock file; without it one that is named after the command.
    pub(super) repository: Option<PathBuf>,
}

/// How much is said.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Voice {
    /// Nothing when the command is refused.
    Quiet,
    #[default]
    Usual,
    /// Which slots were taken, too.
    Verbose,
}

impl Order {
    /// That of a shim: `matlab -r x` is `rungate run -- matlab -r x`.
    pub(super) fn through(shim: Shim, mut words: impl Iterator<Item = OsString>) -> Self {
        let command = shim.name.clone();
        // Whoever starts it without any argument has not given it a name either.
        let zeroth = words.next().unwrap_or_else(|| command.clone());
        Self { command, zeroth, arguments: words.collect(), shim: Some(shim), ..Self::default() }
    }

    /// That of a command line.
    pub(super) fn typed(arguments: RunArguments) -> Result<Self, Error> {
        let mut words = arguments.command.into_iter();
        let Some(command) = words.next() else { return Err(Error::new(ExitStatus::Usage, "no command")) };
        let wait = match &arguments.wait {
            _ if arguments.nonblock => Some(NOT_AT_ALL),
            None => None,
            Some(text) => Some(Wait::parse(text).ok_or_else(|| {
                let text = format!(
                    "--wait takes a time such as 90s, 10m or 1h30m, or forever, not \"{}\"",
                    visible(text)
                );
                Error::new(ExitStatus::Usage, text)
            })?),
        };
        let (slots, repository) = (arguments.slots, arguments.repository);
        Ok(Self {
            zeroth: command.clone(),
            command,
            arguments: words.collect(),
            shim: None,
            typed_as: arguments.typed_as,
            wait,
            hold: arguments.hold.as_deref().and_then(Hold::parse),
            conflict_status: arguments.conflict_exit_code,
            cap: arguments.limit.map(|limit| Cap { limit, slots, repository }),
            policy: arguments.policy.policy,
            voice: match (arguments.quiet, arguments.verbose) {
                (true, _) => Voice::Quiet,
                (false, true) => Voice::Verbose,
                (false, false) => Voice::Usual,
            },
        })
    }
}

/// `--nonblock`.
pub(super) const NOT_AT_ALL: Wait = Wait::For(Duration::ZERO);
