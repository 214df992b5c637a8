//! Keeps the keys of this host in etcd as the agent wants them. The agent's state says which slots, tickets
//! and last uses should exist. The mirror, and what this host has written since, says which exist. The
//! difference is the next transaction: one at a time, with as many changes as etcd accepts. Each change is
//! fenced by the host's own key and by the revision of the changed key.
//!
//! Without an answer the outcome is unknown. Then the host's key is written again, so that no older
//! transaction can be committed any more. As soon as the mirror has that key it has everything that was
//! committed, and the difference is computed again. Nothing here remembers its attempts. Taking slots, or a
//! place in a bounded queue, needs a proof; that is in `admission` and `tickets`.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    time::{Instant, SystemTime},
};

use super::{
    AgentId, Change, Compare, Difference, Done, Key, PATIENCE, Present, Site, SlotRecord, Value, Versioned,
    Work, difference::diff, etcd::EtcdError, proof,
};
use crate::{
    agent::{
        ledger::{
            holding::Holding,
            state::{SavedHolding, SavedSlots, SavedStamps, at},
        },
        service::local::Local,
    },
    judge::terms::{name_on_site, table_of_site},
    keeper::{Store, agent::message::Answer, memory},
    sys::process,
};

impl Site {
    /// Releases a launch's slots of the site; `has_run` if a program had them. Its other slots are free when
    /// this returns.
    pub(in crate::agent) fn free(&mut self, local: &mut Local, mut holding: Holding, has_run: bool) {
        if has_run {
            self.note_end(local, &holding.saved);
        } else {
            holding.withdraw_stamps();
            self.own.was_not_used(&holding.saved);
        }
        for SavedSlots { table, slots, .. } in holding.saved.tables.iter().filter(|of| of.group.is_some()) {
            if let Some(name) = name_on_site(table) {
                self.look_at_slots(local, name, slots);
            }
        }
        self.give_back(local, holding.held.extract_if(.., |held| !held.is_shared()).collect());
    }

    /// A program has ended now, for the pauses of all hosts.
    pub(super) fn note_end(&mut self, local: &Local, saved: &SavedHolding) {
        let now = SystemTime::now();
        for (name, of) in saved.paced_at_site() {
            local.ledger().store().table(&of.table).ended(now);
            self.own.was_used(name, saved.uid, now);
        }
    }

    /// Releases slots of the site. Others are free when this returns.
    pub(in crate::agent) fn give_back(&mut self, local: &mut Local, all: Vec<memory::Held>) {
        for held in all {
            let Some(name) = name_on_site(held.table().name()).map(str::to_owned) else { continue };
            let slots = held.group().map_or_else(Vec::new, |_| held.slots().to_vec());
            self.own.free(&name, held);
            self.look_at_slots(local, &name, &slots);
        }
        self.reconcile(local);
    }

    /// Slots of a group may have another holder, whom their keys have to name.
    pub(in crate::agent) fn look_at_slots(&mut self, local: &Local, name: &str, slots: &[u64]) {
        for slot in slots {
            if let Some(value) = self.wanted_slot(local, name, *slot) {
                self.own.want(Key::Slot(name.to_owned(), *slot), value);
            }
        }
    }

    /// Makes all hosts forget when these tables were last used, and tells the caller when they have.
    pub(in crate::agent) fn reset(&mut self, local: &mut Local, session: u64, tables: Vec<String>) {
        let reset = Reset { session, tables, since: Instant::now(), was_used: false };
        self.own.have_changed(reset.keys());
        self.own.resets.push(reset);
        self.reconcile(local);
        self.answer_resets(local);
    }

