//! Repositories: their paths, limits and reservations, each by itself and then against each other.

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map},
    sync::Arc,
};

use super::{SymbolTable, rules::Captures};
use crate::{
    judge::terms::Keeper,
    policy::{
        Aliases, At, CommandEntry, Directory, GroupEntry, HIGHEST_LIMIT, Limit, Measuring, OtherLimit,
        PartitionKey, PathTemplate, Pattern, Placeholder, Principal, Repository, Section, Start, Subject,
        Value, Written, WrittenEntry, WrittenList,
        fault::Fault,
        place::Place,
        repository::{
            Reservation, Whom, keeping::Keeping, limits::LIMITS, names::SlotNames, pace, settings::Settings,
            sharing::Sharing,
        },
        selector::{DirectoryEntry, Entry, HostEntry, Ids, Window, entries_of, entry_of},
        template::{Step, can_meet},
        warning::Warning,
        written::WrittenRepository,
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
            let WrittenRepository { name, section } = written;
            let reading = Reading { book, name: *name, section, path: section.text("path") };
            let place = Place::new(&file.source, name.at.start);
            let repository = reading.repository(file.layer, place);
            // A table of the agent's and a lock file are never the same.
            match files.entry((file.layer, repository.keeper(), repository.path.whole())) {
                hash_map::Entry::Vacant(entry) => {
                    entry.insert((repositories.len(), name.at));
                    // Samples are called by the name alone.
                    let sample = (book.layers[file.layer].is_of_system(), name.value);
                    let is_sampled = repository.outside.is_some();
                    if let Some(first) = is_sampled.then(|| samples.insert(sample, name.at)).flatten() {
                        reading.report_ambiguous(first);
                    }
                }
                hash_map::Entry::Occupied(entry) => {
                    let (other, first) = *entry.get();
                    let other = &repositories[other];
                    if repository.keeper() != Keeper::File {
                        // A table of the agent has no other name.
                        reading.report_ambiguous(first);
                    } else if !other.has_same_settings(&repository) {
                        let fault = Fault::SamePath { name: other.name.clone(), first };
                        reading.fault(reading.at_path(), fault);
                    }
                }
            }
            // A name has one meaning in a layer, wherever it is defined.
            let of_name = keepers.entry((file.layer, name.value));
            let (keeper, first) = *of_name.or_insert((repository.keeper(), name.at));
            if repository.keeper() != keeper {
                reading.report_ambiguous(first);
            }
            repositories.push(repository);
            places.push((file.layer, name.at));
        }
    }
    find_meetings(book, &repositories, &places);
    repositories
}

/// How many pairs of steps are compared at most in a layer: thousands of repositories whose paths begin
/// alike, which no policy needs, must not keep a launch or the agent busy.
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
    let (mut left, mut is_over, mut of_layer) = (MOST_COMPARED, false, None);
    for (at, (layer, keeper, literal, index)) in rows.iter().enumerate() {
        // What the file of a department costs is not a fault of another.
        if of_layer.replace(layer) != Some(layer) {
            (left, is_over) = (MOST_COMPARED, false);
        }
        if is_over {
            continue;
        }
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
                is_over = left == 0;
                if is_over {
                    break;
                }
            }
        }
    }
}

struct Reading<'b, 'w> {
    book: &'b SymbolTable<'w>,
    name: Written<&'w str>,
    section: &'b Section<'w>,
    path: Option<Written<&'w str>>,
}

impl Reading<'_, '_> {
    fn fault(&self, at: At, fault: Fault) {
        self.book.findings.fault(at, fault);
    }

    /// Reports that its name means another one already.
    fn report_ambiguous(&self, first: At) {
        self.fault(self.name.at, Fault::AmbiguousRepository { name: self.name.value.to_owned(), first });
    }

    /// Where its path is; else its name.
    fn at_path(&self) -> At {
        self.path.map_or(self.name.at, |path| path.at)
    }

