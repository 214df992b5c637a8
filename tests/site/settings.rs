//! `[site]` of agent.toml: every fault with its place.

use super::{LASTING, held};
use crate::support::{Ending, Etcd, Host, Outcome, Site, Test, eventually, needs_etcd, needs_root, set_mode};

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
    let outcome = site.test().rungate_agent().args(["--check"]).outcome();
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
    let outcome = site.test().rungate_agent().args(["--check"]).outcome();
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
        .rungate_agent()
        .args(["--check"])
        .stderr("rungate: the settings have a fault: [site]: cannot read /etc/rungate/no-ca.pem: No such file or directory (os error 2)\n")
        .status(78);
}

/// Repositories with a table for each directory.
const DIRECTORIES: &str = "
    [repository.projects]
    keeper = \"site\"
    per    = \"directory\"
    limit  = 2

    [repository.rested]
    keeper     = \"site\"
    per        = \"directory\"
    limit      = 1
    if_elapsed = \"1h\"

    [[rule]]
    commands = [\"matlab\"]
    acquire  = [\"projects\"]

    [[rule]]
    commands = [\"other\"]
    acquire  = [\"rested\"]
    ";

const TOO_MANY: &str = "not started: the agent refuses: this user would have too many tables ([agent] members in \
                        /etc/rungate/agent.toml)\n";

fn launch(host: &Host, command: &str, directory: &str) -> Test {
    host.test().user("games").directory(directory).args(["run", "--", command])
}

/// It starts once the site has taken back what was used before.
#[track_caller]
fn starts(launch: &Test) {
    eventually("there is room for a table", || match launch.outcome() {
        Outcome { ending: Ending::Status(0), .. } => Some(()),
        outcome if outcome.lost_its_patience() => None,
        Outcome { stderr, .. } => {
            assert!(stderr.contains(TOO_MANY), "{stderr}");
            None
        }
    });
}

/// `members` counts tables of the site too, and those that nobody needs make room.
#[test]
fn tables_of_the_site_count_and_those_that_nobody_needs_make_room() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let settings = etcd.settings(&Etcd::prefix(), LASTING);
    let host = Host::new("lab1", DIRECTORIES, &format!("{settings}[agent]\nmembers = 2\n"));
    let directories = ["/", "/usr", "/etc", "/var", "/opt"];
    for directory in directories {
        starts(&launch(&host, "matlab", directory));
    }
    // Two pauses are on.
    starts(&launch(&host, "other", "/"));
    starts(&launch(&host, "other", "/usr"));
    for command in ["other", "matlab"] {
        launch(&host, command, "/etc").stderr(&format!("rungate: {command}: {TOO_MANY}")).status(74);
    }
}

/// A pause that is over keeps nobody from another table, although the site still knows the last use.
#[test]
fn tables_whose_pause_is_over_make_room() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let settings = etcd.settings(&Etcd::prefix(), LASTING);
    let policy = DIRECTORIES.replace("\"1h\"", "\"1s\"");
    let host = Host::new("lab1", &policy, &format!("{settings}[agent]\nmembers = 2\n"));
    for directory in ["/", "/usr", "/etc", "/var", "/opt"] {
        starts(&launch(&host, "other", directory));
    }
}

/// A table that was there because of another host counts for whoever uses it here as well.
#[test]
fn tables_that_another_host_has_shown_count_for_their_users() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let settings = etcd.settings(&Etcd::prefix(), LASTING);
    let settings = format!("{settings}[agent]\nmembers = 1\n");
    let [one, two] = ["lab1", "lab2"].map(|name| Host::new(name, DIRECTORIES, &settings));
    let mut first = launch(&one, "matlab", "/usr").spawn();
    eventually("the other host knows it", || (held(&two) == 1).then_some(()));
    launch(&two, "matlab", "/usr").status(0);
    launch(&two, "matlab", "/etc").stderr(&format!("rungate: matlab: {TOO_MANY}")).status(74);
    first.close_stdin();
    first.end();
    starts(&launch(&two, "matlab", "/etc"));
}
