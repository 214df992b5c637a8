//! The command line of `rungate-agent`.

use std::path::PathBuf;

use clap::Parser;

/// Keep slots that no user can take, forge, keep or delete.
#[derive(Debug, Parser)]
#[command(name = "rungate-agent", version, max_term_width = 80)]
pub struct AgentArguments {
    /// Listen here, unless the service manager has opened a socket
    #[arg(long, value_name = "PATH", default_value = "/run/rungate-agent/socket")]
    pub socket: PathBuf,
    /// Write down here what is kept
    #[arg(long, value_name = "DIR", default_value = "/run/rungate-agent/state")]
    pub state: PathBuf,
    /// Read the settings here, and nowhere else [default: /etc/rungate/agent.toml, if it is there]
    #[arg(long, value_name = "PATH")]
    pub settings: Option<PathBuf>,
    /// Look whether the settings are right, and end
    #[arg(long)]
    pub check: bool,
}
