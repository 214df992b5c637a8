//! What is reported, and what follows from it.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use super::{
    Site,
    announcement::log,
    etcd::{Done, EtcdError},
    lease_keeper::Command,
    mirror::Changed,
    report::Report,
    work::Work,
};
use crate::{
    agent::service::Service, judge::terms::location::table_of_site, keeper::memory, sys::process,
    text::escape::visible,
};

/// So many reports are heard before somebody else is.
const MOST_AT_ONCE: usize = 1000;

/// How often all keys of this host are looked at.
const ALL_AGAIN: Duration = Duration::from_millis(500);

/// Whom it concerns what was heard, the fewest first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Heard {
    Nothing,
    /// A transaction was carried out: who rests may go on.
    Answer,
    /// The mirror is another.
    Change,
    /// Some time has passed.
    Time,
    /// The host's key is another.
    All,
}

impl Service {
    /// Hears everything that was reported meanwhile, and then lets everybody look whom it concerns: once,
    /// however many changes came together.
    pub(in crate::agent) fn hear_site(&mut self) {
        let was_open = self.is_site_open();
        let (mut heard, mut has_changed) = (Heard::Nothing, false);
        for _ in 0..MOST_AT_ONCE {
            let Some(report) = self.site.as_ref().and_then(|site| site.reports.try_recv().ok()) else {
                break;
            };
            let now = self.heard(report);
            has_changed |= ![Heard::Nothing, Heard::Time].contains(&now);
            heard = heard.max(now);
        }
        let Some(site) = &mut self.site else { return };
        if !was_open && site.is_open() {
            // Those who wait were told to wait on while nothing could be given.
            site.stirred.extend(site.shown.keys().cloned());
        }
        self.stir();
        match heard {
            Heard::Nothing => {}
            Heard::Answer => self.wake(true),
            Heard::Change => {
                self.put_right();
                self.wake(true);
            }
            Heard::Time | Heard::All => {
                self.put_right();
                self.look_at_all_in_time(heard == Heard::All);
                self.wake(has_changed);
            }
        }
        self.reconcile();
    }

    fn heard(&mut self, report: Report) -> Heard {
        let Some(site) = &mut self.site else { return Heard::Nothing };
        match report {
            Report::Registered { revision, generation, sent } => {
                site.registration = Some(revision);
                site.registered = sent;
                if self.confirm(sent, generation) {
                    return Heard::All;
                }
            }
            Report::Confirmed { sent, revision, generation } => {
                if revision < site.mirror.revision() {
                    site.doubt();
                }
                self.confirm(sent, generation);
            }
            Report::Unreached(trouble) | Report::Deaf(trouble) => site.note(trouble),
            Report::LeaseLost => {
                site.leases_lost = site.leases_lost.saturating_add(1);
                log("the lease of this host was lost; it is acquired again");
            }
            Report::Compared { sent, revision } => {
                site.lag.compare(sent, revision);
                site.look_at_lag();
            }
            Report::Listed(inventory) => {
                if site.mirror.differs_from(&inventory) {
                    log("what is known of the site differs from what etcd has; everything is read again");
                    site.doubt();
                }
            }
            Report::Twin { agent, sent, generation } => {
                site.registration = None;
                let is_known = site.is_disputed();
                site.disputed = process::since_boot();
                let text = format!(
                    "another host calls itself {} too (its agent is {}): the site gives no slots until each has a name of its own",
                    visible(&site.host),
                    visible(agent.map_or_else(|| "unknown".to_owned(), |agent| agent.to_string()))
                );
                if !is_known {
                    log(&text);
                    site.twin = Some((text, Instant::now()));
                }
                // Whoever has written the key: nobody takes a host for gone as long as its key is there.
                self.confirm(sent, generation);
            }
            Report::Fresh(snapshot) => {
                let changed = self.refresh(snapshot);
                return self.changed(changed);
            }
            Report::Changes(changes) => {
                let changed = site.mirror.apply(changes);
                site.look_at_lag();
                return self.changed(changed);
            }
            Report::Done(number, result) => return self.done(number, result),
            Report::ClusterStatus(condition) => site.condition = Some(condition),
            Report::Tick => {
                site.look_for_absent();
                site.own.try_again();
                self.end_what_is_lost();
                return Heard::Time;
            }
        }
        Heard::Nothing
    }

