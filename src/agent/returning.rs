//! Those who stood in line when the agent died: each has its place back as soon as it calls again, and until
//! then nobody comes before it who came later. One that does not call is passed over like any launch that
//! does not answer, and is gone when its process has ended or would no longer look for an agent.

use std::time::{Duration, Instant};

use super::{
    Fatal,
    awaited::Returning,
    saved::{SavedLine, SavedNumber, SavedPlace},
    service::{KINDS, RETURNING, Service},
    session::{AWAY, Session},
};
use crate::{
    keeper::{Class, Number, memory},
    protocol::{conversation::LONGEST_ABSENCE, place_in_line::PlaceInLine, returning::Stood},
    sys::{
        failure::{Errno, Failure},
        pidfd::PidFd,
        poller::Interest,
        process::{self, Process},
    },
};

impl Service {
    /// Writes down where a launch stands, if that is not written down. What cannot be written is lost with
    /// the agent, and with nothing else.
    pub(super) fn write_place(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let wanted = place_of(session);
        match (&session.place.written, wanted) {
            (Some((_, written)), Some(wanted)) if written.is_where(&wanted) => {}
            (written, Some(wanted)) => {
                let file = written.as_ref().map_or(number, |(file, _)| *file);
                let _ = self.ledger.state.write_place(file, &wanted);
                session.place.written = Some((file, wanted));
            }
            (Some((file, _)), None) => {
                self.ledger.state.forget_place(*file);
                session.place.written = None;
            }
            (None, None) => {}
        }
    }

    /// Takes up a place that was written down, if its launch still lives.
    pub(super) fn restore_place(&mut self, number: u64, saved: SavedPlace) -> Result<(), Fatal> {
        let call = |call| move |errno| Fatal::Call(Failure { call, errno });
        let process = match PidFd::open(saved.pid) {
            Err(Errno::ESRCH) => None,
            opened => Some(opened.map_err(call("pidfd_open"))?),
        };
        let is_same = |_: &PidFd| Process::find(saved.pid).is_some_and(|found| found.started == saved.start);
        let Some(process) = process.filter(is_same) else {
            self.ledger.state.forget_place(number);
            return Ok(());
        };
        let store = self.store_of(Some(saved.uid));
        let stood: Vec<Stood> = saved.lines.iter().map(|line| line.stood(store.table(&line.table))).collect();
        let mut line = PlaceInLine::again(Number(saved.number.number), &stood);
        line.belongs_to(saved.pid, saved.uid);
        self.poller.add(&process, number * KINDS + RETURNING, Interest::Read).map_err(call("epoll_ctl"))?;
        let due = Instant::now() + AWAY;
        self.dues.insert((due, number));
        self.ledger.returning.insert(number, Returning { saved, line, process, due, is_away: false });
        Ok(())
    }

    /// A launch asks: if it stood in line before, it has its place again.
    pub(super) fn come_back(&mut self, number: u64) {
        let Some(session) = self.sessions.get(&number) else { return };
        // Nobody has two places, nor the tickets of two.
        if self.ledger.returning.is_empty()
            || session.place.line.number().is_some()
            || self.has_tickets(number)
        {
            return;
        }
        let theirs = (session.peer.pid, session.peer.started, session.peer.uid);
        let is_theirs = |(_, returning): &(&u64, &Returning)| returning.saved.whose() == theirs;
        let found = self
            .ledger
            .returning
            .iter()
            .filter(is_theirs)
            .min_by_key(|(_, returning)| returning.saved.number.number);
        let Some((file, place)) = found.map(|(file, returning)| (*file, &returning.saved)) else { return };
        // To have stood in line for one launch is worth nothing for another.
        if session.take.as_ref().is_none_or(|take| !place.number.is_for(take)) {
            return self.is_gone(file);
        }
        let Some(Returning { saved, line, .. }) = self.no_longer_returning(file) else { return };
        self.hand_over_tickets(file, number);
        if let Some(session) = self.sessions.get_mut(&number) {
            line.set_away(false);
            session.place.line = line;
            session.place.written = Some((file, saved));
            session.place.has_waited = true;
        }
    }

    /// One that has not called for so long does not answer, or is gone.
    pub(super) fn is_not_back(&mut self, number: u64) {
        let Some(returning) = self.ledger.returning.get_mut(&number) else { return };
        if std::mem::replace(&mut returning.is_away, true) {
            return self.is_gone(number);
        }
        returning.line.set_away(true);
        returning.due += LONGEST_ABSENCE.saturating_sub(AWAY);
        self.dues.insert((returning.due, number));
        let tables = returning.line.tables();
        self.serve(&tables);
    }

    /// Its process has ended, or will not call.
    pub(super) fn is_gone(&mut self, number: u64) {
        let Some(Returning { line, .. }) = self.no_longer_returning(number) else { return };
        self.ledger.state.forget_place(number);
        let tables = line.tables();
        drop(line);
        self.write_tickets(number);
        self.serve(&tables);
        for table in &tables {
            self.ledger.store.forget_if_unused(table.name());
        }
    }

    fn no_longer_returning(&mut self, number: u64) -> Option<Returning> {
        let returning = self.ledger.returning.remove(&number)?;
        self.dues.remove(&(returning.due, number));
        let _ = self.poller.remove(&returning.process);
        Some(returning)
    }
}

/// Where a launch stands now.
fn place_of(session: &Session) -> Option<SavedPlace> {
    let number = session.place.line.number()?;
    let now = process::since_boot()?;
    let lines: Vec<SavedLine> =
        session.place.line.stood().iter().map(|stood| SavedLine::of(stood, now)).collect();
    if lines.is_empty() {
        return None;
    }
    let (pid, start, uid) = (session.peer.pid, session.peer.started, session.peer.uid);
    let number = SavedNumber::of(number, session.take.as_ref()?);
    Some(SavedPlace { pid, start, uid, command: session.command(), number, lines })
}

impl SavedPlace {
    fn whose(&self) -> (i32, u64, u32) {
        (self.pid, self.start, self.uid)
    }

    /// Whether both are the same place, whenever they were written down.
    fn is_where(&self, other: &Self) -> bool {
        let lines = |place: &Self| -> Vec<_> {
            place.lines.iter().map(|line| (line.table.clone(), line.classes.clone())).collect()
        };
        self.number.number == other.number.number && lines(self) == lines(other)
    }
}

impl SavedLine {
    fn of(stood: &Stood, now: Duration) -> Self {
        let begun = now.saturating_sub(stood.longest);
        Self {
            table: stood.table.name().to_owned(),
            classes: stood.classes.iter().map(|class| (class.generation, class.reach)).collect(),
            begun: u64::try_from(begun.as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn stood(&self, table: memory::Table) -> Stood {
        let class = |(generation, reach): &(u16, u64)| Class { generation: *generation, reach: *reach };
        let now = process::since_boot().unwrap_or_default();
        let longest = now.saturating_sub(Duration::from_millis(self.begun));
        Stood { table, classes: self.classes.iter().map(class).collect(), longest }
    }
}
