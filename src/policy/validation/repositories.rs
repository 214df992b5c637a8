//! Repositories: their paths, limits and reservations, each by itself and then against each other.

use std::{
    collections::{HashMap, hash_map},
    sync::Arc,
};

use super::{SymbolTable, rules::Captures};
use crate::{
    judge::terms::Keeper,
    policy::{
        Aliases, At, CommandEntry, Directory, GroupEntry, Limit, OtherLimit, PathTemplate, Pattern,
        Placeholder, Principal, Repository, Start, Subject, Written, WrittenEntry,
        fault::Fault,
        place::Place,
        repository::{Whom, reservation::WrittenReservation},
        selector::{DirectoryEntry, Entry, HostEntry, Ids, entries_of, entry_of},
        template::{Step, can_meet},
        warning::Warning,
        written::{WrittenLimit, WrittenLimits, WrittenRepository},
    },
};

/// The longest name, so that its encoded form fits into a file name.
const LONGEST_NAME: usize = 100;

pub(super) fn validate(book: &SymbolTable<'_>) -> Vec<Repository> {
    let mut repositories: Vec<Repository> = Vec::new();
    let mut files = HashMap::new();
    let mut keepers = HashMap::new();
    let mut samples = HashMap::new();
    let mut places: Vec<(usize, At)> = Vec::new();
    for file in book.files {
        for written in &file.written.repositories {
            let reading = Reading { book, written };
            let place = Place::new(&file.source, written.name.at.start);
            let repository = reading.repository(file.layer, place);
            // A table of the agent's and a lock file are never the same.
            match files.entry((file.layer, repository.keeper(), repository.path.whole())) {
                hash_map::Entry::Vacant(entry) => {
                    entry.insert((repositories.len(), written.name.at));
                    // Samples are called by the name alone.
                    let sample = (book.layers[file.layer].is_of_system(), written.name.value);
                    let is_sampled = repository.outside.is_some();
                    if let Some(first) = is_sampled.then(|| samples.insert(sample, written.name.at)).flatten()
                    {
                        let name = repository.name.clone();
                        reading.fault(written.name.at, Fault::AmbiguousRepository { name, first });
                    }
                }
                hash_map::Entry::Occupied(entry) => {
                    let (other, first) = *entry.get();
                    let other = &repositories[other];
                    if repository.keeper() != Keeper::File {
                        // A table of the agent has no other name.
                        let name = repository.name.clone();
                        reading.fault(written.name.at, Fault::AmbiguousRepository { name, first });
                    } else if !other.has_same_settings(&repository) {
                        let at = written.path.map_or(written.name.at, |path| path.at);
                        reading.fault(at, Fault::SamePath { name: other.name.clone(), first });
                    }
                }
            }
            // A name has one meaning in a layer, wherever it is defined.
            let of_name = keepers.entry((file.layer, written.name.value));
            let (keeper, first) = *of_name.or_insert((repository.keeper(), written.name.at));
            if repository.keeper() != keeper {
                let name = repository.name.clone();
                reading.fault(written.name.at, Fault::AmbiguousRepository { name, first });
            }
            repositories.push(repository);
            places.push((file.layer, written.name.at));
        }
    }
    find_meetings(book, &repositories, &places);
    repositories
}

/// How many pairs of steps are compared at most: thousands of repositories whose paths begin alike, which no
/// policy needs, must not keep a launch or the agent busy.
const MOST_COMPARED: usize = 1_000_000;

/// Faults for repositories of one layer that would share a file, or a table, with a member of another: a
/// program could then take slots of the other, or be ended by its rules.
fn find_meetings(book: &SymbolTable<'_>, repositories: &[Repository], places: &[(usize, At)]) {
    if repositories.iter().all(|repository| repository.path.placeholders().next().is_none()) {
        return;
    }
    let row = |(index, repository): (usize, &'_ Repository)| {
        let steps = repository.path.steps();
        let literal: Vec<u8> = steps
            .iter()
            .map_while(|step| match step {
                Step::Byte(byte) => Some(*byte),
                Step::First(_) | Step::More(_) => None,
            })
            .collect();
        (places[index].0, repository.keeper(), literal, index)
    };
    let mut rows: Vec<_> = repositories.iter().enumerate().map(row).collect();
    rows.sort();
    let mut left = MOST_COMPARED;
    for (at, (layer, keeper, literal, index)) in rows.iter().enumerate() {
        let path = &repositories[*index].path;
        if path.placeholders().next().is_none() {
            continue;
        }
        let begins_so = |row: &&(usize, Keeper, Vec<u8>, usize)| {
            (row.0, row.1) == (*layer, *keeper) && row.2.starts_with(literal)
        };
        let steps = path.steps();
        for (.., other) in rows[at + 1..].iter().take_while(begins_so) {
            let other_path = &repositories[*other].path;
            let theirs = other_path.steps();
            left = left.saturating_sub(theirs.len());
            // Where nothing is left to compare, the answer is yes.
            if can_meet(&steps, &theirs, literal.len(), &mut left)
                && (left == 0 || path.whole() != other_path.whole())
            {
                let (first, second) = (*index.min(other), *index.max(other));
                let name = repositories[first].name.clone();
                let first = places[first].1;
                book.findings.fault(places[second].1, Fault::PathsMeet { name, first });
                if left == 0 {
                    return;
                }
            }
        }
    }
}

