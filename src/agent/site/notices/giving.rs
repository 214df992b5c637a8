//! Overdue holders on other hosts, for launches of this one. A key tells a holder's host that the holder
//! blocks a launch here, and is deleted with that launch. Nothing is ended here: the mirror shows the replies
//! of the other host.

use std::{collections::BTreeMap, time::Instant};

use super::GivenNotice;
use crate::{
    agent::{
        Eviction, Session,
        service::local::Local,
        site::{Key, NoticeRecord, Reply, Site, SlotRecord, Value},
    },
    judge::terms::{name_on_site, table_of_site},
    keeper::{Delivery, EvictionOutcome, Overdue},
    sys::Signal,
};

impl Site {
    /// Requests a notice of a holder for a launch.
    pub(in crate::agent) fn give_notice(
        &self,
        local: &mut Local,
        session: u64,
        to_end: &Eviction,
        overdue: &Overdue,
    ) {
        let Some(session) = local.session_mut(session) else { return };
        session.noticed.push(overdue.clone());
        let by = session.asks_for_end_of(overdue);
        let Some(name) = name_on_site(&to_end.table) else { return };
        if session.notices.iter().any(|notice| notice.table == name && notice.ends(overdue)) {
            return;
        }
        let slot = overdue.holder.slots.0;
        let record = self.mirror.holder(name, slot).cloned();
        // Slots that this host itself has released have no holder, and an ended program cannot be ended.
        let is_ended = overdue.holder.lingers_until.is_some();
        let is_there = |record: &SlotRecord| record.agent != self.agent && record.has_ended() == is_ended;
        let Some(holder) = record.filter(is_there) else { return };
        session.notices.push(GivenNotice {
            table: name.to_owned(),
            slot,
            holder,
            overdue: overdue.clone(),
            rests: false,
            by,
            grace: to_end.expiry.grace,
            since: Instant::now(),
            reply: None,
        });
    }

    /// The notices that should exist, as far as this host decides: those that its launches need, and its
    /// replies to those of others. A notice exists only while the slot still belongs to that holder.
    pub(in crate::agent::site) fn wanted_notices(&self, local: &Local) -> BTreeMap<Key, Value> {
        let evicting = local.evicting();
        let given = evicting.iter().filter_map(|number| local.session(*number));
        let given = given.flat_map(|session| &session.notices).filter(|notice| !notice.rests);
        let mut given: Vec<&GivenNotice> = given.collect();
        // A user's request has priority in a notice.
        given.sort_by_key(|notice| notice.by.is_some());
        let given = given.into_iter();
        let given = given.map(|notice| (&notice.table, notice.slot, Some(self.given(notice))));
        let all = given.chain(self.replies()).filter_map(|(table, slot, record)| {
            let record = record.filter(|record| self.is_held_by(table, slot, &record.holder))?;
            Some((Key::Notice(table.clone(), slot), Value::Notice(record)))
        });
        all.collect()
    }

    /// Checks the holders with notices, and tells the launches that need them. Launches outside the queue
    /// check again.
    pub(in crate::agent::site) fn see_notices(&self, local: &mut Local) {
        // After a restore holders are missing until their hosts have put them back.
        if !self.is_named() {
            return;
        }
        let mut to_look = Vec::new();
        for number in local.evicting() {
            let Some(session) = local.session_mut(number) else { continue };
            let waits = !session.is_ending();
            let mut told = Vec::new();
            session.notices.retain_mut(|notice| {
                let fate = self.fate_of(notice, waits);
                told.extend(fate.map(|fate| (table_of_site(&notice.table), notice.overdue.clone(), fate)));
                fate.is_none()
            });
            if !told.is_empty() && !waits {
                to_look.push(number);
            }
            for (table, overdue, fate) in told {
                session.tell(&table, &overdue, fate);
            }
        }
        local.look_again(to_look);
    }
}

impl Session {
    /// Whether a notice of a holder was already given for it.
    pub(in crate::agent) fn has_given_notice_of(&self, overdue: &Overdue) -> bool {
        let who = |of: &Overdue| (of.elsewhere.clone(), of.pid, of.holder.since);
        self.noticed.iter().any(|noticed| who(noticed) == who(overdue))
    }
}

impl Site {
    /// The outcome of a holder; none while it is pending.
    fn fate_of(&self, notice: &mut GivenNotice, waits: bool) -> Option<EvictionOutcome> {
        notice.reply = self.notice_on(notice).map_or(notice.reply, |record| record.reply);
        let is_there = self.is_held_by(&notice.table, notice.slot, &notice.holder);
        // The slots of a dead host are free, regardless of their holders.
        let has_gone = || !self.mirror.is_there(&notice.holder.host);
        match notice.reply {
            Some(Reply::Ending(signal)) if !is_there && !has_gone() => {
                let signal = Signal::try_from(signal).ok();
                Some(signal.map_or(EvictionOutcome::HadLeft, |signal| {
                    EvictionOutcome::Ended(signal, Delivery::Full)
                }))
            }
            _ if !is_there && notice.holder.has_ended() => {
                let is_free = self.mirror.holder(&notice.table, notice.slot).is_none();
                Some(if is_free { EvictionOutcome::Freed } else { EvictionOutcome::HadLeft })
            }
            _ if !is_there => Some(EvictionOutcome::HadLeft),
            Some(reply) if reply.is_final() => Some(reply.fate()),
            _ if waits => None,
            Some(Reply::NotOverdue) => Some(EvictionOutcome::NotOverdueThere),
            _ => notice.is_late().then_some(EvictionOutcome::Noticed),
        }
    }

    /// The same notice as others see it, whichever host left it. A notice of a dead host does not count. If a
    /// user requests the end of the holder, a notice that it is overdue does not count either.
    fn notice_on(&self, notice: &GivenNotice) -> Option<&NoticeRecord> {
        let record = self.mirror.notice(&notice.table, notice.slot)?;
        let is_enough = record.ends_at_request() || notice.by.is_none();
        (record.holder.is_same(&notice.holder) && is_enough && self.is_there(record)).then_some(record)
    }

    /// Whether the host of a notice is present.
    pub(super) fn is_there(&self, notice: &NoticeRecord) -> bool {
        self.mirror.host(&notice.host).is_some_and(|host| host.agent == notice.agent)
    }

    /// The existing notice, or the one that this host would write.
    fn given(&self, notice: &GivenNotice) -> NoticeRecord {
        let (host, agent, holder) = (self.host.clone(), self.agent.clone(), notice.holder.clone());
        // A request ends with the user's command, even if a launch also needs the notice.
        let is_withdrawn =
            |record: &&NoticeRecord| record.agent == self.agent && record.by.is_some() && notice.by.is_none();
        let there = self.notice_on(notice).filter(|record| !is_withdrawn(record));
        let own = NoticeRecord { host, agent, by: notice.by, holder, reply: None };
        there.cloned().unwrap_or(own)
    }

    fn is_held_by(&self, table: &str, slot: u64, holder: &SlotRecord) -> bool {
        let is_it = |held: &SlotRecord| held.is_same(holder) && held.has_ended() == holder.has_ended();
        self.mirror.holder(table, slot).is_some_and(is_it)
    }
}
