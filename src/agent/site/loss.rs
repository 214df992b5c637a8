//! A host that loses the site. Programs that are to be stopped are gone before anybody can be given their
//! slots; the others go on, and when the site is back their slots are taken anew, beyond the limit where
//! others have them, so that the count is true.

use std::time::{Duration, Instant};

use super::{PATIENCE, Site, TICK, announcement::log};
use crate::{
    agent::{alive::Alive, ledger::holding::Holding, service::Service},
    judge::terms::{keyword::OnLost, location::table_of_site},
    sys::process,
};

/// So often it is looked at once for processes that are to be killed.
const LOOKS: usize = 4;

impl Site {
    /// When programs that are to be stopped get TERM and KILL, since boot. The last read that found the
    /// host's key is at most a third of the ttl old as long as all is well.
    pub(super) fn ends_at(&self) -> Option<(Duration, Duration)> {
        let deadline = self.deadline()?;
        Some((deadline.saturating_sub(self.ttl / 4), deadline.saturating_sub(self.ttl / 10)))
    }

    /// Says in the log that this host is about to lose the site, or never reached it.
    fn say_what_is_lost(&mut self) {
        let Some((_, since)) = self.trouble.as_ref().filter(|_| !self.has_warned) else { return };
        let now = process::since_boot().unwrap_or_default();
        let (is_late, then) = match self.confirmed {
            Some(confirmed) => {
                let is_late = now.saturating_sub(confirmed) > self.ttl / 2;
                (is_late, format!("after {} s this host is taken for gone", self.ttl.as_secs()))
            }
            None => (since.elapsed() > PATIENCE, "until then it gives no slots".to_owned()),
        };
        if is_late {
            self.has_warned = true;
            log(&format!("{}; {then}", self.why()));
        }
    }
}

impl Service {
    /// Ends what has to be gone before others can get its slots.
    pub(super) fn end_what_is_lost(&mut self) {
        let Some(site) = &mut self.site else { return };
        site.say_what_is_lost();
        let Some((term, kill)) = site.ends_at() else { return };
        let now = process::since_boot().unwrap_or_default();
        if now < term {
            return;
        }
        let is_concerned = |holding: &Holding| holding.on_lost() == Some(OnLost::Stop);
        let lost = self.ledger.holdings().iter().filter(|(_, holding)| is_concerned(holding));
        let lost: Vec<u64> = lost.map(|(number, _)| *number).collect();
        if now >= kill {
            return self.kill_lost(&lost);
        }
        let is_new = |number: &u64| !site.ended.contains_key(number);
        let told: Vec<u64> = lost.into_iter().filter(is_new).collect();
        if told.is_empty() {
            return;
        }
        let alive = Alive::look();
        for number in told {
            site.ended.insert(number, None);
            if let Some(holding) = self.ledger.holdings().get(&number) {
                holding.terminate(&alive);
            }
        }
    }

    /// Kills what keeps the slots of these holdings, and looks again for what was started meanwhile. What is
    /// left then is killed at the next tick: a program may start others faster than they are found.
    fn kill_lost(&mut self, numbers: &[u64]) {
        let Some(site) = &mut self.site else { return };
        let now = Instant::now();
        let is_due = |number: &&u64| {
            let killed = site.ended.get(number).copied().flatten();
            killed.is_none_or(|killed| now.saturating_duration_since(killed) >= TICK / 2)
        };
        let due: Vec<u64> = numbers.iter().filter(is_due).copied().collect();
        site.ended.extend(due.iter().map(|number| (*number, Some(now))));
        if due.is_empty() {
            return;
        }
        let holdings: Vec<&Holding> =
            due.iter().filter_map(|number| self.ledger.holdings().get(number)).collect();
        for _ in 0..LOOKS {
            let alive = Alive::look();
            let found = holdings.iter().map(|holding| holding.kill(&alive)).max();
            if found.unwrap_or(0) == 0 {
                return;
            }
        }
    }

    /// Somebody else has a slot that a holding of this host lost: it gets another one, whatever the limit, or
    /// its program is ended.
    pub(super) fn move_slot(&mut self, number: u64, name: &str, slot: u64) {
        let (Some(site), Some(holding)) = (&mut self.site, self.ledger.holdings().get(&number)) else {
            return;
        };
        // After a restore the other one may be gone already, and nobody was let in since.
        if holding.on_lost() == Some(OnLost::Stop) && site.is_held_back().is_none() {
            return self.kill_lost(&[number]);
        }
        let table = self.ledger.store().table(&table_of_site(name));
        let Some(another) = table.occupancy().free_among(1..=u64::MAX).next() else { return };
        if !self.ledger.move_slot(number, &table, slot, another) {
            return;
        }
        site.show(name, self.ledger.store());
        self.look_at_all_keys();
        self.reconcile();
    }
}