    /// Answers those requests, or says why nothing can be changed.
    pub(super) fn answer_resets(&mut self, local: &mut Local) {
        for mut reset in std::mem::take(&mut self.own.resets) {
            let is_used = reset.keys().any(|key| self.present(&key).is_some());
            reset.was_used |= is_used;
            // A last use that is being written is from before the request.
            let is_pending = reset.keys().any(|key| self.pending.is_busy_with(&key));
            let answer = if self.is_open() && self.has_settled() && !is_used && !is_pending {
                for table in reset.tables.iter().filter_map(|table| name_on_site(table)) {
                    self.own.forget_use(table);
                }
                Answer::Done(local.ledger().reset_all(&reset.tables) | reset.was_used)
            } else if reset.since.elapsed() > PATIENCE {
                Answer::Failed(self.why())
            } else {
                self.own.resets.push(reset);
                continue;
            };
            if let Some(session) = local.session_mut(reset.session) {
                session.answer(answer, None);
            }
        }
    }

    /// Checks everything again, whether it has changed or not.
    pub(super) fn look_at_all_keys(&mut self, local: &mut Local) {
        if self.presence.registration().is_none() {
            return;
        }
        for launch in self.own.places.keys().copied().collect::<Vec<_>>() {
            self.want_tickets(local, launch);
            self.join(local, launch);
        }
        let slots = self.wanted_slots(local);
        let own = self.own_keys();
        self.own.look_at_all(slots, own);
    }

    /// The slots that this host holds, and those that stay taken after the end of their programs.
    pub(super) fn wanted_slots(&self, local: &Local) -> BTreeMap<Key, Value> {
        let lingering = local.ledger().lingering().values();
        let lingering = lingering.flat_map(|of| of.held.iter().map(|(held, _)| (&of.saved, 0, held)));
        // A slot that several have is that of the first of them.
        let holdings = local.ledger().holdings().values().rev().flat_map(|holding| {
            let own = holding.held.iter().filter(|held| !held.is_shared());
            own.map(move |held| (&holding.saved, holding.launch, held))
        });
        let mut slots = BTreeMap::new();
        for (saved, launch, held) in lingering.chain(holdings) {
            let Some(name) = name_on_site(held.table().name()) else { continue };
            let record = SlotRecord::of(saved, name, &self.host, &self.agent, launch);
            let slot = |slot: &u64| (Key::Slot(name.to_owned(), *slot), Value::Slot(record.clone()));
            slots.extend(held.slots().iter().map(slot));
        }
        slots
    }

    /// The same for one slot.
    fn wanted_slot(&self, local: &Local, name: &str, slot: u64) -> Option<Value> {
        let here = table_of_site(name);
        let mut holdings = local.ledger().holdings().values();
        let holding = holdings.find(|holding| holding.has_own(&here, slot));
        let holding = holding.map(|of| (&of.saved, of.launch));
        let mut lingering = local.ledger().lingering().values().rev();
        let lingering = || Some((&lingering.find(|of| of.has(&here, slot))?.saved, 0));
        let (saved, launch) = holding.or_else(lingering)?;
        Some(Value::Slot(SlotRecord::of(saved, name, &self.host, &self.agent, launch)))
    }

    /// Sends the necessary changes of this host's keys, if the present keys are known and no transaction is
    /// pending.
    pub(in crate::agent) fn reconcile(&mut self, local: &mut Local) {
        if self.pending.is_keeping() || !self.has_settled() {
            return;
        }
        self.release();
        // A last use is written together with what other hosts have written of it.
        let unshown = self.stirred.iter().filter(|name| self.own.used.contains_key(*name));
        for name in unshown.cloned().collect::<Vec<_>>() {
            self.show(&name, local.ledger().store());
        }
        let notices = self.wanted_notices(local);
        let proved = self.pending.keys_in_proof();
        self.own.mark_dirty(notices.keys().cloned());
        let now = self.own.take_dirty(self.mirror.revision(), &proved);
        let wanted = |key: &Key| match key {
            Key::Notice(..) => notices.get(key).cloned(),
            key => self.own.wanted(key, local.ledger().store()),
        };
        let Difference { changes, taken } = diff(&now, wanted, |key| self.present(key));
        // If the answer to a write was lost, the mirror shows that the last use was written.
        for key in &now {
            let Key::Stamps(table) = key else { continue };
            let there = self.present(key).and_then(|there| there.value);
            if there.is_some() && there == self.own.wanted(key, local.ledger().store()) {
                self.own.has_told_use(table);
            }
        }
        if !changes.is_empty() {
            self.send_changes(changes);
        }
        for key in taken {
            self.on_taken(local, key);
        }
    }

