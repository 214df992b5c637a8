//! The eviction of an overdue holder, signal by signal. The agent has the process by descriptor and knows
//! what keeps its slots, so that nothing has to be proved but that who gets a signal is the holder's user,
//! and nobody else's program. Who that is, and the sending, is for the evictor.

use std::time::{Duration, Instant};

use super::{
    evictor::{Attempt, Evictor, Sent, Target},
    holding::Holding,
};
use crate::{
    keeper::{Doubt, Fate, Overdue, Reach, signalling::SIGNALS, table::TableId},
    protocol,
    sys::{fifo::Fifo, pidfd::PidFd, process::Process, signal::Signal},
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
    /// The signal that is being sent, and how.
    attempt: Option<(Option<Signal>, Attempt)>,
    /// Whether nothing was found below a supervisor, so that it is meant itself.
    is_childless: bool,
    /// The group of the launch for which it is ended; none where that is on another host.
    own_group: Option<i32>,
}

impl Ending {
    /// Of a holding, for a launch that is this process.
    pub(super) fn of(holding: u64, to_end: &ToEnd, overdue: Overdue, launch: Option<i32>) -> Self {
        let ToEnd { table, id, expiry, .. } = to_end;
        Self {
            holding,
            table: table.clone(),
            id: *id,
            expiry: *expiry,
            overdue,
            next: 0,
            due: Instant::now(),
            sent: None,
            attempt: None,
            is_childless: false,
            own_group: launch.and_then(Process::find).map(|process| process.group),
        }
    }

    pub(super) fn is_on(&self, table: TableId) -> bool {
        self.id == table
    }

    /// The signal that it gets next, of those that may end it.
    pub(super) fn next_signal(&self) -> Option<Signal> {
        SIGNALS.iter().skip(self.next).copied().find(|signal| *signal != Signal::SIGCONT)
    }

    /// What has become of it now that its slots are free.
    pub(super) fn when_free(&mut self) -> Fate {
        if let Some((Some(signal), attempt)) = self.attempt.take()
            && let Some(Sent::To(reach)) = attempt.cancel()
        {
            self.sent = Some((signal, reach));
        }
        self.sent.map_or(Fate::HadLeft, |(signal, reach)| Fate::Ended(signal, reach))
    }

    /// When it is to be looked at; none while a signal is being sent.
    pub(super) fn due(&self) -> Option<Instant> {
        self.attempt.is_none().then_some(self.due)
    }

    /// Has the next signal sent, if that is due, and sees what came of the one before. Says what has
    /// become of the holder where nothing more can be done.
    pub(super) fn go_on(&mut self, holding: &Holding, evictor: &Evictor) -> Option<Fate> {
        if let Some((signal, attempt)) = &self.attempt {
            let (signal, sent) = (*signal, attempt.answer()?);
            self.attempt = None;
            if let Some(fate) = self.is_sent(signal, sent, holding) {
                return Some(fate);
            }
        }
        if self.due > Instant::now() {
            return None;
        }
        let Some(target) = self.target(holding) else { return self.wait_for_grace() };
        // After SIGCONT nothing is to be waited for: it only lets the process see what comes next.
        let mut signals = Vec::new();
        while let Some(signal) = SIGNALS.get(self.next).copied() {
            self.next = self.next.saturating_add(1);
            signals.push(signal);
            if signal != Signal::SIGCONT {
                break;
            }
        }
        let last = signals.last().copied();
        self.attempt = Some((last, evictor.signal(target, signals)));
        None
    }

    /// Whom signals are meant for; none as long as there is no descriptor to spare.
    fn target(&self, holding: &Holding) -> Option<Target> {
        let process = holding.process.as_ref().map(PidFd::try_clone).transpose().ok()?;
        let keeps_more = holding.saved.hold > Hold::Process;
        Some(Target {
            process,
            fifo: holding.fifo.as_ref().filter(|_| keeps_more).map(Fifo::id),
            hold: if self.is_childless { Hold::Process } else { holding.saved.hold },
            kill: self.expiry.kill,
            own_group: self.own_group,
            user: holding.saved.uid,
        })
    }

    /// What came of a signal; of a look whether anybody is there, where there was none.
    fn is_sent(&mut self, signal: Option<Signal>, sent: Sent, holding: &Holding) -> Option<Fate> {
        match (signal, sent) {
            (_, Sent::Doubted(doubt)) => Some(Fate::NotProved(doubt)),
            (Some(signal), Sent::To(reach)) => {
                self.sent = Some((signal, reach));
                self.wait_for_grace()
            }
            (Some(_), Sent::Denied) => Some(self.not_reached()),
            // A supervisor whose program has ended is about to give the slots back. One that does not is no
            // supervisor: whoever asked for the slots keeps them alone.
            (Some(_), Sent::Nobody) => {
                self.is_childless |= holding.process.as_ref().is_some_and(|process| !process.has_ended());
                self.wait_for_grace()
            }
            (None, Sent::Nobody) => Some(Fate::NotProved(Doubt::InTransit)),
            (None, Sent::To(_) | Sent::Denied) => Some(match self.sent {
                Some((_, Reach::Partly)) | None => Fate::NotPermitted,
                Some(_) => Fate::Survived,
            }),
        }
    }

    fn wait_for_grace(&mut self) -> Option<Fate> {
        self.due = Instant::now().checked_add(self.expiry.grace.max(SHORTEST_GRACE))?;
        None
    }

    fn not_reached(&self) -> Fate {
        self.sent.map_or(Fate::NotPermitted, |(signal, _)| Fate::LeftOthers(signal))
    }
}

/// Signals that follow each other at once would leave nobody the time to end.
const SHORTEST_GRACE: Duration = Duration::from_millis(10);
