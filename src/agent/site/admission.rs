//! Slots of the site for a launch. A decision in memory counts only after a transaction has proved it. If
//! something has changed meanwhile, the launch is judged again as soon as the mirror shows the change.

use std::time::{Duration, Instant};

use super::{
    Admission, Done, Key, Operation, PATIENCE, Present, Site, SlotRecord, Taking, Transaction, Value, Work,
    etcd::EtcdError, proof, tickets::can_be_of,
};
use crate::{
    agent::{
        AcquireRequest, Event, Session,
        ledger::{holding::Holding, state::SavedStamps},
        service::local::Local,
    },
    judge::terms::{name_on_site, table_of_site},
    keeper::{
        Number, Occupancy, Span,
        agent::message::{Obstacle, Reason, Refused, Table, WaitState},
        memory,
    },
    sys::process,
    text::Show,
};

impl Site {
    /// Prepares a check of the site's tables: the launch gets its number, unless it has waited under one, and
    /// its search starts where no other host starts.
    pub(in crate::agent) fn prepare(&mut self, local: &mut Local, session: u64, order: &AcquireRequest) {
        for name in order.tables_of_site() {
            // Changes of the mirror are shown once, not at each check.
            if self.stirred.contains(name) {
                self.show(name, local.ledger().store());
            }
            let table = local.ledger().store_of(Some(order.uid)).table(&table_of_site(name));
            if let Some(length) = order.pause_on(table.name()) {
                // A longer pause than that of earlier launches also needs the last use. Other hosts keep it
                // for the pause that its key names.
                table.pauses_for(length);
                let there = self.present(&Key::Stamps(name.to_owned())).and_then(|there| there.value);
                if let Some(Value::Stamps(used)) = there
                    && used.longest_pause < length
                {
                    self.own.untold_use(name, used.started_by.unwrap_or(order.uid));
                }
            }
            let seed = process::since_boot().map_or(0, |now| u64::from(now.subsec_nanos()));
            table.search_from(seed % order.limit_of(table.name()).max(1) + 1);
        }
        let is_joining = self.own.places.get(&session).is_some_and(|place| !place.is_in);
        let Some(session) = local.session_mut(session) else { return };
        let begins = &mut session.place.begins;
        // Later checks do not look again whether there is room in the queues that it is joining. For a queue
        // that only a later request needs, the earlier revision is stricter than its own.
        if !is_joining {
            begins.lines.clear();
            begins.looked = (self.origin.generation(), self.mirror.revision());
        }
        begins.lines.extend(order.ends_of_lines().map(str::to_owned));
        let needs_number = session.place.line.number().is_none() || is_newcomer(session);
        if needs_number && order.tables_of_site().next().is_some() {
            // After a restore, launches of any host may wait with numbers of later revisions.
            let revision = self.mirror.revision();
            for last in order.tables_of_site().filter_map(|name| self.mirror.last_ticket(name)) {
                if !can_be_of(last, revision) {
                    self.numbers.continue_after(last);
                }
            }
            let number = self.numbers.next(revision);
            session.place.line.begin_as(Number(number));
        }
    }