    /// The result of the transaction.
    pub(super) fn reconciled(
        &mut self,
        local: &mut Local,
        changes: Vec<Change>,
        result: Result<Done, EtcdError>,
    ) {
        match result {
            Ok(done) if done.holds => {
                for Change { key, value, .. } in &changes {
                    match (key, value) {
                        (Key::Stamps(table), written) => {
                            self.forget_told_use(local.ledger().store(), table, written.as_ref());
                        }
                        (Key::Slot(table, slot), Some(_)) => {
                            let here = table_of_site(table);
                            let has = |holding: &&Holding| holding.has(&here, *slot);
                            let holdings =
                                local.ledger().holdings().iter().filter(|(_, holding)| has(holding));
                            for (number, _) in holdings {
                                self.ended.remove(number);
                            }
                        }
                        _ => {}
                    }
                }
                self.own.has_written(
                    done.revision,
                    changes.into_iter().map(|Change { key, value, .. }| (key, value)),
                );
                self.release();
            }
            // Some key differed from its known state, perhaps the host's key. Everything is checked again
            // when that is known.
            Ok(_) => {
                self.presence.look();
                self.own.have_failed(changes.into_iter().map(|change| change.key));
            }
            Err(trouble) => {
                self.own.have_failed(changes.into_iter().map(|change| change.key));
                if !trouble.is_definite() {
                    self.presence.register_anew();
                }
                self.presence.note(trouble);
            }
        }
    }

    /// The last use of a table was written like this. What has come since then is written next.
    pub(super) fn forget_told_use(&mut self, store: &Store, table: &str, written: Option<&Value>) {
        if self.own.wanted(&Key::Stamps(table.to_owned()), store).as_ref() == written {
            self.own.forget_use(table);
        }
    }

    /// A wanted key belongs to another host. A waiting launch gets another number. A holder gets another
    /// slot, even beyond the limit; its program is ended first if the policy says so.
    fn on_taken(&mut self, local: &mut Local, key: Key) {
        let (table, slot) = match key {
            Key::Slot(table, slot) => (table, slot),
            key => {
                let mut places = self.own.places.iter();
                let launch = places.find(|(_, place)| place.keys.contains(&key)).map(|(launch, _)| *launch);
                return launch.map_or((), |launch| self.come_anew(local, launch));
            }
        };
        // For as long as its program keeps it.
        self.own.mark_dirty([Key::Slot(table.clone(), slot)]);
        self.move_slot(local, &table, slot);
    }
}

impl Site {
    /// Whether every transaction that this host has sent is committed, or never will be: the host's key was
    /// written after it, and the mirror has that.
    pub(super) fn has_settled(&self) -> bool {
        let is_seen = |registration| registration <= self.mirror.revision();
        self.mirror.is_known() && self.presence.registration().is_some_and(is_seen)
    }

    /// The known state of a key: that of this host's last write, until the mirror has caught up.
    pub(super) fn present(&self, key: &Key) -> Option<Present> {
        if let Some((revision, value)) = self.own.written_after(self.mirror.revision(), key) {
            let value = value.clone()?;
            let is_own = match &value {
                // A reply of this host to a notice does not make it a notice of this host.
                Value::Notice(of) => self.is_own(&of.host, &of.agent),
                Value::Stamps(_) => self.own.is_reset(key),
                Value::Slot(_) | Value::Ticket(_) => true,
            };
            return Some(Present { revision: *revision, value: Some(value), is_own });
        }
        let of_table = |table: &str| self.mirror.table(table);
        let (revision, value) = match key {
            Key::Slot(table, slot) => value_of(of_table(table)?.slots.get(slot)?, Value::Slot),
            Key::Ticket(table, number) => value_of(of_table(table)?.tickets.get(number)?, Value::Ticket),
            Key::Notice(table, slot) => value_of(of_table(table)?.notices.get(slot)?, Value::Notice),
            Key::Stamps(table) => value_of(of_table(table)?.stamps.as_ref()?, Value::Stamps),
            Key::Host(_) | Key::Written(_) | Key::Cluster => return None,
        };
        let is_own =
            value.as_ref().and_then(Value::writer).is_some_and(|(host, agent)| self.is_own(host, agent));
        let is_own = is_own || self.own.is_reset(key);
        Some(Present { revision, value, is_own })
    }

