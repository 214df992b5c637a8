//! Which processes get signals to end a job, for every keeper: the process, its descendants, or groups of
//! them. Each process is opened first and checked last.

use std::time::Duration;

use crate::{
    judge::terms::{ExpireKill, Hold},
    sys::{Errno, PidFd, Process, Signal, process},
};

/// In this order, with some time in between: a stopped process is continued, and each can end properly.
pub const SIGNALS: [Signal; 4] = [Signal::SIGCONT, Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL];

/// How many these are.
pub const SIGNAL_COUNT: u32 = 4;
const _: () = assert!(SIGNALS.len() == SIGNAL_COUNT as usize);

/// The processes that got a signal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// All intended ones.
    Full,
    /// Only the processes instead of their groups: they lead no group, or it is our own.
    NoGroup,
    /// Some of them: others may not be signalled.
    Partly,
}

/// Who is meant.
pub struct Whom<'w> {
    /// The hold of the slots: with a supervisor, its descendants get the signals, not itself.
    pub hold: Hold,
    /// When the slots were taken, as [`Process::started_on_host`] counts. What a supervisor had started
    /// before, as the script that it was then, is not of the job.
    pub taken: Option<Duration>,
    /// Whether groups get the signals.
    pub kill: ExpireKill,
    /// Whether some processes may have to be skipped.
    pub spares_others: bool,
    /// The group of the launch for which the job is ended; it never gets a signal.
    pub own_group: Option<i32>,
    /// Whether a process with this real and this saved user gets signals.
    pub may_signal: &'w dyn Fn(&PidFd, [u32; 2]) -> bool,
}

impl Whom<'_> {
    /// Sends a signal to all of a job.
    pub fn signal(&self, job: &PidFd, signal: Signal) -> Result<Delivery, Errno> {
        let group = self.kill == ExpireKill::Group;
        let branches = self.branches(job);
        let is_own = |process: &PidFd| Some(process.pid()) == self.own_group;
        let leads = |process: &PidFd| group && process.leads_its_group() && !is_own(process);
        let mut targets: Vec<(&PidFd, bool)> = match &branches {
            None => vec![(job, leads(job))],
            Some(branches) => branches.iter().map(|branch| (branch, leads(branch))).collect(),
        };
        if self.hold == Hold::Supervisor && leads(job) {
            // Its child is in that group too, unless it leads one.
            targets.retain(|(_, leads)| *leads);
            targets.push((job, true));
        }
        if branches.is_some() && Process::find(job.pid()).is_some_and(|process| process.is_stopped()) {
            // It has stopped with its command, and could not release the slots.
            let _ = job.signal(Signal::SIGCONT);
        }
        let mut answers = Vec::new();
        for (process, leads) in &targets {
            match leads {
                false => answers.push(self.signal_one(process, signal)),
                true if self.spares_others => {
                    answers.extend(members(process).iter().map(|member| self.signal_one(member, signal)));
                }
                true => answers.push(process.signal_group(signal)),
            }
        }
        let is_whole = !group || self.hold == Hold::Tree || targets.iter().all(|(_, leads)| *leads);
        delivery(&answers, is_whole)
    }

    /// Sends a signal to these, and to no other process.
    pub fn signal_each(&self, processes: &[PidFd], signal: Signal) -> Result<Delivery, Errno> {
        let answers: Vec<_> = processes.iter().map(|process| self.signal_one(process, signal)).collect();
        delivery(&answers, true)
    }

    fn signal_one(&self, process: &PidFd, signal: Signal) -> Result<(), Errno> {
        let is_meant = !self.spares_others
            || process::users(process.pid()).is_some_and(|users| (self.may_signal)(process, users));
        // If the process still exists, these were its users.
        if is_meant { process.signal(signal) } else { Err(Errno::EPERM) }
    }

    /// The processes to signal instead of this process, each opened and then verified to be below it; none if
    /// it is this process.
    fn branches(&self, job: &PidFd) -> Option<Vec<PidFd>> {
        let is_tree = match self.hold {
            Hold::Process | Hold::Descriptor => return None,
            Hold::Supervisor => false,
            Hold::Tree => true,
        };
        let is_older = |child: &Process| {
            child.parent == job.pid()
                && self.taken.zip(child.started_on_host()).is_some_and(|(taken, started)| started <= taken)
        };
        let all = process::all();
        let mut below: Vec<&Process> = all.iter().filter(|process| process.pid == job.pid()).collect();
        let mut open = Vec::new();
        let mut next = 0;
        while let Some(parent) = below.get(next).copied() {
            for child in all.iter().filter(|child| child.parent == parent.pid && !is_older(child)) {
                if let Some(process) = open_unchanged(child).filter(|_| is_unchanged(parent)) {
                    open.push(process);
                    below.push(child);
                }
            }
            next = if is_tree { next.saturating_add(1) } else { usize::MAX };
        }
        Some(open)
    }
}