struct Reading<'b, 'w> {
    book: &'b SymbolTable<'w>,
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
            outside,
            settings,
            enforce_at,
            keeping,
            pace,
            sharing,
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
        let sharing = sharing.validate(keeping.keeper, settings.nested, self.book.findings);
        let others = limits.iter().flat_map(|(_, limits)| limits.limits());
        let all_limits = others.map(|other| other.value).chain([limit]);
        let repository = Repository {
            shown_name: name.as_str().into(),
            name,
            place,
            layer,
            limit,
            limits: limits
                .as_ref()
                .map_or_else(Vec::new, |(at, limits)| limits.validate(*at, path.placeholders(), aliases)),
            reservations: WrittenReservation::validate_all(reserve, all_limits, aliases),
            names: names.validate(aliases),
            outside: outside.as_ref().map(|outside| {
                let told_apart = path.placeholders().chain(sharing.placeholders());
                outside.validate(keeping.keeper, self.book.layers[layer].kind, told_apart, self.book.findings)
            }),
            settings: *settings,
            keeping,
            sharing,
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

// Other limits: checks which keys fit the members of a repository.

/// The values for each of which a repository has a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum By {
    User,
    Group,
    Host,
    Command,
    Directory,
    Value,
}

impl By {
    fn of(placeholder: &Placeholder) -> By {
        match placeholder {
            Placeholder::User | Placeholder::Uid => By::User,
            Placeholder::Group | Placeholder::Gid => By::Group,
            Placeholder::Host => By::Host,
            Placeholder::Command => By::Command,
            Placeholder::Directory => By::Directory,
            Placeholder::Argument(_)
            | Placeholder::Arguments
            | Placeholder::Environment(_)
            | Placeholder::Captured(_) => By::Value,
        }
    }

    fn word(self) -> &'static str {
        match self {
            By::User => "user",
            By::Group => "group",
            By::Host => "host",
            By::Command => "command",
            By::Directory => "directory",
            By::Value => "value",
        }
    }
}

impl WrittenLimits<'_> {
    /// The limits of a repository with a file for each value of these placeholders, in the order in which
    /// they count.
    pub(in crate::policy) fn validate<'p>(
        &self,
        at: At,
        placeholders: impl Iterator<Item = &'p Placeholder>,
        aliases: &Aliases<'_>,
    ) -> Vec<OtherLimit> {
        let by: Vec<By> = placeholders.map(By::of).collect();
        match self {
            Self::List(listed) => listed.iter().filter_map(|other| other.validate(&by, aliases)).collect(),
            Self::ByMember(entries) => {
                let [by] = by.as_slice() else {
                    aliases.findings.fault(at, Fault::LimitsWithoutMember);
                    return Vec::new();
                };
                by_member(*by, entries, aliases)
            }
        }
    }
}

impl WrittenLimit<'_> {
    fn validate(&self, by: &[By], aliases: &Aliases<'_>) -> Option<OtherLimit> {
        let WrittenLimit { at, users, groups, hosts, commands, directories, when, selects, limit } = self;
        if !selects {
            aliases.findings.fault(*at, Fault::LimitForAll);
            return None;
        }
        let keys = [
            (By::Host, HostEntry::KEY.name, hosts),
            (By::Command, CommandEntry::KEY.name, commands),
            (By::Directory, DirectoryEntry::KEY.name, directories),
            (By::User, Principal::KEY.name, users),
            (By::Group, GroupEntry::KEY.name, groups),
        ];
        let (mut whom, mut shown) = (Vec::new(), Vec::new());
        for (of, key, written) in keys {
            let Some((at, written)) = written else { continue };
            if !by.contains(&of) {
                let members = match (of, by.contains(&By::User)) {
                    (By::Group, true) => written.entries.first().map(|entry| format!("%{}", entry.value)),
                    _ => None,
                };
                aliases.findings.fault(*at, Fault::LimitsNotBy { key, of: of.word(), members });
                continue;
            }
            if of == By::Command {
                let path = |entry: &WrittenEntry<'_>| {
                    if let Some(fault) = path_as_member(&entry.value) {
                        aliases.findings.fault(entry.at, fault);
                    }
                };
                written.entries.iter().for_each(|entry| aliases.each(entry, path));
            }
            whom.push(whom_of(of, &written.entries, aliases));
            shown.push(written.shown());
        }
        let when = when.as_ref().map_or_else(Vec::new, |(_, when)| entries_of(&when.entries, aliases));
        // Users first, places last.
        shown.reverse();
        Some(OtherLimit { whom, when, limit: limit.value, shown: shown.join(" on ").into(), key: None })
    }
}

