//! The agent and the service manager that started it: the agent says when it serves, and again and again that it
//! still does, so that an agent that stands still is ended and started again.

use std::{fs, os::unix::net::UnixDatagram, path::PathBuf, time::Duration};

use nix::sys::signal::Signal;

use super::{numbers::stop, seats};
use crate::support::{Running, Site, needs_root};

/// The socket at which the manager listens.
struct Manager(UnixDatagram);

impl Manager {
    fn of(site: &Site) -> Self {
        let path = site.path("notify");
        let _ = fs::remove_file(&path);
        let socket = UnixDatagram::bind(path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a time");
        Self(socket)
    }

    /// What it hears next.
    #[track_caller]
    fn hears(&self) -> String {
        let mut bytes = [0; 100];
        let count = self.0.recv(&mut bytes).expect("a message in time");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    /// Forgets what has come, and says whether more does in this time.
    fn is_told_more(&self, within: Duration) -> bool {
        self.0.set_nonblocking(true).expect("a socket");
        while self.0.recv(&mut [0; 100]).is_ok() {}
        self.0.set_nonblocking(false).expect("a socket");
        self.0.set_read_timeout(Some(within)).expect("a time");
        self.0.recv(&mut [0; 100]).is_ok()
    }
}

/// An agent whose manager wants to hear from it twice in this many milliseconds, if it watches this process;
/// its own where that is none.
fn agent(site: &Site, millis: u64, watched: Option<&str>) -> Running {
    let watched = watched.map_or_else(|| "$$".to_owned(), str::to_owned);
    let become_it = format!(
        "export NOTIFY_SOCKET=\"$0\" WATCHDOG_USEC={} WATCHDOG_PID={watched}; exec \"$@\"",
        millis * 1000
    );
    let socket = site.path("notify").display().to_string();
    site.agent_through(["sh", "-c", &become_it, &socket])
}

/// It says first that it serves, and then that it still does, also where nothing happens; and nothing while it
/// stands still.
#[test]
fn the_manager_hears_that_the_agent_serves_and_that_it_still_does() {
    needs_root!();
    let (site, first) = seats(1, "");
    first.kill();
    let manager = Manager::of(&site);
    let agent = agent(&site, 100, None);
    assert_eq!(manager.hears(), "READY=1");
    for _ in 0..4 {
        assert_eq!(manager.hears(), "WATCHDOG=1");
    }
    stop(&agent);
    assert!(!manager.is_told_more(Duration::from_millis(300)), "an agent that is stopped says nothing");
    agent.signal(Signal::SIGCONT);
    assert!(manager.is_told_more(Duration::from_secs(30)));
}

/// A manager that watches another process hears only that the agent serves.
#[test]
fn who_watches_another_process_is_told_nothing_more() {
    needs_root!();
    let (site, first) = seats(1, "");
    first.kill();
    let manager = Manager::of(&site);
    let _agent = agent(&site, 100, Some("1"));
    assert_eq!(manager.hears(), "READY=1");
    assert!(!manager.is_told_more(Duration::from_millis(300)));
}

/// The unit has systemd wait for that, and kill an agent that stands still: nothing else ends a stopped process.
/// It is started again, and the time is short enough for `on_lost = "stop"` with a `ttl` of a minute.
#[test]
fn the_unit_has_a_stopped_agent_killed_and_started_again() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging/rungate-agent.service");
    let unit = fs::read_to_string(path).expect("the unit");
    for line in ["Type=notify", "WatchdogSec=5s", "WatchdogSignal=SIGKILL", "Restart=on-failure"] {
        assert!(unit.lines().any(|other| other == line), "{line}");
    }
}

/// A fault that lasts for some seconds, such as a full disk, must not leave the socket closed. systemd's own limit, five
/// starts within ten seconds, would: it fails the unit and with it the socket. The limit is a key of `[Unit]`, and is
/// ignored in any other section.
#[test]
fn the_unit_starts_a_failing_agent_again_without_a_limit() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging/rungate-agent.service");
    let unit = fs::read_to_string(path).expect("the unit");
    let (of_unit, of_service) = unit.split_once("\n[Service]\n").expect("both sections");
    let with = |section: &str, key: &str| -> Vec<String> {
        section.lines().filter(|line| line.starts_with(key)).map(str::to_owned).collect()
    };
    assert_eq!(with(of_unit, "StartLimit"), ["StartLimitIntervalSec=0"]);
    assert_eq!(with(of_service, "StartLimit"), Vec::<String>::new());
    assert_eq!(with(of_service, "Restart"), ["Restart=on-failure", "RestartSec=1s"]);
}
