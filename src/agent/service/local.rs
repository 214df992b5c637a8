//! What the agent keeps of this host: its clients, what they hold and wait for, the judges, the evictions,
//! and pending work. It knows nothing of the site, which changes it by these methods.

use std::{
    collections::BTreeSet,
    mem,
    time::{Duration, Instant},
};

use crate::{
    agent::{
        AcquireRequest, CheckOutcome, Connections, Event, Evictor, Judges, Ledger, Question, Session,
        Sessions,
        ledger::{holding::Holding, state::SavedHolding},
        server::quota::{Quota, Share},
    },
    judge::terms::{Hold, Keyword},
    keeper::{
        agent::message::{Answer, Granted, Obstacle, Refused, Unwaited},
        memory,
    },
};

/// Everything but the site.
pub(in crate::agent) struct Local {
    pub(super) connections: Connections,
    pub(super) ledger: Ledger,
    pub(super) sessions: Sessions,
    pub(super) judges: Judges,
    /// Sends signals to overdue holders.
    pub(super) evictor: Evictor,
    /// Pending work.
    pub(super) work: Worklist,
    /// The number that the next session or holding gets.
    pub(super) next: u64,
    /// The generation of the policy that was read last, and when it was computed.
    pub(super) generation: Option<(Instant, u16)>,
}

/// A heartbeat takes a generation that was computed so recently: each of many waiters sends one a second.
const GENERATION_FOR: Duration = Duration::from_millis(100);

impl Local {
    /// The tables, and who has slots of them.
    pub(in crate::agent) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(in crate::agent) fn session(&self, number: u64) -> Option<&Session> {
        self.sessions.get(&number)
    }

    /// One of the sessions, mutably.
    pub(in crate::agent) fn session_mut(&mut self, number: u64) -> Option<&mut Session> {
        self.sessions.get_mut(&number)
    }

    /// The sessions for which a holder is being ended.
    pub(in crate::agent) fn evicting(&self) -> Vec<u64> {
        self.sessions.evicting()
    }

    /// Whether a session has unread input.
    pub(in crate::agent) fn is_unheard(&self, number: u64) -> bool {
        self.connections.is_unheard(number)
    }

    pub(in crate::agent) fn evictor(&self) -> &Evictor {
        &self.evictor
    }

    /// Sends a request to the judges.
    pub(in crate::agent) fn ask(&mut self, question: Question) {
        self.judges.ask(question);
    }

    /// Replaces a slot for all who have it; see there.
    pub(in crate::agent) fn move_slot(&mut self, table: &memory::Table, slot: u64, another: u64) -> bool {
        self.ledger.move_slot(table, slot, another)
    }

    /// Frees the slots of ended programs that include this one; see there.
    pub(in crate::agent) fn end_lingering_at(&mut self, table: &str, slot: u64) -> Vec<memory::Held> {
        self.ledger.end_lingering_at(table, slot)
    }

    /// The holders that have ended while no agent ran.
    pub(in crate::agent) fn take_ended_unseen(&mut self) -> Vec<SavedHolding> {
        self.ledger.take_ended_unseen()
    }

    /// The launches that the site was asked for when the agent died, and that were never answered.
    pub(in crate::agent) fn take_unproved(&mut self) -> Vec<SavedHolding> {
        self.ledger.take_unproved()
    }

    /// A number for something new.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Passes an event to a session.
    pub(in crate::agent) fn on(&mut self, number: u64, event: Event) {
        if let Some(session) = self.sessions.get_mut(&number) {
            session.on(event);
        }
    }

    /// A launch gets nothing, for this reason.
    pub(in crate::agent) fn fail(&mut self, number: u64, why: String) {
        self.on(number, Event::Refused(Answer::Failed(why)));
    }

    /// Does something that may change how many FIFOs of this user's scripts keep no slots, and counts them.
    pub(super) fn with_fifos_of<T>(&mut self, uid: u32, act: impl FnOnce(&mut Self) -> T) -> T {
        let before = Share::of_unused(self.ledger.unused_of(uid));
        let done = act(self);
        let now = Share::of_unused(self.ledger.unused_of(uid));
        self.connections.count(uid, before, now);
        done
    }

