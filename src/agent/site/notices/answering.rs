//! Holders of this host for which another host has left a notice. This host does not trust a claim that they
//! are overdue. Such a holder is ended only if it is overdue by the policy of this host and its clock since
//! boot. It trusts a user's request to end one, because the agents of a site trust each other. Root may end
//! every holder, and a user only their own. Both are ended with the grace and the reach of this host's
//! policy, with the same care as every other end. Before each signal the reply announces it and is read back.
//! So the notice still exists, and its host can report the signal.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::{
    agent::{
        Eviction, Level, Question, RunningEviction, Topic,
        ledger::holding::Holding,
        log::log,
        service::local::Local,
        site::{NoticeRecord, Reply, Site, SlotRecord},
    },
    judge::terms::{Expiry, table_of_site},
    keeper::{EvictionOutcome, Holder, memory},
    text::visible,
};

/// How often the policy is checked again.
const AGAIN: Duration = Duration::from_secs(1);

/// What this host knows about a holder of its own for which another host has left a notice.
#[derive(Debug, Default)]
pub(in crate::agent::site) struct ReceivedNotice {
    slot: u64,
    /// Who gave notice.
    host: String,
    /// The user at whose request it is ended, regardless of its age.
    by: Option<u32>,
    /// When the last check was requested whether it is overdue.
    asked: Option<Instant>,
    ending: Option<RunningEviction>,
    /// Since when there is no notice of it any more.
    withdrawn: Option<Instant>,
    reply: Option<Reply>,
}

impl ReceivedNotice {
    /// Whether it is being ended, and a notice still requires this.
    fn is_ending(&self) -> bool {
        self.ending.is_some() && self.withdrawn.is_none()
    }
}

/// A notice of a holder of this host.
struct Standing {
    holding: u64,
    table: String,
    slot: u64,
    /// Who gave it.
    host: String,
    /// The user who requests the end of the holder, and may.
    by: Option<u32>,
}

impl Site {
    /// Checks the notices of holders of this host.
    pub(in crate::agent::site) fn answer_notices(&mut self, local: &mut Local) {
        self.free_at_request(local);
        let (mut received, ttl) = (std::mem::take(&mut self.received), self.ttl);
        let standing = self.standing_notices(local);
        // A holder that got its signals does not get them again because another launch requests the same, or
        // because the other host was away. So it is remembered for a while, although nothing more is done.
        let is_remembered = |of: &mut ReceivedNotice| {
            of.ending.is_some() && of.withdrawn.get_or_insert_with(Instant::now).elapsed() < ttl
        };
        received.retain(|(holding, table), of| {
            standing.iter().any(|at| at.holding == *holding && at.table == *table) || is_remembered(of)
        });
        for Standing { holding: number, table, slot, host, by } in standing {
            let of = received.entry((number, table.clone())).or_default();
            let has_changed = match &of.ending {
                // The request was withdrawn, and other notices only say that it is overdue.
                Some(ending) => by.is_none() && ending.overdue.by.is_none(),
                // The pending check for overdue holders does not matter any more.
                None => by.is_some() && of.by.is_none(),
            };
            if has_changed {
                (of.ending, of.asked, of.reply) = (None, None, None);
            }
            (of.slot, of.host, of.by, of.withdrawn) = (slot, host, by, None);
            self.answer_notice(local, number, &table, of);
        }
        self.received = received;
    }

