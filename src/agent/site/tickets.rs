//! The places of this host's launches in the lines of the site, as keys that all hosts see.

use std::collections::BTreeMap;

use super::{
    etcd::{Compare, Done, Operation, Transaction, Trouble},
    key::Key,
    record::{TicketRecord, bytes},
    registrar::Command,
    work::Work,
};
use crate::{
    agent::{
        ledger::recovery::RecoveredWaiter,
        service::Service,
        session::{Begins, Session},
    },
    deliberate_fault::DeliberateFault,
    protocol::place_in_line::PlaceInLine,
    terms::location::name_on_site,
};

impl Service {
    /// Has the tickets of a launch written as it stands in line now.
    pub(in crate::agent) fn write_tickets(&mut self, number: u64) {
        let mut wanted = self.wanted_tickets(number);
        let Some(site) = &mut self.site else { return };
        let session = self.sessions.get(&number);
        let line_number = session.and_then(|session| session.place.line.number()).map(|number| number.0);
        let tickets = site.tickets.entry(number).or_default();
        if tickets.is_moving || tickets.is_unseen {
            return;
        }
        if line_number.is_some_and(|number| number != tickets.number) {
            // It has come to the line once more: the tickets that it had before go first.
            tickets.is_restored = false;
            if !tickets.written.is_empty() {
                wanted.clear();
            }
        }
        if tickets.written == wanted {
            tickets.is_restored = false;
            if wanted.is_empty() {
                site.tickets.remove(&number);
            }
            return;
        }
        let Some(registration) = site.registration else { return };
        if tickets.written.is_empty() {
            tickets.number = line_number.unwrap_or(tickets.number);
        }
        let of = tickets.number;
        let mut transaction = Transaction {
            compares: vec![Compare::ChangedAt(site.keys.name(&Key::Host(site.host.clone())), registration)],
            operations: Vec::new(),
        };
        let key = |table: &String| site.keys.name(&Key::Ticket(table.clone(), of));
        let proves = tickets.begin() && !DeliberateFault::NoLineProof.is_on();
        if let Some(session) = session.filter(|_| proves) {
            let Begins { lines, looked: (generation, revision), .. } = &session.place.begins;
            let revision = if *generation == site.origin.generation { *revision } else { 0 };
            let joined = lines.iter().filter(|table| wanted.contains_key(*table));
            let ends = joined.map(|table| Compare::UnchangedSince(site.keys.line(table), revision));
            transaction.compares.extend(ends);
        }
        for (table, record) in &wanted {
            match tickets.written.get(table) {
                Some(written) if written == record => continue,
                Some(_) => {}
                // Nobody else has this number.
                None => transaction.compares.push(Compare::Absent(key(table))),
            }
            transaction.operations.push(Operation::Put(key(table), bytes(record)));
        }
        let gone = tickets.written.keys().filter(|table| !wanted.contains_key(*table));
        transaction.operations.extend(gone.map(|table| Operation::Delete(key(table))));
        tickets.under = registration;
        tickets.is_moving = true;
        tickets.moving = wanted.keys().cloned().collect();
        site.send(Work::Line(number, wanted), transaction);
    }

    /// What came of it.
    pub(super) fn wrote_tickets(
        &mut self,
        number: u64,
        wanted: BTreeMap<String, TicketRecord>,
        result: Result<Done, Trouble>,
    ) {
        let Some(site) = &mut self.site else { return };
        let Some(tickets) = site.tickets.get_mut(&number) else { return };
        tickets.is_moving = false;
        match result {
            Ok(done) if done.holds => {
                tickets.written = wanted;
                tickets.moving.clear();
                tickets.was_refused = false;
                if self.has_begun_to_wait(number) {
                    self.tell_that_it_waits(number);
                }
                self.write_tickets(number);
            }
            Ok(_) => {
                tickets.moving.clear();
                // Where the host's key is another one by now they are written again, under the same number.
                if site.registration != Some(tickets.under) {
                    return;
                }
                let is_new = tickets.written.is_empty();
                if tickets.begin() && begins_in(self.sessions.get(&number), &wanted) {
                    // Most likely somebody has come into a line that ends, so it looks again, and comes with
                    // another number; less likely the key is another one.
                    let _ = site.commands.send(Command::Look);
                    self.come_anew(number);
                } else if !std::mem::replace(&mut tickets.was_refused, true) {
                    site.register_anew();
                } else if is_new {
                    // Under a key that was just written: somebody has the number.
                    tickets.was_refused = false;
                    self.come_anew(number);
                }
            }
            Err(trouble) => {
                let is_unclear = !trouble.is_settled();
                let begins = tickets.begin() && begins_in(self.sessions.get(&number), &wanted);
                if is_unclear {
                    // It may be there: what is there is seen in the mirror, and either is in order.
                    if tickets.is_restored {
                        tickets.is_unseen = true;
                    } else if trouble.is_of_another() {
                        site.see_tickets(number);
                    } else if begins {
                        tickets.moving.clear();
                    } else {
                        tickets.written = wanted;
                    }
                    site.register_anew();
                }
                site.note(trouble);
                if is_unclear && begins {
                    self.come_anew(number);
                }
            }
        }
    }

