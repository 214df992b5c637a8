//! Too late: holders that are overdue are ended for the launch that comes first, or because somebody swept
//! for them. The thread that owns the tables never waits for a holder: it is woken when one has ended, and
//! when a signal is due.

use std::time::Instant;

use super::{
    ending::{Ending, ToEnd},
    service::Service,
    session::{Session, Stage},
    worklist::LONGEST_ROUND,
};
use crate::{
    keeper::{
        Fate, Overdue,
        agent::message::{Answer, Expired, Sweep},
        memory,
        table::{Table, TableId},
    },
    sys::process,
    terms::pace::Expiry,
};

impl Service {
    /// Begins to end holders for a launch.
    pub(super) fn begin_endings(&mut self, number: u64, all: &[ToEnd]) {
        for to_end in all {
            for overdue in &to_end.overdue {
                if overdue.elsewhere.is_some() {
                    self.give_notice(number, to_end, overdue);
                } else {
                    self.begin_to_end(number, to_end, overdue);
                }
            }
        }
        self.go_on_with_endings(number);
        self.write_notices();
    }

    fn begin_to_end(&mut self, number: u64, to_end: &ToEnd, overdue: &Overdue) {
        let slot = overdue.holder.slots.0;
        let holds =
            |held: &memory::Held| held.table().is_called(&to_end.table) && held.slots().contains(&slot);
        let mut holdings = self.ledger.holdings.iter();
        let found =
            holdings.find(|(_, holding)| holding.held.iter().any(|held| !held.is_shared() && holds(held)));
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.tried.push(overdue.process());
        if let Some((holding, _)) = found {
            session.endings.push(Ending::of(*holding, to_end, overdue.clone(), Some(session.peer.pid)));
        }
    }

    /// Sends the signals that are due on behalf of a conversation.
    fn go_on_with_endings(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let (holdings, evictor) = (&self.ledger.holdings, &self.evictor);
        let mut fates = Vec::new();
        session.endings.retain_mut(|ending| {
            let fate = match holdings.get(&ending.holding) {
                Some(holding) => ending.go_on(holding, evictor),
                None => Some(ending.when_free()),
            };
            fates.extend(fate.map(|fate| (ending.table.clone(), ending.overdue.clone(), fate)));
            fate.is_none()
        });
        for (table, overdue, fate) in fates {
            session.tell(&table, &overdue, fate);
        }
        self.set_due(number);
    }

    /// Sees what came of the signals that were sent.
    pub(super) fn hear_evictor(&mut self) {
        let concerned: Vec<u64> = self.ending.iter().copied().collect();
        for number in concerned {
            if self.sessions.get(&number).is_some_and(Session::is_sending) {
                self.go_on_with_endings(number);
                self.look_again(number);
            }
        }
    }

    /// The slots of a holding are free: whoever has ended it hears of that.
    pub(super) fn has_let_go(&mut self, holding: u64) {
        let concerned: Vec<u64> = self.ending.iter().copied().collect();
        for number in concerned {
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            let gone = session.endings.extract_if(.., |ending| ending.holding == holding);
            for mut ending in gone.collect::<Vec<_>>() {
                let fate = ending.when_free();
                session.tell(&ending.table, &ending.overdue, fate);
            }
            self.set_due(number);
        }
    }

    /// One for whom somebody was ended, and who does not stand in line, looks again; a sweep that is over is
    /// answered.
    pub(super) fn go_on_after_endings(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else {
            self.ending.remove(&number);
            return;
        };
        match std::mem::replace(&mut session.stage, Stage::Idle) {
            Stage::Ends(order) => self.carry_out(number, order, false),
            Stage::Sweeps(are_all_gone) if session.endings.is_empty() => {
                session.answer(&Answer::Done(are_all_gone), None);
            }
            stage => session.stage = stage,
        }
        self.set_due(number);
        self.flush(number);
    }

    /// Notes when a conversation is to be looked at though nothing is said in it.
    pub(super) fn set_due(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let due = session.next_due();
        if session.due != due {
            session.due.map(|due| self.dues.remove(&(due, number)));
            session.due = due;
            self.dues.extend(due.map(|due| (due, number)));
        }
        if session.is_ending() {
            self.ending.insert(number);
        } else {
            self.ending.remove(&number);
        }
    }

