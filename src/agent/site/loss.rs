//! A host that loses the site. Programs that are to be stopped are gone before anybody can be given their
//! slots; the others go on, and when the site is back their slots are taken anew, beyond the limit where
//! others have them, so that the count is true.

use std::time::Duration;

use super::{
    Site,
    etcd::{Compare, Done, Operation, Transaction, Trouble},
    key::Key,
    record::{SlotRecord, bytes},
    work::Work,
};
use crate::{
    agent::{holding::Holding, service::Service},
    deliberate_fault::DeliberateFault,
    sys::process,
    terms::{
        location::{name_on_site, table_of_site},
        on_lost::OnLost,
    },
};

impl Site {
    /// When programs that are to be stopped get TERM and KILL, since boot. The last read that found the
    /// host's key is at most a third of the ttl old as long as all is well.
    pub(super) fn ends_at(&self) -> Option<(Duration, Duration)> {
        let deadline = self.deadline()?;
        Some((deadline.saturating_sub(self.ttl / 4), deadline.saturating_sub(self.ttl / 10)))
    }
}

impl Service {
    /// Ends what has to be gone before others can get its slots, and says when the site is about to be lost.
    pub(super) fn end_what_is_lost(&mut self) {
        let Some(site) = &mut self.site else { return };
        let Some((term, kill)) = site.ends_at() else { return };
        let now = process::since_boot().unwrap_or_default();
        let since = site.confirmed.map_or(Duration::ZERO, |confirmed| now.saturating_sub(confirmed));
        if since > site.ttl / 2 && !site.has_warned && site.trouble.is_some() {
            site.has_warned = true;
            let why = site.why();
            super::announcement::log(&format!(
                "{why}; after {} s this host is taken for gone",
                site.ttl.as_secs()
            ));
        }
        if now < term || DeliberateFault::NoMargin.is_on() {
            return;
        }
        let is_concerned = |holding: &Holding| holding.on_lost() == Some(OnLost::Stop);
        let lost: Vec<u64> = self
            .holdings
            .iter()
            .filter(|(_, holding)| is_concerned(holding))
            .map(|(number, _)| *number)
            .collect();
        for number in lost {
            self.end_lost(number, now >= kill);
        }
    }

    /// Ends one holder, once by each signal.
    pub(super) fn end_lost(&mut self, number: u64, is_last: bool) {
        let Some(site) = &mut self.site else { return };
        let Some(holding) = self.holdings.get(&number) else { return };
        if site.ended.get(&number).is_none_or(|was_killed| is_last && !was_killed) {
            site.ended.insert(number, is_last);
            holding.signal(is_last);
        }
    }

    /// Compares what this host holds with what the mirror says, and takes anew what is missing there.
    pub(super) fn look_for_missing(&mut self) {
        let Some(site) = &self.site else { return };
        if site.registration.is_none() || !site.mirror.is_known() {
            return;
        }
        let mut missing = Vec::new();
        let mut found = Vec::new();
        for (number, holding) in &self.holdings {
            for held in holding.held.iter().filter(|held| !held.is_shared()) {
                let Some(name) = name_on_site(held.table().name()) else { continue };
                for slot in held.slots() {
                    let at = site.mirror.table(name).and_then(|table| table.slots.get(slot));
                    let own = at.filter(|at| {
                        at.record.as_ref().is_some_and(|record| record.is_of(&site.boot, &holding.saved))
                    });
                    let taken = holding.of_site.map_or(0, |of_site| of_site.revision);
                    match own {
                        Some(at) if at.revision > taken => found.push((*number, at.revision)),
                        Some(_) => {}
                        None if taken > site.mirror.revision() => {}
                        None => missing.push((*number, name.to_owned(), *slot)),
                    }
                }
            }
        }
        for (number, revision) in found {
            if let Some(of_site) = self.holdings.get_mut(&number).and_then(|holding| holding.of_site.as_mut())
            {
                of_site.revision = of_site.revision.max(revision);
            }
        }
        for (number, name, slot) in missing {
            self.take_anew(number, &name, slot);
        }
    }

    /// Takes a slot that is missing anew: the same, or where somebody else has that another one, whatever the
    /// limit.
    fn take_anew(&mut self, number: u64, name: &str, slot: u64) {
        let Some(site) = &mut self.site else { return };
        let Some(registration) = site.registration else { return };
        let is_about = |work: &Work| matches!(work, Work::Retake(of, table, again) if *of == number && table == name && *again == slot);
        if site.works.values().any(is_about) {
            return;
        }
        let is_taken = site.mirror.table(name).is_some_and(|table| table.slots.contains_key(&slot));
        let Some(holding) = self.holdings.get_mut(&number) else { return };
        let mut slot = slot;
        if is_taken {
            // After a restore the other one may be gone already, and nobody was let in since.
            if holding.on_lost() == Some(OnLost::Stop) && site.is_held_back().is_none() {
                return self.end_lost(number, true);
            }
            let table = self.store.table(&table_of_site(name));
            let Some(another) = table.occupancy().free_among(1..=u64::MAX).next() else { return };
            if !holding.moves_to(&table, slot, another) {
                return;
            }
            // That it could not be written down costs at most another search after the agent's next start.
            let _ = self.state.write(number, &holding.saved);
            site.show(name, &self.store);
            slot = another;
        }
        let launch = holding.of_site.map_or(0, |of_site| of_site.launch);
        let record = SlotRecord::of(&holding.saved, holding.rule_on(name), &site.boot, launch);
        let key = site.keys.name(&Key::Slot(name.to_owned(), slot));
        let transaction = Transaction {
            compares: vec![
                Compare::ChangedAt(site.key_of_host(), registration),
                Compare::Absent(key.clone()),
            ],
            operations: vec![Operation::Put(key, bytes(&record))],
        };
        site.send(Work::Retake(number, name.to_owned(), slot), transaction);
    }

    /// What came of it: if it was not done, it is found missing again.
    pub(super) fn took_anew(&mut self, number: u64, result: Result<Done, Trouble>) {
        let Some(site) = &mut self.site else { return };
        match result {
            Ok(done) if done.holds => {
                site.ended.remove(&number);
                if let Some(of_site) =
                    self.holdings.get_mut(&number).and_then(|holding| holding.of_site.as_mut())
                {
                    of_site.revision = of_site.revision.max(done.revision);
                }
            }
            Ok(_) => {}
            Err(trouble) => {
                if !trouble.is_settled() {
                    site.register_anew();
                }
                site.note(trouble);
            }
        }
    }
}
