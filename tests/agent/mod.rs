//! With `keeper = "agent"` the agent of the host keeps the slots: the same promises as with lock files,
//! and more.

mod campaign;
mod containers;
mod crowds;
mod death;
mod expiry;
mod files;
mod full_disk;
mod holds;
pub(crate) mod hostility;
#[cfg(target_arch = "x86_64")]
mod killed;
mod launches;
mod linger;
mod listings;
mod namespaces;
pub(crate) mod numbers;
mod older_kernel;
mod reload;
pub(crate) mod remote;
mod scripts;
mod service_manager;
mod settings;
mod siege;
mod standstill;
mod unreachable;
mod waiting;

use std::fs;

use crate::support::{self, Running, Site, eventually, listing};

/// Seats that the agent keeps, for `matlab`; `more` goes into the repository.
fn seats(limit: u32, more: &str) -> (Site, Running) {
    let keys = format!("keeper = \"agent\"\n{more}");
    let (site, agent) = Site::with_agent(&support::seats(limit, &keys, &["matlab", "other"]));
    site.program("matlab");
    (site, agent)
}

/// The slots that `list` shows, each with its process.
#[track_caller]
fn held(site: &Site) -> Vec<(u64, i64)> {
    let listed = listing(&site.test());
    let holders = listed.iter().flat_map(|repository| repository["holders"].as_array().expect("holders"));
    holders
        .map(|holder| (holder["slot"].as_u64().expect("a slot"), holder["pid"].as_i64().unwrap_or(0)))
        .collect()
}

/// Whether these launches have the slots, the first of them the first slot: `list` names a launch by its
/// program, also where the launcher stays as its parent, once that is told.
#[track_caller]
fn is_held_by(site: &Site, launches: &[&Running]) -> bool {
    let names = |pid: i64, launch: &Running| {
        let launcher = i64::from(launch.pid());
        pid == launcher || parent(pid) == Some(launcher)
    };
    let held = held(site);
    let has = |((slot, pid), (launch, expected)): (&(u64, i64), (&&Running, u64))| {
        *slot == expected && names(*pid, launch)
    };
    held.len() == launches.len() && held.iter().zip(launches.iter().zip(1..)).all(has)
}

fn parent(pid: i64) -> Option<i64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

/// How many wait.
#[track_caller]
fn waiting(site: &Site) -> usize {
    let listed = listing(&site.test());
    listed.iter().map(|repository| repository["waiting"].as_array().expect("a line").len()).sum()
}

/// A launch that waits; it answers a line once it runs.
#[track_caller]
fn waiter(site: &Site, user: &str, place: usize) -> Running {
    let begin = || {
        let wait = ["run", "-q", "--wait", "forever", "--", "matlab"];
        let mut running = site.test().user(user).args(wait).background();
        running.write_line("it runs");
        running
    };
    let mut running = begin();
    eventually("it stands in line", || {
        if running.is_zombie() {
            let outcome = running.end();
            assert!(outcome.lost_its_patience(), "{outcome:?}");
            running = begin();
        }
        (waiting(site) == place).then_some(())
    });
    running
}

/// A pattern for the refusal of a full limit.
const REFUSED: &str = "rungate: matlab: not started: the limit is reached\n...\n";
