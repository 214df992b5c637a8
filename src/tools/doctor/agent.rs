//! The agent: whether it answers, and its version, if the policy uses it.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::Path,
    process,
};

use super::{
    boot,
    context::Context,
    finding::{Finding, Section},
    page::counted,
    repositories::how_to_mend,
};
use crate::{
    cli::Topic,
    judge::terms::keyword::Keeper,
    keeper::agent::{self, SOCKET},
    policy::Repository,
    sys::failure::errno_of,
    text::escape::{Show, visible},
};

/// Where the agent of the package keeps its state.
const STATE: &str = "/run/rungate-agent/state";

pub(super) fn look(examination: &Context) -> Section {
    let Some(policy) = examination.policy() else {
        return Section::without_policy(Topic::Agent);
    };
    let kept = policy.repositories().iter().filter(|known| known.keeper() != Keeper::File);
    let names: Vec<String> = kept.map(Repository::shown_name).map(|name| name.shown().to_string()).collect();
    if names.is_empty() {
        return Section::new(Topic::Agent, "not needed: lock files keep all slots", Vec::new());
    }
    let summary = format!("keeps {}", names.join(", "));
    let findings = match agent::tables() {
        Ok(tables) => {
            let answers = format!("{SOCKET} answers; {} in use", counted(tables.len(), "table"));
            let version = version(agent::about().ok().as_ref().map(|about| about.version.as_str()));
            let unwritable = unwritable_state().filter(|_| examination.is_root());
            [Finding::fine("agent", answers), version].into_iter().chain(unwritable).collect()
        }
        Err(error) => vec![
            Finding::fault("agent-silent", format!("{error}: launches that need it are refused"))
                .mend(start()),
        ],
    };
    Section::new(Topic::Agent, summary, findings)
}

/// Writes beside what the agent records before it gives a slot.
fn unwritable_state() -> Option<Finding> {
    let directory = Path::new(STATE);
    let path = directory.join(format!(".doctor-{}", process::id()));
    let written = File::create_new(&path).and_then(|mut file| {
        file.write_all(&[0; 4096])?;
        file.sync_all()
    });
    let _ = fs::remove_file(&path);
    let error = written.err().filter(|error| error.kind() != ErrorKind::NotFound)?;
    let errno = errno_of(&error);
    let text = format!(
        "{}: {}: it cannot save its state, and launches are refused (74)",
        directory.shown(),
        errno.desc()
    );
    Some(Finding::fault("agent-state", text).mend(how_to_mend(errno, &path)))
}

/// An agent that was not restarted after an upgrade continues with the old program.
fn version(of_agent: Option<&str>) -> Finding {
    let own = env!("CARGO_PKG_VERSION");
    let text = match of_agent {
        Some(version) if version == own => {
            return Finding::fine("agent-version", format!("it is of version {own}, as the launcher is"));
        }
        Some(version) => format!("it is of version {}, and the launcher of {own}", visible(version)),
        None => format!("it does not say its version, and the launcher is of {own}"),
    };
    Finding::warning("agent-version", text).mend(restart())
}

fn start() -> &'static str {
    if boot::is_systemd() {
        "systemctl enable --now rungate-agent.socket"
    } else {
        "Start rungate-agent as root, from whatever starts services here."
    }
}

pub(super) fn restart() -> &'static str {
    if boot::is_systemd() {
        "systemctl restart rungate-agent.service"
    } else {
        "Start rungate-agent again, as root; programs keep their slots meanwhile."
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::doctor::agent::*;

    /// A test cannot have another release, so another version is only simulated here.
    #[test]
    fn an_agent_of_another_version_is_warned_of() {
        let own = env!("CARGO_PKG_VERSION");
        let fine = Finding::fine("agent-version", format!("it is of version {own}, as the launcher is"));
        assert_eq!(version(Some(own)), fine);
        for (of_agent, said) in [
            (Some("0.0.9"), format!("it is of version 0.0.9, and the launcher of {own}")),
            (None, format!("it does not say its version, and the launcher is of {own}")),
        ] {
            assert_eq!(version(of_agent), Finding::warning("agent-version", said).mend(restart()));
        }
    }
}
