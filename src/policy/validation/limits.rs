//! Other limits: what the keys of a repository may say of the members that it has.

use std::slice;

use crate::policy::{
    aliases::Aliases,
    entries::WrittenEntry,
    fault::Fault,
    limit::Limit,
    pattern::{Pattern, Subject},
    place::{At, Written},
    repository::{OtherLimit, Whom},
    selector::{
        CommandEntry, DirectoryEntry, Entry, GroupEntry, HostEntry, Ids, Principal, entries_of, entry_of,
    },
    template::Placeholder,
    written::{WrittenLimit, WrittenLimits},
};

/// What a repository has a file for each of.
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

impl<'a> WrittenLimits<'a> {
    /// The limits of a repository with a file for each value of these placeholders, in the order in which
    /// they count.
    pub(in crate::policy) fn validate<'p>(
        &'a self,
        at: At,
        placeholders: impl Iterator<Item = &'p Placeholder>,
        aliases: &Aliases<'a>,
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

impl<'a> WrittenLimit<'a> {
    fn validate(&'a self, by: &[By], aliases: &Aliases<'a>) -> Option<OtherLimit> {
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
            whom.push(whom_of(of, &written.entries, aliases));
            shown.push(written.shown());
        }
        let when = when.as_ref().map_or_else(Vec::new, |(_, when)| entries_of(&when.entries, aliases));
        // Who first, where last.
        shown.reverse();
        Some(OtherLimit { whom, when, limit: limit.value, shown: shown.join(" on "), key: None })
    }
}

fn whom_of<'a>(of: By, written: &'a [WrittenEntry<'a>], aliases: &Aliases<'a>) -> Whom {
    match of {
        By::User => Whom::Users(entries_of(written, aliases)),
        By::Group => Whom::Groups(entries_of(written, aliases)),
        By::Host => Whom::Hosts(entries_of(written, aliases)),
        By::Directory => Whom::Directories(entries_of(written, aliases)),
        By::Command | By::Value => Whom::Commands(entries_of(written, aliases)),
    }
}

/// Names and numbers count before whatever may match several; those that an alias stands for after those that
/// were written.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Rank {
    Name,
    NameOfAlias,
    Several,
}

fn by_member<'a>(
    by: By,
    entries: &'a [(WrittenEntry<'a>, Written<Limit>)],
    aliases: &Aliases<'a>,
) -> Vec<OtherLimit> {
    let mut limits: Vec<(Rank, OtherLimit)> = Vec::new();
    for (written, limit) in entries {
        let is_alias = written.value.starts_with('@');
        for entry in aliases.entries(slice::from_ref(written)) {
            if let Some(fault) = misplaced(by, &entry.value) {
                aliases.findings.fault(entry.at, fault);
                continue;
            }
            let Some((whom, key, is_plain)) = member(by, entry, aliases) else { continue };
            let rank = match (is_plain, is_alias) {
                (true, false) => Rank::Name,
                (true, true) => Rank::NameOfAlias,
                (false, _) => Rank::Several,
            };
            let shown = match rank {
                Rank::Name => String::new(),
                Rank::NameOfAlias | Rank::Several => written.value.clone().into_owned(),
            };
            let other =
                OtherLimit { whom: vec![whom], when: Vec::new(), limit: limit.value, shown, key: Some(key) };
            limits.push((rank, other));
        }
    }
    limits.sort_by_key(|(rank, _)| *rank);
    limits.into_iter().map(|(_, other)| other).collect()
}

/// What would select something in a rule, and is no name here: it would match nobody.
fn misplaced(by: By, text: &str) -> Option<Fault> {
    let entry = || text.to_owned();
    let selector = |selects| Some(Fault::LimitsSelector { entry: entry(), selects, by: by.word() });
    match (text.as_bytes().first()?, by) {
        (b'!', _) => Some(Fault::LimitsNegation { entry: entry() }),
        (b'%' | b'+', By::User) => None,
        (b'%', _) | (b'+', By::Group | By::Host) => selector("users"),
        (_, By::Command) if text.contains('/') => selector("paths"),
        (_, By::Host) if Ids::parse(text).is_ok_and(|ids| ids.is_some_and(|ids| !ids.is_one())) => {
            selector("numbers")
        }
        _ => None,
    }
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