    /// The FIFOs that this user's scripts wait with, also since before the agent failed.
    pub(super) fn fifos_in_use(&self, uid: u32) -> BTreeSet<u64> {
        let sessions = self.sessions.iter().filter(|(_, session)| session.peer.uid == uid);
        let asked = sessions.filter_map(|(_, session)| session.take.as_deref()?.opened);
        let recovered = self.ledger.recovered().values().filter(|waiter| waiter.saved.uid == uid);
        asked.chain(recovered.filter_map(|waiter| waiter.saved.opened)).collect()
    }

    /// What this FIFO of a user keeps, for its script. The script knows then that it has these slots, also if
    /// the command that got them has ended before it could say so.
    pub(super) fn keeps(&mut self, uid: u32, opened: u64) -> Answer {
        let kept = self.ledger.kept_by(uid, opened).map(|(number, holding)| (number, holding.granted(false)));
        let Some((number, granted)) = kept else { return Answer::Done(false) };
        if self.ledger.is_unused(number) {
            self.ledger.on_start(number);
        }
        Answer::Granted(granted)
    }

    /// The slots that a script got, and does not know of: the command that asked for them has ended before.
    /// Its FIFO would keep them, because the script has it open. An agent that was started after this grant
    /// does not know what its predecessor has heard.
    pub(super) fn unknown_to_script(&self, number: u64) -> Option<u64> {
        let session = self.sessions.get(&number)?;
        let is_of_script = session.take.as_deref()?.opened.is_some();
        let holding = session.holding().filter(|of| is_of_script && self.ledger.is_unused(*of));
        holding.filter(|_| self.connections.is_heard_out(number))
    }

    /// These tables have changed: their waiters check again soon, in the order of the queue.
    pub(in crate::agent) fn serve(&mut self, tables: &[memory::Table]) {
        self.work.mark_dirty(tables);
    }

    /// Slots of these tables are free: their waiters check again, and launches that end holders.
    pub(in crate::agent) fn have_room(&mut self, tables: &[memory::Table]) {
        self.serve(tables);
        self.look_again(self.sessions.evicting());
    }

    /// These sessions check again.
    pub(in crate::agent) fn look_again(&mut self, sessions: Vec<u64>) {
        self.work.look_again(sessions);
    }

    /// Whether the caller may have one more launch with slots, and the tables that it needs. `is_of_site`
    /// says which tables of the site have entries there.
    pub(super) fn has_quota_for(
        &self,
        request: &AcquireRequest,
        is_of_site: impl Fn(&str) -> bool,
    ) -> Result<(), Quota> {
        let (quotas, store, uid) = (self.connections.quotas(), self.ledger.store(), request.uid);
        quotas.may_launch(uid)?;
        let new = request.tables().filter(|table| store.known(table).is_none()).count();
        if quotas.are_too_many_tables(store.count_of(uid), new) {
            self.ledger.forget_idle(uid, is_of_site);
        }
        quotas.may_have_tables(uid, store.count_of(uid), new)
    }

    /// Why the FIFO of a script cannot keep what it requests.
    pub(super) fn cannot_be_kept_by_a_script(&self, number: u64, request: &AcquireRequest) -> Option<String> {
        let session = self.sessions.get(&number)?;
        let opened = session.take.as_deref()?.opened?;
        if request.hold != Hold::Descriptor {
            return Some(format!("a descriptor cannot keep slots with hold = \"{}\"", request.hold.word()));
        }
        let is_taken = self.ledger.is_taken(session.peer.uid, opened);
        is_taken.then(|| "the descriptor keeps slots already".to_owned())
    }

    /// Whether a launch keeps waiting by another policy, or by other hours, than newcomers. These may not
    /// pass it, so it would block them also where they have room. A launcher asks again after the next
    /// answer, with the variables that are used by then. So only a second heartbeat shows that it does not.
    pub(super) fn is_left_behind(&mut self, number: u64, request: &AcquireRequest) -> bool {
        let is_outdated =
            !request.is_fresh() && self.generation().is_some_and(|now| now != request.generation);
        let Some(session) = self.sessions.get_mut(&number) else { return false };
        mem::replace(&mut session.place.is_outdated, is_outdated) && is_outdated
    }

    /// The generation of the policy that was read last, if it is known.
    fn generation(&mut self) -> Option<u16> {
        let is_old = |(computed, _): (Instant, u16)| computed.elapsed() > GENERATION_FOR;
        if self.generation.is_none_or(is_old)
            && let Some(now) = self.judges.policies().generation()
        {
            self.generation = Some((Instant::now(), now));
        }
        self.generation.map(|(_, now)| now)
    }

