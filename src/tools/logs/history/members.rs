//! The repositories of an event with their members, as listings show them. A log that is to be replayed says
//! whose table each was; every other has the names of repositories alone.

use crate::{
    launch::log::{circumstances::TableSeen, event::Event},
    sys::accounts::NameCache,
};

/// What an event is about: `matlab=7 matlab-per-user [ann]=3`.
pub(super) fn repositories(event: &Event, names: &NameCache) -> String {
    let mut seen = Vec::new();
    let mut shown = Vec::new();
    for repository in &event.repositories {
        let (name, slots) = repository.split_at(repository.find('=').unwrap_or(repository.len()));
        let member = member_of(event, name, seen.iter().filter(|known| **known == name).count());
        let member = member.map_or_else(String::new, |member| format!(" [{}]", named(member, names)));
        shown.push(format!("{name}{member}{slots}"));
        seen.push(name);
    }
    shown.join(" ")
}

/// Whose table it was that the event names so often before: where it has more of them than it names, and they
/// are of several members, nobody can tell.
fn member_of<'a>(event: &'a Event, name: &str, before: usize) -> Option<&'a str> {
    let is_named = |table: &&TableSeen| table.repository == name;
    let is_own = |table: &&TableSeen| is_named(table) && !table.shared && table.room.is_none();
    let members = |of: &dyn Fn(&&TableSeen) -> bool| -> Vec<Option<&'a str>> {
        event.tables.iter().filter(|table| of(table)).map(|table| table.member.as_deref()).collect()
    };
    let (own, all) = (members(&is_own), members(&is_named));
    let first = *all.first()?;
    if own.len() == event.names_of_repositories().filter(|named| *named == name).count() {
        return own.get(before).copied().flatten();
    }
    first.filter(|_| all.iter().all(|member| *member == first))
}

/// `uid 4711 /opt/lab` as `ann, /opt/lab`. Where one text ends and another begins, nobody can tell.
fn named(member: &str, names: &NameCache) -> String {
    let mut words = member.split(' ').peekable();
    let mut shown = String::new();
    let mut was_account = false;
    while let Some(word) = words.next() {
        let number = words.peek().and_then(|number| number.parse().ok());
        let account = match (word, number) {
            ("uid", Some(uid)) => Some(names.user(uid)),
            ("gid", Some(gid)) => Some(names.group(gid)),
            _ => None,
        };
        let is_account = account.is_some();
        shown.push_str(match (shown.is_empty(), was_account || is_account) {
            (true, _) => "",
            (false, true) => ", ",
            (false, false) => " ",
        });
        if is_account {
            words.next();
        }
        shown.push_str(account.as_deref().unwrap_or(word));
        was_account = is_account;
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use crate::launch::log::event::Kind;
    use crate::tools::logs::history::members::*;

    fn table(repository: &str, member: &str) -> TableSeen {
        TableSeen {
            repository: repository.to_owned(),
            member: (!member.is_empty()).then(|| member.to_owned()),
            ..TableSeen::default()
        }
    }

    #[track_caller]
    fn case(named: &[&str], tables: &[TableSeen], expected: &str) {
        let mut event = Event::now(Kind::Started, "matlab", 0, OsStr::new("ws17"));
        event.repositories = named.iter().copied().map(str::to_owned).collect();
        event.tables = tables.to_vec();
        assert_eq!(repositories(&event, &NameCache::new()), expected);
    }

    #[test]
    fn each_repository_has_its_member() {
        case(&["disk=1", "net=2,3"], &[], "disk=1 net=2,3");
        case(&["disk=1", "net"], &[table("net", "ws17"), table("disk", "")], "disk=1 net [ws17]");
        let tables = [table("each", "uid 0"), table("each", "uid 0 /opt/a b"), table("each", "gid 0")];
        case(&["each=1", "each=2", "each"], &tables, "each [root]=1 each [root, /opt/a b]=2 each [root]");
    }

    #[test]
    fn nobody_is_named_who_may_not_be_meant() {
        case(&["each=1"], &[table("each", "alpha"), table("each", "beta")], "each=1");
        let shared = TableSeen { shared: true, ..table("each", "alpha") };
        case(&["each=1"], &[shared.clone(), table("each", "beta")], "each [beta]=1");
        case(&["each"], &[shared], "each [alpha]");
        let met = TableSeen { room: Some(1), ..table("each", "alpha") };
        case(&["each"], &[table("each", "beta"), met], "each [beta]");
    }
}