    /// Frees slots that linger, at the request of root on another host.
    fn free_at_request(&mut self, local: &mut Local) {
        let mut requested = Vec::new();
        for (table, of) in self.mirror.tables_with_notices() {
            let notices = of.notices.iter().filter_map(|(slot, at)| Some((slot, at.record.as_ref()?)));
            for (slot, notice) in notices.filter(|(_, notice)| notice.by == Some(0)) {
                let held = of.slots.get(slot).and_then(|at| at.record.as_ref());
                let lingers = |held: &SlotRecord| held.agent == self.agent && held.has_ended();
                let is_it = |held: &SlotRecord| notice.holder.is_same(held) && notice.holder.has_ended();
                if held.is_some_and(|held| lingers(held) && is_it(held)) && self.is_there(notice) {
                    requested.push((table.clone(), *slot, notice.host.clone()));
                }
            }
        }
        for (table, slot, host) in requested {
            let free = local.end_lingering_at(&table_of_site(&table), slot);
            if free.is_empty() {
                continue;
            }
            let (name, host) = (visible(&table), visible(host));
            let text = format!("{name}: freed slot {slot}, which lingered, at the request of root on {host}");
            log(Level::Notice, Topic::End, &text);
            let tables: Vec<memory::Table> = free.iter().map(|held| held.table().clone()).collect();
            self.give_back(local, free);
            local.have_room(&tables);
        }
    }

    /// Each notice whose holder is that of its slot's record on this host.
    fn standing_notices(&self, local: &Local) -> Vec<Standing> {
        let mut standing = Vec::new();
        for (table, of) in self.mirror.tables_with_notices() {
            for (slot, notice) in &of.notices {
                let held = of.slots.get(slot).and_then(|at| at.record.as_ref());
                let (Some(notice), Some(held)) = (&notice.record, held) else { continue };
                if held.agent != self.agent || !notice.holder.is_same(held) || !self.is_there(notice) {
                    continue;
                }
                let here = table_of_site(table);
                let is_theirs =
                    |holding: &Holding| held.is_of(&self.agent, &holding.saved) && holding.has(&here, *slot);
                let mut holdings = local.ledger().holdings().iter();
                if let Some((number, holding)) = holdings.find(|(_, holding)| is_theirs(holding)) {
                    let may_ask = |uid: &u32| *uid == 0 || *uid == holding.saved.uid;
                    standing.push(Standing {
                        holding: *number,
                        table: table.clone(),
                        slot: *slot,
                        host: notice.host.clone(),
                        by: notice.by.filter(may_ask),
                    });
                }
            }
        }
        standing
    }

    fn answer_notice(&self, local: &mut Local, number: u64, table: &str, of: &mut ReceivedNotice) {
        let said = self.mirror.notice(table, of.slot).and_then(|notice| notice.reply);
        if said.is_some_and(Reply::is_final) {
            of.ending = None;
            return;
        }
        // A final reply stays, although the mirror does not show it yet.
        if let (Some(ending), Some(holding)) = (&mut of.ending, local.ledger().holdings().get(&number))
            && !of.reply.is_some_and(Reply::is_final)
            && ending.due().is_none_or(|due| due <= Instant::now())
        {
            let next = ending.next_signal().map(|signal| Reply::Ending(signal as i32));
            if ending.due().is_none() || next.is_none() || next == said {
                let fate = ending.advance(holding, local.evictor());
                of.reply = fate.map(Reply::of).or(of.reply);
            } else {
                of.reply = next;
            }
        }
        if of.ending.is_none() && of.asked.is_none_or(|asked| asked.elapsed() >= AGAIN) {
            of.asked = Some(Instant::now());
            // If the judges are gone, no holder is ended.
            local.ask(Question::Expiry(number, table.to_owned()));
        }
    }