    /// Whether a launch that stands in line in memory does so for all hosts, too.
    pub(in crate::agent) fn has_begun_to_wait(&self, number: u64) -> bool {
        let (Some(site), Some(session)) = (&self.site, self.sessions.get(&number)) else { return true };
        let has_ticket = site.tickets.get(&number).is_some_and(|tickets| !tickets.written.is_empty());
        has_ticket || !begins_in(Some(session), &self.wanted_tickets(number))
    }

    /// Its places are there for all to see, and it may be told so.
    fn tell_that_it_waits(&mut self, number: u64) {
        if let Some(session) = self.sessions.get_mut(&number)
            && session.is_queued()
        {
            session.begins_to_wait();
        }
    }

    /// Has a launch that waits look for another number; one that has not called again yet will.
    pub(super) fn come_anew(&mut self, number: u64) {
        self.is_gone(number);
        if let Some(session) = self.sessions.get_mut(&number) {
            session.place.line.give_up();
            if let Some(request) = session.stop_waiting() {
                self.rest_without(number, request);
            }
            self.write_place(number);
        }
    }

    /// The tickets of a launch that stands in line, or stood there when the agent died.
    pub(super) fn wanted_tickets(&self, number: u64) -> BTreeMap<String, TicketRecord> {
        let Some(site) = &self.site else { return BTreeMap::new() };
        let (host, agent, classes) = (site.host.clone(), site.agent.clone(), Vec::new());
        if let Some(session) = self.sessions.get(&number) {
            let (pid, uid) = (session.peer.pid, session.peer.uid);
            let (command, is_away) =
                (session.command(), session.is_away(|| self.connections.is_unheard(number)));
            let ticket = TicketRecord { host, agent, pid, uid, command, classes, is_away };
            return standing(&session.place.line, &ticket);
        }
        let Some(RecoveredWaiter { saved, line, is_away, .. }) = self.ledger.recovered().get(&number) else {
            return BTreeMap::new();
        };
        let (pid, uid, command, is_away) = (saved.pid, saved.uid, saved.command.clone(), *is_away);
        standing(line, &TicketRecord { host, agent, pid, uid, command, classes, is_away })
    }

    /// Writes what could not be written before.
    pub(super) fn write_all_tickets(&mut self) {
        let Some(site) = &self.site else { return };
        for number in site.tickets.keys().copied().collect::<Vec<_>>() {
            self.write_tickets(number);
        }
    }
}

/// Whether one of these is in a line that ends, so that it has to be proved that there was room in it.
fn begins_in(session: Option<&Session>, wanted: &BTreeMap<String, TicketRecord>) -> bool {
    session.is_some_and(|session| session.place.begins.lines.iter().any(|table| wanted.contains_key(table)))
}

/// Where a launch stands, as others see it.
fn standing(line: &PlaceInLine, ticket: &TicketRecord) -> BTreeMap<String, TicketRecord> {
    let standing = line.standing_in().into_iter().filter_map(|(table, classes)| {
        let name = name_on_site(&table)?.to_owned();
        let classes = classes.into_iter().map(|class| (class.generation, class.reach)).collect();
        Some((name, TicketRecord { classes, ..ticket.clone() }))
    });
    standing.collect()
}
