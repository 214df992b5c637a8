//! `[site]` of agent.toml: every fault with its place.

use crate::support::{Site, needs_root, set_mode};

/// "Every fault named": what is wrong with the settings of the site, all at once.
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
