//! The positions of this host's launches in the queues of the site, as keys that all hosts see: tickets.
//! Tickets of launches that waited when the agent failed stay until the launches reconnect, and then belong
//! to them. In a bounded queue, a launch has a position only when a proof shows that there was room.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Compare, Done, Key, Operation, Site, TicketRecord, Transaction, Value, Work, etcd::EtcdError, proof,
};
use crate::{
    agent::{Begins, RecoveredWaiter, Session, ledger::state::in_millis, service::local::Local},
    judge::terms::name_on_site,
};

impl Site {
    /// Requests the tickets of a launch as it waits now.
    pub(in crate::agent) fn write_tickets(&mut self, local: &mut Local, launch: u64) {
        self.want_tickets(local, launch);
        self.join(local, launch);
        self.reconcile(local);
    }

    /// Notes which tickets a launch needs.
    pub(super) fn want_tickets(&mut self, local: &mut Local, launch: u64) {
        let wanted = self.wanted_tickets(local, launch);
        let begins = begins_in(local.session(launch), &wanted);
        let number = wanted.keys().find_map(|key| match key {
            Key::Ticket(_, number) => Some(*number),
            _ => None,
        });
        if number.is_none() && !self.own.places.contains_key(&launch) {
            return;
        }
        self.own.want_tickets(launch, number.unwrap_or_default(), wanted);
        if let Some(place) = self.own.places.get_mut(&launch) {
            place.is_in |= !begins;
        }
    }

    /// Requests the proof that bounded queues have room for a launch.
    pub(super) fn join(&mut self, local: &mut Local, launch: u64) {
        let (Some(place), Some(session)) = (self.own.places.get(&launch), local.session(launch)) else {
            return;
        };
        let Some(registration) = self.presence.registration() else { return };
        if place.is_in || self.pending.is_joining(launch) {
            return;
        }
        let tickets: BTreeMap<Key, Value> = self.wanted_tickets(local, launch);
        let mut transaction = Transaction {
            compares: vec![proof::of_host(&self.keys, &self.host, registration)],
            operations: Vec::new(),
        };
        let Begins { lines, looked: (generation, revision), .. } = &session.place.begins;
        let revision = if *generation == self.origin.generation() { *revision } else { 0 };
        for (key, ticket) in &tickets {
            let name = self.keys.name(key);
            // No other launch has this number.
            transaction.compares.push(Compare::Absent(name.clone()));
            transaction.operations.push(Operation::Put(name, ticket.bytes()));
            if let Key::Ticket(table, _) = key
                && lines.contains(table)
            {
                transaction.compares.push(Compare::UnchangedSince(self.keys.line(table), revision));
            }
        }
        if transaction.compares.len() > proof::MOST_IN_TRANSACTION {
            return local.fail(launch, proof::too_much(tickets.len()));
        }
        self.send(Work::Join { launch, under: registration, tickets }, transaction);
    }

    /// The result.
    pub(super) fn joined(
        &mut self,
        local: &mut Local,
        launch: u64,
        under: i64,
        tickets: BTreeMap<Key, Value>,
        result: Result<Done, EtcdError>,
    ) {
        let is_same =
            |place: &super::reconciler::Place| place.keys.iter().any(|key| tickets.contains_key(key));
        let is_wanted = self.own.places.get(&launch).is_some_and(is_same);
        let mut later = self.wanted_tickets(local, launch);
        later.retain(|key, _| !tickets.contains_key(key));
        let is_unproved = begins_in(local.session(launch), &later);
        match result {
            Ok(done) if done.holds => {
                self.own.has_written(
                    done.revision,
                    tickets.iter().map(|(key, ticket)| (key.clone(), Some(ticket.clone()))),
                );
                // Unneeded tickets are deleted.
                self.own.have_changed(tickets.into_keys());
                if let Some(place) = self.own.places.get_mut(&launch).filter(|_| is_wanted && !is_unproved) {
                    place.is_in = true;
                    tell_that_it_waits(local, launch);
                }
                self.reconcile(local);
            }
            Ok(_) => {
                // Most likely another launch has joined a bounded queue, so it checks again, and uses another
                // number. Or the host's key has changed.
                self.presence.look();
                if is_wanted && self.presence.registration() == Some(under) {
                    self.come_anew(local, launch);
                }
            }
            Err(trouble) => {
                let is_unclear = !trouble.is_definite();
                self.presence.note(trouble);
                if is_unclear {
                    self.own.have_changed(tickets.into_keys());
                    self.presence.register_anew();
                    if is_wanted {
                        self.come_anew(local, launch);
                    }
                }
                return;
            }
        }
        // It may want other queues by now.
        self.join(local, launch);
    }

    /// Whether a launch that waits in memory also waits for all hosts to see.
    pub(in crate::agent) fn has_begun_to_wait(&self, local: &Local, launch: u64) -> bool {
        let Some(session) = local.session(launch) else { return true };
        let wanted = self.wanted_tickets(local, launch);
        !begins_in(Some(session), &wanted) || wanted.keys().any(|key| self.own.is_in(launch, key))
    }