    fn repository(&self, layer: usize, place: Place) -> Repository {
        let (section, aliases) = (self.section, &self.book.aliases);
        let (name, of_layer) = (self.name.value.to_owned(), &self.book.layers[layer]);
        self.check_name();
        let names = SlotNames::read(section, aliases);
        let limits = section.get("limits");
        // One mistake is one fault: such a value was intended as the limit, so the limit is not missing.
        let as_limit = limits.filter(|value| !value.is_table() && !value.is_list());
        let written = section.get("limit");
        if written.or(as_limit).or(section.get("names")).is_none() {
            self.fault(self.name.at, Fault::NoLimit { name: name.clone() });
        }
        let limit = written.and_then(|value| limit(value, names.most()));
        let limit = limit.unwrap_or(Limit::Fixed(names.most().unwrap_or(0)));
        let settings = self.settings(of_layer.may_loosen);
        let path = self.path_template(&of_layer.directory);
        if path.start == Start::Runtime && of_layer.is_of_system() {
            self.book.warn(self.at_path(), || Warning::RuntimeOfCaller);
        }
        let keeping = Keeping::read(section, of_layer, self.name.at, self.path.map(|path| path.at));
        let sharing = Sharing::read(section, keeping.keeper, settings.nested);
        let limits = limits.map_or_else(Vec::new, |value| {
            let by: Vec<By> = path.placeholders().map(By::of).collect();
            other_limits(value, &by, names.most(), aliases)
        });
        let all_limits = limits.iter().map(|other| other.limit).chain([limit]);
        let repository = Repository {
            shown_name: name.as_str().into(),
            name,
            place,
            layer,
            limit,
            reservations: Reservation::read_all(section, all_limits, aliases),
            limits,
            names,
            outside: {
                let told_apart = path.placeholders().chain(sharing.placeholders());
                Measuring::read(section, keeping.keeper, of_layer.kind, told_apart)
            },
            settings,
            keeping,
            sharing,
            pace: pace::read(section, settings.hold, aliases),
            path,
        };
        // Only rules capture, and only for what they acquire.
        Captures::of_selectors(self.book).report_unused(std::iter::empty(), self.book);
        repository
    }

    fn settings(&self, may_loosen: bool) -> Settings {
        let settings = Settings::read(self.section);
        if let (Some(wait), Some(longest)) = (settings.wait, settings.max_wait)
            && wait > longest
            && let Some(value) = self.section.get("wait")
        {
            let repository = self.name.value.to_owned();
            value.fault(Fault::WaitAboveMax { longest: longest.to_string(), repository });
        }
        if let (Some(false), Some(value)) = (settings.enforce, self.section.get("enforce"))
            && !may_loosen
        {
            value.fault(Fault::Loosens { what: "enforce = false" });
        }
        settings
    }

    fn check_name(&self) {
        let name = self.name;
        let ordinary = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if name.value.is_empty() || name.value.starts_with('.') || !name.value.bytes().all(ordinary) {
            self.fault(name.at, Fault::BadName { name: name.value.to_owned() });
        } else if name.value.len() > LONGEST_NAME {
            self.fault(name.at, Fault::LongName { most: LONGEST_NAME });
        }
    }

    fn path_template(&self, directory: &Directory) -> PathTemplate {
        let per = self.section.get("per").and_then(|value| {
            PartitionKey::list(value, &|_, _| true, "leave it out for one file that all share")
        });
        if let (Some(path), Some(_)) = (self.path, &per) {
            self.fault(path.at, Fault::Contradiction { key: "path", other: "\"per\"" });
        }
        let per = per.map_or_else(Vec::new, |per| per.value);
        let by_name = || PathTemplate::of_name(self.name.value, &per, directory);
        let Some(path) = self.path else { return by_name() };
        PathTemplate::parse(path.value, directory).unwrap_or_else(|fault| {
            self.fault(path.at, fault);
            by_name()
        })
    }
}

