//! The thread that sends signals to overdue holders. To find out whom a signal is meant for, all of `/proc`
//! is read; the thread that owns the tables has no time for that. It decides who is to be evicted and which
//! signal is due, this one finds the processes and signals them, several holders in one pass.

use std::{
    cell::LazyCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

use super::alive::Alive;
use crate::{
    keeper::{Doubt, Reach, signalling::Whom},
    sys::{
        failure::{Errno, Failure},
        file_id::FileId,
        pidfd::PidFd,
        poller::Bell,
        process,
        signal::Signal,
        user_namespace,
    },
    terms::{hold::Hold, pace::ExpireKill},
};

/// How many holders are looked for in one pass over the processes.
const MOST_AT_ONCE: usize = 256;

/// How long it may take to signal one holder.
const LONGEST_SIGNAL: Duration = Duration::from_secs(1);

/// Gives it work.
#[derive(Clone, Debug)]
pub(super) struct Evictor {
    jobs: Sender<Job>,
}

/// A holder, and whom of its job a signal is meant for.
#[derive(Debug)]
pub(super) struct Target {
    /// The process that asked for the slots; none where it has ended.
    pub(super) process: Option<PidFd>,
    /// What its heirs have open.
    pub(super) fifo: Option<FileId>,
    pub(super) hold: Hold,
    pub(super) kill: ExpireKill,
    /// The group of the launch for which it is ended.
    pub(super) own_group: Option<i32>,
    pub(super) user: u32,
}

/// What came of a signal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sent {
    /// It was sent to these.
    To(Reach),
    /// There is nobody to send it to: neither the process nor anybody who keeps the slots for it.
    Nobody,
    /// It may not be sent.
    Denied,
    /// Nothing proves that the process may be signalled at all.
    Doubted(Doubt),
}

/// A signal that is being sent. Dropped, it is not sent any more, unless that has begun.
#[derive(Debug)]
pub(super) struct Attempt {
    claim: Arc<Claim>,
    answer: Receiver<Sent>,
}

/// Who came first: the evictor, which begins to send, or the holder's end, after which nothing is sent.
#[derive(Debug, Default)]
struct Claim(AtomicBool);

impl Claim {
    fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

impl Attempt {
    /// What came of it; none as long as that is not known.
    pub(super) fn answer(&self) -> Option<Sent> {
        self.answer.try_recv().ok()
    }

    /// The holder has ended. Says what came of the signal, if it was sent; where that has begun it is waited
    /// for, which takes as long as to signal one holder.
    pub(super) fn cancel(&self) -> Option<Sent> {
        if self.claim.is_first() { None } else { self.answer.recv_timeout(LONGEST_SIGNAL).ok() }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let _ = self.claim.is_first();
    }
}

#[derive(Debug)]
struct Job {
    target: Target,
    /// In this order, at once; with none it is only looked whether anybody is there.
    signals: Vec<Signal>,
    claim: Arc<Claim>,
    answer: Sender<Sent>,
}

impl Evictor {
    /// Starts the thread; the bell rings for each answer.
    pub(super) fn start(bell: &Arc<Bell>) -> Result<Self, Failure> {
        let (jobs, to_do) = channel::<Job>();
        let bell = Arc::clone(bell);
        let run = move || {
            while let Ok(first) = to_do.recv() {
                let more = std::iter::from_fn(|| to_do.try_recv().ok()).take(MOST_AT_ONCE - 1);
                let jobs: Vec<Job> = std::iter::once(first).chain(more).collect();
                // One look serves all whose heirs are to be found.
                let alive: LazyCell<Alive> = LazyCell::new(Alive::look);
                for job in &jobs {
                    let sent = job.carry_out(&alive);
                    // Nobody may be there any more to hear it.
                    let _ = job.answer.send(sent);
                }
                bell.ring();
            }
        };
        thread::Builder::new().name("evictor".to_owned()).spawn(run).map_err(Failure::of_io("clone"))?;
        Ok(Self { jobs })
    }

    /// Sends signals to whom they are meant for; with none, looks whether anybody is there.
    pub(super) fn signal(&self, target: Target, signals: Vec<Signal>) -> Attempt {
        let (answer, answered) = channel();
        let claim = Arc::new(Claim::default());
        // The thread lives as long as this does.
        let _ = self.jobs.send(Job { target, signals, claim: Arc::clone(&claim), answer });
        Attempt { claim, answer: answered }
    }
}

impl Job {
    fn carry_out(&self, alive: &LazyCell<Alive>) -> Sent {
        let Target { process, fifo, hold, kill, own_group, user } = &self.target;
        let process = process.as_ref().filter(|process| !process.has_ended());
        if let Some(doubt) = process.and_then(doubt) {
            return Sent::Doubted(doubt);
        }
        let of_fifo = match (process, fifo) {
            (None, Some(fifo)) => alive.heirs(*fifo),
            _ => Vec::new(),
        };
        // Its slots may be free by now, and the process nobody's concern.
        if !self.claim.is_first() {
            return Sent::Nobody;
        }
        if self.signals.is_empty() {
            return if process.is_some() || !of_fifo.is_empty() { Sent::Denied } else { Sent::Nobody };
        }
        let user = *user;
        let whom = Whom {
            hold: *hold,
            kill: *kill,
            spares_others: true,
            own_group: *own_group,
            may_signal: &move |process, users| users == [user, user] || is_within(process, user),
        };
        let mut sent = Sent::Nobody;
        for signal in &self.signals {
            let reach = match process {
                Some(process) => whom.signal(process, *signal),
                None => whom.signal_each(&of_fifo, *signal),
            };
            sent = match reach {
                Ok(reach) => Sent::To(reach),
                Err(Errno::ESRCH) => Sent::Nobody,
                Err(_) => Sent::Denied,
            };
        }
        sent
    }
}

/// Whether a process is in a user namespace of this user's, where all users are theirs.
fn is_within(process: &PidFd, user: u32) -> bool {
    user != 0 && user_namespace::owner_of_foreign(process.pid()) == Ok(Some(user))
}

/// Why nobody may be ended for what a process holds.
fn doubt(process: &PidFd) -> Option<Doubt> {
    let is_privileged = process::is_privileged_by_exec(process.pid());
    match is_privileged {
        _ if process.has_ended() => None,
        Some(false) => None,
        Some(true) => Some(Doubt::Privileged),
        None => Some(Doubt::OutOfSight),
    }
}
