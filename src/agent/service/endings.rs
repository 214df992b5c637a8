//! Ends holders: overdue ones for the first waiting launch, and those that a user asks to end. The thread
//! that owns the tables never waits for a holder. It wakes when one has ended, and when a signal is due.

use std::{collections::BTreeMap, time::Duration};

use super::{
    super::{Event, Eviction, RunningEviction, Session, ledger::is_above, ledger::state::SavedHolding},
    Local, Service,
};
use crate::{
    judge::terms::Expiry,
    keeper::{
        EvictionOutcome, Holder, MOST_CHOSEN, Overdue,
        agent::message::{Answer, Chosen, Evict, Which},
        memory,
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
                } else if overdue.holder.lingers_until.is_some() {
                    self.end_lingering(number, &eviction.table, overdue);
                } else {
                    self.local.evict(number, eviction, overdue);
                }
            }
        }
        self.local.continue_evictions(number);
        if let Some(site) = &mut self.site {
            site.reconcile(&mut self.local);
        }
    }

    /// Frees slots whose programs have ended, here and at the site.
    pub(super) fn free_lingering(&mut self, free: Vec<memory::Held>) {
        let tables: Vec<memory::Table> = free.iter().map(|held| held.table().clone()).collect();
        match &mut self.site {
            Some(site) => site.give_back(&mut self.local, free),
            None => drop(free),
        }
        self.local.have_room(&tables);
    }

    /// The same at the request of root.
    pub(super) fn end_lingering(&mut self, number: u64, table: &str, overdue: &Overdue) {
        let (first, last) = overdue.holder.slots;
        let slots = (first..=last).flat_map(|slot| self.local.end_lingering_at(table, slot));
        let free: Vec<memory::Held> = slots.collect();
        let fate = if free.is_empty() { EvictionOutcome::HadLeft } else { EvictionOutcome::Freed };
        self.free_lingering(free);
        if let Some(session) = self.local.sessions.get_mut(&number) {
            session.tell(table, overdue, fate);
        }
    }

    /// Ends holders of a table at a user's request: any for root, their own for other users. Root may also
    /// free slots that linger.
    pub(super) fn evict_for(&mut self, number: u64, evict: &Evict) {
        let Some(session) = self.local.sessions.get_mut(&number) else { return };
        let Evict { table: name, which, grace, kill } = evict;
        if matches!(which, Which::These(chosen) if chosen.len() > MOST_CHOSEN) {
            let why = format!("it ends at most {MOST_CHOSEN} holders at once");
            return session.answer(Answer::Failed(why), None);
        }
        let quotas = self.local.connections.quotas();
        if let Err(quota) = quotas.may_ask(session.peer.uid) {
            return session.answer(Answer::Failed(quotas.decline(quota)), None);
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
                    let mut all = memory::chosen(&holders);
                    if session.peer.uid == 0 {
                        all.extend(memory::lingering(&holders));
                    }
                    all
                }
            };
            let overdue = session.may_end(name, overdue.into_iter().flat_map(Overdue::each).collect());
            self.begin_evictions(number, &[Eviction { table: name.clone(), expiry, overdue }]);
        }
        self.local.look_again(vec![number]);
    }
}

impl Local {
    /// A holding gets each signal once, for any number of tables.
    pub(super) fn evict(&mut self, number: u64, eviction: &Eviction, overdue: &Overdue) {
        let slot = overdue.holder.slots.0;
        let holds =
            |held: &memory::Held| held.table().is_called(&eviction.table) && held.slots().contains(&slot);
        let all = self.ledger.holdings();
        // Each member of a group is ended separately.
        let is_it = |keeper: u64, held: &memory::Held| {
            let is_its = |SavedHolding { pid, program, .. }: &SavedHolding| {
                [Some(*pid), *program].contains(&Some(overdue.process()))
            };
            held.group().is_none() || all.get(&keeper).is_some_and(|keeper| is_its(&keeper.saved))
        };
        // A nested launch may keep the slots by now.
        let found = all.iter().find_map(|(number, holding)| {
            let mut own = holding.held.iter().filter(|held| !held.is_shared() && holds(held));
            let keeper = self.ledger.keeper_of(*number);
            own.any(|held| is_it(keeper, held)).then_some(keeper)
        });
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.tried.push(overdue.process());
        if let Some(holding) = found
            && session.evictions.iter().all(|running| running.holding != holding)
        {
            let launch = Some(session.peer.pid);
            session.evictions.push(RunningEviction::of(holding, eviction, overdue.clone(), launch));
        }
    }

    /// Sends the signals that are due on behalf of a session, and may be sent.
    pub(super) fn continue_evictions(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let (holdings, evictor, may_signal) = (self.ledger.holdings(), &self.evictor, session.may_signal());
        let mut fates = Vec::new();
        session.evictions.retain_mut(|eviction| {
            let fate = match holdings.get(&eviction.holding) {
                Some(holding) if may_signal && !eviction.rests => eviction.advance(holding, evictor),
                Some(holding) => eviction.hear(holding),
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
                self.continue_evictions(number);
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
        if falls_silent && self.update_away(number) {
            self.serve(&tables);
            self.judge_others(number, &tables);
        }
    }

    /// The slots of a holding are free, or a nested launch keeps them: the caller that ended it is notified.
    pub(super) fn on_released(&mut self, holding: u64) {
        let is_left = self.ledger.is_left_to_nested(holding);
        for number in self.sessions.evicting() {
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            let gone = session.evictions.extract_if(.., |eviction| eviction.holding == holding);
            for mut eviction in gone.collect::<Vec<_>>() {
                let fate = if is_left { eviction.when_left() } else { eviction.when_free() };
                session.tell(&eviction.table, &eviction.overdue, fate);
            }
        }
        self.look_again(self.sessions.evicting());
    }
}

impl Session {
    /// The holders that may be ended on its behalf; it is notified about the others.
    pub(super) fn may_end(&mut self, table: &str, overdue: Vec<Overdue>) -> Vec<Overdue> {
        let lineage: Vec<i32> = process::near_lineage(self.peer.pid).collect();
        let others = overdue.into_iter().filter(|overdue| !is_above(&lineage, overdue));
        let uid = self.peer.uid;
        let (own, strange): (Vec<_>, Vec<_>) =
            others.partition(|overdue| uid == 0 || overdue.holder.uid == Some(uid));
        for overdue in strange {
            self.tell(table, &overdue, EvictionOutcome::NotPermitted);
        }
        own
    }
}
