//! Storms over three hosts, with an observer that counts programs alive and shares no code with rungate.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::{MISSED, hosts, hosts_with, seats};
use crate::support::{Ending, Etcd, Host, needs_etcd, tell};

/// Longer than any storm needs, on whatever machine.
const LONGEST: Duration = Duration::from_secs(300);

/// What came of a storm until now.
#[derive(Debug, Default)]
pub(super) struct Seen {
    looks: AtomicUsize,
    at_limit: AtomicUsize,
    most: AtomicUsize,
    started: AtomicUsize,
}

impl Seen {
    pub(super) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    pub(super) fn started(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }

    pub(super) fn was_at_limit(&self) -> bool {
        self.at_limit.load(Ordering::Relaxed) > 0
    }
}

/// The programs of these hosts that are alive: those whose executable is the program's, each with its start.
/// A launch that waits bears the name and is no program yet.
fn alive(programs: &[PathBuf]) -> BTreeSet<(String, String)> {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let start = |pid: &Path| {
        let stat = fs::read_to_string(pid.join("stat")).ok()?;
        // The first field after the name is the third.
        stat.rsplit_once(") ")?.1.split(' ').nth(22 - 3).map(str::to_owned)
    };
    let is_one = |pid: &Path| fs::read_link(pid.join("exe")).is_ok_and(|found| programs.contains(&found));
    let found = processes.filter(|entry| is_one(&entry.path()));
    found.filter_map(|entry| Some((entry.file_name().into_string().ok()?, start(&entry.path())?))).collect()
}

/// Counts the programs of these hosts until it is told to stop. A look is no snapshot: one may end and
/// another start before it is over. So many are believed only when the next look finds the same ones: those
/// were alive together at the moment between the looks.
fn observe(hosts: &[Host], limit: usize, seen: &Seen, stop: &AtomicBool) {
    let programs: Vec<PathBuf> = hosts.iter().map(|host| host.site.path("bin/sleeper")).collect();
    let mut before = BTreeSet::new();
    while !stop.load(Ordering::Relaxed) {
        let now = alive(&programs);
        let together = before.intersection(&now).count();
        seen.looks.fetch_add(1, Ordering::Relaxed);
        seen.at_limit.fetch_add(usize::from(together >= limit), Ordering::Relaxed);
        seen.most.fetch_max(together, Ordering::Relaxed);
        before = now;
        thread::sleep(Duration::from_millis(2));
    }
}

/// Launches on all hosts, from so many places on each, and disturbs again and again, until enough was seen.
pub(super) fn storm(
    hosts: &[Host],
    limit: usize,
    each: usize,
    disturb: impl Fn(),
    is_enough: impl Fn(&Seen) -> bool,
) -> Seen {
    for host in hosts {
        host.site.copy_of("/bin/sleep", "sleeper");
    }
    let (stop, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let seen = Seen::default();
    let begun = Instant::now();
    thread::scope(|scope| {
        let (seen, is_over) = (&seen, &is_over);
        scope.spawn(|| observe(hosts, limit, seen, &stop));
        let launchers: Vec<_> = hosts
            .iter()
            .flat_map(|host| (0..each).map(move |_| host))
            .map(|host| {
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        let launch = host.test().args(["run", "-q", "--wait", "20s", "--", "sleeper", "0.5"]);
                        let has_started = launch.outcome().ending == Ending::Status(0);
                        seen.started.fetch_add(usize::from(has_started), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        loop {
            disturb();
            // Whoever is seen above the limit has been, and what a launcher died of is told below.
            let is_vain = seen.most() > limit || launchers.iter().any(ScopedJoinHandle::is_finished);
            if is_enough(seen) || is_vain || begun.elapsed() > LONGEST {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        let ends: Vec<_> = launchers.into_iter().map(ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        for end in ends {
            end.expect("launches");
        }
    });
    seen
}

fn policy() -> String {
    seats(2, "").replace("matlab", "sleeper")
}

/// "Never a program above the limit", and the storm was at it.
#[test]
fn three_hosts_keep_one_limit() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let hosts = hosts(&etcd, &policy(), ["lab1", "lab2", "lab3"]);
    let wait = || thread::sleep(Duration::from_secs(5));
    let seen = storm(&hosts, 2, 2, wait, |seen| seen.started() > 10 && seen.was_at_limit());
    tell(&format!("over three hosts: {seen:?}"));
    assert_eq!(seen.most(), 2, "{seen:?}");
    assert!(seen.started() > 10, "{seen:?}");
}

/// The same while members are stopped one after the other, the leader too.
#[test]
fn members_that_hang_let_nobody_in() {
    needs_etcd!();
    let etcd = Etcd::new();
    let policy = policy().replace("limit  = 2", "limit  = 2\non_lost = \"stop\"");
    let hosts = hosts_with(&etcd, MISSED, &policy, ["lab1", "lab2", "lab3"]);
    let each_hangs = || {
        for member in 0..3 {
            etcd.signal_one(member, Signal::SIGSTOP);
            thread::sleep(Duration::from_secs(2));
            etcd.signal_one(member, Signal::SIGCONT);
            thread::sleep(Duration::from_millis(500));
        }
    };
    let seen = storm(&hosts, 2, 2, each_hangs, |seen| seen.started() > 3);
    tell(&format!("while members hung: {seen:?}"));
    assert!(seen.most() <= 2 && seen.started() > 3, "{seen:?}");
}