    /// The policy of this host for a table, for a holder with a notice: none if no holder is ever overdue.
    pub(in crate::agent) fn judged_expiry(
        &mut self,
        local: &mut Local,
        number: u64,
        name: &str,
        expiry: Option<Expiry>,
    ) {
        let Some(holding) = local.ledger().holdings().get(&number) else { return };
        let of_holding = self.received.iter().filter(|((other, _), _)| *other == number);
        // Signals are sent once, for any number of tables.
        let is_ending = of_holding.filter(|(_, of)| of.is_ending()).find_map(|(_, of)| of.reply);
        let Some(of) = self.received.get_mut(&(number, name.to_owned())) else { return };
        let here = table_of_site(name);
        if of.ending.is_some() || local.ledger().store().known(&here).is_none() {
            return;
        }
        let slot = of.slot;
        let holder = |of: &Holding| Holder { slots: (slot, slot), ..of.saved.holder(of.saved.rule_on(name)) };
        let found = match (of.by, expiry) {
            (Some(_), expiry) => {
                let chosen = memory::chosen(&[holder(holding)]).pop();
                chosen.map(|chosen| (expiry.unwrap_or(Expiry::AT_REQUEST), chosen))
            }
            (None, Some(expiry)) => {
                let overdue = |of: &Holding| memory::overdue(&[holder(of)], &expiry).pop();
                // All members of a group are ended, or none: a remaining one keeps its slots.
                let own = holding.held.iter().filter(|held| held.table().is_called(&here));
                let own: Vec<u64> = own.flat_map(|held| held.slots().to_vec()).collect();
                let is_member = |of: &&Holding| own.iter().any(|slot| of.has_own(&here, *slot));
                let mut members = local.ledger().holdings().values().filter(is_member);
                let are_all = members.all(|of| overdue(of).is_some());
                overdue(holding).filter(|_| are_all).map(|overdue| (expiry, overdue))
            }
            (None, None) => None,
        };
        let overdue = found.filter(|(_, overdue)| overdue.elsewhere.is_none());
        match overdue {
            Some(_) if is_ending.is_some() => of.reply = is_ending,
            Some((expiry, overdue)) => {
                let to_end = Eviction { table: here, expiry, overdue: Vec::new() };
                of.ending = Some(RunningEviction::of(number, &to_end, overdue, None));
            }
            None => of.reply = Some(Reply::NotOverdue),
        }
        self.answer_notices(local);
    }

    /// A holding is over: if it was ended because of a notice, the log says so.
    pub(in crate::agent) fn on_ended_by_notice(&mut self, number: u64, holding: &Holding) {
        let (of_holding, others) =
            std::mem::take(&mut self.received).into_iter().partition(|((other, _), _)| *other == number);
        self.received = others;
        let of_holding: BTreeMap<(u64, String), ReceivedNotice> = of_holding;
        let endings = of_holding.into_iter().filter(|(_, of)| of.is_ending());
        let mut endings = endings.filter_map(|((_, table), of)| Some((table, of.host, of.by, of.ending?)));
        let Some((table, host, by, mut ending)) = endings.next() else { return };
        if let EvictionOutcome::Ended(signal, _) = ending.when_free() {
            let why = match by {
                Some(uid) => format!("at the request of user {uid} on {}", visible(host)),
                None => format!("which was overdue, for {}", visible(host)),
            };
            let text = format!(
                "{}: ended PID {} ({}) of user {}, with {}, {why}",
                visible(table),
                holding.saved.pid,
                visible(&holding.saved.command),
                holding.saved.uid,
                signal.as_str(),
            );
            log(Level::Notice, Topic::End, &text);
        }
    }
}

impl Site {
    /// The replies of this host to notices, each by its table and slot.
    pub(super) fn replies(&self) -> impl Iterator<Item = (&String, u64, Option<NoticeRecord>)> {
        self.received.iter().map(|((_, table), of)| (table, of.slot, self.replied(table, of)))
    }

    /// A notice with the reply of this host, if that is not written yet.
    fn replied(&self, table: &str, of: &ReceivedNotice) -> Option<NoticeRecord> {
        let record = self.mirror.notice(table, of.slot)?;
        let reply = of.reply.filter(|_| of.withdrawn.is_none() && !record.reply.is_some_and(Reply::is_final));
        Some(NoticeRecord { reply: Some(reply?), ..record.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Site {
        /// The numbers of the holdings that are being ended because of notices, each once for each table.
        pub(in crate::agent::site) fn ended_by_notices(&self) -> Vec<u64> {
            let ending = self.received.iter().filter(|(_, of)| of.is_ending());
            ending.map(|((number, _), _)| *number).collect()
        }
    }
}
