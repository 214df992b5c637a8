//! The state directory is root's alone, and so nobody reaches a socket in it: the agent says so, and does not
//! serve.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Ending, Site, eventually, needs_root};

#[test]
fn a_socket_in_the_state_directory_is_refused() {
    needs_root!();
    let directory = "/run/rungate-agent";
    for (socket, state) in [
        ("/run/rungate-agent/socket", directory),
        ("/run/rungate-agent/sockets/socket", directory),
        ("/run/rungate-agent/socket", "/run/rungate-agent/sockets/.."),
    ] {
        let (site, agent) = Site::with_agent("");
        agent.kill();
        fs::remove_file(site.agent_socket()).expect("the socket");
        fs::create_dir(site.path("system-run/rungate-agent/sockets")).expect("a directory");
        let test = site.test().rungate_agent();
        let mut agent = test.args(["--socket", socket, "--state", state]).background();
        let mode = || {
            let metadata = fs::metadata(site.path("system-run/rungate-agent"));
            metadata.expect("the directory").permissions().mode() & 0o777
        };
        eventually("it ends, or has its directory", || (agent.is_zombie() || mode() != 0o755).then_some(()));
        assert_eq!(mode(), 0o755, "{socket} in {state}: whoever calls does not reach it");
        let outcome = agent.end();
        assert!(matches!(outcome.ending, Ending::Status(1..)), "{outcome:?}");
        assert!(outcome.stderr.starts_with("rungate: the agent does not run: "), "{outcome:?}");
        assert!(outcome.stderr.contains(socket) && outcome.stderr.contains("state"), "{outcome:?}");
    }
}