    /// Requests the proof for slots that a launch got in memory.
    pub(in crate::agent) fn prove(
        &mut self,
        local: &mut Local,
        session_number: u64,
        order: AcquireRequest,
        holding: Holding,
    ) {
        let Some(registration) = self.presence.registration() else {
            return self.rest(local, session_number, order, holding);
        };
        let Some(session) = local.session_mut(session_number) else { return };
        let number = session.place.line.number().map_or(u64::MAX, |number| number.0);
        let before = if is_newcomer(session) { u64::MAX } else { number };
        let own = holding.held.iter().filter(|held| !held.is_shared());
        let of_site = own.filter_map(|held| Some((name_on_site(held.table().name())?, held)));
        let takings: Option<Vec<Taking>> =
            of_site.map(|(name, held)| self.taking(&order, name, held)).collect();
        let Some(takings) = takings else { return self.rest(local, session_number, order, holding) };
        let launch = process::since_boot().map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(0));
        let mut compares = proof::compares(&self.keys, &takings, before, self.mirror.revision());
        compares.push(proof::of_host(&self.keys, &self.host, registration));
        compares.push(self.proof_of_name());
        let room = proof::MOST_IN_TRANSACTION.saturating_sub(compares.len());
        let absent = self.mirror.passed_over(&takings, number);
        compares.extend(proof::of_absent(&self.keys, &absent, self.mirror.revision(), room));
        let mut writes: Vec<(Key, Option<Value>)> = Vec::new();
        for taking in &takings {
            writes.extend(self.slots_of(taking, &holding, launch));
            if let (Some(_), Some(table)) = (taking.stamps, holding.table(&taking.table)) {
                let stamps = SavedStamps::of(table, holding.saved.uid);
                writes.push((Key::Stamps(taking.table.clone()), Some(Value::Stamps(stamps))));
            }
        }
        let tickets = self.own.places.get(&session_number).map(|place| place.keys.clone());
        let tickets = tickets.into_iter().flatten().map(|ticket| (ticket, None)).collect::<Vec<_>>();
        // Otherwise they are deleted after the start.
        if writes.len() + tickets.len() <= proof::MOST_IN_TRANSACTION {
            writes.extend(tickets);
        }
        let operations = writes.iter().map(|(key, value)| match (self.keys.name(key), value) {
            (name, Some(value)) => Operation::Put(name, value.bytes()),
            (name, None) => Operation::Delete(name),
        });
        let operations: Vec<Operation> = operations.collect();
        if compares.len().max(operations.len()) > proof::MOST_IN_TRANSACTION {
            let tables = self.withdraw(local, holding);
            local.serve(&tables);
            return local.fail(session_number, proof::too_much(takings.len()));
        }
        session.on(Event::Proves);
        let since = *session.place.resting.get_or_insert_with(Instant::now);
        let (order, generation) = (Some(order), self.origin.generation());
        let (session, question) = (session_number, session.question);
        let joined =
            takings.iter().flat_map(|of| of.joined.iter().map(|(slot, _)| (of.table.clone(), *slot)));
        let joined = joined.map(|(table, slot)| Key::Slot(table, slot)).collect();
        if !holding.saved.paced_at_site.is_empty() {
            // If that fails, and the agent dies before the answer, a pause may begin without a start.
            let _ = local.ledger().state().write_unproved(launch, &holding.saved);
        }
        let admission = Admission {
            session,
            question,
            order,
            since,
            holding,
            launch,
            generation,
            registration,
            writes,
            joined,
        };
        self.send(Work::Take(Box::new(admission)), Transaction { compares, operations });
    }

    /// The result of the proof.
    pub(super) fn proved(
        &mut self,
        local: &mut Local,
        admission: Admission,
        result: Result<Done, EtcdError>,
    ) {
        match result {
            Ok(done) if done.holds && self.presence.registration() == Some(admission.registration) => {
                self.admitted(local, admission, done.revision);
            }
            // The answer is so late that other hosts may have deleted the slots meanwhile.
            Ok(done) if done.holds => self.pending.add_unclear(admission),
            Ok(_) => self.conflict(local, admission),
            Err(trouble) => {
                let is_definite = trouble.is_definite();
                self.presence.note(trouble);
                if is_definite {
                    return self.conflict(local, admission);
                }
                self.pending.add_unclear(admission);
                self.presence.register_anew();
            }
        }
    }

    /// Decides proofs without an answer, as soon as the mirror has all commits.
    pub(super) fn settle(&mut self, local: &mut Local) {
        if !self.has_settled() {
            return;
        }
        for admission in self.pending.take_unclear() {
            let is_own = |key: &Key| match self.present(key)?.value? {
                Value::Slot(record) => {
                    let is_own = record.is_of(&self.agent, &admission.holding.saved);
                    (record.launch == admission.launch && is_own).then_some(self.mirror.revision())
                }
                _ => None,
            };
            let revision = admission.slots().find_map(is_own);
            match revision {
                Some(revision) => self.admitted(local, admission, revision),
                None => {
                    // A launch that only joins a slot writes no key of it, and others may have deleted it.
                    self.own.was_not_used(&admission.holding.saved);
                    self.conflict(local, admission);
                }
            }
        }
    }

    /// The slots are acquired.
    fn admitted(&mut self, local: &mut Local, admission: Admission, revision: i64) {
        let launch = admission.launch;
        self.grant_or_free(local, admission, revision);
        local.ledger().state().forget_unproved(launch);
    }

    /// The launch may be gone by now, or may have made another request.
    fn grant_or_free(&mut self, local: &mut Local, admission: Admission, revision: i64) {
        let is_of_now = self.is_of_now(&admission);
        let Admission { session, question, order, mut holding, launch, writes, joined, .. } = admission;
        holding.launch = launch;
        for (key, value) in &writes {
            match (key, value) {
                (Key::Slot(..), Some(value)) => self.own.want(key.clone(), value.clone()),
                // A withdrawn start may be the one before this start, which may be withdrawn too.
                (Key::Stamps(table), value) if !self.own.has_withdrawn(table) => {
                    self.forget_told_use(local.ledger().store(), table, value.as_ref());
                }
                _ => {}
            }
        }
        if writes.iter().any(|(key, _)| matches!(key, Key::Stamps(_))) {
            self.forget_old_uses(local.ledger().store());
        }
        // Its tickets are put back together with its slots, if it does not get these.
        self.own.mark_dirty(writes.iter().map(|(key, _)| key.clone()));
        self.own.has_written(revision, writes);
        self.presence.clear_trouble();
        let is_open = self.is_open() && is_of_now;
        let is_there = waits_for_proof(local, session, question);
        // It may rest by now, for the slots that it gets instead of these.
        let Some(order) = order.filter(|_| is_there) else { return self.free(local, holding, false) };
        self.resting.remove(&session);
        if !is_open {
            // A program is started only while no other host can consider this host dead.
            self.free(local, holding, false);
            return self.rest_without(local, session, order);
        }
        let tables = holding.held.iter().map(|held| held.table().clone()).collect::<Vec<_>>();
        if let Err(holding) = local.grant(session, holding) {
            self.free(local, *holding, false);
        }
        for key in &joined {
            // A launch may have taken over the slot of an ended program.
            if let Key::Slot(table, slot) = key {
                self.look_at_slots(local, table, &[*slot]);
            }
        }
        self.write_tickets(local, session);
        local.serve(&tables);
    }

    /// Something that the decision depends on has changed.
    fn conflict(&mut self, local: &mut Local, admission: Admission) {
        let Admission { session, question, order, holding, launch, .. } = admission;
        local.ledger().state().forget_unproved(launch);
        match order.filter(|_| waits_for_proof(local, session, question)) {
            Some(order) => self.rest(local, session, order, holding),
            None => {
                let tables = self.withdraw(local, holding);
                local.serve(&tables);
            }
        }
    }

    /// Lets a launch wait until something has changed, without the unproved slots.
    fn rest(&mut self, local: &mut Local, session: u64, order: AcquireRequest, holding: Holding) {
        let tables = self.withdraw(local, holding);
        self.rest_without(local, session, order);
        local.serve(&tables);
    }

    /// Releases unproved slots in memory; returns their tables.
    fn withdraw(&mut self, local: &mut Local, mut holding: Holding) -> Vec<memory::Table> {
        holding.withdraw_stamps();
        let tables = holding.held.iter().map(|held| held.table().clone()).collect::<Vec<memory::Table>>();
        // All others of a group may have ended meanwhile: then the key of its slot has to go.
        for held in holding.held.extract_if(.., |held| held.group().is_some()) {
            if let Some(name) = name_on_site(held.table().name()).map(str::to_owned) {
                self.own.free(&name, held);
            }
        }
        drop(holding);
        self.release();
        for name in tables.iter().filter_map(|table| name_on_site(table.name())) {
            self.show(name, local.ledger().store());
        }
        tables
    }
}

