//! `rungate init --for`: an example policy for a place where people are. The text is that of `policies`,
//! which tests execute; only the directory of the repositories differs for root.

use std::path::Path;

use super::REPOSITORIES;
use crate::{
    cli::Place,
    policy::Policy,
    text::{error::Error, exit_status::ExitStatus},
};

/// The text of a policy, for a user.
pub(super) fn text(place: Place) -> &'static str {
    match place {
        Place::Agents => include_str!("../../../../policies/coding-agents.toml"),
        Place::Gpu => include_str!("../../../../policies/gpus.toml"),
        Place::Licences => include_str!("../../../../policies/licence-seats.toml"),
        Place::Cron => include_str!("../../../../policies/nightly-sync.toml"),
        Place::Ci => include_str!("../../../../policies/ci-host.toml"),
    }
}

/// The same for all users of the host.
pub(super) fn for_the_system(place: Place) -> String {
    let line = |line: &str| match line.strip_prefix("directory = \"{runtime}\"") {
        Some(_) => format!("directory = \"{REPOSITORIES}\"\n"),
        None => format!("{line}\n"),
    };
    text(place).lines().map(line).collect()
}

/// The repositories that have one lock file each.
pub(super) fn repositories(place: Place) -> Result<Vec<String>, Error> {
    let policy = Policy::of_text("policy.toml", text(place))
        .map_err(|faults| Error::new(ExitStatus::Policy, faults.to_string()))?;
    let fixed = policy.repositories().iter().filter(|known| known.fixed_path(Path::new("/")).is_some());
    Ok(fixed.map(|known| known.name().to_owned()).collect())
}

/// Three commands to try, and what they do.
pub(super) fn tries(place: Place, is_root: bool) -> [(String, &'static str); 3] {
    let shims = if is_root { "/etc/rungate/shims" } else { "~/.local/lib/rungate/shims" };
    let shim = format!("rungate shim install {shims}");
    let of_command = |command: &str| {
        [
            (format!("rungate explain -- {command}"), "what would happen, and why"),
            (format!("rungate run -- {command}"), "start it under the policy"),
            ("rungate policy edit".to_owned(), "put your own commands in; it is checked before it counts"),
        ]
    };
    match place {
        Place::Agents => [
            (shim, "then put this directory first in the PATH of the agents"),
            ("rungate explain -- cargo test".to_owned(), "what would happen, and why"),
            ("rungate status --watch".to_owned(), "who builds, and who waits"),
        ],
        Place::Gpu => of_command("train"),
        Place::Licences => of_command("matlab"),
        Place::Cron => of_command("nightly-sync"),
        Place::Ci => [
            ("rungate explain --as board-job -- make".to_owned(), "what would happen, and why"),
            ("rungate run --as board-job --wait 50m -- make".to_owned(), "a job that needs the board"),
            ("rungate policy edit".to_owned(), "put your own boards in; it is checked before it counts"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    /// For root the repositories are those of the host.
    #[test]
    fn every_text_becomes_a_policy_of_the_system() {
        for place in Place::value_variants() {
            let text = for_the_system(*place);
            assert!(text.contains("directory = \"/run/rungate\"\n") && !text.contains("{runtime}"), "{text}");
            assert!(Policy::of_text("policy.toml", text).is_ok());
            assert!(!repositories(*place).expect("no faults").is_empty());
        }
    }
}
