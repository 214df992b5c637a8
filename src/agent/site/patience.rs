//! Launches that wait for etcd rather than for slots: until something has changed, and not for long.

use std::time::{Duration, Instant};

use super::{PATIENCE, Site, resting::Resting, work::Work};
use crate::{
    agent::{request::AcquireRequest, service::Service, session::Event},
    judge::terms::location::table_of_site,
    keeper::agent::message::{Obstacle, Reason, Refused, Table, Waits},
    text::escape::Show,
};

/// After so long it is looked whether it is its turn although nothing seems to have changed.
const REST: Duration = Duration::from_millis(200);

impl Service {
    /// Lets a launch rest until something has changed. One that waits already waits for its turn, as long as
    /// nothing can be given at all: it looks again when that is over.
    pub(in crate::agent) fn rest_without(&mut self, number: u64, order: AcquireRequest) {
        let is_open = self.is_site_open();
        let Some(site) = &mut self.site else { return };
        let Some(session) = self.sessions.get_mut(&number) else { return };
        if !is_open && session.place.has_waited {
            return self.waits_on(number, order);
        }
        session.on(Event::Proves);
        let now = Instant::now();
        let since = session.place.resting.get_or_insert(now);
        site.resting.insert(number, Resting { since: *since, looked: now, order });
    }

    /// Whether a launch has to rest rather than to be refused: something that this host itself does may be
    /// what is in its way.
    pub(in crate::agent) fn may_change_soon(&self, order: &AcquireRequest) -> bool {
        let Some(site) = &self.site else { return false };
        let moves = |table: &str| {
            let is_taking = |work: &Work| matches!(work, Work::Take(admission) if admission.moves(table));
            site.works.values().any(is_taking)
                || site.unclear.iter().any(|admission| admission.moves(table))
                || site.own.is_giving_back(table)
        };
        order.tables_of_site().map(table_of_site).any(|table| moves(&table))
    }

    /// Whether etcd can be asked at all for what a launch needs.
    pub(in crate::agent) fn is_site_open(&self) -> bool {
        self.site.as_ref().is_none_or(Site::is_open)
    }

    /// Looks again at those who rest: at all, where something has changed.
    pub(super) fn wake(&mut self, has_changed: bool) {
        let Some(site) = &mut self.site else { return };
        let is_due = |resting: &Resting| {
            has_changed || resting.looked.elapsed() > REST || resting.since.elapsed() > PATIENCE
        };
        let due: Vec<u64> =
            site.resting.iter().filter(|(_, resting)| is_due(resting)).map(|(number, _)| *number).collect();
        let is_open = site.is_open();
        let late = self.late_proofs().into_iter().chain(self.late_beginners());
        for (number, order) in late.collect::<Vec<_>>() {
            self.lose_patience(number, order);
        }
        for number in due {
            let Some(Resting { since, order, .. }) =
                self.site.as_mut().and_then(|site| site.resting.remove(&number))
            else {
                continue;
            };
            if since.elapsed() > PATIENCE {
                self.lose_patience(number, order);
            } else if is_open {
                self.on(number, Event::Resumes(order, true));
            } else {
                self.rest_without(number, order);
            }
        }
    }

    /// Launches that do not wait, and for too long have not heard whether their slots were taken. What
    /// becomes of those slots is for this agent to find out.
    fn late_proofs(&mut self) -> Vec<(u64, AcquireRequest)> {
        let Some(site) = &mut self.site else { return Vec::new() };
        let taking = site.works.values_mut().filter_map(Work::admission);
        let late = taking.chain(&mut site.unclear).filter(|admission| {
            let waits = self.sessions.get(&admission.session).is_none_or(|session| session.place.has_waited);
            admission.since.elapsed() > PATIENCE && !waits
        });
        late.filter_map(|admission| Some((admission.session, admission.order.take()?))).collect()
    }

    /// Launches that begin to wait, and for too long have not heard whether they do.
    fn late_beginners(&mut self) -> Vec<(u64, AcquireRequest)> {
        let Some(site) = &self.site else { return Vec::new() };
        let mut late = Vec::new();
        for number in site.own.places.keys() {
            let Some(session) = self.sessions.get_mut(number) else { continue };
            let place = &mut session.place;
            if place.begins.answer.is_some() && place.resting.is_some_and(|since| since.elapsed() > PATIENCE)
            {
                late.extend(session.stop_waiting().map(|request| (*number, request)));
            }
        }
        late
    }

    /// A launch has rested for too long: it is told so, started without slots where the policy lets it, or
    /// waits on.
    fn lose_patience(&mut self, number: u64, order: AcquireRequest) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.place.resting = None;
        if session.place.has_waited {
            return self.waits_on(number, order);
        }
        match order.without_site() {
            Some(order) => self.on(number, Event::Resumes(order, true)),
            None => {
                let why = self.site.as_ref().map_or_else(String::new, Site::why);
                self.fail(number, why);
            }
        }
    }

    /// A launch waits on while nobody knows how the site stands. It is told so, if it has asked.
    fn waits_on(&mut self, number: u64, order: AcquireRequest) {
        let waits = self.waits_for(&order);
        self.on(number, Event::WaitsOn(order, waits));
    }

    /// For what it waits then.
    fn waits_for(&self, order: &AcquireRequest) -> Waits {
        let tables: Vec<String> = order.tables_of_site().map(table_of_site).collect();
        let known = |name: &String| Some(Table::of(name, &self.ledger.store().known(name)?, 16, 16));
        let refused = Refused {
            tables: tables.iter().filter_map(known).collect(),
            obstacles: tables.into_iter().map(behind).collect(),
            has_waited: true,
        };
        Waits { refused, ahead: 0 }
    }
}

fn behind(table: String) -> Obstacle {
    Obstacle { table, reason: Reason::Behind, unwaited: None }
}

impl Site {
    /// Why it gives nothing.
    pub(super) fn why(&self) -> String {
        if let Some((text, _)) = self.twin() {
            return text.clone();
        }
        if let Some(text) = self.why_held_back() {
            return text;
        }
        let Some((trouble, since)) = &self.trouble else {
            return format!(
                "too much happens at the site at once: nothing could be proved for {} s. Try again",
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