    /// Whether this host has written it: this agent, or one before it. A living host of the same name would
    /// have written the host's key meanwhile.
    fn is_own(&self, host: &str, agent: &AgentId) -> bool {
        *agent == self.agent || host == self.host && self.presence.is_alone_by_its_name()
    }

    fn own_keys(&self) -> BTreeSet<Key> {
        self.mirror.keys_of(|host, agent| self.is_own(host, agent)).map(|(key, _)| key).collect()
    }

    /// Sends changes in one transaction, which requires that each key is unchanged. Those that etcd would not
    /// accept in it come later.
    fn send_changes(&mut self, mut changes: Vec<Change>) {
        let Some(registration) = self.presence.registration() else { return };
        let mut compares = vec![proof::of_host(&self.keys, &self.host, registration)];
        let mut count = 0;
        for change in &changes {
            let of_holder = self.proof_of_holder(change);
            // Each change has a condition of its own.
            if compares.len() + count + usize::from(of_holder.is_some()) >= proof::MOST_IN_TRANSACTION {
                break;
            }
            compares.extend(of_holder);
            count += 1;
        }
        let later = changes.split_off(count);
        self.own.mark_dirty(later.into_iter().map(|change| change.key));
        let transaction = proof::transaction(&self.keys, compares, &changes);
        self.send(Work::Keep(changes), transaction);
    }

    /// For a notice, which exists only while its holder has the slot: that it still has it.
    fn proof_of_holder(&self, change: &Change) -> Option<Compare> {
        let Key::Notice(table, slot) = &change.key else { return None };
        change.value.as_ref()?;
        let held = self.mirror.table(table)?.slots.get(slot)?;
        Some(Compare::ChangedAt(self.keys.name(&Key::Slot(table.clone(), *slot)), held.revision))
    }

    /// Releases slots in memory whose keys are deleted. Launches that wait for them check again.
    pub(super) fn release(&mut self) {
        if !self.has_settled() {
            return;
        }
        let is_there = |key: &&Key| self.present(key).is_some_and(|there| there.is_own);
        let left: BTreeSet<Key> = self.own.leaving().filter(is_there).cloned().collect();
        let tables = self.own.release(&left);
        let names = tables.iter().filter_map(|table| name_on_site(table.name()));
        self.stirred.extend(names.map(str::to_owned));
    }
}

// Last uses that no pause needs any more. A few tables are looked at with each start that is recorded, so
// that no more keys are left over than there are pauses. Each host looks at its own few.

/// How many tables are looked at.
const TABLES_AT_A_START: usize = 4;

