//! Repositories: their paths, limits and reservations, each for itself and then against each other.

use std::collections::{HashMap, hash_map::Entry};

use super::{book::Book, selectors::parse_principals};
use crate::policy::{
    fault::Fault,
    hold::Hold,
    limit::Limit,
    path_syntax::Directory,
    pattern::{Pattern, Subject},
    place::{At, Place},
    repository::{MemberLimit, Pace, Repository, Reservation},
    template::PathTemplate,
    warning::Warning,
    written::WrittenRepository,
};

/// The longest name: what it becomes must fit into the name of a file.
const LONGEST_NAME: usize = 100;

pub(super) fn validate(book: &Book<'_>) -> Vec<Repository> {
    let mut repositories: Vec<Repository> = Vec::new();
    let mut files = HashMap::new();
    for file in book.files {
        for written in &file.written.repositories {
            let reading = Reading { book, written };
            let place = file.place(written.name.at);
            let repository = reading.repository(file.layer, place);
            match files.entry((file.layer, repository.path.whole())) {
                Entry::Vacant(entry) => drop(entry.insert((repositories.len(), written.name.at))),
                Entry::Occupied(entry) => {
                    let (other, first) = *entry.get();
                    let other = &repositories[other];
                    if !other.has_same_settings(&repository) {
                        let at = written.path.map_or(written.name.at, |path| path.at);
                        reading.fault(at, Fault::SamePath { name: other.name.clone(), first });
                    }
                }
            }
            repositories.push(repository);
        }
    }
    repositories
}

struct Reading<'b, 'w> {
    book: &'b Book<'w>,
    written: &'w WrittenRepository<'w>,
}

impl Reading<'_, '_> {
    fn fault(&self, at: At, fault: Fault) {
        self.book.findings.fault(at, fault);
    }

    fn repository(&self, layer: usize, place: Place) -> Repository {
        let written = self.written;
        let name = written.name.value;
        self.check_name();
        let limit = match written.limit {
            Some(Ok(limit)) => limit.value,
            Some(Err(())) => Limit::Fixed(0),
            None => {
                self.fault(written.name.at, Fault::NoLimit { name: name.to_owned() });
                Limit::Fixed(0)
            }
        };
        if let Some(enforce) = written.enforce
            && !enforce.value
            && !self.book.layers[layer].may_loosen
        {
            self.fault(enforce.at, Fault::Loosens { what: "enforce = false" });
        }
        let path = self.path(&self.book.layers[layer].directory);
        let limits = self.limits(&path);
        Repository {
            name: name.to_owned(),
            shown_name: name.to_owned(),
            place,
            layer,
            reservations: self.reservations(limit),
            path,
            limit,
            limits,
            charge: written.charge.map(|charge| charge.value),
            nested: written.nested.map(|nested| nested.value).unwrap_or_default(),
            pace: self.pace(),
            enforce: written.enforce.map(|enforce| enforce.value),
            wait: written.wait.map(|wait| wait.value),
            hold: written.hold.map(|hold| hold.value),
        }
    }

    fn check_name(&self) {
        let name = self.written.name;
        let ordinary = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if name.value.is_empty() || name.value.starts_with('.') || !name.value.bytes().all(ordinary) {
            self.fault(name.at, Fault::BadName { name: name.value.to_owned() });
        } else if name.value.len() > LONGEST_NAME {
            self.fault(name.at, Fault::LongName { most: LONGEST_NAME });
        }
    }

    fn path(&self, directory: &Directory) -> PathTemplate {
        let name = self.written.name.value;
        let per = self.written.per.as_ref();
        if let (Some(path), Some(_)) = (self.written.path, per) {
            self.fault(path.at, Fault::Contradiction { key: "path", other: "\"per\"" });
        }
        let by_name = || PathTemplate::of_name(name, per.map_or(&[], |per| per.value.as_slice()), directory);
        let Some(path) = self.written.path else { return by_name() };
        PathTemplate::parse(path.value, directory).unwrap_or_else(|fault| {
            self.fault(path.at, fault);
            by_name()
        })
    }

