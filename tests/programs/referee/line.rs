//! The line before one file, followed from look to look.
//!
//! A waiter is known by its number and its process, whatever limit and policy its lock says: it has one
//! number as long as it waits, and takes its slots or ends when it does not wait any more. So who is in the
//! queue at two looks waited all the time between them.

use std::collections::BTreeMap;

use super::repository::{Snapshot, Ticket};

/// Whoever shows no beat at three looks in turn, a second apart, may be passed.
const SILENCE: f64 = 3.0;

/// Number and process.
type Waiter = (i64, i32);

/// A line.
#[derive(Default)]
pub(crate) struct Line {
    inode: u64,
    waiters: BTreeMap<Waiter, Followed>,
    /// Whose turn it is, while there is room for them, and since when.
    idle: Option<(Waiter, f64)>,
}

/// What is known of somebody who waits.
#[derive(Clone, Copy)]
struct Followed {
    /// When it was seen first.
    since: f64,
    pulse: i64,
    /// It has beaten, or come, after this.
    beaten: f64,
    /// Until then it may have been silent for so long that others could pass.
    silent: f64,
}

impl Followed {
    fn begin(ticket: &Ticket, begun: f64, now: f64) -> Self {
        Self { since: now, pulse: ticket.pulse, beaten: begun, silent: f64::MIN }
    }

    /// `before` is when it was last checked.
    fn look(&mut self, ticket: &Ticket, before: f64, now: f64) {
        if now - self.beaten >= SILENCE {
            self.silent = now;
        }
        if self.pulse != ticket.pulse {
            self.pulse = ticket.pulse;
            self.beaten = before;
        }
    }
}

impl Line {
    /// Another look. `before` is when this line was last checked, and `begun` when the launch of a process
    /// began.
    pub(crate) fn follow(&mut self, snapshot: &Snapshot, before: f64, begun: impl Fn(i32) -> Option<f64>) {
        if self.inode != snapshot.inode {
            *self = Self { inode: snapshot.inode, ..Self::default() };
        }
        let now = snapshot.taken;
        let mut known = std::mem::take(&mut self.waiters);
        for ticket in &snapshot.line {
            let waiter = (ticket.number, ticket.pid);
            let begun = || begun(ticket.pid).unwrap_or(f64::MIN);
            let mut followed = known.remove(&waiter).unwrap_or_else(|| Followed::begin(ticket, begun(), now));
            followed.look(ticket, before, now);
            self.waiters.insert(waiter, followed);
        }
    }

    /// Those who were in the queue and alive all the time since before that moment.
    pub(crate) fn waiting_since_before(&self, moment: f64) -> impl Iterator<Item = Waiter> {
        let waited = move |followed: &Followed| followed.since.max(followed.silent) < moment;
        self.waiters.iter().filter(move |(_, followed)| waited(followed)).map(|(waiter, _)| *waiter)
    }

    /// Whose turn it is, and since when, if it was all the time, and there was room for them. Those who may
    /// be passed have no turn.
    pub(crate) fn idle_since(
        &mut self,
        snapshot: &Snapshot,
        may_be_passed: impl Fn(i32) -> bool,
        has_room: impl Fn(&Ticket) -> bool,
    ) -> Option<(Waiter, f64)> {
        let is_silent =
            |waiter: &Waiter| self.waiters.get(waiter).is_none_or(|seen| seen.silent >= snapshot.taken);
        let answers =
            |ticket: &&Ticket| !is_silent(&(ticket.number, ticket.pid)) && !may_be_passed(ticket.pid);
        let first = snapshot.line.iter().filter(answers).min_by_key(|ticket| ticket.number);
        let first = first.filter(|ticket| has_room(ticket)).map(|ticket| (ticket.number, ticket.pid));
        self.idle = first.map(|waiter| match self.idle {
            Some((same, since)) if same == waiter => (waiter, since),
            _ => (waiter, snapshot.taken),
        });
        self.idle
    }
}