fn whom_of(of: By, written: &[WrittenEntry<'_>], aliases: &Aliases<'_>) -> Whom {
    match of {
        By::User => Whom::Users(entries_of(written, aliases)),
        By::Group => Whom::Groups(entries_of(written, aliases)),
        By::Host => Whom::Hosts(entries_of(written, aliases)),
        By::Directory => Whom::Directories(entries_of(written, aliases)),
        By::Command | By::Value => Whom::Commands(entries_of(written, aliases)),
    }
}

/// Names and numbers are tried before entries that may match several; those of an alias after the written
/// ones.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Rank {
    Name,
    NameOfAlias,
    Several,
}

fn by_member(
    by: By,
    entries: &[(WrittenEntry<'_>, Written<Limit>)],
    aliases: &Aliases<'_>,
) -> Vec<OtherLimit> {
    let mut limits: Vec<(Rank, OtherLimit)> = Vec::new();
    for (written, limit) in entries {
        let is_alias = written.value.starts_with('@');
        aliases.each(written, |entry| {
            if let Some(fault) = misplaced(by, &entry.value) {
                return aliases.findings.fault(entry.at, fault);
            }
            let Some((whom, key, is_plain)) = member(by, entry, aliases) else { return };
            let rank = match (is_plain, is_alias) {
                (true, false) => Rank::Name,
                (true, true) => Rank::NameOfAlias,
                (false, _) => Rank::Several,
            };
            let shown = match rank {
                Rank::Name => Arc::default(),
                Rank::NameOfAlias | Rank::Several => written.value.as_ref().into(),
            };
            let other =
                OtherLimit { whom: vec![whom], when: Vec::new(), limit: limit.value, shown, key: Some(key) };
            limits.push((rank, other));
        });
    }
    limits.sort_by_key(|(rank, _)| *rank);
    limits.into_iter().map(|(_, other)| other).collect()
}

/// An unknown name that would select something in a rule: it would match nothing.
fn misplaced(by: By, text: &str) -> Option<Fault> {
    let entry = || text.to_owned();
    let selector = |selects| Some(Fault::LimitsSelector { entry: entry(), selects, by: by.word() });
    match (text.as_bytes().first()?, by) {
        (b'!', _) => Some(Fault::LimitsNegation { entry: entry() }),
        (b'%' | b'+', By::User) => None,
        (b'%', _) | (b'+', By::Group | By::Host) => selector("users"),
        (_, By::Command) => path_as_member(text),
        (_, By::Host) if Ids::parse(text).is_ok_and(|ids| ids.is_some_and(|ids| !ids.is_one())) => {
            selector("numbers")
        }
        _ => None,
    }
}

/// A file for each command is called by the name of the command, which no path matches.
fn path_as_member(text: &str) -> Option<Fault> {
    let by = By::Command.word();
    text.contains('/').then(|| Fault::LimitsSelector { entry: text.to_owned(), selects: "paths", by })
}

/// One entry of a table, as it counts and as it is printed, and whether it is a name or a number.
fn member(by: By, written: &WrittenEntry<'_>, aliases: &Aliases<'_>) -> Option<(Whom, String, bool)> {
    fn one<E: Entry>(
        written: &WrittenEntry<'_>,
        aliases: &Aliases<'_>,
        whom: impl Fn(Vec<E>) -> Whom,
    ) -> Option<(Whom, String, bool)> {
        let entry: E = entry_of(written, aliases)?;
        let (text, is_plain) = (entry.text(), entry.is_plain());
        Some((whom(vec![entry]), text, is_plain))
    }
    match by {
        By::User => one(written, aliases, Whom::Users),
        By::Group => one(written, aliases, Whom::Groups),
        By::Host => one(written, aliases, Whom::Hosts),
        By::Command => one(written, aliases, Whom::Commands),
        By::Directory => one(written, aliases, Whom::Directories),
        By::Value => {
            let fault = |reason| aliases.findings.fault(written.at, Fault::BadPattern { reason });
            let pattern = Pattern::new(&written.value, Subject::Name).map_err(fault).ok()?;
            let (text, is_plain) = (pattern.text().to_owned(), pattern.literal().is_some());
            Some((Whom::Value(pattern), text, is_plain))
        }
    }
}
