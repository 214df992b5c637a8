//! Too late: a holder that keeps a slot longer than it may is ended when somebody else wants the slot (`ExpireAfter` of
//! adaptive locks). The kernel must vouch for the holder. A record alone, which whoever can open the file can forge, ends
//! nobody: it only says since when, and never more than the process has lived. The signals go to a process that was opened
//! before it was seen to hold the slot, so that no other one that got its number can be hit.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::time::{Duration, SystemTime};

use crate::{
    repository::{
        claim::Expiry,
        error::RepositoryError,
        file::LockFile,
        hold::Hold,
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
    /// The holder, as the record of the first of its slots has it.
    pub holder: Holder,
    /// Its process: the command, where a supervisor took the slots for it.
    pub pid: i32,
    /// By how much.
    pub by: Duration,
    /// How many slots it holds.
    pub slots: u64,
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

/// The overdue among `holders`, each process once, the longest overdue first. Those about whose time nothing is known are not
/// among them.
pub fn overdue(holders: &[Holder], expiry: &Expiry, now: SystemTime) -> Vec<Overdue> {
    let lineage: Vec<i32> = process::own_lineage().collect();
    // Nobody ends the job that started him.
    let is_ancestor = |pid: &i32| lineage.contains(pid);
    let others = holders.iter().filter(|holder| !holder.pid.iter().chain(&holder.keeper).any(is_ancestor));
    let mut overdue: Vec<Overdue> = Vec::new();
    for holder in others {
        let slots = holder.slots.1.saturating_sub(holder.slots.0).saturating_add(1);
        if let Some(other) = overdue.iter_mut().find(|other| Some(other.pid) == holder.pid) {
            other.slots = other.slots.saturating_add(slots);
        } else if let Some((pid, by)) = overdue_by(holder, expiry, now) {
            overdue.push(Overdue { holder: holder.clone(), pid, by, slots });
        }
    }
    overdue.sort_by_key(|overdue| std::cmp::Reverse(overdue.by));
    overdue
}

fn overdue_by(holder: &Holder, expiry: &Expiry, now: SystemTime) -> Option<(i32, Duration)> {
    let pid = holder.pid.filter(|_| holder.hold.is_some())?;
    // Of a tree whose command has ended the supervisor is left.
    let lives = |pid| Process::find(pid).filter(|process| !process.is_zombie());
    let process = lives(pid).or_else(|| lives(holder.keeper?))?;
    let by = holder.age(now)?.min(process.age()?).checked_sub(expiry.after)?;
    Some((pid, by))
}

/// Ends an overdue holder carefully. Never to be called under the mutex: it takes up to three times the grace.
pub fn end(file: &LockFile, overdue: &Overdue, expiry: &Expiry) -> Result<Fate, RepositoryError> {
    let Some(job) = Job::vouched_for(file, overdue)? else { return Ok(Fate::HadLeft) };
    // Asked before, because anybody in the same session may be continued.
    if !process::may_be_signalled(job.pid()) {
        return Ok(Fate::NotPermitted);
    }
    let group = Process::find(overdue.pid).map(|process| process.group);
    let own_group = Process::this().map(|process| process.group);
    let group = group.filter(|group| expiry.group && Some(*group) != own_group);
    for signal in SIGNALS {
        match job.signal(signal, group) {
            // What has ended already may leave something that has not: a supervisor that is about to give the slot back.
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(_) => return Ok(Fate::NotPermitted),
        }
        if signal == Signal::SIGCONT {
            // Nothing is to be waited for: it only lets the process see what comes next.
            continue;
        }
        let _ = pidfd::wait_for_any([job.last()], expiry.grace);
        if job.last().has_ended() || !job.holds(file)? {
            return Ok(Fate::Ended(signal));
        }
    }
    Ok(Fate::Survived)
}

/// The processes behind a slot, each opened before the kernel was asked what it holds, so that none that gets a number of
/// theirs meanwhile can be hit.
struct Job {
    slot: u64,
    holder: JobHolder,
}

enum JobHolder {
    /// The process that has the lock, or a descriptor of the description that has it.
    Process { pid: i32, process: PidFd },
    /// The child of a supervisor that has such a descriptor.
    Supervised { command: PidFd, supervisor: i32, process: PidFd },
    /// All descendants of such a supervisor: the command may have ended, and they keep the slot as it did.
    Tree { supervisor: i32, process: PidFd },
}

impl Job {
    /// The job that holds the slot, if the kernel says that it does.
    fn vouched_for(file: &LockFile, overdue: &Overdue) -> Result<Option<Self>, RepositoryError> {
        let Overdue { pid, holder: Holder { keeper, hold, slots: (slot, _), .. }, .. } = *overdue;
        let command = PidFd::open(pid);
        let supervisor =
            keeper.filter(|keeper| *keeper != pid).and_then(|pid| Some((pid, PidFd::open(pid).ok()?)));
        let Some(conflict) = file.conflict(&slot_bytes(slot, slot))? else { return Ok(None) };
        let has_lock = |pid| open_files::has_lock(pid, file.id(), slot_byte(slot));
        let holder = match (conflict.pid, supervisor, command) {
            (Some(holder), _, Ok(process)) if holder == pid => JobHolder::Process { pid, process },
            (None, Some((supervisor, process)), _)
                if hold == Some(Hold::Tree)
                    && process::runs_this_program(supervisor)
                    && has_lock(supervisor) =>
            {
                JobHolder::Tree { supervisor, process }
            }
            (None, Some((supervisor, process)), Ok(command))
                if Process::find(pid).is_some_and(|process| process.parent == supervisor)
                    && process::runs_this_program(supervisor)
                    && has_lock(supervisor) =>
            {
                JobHolder::Supervised { command, supervisor, process }
            }
            (None, _, Ok(process)) if has_lock(pid) => JobHolder::Process { pid, process },
            _ => return Ok(None),
        };
        Ok(Some(Self { slot, holder }))
    }

    /// The process that has the lock, or a descriptor of it.
    fn pid(&self) -> i32 {
        match self.holder {
            JobHolder::Process { pid, .. }
            | JobHolder::Supervised { supervisor: pid, .. }
            | JobHolder::Tree { supervisor: pid, .. } => pid,
        }
    }

    /// The process whose end ends the job. A supervisor gives the slot back before it ends.
    fn last(&self) -> &PidFd {
        match &self.holder {
            JobHolder::Process { process, .. }
            | JobHolder::Supervised { process, .. }
            | JobHolder::Tree { process, .. } => process,
        }
    }

    /// Whether it still holds the slot.
    fn holds(&self, file: &LockFile) -> Result<bool, RepositoryError> {
        let Some(conflict) = file.conflict(&slot_bytes(self.slot, self.slot))? else { return Ok(false) };
        Ok(match conflict.pid {
            Some(holder) => holder == self.pid(),
            None => open_files::has_lock(self.pid(), file.id(), slot_byte(self.slot)),
        })
    }

    /// Sends a signal to whatever has to end. A supervisor only has to see that.
    fn signal(&self, signal: Signal, group: Option<i32>) -> Result<(), Errno> {
        let one = |process: &PidFd| match group {
            Some(group) => process.signal_group(group, signal),
            None => process.signal(signal),
        };
        match &self.holder {
            JobHolder::Process { process, .. } => one(process),
            JobHolder::Supervised { command, supervisor, process } => {
                let_it_see(*supervisor, process);
                one(command)
            }
            JobHolder::Tree { supervisor, process } => {
                let_it_see(*supervisor, process);
                signal_descendants(*supervisor, signal)
            }
        }
    }
}

/// Continues a supervisor that has stopped with its command: it could not give the slot back.
fn let_it_see(supervisor: i32, process: &PidFd) {
    if Process::find(supervisor).is_some_and(|process| process.is_stopped()) {
        let _ = process.signal(Signal::SIGCONT);
    }
}

/// Fails only when none of them may be signalled.
fn signal_descendants(ancestor: i32, signal: Signal) -> Result<(), Errno> {
    let mut answer = Err(Errno::ESRCH);
    for (pid, parent) in process::descendants(ancestor) {
        let Ok(process) = PidFd::open(pid) else { continue };
        if Process::find(pid).is_some_and(|process| process.parent == parent) {
            let sent = process.signal(signal);
            answer = if answer.is_ok() { answer } else { sent };
        }
    }
    answer
}
