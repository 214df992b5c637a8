//! The agent's report on the site.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use super::{Level, Site, etcd::ClusterStatus, key::Key, log};
use crate::{
    judge::terms::location::{name_on_site, table_of_site},
    keeper::agent::about::{AboutHost, AboutSite, AboutStore, AboutTrouble, UnreadableSlot},
    sys::process,
    text::escape::Show,
};

/// How many slots without a readable value are reported one by one.
const MOST_UNREADABLE: usize = 64;

impl Site {
    /// How it stands.
    pub(in crate::agent) fn about(&self) -> AboutSite {
        let now = process::since_boot().unwrap_or_default();
        let seen = self.presence.confirmed().map(|confirmed| now.saturating_sub(confirmed));
        AboutSite {
            host: self.host.clone(),
            endpoints: self.endpoints.clone(),
            prefix: self.keys.prefix().to_owned(),
            ttl: self.ttl,
            is_open: self.is_open(),
            seen,
            left: self.presence.deadline().map(|deadline| deadline.saturating_sub(now)),
            lag: self.mirror.lag(self.ttl),
            leases_lost: self.presence.leases_lost(),
            trouble: self.about_trouble(),
            store: self.condition.map(|ClusterStatus { size, quota, is_full, uncompacted }| AboutStore {
                size,
                quota,
                is_full,
                uncompacted,
            }),
            hosts: self.about_hosts(now),
            unreadable: self.unreadable_slots().collect(),
            requests: Some(self.client.latency()),
        }
    }

    fn about_trouble(&self) -> Option<AboutTrouble> {
        if let Some((text, since)) = self.presence.twin() {
            let advice = "give each host its own name, and restart its agent".to_owned();
            return Some(AboutTrouble {
                text: text.to_owned(),
                advice: Some(advice),
                lasts: since.elapsed(),
            });
        }
        if let (Some(text), Some((lasts, _))) = (self.why_held_back(), self.is_held_back()) {
            return Some(AboutTrouble { text, advice: None, lasts });
        }
        let Some((trouble, since)) = self.presence.trouble() else { return self.about_unreadable_slots() };
        let advice = trouble.advice().map(str::to_owned);
        Some(AboutTrouble { text: trouble.to_string(), advice, lasts: since.elapsed() })
    }

    /// A slot without a readable value stays in use for ever: no host recognizes it as its own.
    fn about_unreadable_slots(&self) -> Option<AboutTrouble> {
        let (since, slots) = &self.unreadable;
        let first = self.unreadable_slots().next()?;
        let text = match slots.len() {
            1 => first.text(),
            count => format!(
                "{count} slots have no readable holder: the values of {} and others were not written by an agent",
                first.key.shown()
            ),
        };
        let advice = first.advice();
        Some(AboutTrouble { text, advice: Some(advice), lasts: since.elapsed() })
    }

    /// Finds these slots.
    pub(super) fn look_for_unreadable_slots(&mut self) {
        let slots = self.mirror.tables().flat_map(|(table, of)| of.slots.iter().map(move |at| (table, at)));
        let unreadable = slots.filter(|(_, (_, at))| at.record.is_none());
        let slots: BTreeSet<(String, u64)> =
            unreadable.map(|(table, (slot, _))| (table.clone(), *slot)).collect();
        let (since, before) = std::mem::replace(&mut self.unreadable, (Instant::now(), slots));
        if !before.is_empty() {
            self.unreadable.0 = since;
        }
        for found in self.unreadable_slots() {
            let of_site = name_on_site(&found.table).unwrap_or_default().to_owned();
            if before.contains(&(of_site, found.slot)) {
                continue;
            }
            log(Level::Warning, &format!("{}; {}", found.text(), found.advice()));
        }
    }

    /// The first of them, with their keys.
    fn unreadable_slots(&self) -> impl Iterator<Item = UnreadableSlot> {
        self.unreadable.1.iter().take(MOST_UNREADABLE).map(|(table, slot)| UnreadableSlot {
            table: table_of_site(table),
            slot: *slot,
            key: self.keys.name(&Key::Slot(table.clone(), *slot)),
        })
    }

    fn about_hosts(&self, now: Duration) -> Vec<AboutHost> {
        let (mut held, mut waiting) = (self.mirror.held_by_host(), self.mirror.waiting_by_host());
        let about = |name: String| {
            let here = self.mirror.host(&name);
            let record = here.or(self.mirror.last_of(&name).0);
            let absent = self.absences.since(&name).map(|since| {
                let absent = now.saturating_sub(since);
                (absent, self.mirror.ttl_of(&name, self.ttl).saturating_sub(absent))
            });
            AboutHost {
                version: record.map(|record| record.version.clone()),
                lease: here.and_then(|of| u64::try_from(of.lease).ok()),
                absent,
                waiting: waiting.remove(&name).unwrap_or_default(),
                held: held.remove(&name).unwrap_or_default().into_iter().collect(),
                repositories: here
                    .map(|record| record.repositories.clone().into_iter().collect())
                    .unwrap_or_default(),
                name,
            }
        };
        self.mirror.hosts().into_iter().map(about).collect()
    }
}