impl Site {
    /// Deletes the last uses of the next few tables, where no pause needs them any more.
    pub(super) fn forget_old_uses(&mut self, store: &Store) {
        let Some(registration) = self.presence.registration() else { return };
        let last = std::mem::take(&mut self.searched);
        let after = (Bound::Excluded(last.as_str()), Bound::Unbounded);
        let next = self.shown.range::<str, _>(after).take(TABLES_AT_A_START);
        for name in next.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            let key = Key::Stamps(name.clone());
            if let Some(at) = self.old_use(store, &name).filter(|_| !self.pending.is_busy_with(&key)) {
                let gone = Change { key: key.clone(), at, value: None };
                let host = proof::of_host(&self.keys, &self.host, registration);
                let transaction = proof::transaction(&self.keys, vec![host, self.proof_of_name()], &[gone]);
                self.send(Work::Aside(key), transaction);
            }
            self.searched = name;
        }
    }

    /// The revision of a table's last use, if no pause needs that any more. The clocks of hosts differ, so it
    /// must have been the same here for as long as the longest pause. If that is zero, it is unknown.
    fn old_use(&self, store: &Store, name: &str) -> Option<i64> {
        let at = self.mirror.table(name)?.stamps.as_ref().filter(|at| at.record.is_some())?;
        let table = store.known(&table_of_site(name))?;
        let lasts = process::since_boot()?.saturating_sub(self.shown.get(name)?.since(at.revision)?);
        let pause = table.longest_pause();
        (!pause.is_zero() && lasts >= pause && table.is_idle(SystemTime::now())).then_some(at.revision)
    }
}

/// The revision and the value of a key in the mirror.
fn value_of<T: Clone>(at: &Versioned<T>, value: impl Fn(T) -> Value) -> (i64, Option<Value>) {
    (at.revision, at.record.clone().map(value))
}

// The keys that this host wants, which of them may have to change, and what it has written since the
// mirror's revision. All of it follows from what the agent keeps, and can be computed at any time.

/// Slots that are not used any more. They are held in memory until their keys are deleted, so that no launch
/// of this host gets one before.
#[derive(Debug)]
struct Leaving {
    held: memory::Held,
    keys: Vec<Key>,
}

/// The keys that one launch wants in queues.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) number: u64,
    pub(super) keys: BTreeSet<Key>,
    /// Whether its tickets need no proof: the launch was already in the queues, or they have no maximum
    /// length.
    pub(super) is_in: bool,
    /// Whether it was restored after a failure of the agent, and not seen in etcd yet.
    pub(super) is_unseen: bool,
}

/// A caller who wants all hosts to forget when tables were last used.
#[derive(Debug)]
pub(super) struct Reset {
    session: u64,
    tables: Vec<String>,
    pub(super) since: Instant,
    /// Whether one of them was used, as far as hosts know.
    was_used: bool,
}

impl Reset {
    fn keys(&self) -> impl Iterator<Item = Key> {
        let of_site = self.tables.iter().filter_map(|table| name_on_site(table));
        of_site.map(|name| Key::Stamps(name.to_owned()))
    }
}

/// What others do not know yet of the last use of a table.
#[derive(Debug, Default)]
pub(super) struct UntoldUse {
    by: u32,
    /// When a program that used it ended, if one did.
    end: Option<SystemTime>,
    /// Recorded starts with which no program was started, each with the one before it.
    withdrawn: Vec<(SystemTime, Option<SystemTime>)>,
}

/// The keys that this host wants, and has written.
#[derive(Debug, Default)]
pub(super) struct OwnKeys {
    wanted: BTreeMap<Key, Value>,
    /// The tables whose last use must be written.
    used: BTreeMap<String, UntoldUse>,
    /// By the number of the connection, or of the saved position of a launch that has not reconnected.
    pub(super) places: BTreeMap<u64, Place>,
    leaving: Vec<Leaving>,
    /// The requests to forget last uses that have no answer yet.
    pub(super) resets: Vec<Reset>,
    /// Keys that may have to change.
    dirty: BTreeSet<Key>,
    /// Keys written since the mirror's revision, with their revisions.
    written: BTreeMap<Key, (i64, Option<Value>)>,
    /// Whether the last transaction failed: until something changes, the next would fail too.
    has_failed: bool,
}

impl OwnKeys {
    /// A transaction of this host was committed at a revision.
    pub(super) fn has_written(
        &mut self,
        revision: i64,
        changes: impl IntoIterator<Item = (Key, Option<Value>)>,
    ) {
        self.written.extend(changes.into_iter().map(|(key, value)| (key, (revision, value))));
    }

    /// Writes to another etcd mean nothing.
    pub(super) fn begin_anew(&mut self) {
        self.written.clear();
    }