    fn limits(&self, path: &PathTemplate) -> Vec<MemberLimit> {
        if let Some(at) = self.written.limits_at
            && path.placeholders().count() != 1
        {
            self.fault(at, Fault::LimitsWithoutMember);
        }
        let mut limits = Vec::new();
        for (member, limit) in &self.written.limits {
            match Pattern::new(member.value, Subject::Name) {
                Ok(pattern) => limits.push(MemberLimit { member: pattern, limit: limit.value }),
                Err(reason) => self.fault(member.at, Fault::BadPattern { reason }),
            }
        }
        // An exact name counts before a pattern; among patterns the first that was written.
        limits.sort_by_key(|limit| limit.member.literal().is_none());
        limits
    }

    fn reservations(&self, limit: Limit) -> Vec<Reservation> {
        let mut reserved = 0u32;
        let mut reservations = Vec::new();
        for written in &self.written.reserve {
            let slots = written.slots.value;
            let lend = written.lend.map_or(0, |lend| lend.value);
            if let Some(at) = written.lend.filter(|_| lend > slots).map(|lend| lend.at) {
                self.fault(at, Fault::LendAboveSlots { lend, slots });
            }
            reserved = reserved.saturating_add(slots);
            // Drained is drained, reserved or not.
            let limits = self.written.limits.iter().map(|(_, own)| own.value).chain([limit]);
            if let Some(limit) =
                limits.filter_map(Limit::fixed).filter(|limit| *limit > 0 && reserved > *limit).min()
            {
                self.fault(written.slots.at, Fault::ReservedAboveLimit { reserved, limit });
            }
            let entries = self.book.entries(&written.principals);
            let shown: Vec<&str> = written.principals.iter().map(|entry| entry.value.as_ref()).collect();
            reservations.push(Reservation {
                principals: parse_principals(self.book, &entries),
                slots,
                lend: lend.min(slots),
                shown: shown.join(", "),
            });
        }
        reservations
    }

    fn pace(&self) -> Pace {
        let written = self.written;
        let needs = |at: Option<At>, there: bool, key, needs| {
            if let Some(at) = at.filter(|_| !there) {
                self.fault(at, Fault::NeedsKey { key, needs });
            }
        };
        let elapses = written.if_elapsed.is_some();
        let expires = written.expire_after.is_some();
        needs(written.if_elapsed_from.map(|from| from.at), elapses, "if_elapsed_from", "\"if_elapsed\"");
        needs(written.too_soon.map(|too_soon| too_soon.at), elapses, "too_soon", "\"if_elapsed\"");
        needs(written.expire_grace.map(|grace| grace.at), expires, "expire_grace", "\"expire_after\"");
        needs(written.expire_kill.map(|kill| kill.at), expires, "expire_kill", "\"expire_after\"");
        let pace = Pace {
            if_elapsed: written.if_elapsed.map(|written| written.value),
            if_elapsed_from: written.if_elapsed_from.map(|written| written.value).unwrap_or_default(),
            too_soon: written.too_soon.map(|written| written.value).unwrap_or_default(),
            expire_after: written.expire_after.map(|written| written.value),
            expire_grace: written.expire_grace.map(|written| written.value),
            expire_kill: written.expire_kill.map(|written| written.value).unwrap_or_default(),
        };
        // Rules and the command line may ask for a weaker hold, but the strongest counts: said here, it is certain.
        if let Some(from) = written.if_elapsed_from
            && pace.counts_from_end()
            && written.hold.is_none_or(|hold| hold.value < Hold::Supervisor)
        {
            self.fault(from.at, Fault::EndNeedsSupervisor);
        }
        if let (Some(elapsed), Some(expire)) = (written.if_elapsed, written.expire_after)
            && expire.value <= elapsed.value
        {
            self.book.warn(expire.at, || Warning::ExpireNotAboveElapsed);
        }
        pace
    }
}
