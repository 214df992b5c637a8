//! Too late: a holder that keeps a slot longer than it may is ended when somebody else wants the slot (`ExpireAfter` of
//! adaptive locks). The kernel must vouch for the holder. A record alone, which whoever can open the file can forge, ends
//! nobody: it only says since when, and never more than the process has lived. The signals go to a process that was opened
//! before it was seen to hold the slot, so that no other one that got its number can be hit.

use std::time::{Duration, SystemTime};

use crate::{
    repository::{
        claim::Expiry,
        error::RepositoryError,
        file::LockFile,
        holder::Holder,
        layout::{slot_byte, slot_bytes},
    },
    sys::{
        failure::Errno,
        open_files,
        pidfd::{self, PidFd},
        process::{self, Process},
        signal::Signal,
    },
};

/// A holder that is overdue.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Overdue {
    /// The holder.
    pub holder: Holder,
    /// Its process.
    pub pid: i32,
    /// By how much.
    pub by: Duration,
}

/// What became of an overdue holder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// It ended, or gave the slot back, after this signal was sent.
    Ended(Signal),
    /// It was gone, or did not hold the slot, before any signal was sent.
    HadLeft,
    /// This user may not signal it.
    NotPermitted,
    /// It holds the slot still: a process that even `SIGKILL` does not end sits in the kernel.
    Survived,
}

/// In this order, with some time in between: one that is stopped is continued, one that can end in order may.
const SIGNALS: [Signal; 4] = [Signal::SIGCONT, Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL];

/// The overdue among `holders`, the longest overdue first. Those about whose time nothing is known are not among them.
pub fn overdue(holders: &[Holder], expiry: &Expiry, now: SystemTime) -> Vec<Overdue> {
    let mut overdue: Vec<Overdue> = holders
        .iter()
        .filter_map(|holder| {
            let pid = holder.pid.filter(|_| holder.hold.is_some())?;
            let lived = Process::find(pid)?.age()?;
            let by = holder.age(now)?.min(lived).checked_sub(expiry.after)?;
            Some(Overdue { holder: holder.clone(), pid, by })
        })
        .collect();
    overdue.sort_by_key(|overdue| std::cmp::Reverse(overdue.by));
    overdue
}

/// Ends an overdue holder carefully. Never to be called under the mutex: it takes up to three times the grace.
pub fn end(file: &LockFile, overdue: &Overdue, expiry: &Expiry) -> Result<Fate, RepositoryError> {
    let slot = overdue.holder.slots.0;
    let Ok(process) = PidFd::open(overdue.pid) else { return Ok(Fate::HadLeft) };
    if !holds(file, slot, overdue.pid)? {
        return Ok(Fate::HadLeft);
    }
    let group = Process::find(overdue.pid).map(|process| process.group);
    let own_group = Process::this().map(|process| process.group);
    let group = group.filter(|group| expiry.group && Some(*group) != own_group);
    for signal in SIGNALS {
        let sent = match group {
            Some(group) => process.signal_group(group, signal),
            None => process.signal(signal),
        };
        match sent {
            Ok(()) => {}
            Err(Errno::ESRCH) => return Ok(Fate::Ended(signal)),
            Err(_) => return Ok(Fate::NotPermitted),
        }
        if signal == Signal::SIGCONT {
            // Nothing is to be waited for: it only lets the process see what comes next.
            continue;
        }
        let _ = pidfd::wait_for_any([&process], expiry.grace);
        if process.has_ended() || !holds(file, slot, overdue.pid)? {
            return Ok(Fate::Ended(signal));
        }
    }
    Ok(Fate::Survived)
}

/// Whether the kernel says that this process holds the slot: as the process of the lock, or with a descriptor of the
/// description that has it, its own or that of the parent that supervises it.
fn holds(file: &LockFile, slot: u64, pid: i32) -> Result<bool, RepositoryError> {
    let Some(conflict) = file.conflict(&slot_bytes(slot, slot))? else { return Ok(false) };
    if pid == process::own_pid() {
        return Ok(false);
    }
    Ok(match conflict.pid {
        Some(holder) => holder == pid,
        None => {
            let has_lock = |pid| open_files::has_lock(pid, file.id(), slot_byte(slot));
            let supervises = |parent| process::runs_this_program(parent) && has_lock(parent);
            has_lock(pid) || Process::find(pid).is_some_and(|process| supervises(process.parent))
        }
    })
}
