//! What the command line says about waiting and holding. It replaces the policy's defaults, and tightens, never loosens,
//! what a rule or a repository says.

use std::time::Duration;

use crate::{
    cli::RunArguments,
    decision::Terms,
    error::Error,
    exit_status::ExitStatus,
    output::visible::visible,
    policy::{self, Wait},
    repository::hold::Hold,
};

/// The wishes of one command line.
pub(super) struct Wishes {
    wait: Option<Wait>,
    hold: Option<policy::Hold>,
}

impl Wishes {
    /// Reads them.
    pub(super) fn of(arguments: &RunArguments) -> Result<Self, Error> {
        let wait = match &arguments.wait {
            _ if arguments.nonblock => Some(Wait::For(Duration::ZERO)),
            None => None,
            Some(text) => Some(Wait::parse(text).ok_or_else(|| {
                let text = format!(
                    "--wait takes a time such as 90s, 10m or 1h30m, or forever, not \"{}\"",
                    visible(text)
                );
                Error::new(ExitStatus::Usage, text)
            })?),
        };
        let hold = arguments.hold.as_deref().and_then(policy::Hold::parse);
        Ok(Self { wait, hold })
    }

    /// How long the launch may wait.
    pub(super) fn wait(&self, terms: &Terms<'_>) -> Wait {
        terms.wait.resolve(self.wait)
    }

    /// What is to keep its slots.
    pub(super) fn hold(&self, terms: &Terms<'_>) -> Hold {
        match terms.hold.resolve(self.hold) {
            policy::Hold::Process => Hold::Process,
            policy::Hold::Descriptor => Hold::Descriptor,
            policy::Hold::Supervisor => Hold::Supervisor,
            policy::Hold::Tree => Hold::Tree,
        }
    }
}
