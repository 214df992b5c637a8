//! Repositories: their paths, limits and reservations, each for itself and then against each other.

use std::collections::{HashMap, hash_map};

use super::{book::Book, captures::Captures};
use crate::{
    policy::{
        fault::Fault,
        limit::Limit,
        path_syntax::Directory,
        place::{At, Place, Written},
        repository::{Repository, reservation::WrittenReservation},
        template::{PathTemplate, Start},
        warning::Warning,
        written::WrittenRepository,
    },
    terms::keeper::Keeper,
};

/// The longest name: what it becomes must fit into the name of a file.
const LONGEST_NAME: usize = 100;

pub(super) fn validate(book: &Book<'_>) -> Vec<Repository> {
    let mut repositories: Vec<Repository> = Vec::new();
    let mut files = HashMap::new();
    let mut keepers = HashMap::new();
    for file in book.files {
        for written in &file.written.repositories {
            let reading = Reading { book, written };
            let place = file.place(written.name.at);
            let repository = reading.repository(file.layer, place);
            // A table of the agent's and a lock file are never the same.
            match files.entry((file.layer, repository.keeper(), repository.path.whole())) {
                hash_map::Entry::Vacant(entry) => drop(entry.insert((repositories.len(), written.name.at))),
                hash_map::Entry::Occupied(entry) => {
                    let (other, first) = *entry.get();
                    let other = &repositories[other];
                    if repository.keeper() != Keeper::File {
                        // Its table has no other name.
                        let name = repository.name.clone();
                        reading.fault(written.name.at, Fault::AmbiguousRepository { name, first });
                    } else if !other.has_same_settings(&repository) {
                        let at = written.path.map_or(written.name.at, |path| path.at);
                        reading.fault(at, Fault::SamePath { name: other.name.clone(), first });
                    }
                }
            }
            // Who counts a name is one thing in a layer, wherever the name is defined.
            let of_name = keepers.entry((file.layer, written.name.value));
            let (keeper, first) = *of_name.or_insert((repository.keeper(), written.name.at));
            if repository.keeper() != keeper {
                let name = repository.name.clone();
                reading.fault(written.name.at, Fault::AmbiguousRepository { name, first });
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
        let WrittenRepository {
            name,
            path: _,
            per: _,
            limit,
            limits,
            reserve,
            names,
            settings,
            enforce_at,
            keeping,
            pace,
        } = self.written;
        let (aliases, name) = (&self.book.aliases, name.value.to_owned());
        self.check_name();
        if limit.is_none() && !names.is_there {
            self.fault(self.written.name.at, Fault::NoLimit { name: name.clone() });
        }
        let limit = limit.and_then(Result::ok);
        self.check_names(limit);
        let otherwise = Limit::Fixed(names.count().unwrap_or(0));
        let limit = limit.map_or(otherwise, |limit| limit.value);
        if let (Some(false), Some(at)) = (settings.enforce, *enforce_at)
            && !self.book.layers[layer].may_loosen
        {
            self.fault(at, Fault::Loosens { what: "enforce = false" });
        }
        let path = self.path(&self.book.layers[layer].directory);
        if path.start == Start::Runtime && self.book.layers[layer].is_of_system() {
            let at = self.written.path.map_or(self.written.name.at, |path| path.at);
            self.book.warn(at, || Warning::RuntimeOfCaller);
        }
        let written_path = self.written.path.map(|path| path.at);
        let keeping = keeping.validate(
            &self.book.layers[layer],
            self.written.name.at,
            written_path,
            self.book.findings,
        );
        let others = limits.iter().flat_map(|(_, limits)| limits.limits());
        let all_limits = others.map(|other| other.value).chain([limit]);
        let repository = Repository {
            shown_name: name.clone(),
            name,
            place,
            layer,
            limit,
            limits: limits
                .as_ref()
                .map_or_else(Vec::new, |(at, limits)| limits.validate(*at, path.placeholders(), aliases)),
            reservations: WrittenReservation::validate_all(reserve, all_limits, aliases),
            names: names.validate(aliases),
            settings: *settings,
            keeping,
            pace: pace.validate(settings.hold, aliases),
            path,
        };
        // Only rules capture, and only for what they acquire.
        Captures::of_selectors(self.book).report_unused(std::iter::empty(), self.book);
        repository
    }

    /// No limit goes beyond the last name.
    fn check_names(&self, limit: Option<Written<Limit>>) {
        let Some(names) = self.written.names.count() else { return };
        let others = self.written.limits.iter().flat_map(|(_, limits)| limits.limits());
        for written in limit.into_iter().chain(others) {
            if let Some(limit) = written.value.fixed().filter(|limit| *limit > names) {
                self.fault(written.at, Fault::LimitAboveNames { limit, names });
            }
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
}