impl Site {
    /// The slots of one table. None if the group of the launch has a slot whose key is not known to be this
    /// host's: it is not proved yet, or another host has deleted it.
    fn taking(&self, order: &AcquireRequest, name: &str, held: &memory::Held) -> Option<Taking> {
        let here = held.table().name();
        let shared = held.shared_with_others();
        let revision = |slot: &u64| {
            let key = Key::Slot(name.to_owned(), *slot);
            let is_known = |there: &Present| there.is_own && !self.pending.is_in_proof(&key);
            Some((*slot, self.present(&key).filter(is_known)?.revision))
        };
        let joined = shared.iter().map(revision).collect::<Option<Vec<_>>>()?;
        let slots: Vec<u64> = held.slots().iter().copied().filter(|slot| !shared.contains(slot)).collect();
        let spans = held.table().occupancy();
        let others = spans.spans().iter().flat_map(|span| span.slots.clone());
        let others = others.filter(|slot| !slots.contains(slot));
        let held = others.map(|slot| Span { slots: slot..=slot, pid: None }).collect();
        let stamps = order.is_paced(here).then(|| {
            let stamps = self.mirror.table(name).and_then(|table| table.stamps.as_ref());
            stamps.map_or(0, |at| at.revision)
        });
        let limit = order.terms_on(here).filter(|_| !slots.is_empty());
        Some(Taking { table: name.to_owned(), slots, joined, limit, held: Occupancy::of(held), stamps })
    }

