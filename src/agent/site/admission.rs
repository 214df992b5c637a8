//! Slots of the site for a launch: what was decided in memory is proved by a transaction, and counts only
//! then. Where something has changed meanwhile the launch is decided anew, as soon as the mirror shows what.

use std::{collections::BTreeSet, time::Instant};

use super::{
    Site,
    difference::Value,
    etcd::{Compare, Done, EtcdError, Operation, Transaction},
    key::Key,
    proof::{self, Taking},
    record::SlotRecord,
    work::{Admission, Work},
};
use crate::{
    agent::{
        ledger::{
            holding::{Holding, OfSite},
            state::SavedStamps,
        },
        request::AcquireRequest,
        service::Service,
        session::{Event, Session},
    },
    judge::terms::location::name_on_site,
    keeper::{
        line::Number,
        memory,
        occupancy::{Occupancy, Span},
    },
    sys::process,
};

impl Service {
    /// Makes ready for a look at tables of the site: the launch gets its number, and searches where no other
    /// host begins.
    pub(in crate::agent) fn prepare_for_site(&mut self, session: u64, order: &AcquireRequest) {
        let (Some(site), Some(session)) = (&mut self.site, self.sessions.get_mut(&session)) else { return };
        for name in order.tables_of_site() {
            // What the mirror says is shown as soon as it has changed, and not for each look.
            if site.stirred.contains(name) {
                site.show(name, self.ledger.store());
            }
            let table = self.ledger.store().table(&crate::judge::terms::location::table_of_site(name));
            let seed = process::since_boot().map_or(0, |now| u64::from(now.subsec_nanos()));
            table.search_from(seed % order.limit_of(table.name()).max(1) + 1);
        }
        session.place.begins.lines = order.ends_of_lines().map(str::to_owned).collect();
        session.place.begins.looked = (site.origin.generation, site.mirror.revision());
        if session.place.line.number().is_none() && order.tables_of_site().next().is_some() {
            let number = site.numbers.next(site.mirror.revision());
            session.place.line.begin_as(Number(number));
        }
    }

