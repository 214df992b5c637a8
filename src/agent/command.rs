//! The third program, `rungate-agent`: its command line, and its messages when it cannot serve.

use std::ffi::OsString;

use clap::Parser;

use super::{Fatal, Level, Options, Topic, log::log};
use crate::{
    agent,
    cli::{AgentArguments, help},
    launch::SystemNames,
    sys::journal,
    text::{Error, ExitStatus, print},
};

/// Serves with these arguments.
pub(crate) fn main(arguments: &[OsString]) -> Result<u8, Error> {
    let AgentArguments { socket, state, settings, check } = match AgentArguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) if !error.use_stderr() => return print(&error.to_string()),
        Err(error) => return help::complain(&error, &[]),
    };
    let options = Options { socket, state, settings };
    if check {
        return agent::check(&options).map(|()| ExitStatus::Success as u8).map_err(|fatal| error(&fatal));
    }
    let served = agent::serve(&options, &SystemNames).map_err(|fatal| error(&fatal));
    match served {
        // In the journal, the reason has its level.
        Err(error) if journal::has_standard_error() => {
            log(Level::Error, Topic::Start, error.what());
            Ok(error.status() as u8)
        }
        served => served.map(|()| ExitStatus::Success as u8),
    }
}

fn error(fatal: &Fatal) -> Error {
    match fatal {
        Fatal::Settings(faults) => {
            Error::new(ExitStatus::Policy, format!("the settings have faults\n{faults}"))
        }
        Fatal::Policy(faults) => Error::new(ExitStatus::Policy, format!("the policy has faults\n{faults}")),
        Fatal::Site(_) => Error::new(ExitStatus::Policy, format!("the settings have a fault: {fatal}")),
        Fatal::InsecurePath(_) => Error::new(ExitStatus::Policy, format!("the agent does not run: {fatal}")),
        _ => Error::new(ExitStatus::System, format!("the agent does not run: {fatal}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;

    /// A command line that cannot be read is an error, and so is what keeps the agent from its work: each
    /// with its status.
    #[test]
    fn what_keeps_the_agent_from_its_work_has_a_status() {
        let wrong = main(&["rungate-agent", "--nonsense"].map(OsString::from));
        assert_eq!(wrong.map_err(|error| error.status()), Err(ExitStatus::Usage));
        let faults = || Policy::of_text("policy.toml", "[nonsense]\n").expect_err("it has a fault");
        for (fatal, status) in [
            (Fatal::Settings(faults()), ExitStatus::Policy),
            (Fatal::Policy(faults()), ExitStatus::Policy),
            (Fatal::Site("cannot read /etc/rungate/ca.pem".to_owned()), ExitStatus::Policy),
            (Fatal::NotRoot, ExitStatus::System),
        ] {
            assert_eq!(error(&fatal).status(), status);
        }
    }
}
