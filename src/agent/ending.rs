//! The end of an overdue holder, signal by signal. The agent has the process by descriptor and knows what
//! keeps its slots, so that nothing has to be proved but that who gets a signal is the holder's user, and
//! nobody else's program.

use std::time::{Duration, Instant};

use super::holding::Holding;
use crate::{
    keeper::{
        Doubt, Fate, Overdue, Reach,
        signalling::{SIGNALS, Whom, open_unchanged},
        table::TableId,
    },
    protocol,
    sys::{failure::Errno, fifo, pidfd::PidFd, process, signal::Signal, user_namespace},
    terms::{hold::Hold, location::Location, pace::Expiry},
};

/// Holders of one table that are to be ended.
pub(super) struct ToEnd {
    pub(super) table: String,
    pub(super) id: TableId,
    pub(super) expiry: Expiry,
    pub(super) overdue: Vec<Overdue>,
}

impl ToEnd {
    /// The same as what was found out for a claim.
    pub(super) fn of(found: protocol::too_late::ToEnd<'_>) -> Option<Self> {
        let Location::Memory(table) = &found.claim.location else { return None };
        let (id, expiry) = (found.table.id(), found.expiry);
        Some(Self { table: table.clone(), id, expiry, overdue: found.overdue })
    }
}

/// A holder that is being ended.
#[derive(Debug)]
pub(super) struct Ending {
    /// Its holding.
    pub(super) holding: u64,
    /// The table whose slots are wanted.
    pub(super) table: String,
    id: TableId,
    expiry: Expiry,
    pub(super) overdue: Overdue,
    next: usize,
    pub(super) due: Instant,
    sent: Option<(Signal, Reach)>,
}

impl Ending {
    pub(super) fn of(holding: u64, to_end: &ToEnd, overdue: Overdue) -> Self {
        let ToEnd { table, id, expiry, .. } = to_end;
        let (table, due) = (table.clone(), Instant::now());
        Self { holding, table, id: *id, expiry: *expiry, overdue, next: 0, due, sent: None }
    }

    pub(super) fn is_on(&self, table: TableId) -> bool {
        self.id == table
    }

    /// The signal that it gets next, of those that may end it.
    pub(super) fn next_signal(&self) -> Option<Signal> {
        SIGNALS.iter().skip(self.next).copied().find(|signal| *signal != Signal::SIGCONT)
    }

    /// What has become of it now that its slots are free.
    pub(super) fn when_free(&self) -> Fate {
        self.sent.map_or(Fate::HadLeft, |(signal, reach)| Fate::Ended(signal, reach))
    }

    /// Sends the next signal, if that is due. Says what has become of the holder where nothing more can be
    /// done.
    pub(super) fn go_on(&mut self, holding: &Holding) -> Option<Fate> {
        if self.due > Instant::now() {
            return None;
        }
        if let Some(doubt) = holding.process.as_ref().and_then(doubt) {
            return Some(Fate::NotProved(doubt));
        }
        while let Some(signal) = SIGNALS.get(self.next).copied() {
            self.next = self.next.saturating_add(1);
            match self.send(signal, holding) {
                // After SIGCONT nothing is to be waited for: it only lets the process see what comes next.
                Ok(_) if signal == Signal::SIGCONT => {}
                Ok(reach) => {
                    self.sent = Some((signal, reach));
                    return self.wait_for_grace();
                }
                // A supervisor whose program has ended is about to give the slots back.
                Err(Errno::ESRCH) if self.next < SIGNALS.len() => return self.wait_for_grace(),
                Err(_) => return Some(self.not_reached()),
            }
        }
        Some(if matches!(self.sent, Some((_, Reach::Partly))) { Fate::NotPermitted } else { Fate::Survived })
    }

    fn wait_for_grace(&mut self) -> Option<Fate> {
        self.due = Instant::now().checked_add(self.expiry.grace.max(SHORTEST_GRACE))?;
        None
    }

    fn not_reached(&self) -> Fate {
        self.sent.map_or(Fate::NotPermitted, |(signal, _)| Fate::LeftOthers(signal))
    }

    fn send(&self, signal: Signal, holding: &Holding) -> Result<Reach, Errno> {
        let user = holding.saved.uid;
        let whom = Whom {
            hold: holding.saved.hold,
            kill: self.expiry.kill,
            spares_others: true,
            may_signal: &move |process, users| users == [user, user] || is_within(process, user),
        };
        match holding.process.as_ref().filter(|process| !process.has_ended()) {
            Some(process) => whom.signal(process, signal),
            None => whom.signal_each(&heirs(holding), signal),
        }
    }
}

/// Signals that follow each other at once would leave nobody the time to end.
const SHORTEST_GRACE: Duration = Duration::from_millis(10);

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

/// Whoever keeps the slots of a process that has ended: all that have inherited its descriptor.
fn heirs(holding: &Holding) -> Vec<PidFd> {
    let (Some(fifo), Hold::Descriptor | Hold::Supervisor | Hold::Tree) = (&holding.fifo, holding.saved.hold)
    else {
        return Vec::new();
    };
    let has_it = |pid: i32| fifo::of_process(pid).contains(&fifo.id());
    let own = process::own_pid();
    let others = process::all().into_iter().filter(|process| process.pid != own && has_it(process.pid));
    others.filter_map(|heir| open_unchanged(&heir).filter(|open| has_it(open.pid()))).collect()
}