    /// The host's key was found by a read that was sent then. That protects what it holds, if all of that is
    /// there as well. Says whether it was found in the etcd that the mirror is of.
    fn confirm(&mut self, sent: Duration, generation: u64) -> bool {
        let is_complete = self.is_complete();
        let Some(site) = &mut self.site else { return false };
        if generation != site.origin.generation {
            site.doubt();
            return false;
        }
        if is_complete {
            site.confirm(sent);
            self.save_confirmation();
        }
        true
    }

    fn done(&mut self, number: u64, result: Result<Done, EtcdError>) -> Heard {
        let Some(work) = self.site.as_mut().and_then(|site| site.works.remove(&number)) else {
            return Heard::Nothing;
        };
        // What was sent to the etcd before this one proves nothing now.
        let is_of_now = self.site.as_ref().is_none_or(|site| site.origin.has_sent(number));
        let result = result.and_then(|done| if is_of_now { Ok(done) } else { Err(EtcdError::replaced()) });
        let was_done = result.as_ref().is_ok_and(|done| done.holds);
        match work {
            Work::Take(admission) => self.proved(*admission, result),
            Work::Join { launch, under, tickets } => self.joined(launch, under, tickets, result),
            Work::Keep(changes) => self.reconciled(changes, result),
            Work::Aside(_) => {}
        }
        if was_done { Heard::Answer } else { Heard::Nothing }
    }

    /// The mirror has changed: so do the tables in memory, and whoever waits for them looks.
    fn changed(&mut self, Changed { tables, hosts, keys }: Changed) -> Heard {
        let Some(site) = &mut self.site else { return Heard::Nothing };
        site.stirred.extend(tables);
        site.own.have_changed(keys);
        if !hosts.is_empty() {
            site.look_for_absent();
            site.look_who_is_reachable();
        }
        if hosts.contains(&site.host) && !site.has_own_key() {
            let _ = site.commands.send(Command::Look);
        }
        Heard::Change
    }

    /// Shows what has changed, and lets those look who wait for it.
    fn stir(&mut self) {
        let Some(site) = &mut self.site else { return };
        let names: BTreeSet<String> = std::mem::take(&mut site.stirred);
        if names.is_empty() {
            return;
        }
        let mut tables: Vec<memory::Table> = Vec::new();
        for name in names {
            site.show(&name, self.ledger.store());
            tables.extend(self.ledger.store().known(&table_of_site(&name)));
        }
        let to_look = self.see_notices();
        self.serve(&tables);
        self.look_again_after(to_look);
    }

    /// Does what may be possible now.
    fn put_right(&mut self) {
        self.settle();
        self.is_complete();
        let to_look = self.see_notices();
        self.look_again_after(to_look);
        self.answer_notices();
        self.see_restored_tickets();
        if let Some(site) = &mut self.site {
            site.look_at_name();
        }
    }

    /// Compares everything with what is there, whether it has changed or not: now and then, and at once where
    /// nobody knows what was done.
    fn look_at_all_in_time(&mut self, at_once: bool) {
        let Some(site) = &mut self.site else { return };
        if at_once || site.looked.is_none_or(|looked| looked.elapsed() > ALL_AGAIN) {
            site.looked = Some(Instant::now());
            site.look_for_unreadable_slots();
            self.look_at_all_keys();
        }
    }
}

impl Site {
    /// Sees whether the mirror has got to where it should be.
    fn look_at_lag(&mut self) {
        let now = process::since_boot().unwrap_or_default();
        self.lag.reach(self.mirror.revision(), now);
    }

    /// The host's key was found as it was written, by a read that was sent then.
    fn confirm(&mut self, sent: Duration) {
        let now = process::since_boot().unwrap_or_default();
        let was_lost = self.deadline().is_some_and(|deadline| deadline < now);
        if self.has_warned {
            self.has_warned = false;
            log(if was_lost {
                "the site is back; this host had been taken for gone"
            } else {
                "the site is back"
            });
        }
        self.confirmed = self.confirmed.max(Some(sent));
        self.trouble = None;
        self.ended.clear();
    }
}
