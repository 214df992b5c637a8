//! The agent: whether it answers, and of which version it is, where the policy has it keep slots.

use crate::{
    cli::Topic,
    commands::doctor::{
        examination::Examination, finding::Finding, page::counted, section::Section, services,
    },
    escape::{Show, visible},
    keeper::agent::{self, SOCKET},
    policy::Repository,
    terms::keeper::Keeper,
};

pub(super) fn look(examination: &Examination) -> Section {
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
        Ok(tables) => vec![
            Finding::fine("agent", format!("{SOCKET} answers; {} in use", counted(tables.len(), "table"))),
            version(),
        ],
        Err(error) => vec![
            Finding::fault("agent-silent", format!("{error}: launches that need it are refused"))
                .mend(start()),
        ],
    };
    Section::new(Topic::Agent, summary, findings)
}

/// An agent that was not started again after an upgrade goes on as it was.
fn version() -> Finding {
    let own = env!("CARGO_PKG_VERSION");
    let text = match agent::about() {
        Ok(about) if about.version == own => {
            return Finding::fine("agent-version", format!("it is of version {own}, as the launcher is"));
        }
        Ok(about) => format!("it is of version {}, and the launcher of {own}", visible(&about.version)),
        Err(_) => format!("it does not say its version, and the launcher is of {own}"),
    };
    Finding::warning("agent-version", text).mend(restart())
}

fn start() -> &'static str {
    if services::is_systemd() {
        "systemctl enable --now rungate-agent.socket"
    } else {
        "Start rungate-agent as root, from whatever starts services here."
    }
}

pub(super) fn restart() -> &'static str {
    if services::is_systemd() {
        "systemctl restart rungate-agent.service"
    } else {
        "Start rungate-agent again, as root; programs keep their slots meanwhile."
    }
}
