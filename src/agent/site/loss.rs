//! A host that loses the site. Programs that must stop are gone before other hosts can get their slots. The
//! others continue, and their slots are acquired again when the site is back, beyond the limit if others have
//! them, so that the count is true.

use std::time::Instant;

use super::{Site, TICK, log};
use crate::{
    agent::{alive::Alive, ledger::holding::Holding, service::local::Local},
    judge::terms::{keyword::OnLost, location::table_of_site},
    sys::process,
};

/// How often one pass searches for processes to kill.
const LOOKS: usize = 4;

impl Site {
    /// Ends programs that must be gone before others can get their slots.
    pub(super) fn end_what_is_lost(&mut self, local: &Local) {
        if let Some(then) = self.presence.warning() {
            log(&format!("{}; {then}", self.why()));
        }
        let Some((term, kill)) = self.presence.ends_at() else { return };
        let now = process::since_boot().unwrap_or_default();
        if now < term {
            return;
        }
        let is_concerned = |holding: &Holding| holding.on_lost() == Some(OnLost::Stop);
        let lost = local.ledger().holdings().iter().filter(|(_, holding)| is_concerned(holding));
        let lost: Vec<u64> = lost.map(|(number, _)| *number).collect();
        if now >= kill {
            return self.kill_lost(local, &lost);
        }
        let is_new = |number: &u64| !self.ended.contains_key(number);
        let told: Vec<u64> = lost.into_iter().filter(is_new).collect();
        if told.is_empty() {
            return;
        }
        let alive = Alive::look();
        for number in told {
            self.ended.insert(number, None);
            if let Some(holding) = local.ledger().holdings().get(&number) {
                holding.terminate(&alive);
            }
        }
    }

    /// Kills all processes that keep the slots of these holdings, and searches again for new ones. Remaining
    /// ones are killed at the next tick: a program may start others faster than they are found.
    fn kill_lost(&mut self, local: &Local, numbers: &[u64]) {
        let now = Instant::now();
        let is_due = |number: &&u64| {
            let killed = self.ended.get(number).copied().flatten();
            killed.is_none_or(|killed| now.saturating_duration_since(killed) >= TICK / 2)
        };
        let due: Vec<u64> = numbers.iter().filter(is_due).copied().collect();
        self.ended.extend(due.iter().map(|number| (*number, Some(now))));
        if due.is_empty() {
            return;
        }
        let holdings: Vec<&Holding> =
            due.iter().filter_map(|number| local.ledger().holdings().get(number)).collect();
        for _ in 0..LOOKS {
            let alive = Alive::look();
            let found = holdings.iter().map(|holding| holding.kill(&alive)).max();
            if found.unwrap_or(0) == 0 {
                return;
            }
        }
    }

    /// Another host has a slot that a holding of this host lost: it gets another one, even beyond the limit,
    /// or its program is ended.
    pub(super) fn move_slot(&mut self, local: &mut Local, number: u64, name: &str, slot: u64) {
        let Some(holding) = local.ledger().holdings().get(&number) else { return };
        // After a restore the other one may be gone already, and no launch was admitted since.
        if holding.on_lost() == Some(OnLost::Stop) && self.is_held_back().is_none() {
            return self.kill_lost(local, &[number]);
        }
        let table = local.ledger().store().table(&table_of_site(name));
        let Some(another) = table.occupancy().free_among(1..=u64::MAX).next() else { return };
        if !local.move_slot(number, &table, slot, another) {
            return;
        }
        self.show(name, local.ledger().store());
        self.look_at_all_keys(local);
        self.reconcile(local);
    }
}
