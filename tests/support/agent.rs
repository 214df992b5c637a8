//! The agent at a site. It and the launchers of the site see `$DIR/system-run` in the place of `/run`, and
//! the site's `/etc`, so that neither needs to be told where the other is.

use std::ffi::OsStr;
use std::fs::create_dir_all;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::Value;

use super::deadline::eventually;
use super::running::Running;
use super::site::{Site, set_mode};
use super::test::Test;

/// A message that asks for all tables.
pub(crate) const LOOK: [u8; 10] = [6, 0, 0, 0, 1, 6, 0, 0, 0, 0];

/// What `list --json` shows to whoever would run this command, also of what nobody uses.
#[track_caller]
pub(crate) fn listing(test: &Test) -> Vec<Value> {
    let all = answered(&test.clone().args(["status", "--json"]));
    let all = all.as_array().expect("a list of repositories").iter();
    let mut names: Vec<String> =
        all.filter_map(|one| one["repository"].as_str()).map(str::to_owned).collect();
    names.dedup();
    if names.is_empty() {
        return Vec::new();
    }
    let listed = answered(&test.clone().args(["list", "--json"]).args(names));
    listed.as_array().expect("a list of repositories").clone()
}

/// The JSON that a command prints, whatever its status. An agent that was not scheduled for longer than
/// anybody is patient is asked again.
#[track_caller]
pub(crate) fn answered(test: &Test) -> Value {
    let outcome = eventually("the agent answers", || {
        let is_silent = |text: &str| text.contains("has not answered for");
        Some(test.outcome()).filter(|said| !is_silent(&said.stdout) && !is_silent(&said.stderr))
    });
    serde_json::from_str(&outcome.stdout).expect(&outcome.stderr)
}

impl Site {
    /// A site with this system policy and an agent. Only root can have one.
    #[track_caller]
    pub(crate) fn with_agent(policy: &str) -> (Self, Running) {
        let site = Self::new();
        site.system_policy(policy);
        site.directory_over_run();
        let directory = site.path("system-run/rungate-agent");
        create_dir_all(&directory).expect("create the directory of the socket");
        set_mode(&directory, 0o755);
        let agent = site.agent();
        (site, agent)
    }

    /// Starts an agent, and returns when it answers.
    #[track_caller]
    pub(crate) fn agent(&self) -> Running {
        self.agent_through::<String>([])
    }

    /// The same, started by others that become it.
    #[track_caller]
    pub(crate) fn agent_through<A: AsRef<OsStr>>(&self, prefix: impl IntoIterator<Item = A>) -> Running {
        let agent = self.test().rungate_agent().through(prefix).background();
        eventually("the agent answers", || self.asks_the_agent().ok());
        agent
    }

    /// Asks for all tables, and waits for the start of the answer.
    pub(crate) fn asks_the_agent(&self) -> io::Result<()> {
        let mut connection = UnixStream::connect(self.agent_socket())?;
        connection.write_all(&LOOK)?;
        connection.read_exact(&mut [0])
    }

    /// Where it listens.
    pub(crate) fn agent_socket(&self) -> PathBuf {
        self.path("system-run/rungate-agent/socket")
    }

    /// Where it records what it keeps.
    pub(crate) fn agent_state(&self) -> PathBuf {
        self.path("system-run/rungate-agent/state")
    }
}