    /// Makes a waiting launch get another number; one that has not reconnected does so later.
    pub(super) fn come_anew(&mut self, local: &mut Local, launch: u64) {
        if local.forget_recovered(launch) {
            self.write_tickets(local, launch);
        }
        let Some(session) = local.session_mut(launch) else { return };
        session.place.line.leave();
        if let Some(request) = session.stop_waiting() {
            self.rest_without(local, launch, request);
        }
        local.write_place(launch);
        self.want_tickets(local, launch);
    }

    /// The tickets of a launch that waits, or waited when the agent failed.
    fn wanted_tickets(&self, local: &Local, launch: u64) -> BTreeMap<Key, Value> {
        let (line, pid, uid, command, is_away) = if let Some(session) = local.session(launch) {
            let is_away = session.is_away(|| local.is_unheard(launch));
            (&session.place.line, session.peer.pid, session.peer.uid, session.command(), is_away)
        } else if let Some(waiter) = local.ledger().recovered().get(&launch) {
            let RecoveredWaiter { saved, line, is_away, .. } = waiter;
            (line, saved.pid, saved.uid, saved.command.clone(), *is_away)
        } else {
            return BTreeMap::new();
        };
        let Some(number) = line.number() else { return BTreeMap::new() };
        let since = line.since().map(in_millis);
        let tickets = line.standing_in().filter_map(|place| {
            let key = Key::Ticket(name_on_site(place.table().name())?.to_owned(), number.0);
            let classes = place.classes().iter().map(|class| (class.generation, class.capacity)).collect();
            let (host, agent, command) = (self.host.clone(), self.agent.clone(), command.clone());
            let wants = place.wanted();
            Some((
                key,
                Value::Ticket(TicketRecord {
                    host,
                    agent,
                    pid,
                    uid,
                    command,
                    classes,
                    is_away,
                    wants,
                    since,
                }),
            ))
        });
        tickets.collect()
    }

    /// Restores the tickets of launches that waited, and what others do not know yet of the use of tables.
    pub(in crate::agent) fn restore(&mut self, local: &mut Local) {
        for saved in local.take_ended_unseen() {
            self.note_end(local, &saved);
        }
        // If the slots were acquired nevertheless, they are deleted, and the recorded start is withdrawn.
        for saved in local.take_unproved() {
            self.own.was_not_used(&saved);
        }
        for launch in local.ledger().recovered().keys().copied().collect::<Vec<_>>() {
            self.want_tickets(local, launch);
        }
        self.own.places.values_mut().for_each(|place| place.is_unseen = true);
        if let Some(last) = self.own.places.values().map(|place| place.number).max() {
            self.numbers.continue_after(last);
        }
    }

    /// A launch has reconnected: from now on its tickets belong to this connection.
    pub(in crate::agent) fn hand_over_tickets(&mut self, place: u64, session: u64) {
        if let Some(tickets) = self.own.places.remove(&place) {
            self.own.places.insert(session, tickets);
        }
    }

    /// Everything was read for the first time, or from another etcd: numbers begin at this revision, and
    /// after those that waiting launches keep. These may be of later revisions.
    pub(super) fn begin_numbers(&mut self) {
        self.numbers.belong_to(self.mirror.revision());
        let places = self.own.places.values();
        let kept = places.filter(|place| !place.is_unseen || self.has_any(&place.keys));
        if let Some(last) = kept.map(|place| place.number).max() {
            self.numbers.continue_after(last);
        }
    }

    /// Whether one of these tickets of this host is there.
    fn has_any(&self, tickets: &BTreeSet<Key>) -> bool {
        tickets.iter().any(|key| self.present(key).is_some_and(|there| there.is_own))
    }

    /// Finds the tickets that the failed agent has left. If the launch never got the answer to an admission,
    /// the tickets that the admission deleted are put back under its number. This is not done if the number
    /// belongs to another etcd, where it has another meaning.
    pub(super) fn see_restored_tickets(&mut self, local: &mut Local) {
        if !self.has_settled() {
            return;
        }
        let revision = self.mirror.revision();
        let unseen = self.own.places.iter().filter(|(_, place)| place.is_unseen);
        for launch in unseen.map(|(launch, _)| *launch).collect::<Vec<_>>() {
            let Some(place) = self.own.places.get_mut(&launch) else { continue };
            place.is_unseen = false;
            let (number, keys) = (place.number, place.keys.clone());
            if !self.has_any(&keys) && !can_be_of(number, revision) {
                self.come_anew(local, launch);
            }
        }
    }
}

/// The positions of a launch are in etcd, and it may be told so.
fn tell_that_it_waits(local: &mut Local, launch: u64) {
    if let Some(session) = local.session_mut(launch)
        && session.is_queued()
    {
        session.begins_to_wait();
    }
}

/// Whether one of these is in a bounded queue, so that room must be proved.
fn begins_in(session: Option<&Session>, wanted: &BTreeMap<Key, Value>) -> bool {
    let ends = |table: &String| session.is_some_and(|session| session.place.begins.lines.contains(table));
    wanted.keys().any(|key| matches!(key, Key::Ticket(table, _) if ends(table)))
}

