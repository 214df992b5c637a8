//! "`systemctl reload rungate-agent` lets its log say what has changed": SIGHUP, and what the log and the journal
//! have of it.

use std::{
    fs,
    os::unix::{fs::chown, net::UnixDatagram},
    path::{Path, PathBuf},
    time::Duration,
};

use nix::sys::signal::Signal;

use super::{held, seats, settings};
use crate::support::{self, Ending, Running, Site, eventually, needs_root, set_mode};

/// What starts an agent whose standard error is the file `agent.log`; the journal's, if `is_journal`.
fn with_log(site: &Site, is_journal: bool) -> [String; 4] {
    let journal = if is_journal { "export JOURNAL_STREAM=$(stat -Lc %d:%i /dev/stderr); " } else { "" };
    let become_it = format!("exec 2>>\"$0\"; {journal}exec \"$@\"");
    ["sh".to_owned(), "-c".to_owned(), become_it, site.path("agent.log").display().to_string()]
}

fn agent(site: &Site, is_journal: bool) -> Running {
    site.agent_through(with_log(site, is_journal))
}

/// What the log has, once it has this.
#[track_caller]
fn log_with(site: &Site, text: &str) -> String {
    eventually("the log has it", || {
        fs::read_to_string(site.path("agent.log")).ok().filter(|log| log.contains(text))
    })
}

fn forget(site: &Site) {
    fs::write(site.path("agent.log"), "").expect("an empty log");
}

/// "Its first line has the version, the limits that differ from the defaults, the site, and how many launches have
/// slots."
#[test]
fn the_first_line_has_version_settings_and_site() {
    needs_root!();
    let (site, first) = seats(1, "");
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    first.kill();
    settings::write(&site, "version = 1\n[agent]\nrate = 7\nplaces = 100\n");
    let _agent = agent(&site, false);
    let log = log_with(&site, "keeper = \"site\": 0\n");
    let version = env!("CARGO_PKG_VERSION");
    let first = format!(
        "rungate-agent: version {version}; limits: rate = 7, places = 100; site: none; launches with slots: 1\n"
    );
    assert!(log.starts_with(&first), "{log}");
    let policy = "files: 1, rules: 1, repositories with keeper = \"agent\": 1, with keeper = \"site\": 0\n";
    assert!(log.contains(&format!("\nrungate-agent: policy: {policy}")), "{log}");
}

/// A reload says what has changed since the last one, key by key; with a fault it says the fault, holders keep
/// their slots, and the next one compares with the last policy without faults.
#[test]
fn a_reload_says_what_has_changed() {
    needs_root!();
    let (site, first) = seats(1, "");
    first.kill();
    let agent = agent(&site, false);
    log_with(&site, "policy: ");
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let before = held(&site);
    assert_eq!(before.len(), 1);

    forget(&site);
    agent.signal(Signal::SIGHUP);
    let log = log_with(&site, "\n");
    assert_eq!(log, "rungate-agent: the policy was read again: nothing has changed\n");

    site.system_policy(&support::seats(2, "keeper = \"agent\"", &["matlab", "other"]));
    forget(&site);
    agent.signal(Signal::SIGHUP);
    let log = log_with(&site, "1 -> 2\n");
    assert!(log.starts_with("rungate-agent: the policy was read again:\n~ repository "), "{log}");
    assert!(log.contains("\n    limit  1 -> 2\n"), "{log}");

    site.system_policy("[repository.x]\nlimt = 1\n");
    forget(&site);
    agent.signal(Signal::SIGHUP);
    let log = log_with(&site, "[unknown-key]\n");
    assert!(log.starts_with("rungate-agent: the policy has faults, and launches are refused until"), "{log}");
    assert_eq!(held(&site), before, "holders keep their slots");
    // What the unit runs before it sends the signal.
    let check = site.test().rungate_agent().args(["--check"]);
    let said = check.clone().outcome();
    assert!(said.stderr.starts_with("rungate: the policy has faults\n"), "{}", said.stderr);
    check.clone().stderr(&said.stderr).status(78);

    site.system_policy(&support::seats(3, "keeper = \"agent\"", &["matlab", "other"]));
    check.status(0);
    forget(&site);
    agent.signal(Signal::SIGHUP);
    log_with(&site, "\n    limit  2 -> 3\n");
    assert_eq!(held(&site), before);
}

/// "Settings count when the agent starts; if they have changed, the log says that a restart is needed."
#[test]
fn a_reload_says_that_settings_need_a_restart() {
    needs_root!();
    let (site, first) = seats(1, "");
    first.kill();
    let agent = agent(&site, false);
    log_with(&site, "policy: ");
    settings::write(&site, "version = 1\n[agent]\nrate = 7\n");
    agent.signal(Signal::SIGHUP);
    log_with(&site, "the settings have changed, and the former ones are in force: systemctl restart");
    settings::write(&site, "version = 1\n[agent]\nrat = 7\n");
    agent.signal(Signal::SIGHUP);
    log_with(&site, "the settings cannot be used, and the former ones are in force: ");
}

/// The socket at which the journal of a site listens.
fn journal(site: &Site) -> (PathBuf, UnixDatagram) {
    let socket: PathBuf = site.path("system-run/systemd/journal/socket");
    fs::create_dir_all(socket.parent().unwrap_or(Path::new("/"))).expect("a directory");
    let journal = UnixDatagram::bind(&socket).expect("a socket");
    journal.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    (socket, journal)
}

/// The fields behind the message of an entry.
fn fields(level: u8, topic: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "PRIORITY={level}\nSYSLOG_IDENTIFIER=rungate-agent\nRUNGATE_AGENT={topic}\nRUNGATE_VERSION={version}\n"
    )
}