fn delivery(answers: &[Result<(), Errno>], is_whole: bool) -> Result<Delivery, Errno> {
    let denied = answers.iter().filter_map(|sent| sent.err()).find(|errno| *errno != Errno::ESRCH);
    if !answers.iter().any(Result::is_ok) {
        return Err(denied.unwrap_or(Errno::ESRCH));
    }
    Ok(match denied {
        Some(_) => Delivery::Partly,
        None if is_whole => Delivery::Full,
        None => Delivery::NoGroup,
    })
}

/// The members of the group that a process leads; none when it has ended.
fn members(leader: &PidFd) -> Vec<PidFd> {
    let members = process::all().into_iter().filter(|process| process.group == leader.pid());
    let open = members.filter_map(|member| open_unchanged(&member)).collect();
    if leader.has_ended() { Vec::new() } else { open }
}

/// Opens a process that was seen before, if it is still that one and where it was.
pub fn open_unchanged(seen: &Process) -> Option<PidFd> {
    let open = PidFd::open(seen.pid).ok()?;
    (is_unchanged(seen) && !open.has_ended()).then_some(open)
}

fn is_unchanged(seen: &Process) -> bool {
    Process::find(seen.pid).is_some_and(|now| (now.started, now.parent) == (seen.started, seen.parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that has ended meanwhile needs no signal. One that may not be signalled is reported. Its job
    /// gets the next signal nevertheless, as long as another process got this one.
    #[test]
    fn a_signal_is_delivered_where_one_process_got_it() {
        let (gone, denied) = (Err(Errno::ESRCH), Err(Errno::EPERM));
        for (answers, is_whole, expected) in [
            (&[Ok(()), Ok(())][..], true, Ok(Delivery::Full)),
            (&[Ok(()), Ok(())], false, Ok(Delivery::NoGroup)),
            (&[gone, Ok(())], true, Ok(Delivery::Full)),
            (&[Ok(()), denied], true, Ok(Delivery::Partly)),
            (&[gone, denied, Ok(())], false, Ok(Delivery::Partly)),
            (&[gone, denied], true, Err(Errno::EPERM)),
            (&[gone, gone], true, Err(Errno::ESRCH)),
            (&[], true, Err(Errno::ESRCH)),
        ] {
            assert_eq!(delivery(answers, is_whole), expected, "{answers:?}");
        }
    }

    #[test]
    fn a_reused_pid_is_not_the_process_that_was_seen() {
        let this = Process::this().expect("/proc is mounted");
        assert!(open_unchanged(&this).is_some());
        let mut younger = Process::this().expect("/proc is mounted");
        younger.started -= 1;
        assert!(open_unchanged(&younger).is_none(), "it started at another time");
        let mut other = Process::this().expect("/proc is mounted");
        other.parent = this.pid;
        assert!(open_unchanged(&other).is_none(), "it is no longer below the same one");
    }
}