// Numbers of the queue, the same on every host: the revision at the check that found the queue, then what
// distinguishes launches of one revision.

/// Bits for the host and for the agent's own sequence.
const HOST_BITS: u32 = 12;
const SEQUENCE_BITS: u32 = 12;

/// Gives numbers. No two launches of a host have the same number. The transaction of a ticket proves that no
/// other host has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    host: u64,
    /// The last one, without the host.
    last: u64,
}

impl Numbers {
    /// The numbers of a host.
    pub(super) fn of(host: &str) -> Self {
        // FNV-1a: any hash does.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = host.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
        Self { host: (hash ^ (hash >> 32)) & ((1 << HOST_BITS) - 1), last: 0 }
    }

    /// The next number: lower than all at a later revision. If more launches come at one revision than it
    /// has numbers, those of the next one follow.
    pub(super) fn next(&mut self, revision: i64) -> u64 {
        self.last = self.last.saturating_add(1);
        self.reach(revision);
        // The sequence precedes the host: numbers of one host at one revision keep their order.
        self.last.wrapping_shl(HOST_BITS) | self.host
    }

    /// Etcd is at this revision, also if the mirror is not yet. New numbers are of no earlier one.
    pub(super) fn reach(&mut self, revision: i64) {
        let revision = u64::try_from(revision).unwrap_or(0).wrapping_shl(SEQUENCE_BITS);
        // The sequence continues at a later revision: no host always precedes another one at the same.
        self.last = self.last.max(revision | (self.last & ((1 << SEQUENCE_BITS) - 1)));
    }

    /// New numbers are higher than this one, which is from before the agent failed.
    pub(super) fn continue_after(&mut self, number: u64) {
        self.last = self.last.max(number >> HOST_BITS);
    }

    /// New numbers begin at this revision, if the last one cannot be of an etcd at it.
    pub(super) fn belong_to(&mut self, revision: i64) {
        if !u64::try_from(revision).is_ok_and(|revision| self.last >> SEQUENCE_BITS <= revision) {
            self.last = 0;
        }
    }
}

/// Whether a number is possible in an etcd at this revision.
pub(super) fn can_be_of(number: u64, revision: i64) -> bool {
    let given = number >> (HOST_BITS + SEQUENCE_BITS);
    given > 0 && u64::try_from(revision).is_ok_and(|revision| given <= revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_revision_comes_first_and_then_the_order_of_the_host() {
        let (mut one, mut other) = (Numbers::of("lab1"), Numbers::of("lab2"));
        let early = other.next(7);
        let (first, second) = (one.next(8), one.next(8));
        assert!(early < first && first < second);
        assert_ne!(Numbers::of("lab1").next(8), Numbers::of("lab2").next(8));
        // Only the last bits of these two are different.
        assert_eq!(Numbers::of("lab4").next(8) ^ Numbers::of("lab165").next(8), 1);
    }

    /// Launches of one host have numbers in the order in which they come, whatever its name is. All of a
    /// revision come before those of a later one.
    #[test]
    fn all_numbers_of_a_revision_ascend_and_belong_to_it() {
        for host in 1..=32 {
            let mut numbers = Numbers::of(&format!("lab{host}"));
            let of_revision: Vec<u64> = (1..1 << SEQUENCE_BITS).map(|_| numbers.next(8)).collect();
            assert!(of_revision.is_sorted_by(|one, next| one < next), "lab{host}");
            assert!(of_revision.iter().all(|number| can_be_of(*number, 8) && !can_be_of(*number, 7)));
            let later: Vec<u64> = (0..1 << SEQUENCE_BITS).map(|_| numbers.next(10)).collect();
            assert!(later.iter().all(|number| can_be_of(*number, 10) && !can_be_of(*number, 9)));
        }
    }

    /// Many launches that need no key change no revision. They keep their order all the same, and each has a
    /// number of its own. Those of another etcd begin at its revision.
    #[test]
    fn more_launches_than_numbers_of_a_revision_keep_their_order() {
        let mut numbers = Numbers::of("lab1");
        let many: Vec<u64> = (0..3 << SEQUENCE_BITS).map(|_| numbers.next(8)).collect();
        assert!(many.is_sorted_by(|one, next| one < next));
        assert!(numbers.next(9) > many[many.len() - 1], "a later revision changes nothing");
        numbers.belong_to(5);
        let first = numbers.next(5);
        assert!(can_be_of(first, 5) && !can_be_of(first, 4));
        numbers.belong_to(5);
        assert!(numbers.next(5) > first, "it is the same etcd");
    }

    #[test]
    fn an_agent_goes_on_where_the_one_before_it_died() {
        let mut before = Numbers::of("lab1");
        let numbers = [before.next(8), before.next(8), before.next(8)];
        let mut after = Numbers::of("lab1");
        after.continue_after(numbers[2]);
        assert_eq!(after.next(8), before.next(8));
        assert!(can_be_of(numbers[2], 8) && can_be_of(numbers[2], 9));
        assert!(!can_be_of(numbers[2], 7), "the etcd is another one");
        assert!(!can_be_of(3, 7), "no site gives such a number");
    }
}