    /// One check; another one if the launch finds a queue full, and a waiter in it does not respond.
    pub(super) fn look_once_or_twice(
        &mut self,
        number: u64,
        request: &AcquireRequest,
        is_asked: bool,
        has_site: bool,
    ) -> CheckOutcome {
        match self.look(number, request, has_site) {
            CheckOutcome::Blocked(blocked)
                if is_asked && !blocked.waits && self.finds_absent(&blocked.refused) =>
            {
                self.look(number, request, has_site)
            }
            looked => looked,
        }
    }

    fn look(&mut self, number: u64, request: &AcquireRequest, has_site: bool) -> CheckOutcome {
        let Some(session) = self.sessions.get_mut(&number) else { return CheckOutcome::Stale };
        let process = || self.connections.process(number);
        self.ledger.look(number, session, request, has_site, process)
    }

    /// Whether a waiter of a full queue stopped responding since the last check.
    fn finds_absent(&mut self, refused: &Refused) -> bool {
        let ends = |obstacle: &&Obstacle| matches!(obstacle.unwaited, Some(Unwaited::Queue(_)));
        let ended = refused.obstacles.iter().filter(ends);
        let tables = ended.filter_map(|obstacle| self.ledger.store().known(&obstacle.table));
        let mut found = false;
        for number in tables.flat_map(|table| table.sessions()).collect::<Vec<_>>() {
            let was_away = self.sessions.get(&number).is_none_or(|session| session.place.was_away);
            found |= !was_away && self.update_away(number);
        }
        found
    }

    /// Checks whether a waiting launch responds.
    pub(super) fn update_away(&mut self, number: u64) -> bool {
        let Some(session) = self.sessions.get_mut(&number) else { return false };
        session.see_whether_away(|| self.connections.is_unheard(number))
    }

    /// If a launch of these queues could not be judged for too long, the others are judged now. Otherwise
    /// several such launches would delay those behind them one after the other. Only the first of a queue
    /// that could not be judged has this done: all others may be late together.
    pub(super) fn judge_others(&mut self, number: u64, tables: &[memory::Table]) {
        if self.sessions.get(&number).is_some_and(Session::is_late) {
            let is_late = |of: &u64| self.sessions.get(of).is_some_and(Session::is_late);
            let leads = |table: &&memory::Table| {
                table.first_away(usize::MAX).into_iter().find(is_late) == Some(number)
            };
            let others: Vec<u64> = tables.iter().filter(leads).flat_map(memory::Table::sessions).collect();
            for other in others {
                if self.sessions.get(&other).is_some_and(Session::is_stale) {
                    self.on(other, Event::Stale);
                }
            }
        }
    }

    /// Saves the launch's position in its queues, if it has changed.
    pub(in crate::agent) fn write_place(&mut self, number: u64) {
        if let Some(session) = self.sessions.get_mut(&number) {
            let wanted = session.saved_place();
            self.ledger.write_place(number, &mut session.place.written, wanted);
        }
    }

    /// Saves that a launch has slots, and then tells it. A launch that gets nothing receives the reason, and
    /// its slots are released.
    pub(in crate::agent) fn grant(&mut self, session: u64, mut holding: Holding) -> Result<(), Box<Holding>> {
        if let Err(quota) = self.connections.quotas().may_have(&holding) {
            holding.withdraw_stamps();
            self.fail(session, self.connections.quotas().decline(quota));
            return Err(Box::new(holding));
        }
        let has_waited = self.sessions.get(&session).is_some_and(|session| session.place.has_waited);
        let granted = Granted { without: mem::take(&mut holding.without), ..holding.granted(has_waited) };
        let number = self.number();
        let (uid, share) = (holding.saved.uid, Share::of(&holding));
        match self.with_fifos_of(uid, |local| local.ledger.grant(number, holding)) {
            Ok(end) => {
                self.connections.count(uid, Share::default(), share);
                self.on(session, Event::Granted(Some(number), granted, end));
                Ok(())
            }
            Err((holding, why)) => {
                self.fail(session, why);
                Err(holding)
            }
        }
    }

    /// A launch that waited when the agent failed is gone, or will not reconnect. Returns whether it existed.
    pub(in crate::agent) fn forget_recovered(&mut self, number: u64) -> bool {
        let Some(waiter) = self.ledger.take_recovered(number) else { return false };
        self.ledger.forget_place(number);
        self.work.mark_dirty(&waiter.line.tables());
        true
    }
}

