//! Reports of the site's threads, and what follows from them.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use super::{Changed, Done, Level, Report, Site, Work, etcd::EtcdError, log};
use crate::{
    agent::service::local::Local, judge::terms::table_of_site, keeper::memory, sys::process, text::visible,
};

/// How many reports are processed before other work.
const MOST_AT_ONCE: usize = 1000;

/// How often all keys of this host are checked.
const ALL_AGAIN: Duration = Duration::from_millis(500);

/// The parts of the site that a report concerns, in ascending order of their number.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Heard {
    Nothing,
    /// A transaction was committed: resting launches may continue.
    Answer,
    /// The mirror has changed.
    Change,
    /// Some time has passed.
    Time,
    /// The host's key has changed.
    All,
}

impl Site {
    /// Processes all pending reports, and then lets each concerned part check once, however many changes came
    /// together.
    pub(in crate::agent) fn hear(&mut self, local: &mut Local) {
        let was_open = self.is_open();
        let (mut heard, mut has_changed, mut is_time) = (Heard::Nothing, false, false);
        for _ in 0..MOST_AT_ONCE {
            let Ok(report) = self.reports.try_recv() else { break };
            let now = self.heard(local, report);
            has_changed |= ![Heard::Nothing, Heard::Time].contains(&now);
            is_time |= now == Heard::Time;
            heard = heard.max(now);
        }
        // Once, however many ticks there were: if each took longer than a tick, nothing else would be done.
        if is_time {
            self.look_for_absent();
            self.own.try_again();
            self.end_what_is_lost(local);
        }
        if !was_open && self.is_open() {
            // Waiting launches were told to continue to wait while nothing could be granted.
            self.stirred.extend(self.shown.keys().cloned());
        }
        self.stir(local);
        match heard {
            Heard::Nothing => {}
            Heard::Answer => self.wake(local, true),
            Heard::Change => {
                self.put_right(local);
                self.wake(local, true);
            }
            Heard::Time | Heard::All => {
                self.put_right(local);
                self.look_at_all_in_time(local, heard == Heard::All);
                self.wake(local, has_changed);
            }
        }
        self.answer_resets(local);
        self.reconcile(local);
    }

    fn heard(&mut self, local: &mut Local, report: Report) -> Heard {
        match report {
            Report::Registered { revision, generation, sent } => {
                self.presence.on_registered(revision, process::since_boot().unwrap_or(sent));
                if generation == self.origin.generation() {
                    // Etcd works. If this host stays closed, launches hear the reason for that.
                    self.presence.clear_trouble();
                }
                if self.on_found(local, sent, generation) {
                    self.numbers.reach(revision);
                    return Heard::All;
                }
            }
            Report::Confirmed { revision, generation, sent } => {
                if self.on_found(local, sent, generation) {
                    self.numbers.reach(revision);
                }
            }
            Report::Kept { sent, generation } => self.on_other_key(local, sent, generation),
            Report::Unreached(trouble) | Report::Deaf(trouble) => self.presence.note(trouble),
            Report::LeaseLost => {
                self.presence.lost_lease();
                log(Level::Warning, "the lease of this host was lost; it is acquired again");
            }
            Report::Compared { sent, revision } => {
                self.mirror.compare(sent, revision);
            }
            Report::Listed(inventory) => {
                if self.mirror.differs_from(&inventory) {
                    log(Level::Warning, "the mirror of the site differs from etcd; all keys are read again");
                    self.doubt();
                }
            }
            Report::Twin { agent, sent, generation } => {
                let text = format!(
                    "another host calls itself {} too (its agent is {}): the site grants no slots until each \
                        has its own name",
                    visible(&self.host),
                    visible(agent.map_or_else(|| "unknown".to_owned(), |agent| agent.to_string()))
                );
                self.presence.on_twin(text, self.mirror.ttl_of(&self.host, self.ttl));
                // Whichever agent wrote the key: no host is considered dead while its key exists.
                self.on_other_key(local, sent, generation);
            }
            Report::Fresh(snapshot) => {
                let changed = self.refresh(snapshot);
                return self.changed(changed);
            }
            Report::Changes(changes) => {
                let changed = self.follow(changes);
                return self.changed(changed);
            }
            Report::Done(number, result) => return self.done(local, number, result),
            Report::ClusterStatus(condition) => self.condition = Some(condition),
            Report::Tick => return Heard::Time,
        }
        Heard::Nothing
    }