    fn slots_of(&self, taking: &Taking, holding: &Holding, launch: u64) -> Vec<(Key, Option<Value>)> {
        let record = SlotRecord::of(&holding.saved, &taking.table, &self.host, &self.agent, launch);
        let slot = |slot: &u64| (Key::Slot(taking.table.clone(), *slot), Some(Value::Slot(record.clone())));
        taking.slots.iter().map(slot).collect()
    }
}

// Launches that wait for etcd and not for slots: until something has changed, for a bounded time.

/// After this long it checks again even if nothing seems to have changed.
const REST: Duration = Duration::from_millis(200);

/// A launch that has waited for the site for longer is refused, even if this host itself changes something,
/// and keeps its number. A member of etcd that hangs delays a change by less, and `PATIENCE` is not over yet.
const LONGEST_CHANGE: Duration = Duration::from_secs(2);

/// Whether a launch comes behind every launch that waits, also behind those that the mirror does not show: it
/// has waited in no queue, and gets a later number with each check. Launches that always come after it could
/// keep it from its slots for ever. So once it has rested for long, it keeps its number.
fn is_newcomer(session: &Session) -> bool {
    let place = &session.place;
    place.line.is_new() && place.resting.is_none_or(|since| since.elapsed() < LONGEST_CHANGE)
}

/// A launch that waits for etcd.
#[derive(Debug)]
pub(super) struct Resting {
    since: Instant,
    /// When it was last checked.
    looked: Instant,
    /// The number of its request, and what that needs.
    question: u64,
    order: AcquireRequest,
}

/// Whether a launch waits for the site, for what its request with this number needs.
fn waits_for_proof(local: &Local, session: u64, question: u64) -> bool {
    local.session(session).is_some_and(|session| session.is_proving() && session.question == question)
}

impl Site {
    /// Lets a launch rest until something has changed. One that already waits for its turn checks again when
    /// slots can be granted again.
    pub(in crate::agent) fn rest_without(&mut self, local: &mut Local, number: u64, order: AcquireRequest) {
        let is_open = self.is_open();
        let Some(session) = local.session_mut(number) else { return };
        if !is_open && session.place.has_waited {
            return waits_on(local, number, order);
        }
        session.on(Event::Proves);
        let (now, question) = (Instant::now(), session.question);
        let since = session.place.resting.get_or_insert(now);
        self.resting.insert(number, Resting { since: *since, looked: now, question, order });
    }

    /// Whether a launch must rest instead of being refused: a change by this host itself may block it. Such
    /// changes may follow each other without end, and it must not seem to it that the site is not reached.
    pub(in crate::agent) fn may_change_soon(
        &self,
        local: &Local,
        number: u64,
        order: &AcquireRequest,
    ) -> bool {
        let rested = local.session(number).and_then(|session| session.place.resting);
        let moves = |table: String| self.pending.is_taking(&table) || self.own.is_giving_back(&table);
        rested.is_none_or(|since| since.elapsed() < LONGEST_CHANGE)
            && order.tables_of_site().map(table_of_site).any(moves)
    }

    /// Checks resting launches again: all of them, if something has changed.
    pub(super) fn wake(&mut self, local: &mut Local, has_changed: bool) {
        let is_due = |resting: &Resting| {
            has_changed || resting.looked.elapsed() > REST || resting.since.elapsed() > PATIENCE
        };
        let due: Vec<u64> =
            self.resting.iter().filter(|(_, resting)| is_due(resting)).map(|(number, _)| *number).collect();
        let is_open = self.is_open();
        let late = self.late_proofs(local).into_iter().chain(self.late_beginners(local));
        for (number, order) in late.collect::<Vec<_>>() {
            self.lose_patience(local, number, order);
        }
        for number in due {
            let Some(Resting { since, question, order, .. }) = self.resting.remove(&number) else { continue };
            if !waits_for_proof(local, number, question) {
                continue;
            }
            if since.elapsed() > PATIENCE {
                self.lose_patience(local, number, order);
            } else if is_open {
                local.on(number, Event::Resumes(order, true));
            } else {
                self.rest_without(local, number, order);
            }
        }
    }

