//! Slots that nobody uses any more: their keys go, if they are still those that were written. Until that is
//! done they are held in memory too, so that nobody of this host is promised one of them.

use std::time::SystemTime;

use super::{
    Site,
    etcd::{Compare, Done, Operation, Transaction, Trouble},
    key::Key,
    record::bytes,
    work::{Freeing, Work},
};
use crate::{
    agent::{ledger::holding::Holding, ledger::state::SavedStamps, service::Service},
    keeper::memory,
    terms::location::name_on_site,
};

impl Service {
    /// Gives back what a launch has of the site; `has_run` where a program had it. What it has beside that is
    /// free when this returns.
    pub(in crate::agent) fn free_at_site(&mut self, mut holding: Holding, has_run: bool) {
        let is_of_site = |held: &memory::Held| name_on_site(held.table().name()).is_some();
        let held: Vec<memory::Held> =
            holding.held.extract_if(.., |held| is_of_site(held) && !held.is_shared()).collect();
        if has_run {
            for held in &held {
                held.table().ended(SystemTime::now());
            }
        }
        let Some(site) = &mut self.site else { return };
        if held.is_empty() {
            return;
        }
        let paced = holding.paced_at_site.clone();
        let revision = holding.of_site.map_or(0, |of_site| of_site.revision);
        let (pid, start, uid) = (holding.saved.pid, holding.saved.start, holding.saved.uid);
        site.free(Freeing { held, pid, start, revision, paced, uid, deleted: Vec::new() });
    }

    /// Has it forgotten everywhere when a table was last used, if it is the site's.
    pub(in crate::agent) fn reset_at_site(&mut self, table: &str) {
        if let (Some(site), Some(name)) = (&mut self.site, name_on_site(table)) {
            let stamps = Operation::Delete(site.keys.name(&Key::Stamps(name.to_owned())));
            let transaction = Transaction { compares: Vec::new(), operations: vec![stamps] };
            site.send(Work::Clear(table.to_owned()), transaction);
        }
    }

    /// What came of it.
    pub(super) fn freed(&mut self, freeing: Freeing, result: Result<Done, Trouble>) {
        let Some(site) = &mut self.site else { return };
        match result {
            Ok(done) if done.holds => {
                for (name, slot, written) in &freeing.deleted {
                    site.mirror.forget_slot(name, *slot, *written, done.revision);
                }
                let names = freeing.held.iter().filter_map(|held| name_on_site(held.table().name()));
                site.stirred.extend(names.map(str::to_owned));
                drop(freeing);
            }
            // Something was otherwise than it was known to be, or nobody knows: until it is done, it is done
            // again.
            Ok(_) => site.again.push(Work::Free(freeing)),
            Err(trouble) => {
                site.note(trouble);
                site.again.push(Work::Free(freeing));
            }
        }
    }
}

impl Site {
    /// Sends what frees them. To do it twice does no harm: a key that somebody else has written is not the
    /// one.
    pub(super) fn free(&mut self, mut freeing: Freeing) {
        let mut transaction = Transaction::default();
        let mut deleted = Vec::new();
        for held in &freeing.held {
            let Some(name) = name_on_site(held.table().name()) else { continue };
            for slot in held.slots() {
                if let Some(revision) = self.revision_of(name, *slot, &freeing) {
                    deleted.push((name.to_owned(), *slot, revision));
                    let key = self.keys.name(&Key::Slot(name.to_owned(), *slot));
                    transaction.compares.push(Compare::ChangedAt(key.clone(), revision));
                    transaction.operations.push(Operation::Delete(key));
                }
            }
            if freeing.paced.iter().any(|paced| paced == held.table().name()) {
                let key = self.keys.name(&Key::Stamps(name.to_owned()));
                let known = self.mirror.table(name).and_then(|table| table.stamps.as_ref());
                let revision = known.map_or(0, |at| at.revision);
                let stamps = SavedStamps::of(held.table(), freeing.uid);
                transaction.compares.push(Compare::ChangedAt(key.clone(), revision));
                transaction.operations.push(Operation::Put(key, bytes(&stamps)));
            }
        }
        freeing.deleted = deleted;
        self.send(Work::Free(freeing), transaction);
    }

    /// The revision at which a slot was written for this launch; none where it is known to be somebody
    /// else's, or nobody's.
    fn revision_of(&self, name: &str, slot: u64, freeing: &Freeing) -> Option<i64> {
        let at = self.mirror.table(name).and_then(|table| table.slots.get(&slot));
        let of_launch = at.filter(|at| {
            at.record.as_ref().is_some_and(|record| {
                record.agent == self.agent && record.pid == freeing.pid && record.start == freeing.start
            })
        });
        if freeing.revision > self.mirror.revision() {
            // The mirror does not yet know what this host has written last.
            return Some(freeing.revision);
        }
        of_launch.map(|at| at.revision)
    }
}