/// The fields of the next entry of the journal.
fn entry(journal: &UnixDatagram) -> String {
    let mut bytes = [0; 4096];
    let count = journal.recv(&mut bytes).expect("an entry in time");
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

/// "If standard error is the journal, each message is one entry with the fields", and one of several lines stays one
/// entry. If the journal does not listen, each line of standard error begins with its level.
#[test]
fn the_journal_gets_levels_and_fields() {
    needs_root!();
    let (site, first) = seats(1, "");
    first.kill();
    let (socket, journal) = journal(&site);
    let first = agent(&site, true);
    let started = entry(&journal);
    assert!(started.starts_with("MESSAGE=version ") && started.ends_with(&fields(6, "start")), "{started}");
    let policy = entry(&journal);
    assert!(policy.starts_with("MESSAGE=policy: ") && policy.ends_with(&fields(6, "policy")), "{policy}");
    site.system_policy("[repository.x]\nlimt = 1\n");
    first.signal(Signal::SIGHUP);
    let fault = entry(&journal);
    assert!(fault.starts_with("MESSAGE\n") && fault.contains("[unknown-key]\n"), "{fault}");
    assert!(fault.ends_with(&fields(3, "policy")), "{fault}");
    assert_eq!(fs::read_to_string(site.path("agent.log")).expect("its standard error"), "");
    first.kill();

    fs::remove_file(&socket).expect("the journal is gone");
    let _second = agent(&site, true);
    let log = log_with(&site, "[unknown-key]\n");
    assert!(log.starts_with("<6>version ") && log.lines().all(|line| line.starts_with('<')), "{log}");
    assert!(log.lines().any(|line| line.starts_with("<3>the policy has faults")), "{log}");
}

/// An agent that cannot serve says why in the journal, with the level of an error, and nothing on its
/// standard error.
#[test]
fn the_journal_gets_why_an_agent_does_not_serve() {
    needs_root!();
    let (site, first) = seats(1, "");
    first.kill();
    settings::write(&site, "version = 1\n[agent]\nrat = 7\n");
    let (_, journal) = journal(&site);
    site.test().rungate_agent().through(with_log(&site, true)).status(78);
    // It has ended, so its entry is there.
    journal.set_nonblocking(true).expect("a socket");
    let fault = entry(&journal);
    assert!(fault.contains("the settings have faults\n") && fault.contains("[unknown-key]\n"), "{fault}");
    assert!(fault.ends_with(&fields(3, "start")), "{fault}");
    assert_eq!(fs::read_to_string(site.path("agent.log")).expect("its standard error"), "");
}

/// If there is no site, a repository of the site is kept on this host alone. The log says so once.
#[test]
fn the_log_says_once_that_there_is_no_site() {
    needs_root!();
    let (site, first) = Site::with_agent(&support::seats(1, "keeper = \"site\"", &["matlab"]));
    first.kill();
    site.program("matlab");
    let _agent = agent(&site, false);
    let log = log_with(&site, "; limits: defaults; site: none; launches with slots: 0\n");
    assert!(!log.contains("alone"), "{log}");
    for _ in 0..2 {
        assert_eq!(site.test().args(["run", "--", "matlab"]).outcome().ending, Ending::Status(0));
    }
    let log = log_with(&site, "is kept on this host alone");
    assert_eq!(log.matches("is kept on this host alone").count(), 1, "{log}");
}

/// A delegated file with faults is in the log with its place, when the agent starts and at each reload. The rest of
/// the policy is in force.
#[test]
fn the_log_names_a_delegated_file_with_faults() {
    needs_root!();
    let (site, first) = Site::with_agent(
        "
        [delegate.\"20-cad.toml\"]
        owner    = \"cadadm\"
        users    = [\"ann\"]
        commands = [\"matlab\"]

        [repository.seats]
        keeper = \"agent\"
        limit  = 1
        ",
    );
    first.kill();
    site.account("ann", &[]);
    site.account("cadadm", &[]);
    let folder = site.path("etc/rungate/policy.d");
    fs::create_dir_all(&folder).expect("policy.d");
    set_mode(&folder, 0o755);
    let file = folder.join("20-cad.toml");
    fs::write(&file, "broken").expect("the delegated file");
    chown(&file, Some(site.user("cadadm").uid), None).expect("chown");
    set_mode(&file, 0o644);
    let agent = agent(&site, false);
    let faulty = "rungate-agent: a delegated file has faults, and launches that it applies to are refused:\n";
    let is_named = |log: &str| log.contains(faulty) && !log.contains("the policy has faults");
    let log = log_with(&site, "20-cad.toml:1:");
    assert!(is_named(&log) && log.contains("rungate-agent: policy: files: "), "{log}");
    forget(&site);
    agent.signal(Signal::SIGHUP);
    let log = log_with(&site, "20-cad.toml:1:");
    assert!(is_named(&log), "{log}");
    fs::write(&file, "version = 1\n").expect("the delegated file");
    forget(&site);
    agent.signal(Signal::SIGHUP);
    let log = log_with(&site, "the policy was read again");
    assert!(!log.contains(faulty), "{log}");
}

/// The unit checks before it sends the signal, so that the reload fails with the fault of the policy.
#[test]
fn the_unit_checks_before_a_reload() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/rungate-agent.service");
    let unit = fs::read_to_string(path).expect("the unit");
    let reload: Vec<&str> = unit.lines().filter_map(|line| line.strip_prefix("ExecReload=")).collect();
    assert_eq!(reload, ["/usr/sbin/rungate-agent --check", "/bin/sh -c \"kill -HUP $MAINPID\""]);
}
