//! The processes of a storm, as `/proc` shows them. They are known by a variable in their environment.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};

/// A process of the storm.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) uid: u32,
    /// Seconds since boot, not later than it was.
    pub(crate) started: f64,
    pub(crate) executable: String,
    pub(crate) environment: BTreeMap<String, String>,
}

impl Process {
    /// Every slot that it believes to hold, by repository.
    pub(crate) fn claims(&self) -> Vec<(String, i64)> {
        let held = self.environment.get("RUNGATE_HELD").map_or("", String::as_str);
        let entries = held.split(' ').filter_map(|entry| entry.split_once('='));
        entries
            .flat_map(|(name, slots)| {
                let run = |part: &str| {
                    let (first, last) = part.split_once('-').unwrap_or((part, part));
                    Some(first.parse::<i64>().ok()?..=last.parse().ok()?)
                };
                slots.split(',').filter_map(run).flatten().map(|slot| (name.to_owned(), slot))
            })
            .collect()
    }

    /// What the storm has told it of itself.
    pub(crate) fn told(&self, name: &str) -> Option<&str> {
        self.environment.get(&format!("STORM_{name}")).map(String::as_str)
    }

    /// When its launch was begun, in seconds since boot, not later than it was: the storm says so to the
    /// first process of it, and all others inherit that. A peer is no launch.
    pub(crate) fn begun(&self) -> Option<f64> {
        self.told("BEGUN")?.parse().ok()
    }

    /// Whether it is still what it was: the same process, executing the same program, and not about to end. A
    /// process that ends loses its memory, and with it the name of its program, before it loses its files.
    pub(crate) fn is_still_there(&self) -> bool {
        executable(self.pid).as_ref() == Some(&self.executable)
            && stat(self.pid).is_some_and(|(_, started)| (started - self.started).abs() < 0.001)
    }
}

/// All processes of the storm at this directory.
pub(crate) fn all(directory: &str) -> BTreeMap<i32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, find(pid, directory)?))).collect()
}

/// The process with this number, if it is one of the storm.
pub(crate) fn find(pid: i32, directory: &str) -> Option<Process> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let entries = text.split('\0').filter_map(|entry| entry.split_once('='));
    let environment: BTreeMap<String, String> =
        entries.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if environment.get("STORM_SITE").map(String::as_str) != Some(directory) {
        return None;
    }
    let (parent, started) = stat(pid)?;
    let uid = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    let process = Process { pid, parent, uid, started, executable: executable(pid)?, environment };
    // The environment and the program must belong together.
    let again = fs::read(format!("/proc/{pid}/environ")).ok()?;
    (again == bytes && process.is_still_there()).then_some(process)
}

fn executable(pid: i32) -> Option<String> {
    Some(fs::read_link(format!("/proc/{pid}/exe")).ok()?.to_str()?.to_owned())
}

/// Parent and start; the first field after the name is the third.
fn stat(pid: i32) -> Option<(i32, f64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: f64 = fields.get(22 - 3)?.parse().ok()?;
    Some((fields.get(4 - 3)?.parse().ok()?, ticks / ticks_per_second()))
}

/// What a process locks in a file through its descriptions: the first byte of each range, and the last.
pub(crate) fn described_locks(pid: i32, inode: u64) -> Vec<(i64, i64)> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let texts = descriptors.filter_map(|descriptor| fs::read_to_string(descriptor.path()).ok());
    let of_text =
        |text: String| text.lines().filter_map(|line| described_lock(line, inode)).collect::<Vec<_>>();
    texts.flat_map(of_text).collect()
}

/// `lock: 1: OFDLCK ADVISORY READ -1 fe:01:4711 8 8`
fn described_lock(line: &str, inode: u64) -> Option<(i64, i64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let ["lock:", _, "OFDLCK", _, _, _, file, first, last] = fields.as_slice() else { return None };
    let is_same = file.rsplit_once(':').is_some_and(|(_, found)| found == inode.to_string());
    is_same.then_some((first.parse().ok()?, last.parse().unwrap_or(i64::MAX)))
}

fn ticks_per_second() -> f64 {
    let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|ticks| i32::try_from(ticks).ok());
    f64::from(ticks.unwrap_or(100))
}

/// Seconds since boot.
pub(crate) fn now() -> f64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(0.0, |now| std::time::Duration::from(now).as_secs_f64())
}
