//! Overdue holders on other hosts, for launches of this one: who is in the way of a launch is named to its
//! own host by a key, which goes with whoever wanted that. Nothing is ended here: what the other host says
//! and does is seen in the mirror.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use super::given::GivenNotice;
use crate::{
    agent::{
        eviction::Eviction,
        service::Service,
        session::Session,
        site::{
            Site,
            etcd::{Compare, Operation, Transaction},
            key::Key,
            record::{NoticeRecord, Reply, SlotRecord, bytes},
            table_of_site::At,
            work::Work,
        },
    },
    keeper::{Fate, Overdue, Reach},
    sys::signal::Signal,
    terms::location::{name_on_site, table_of_site},
};

/// Where one was sent and is not seen after this time, it is sent again.
const AGAIN: Duration = Duration::from_secs(1);

impl Service {
    /// Has notice given of a holder for a launch.
    pub(in crate::agent) fn give_notice(&mut self, session: u64, to_end: &Eviction, overdue: &Overdue) {
        let Some(session) = self.sessions.get_mut(&session) else { return };
        session.noticed.push(overdue.clone());
        let (Some(site), Some(name)) = (&self.site, name_on_site(&to_end.table)) else { return };
        let slot = overdue.holder.slots.0;
        let record = site.mirror.table(name).and_then(|of| of.slots.get(&slot)?.record.clone());
        // What this host has left itself is not held by anybody.
        let Some(holder) = record.filter(|record| record.agent != site.agent) else { return };
        session.notices.push(GivenNotice {
            table: name.to_owned(),
            id: to_end.id,
            slot,
            holder,
            overdue: overdue.clone(),
            grace: to_end.expiry.grace,
            since: Instant::now(),
            sent: None,
            reply: None,
        });
    }

    /// The slots that launches of this host want to be given up, each by the key of its notice.
    pub(in crate::agent::site) fn given_notices(&self) -> BTreeSet<Key> {
        let evicting = self.sessions.evicting();
        let sessions = evicting.iter().filter_map(|number| self.sessions.get(number));
        sessions
            .flat_map(|session| &session.notices)
            .map(|of| Key::Notice(of.table.clone(), of.slot))
            .collect()
    }

    /// Writes the notices that are not there.
    pub(in crate::agent) fn write_notices(&mut self) {
        let Some(site) = &mut self.site else { return };
        for number in self.sessions.evicting() {
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            for notice in &mut session.notices {
                let is_under_way = notice.sent.is_some_and(|sent| sent.elapsed() < AGAIN);
                if !is_under_way && site.notice_on(notice).is_none() && site.write_notice(notice) {
                    notice.sent = Some(Instant::now());
                }
            }
        }
    }

    /// Sees what became of the holders of which notice was given, and tells whoever wanted it. Says which
    /// launches have to look again, because they do not stand in line.
    pub(in crate::agent::site) fn see_notices(&mut self) -> Vec<u64> {
        let Some(site) = &self.site else { return Vec::new() };
        let mut to_look = Vec::new();
        // After a restore holders are missing until their hosts have put them back.
        if !site.is_named() {
            return to_look;
        }
        for number in self.sessions.evicting() {
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            let waits = !session.is_ending();
            let mut told = Vec::new();
            session.notices.retain_mut(|notice| {
                let fate = site.fate_of(notice, waits);
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
        to_look
    }
}

impl Session {
    /// Whether notice of a holder was given for it already.
    pub(in crate::agent) fn has_given_notice_of(&self, overdue: &Overdue) -> bool {
        let who = |of: &Overdue| (of.elsewhere.clone(), of.pid, of.holder.since);
        self.noticed.iter().any(|noticed| who(noticed) == who(overdue))
    }
}

impl Site {
    /// What has become of a holder; none as long as it is waited for.
    fn fate_of(&self, notice: &mut GivenNotice, waits: bool) -> Option<Fate> {
        notice.reply = self.notice_on(notice).map_or(notice.reply, |record| record.reply);
        let of = self.mirror.table(&notice.table).and_then(|of| of.slots.get(&notice.slot));
        let is_there = of.is_some_and(|at| at.record.as_ref().is_some_and(|now| now.is_same(&notice.holder)));
        // The slots of a host that is gone are free, whatever has become of their holders.
        let has_gone = || !self.mirror.hosts.contains_key(&notice.holder.host);
        match notice.reply {
            Some(Reply::Ending(signal)) if !is_there && !has_gone() => {
                let signal = Signal::try_from(signal).ok();
                Some(signal.map_or(Fate::HadLeft, |signal| Fate::Ended(signal, Reach::Full)))
            }
            _ if !is_there => Some(Fate::HadLeft),
            Some(reply) if reply.is_final() => Some(reply.fate()),
            _ if waits => None,
            Some(Reply::NotOverdue) => Some(Fate::NotOverdueThere),
            _ => notice.is_late().then_some(Fate::Noticed),
        }
    }

    /// The same notice as others see it, whoever gave it. One of a host that is gone does not count.
    fn notice_on(&self, notice: &GivenNotice) -> Option<&NoticeRecord> {
        let record = self.mirror.table(&notice.table)?.notices.get(&notice.slot)?.record.as_ref()?;
        (record.holder.is_same(&notice.holder) && self.is_there(record)).then_some(record)
    }

    /// Whether the host that gave a notice is there.
    pub(super) fn is_there(&self, notice: &NoticeRecord) -> bool {
        let host = self.mirror.hosts.get(&notice.host).and_then(|at| at.record.as_ref());
        host.is_some_and(|host| host.agent == notice.agent)
    }

    fn write_notice(&mut self, notice: &GivenNotice) -> bool {
        let record = NoticeRecord {
            host: self.host.clone(),
            agent: self.agent.clone(),
            holder: notice.holder.clone(),
            reply: None,
        };
        self.put_notice(&notice.table, notice.slot, &notice.holder, &record)
    }

    /// Writes a notice, if the slot is held by this holder and the notice is as it was. Says whether that was
    /// begun.
    pub(super) fn put_notice(
        &mut self,
        table: &str,
        slot: u64,
        holder: &SlotRecord,
        record: &NoticeRecord,
    ) -> bool {
        let Some(registration) = self.registration else { return false };
        let Some(of) = self.mirror.table(table) else { return false };
        let held = of.slots.get(&slot).filter(|at| at.record.as_ref().is_some_and(|now| now.is_same(holder)));
        let Some(At { revision, .. }) = held else { return false };
        let notice = Key::Notice(table.to_owned(), slot);
        if self.is_busy_with(&notice) {
            return false;
        }
        let key = self.keys.name(&notice);
        let transaction = Transaction {
            compares: vec![
                Compare::ChangedAt(self.key_of_host(), registration),
                Compare::ChangedAt(self.keys.name(&Key::Slot(table.to_owned(), slot)), *revision),
                Compare::ChangedAt(key.clone(), of.notices.get(&slot).map_or(0, |at| at.revision)),
            ],
            operations: vec![Operation::Put(key, bytes(record))],
        };
        self.send(Work::Aside(notice), transaction);
        true
    }
}
