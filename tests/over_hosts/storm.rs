//! Storms over three hosts, with an observer that counts programs alive and shares no code with rungate.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::{hosts, seats};
use crate::support::{Ending, Etcd, Host, needs_etcd, tell};

/// What an observer saw.
#[derive(Debug, Default)]
struct Seen {
    looks: usize,
    at_limit: usize,
    most: usize,
}

/// Counts the programs of these hosts that are alive until it is told to stop: those whose executable is the
/// program's. A launch that waits bears the name and is no program yet.
fn observe(hosts: &[Host], limit: usize, stop: &AtomicBool) -> Seen {
    let programs: Vec<_> = hosts.iter().map(|host| host.site.path("bin/sleeper")).collect();
    let mut seen = Seen::default();
    while !stop.load(Ordering::Relaxed) {
        let alive = fs::read_dir("/proc")
            .expect("processes")
            .filter_map(|entry| fs::read_link(entry.ok()?.path().join("exe")).ok())
            .filter(|program| programs.iter().any(|known: &std::path::PathBuf| Path::new(program) == known))
            .count();
        seen.looks += 1;
        seen.at_limit += usize::from(alive >= limit);
        seen.most = seen.most.max(alive);
        thread::sleep(Duration::from_millis(2));
    }
    seen
}

/// Launches on all hosts for so long, from so many places on each; says what was seen, and how many started.
fn storm(hosts: &[Host], limit: usize, longest: Duration, each: usize, disturb: impl Fn()) -> (Seen, usize) {
    for host in hosts {
        host.site.copy_of("/bin/sleep", "sleeper");
    }
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    thread::scope(|scope| {
        let observer = scope.spawn(|| observe(hosts, limit, &stop));
        let launchers: Vec<_> = hosts
            .iter()
            .flat_map(|host| (0..each).map(move |_| host))
            .map(|host| {
                scope.spawn(move || {
                    let mut started = 0;
                    while begun.elapsed() < longest {
                        let launch = host.test().args(["run", "-q", "--wait", "20s", "--", "sleeper", "0.5"]);
                        started += usize::from(launch.outcome().ending == Ending::Status(0));
                    }
                    started
                })
            })
            .collect();
        disturb();
        let started = launchers.into_iter().map(|launcher| launcher.join().expect("launches")).sum();
        stop.store(true, Ordering::Relaxed);
        (observer.join().expect("an observer"), started)
    })
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
    let (seen, started) = storm(&hosts, 2, Duration::from_secs(5), 2, || {});
    tell(&format!("{started} launches over three hosts, {seen:?}"));
    assert!(seen.most == 2 && started > 10, "{started} {seen:?}");
    assert!(seen.at_limit > 0, "the storm was never at the limit: {seen:?}");
}

/// The same while members are stopped one after the other, the leader too.
#[test]
fn members_that_hang_let_nobody_in() {
    needs_etcd!();
    let etcd = Etcd::new();
    let hosts = hosts(
        &etcd,
        &policy().replace("limit  = 2", "limit  = 2\non_lost = \"stop\""),
        ["lab1", "lab2", "lab3"],
    );
    let (seen, started) = storm(&hosts, 2, Duration::from_secs(9), 2, || {
        for member in 0..3 {
            etcd.signal_one(member, Signal::SIGSTOP);
            thread::sleep(Duration::from_secs(2));
            etcd.signal_one(member, Signal::SIGCONT);
            thread::sleep(Duration::from_millis(500));
        }
    });
    tell(&format!("{started} launches while members hung, {seen:?}"));
    assert!(seen.most <= 2 && started > 3, "{started} {seen:?}");
}