    /// Launches that have waited too long for the proof of their slots: they get an answer, or wait on in the
    /// queue, which they can leave. This agent decides what happens to those slots at the site. Those of its
    /// own tables are free at once, also if the launch is gone or has made another request: nothing can be
    /// granted any more.
    fn late_proofs(&mut self, local: &mut Local) -> Vec<(u64, AcquireRequest)> {
        let mut late = Vec::new();
        for admission in self.pending.admissions_mut() {
            let is_there = waits_for_proof(local, admission.session, admission.question);
            if is_there && admission.since.elapsed() <= PATIENCE {
                continue;
            }
            let order = admission.order.take().filter(|_| is_there);
            late.extend(order.map(|order| (admission.session, order)));
            let free = admission.holding.withdraw(|held| name_on_site(held.table().name()).is_none());
            if !free.is_empty() {
                local.have_room(&free);
            }
        }
        late
    }

    /// Launches that begin to wait, and have waited too long for the proof of their tickets.
    fn late_beginners(&self, local: &mut Local) -> Vec<(u64, AcquireRequest)> {
        let mut late = Vec::new();
        for number in self.own.places.keys() {
            let Some(session) = local.session_mut(*number) else { continue };
            let place = &mut session.place;
            if place.begins.answer.is_some() && place.resting.is_some_and(|since| since.elapsed() > PATIENCE)
            {
                late.extend(session.stop_waiting().map(|request| (*number, request)));
            }
        }
        late
    }

    /// A launch has rested for too long: it gets that answer, starts without slots if the policy allows it,
    /// or continues to wait.
    fn lose_patience(&self, local: &mut Local, number: u64, order: AcquireRequest) {
        let Some(session) = local.session_mut(number) else { return };
        session.place.resting = None;
        if session.place.has_waited {
            return waits_on(local, number, order);
        }
        match order.without_site() {
            Some(order) => local.on(number, Event::Resumes(order, true)),
            None => local.fail(number, self.why()),
        }
    }
}

/// A launch continues to wait while the state of the site is unknown. It gets that answer, if it has a
/// request.
fn waits_on(local: &mut Local, number: u64, order: AcquireRequest) {
    let names: Vec<String> = order.tables_of_site().map(table_of_site).collect();
    let known =
        |name: &String| Some(Table::of(name, &local.ledger().store().known(name)?, 16, 16, order.uid));
    let tables = names.iter().filter_map(known).collect();
    let behind = |table| Obstacle { table, reason: Reason::Behind, unwaited: None, outside: None };
    let obstacles = names.into_iter().map(behind).collect();
    let refused = Refused { tables, obstacles, has_waited: true };
    local.on(number, Event::WaitsOn(order, WaitState { refused, ahead: 0 }));
}

impl Site {
    /// Why it grants nothing.
    pub(super) fn why(&self) -> String {
        if let Some((text, _)) = self.presence.twin() {
            return text.to_owned();
        }
        if let Some(text) = self.why_held_back() {
            return text;
        }
        let Some((trouble, since)) = self.presence.trouble() else {
            if self.presence.was_dead() {
                return "this host has just joined the site, or the others considered it dead: it grants slots \
                    when all of its programs have theirs. Try again"
                    .to_owned();
            }
            return format!(
                "the site is overloaded: no transaction succeeded for {} s. Try again",
                PATIENCE.as_secs()
            );
        };
        let endpoints: Vec<String> =
            self.endpoints.iter().map(|endpoint| endpoint.shown().to_string()).collect();
        let advice = trouble
            .advice()
            .map_or_else(String::new, |advice| format!("\n{}{}", advice[..1].to_uppercase(), &advice[1..]));
        format!(
            "the site has not been reached for {} s, trying {}: {trouble}{advice}",
            since.elapsed().as_secs().max(1),
            endpoints.join(", ")
        )
    }
}
