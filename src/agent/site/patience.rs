//! Launches that wait for etcd and not for slots: until something has changed, for a bounded time.

use std::time::{Duration, Instant};

use super::{PATIENCE, Site};
use crate::{
    agent::{request::AcquireRequest, service::local::Local, session::Event},
    judge::terms::location::table_of_site,
    keeper::agent::message::{Obstacle, Reason, Refused, Table, Waits},
    text::escape::Show,
};

/// After this long it checks again even if nothing seems to have changed.
const REST: Duration = Duration::from_millis(200);

/// A launch that waits for etcd.
#[derive(Debug)]
pub(super) struct Resting {
    since: Instant,
    /// When it was last checked.
    looked: Instant,
    order: AcquireRequest,
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
        let now = Instant::now();
        let since = session.place.resting.get_or_insert(now);
        self.resting.insert(number, Resting { since: *since, looked: now, order });
    }

    /// Whether a launch must rest instead of being refused: a change by this host itself may block it.
    pub(in crate::agent) fn may_change_soon(&self, order: &AcquireRequest) -> bool {
        let moves = |table: String| self.pending.is_taking(&table) || self.own.is_giving_back(&table);
        order.tables_of_site().map(table_of_site).any(moves)
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
            let Some(Resting { since, order, .. }) = self.resting.remove(&number) else { continue };
            if since.elapsed() > PATIENCE {
                self.lose_patience(local, number, order);
            } else if is_open {
                local.on(number, Event::Resumes(order, true));
            } else {
                self.rest_without(local, number, order);
            }
        }
    }

    /// Launches that do not wait, and have waited too long for the proof of their slots. This agent decides
    /// what happens to those slots.
    fn late_proofs(&mut self, local: &Local) -> Vec<(u64, AcquireRequest)> {
        let late = self.pending.admissions_mut().filter(|admission| {
            let waits = local.session(admission.session).is_none_or(|session| session.place.has_waited);
            admission.since.elapsed() > PATIENCE && !waits
        });
        late.filter_map(|admission| Some((admission.session, admission.order.take()?))).collect()
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

    /// A launch has rested for too long: it is told so, started without slots if the policy allows it, or
    /// continues to wait.
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

/// A launch continues to wait while the state of the site is unknown. It is told so, if it has a request.
fn waits_on(local: &mut Local, number: u64, order: AcquireRequest) {
    let names: Vec<String> = order.tables_of_site().map(table_of_site).collect();
    let known =
        |name: &String| Some(Table::of(name, &local.ledger().store().known(name)?, 16, 16, order.uid));
    let tables = names.iter().filter_map(known).collect();
    let behind = |table| Obstacle { table, reason: Reason::Behind, unwaited: None };
    let obstacles = names.into_iter().map(behind).collect();
    let refused = Refused { tables, obstacles, has_waited: true };
    local.on(number, Event::WaitsOn(order, Waits { refused, ahead: 0 }));
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