    /// A read that was sent then found the host's key. That protects its slots, if all of these exist too.
    /// Returns whether it was found in the etcd of the mirror.
    fn on_found(&mut self, local: &Local, sent: Duration, generation: u64) -> bool {
        let is_complete = self.check_complete(local);
        if generation != self.origin.generation() {
            self.doubt();
            return false;
        }
        if is_complete {
            self.presence.confirm(sent, local.ledger().state());
            self.ended.clear();
        }
        // Before the first complete read there is none.
        self.mirror.is_known()
    }

    /// A read that was sent then found a key of this host, and not as this agent has written it last. After
    /// the deadline it may be a new one, and others may have deleted the slots before.
    fn on_other_key(&mut self, local: &Local, sent: Duration, generation: u64) {
        let is_in_time = self.presence.deadline().is_some_and(|deadline| sent <= deadline);
        let is_of_mirror = generation == self.origin.generation();
        if is_in_time && is_of_mirror && self.check_complete(local) {
            self.presence.extend(sent, local.ledger().state());
            self.ended.clear();
        }
    }

    fn done(&mut self, local: &mut Local, number: u64, result: Result<Done, EtcdError>) -> Heard {
        let Some((work, result)) = self.pending.answered(number, result) else { return Heard::Nothing };
        let was_done = result.as_ref().is_ok_and(|done| done.holds);
        if let Ok(done) = &result {
            self.numbers.reach(done.revision);
        }
        match work {
            Work::Take(admission) => self.proved(local, *admission, result),
            Work::Join { launch, under, tickets } => self.joined(local, launch, under, tickets, result),
            Work::Keep(changes) => self.reconciled(local, changes, result),
            Work::Aside(_) => {}
        }
        if was_done { Heard::Answer } else { Heard::Nothing }
    }

    /// The mirror has changed: so do the tables in memory, and their waiters check again.
    fn changed(&mut self, Changed { tables, hosts, keys }: Changed) -> Heard {
        self.stirred.extend(tables);
        self.own.have_changed(keys);
        if !hosts.is_empty() {
            self.look_for_absent();
            self.look_who_is_reachable();
        }
        if hosts.contains(&self.host) && !self.has_own_key() {
            self.presence.look();
        }
        Heard::Change
    }

    /// Shows the changes, and lets their waiters check again.
    fn stir(&mut self, local: &mut Local) {
        let names: BTreeSet<String> = std::mem::take(&mut self.stirred);
        if names.is_empty() {
            return;
        }
        let mut tables: Vec<memory::Table> = Vec::new();
        for name in names {
            self.show(&name, local.ledger().store());
            tables.extend(local.ledger().store().known(&table_of_site(&name)));
        }
        self.see_notices(local);
        local.serve(&tables);
    }

    /// Retries everything that may succeed now.
    fn put_right(&mut self, local: &mut Local) {
        self.settle(local);
        if self.check_complete(local) && self.presence.was_dead() {
            // Now a read of its key confirms the host.
            self.presence.look();
        }
        self.see_notices(local);
        self.answer_notices(local);
        self.see_restored_tickets(local);
        self.look_at_name();
    }

    /// Compares everything with etcd, changed or not: periodically, and at once after an indefinite result.
    fn look_at_all_in_time(&mut self, local: &mut Local, at_once: bool) {
        if at_once || self.looked.is_none_or(|looked| looked.elapsed() > ALL_AGAIN) {
            self.looked = Some(Instant::now());
            self.look_for_unreadable_slots();
            self.look_at_all_keys(local);
        }
    }
}