    /// Keys have changed in the mirror.
    pub(super) fn have_changed(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.dirty.extend(keys);
        self.try_again();
    }

    /// A failed transaction may succeed now.
    pub(super) fn try_again(&mut self) {
        self.has_failed = false;
    }

    /// These keys could not be changed.
    pub(super) fn have_failed(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.dirty.extend(keys);
        self.has_failed = true;
    }

    /// These keys may have to change, too.
    pub(super) fn mark_dirty(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.dirty.extend(keys);
    }

    /// The keys that may have to change, by a mirror at this revision. Keys being proved are neither wanted
    /// nor left; keys that need a proof first come later.
    pub(super) fn take_dirty(&mut self, revision: i64, proved: &BTreeSet<Key>) -> BTreeSet<Key> {
        self.written.retain(|_, (at, _)| *at > revision);
        if self.has_failed {
            return BTreeSet::new();
        }
        let (later, mut now): (BTreeSet<Key>, BTreeSet<Key>) =
            std::mem::take(&mut self.dirty).into_iter().partition(|key| proved.contains(key));
        self.dirty = later;
        for place in self.places.values().filter(|place| !place.is_in) {
            now.retain(|key| !place.keys.contains(key));
        }
        now
    }

    /// Everything is checked again. The held slots, and the keys of this host.
    pub(super) fn look_at_all(&mut self, slots: BTreeMap<Key, Value>, own: BTreeSet<Key>) {
        self.wanted.retain(|key, _| !matches!(key, Key::Slot(..)));
        self.wanted.extend(slots);
        self.dirty.extend(own);
        self.dirty.extend(self.wanted.keys().cloned());
        self.dirty.extend(self.used.keys().cloned().map(Key::Stamps));
    }

    /// The last write of a key after this revision.
    pub(super) fn written_after(&self, revision: i64, key: &Key) -> Option<&(i64, Option<Value>)> {
        self.written.get(key).filter(|(at, _)| *at > revision)
    }

    /// The slots of a table that this host has deleted after this revision.
    pub(super) fn deleted_after(&self, revision: i64, table: &str) -> BTreeSet<u64> {
        let deleted = self.written.iter().filter(|(_, (at, value))| *at > revision && value.is_none());
        let of_table = deleted.filter_map(|(key, _)| match key {
            Key::Slot(of, slot) if of == table => Some(*slot),
            _ => None,
        });
        of_table.collect()
    }

    /// These slots of a table are not used any more. Those that others of their group have too stay, and no
    /// launch joins the rest: their keys are about to be deleted.
    pub(super) fn free(&mut self, table: &str, mut held: memory::Held) {
        held.leave_group();
        let keys: Vec<Key> = held.slots().iter().map(|slot| Key::Slot(table.to_owned(), *slot)).collect();
        if keys.is_empty() {
            return;
        }
        for key in &keys {
            self.wanted.remove(key);
        }
        self.dirty.extend(keys.iter().cloned());
        self.leaving.push(Leaving { held, keys });
    }

    /// The last use of a table must be written: a program used it until then.
    fn was_used(&mut self, table: &str, by: u32, end: SystemTime) {
        let untold = self.untold_use(table, by);
        untold.end = untold.end.max(Some(end));
    }

    /// The same for all tables of a launch whose program was not started.
    pub(super) fn was_not_used(&mut self, saved: &SavedHolding) {
        for (table, of) in saved.paced_at_site() {
            let untold = self.untold_use(table, saved.uid);
            let started = saved.started.and_then(at);
            untold.withdrawn.extend(started.map(|started| (started, of.before.and_then(at))));
        }
    }

    /// The last use of a table must be written; this user counts as the last one if no other is known.
    pub(super) fn untold_use(&mut self, table: &str, by: u32) -> &mut UntoldUse {
        self.dirty.insert(Key::Stamps(table.to_owned()));
        let untold = self.used.entry(table.to_owned()).or_default();
        untold.by = by;
        untold
    }