    /// Does what is due by now, for as long as a round may take.
    pub(super) fn do_what_is_due(&mut self, begun: Instant) {
        let is_due = |(due, _): &(Instant, u64)| *due <= Instant::now() && begun.elapsed() < LONGEST_ROUND;
        while let Some((due, number)) = self.dues.first().copied().filter(is_due) {
            self.dues.remove(&(due, number));
            let Some(session) = self.sessions.get_mut(&number) else {
                self.is_not_back(number);
                continue;
            };
            session.due = None;
            if !session.endings.is_empty() {
                self.go_on_with_endings(number);
            }
            self.look_again(number);
        }
    }

    /// The time of a claim may be over, or somebody who was to be ended goes on.
    fn look_again(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        if session.place.next.is_some_and(|next| next <= Instant::now())
            && let Stage::Waits(_) = session.stage
            && let Stage::Waits(order) = std::mem::replace(&mut session.stage, Stage::Idle)
        {
            session.place.next = None;
            self.carry_out(number, order, false);
        } else if session.endings.is_empty() {
            self.look_again_after(vec![number]);
        }
        self.set_due(number);
        self.flush(number);
    }

    /// Ends all who are overdue in a table: for root everybody, for others what is their own.
    pub(super) fn sweep(&mut self, number: u64, sweep: &Sweep) {
        // Whatever it asked before, it asks something else now.
        self.stand_down(number);
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.tried.clear();
        session.stage = Stage::Sweeps(true);
        let Sweep { table: name, after, grace, kill } = sweep;
        let expiry = Expiry { after: *after, grace: *grace, kill: *kill };
        if let Some(table) = self.ledger.store.known(name) {
            let holders = table.holders(&table.occupancy());
            // Each host sweeps its own.
            let mut overdue = memory::overdue(&holders, &expiry);
            overdue.retain(|overdue| overdue.elsewhere.is_none());
            let overdue = session.may_end(name, overdue);
            let id: TableId = Table::Memory(table).id();
            self.begin_endings(number, &[ToEnd { table: name.clone(), id, expiry, overdue }]);
        }
        self.look_again_after(vec![number]);
    }
}

impl Session {
    /// Of those who are overdue the ones that may be ended on its behalf; it hears of the others.
    fn may_end(&mut self, table: &str, overdue: Vec<Overdue>) -> Vec<Overdue> {
        let lineage: Vec<i32> = process::lineage(self.peer.pid).collect();
        let others = overdue.into_iter().filter(|overdue| !lineage.contains(&overdue.process()));
        let uid = self.peer.uid;
        let (own, strange): (Vec<_>, Vec<_>) =
            others.partition(|overdue| uid == 0 || overdue.holder.uid == Some(uid));
        for overdue in strange {
            self.tell(table, &overdue, Fate::NotPermitted);
        }
        own
    }

    /// Tells what has become of somebody who was to be ended.
    pub(super) fn tell(&mut self, table: &str, overdue: &Overdue, fate: Fate) {
        if let Stage::Sweeps(are_all_gone) = &mut self.stage {
            *are_all_gone &= fate.has_left();
        }
        if let Some(expired) = Expired::of(table, overdue, fate) {
            self.answer(&Answer::Expired(expired), None);
        }
    }

    /// When it is to be looked at.
    fn next_due(&self) -> Option<Instant> {
        let next = self.place.next.filter(|_| matches!(self.stage, Stage::Waits(_)));
        self.endings.iter().filter_map(Ending::due).chain(next).min()
    }

    /// Whether signals are being sent for it.
    fn is_sending(&self) -> bool {
        self.endings.iter().any(|ending| ending.due().is_none())
    }

    /// Whether somebody is being ended for it.
    fn is_ending(&self) -> bool {
        let is_empty = self.endings.is_empty() && self.notices.is_empty();
        !is_empty || matches!(self.stage, Stage::Ends(_) | Stage::Sweeps(_))
    }
}
