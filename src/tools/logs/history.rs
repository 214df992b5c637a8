//! `rungate history`: the events of logs, as a table or as JSON; past ones, or each as it is logged.

use std::mem;

use super::reading::{self, Covered, Filter, Logs};
use crate::{
    cli::HistoryArguments,
    launch::{
        Situation,
        log::event::{Event, TableSeen},
    },
    sys::NameCache,
    text::{Clock, Error, ExitStatus, Numbered, json, print, stream, table::Table, visible, width},
};

/// How many bytes of JSON are written at once.
const PIECE: usize = 1 << 16;

/// Prints the events of logs.
pub(crate) fn run(arguments: &HistoryArguments, situation: &Situation) -> Result<u8, Error> {
    let names = NameCache::new();
    let filter = Filter::of(arguments, move |event| {
        titles(event, &names).into_iter().map(|(title, _)| visible(title)).collect()
    })?;
    if arguments.follow {
        return follow(arguments, situation, filter);
    }
    let logs = Logs::of(situation, &arguments.files, &filter)?;
    if arguments.json {
        return print_lines(logs, filter);
    }
    let is_open = filter.is_open();
    let mut events = Vec::new();
    let covered = logs.each(filter, |event| {
        events.push(event);
        Ok(None)
    })?;
    let first = events.iter().map(|event| event.time).min();
    tell(&covered, first);
    if events.is_empty() {
        let what = if is_open { "no events" } else { "no matching event" };
        stream::complain(&format!("rungate: the log has {what}"));
    }
    print(&table(&events))
}

/// Reports the rotated files that were read, and how far back they go.
fn tell(covered: &Covered, first: Option<u64>) {
    if let Some(text) = covered.to_text() {
        let since = first.map(|millis| std::time::UNIX_EPOCH + std::time::Duration::from_millis(millis));
        let since = since.map(|moment| format!(", since {}", Clock::now().day_and_time(moment)));
        stream::complain(&format!("rungate: {text}{}", since.unwrap_or_default()));
    }
}

const HEADINGS: [&str; 7] = ["TIME", "EVENT", "USER", ">PID", "COMMAND", ">SECONDS", "DETAILS"];

fn table(events: &[Event]) -> String {
    if events.is_empty() {
        return String::new();
    }
    let (clock, names) = (Clock::now(), NameCache::new());
    let mut table = Table::new(&HEADINGS);
    for event in events {
        table.row(row(event, &clock, &names));
    }
    table.render()
}

fn row(event: &Event, clock: &Clock, names: &NameCache) -> [String; 7] {
    let details: Vec<String> = [repositories(event, names)]
        .into_iter()
        .chain(event.status.clone())
        .chain(event.holder.map(|holder| match event.holder_uid {
            Some(uid) => format!("PID {holder} of {}", names.user(uid)),
            None => format!("PID {holder}"),
        }))
        .chain(event.outside.as_ref().map(|lines| {
            let slots: u64 = lines.iter().map(|line| u64::from(line.amount)).sum();
            format!("{slots} in use outside rungate")
        }))
        .chain(event.cut.map(|length| format!("a command of {length} bytes, cut")))
        .filter(|detail| !detail.is_empty())
        .collect();
    [
        clock.short(event.moment()),
        event.event.name().to_owned(),
        visible(names.user(event.uid)),
        event.pid.to_string(),
        visible(&event.command),
        event.duration().map_or_else(String::new, |duration| format!("{:.1}", duration.as_secs_f64())),
        visible(details.join(", ")),
    ]
}

/// Events as they are logged: each as a row below headings, or as a line of JSON.
fn follow(arguments: &HistoryArguments, situation: &Situation, filter: Filter) -> Result<u8, Error> {
    let headings = line(&HEADINGS.map(|heading| heading.trim_start_matches('>').to_owned()));
    let mut text = if arguments.json { String::new() } else { headings };
    let names = NameCache::new();
    let mut show = |events: &[Event]| {
        let clock = Clock::now();
        for event in events {
            if arguments.json {
                text.extend(json::line(&Numbered::of(event)).ok().map(|line| line + "\n"));
            } else {
                text += &line(&row(event, &clock, &names));
            }
        }
        let shown = stream::print_part(&mem::take(&mut text));
        shown.map_err(|error| Error::new(ExitStatus::System, error.to_string()))
    };
    reading::follow(situation, &arguments.files, filter, &mut show)?;
    Ok(ExitStatus::Success as u8)
}

/// A row whose columns are aligned without knowing the following rows.
fn line(row: &[String; 7]) -> String {
    const WIDTHS: [usize; 7] = [6, 12, 8, 7, 12, 7, 0];
    let cell = |(number, (text, columns)): (usize, (&String, usize))| {
        let gap = columns.saturating_sub(width(text));
        if HEADINGS[number].starts_with('>') {
            format!("{:gap$}{text}", "")
        } else {
            format!("{text}{:gap$}", "")
        }
    };
    let cells: Vec<String> = row.iter().zip(WIDTHS).enumerate().map(cell).collect();
    format!("{}\n", cells.join(" ").trim_end())
}

/// Each event as a line of JSON, as they come.
fn print_lines(logs: Logs, filter: Filter) -> Result<u8, Error> {
    let mut piece = String::new();
    let mut first: Option<u64> = None;
    let covered = logs.each(filter, |event| {
        first = Some(first.map_or(event.time, |first| first.min(event.time)));
        piece.extend(json::line(&Numbered::of(&event)).ok().map(|line| line + "\n"));
        if piece.len() >= PIECE {
            print(&piece)?;
            piece.clear();
        }
        Ok(Some(event))
    })?;
    tell(&covered, first);
    print(&piece)
}

// The repositories of an event with their members, as listings show them. A log with `replay` has the member
// of each table; other logs have only the names of repositories.

/// The subject of an event: `matlab=7 matlab-per-user [ann]=3`.
fn repositories(event: &Event, names: &NameCache) -> String {
    let shown: Vec<String> =
        titles(event, names).into_iter().map(|(title, slots)| format!("{title}{slots}")).collect();
    shown.join(" ")
}

/// The same one by one, each with its slots.
fn titles<'a>(event: &'a Event, names: &NameCache) -> Vec<(String, &'a str)> {
    let mut seen = Vec::new();
    let mut shown = Vec::new();
    for repository in &event.repositories {
        let (name, slots) = repository.split_at(repository.find('=').unwrap_or(repository.len()));
        let member = member_of(event, name, seen.iter().filter(|known| **known == name).count());
        let member = member.map_or_else(String::new, |member| format!(" [{}]", named(member, names)));
        shown.push((format!("{name}{member}"), slots));
        seen.push(name);
    }
    shown
}

/// The member of the table that the event names at this position. Unknown if the event has more tables than
/// it names, of several members.
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

/// `uid 4711, /opt/lab` as `ann, /opt/lab`.
fn named(member: &str, names: &NameCache) -> String {
    member.split(", ").map(|part| part_named(part, names)).collect::<Vec<_>>().join(", ")
}

/// Older logs have only blanks between several, `uid 4711 /opt/lab`: where one text ends is unknown.
fn part_named(member: &str, names: &NameCache) -> String {
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
    use crate::tools::logs::history::*;

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
        let tables = [table("each", "uid 0, gid 0, /opt/a b"), table("each", r"a\, b, c, uid 0")];
        case(&["each=1", "each=2"], &tables, r"each [root, root, /opt/a b]=1 each [a\, b, c, root]=2");
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