    /// Adds what others do not know yet to a table as the mirror shows it: that may have a start of this host
    /// whose program has ended by now, or was not started.
    pub(super) fn add_untold_use(&self, name: &str, table: &memory::Table) {
        let Some(untold) = self.used.get(name) else { return };
        if let Some(ended) = table.stamps().1.max(untold.end) {
            table.ended(ended);
        }
        // The one before a start may be one of them too.
        for (withdrawn, before) in untold.withdrawn.iter().rev() {
            if table.stamps().0 == Some(*withdrawn) {
                table.withdraw(*before);
            }
        }
    }

    /// Whether others do not know yet of a withdrawn start.
    pub(super) fn has_withdrawn(&self, table: &str) -> bool {
        self.used.get(table).is_some_and(|untold| !untold.withdrawn.is_empty())
    }

    /// Whether the last use of a table must be forgotten.
    fn is_reset(&self, key: &Key) -> bool {
        self.resets.iter().any(|reset| reset.keys().any(|of| of == *key))
    }

    /// It was written, or must be forgotten.
    pub(super) fn forget_use(&mut self, table: &str) {
        self.used.remove(table);
    }

    /// Etcd has it as this host wants it. A withdrawn start may still be the one before another start.
    fn has_told_use(&mut self, table: &str) {
        let Some(untold) = self.used.get_mut(table) else { return };
        untold.end = None;
        if untold.withdrawn.is_empty() {
            self.forget_use(table);
        }
    }

    /// The slots that are being released.
    pub(super) fn leaving(&self) -> impl Iterator<Item = &Key> {
        self.leaving.iter().flat_map(|leaving| &leaving.keys)
    }

    /// Releases in memory those whose keys are not among these any more. Returns their tables.
    pub(super) fn release(&mut self, left: &BTreeSet<Key>) -> Vec<memory::Table> {
        let is_gone = |leaving: &mut Leaving| !leaving.keys.iter().any(|key| left.contains(key));
        self.leaving.extract_if(.., is_gone).map(|leaving| leaving.held.table().clone()).collect()
    }

    /// A proved slot must stay.
    pub(super) fn want(&mut self, key: Key, value: Value) {
        self.wanted.insert(key.clone(), value);
        self.dirty.insert(key);
    }

    /// The tickets of a launch, all under one number; none if it waits no longer.
    pub(super) fn want_tickets(&mut self, launch: u64, number: u64, tickets: BTreeMap<Key, Value>) {
        let place = self.places.entry(launch).or_default();
        if place.number != number {
            (place.number, place.is_in) = (number, false);
        }
        for gone in place.keys.iter().filter(|key| !tickets.contains_key(*key)) {
            self.wanted.remove(gone);
            self.dirty.insert(gone.clone());
        }
        place.keys = tickets.keys().cloned().collect();
        for (key, ticket) in tickets {
            if self.wanted.get(&key) != Some(&ticket) {
                self.wanted.insert(key.clone(), ticket);
                self.dirty.insert(key);
            }
        }
        if place.keys.is_empty() {
            self.places.remove(&launch);
        }
    }

    /// Whether a launch has this ticket in etcd, or needs no proof for it.
    pub(super) fn is_in(&self, launch: u64, ticket: &Key) -> bool {
        self.places.get(&launch).is_some_and(|place| place.is_in && place.keys.contains(ticket))
    }

    /// Whether a table has slots that are being released.
    pub(super) fn is_giving_back(&self, table: &str) -> bool {
        self.leaving.iter().any(|leaving| leaving.held.table().name() == table)
    }

    /// The wanted value of a key.
    pub(super) fn wanted(&self, key: &Key, store: &Store) -> Option<Value> {
        match key {
            Key::Stamps(_) if self.is_reset(key) => None,
            Key::Stamps(table) => {
                let table_here = store.known(&table_of_site(table))?;
                Some(Value::Stamps(SavedStamps::of(&table_here, self.used.get(table)?.by)))
            }
            _ => self.wanted.get(key).cloned(),
        }
    }
}
