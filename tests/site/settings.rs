//! `[site]` of agent.toml: every fault with its place.

use crate::support::{Site, needs_root, set_mode};

/// Every fault named: what is wrong with the settings of the site, all at once.
#[test]
fn every_fault_of_the_sites_settings_is_told() {
    needs_root!();
    let site = Site::new();
    site.system_policy("");
    site.system_file(
        "agent.toml",
        "
        version = 1
        [site]
        endpoints = [\"etcd1:2379\", \"https://etcd2:2379\"]
        ca = \"etcd.pem\"
        certificate = \"/etc/etcd/host.pem\"
        ttl = \"1s\"
        margin = \"1m\"
        ",
    );
    set_mode(&site.path("etc/rungate/agent.toml"), 0o600);
    let outcome = site.test().program(env!("CARGO_BIN_EXE_rungate-agent")).args(["--check"]).outcome();
    for code in ["bad-endpoint", "relative-path", "too-short", "too-long", "needs-key"] {
        assert!(outcome.stderr.contains(&format!("[{code}]")), "{code}: {}", outcome.stderr);
    }
}

/// A site without members could admit nothing.
#[test]
fn a_site_has_a_member() {
    needs_root!();
    let site = Site::new();
    site.system_policy("");
    site.system_file("agent.toml", "version = 1\n[site]\nendpoints = []\n");
    set_mode(&site.path("etc/rungate/agent.toml"), 0o600);
    let outcome = site.test().program(env!("CARGO_BIN_EXE_rungate-agent")).args(["--check"]).outcome();
    assert!(
        outcome.stderr.contains("\"endpoints\" is empty; name a member of etcd [empty-list]\n"),
        "{outcome:?}"
    );
}

/// What the settings name must be there: `--check` finds it before the agent is started.
#[test]
fn a_file_that_is_missing_is_found_before_the_agent_is_started() {
    needs_root!();
    let site = Site::new();
    site.system_policy("");
    site.system_file(
        "agent.toml",
        "version = 1\n[site]\nendpoints = [\"https://etcd1:2379\"]\nca = \"/etc/rungate/no-ca.pem\"\n",
    );
    set_mode(&site.path("etc/rungate/agent.toml"), 0o600);
    site.test()
        .program(env!("CARGO_BIN_EXE_rungate-agent"))
        .args(["--check"])
        .stderr("rungate: the agent does not run: [site] of its settings: cannot read /etc/rungate/no-ca.pem: No such file or directory (os error 2)\n")
        .status(71);
}
