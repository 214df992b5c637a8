//! What the kernel says of a process, from `/proc`. A PID alone means little, for it may have been given to another process
//! since; with the start time beside it, it names one process of one boot.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    ffi::CString,
    fs,
    os::unix::fs::MetadataExt,
    time::{Duration, SystemTime},
};

use nix::{
    errno::Errno,
    sys::{prctl, signal::kill},
    time::{ClockId, clock_gettime},
    unistd::{Pid, SysconfVar, sysconf},
};

use crate::sys::proc_file;

/// One process, as `/proc/PID/stat` shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Process {
    /// The process id.
    pub pid: i32,
    /// The name of its executable as the kernel keeps it: 15 bytes at most, and chosen by the process.
    pub name: String,
    /// The state's letter: `R`, `S`, `D`, `T`, …
    pub state: char,
    /// The parent's process id; 0 where it is out of sight.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// When it started, in clock ticks since boot (`CLOCK_BOOTTIME`).
    pub started: u64,
}

impl Process {
    /// Looks a process up; none when it is gone or out of sight.
    pub fn find(pid: i32) -> Option<Self> {
        Self::parse(pid, &proc_file::read(format!("/proc/{pid}/stat"))?)
    }

    /// This process.
    pub fn this() -> Option<Self> {
        Self::find(own_pid())
    }

    /// The name stands in parentheses and may hold any character, parentheses and blanks included.
    fn parse(pid: i32, stat: &str) -> Option<Self> {
        let (head, tail) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let mut fields = tail.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?;
        Some(Self { pid, name: name.to_owned(), state, parent, group, started })
    }

    /// Whether job control or a tracer has stopped it.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// Whether it has ended and only waits to be reaped.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// How long it has lived, exact to a clock tick.
    pub fn age(&self) -> Option<Duration> {
        let ticks = u64::try_from(sysconf(SysconfVar::CLK_TCK).ok()??).ok().filter(|ticks| *ticks > 0)?;
        let started = Duration::from_millis(self.started.saturating_mul(1000).checked_div(ticks)?);
        Some(since_boot()?.saturating_sub(started))
    }

    /// When it started, by the wall clock as it is set now.
    pub fn start_time(&self) -> Option<SystemTime> {
        SystemTime::now().checked_sub(self.age()?)
    }
}

/// Another name for this process, as `ps` and `/proc/PID/comm` show it, until dropped.
pub struct NameWhileWaiting {
    before: Option<CString>,
}

impl NameWhileWaiting {
    /// Takes the name, or as much of it as the kernel keeps.
    pub fn take(name: &str) -> Self {
        let before = prctl::get_name().ok();
        if let Ok(name) = CString::new(name) {
            let _ = prctl::set_name(&name);
        }
        Self { before }
    }
}

impl Drop for NameWhileWaiting {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = prctl::set_name(before);
        }
    }
}

/// Time since boot, sleep included (`CLOCK_BOOTTIME`): it never goes back.
pub fn since_boot() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_BOOTTIME).ok().map(Duration::from)
}

/// The effective user of a process.
pub fn owner(pid: i32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|directory| directory.uid())
}

/// Whether this user may send a process signals; one that is gone does no harm.
pub fn may_be_signalled(pid: i32) -> bool {
    kill(Pid::from_raw(pid), None) != Err(Errno::EPERM)
}

/// Whether a process runs the same executable file as this one, where that can be seen.
pub fn runs_this_program(pid: i32) -> bool {
    let executable = |process: &str| {
        fs::metadata(format!("/proc/{process}/exe")).ok().map(|file| (file.dev(), file.ino()))
    };
    let this = executable("self");
    this.is_some() && executable(&pid.to_string()) == this
}

/// This process's id.
pub fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

/// This process, its parent, and so on up to the first that is out of sight.
pub fn own_lineage() -> impl Iterator<Item = i32> {
    std::iter::successors(Some(own_pid()), |pid| {
        Process::find(*pid).map(|process| process.parent).filter(|parent| *parent > 0)
    })
}

/// All children of a process, their children, and so on, each with its parent, as they are now.
pub fn descendants(ancestor: i32) -> Vec<(i32, i32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let processes: Vec<(i32, i32)> = entries
        .filter_map(|entry| Process::find(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .map(|process| (process.pid, process.parent))
        .collect();
    let mut found: Vec<(i32, i32)> = Vec::new();
    let mut next = vec![ancestor];
    while let Some(parent) = next.pop() {
        let children = processes.iter().filter(|(_, other)| *other == parent);
        for child in children.filter(|child| !found.contains(child)).copied().collect::<Vec<_>>() {
            found.push(child);
            next.push(child.0);
        }
    }
    found
}

/// The id of this boot, 32 hexadecimal digits and 4 hyphens. A process start time means nothing in another boot.
pub fn boot_id() -> Option<String> {
    proc_file::read("/proc/sys/kernel/random/boot_id").map(|text| text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) S 1 (b)) T 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let process = Process::parse(7, stat).expect("it parses");
        assert_eq!((process.name.as_str(), process.state, process.parent), ("a) S 1 (b)", 'T', 3));
        assert_eq!((process.group, process.started), (7, 4711));
    }

    #[test]
    fn this_process_is_its_own_first_ancestor() {
        let lineage: Vec<i32> = own_lineage().take(2).collect();
        assert_eq!(lineage[0], own_pid());
        assert_eq!(lineage[1], Process::this().expect("/proc is mounted").parent);
    }
}