// Pending work: tables in whose queues a launch may be able to start, connections that are closed, sessions
// that wait for holders to end. Handlers only add it, and the loop does it, a bounded piece at a time, so
// that no handler calls another one.

/// How long the agent works before it reads its sockets again.
pub(super) const LONGEST_ROUND: Duration = Duration::from_millis(20);

/// The pending work.
#[derive(Debug, Default)]
pub(super) struct Worklist {
    /// Tables whose slots or queues have changed.
    dirty: BTreeSet<String>,
    /// Connections whose other end is gone.
    over: BTreeSet<u64>,
    /// Sessions that check again because a holder was ended for them, or may have been.
    to_check: BTreeSet<u64>,
}

impl Worklist {
    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.dirty.is_empty() && self.over.is_empty() && self.to_check.is_empty()
    }

    /// These tables have changed.
    pub(super) fn mark_dirty(&mut self, tables: &[memory::Table]) {
        self.dirty.extend(tables.iter().map(|table| table.name().to_owned()));
    }

    /// These sessions check again.
    pub(super) fn look_again(&mut self, sessions: impl IntoIterator<Item = u64>) {
        self.to_check.extend(sessions);
    }

    /// The next piece of work.
    pub(super) fn next(&mut self) -> Option<Next> {
        let over = self.over.pop_first().map(Next::HangUp);
        let dirty = || self.dirty.pop_first().map(Next::Serve);
        over.or_else(dirty).or_else(|| self.to_check.pop_first().map(Next::Look))
    }

    /// A connection cannot continue.
    pub(super) fn hang_up_later(&mut self, session: u64) {
        self.over.insert(session);
    }
}

/// A piece of work.
#[derive(Debug)]
pub(super) enum Next {
    /// A connection is closed.
    HangUp(u64),
    /// The waiters of a table check again, in the order of its queue.
    Serve(String),
    /// A session checks again, because a holder was ended for it.
    Look(u64),
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use crate::{
        agent::{Change, Effect},
        keeper::Store,
    };

    impl Local {
        /// A launch without a connection.
        pub(in crate::agent) fn add_session(&mut self, session: Session) -> u64 {
            let number = self.number();
            self.sessions.insert(number, session);
            number
        }

        /// What follows from all events, as far as launches hear of it.
        pub(in crate::agent) fn answers(&mut self) -> Vec<Answer> {
            let changes = iter::from_fn(|| self.sessions.next_change());
            let answers = changes.filter_map(|(_, change)| match change {
                Change::Effect(Effect::Answer(answer, _)) => Some(answer),
                _ => None,
            });
            answers.collect()
        }

        /// The tables whose waiters are to check again.
        pub(in crate::agent) fn served(&mut self) -> Vec<String> {
            let next = iter::from_fn(|| self.work.next());
            let tables = next.filter_map(|next| match next {
                Next::Serve(table) => Some(table),
                _ => None,
            });
            tables.collect()
        }

        /// The launches that are to check again, because holders may have ended.
        pub(in crate::agent) fn looks_again(&mut self) -> Vec<u64> {
            let next = iter::from_fn(|| self.work.next());
            let launches = next.filter_map(|next| match next {
                Next::Look(launch) => Some(launch),
                _ => None,
            });
            launches.collect()
        }
    }

    /// Work of every kind is pending until it is done, each piece once. Closed connections come first: the
    /// places of their launches are for others.
    #[test]
    fn pending_work_is_done_once_and_in_its_order() {
        let (mut work, table) = (Worklist::default(), Store::default().table("seats"));
        work.look_again([7]);
        assert!(!work.is_empty());
        work.mark_dirty(&[table.clone(), table]);
        work.hang_up_later(3);
        let first = work.next();
        assert!(matches!(first, Some(Next::HangUp(3))) && !work.is_empty());
        let second = work.next();
        assert!(matches!(second, Some(Next::Serve(name)) if name == "seats") && !work.is_empty());
        assert!(matches!(work.next(), Some(Next::Look(7))));
        assert!(work.is_empty() && work.next().is_none());
        work.hang_up_later(3);
        assert!(!work.is_empty());
        assert!(matches!(work.next(), Some(Next::HangUp(3))));
        work.mark_dirty(&[Store::default().table("other")]);
        assert!(!work.is_empty());
    }
}
