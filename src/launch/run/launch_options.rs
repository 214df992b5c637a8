//! The options of `run`, whether the launcher read them, clap did, or a shim implied them. Options that
//! exclude each other cannot both be expressed.

use std::{ffi::OsString, os::fd::RawFd, path::PathBuf, time::Duration};

#[cfg(feature = "tools")]
use crate::{
    cli::{AcquireArguments, RunArguments},
    text::{Error, ExitStatus, visible},
};
use crate::{
    judge::terms::{Hold, Keyword},
    launch::Shim,
    policy::Wait,
};

/// One command to start, and how.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct LaunchOptions {
    /// The command as it was typed; for a shim, its name.
    pub(crate) command: OsString,
    /// What the program finds as its own name: argv\[0\].
    pub(crate) argv0: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// The shim that this process was started through.
    pub(crate) shim: Option<Shim>,
    /// Another name for the rules.
    pub(crate) typed_as: Option<OsString>,
    pub(crate) wait: Option<Wait>,
    pub(crate) hold: Option<Hold>,
    /// Instead of 75 and 124.
    pub(crate) conflict_status: Option<u8>,
    pub(crate) cap: Option<Cap>,
    pub(crate) policy: Option<PathBuf>,
    pub(crate) voice: Voice,
    /// Whether the end of a wait is announced.
    pub(crate) notify: bool,
    /// The number of the agent's FIFO that keeps the slots instead of a program, and the caller's descriptor.
    pub(crate) opened: Option<(u64, RawFd)>,
}

/// The limit of the command line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Cap {
    pub(crate) limit: u32,
    /// One if it is not given.
    pub(crate) slots: Option<u32>,
    /// The lock file; without it one that is named after the command.
    pub(crate) repository: Option<PathBuf>,
}

/// How much is printed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Voice {
    /// Nothing when the command is refused.
    Quiet,
    #[default]
    Usual,
    /// Also which slots were acquired.
    Verbose,
}

impl LaunchOptions {
    /// The command, as rules see it.
    pub(crate) fn name_for_rules(&self) -> &OsString {
        self.typed_as.as_ref().unwrap_or(&self.command)
    }

    /// The options of a shim: `matlab -r x` is `rungate run -- matlab -r x`.
    pub(crate) fn through(shim: Shim, mut words: impl Iterator<Item = OsString>) -> Self {
        let command = shim.name.clone();
        // A process that was started without any argument has no name either.
        let argv0 = words.next().unwrap_or_else(|| command.clone());
        Self { command, argv0, arguments: words.collect(), shim: Some(shim), ..Self::default() }
    }

    /// The options of a command line; the policy is an option of all commands.
    #[cfg(feature = "tools")]
    pub(crate) fn typed(arguments: &RunArguments) -> Result<Self, Error> {
        let Some((command, words)) = arguments.command.split_first() else {
            return Err(Error::new(ExitStatus::Usage, "no command"));
        };
        let wait = match &arguments.wait {
            _ if arguments.nonblock => Some(NOT_AT_ALL),
            text => typed_wait(text.as_deref())?,
        };
        let (slots, repository) = (arguments.slots, arguments.repository.clone());
        Ok(Self {
            argv0: command.clone(),
            command: command.clone(),
            arguments: words.to_vec(),
            shim: None,
            typed_as: arguments.typed_as.clone(),
            wait,
            hold: arguments.hold.as_deref().and_then(Hold::of),
            conflict_status: arguments.conflict_exit_code,
            cap: arguments.limit.map(|limit| Cap { limit, slots, repository }),
            policy: None,
            voice: match (arguments.quiet, arguments.verbose) {
                (true, _) => Voice::Quiet,
                (false, true) => Voice::Verbose,
                (false, false) => Voice::Usual,
            },
            notify: arguments.notify,
            opened: None,
        })
    }

    /// Those of `rungate acquire`.
    #[cfg(feature = "tools")]
    pub(crate) fn typed_to_acquire(arguments: &AcquireArguments) -> Result<Self, Error> {
        let Some((command, words)) = arguments.command.split_first() else {
            return Err(Error::new(ExitStatus::Usage, "no command"));
        };
        Ok(Self {
            argv0: command.clone(),
            command: command.clone(),
            arguments: words.to_vec(),
            wait: typed_wait(arguments.wait.as_deref())?,
            hold: Some(Hold::Descriptor),
            cap: arguments.limit.map(|limit| Cap { limit, slots: None, repository: None }),
            ..Self::default()
        })
    }
}

/// The longest wait that the command line names, or what is wrong with it.
#[cfg(feature = "tools")]
fn typed_wait(text: Option<&str>) -> Result<Option<Wait>, Error> {
    let Some(text) = text else { return Ok(None) };
    Wait::parse(text).map(Some).ok_or_else(|| {
        let text =
            format!("--wait takes a time such as 90s, 10m or 1h30m, or forever, not \"{}\"", visible(text));
        Error::new(ExitStatus::Usage, text)
    })
}

/// `--nonblock`.
pub(crate) const NOT_AT_ALL: Wait = Wait::For(Duration::ZERO);
