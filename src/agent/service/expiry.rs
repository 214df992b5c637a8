//! Ends holders: overdue ones for the first waiting launch, and those that a user asks to end. The thread
//! that owns the tables never waits for a holder. It wakes when one has ended, and when a signal is due.

use std::{collections::BTreeMap, time::Duration};

use super::{Service, local::Local};
use crate::{
    agent::{
        eviction::{Eviction, RunningEviction},
        ledger::holding::Holding,
        session::{Event, Session},
    },
    judge::terms::pace::Expiry,
    keeper::{
        EvictionOutcome, Holder, Overdue,
        agent::message::{Answer, Chosen, Evict, MOST_CHOSEN, Which},
        memory,
        table::{Table, TableId},
    },
    sys::process,
};

impl Service {
    /// Begins to end holders for a launch.
    pub(super) fn begin_evictions(&mut self, number: u64, all: &[Eviction]) {
        for eviction in all {
            for overdue in &eviction.overdue {
                if overdue.elsewhere.is_some() {
                    if let Some(site) = &self.site {
                        site.give_notice(&mut self.local, number, eviction, overdue);
                    }
                } else {
                    self.local.evict(number, eviction, overdue);
                }
            }
        }
        self.local.go_on_with_evictions(number);
        if let Some(site) = &mut self.site {
            site.reconcile(&mut self.local);
        }
    }

    /// Ends holders of a table at a user's request: any for root, their own for other users.
    pub(super) fn evict_for(&mut self, number: u64, evict: &Evict) {
        let Some(session) = self.local.sessions.get_mut(&number) else { return };
        let Evict { table: name, which, grace, kill } = evict;
        if matches!(which, Which::These(chosen) if chosen.len() > MOST_CHOSEN) {
            let why = format!("it ends at most {MOST_CHOSEN} holders at once");
            return session.answer(Answer::Failed(why), None);
        }
        session.on(Event::Evicts);
        let after = match which {
            Which::Overdue(after) => *after,
            Which::These(_) => Duration::ZERO,
        };
        let expiry = Expiry { after, grace: *grace, kill: *kill };
        if let Some(table) = self.local.ledger.store().known(name) {
            let mut holders = table.holders(&table.occupancy());
            let overdue = match which {
                Which::Overdue(_) => {
                    // Each host ends only its own overdue holders.
                    let mut overdue = memory::overdue(&holders, &expiry);
                    overdue.retain(|overdue| overdue.elsewhere.is_none());
                    overdue
                }
                Which::These(chosen) => {
                    let chosen: BTreeMap<u64, &Chosen> = chosen.iter().map(|of| (of.slot, of)).collect();
                    let is_meant = |Holder { slots: (first, last), pid, since, .. }: &Holder| {
                        let mut of_slots = chosen.range(first..=last);
                        of_slots.any(|(_, of)| (Some(of.pid), Some(of.since)) == (*pid, *since))
                    };
                    let is_chosen = |holder: &Holder| is_meant(holder) || holder.others.iter().any(is_meant);
                    holders.retain(is_chosen);
                    memory::chosen(&holders)
                }
            };
            let overdue = session.may_end(name, overdue.into_iter().flat_map(Overdue::each).collect());
            let id: TableId = Table::Memory(table).id();
            self.begin_evictions(number, &[Eviction { table: name.clone(), id, expiry, overdue }]);
        }
        self.local.look_again(vec![number]);
    }
}

impl Local {
    pub(super) fn evict(&mut self, number: u64, eviction: &Eviction, overdue: &Overdue) {
        let slot = overdue.holder.slots.0;
        let holds =
            |held: &memory::Held| held.table().is_called(&eviction.table) && held.slots().contains(&slot);
        let mut holdings = self.ledger.holdings().iter();
        // Each member of a group is ended separately.
        let is_it = |holding: &Holding, held: &memory::Held| {
            held.group().is_none() || holding.saved.pid == overdue.process()
        };
        let found = holdings.find(|(_, holding)| {
            holding.held.iter().any(|held| !held.is_shared() && holds(held) && is_it(holding, held))
        });
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

    /// Reads the results of the signals.
    pub(super) fn hear_evictor(&mut self) {
        for number in self.sessions.evicting() {
            if self.sessions.get(&number).is_some_and(Session::is_sending) {
                self.go_on_with_evictions(number);
                self.on_timer(number);
            }
        }
    }

    /// A timeout has passed: the wait of a claim is over, a holder that was to be ended continues, or a
    /// launch in a queue has been silent for too long. Such a launch is passed over, and those behind it
    /// check again.
    pub(super) fn on_timer(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.on(Event::Timer);
        let (falls_silent, tables) = (session.falls_silent(), session.place.line.tables());
        if session.evictions.is_empty() {
            self.look_again(vec![number]);
        }
        if falls_silent && self.is_away(number) {
            self.serve(&tables);
        }
    }

    /// The slots of a holding are free: the caller that ended it is notified.
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
}

impl Session {
    /// The holders that may be ended on its behalf; it is notified about the others.
    fn may_end(&mut self, table: &str, overdue: Vec<Overdue>) -> Vec<Overdue> {
        let lineage: Vec<i32> = process::lineage(self.peer.pid).collect();
        let is_above =
            |overdue: &Overdue| overdue.elsewhere.is_none() && lineage.contains(&overdue.process());
        let others = overdue.into_iter().filter(|overdue| !is_above(overdue));
        let uid = self.peer.uid;
        let (own, strange): (Vec<_>, Vec<_>) =
            others.partition(|overdue| uid == 0 || overdue.holder.uid == Some(uid));
        for overdue in strange {
            self.tell(table, &overdue, EvictionOutcome::NotPermitted);
        }
        own
    }
}