/// A limit, as written in `limit` and in `limits`. None goes beyond the last of this many names.
fn limit(value: Value<'_>, names: Option<u32>) -> Option<Limit> {
    if !value.is_number() {
        let fault = |_, text| Fault::BadLimit { text };
        let limit = value.parsed("a number of slots, or \"2/cpu\"", Limit::parse, fault);
        return limit.map(|limit| limit.value);
    }
    let limit = value.count(0, HIGHEST_LIMIT)?.value;
    if let Some(names) = names.filter(|names| limit > *names) {
        value.fault(Fault::LimitAboveNames { limit, names });
    }
    Some(Limit::Fixed(limit))
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

/// The limits of a repository with a file for each of these, in the order in which they count: a table of
/// members, or a list of tables with selectors.
fn other_limits(value: Value<'_>, by: &[By], names: Option<u32>, aliases: &Aliases<'_>) -> Vec<OtherLimit> {
    if value.is_table() {
        let named = value.by_name().unwrap_or_default().into_iter();
        let named = named.filter_map(|(name, value)| Some((name, limit(value, names)?))).collect();
        let [by] = by else {
            value.fault(Fault::LimitsWithoutMember);
            return Vec::new();
        };
        return by_member(*by, named, aliases);
    }
    let expected = "a table of members, such as { ann = 8 }; one limit for all is \"limit\"";
    let tables = value.elements(expected).into_iter().flatten();
    let sections = tables.filter_map(|table| table.section(&LIMITS));
    sections.filter_map(|section| other_limit(&section, by, names, aliases)).collect()
}

fn other_limit(
    section: &Section<'_>,
    by: &[By],
    names: Option<u32>,
    aliases: &Aliases<'_>,
) -> Option<OtherLimit> {
    let list = |key| section.get(key).and_then(|value| Some((value.at, WrittenList::read(value)?)));
    let keys = [
        (By::Host, HostEntry::KEY.name),
        (By::Command, CommandEntry::KEY.name),
        (By::Directory, DirectoryEntry::KEY.name),
        (By::User, Principal::KEY.name),
        (By::Group, GroupEntry::KEY.name),
    ];
    let keys = keys.map(|(of, key)| (of, key, list(key)));
    let when = section.get(Window::KEY.name).and_then(WrittenList::read);
    let limit = section.require("limit").and_then(|value| limit(value, names))?;
    if !section.has_more_than("limit") {
        section.fault(section.at, Fault::LimitForAll);
        return None;
    }
    let (mut whom, mut shown) = (Vec::new(), Vec::new());
    for (of, key, written) in keys {
        let Some((at, written)) = written else { continue };
        if !by.contains(&of) {
            let members = match (of, by.contains(&By::User)) {
                (By::Group, true) => written.entries.first().map(|entry| format!("%{}", entry.value)),
                _ => None,
            };
            section.fault(at, Fault::LimitsNotBy { key, of: of.word(), members });
            continue;
        }
        if of == By::Command {
            aliases.each(&written.entries, |entry| {
                if let Some(fault) = path_as_member(&entry.value) {
                    aliases.findings.fault(entry.at, fault);
                }
            });
        }
        whom.push(whom_of(of, &written.entries, aliases));
        shown.push(written.shown());
    }
    let when = when.map_or_else(Vec::new, |when| entries_of(&when.entries, aliases));
    // Users first, places last.
    shown.reverse();
    Some(OtherLimit { whom, when, limit, shown: shown.join(" on ").into(), key: None })
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

fn by_member(by: By, named: Vec<(Written<&str>, Limit)>, aliases: &Aliases<'_>) -> Vec<OtherLimit> {
    let mut limits: Vec<(Rank, OtherLimit)> = Vec::new();
    for (name, limit) in named {
        let written = Written { value: Cow::Borrowed(name.value), at: name.at };
        let is_alias = written.value.starts_with('@');
        let as_written: Arc<str> = written.value.as_ref().into();
        aliases.each([&written], |entry| {
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
                Rank::NameOfAlias | Rank::Several => Arc::clone(&as_written),
            };
            let other = OtherLimit { whom: vec![whom], when: Vec::new(), limit, shown, key: Some(key) };
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
            aliases.spend_on_pattern(written, pattern.literal().is_some()).then_some(())?;
            let (text, is_plain) = (pattern.text().to_owned(), pattern.literal().is_some());
            Some((Whom::Value(pattern), text, is_plain))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_COMPARED, Step, can_meet};
    use crate::{
        policy::{LayerKind, LayerText, Policy},
        text::SourceText,
    };

    /// Paths that use up exactly what is compared are no fault, and do not hide that others meet.
    #[test]
    fn paths_meet_also_where_nothing_is_left_to_compare() {
        let repository =
            |name: &str, path: &str| format!("[repository.{name}]\nlimit = 1\npath = \"{path}\"\n");
        let read = |text: &str| Policy::of_text("/p.toml", text.to_owned());
        let cost = |text: &str| {
            let policy = read(text).unwrap_or_else(|faults| panic!("{faults}"));
            let paths: Vec<_> = policy.repositories.iter().map(|one| one.path.steps()).collect();
            let literal = |index: usize| -> Vec<u8> {
                let byte = |step: &Step<'_>| if let Step::Byte(byte) = step { Some(*byte) } else { None };
                paths[index].iter().map_while(byte).collect()
            };
            let mut left = usize::MAX;
            for first in 0..paths.len() {
                let alike = literal(first);
                for second in (first + 1..paths.len()).filter(|second| literal(*second).starts_with(&alike)) {
                    left -= paths[second].len();
                    assert!(!can_meet(&paths[first], &paths[second], alike.len(), &mut left));
                }
            }
            usize::MAX - left
        };
        let many: String =
            (0..150).map(|n| repository(&format!("x{n}"), &format!("x{{arg1}}n{n:03}"))).collect();
        let rest = |length: usize| {
            let long: String = (0..length).map(|n| if n % 100 == 50 { '/' } else { 'b' }).collect();
            repository("q1", "q{arg1}a") + &repository("q2", &format!("q/c{long}"))
        };
        let length = MOST_COMPARED - cost(&many) - cost(&rest(0));
        let all = many + &rest(length);
        assert_eq!(cost(&all), MOST_COMPARED);
        let meet = repository("z1", "z{arg1}") + &repository("z2", "zz");
        let found = read(&(all + &meet)).map(|_| ()).expect_err("paths that meet");
        let found: Vec<(&str, Option<&str>)> =
            found.iter().map(|fault| (fault.code, fault.message.split('"').nth(1))).collect();
        assert_eq!(found, [("paths-meet", Some("z1"))]);
    }

    /// How many paths are compared is limited for each layer: a file that has more is at fault, and what is
    /// wrong in another file is found too.
    #[test]
    fn paths_of_another_layer_are_compared_whatever_one_has() {
        let many: String = (0..600)
            .map(|n| format!("[repository.r{n}]\nlimit = 1\npath = \"x{{arg1}}n{n:03}\"\n"))
            .collect();
        let meet = |path: &str| format!("[repository.r{}]\nlimit = 1\npath = \"{path}\"\n", path.len());
        let delegated = |name: &str, text: String| LayerText {
            kind: LayerKind::Delegated,
            files: vec![SourceText::new(name, text)],
        };
        let layers = |cad: &str| {
            let delegation = |name: &str| {
                format!("[delegate.\"{name}\"]\nowner = 1\nusers = [\"*\"]\ncommands = [\"*\"]\n")
            };
            let main = SourceText::new("main.toml", delegation("cad.toml") + &delegation("eda.toml"));
            vec![
                LayerText { kind: LayerKind::System, files: vec![main] },
                delegated("cad.toml", cad.to_owned()),
                delegated("eda.toml", meet("y{arg1}") + &meet("yz")),
            ]
        };
        for (cad, expected) in [("", &["eda.toml"][..]), (many.as_str(), &["cad.toml", "eda.toml"][..])] {
            let faults = Policy::of_layers(layers(cad), false).expect_err("paths that meet");
            let found: Vec<(&str, &str)> =
                faults.iter().map(|fault| (fault.path.to_str().expect("text"), fault.code)).collect();
            let expected: Vec<(&str, &str)> = expected.iter().map(|file| (*file, "paths-meet")).collect();
            assert_eq!(found, expected);
        }
    }
}
