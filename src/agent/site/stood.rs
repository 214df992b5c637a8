//! Tickets of those who stood in line when the agent died, or when its host was taken for gone. They stay as
//! they are until the launches call again, and are theirs then. Where one is not there any more, because it
//! went with an admission of which the dead agent never heard, or because others have deleted it, it is put
//! back under its number, and before what else the dead agent left is deleted: else somebody who came later
//! would be given that slot.

use super::{Site, number, ticket_keys::Tickets};
use crate::{agent::service::Service, terms::location::name_on_site};

impl Service {
    /// Takes up the tickets of those who stood in line, and when the host was confirmed last.
    pub(in crate::agent) fn restore_tickets(&mut self) {
        self.restore_confirmation();
        let is_at_site = |place: &u64| {
            let lines = self.ledger.recovered().get(place).map(|returning| &returning.saved.lines);
            lines.is_some_and(|lines| lines.iter().any(|line| name_on_site(&line.table).is_some()))
        };
        let places: Vec<u64> = self.ledger.recovered().keys().copied().filter(is_at_site).collect();
        let mut last = None;
        for place in places {
            let number = self.ledger.recovered().get(&place).and_then(|returning| returning.line.number());
            let written = self.wanted_tickets(place);
            let (Some(site), Some(number)) = (&mut self.site, number) else { continue };
            last = last.max(Some(number.0));
            let (is_unseen, is_restored) = (true, true);
            let tickets = Tickets { number: number.0, written, is_unseen, is_restored, ..Tickets::default() };
            site.tickets.insert(place, tickets);
        }
        if let (Some(site), Some(last)) = (&mut self.site, last) {
            site.numbers.go_on_after(last);
        }
    }

    /// Whether a conversation has tickets of its own.
    pub(in crate::agent) fn has_tickets(&self, session: u64) -> bool {
        self.site.as_ref().is_some_and(|site| site.tickets.contains_key(&session))
    }

    /// Whoever stood there has called again: from now on its tickets are those of this conversation.
    pub(in crate::agent) fn hand_over_tickets(&mut self, place: u64, session: u64) {
        let Some(site) = &mut self.site else { return };
        if let Some(tickets) = site.tickets.remove(&place) {
            site.tickets.insert(session, tickets);
        }
        site.works.values_mut().for_each(|work| work.hand_over(place, session));
    }

    /// Sees which of them are left, as soon as nothing can change that which the dead agent has sent: it was
    /// done before the host's key was written anew, or never will be.
    pub(super) fn see_restored_tickets(&mut self) {
        let Some(site) = &mut self.site else { return };
        let revision = site.mirror.revision();
        if !site.mirror.is_known() || site.registration.is_none_or(|registration| registration > revision) {
            return;
        }
        let unseen = site.tickets.iter().filter(|(_, tickets)| tickets.is_unseen);
        for place in unseen.map(|(place, _)| *place).collect::<Vec<_>>() {
            let Some(site) = &mut self.site else { return };
            site.see_tickets(place);
            let Some(tickets) = site.tickets.get_mut(&place) else { continue };
            tickets.is_unseen = false;
            // Such a number would be worth something else in another etcd than it was given in.
            if tickets.written.is_empty() && !number::can_be_of(tickets.number, revision) {
                self.come_anew(place);
            }
            self.write_tickets(place);
        }
    }
}

impl Site {
    /// The host's key was away, or may have been: then others may have taken the host for gone, and deleted
    /// the tickets of those who wait on it.
    pub(super) fn doubt_tickets(&mut self) {
        for tickets in self.tickets.values_mut().filter(|tickets| !tickets.written.is_empty()) {
            tickets.is_unseen = true;
            tickets.is_restored = true;
        }
    }
}