    /// Has it proved that a launch may have what it got in memory.
    pub(in crate::agent) fn prove(&mut self, session_number: u64, order: AcquireRequest, holding: Holding) {
        let Some(site) = &mut self.site else { return };
        let Some(registration) = site.registration else {
            return self.rest(session_number, order, holding);
        };
        let Some(session) = self.sessions.get_mut(&session_number) else { return };
        let number = session.place.line.number().map_or(u64::MAX, |number| number.0);
        let takings: Vec<Taking> = holding
            .held
            .iter()
            .filter(|held| !held.is_shared())
            .filter_map(|held| site.taking(&order, held))
            .collect();
        if takings.iter().map(|taking| taking.slots.len()).sum::<usize>() > 100 {
            drop(holding);
            let why = "the site gives at most 100 slots at once, of all repositories together";
            return self.fail(session_number, why.to_owned());
        }
        let launch = process::since_boot().map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(0));
        let mut compares = proof::compares(&site.keys, &takings, number, site.mirror.revision());
        compares.extend(proof::of_absent(
            &site.keys,
            &site.passed_over(&takings, number),
            site.mirror.revision(),
        ));
        compares.push(Compare::ChangedAt(site.key_of_host(), registration));
        compares.push(site.proof_of_name());
        let mut writes: Vec<(Key, Option<Value>)> = Vec::new();
        for taking in &takings {
            writes.extend(site.slots_of(taking, &holding, launch));
            if let (Some(_), Some(table)) = (taking.stamps, holding.table(&taking.table)) {
                let stamps = SavedStamps::of(table, holding.saved.uid);
                writes.push((Key::Stamps(taking.table.clone()), Some(Value::Stamps(stamps))));
            }
        }
        let tickets = site.own.places.get(&session_number).map(|place| place.keys.clone());
        writes.extend(tickets.into_iter().flatten().map(|ticket| (ticket, None)));
        let operations = writes.iter().map(|(key, value)| match (site.keys.name(key), value) {
            (name, Some(value)) => Operation::Put(name, value.bytes()),
            (name, None) => Operation::Delete(name),
        });
        let operations = operations.collect();
        session.on(Event::Proves);
        let since = *session.place.resting.get_or_insert_with(Instant::now);
        let (order, generation) = (Some(order), site.origin.generation);
        let session = session_number;
        let admission = Admission { session, order, since, holding, launch, generation, writes };
        site.send(Work::Take(Box::new(admission)), Transaction { compares, operations });
    }

    /// What came of the proof.
    pub(super) fn proved(&mut self, admission: Admission, result: Result<Done, EtcdError>) {
        let Some(site) = &mut self.site else { return };
        match result {
            Ok(done) if done.holds => self.admitted(admission, done.revision),
            Ok(_) => self.conflict(admission),
            Err(trouble) => {
                let is_definite = trouble.is_definite();
                site.note(trouble);
                if is_definite {
                    return self.conflict(admission);
                }
                // It may have been done, and may still be: nothing is told by a look until it can no longer
                // be.
                site.unclear.push(admission);
                site.register_anew();
            }
        }
    }

    /// Sees what became of proofs whose answers did not come, as soon as the mirror has everything that was
    /// done.
    pub(super) fn settle(&mut self) {
        let Some(site) = &mut self.site else { return };
        if !site.has_settled() {
            return;
        }
        for admission in std::mem::take(&mut site.unclear) {
            let Some(site) = &self.site else { return };
            let is_own = |key: &Key| match site.present(key)?.value? {
                Value::Slot(record) => {
                    let is_own = record.is_of(&site.agent, &admission.holding.saved);
                    (record.launch == admission.launch && is_own).then_some(site.mirror.revision())
                }
                _ => None,
            };
            let revision = admission.slots().find_map(is_own);
            match revision {
                Some(revision) => self.admitted(admission, revision),
                None => self.conflict(admission),
            }
        }
    }

    /// The slots are there. Whoever asked may have gone meanwhile.
    fn admitted(&mut self, admission: Admission, revision: i64) {
        let Some(site) = &mut self.site else { return };
        let is_of_now = site.is_of_now(&admission);
        let Admission { session, order, since: _, mut holding, launch, generation: _, writes } = admission;
        holding.of_site = Some(OfSite { launch });
        for (key, value) in &writes {
            if let (Key::Slot(..), Some(value)) = (key, value) {
                site.own.want(key.clone(), value.clone());
            }
        }
        site.own.has_written(revision, writes);
        site.trouble = None;
        site.resting.remove(&session);
        let is_open = site.is_open() && is_of_now;
        let is_there = self.sessions.get(&session).is_some_and(Session::is_proving);
        let Some(order) = order.filter(|_| is_there) else { return self.free_at_site(holding, false) };
        if !is_open {
            // A program is started only while nobody can take its host for gone.
            self.free_at_site(holding, false);
            return self.rest_without(session, order);
        }
        let tables = holding.held.iter().map(|held| held.table().clone()).collect::<Vec<_>>();
        self.grant(session, holding);
        self.write_tickets(session);
        self.serve(&tables);
    }

    /// Something that it rested on has changed.
    fn conflict(&mut self, admission: Admission) {
        let Admission { session, order, holding, .. } = admission;
        match order {
            Some(order) => self.rest(session, order, holding),
            None => {
                let tables = self.withdraw(holding);
                self.serve(&tables);
            }
        }
    }

    /// Lets a launch wait until something has changed, without what was not proved.
    fn rest(&mut self, session: u64, order: AcquireRequest, holding: Holding) {
        let tables = self.withdraw(holding);
        self.rest_without(session, order);
        self.serve(&tables);
    }

    /// Gives back in memory what was not proved; says of which tables.
    fn withdraw(&mut self, holding: Holding) -> Vec<memory::Table> {
        holding.withdraw_stamps();
        let tables = holding.held.iter().map(|held| held.table().clone()).collect::<Vec<memory::Table>>();
        drop(holding);
        if let Some(site) = &mut self.site {
            let names = tables.iter().filter_map(|table| name_on_site(table.name()));
            for name in names.map(str::to_owned).collect::<Vec<_>>() {
                site.show(&name, self.ledger.store());
            }
        }
        tables
    }
}

impl Site {
    /// What is taken of one table, if it is the site's.
    fn taking(&self, order: &AcquireRequest, held: &memory::Held) -> Option<Taking> {
        let local = held.table().name();
        let name = name_on_site(local)?;
        let slots = held.slots().to_vec();
        let spans = held.table().occupancy();
        let others = spans.spans().iter().flat_map(|span| span.slots.clone());
        let others = others.filter(|slot| !slots.contains(slot));
        let held = others.map(|slot| Span { slots: slot..=slot, pid: None }).collect();
        let stamps = order.is_paced(local).then(|| {
            let stamps = self.mirror.table(name).and_then(|table| table.stamps.as_ref());
            stamps.map_or(0, |at| at.revision)
        });
        let limit = order.terms_on(local);
        Some(Taking { table: name.to_owned(), slots, limit, held: Occupancy::of(held), stamps })
    }

    fn slots_of(&self, taking: &Taking, holding: &Holding, launch: u64) -> Vec<(Key, Option<Value>)> {
        let rule = holding.rule_on(&taking.table);
        let record = SlotRecord::of(&holding.saved, rule, &self.host, &self.agent, launch);
        let slot = |slot: &u64| (Key::Slot(taking.table.clone(), *slot), Some(Value::Slot(record.clone())));
        taking.slots.iter().map(slot).collect()
    }

    /// The keys that are being changed by a proof, or may have been.
    pub(super) fn keys_in_proof(&self) -> BTreeSet<Key> {
        let works = self.works.values().filter_map(|work| match work {
            Work::Take(admission) => Some(&**admission),
            _ => None,
        });
        works
            .chain(&self.unclear)
            .flat_map(|admission| &admission.writes)
            .map(|(key, _)| key.clone())
            .collect()
    }
}
