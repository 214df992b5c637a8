//! Overdue holders, which are ended for the launch that comes first, or because somebody swept for them. The
//! thread that owns the tables never waits for a holder: it is woken when one has ended, and when a signal is
//! due.

use super::{
    eviction::{Eviction, RunningEviction},
    service::Service,
    session::{Event, Session},
};
use crate::{
    keeper::{
        Fate, Overdue,
        agent::message::Sweep,
        memory,
        table::{Table, TableId},
    },
    sys::process,
    terms::pace::Expiry,
};

impl Service {
    /// Begins to end holders for a launch.
    pub(super) fn begin_evictions(&mut self, number: u64, all: &[Eviction]) {
        for eviction in all {
            for overdue in &eviction.overdue {
                if overdue.elsewhere.is_some() {
                    self.give_notice(number, eviction, overdue);
                } else {
                    self.evict(number, eviction, overdue);
                }
            }
        }
        self.go_on_with_evictions(number);
        self.reconcile();
    }

    fn evict(&mut self, number: u64, eviction: &Eviction, overdue: &Overdue) {
        let slot = overdue.holder.slots.0;
        let holds =
            |held: &memory::Held| held.table().is_called(&eviction.table) && held.slots().contains(&slot);
        let mut holdings = self.ledger.holdings().iter();
        let found =
            holdings.find(|(_, holding)| holding.held.iter().any(|held| !held.is_shared() && holds(held)));
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.tried.push(overdue.process());
        if let Some((holding, _)) = found {
            let launch = Some(session.peer.pid);
            session.evictions.push(RunningEviction::of(*holding, eviction, overdue.clone(), launch));
        }
    }

    /// Sends the signals that are due on behalf of a session.
    pub(super) fn go_on_with_evictions(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let (holdings, evictor) = (self.ledger.holdings(), &self.evictor);
        let mut fates = Vec::new();
        session.evictions.retain_mut(|eviction| {
            let fate = match holdings.get(&eviction.holding) {
                Some(holding) => eviction.go_on(holding, evictor),
                None => Some(eviction.when_free()),
            };
            fates.extend(fate.map(|fate| (eviction.table.clone(), eviction.overdue.clone(), fate)));
            fate.is_none()
        });
        for (table, overdue, fate) in fates {
            session.tell(&table, &overdue, fate);
        }
    }

    /// Sees what came of the signals that were sent.
    pub(super) fn hear_evictor(&mut self) {
        for number in self.sessions.evicting() {
            if self.sessions.get(&number).is_some_and(Session::is_sending) {
                self.go_on_with_evictions(number);
                self.look_again(number);
            }
        }
    }

    /// The time of a claim may be over, or somebody who was to be ended goes on.
    pub(super) fn look_again(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.on(Event::Timer);
        if session.evictions.is_empty() {
            self.look_again_after(vec![number]);
        }
    }

    /// The slots of a holding are free: whoever has ended it hears of that.
    pub(super) fn has_let_go(&mut self, holding: u64) {
        for number in self.sessions.evicting() {
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            let gone = session.evictions.extract_if(.., |eviction| eviction.holding == holding);
            for mut eviction in gone.collect::<Vec<_>>() {
                let fate = eviction.when_free();
                session.tell(&eviction.table, &eviction.overdue, fate);
            }
        }
    }

    /// Ends all who are overdue in a table: for root everybody, for others what is their own.
    pub(super) fn sweep(&mut self, number: u64, sweep: &Sweep) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.on(Event::Sweeps);
        let Sweep { table: name, after, grace, kill } = sweep;
        let expiry = Expiry { after: *after, grace: *grace, kill: *kill };
        if let Some(table) = self.ledger.store().known(name) {
            let holders = table.holders(&table.occupancy());
            // Each host sweeps its own.
            let mut overdue = memory::overdue(&holders, &expiry);
            overdue.retain(|overdue| overdue.elsewhere.is_none());
            let overdue = session.may_end(name, overdue);
            let id: TableId = Table::Memory(table).id();
            self.begin_evictions(number, &[Eviction { table: name.clone(), id, expiry, overdue }]);
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
}
