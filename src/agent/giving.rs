//! Slots that are given, written down before anybody is told, and come back; and those who wait for them, in
//! their order.

use std::time::SystemTime;

use super::{
    holding::{Holding, writer},
    reception::session_answer,
    saved::SavedStamps,
    service::Service,
    session::Stage,
};
use crate::{
    keeper::{
        agent::message::{Answer, Granted},
        memory,
    },
    sys::failure::Failure,
    terms::{hold::Hold, runs::Runs},
};

impl Service {
    /// Writes down that a launch has slots, and then tells it.
    pub(super) fn grant(&mut self, session_number: u64, mut holding: Holding) {
        if let Err(quota) = self.connections.quotas.may_have(&holding) {
            holding.withdraw_stamps();
            self.free_at_site(holding, false);
            return self.refuse(session_number, &Answer::Failed(quota.to_string()));
        }
        let number = self.number();
        if let Some(session) = self.sessions.get_mut(&session_number) {
            session.place.line.give_up();
            session.place.resting = None;
            session.place.begins.answer = None;
        }
        let written = (|| {
            let mut end = None;
            if holding.saved.hold > Hold::Process {
                holding.fifo = Some(self.ledger.state.new_fifo(number)?);
                end = Some(writer(&self.ledger.state.fifo(number))?);
            }
            self.ledger.state.write(number, &holding.saved)?;
            self.write_stamps(&holding)?;
            Ok::<_, Failure>(end)
        })();
        let end = match written {
            Ok(end) => end,
            Err(failure) => {
                self.ledger.state.forget(number, holding.saved.hold);
                holding.withdraw_stamps();
                self.free_at_site(holding, false);
                let why = format!("it cannot write down what it gives: {failure}");
                return self.refuse(session_number, &Answer::Failed(why));
            }
        };
        self.write_place(session_number);
        let Some(session) = self.sessions.get_mut(&session_number) else { return };
        let saved = &holding.saved;
        let slots =
            saved.tables.iter().map(|of| (of.table.clone(), Runs::of(&of.slots).to_string())).collect();
        let without = std::mem::take(&mut holding.without);
        let granted = Granted { slots, without, hold: saved.hold, has_waited: session.place.has_waited };
        session.stage = Stage::Has(number);
        session.place.begun = None;
        session.endings.clear();
        session.notices.clear();
        // Told only once it is certain that its end will be seen.
        if let Err(failure) = self.watch(number, holding) {
            return self.refuse(session_number, &Answer::Failed(failure.to_string()));
        }
        if let Some(session) = self.sessions.get_mut(&session_number) {
            session.answer(&Answer::Granted(granted), end);
        }
    }

    fn write_stamps(&self, holding: &Holding) -> Result<(), Failure> {
        for name in &holding.paced {
            if let Some(table) = self.ledger.store.known(name) {
                let stamps = SavedStamps::of(&table, holding.saved.uid);
                self.ledger.state.write_stamps(name, &stamps)?;
            }
        }
        Ok(())
    }

    /// A launch gives back what it has.
    pub(super) fn take_back(&mut self, number: u64, has_run: bool) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        if let Stage::Has(holding) = session.stage {
            session.stage = Stage::Idle;
            self.release(holding, has_run);
            session_answer(&mut self.sessions, number, &Answer::Done(true));
        } else {
            // What it waits for it does not want either.
            self.refuse(number, &Answer::Done(false));
        }
    }

    /// Frees slots, and gives them to those who wait; `has_run` where a program had them until now.
    pub(super) fn release(&mut self, number: u64, has_run: bool) {
        let tables = self.free(number, has_run);
        self.are_free(&tables);
    }

    /// Frees slots, and gives them to nobody yet.
    pub(super) fn free(&mut self, number: u64, has_run: bool) -> Vec<memory::Table> {
        let Some(holding) = self.ledger.holdings.remove(&number) else { return Vec::new() };
        self.connections.quotas.give_back(&holding);
        self.forget(&holding);
        self.has_let_go(number);
        self.has_ended_by_notice(number, &holding);
        let tables: Vec<memory::Table> = holding.held.iter().map(|held| held.table().clone()).collect();
        if has_run {
            self.ledger.ends.see(&holding.saved);
            for table in &tables {
                table.ended(SystemTime::now());
            }
        } else {
            holding.withdraw_stamps();
        }
        // A pause that was not written down ends with the agent, and not sooner.
        let _ = self.write_stamps(&holding);
        let hold = holding.saved.hold;
        self.free_at_site(holding, has_run);
        self.ledger.state.forget(number, hold);
        tables
    }

    /// Slots of these tables are free: whoever comes first has them.
    pub(super) fn are_free(&mut self, tables: &[memory::Table]) {
        self.serve(tables);
        if !tables.is_empty() {
            self.look_again_after(self.ending.iter().copied().collect());
        }
    }
}
