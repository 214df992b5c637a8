//! Overdue holders on other hosts, for launches of this one. A key names the holder that blocks a launch to
//! its own host, and is deleted with the launch that wanted it. Nothing is ended here: the mirror shows what
//! the other host says and does.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::{
    agent::{
        eviction::Eviction,
        service::local::Local,
        session::Session,
        site::{
            Site,
            difference::Value,
            key::Key,
            record::{NoticeRecord, Reply, SlotRecord},
        },
    },
    judge::terms::location::{name_on_site, table_of_site},
    keeper::{EvictionOutcome, Overdue, Reach, table::TableId},
    sys::signals::Signal,
};

/// For so long a host may say nothing to it before a launch that does not wait is refused.
const PATIENCE: Duration = Duration::from_secs(4);

/// How many times the grace passes until the last signal has done what it could.
const SIGNALS_WITH_GRACE: u32 = 3;

/// What a launch knows of it.
#[derive(Debug)]
pub(in crate::agent) struct GivenNotice {
    /// The table, as the site calls it.
    table: String,
    id: TableId,
    /// One of its slots; with the last one the others become free.
    slot: u64,
    holder: SlotRecord,
    overdue: Overdue,
    /// The user who asks for its end; none where it is overdue.
    by: Option<u32>,
    /// By the policy of this host.
    grace: Duration,
    since: Instant,
    reply: Option<Reply>,
}

impl GivenNotice {
    /// How many slots of this table it will free, as far as is known.
    pub(in crate::agent) fn frees(&self, table: TableId) -> u64 {
        let goes_on = self.reply == Some(Reply::NotOverdue);
        if self.id == table && !goes_on { self.overdue.slots } else { 0 }
    }

    /// Whether a launch that does not wait has waited for its end for long enough.
    fn is_late(&self) -> bool {
        let longest = match self.reply {
            None => PATIENCE,
            Some(_) => self.grace.saturating_mul(SIGNALS_WITH_GRACE).saturating_add(PATIENCE),
        };
        self.since.elapsed() > longest
    }
}

impl Site {
    /// Has notice given of a holder for a launch.
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
        let slot = overdue.holder.slots.0;
        let record = self.mirror.holder(name, slot).cloned();
        // What this host has left itself is not held by anybody.
        let Some(holder) = record.filter(|record| record.agent != self.agent) else { return };
        session.notices.push(GivenNotice {
            table: name.to_owned(),
            id: to_end.id,
            slot,
            holder,
            overdue: overdue.clone(),
            by,
            grace: to_end.expiry.grace,
            since: Instant::now(),
            reply: None,
        });
    }

    /// The notices that there should be, as far as this host has a say: those that its launches want given,
    /// as somebody has given them already or as this host would, and what it replies to those of others.
    /// Each only as long as the slot is still that holder's.
    pub(in crate::agent::site) fn wanted_notices(&self, local: &Local) -> BTreeMap<Key, Value> {
        let evicting = local.evicting();
        let given = evicting.iter().filter_map(|number| local.session(*number));
        let mut given: Vec<&GivenNotice> = given.flat_map(|session| &session.notices).collect();
        // Where a user asks for the end of a holder, that is what the notice says.
        given.sort_by_key(|notice| notice.by.is_some());
        let given = given.into_iter();
        let given = given.map(|notice| (&notice.table, notice.slot, Some(self.given(notice))));
        let all = given.chain(self.replies()).filter_map(|(table, slot, record)| {
            let record = record.filter(|record| self.is_held_by(table, slot, &record.holder))?;
            Some((Key::Notice(table.clone(), slot), Value::Notice(record)))
        });
        all.collect()
    }

    /// Sees what became of the holders of which notice was given, and tells whoever wanted it. Launches
    /// that do not stand in line look again.
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
    /// Whether notice of a holder was given for it already.
    pub(in crate::agent) fn has_given_notice_of(&self, overdue: &Overdue) -> bool {
        let who = |of: &Overdue| (of.elsewhere.clone(), of.pid, of.holder.since);
        self.noticed.iter().any(|noticed| who(noticed) == who(overdue))
    }
}

impl Site {
    /// What has become of a holder; none as long as it is waited for.
    fn fate_of(&self, notice: &mut GivenNotice, waits: bool) -> Option<EvictionOutcome> {
        notice.reply = self.notice_on(notice).map_or(notice.reply, |record| record.reply);
        let is_there = self.is_held_by(&notice.table, notice.slot, &notice.holder);
        // The slots of a host that is gone are free, whatever has become of their holders.
        let has_gone = || !self.mirror.is_there(&notice.holder.host);
        match notice.reply {
            Some(Reply::Ending(signal)) if !is_there && !has_gone() => {
                let signal = Signal::try_from(signal).ok();
                Some(
                    signal.map_or(EvictionOutcome::HadLeft, |signal| {
                        EvictionOutcome::Ended(signal, Reach::Full)
                    }),
                )
            }
            _ if !is_there => Some(EvictionOutcome::HadLeft),
            Some(reply) if reply.is_final() => Some(reply.fate()),
            _ if waits => None,
            Some(Reply::NotOverdue) => Some(EvictionOutcome::NotOverdueThere),
            _ => notice.is_late().then_some(EvictionOutcome::Noticed),
        }
    }

    /// The same notice as others see it, whoever gave it. One of a host that is gone does not count, nor one
    /// that says only that the holder is overdue where a user asks for its end.
    fn notice_on(&self, notice: &GivenNotice) -> Option<&NoticeRecord> {
        let record = self.mirror.notice(&notice.table, notice.slot)?;
        let is_enough = record.ends_at_request() || notice.by.is_none();
        (record.holder.is_same(&notice.holder) && is_enough && self.is_there(record)).then_some(record)
    }

    /// Whether the host that gave a notice is there.
    pub(super) fn is_there(&self, notice: &NoticeRecord) -> bool {
        self.mirror.host(&notice.host).is_some_and(|host| host.agent == notice.agent)
    }

    /// A notice as it is given already, or as this host would give it.
    fn given(&self, notice: &GivenNotice) -> NoticeRecord {
        let (host, agent, holder) = (self.host.clone(), self.agent.clone(), notice.holder.clone());
        // A request ends with the user's command, also where a launch needs the notice as well.
        let is_withdrawn =
            |record: &&NoticeRecord| record.agent == self.agent && record.by.is_some() && notice.by.is_none();
        let there = self.notice_on(notice).filter(|record| !is_withdrawn(record));
        let own = NoticeRecord { host, agent, by: notice.by, holder, reply: None };
        there.cloned().unwrap_or(own)
    }

    fn is_held_by(&self, table: &str, slot: u64, holder: &SlotRecord) -> bool {
        self.mirror.holder(table, slot).is_some_and(|held| held.is_same(holder))
    }
}
