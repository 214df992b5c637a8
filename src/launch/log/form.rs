//! The forms in which events are read: a line of JSON, as in the log file; an entry of the journal, as
//! `journalctl -o json --all` prints it; and a line of syslog's file. A line that is not an event is not an
//! error, because other programs may write there too.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use serde::{
    Deserialize,
    de::{
        IntoDeserializer,
        value::{Error, StrDeserializer},
    },
};

use super::event::{Event, Kind, read_list};
use crate::text::{Clock, FORMAT, json};

/// The kind of a log line.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    Event(Event),
    /// A line of another program, like most lines of syslog's file; or an event that only a newer version
    /// knows.
    Foreign,
    Unknown,
}

impl Line {
    /// What the line is, if it could be read; otherwise its format shows where it comes from.
    fn of(event: Option<Event>, format: impl FnOnce() -> Option<u8>) -> Self {
        match event {
            Some(event) => Self::Event(event),
            None if format().is_some_and(|format| format > FORMAT) => Self::Foreign,
            None => Self::Unknown,
        }
    }
}

/// The text before the process id in our lines of syslog's file.
const TAG: &str = " rungate[";

/// No launch has more repositories. Each of them is compared with the others, and users who may append to a
/// log can write any number.
const MOST_REPOSITORIES: usize = 1024;

/// Reads a line, without its newline.
pub(crate) fn read(line: &[u8], clock: &Clock) -> Line {
    match std::str::from_utf8(line) {
        Ok(line) => read_text(line, clock),
        Err(_) if time_of_syslog(&String::from_utf8_lossy(line), clock).is_some() => Line::Unknown,
        Err(_) => believed(after_other(line).map_or(Line::Unknown, Line::Event)),
    }
}

fn believed(line: Line) -> Line {
    let lengths = |event: &Event| [event.repositories.len(), event.joined.len(), event.tables.len()];
    match line {
        Line::Event(event) if lengths(&event).into_iter().any(|length| length > MOST_REPOSITORIES) => {
            Line::Unknown
        }
        line => line,
    }
}

/// How a line of JSON begins. Within a string of one, the quotation marks are escaped.
const BEGINNING: &[u8] = b"{\"format\":";

/// The event behind other bytes without a newline. On a full disk, a write ends anywhere, and users may
/// append anything; the next event continues that line. The writers cannot prevent this, because they append
/// at the same time. It is not for lines of syslog, because users can write such text there.
fn after_other(line: &[u8]) -> Option<Event> {
    let at = line.windows(BEGINNING.len()).rposition(|bytes| bytes == BEGINNING)?;
    serde_json::from_slice(line.get(at..)?).ok()
}

/// The same for valid text.
pub(crate) fn read_text(line: &str, clock: &Clock) -> Line {
    believed(read_any(line, clock))
}

fn read_any(line: &str, clock: &Clock) -> Line {
    if line.starts_with('{') {
        return match serde_json::from_str(line) {
            Ok(event) => Line::Event(event),
            Err(_) => of_journal(line).unwrap_or_else(|| {
                Line::of(after_other(line.as_bytes()), || json::format_of(line.as_bytes()))
            }),
        };
    }
    let Some(time) = time_of_syslog(line, clock) else {
        return after_other(line.as_bytes()).map_or(Line::Unknown, Line::Event);
    };
    let Some((_, ours)) = line.split_once(TAG) else { return Line::Foreign };
    ours.split_once("]: ").map_or(Line::Unknown, |(_, message)| of_message(message, time))
}

/// An entry of the journal.
#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "MESSAGE")]
    message: String,
    /// In microseconds since 1970.
    #[serde(rename = "__REALTIME_TIMESTAMP")]
    moment: String,
    /// The sender, from the kernel by the journal.
    #[serde(rename = "_UID")]
    sender: Option<String>,
}

/// Only root can write about others.
fn of_journal(line: &str) -> Option<Line> {
    let entry: Entry = serde_json::from_str(line).ok()?;
    let line = of_message(&entry.message, entry.moment.parse::<u64>().ok()? / 1000);
    let Line::Event(event) = &line else { return Some(line) };
    let is_theirs = entry.sender.is_none_or(|uid| uid == "0" || uid == event.uid.to_string());
    Some(if is_theirs { line } else { Line::Unknown })
}

/// The moment at the start of a line, in milliseconds since 1970: RFC 3339, or the older form without a year.
fn time_of_syslog(line: &str, clock: &Clock) -> Option<u64> {
    let (first, rest) = line.split_once(' ')?;
    let moment = match first.parse() {
        Ok(moment) => moment,
        Err(_) => {
            let (day, rest) = rest.trim_start().split_once(' ')?;
            clock.read_without_year(first, day, rest.split_once(' ')?.0)?
        }
    };
    u64::try_from(moment.as_millisecond()).ok()
}

/// The event of a line as [`Event::line`] makes it.
fn of_message(message: &str, time: u64) -> Line {
    let mut format = None;
    let event = read_message(message, time, &mut format);
    Line::of(event, || format)
}

fn read_message(message: &str, time: u64, format: &mut Option<u8>) -> Option<Event> {
    let mut words = Words(message);
    let (mut event, mut command, mut uid, mut pid) = (None, None, None, None);
    let mut host = String::new();
    let (mut repositories, mut joined, mut rules) = (Vec::new(), Vec::new(), Vec::new());
    let (mut seconds, mut status, mut cut) = (None, None, None);
    let (mut holder, mut holder_uid) = (None, None);
    let (mut decided, mut arrived, mut between) = (None, None, None);
    let (mut launch, mut tables, mut outside) = (None, Vec::new(), None);
    while let Some((name, value)) = words.next_word()? {
        match name {
            "format" => *format = value.parse().ok(),
            "event" => event = kind(&value),
            "command" => command = Some(value),
            "uid" => uid = value.parse().ok(),
            "pid" => pid = value.parse().ok(),
            "host" => host = value,
            "repositories" => repositories = read_list(&value, " "),
            "joined" => joined = read_list(&value, " "),
            "rules" => rules = read_list(&value, "; "),
            "seconds" => seconds = value.parse().ok(),
            "status" => status = Some(value),
            "holder" => holder = value.parse().ok(),
            "holder_uid" => holder_uid = value.parse().ok(),
            "cut" => cut = value.parse().ok(),
            "decided" => decided = value.parse().ok(),
            "arrived" => arrived = value.parse().ok(),
            "between" => between = bounds(&value),
            "launch" => launch = serde_json::from_str(&value).ok(),
            "tables" => tables = serde_json::from_str(&value).unwrap_or_default(),
            "outside" => outside = serde_json::from_str(&value).ok(),
            _ => {}
        }
    }
    Some(Event {
        time,
        event: event?,
        command: command?,
        cut,
        uid: uid?,
        pid: pid?,
        host,
        repositories,
        joined,
        rules,
        seconds,
        status,
        holder,
        holder_uid,
        decided,
        arrived,
        between,
        launch,
        tables,
        outside,
    })
}

fn bounds(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

fn kind(name: &str) -> Option<Kind> {
    let name: StrDeserializer<'_, Error> = name.into_deserializer();
    Kind::deserialize(name).ok()
}

/// The words `name=value` of a line.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    /// The next word; none at the end; an error if there is something else.
    #[expect(clippy::option_option, reason = "what is wrong and what is over are two things")]
    fn next_word(&mut self) -> Option<Option<(&'a str, String)>> {
        let text = self.0.trim_start_matches(' ');
        if text.is_empty() {
            return Some(None);
        }
        let (name, value) = text.split_once('=')?;
        let (value, rest) = match value.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (value, rest) = value.split_once(' ').unwrap_or((value, ""));
                (value.to_owned(), rest)
            }
        };
        self.0 = rest;
        Some(Some((name, value)))
    }
}

/// The text up to the closing quote, and what follows; the opening quote was read already.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text.chars();
    loop {
        match rest.next()? {
            '"' => return Some((value, rest.as_str())),
            '\\' => value.push(match rest.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'u' => {
                    let (number, after) = rest.as_str().strip_prefix('{')?.split_once('}')?;
                    rest = after.chars();
                    char::from_u32(u32::from_str_radix(number, 16).ok()?)?
                }
                itself => itself,
            }),
            plain => value.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use crate::{
        launch::log::{
            event::{Circumstances, TableSeen},
            form::*,
        },
        text::Numbered,
    };

    fn event() -> Event {
        let mut event = Event::now(Kind::WouldRefuse, "a \\ \"b\"\n\u{9b}ü=", 7, OsStr::new("ws17"));
        event.repositories = vec!["seats=1".to_owned(), "disk=2,3".to_owned()];
        event.joined = vec!["seats=1".to_owned()];
        event.rules = vec!["one rule".to_owned(), "another".to_owned()];
        (event.seconds, event.status, event.holder) = (Some(2.5), Some("timed out".to_owned()), Some(9));
        (event.time, event.holder_uid) = (1_790_000_000_000, Some(8));
        (event.decided, event.arrived) = (Some(1_790_000_000_000_123), Some(7));
        event.between = Some((1, 2));
        let told =
            Circumstances { arguments: vec![None, Some("a \"b\"\\".to_owned())], ..Circumstances::default() };
        event.launch = Some(Box::new(told));
        event.tables = vec![TableSeen { repository: "seats".to_owned(), limit: 2, ..TableSeen::default() }];
        event.outside = serde_json::from_str(r#"[{"user":"ann","amount":2}]"#).ok();
        assert!(event.outside.is_some());
        event
    }

    /// Users who may append to a log can write any number of repositories, and each is compared with each.
    #[test]
    fn an_event_of_too_many_repositories_is_none() {
        let fields: [fn(&mut Event, usize); 3] = [
            |event, many| event.repositories = vec!["seats=1".to_owned(); many],
            |event, many| event.joined = vec!["seats=1".to_owned(); many],
            |event, many| event.tables = vec![TableSeen::default(); many],
        ];
        for set in fields {
            for (many, is_event) in [(MOST_REPOSITORIES, true), (MOST_REPOSITORIES + 1, false)] {
                let mut event = event();
                set(&mut event, many);
                let line = serde_json::to_string(&Numbered::of(&event)).expect("it is plain data");
                for line in [line.as_bytes(), &[BEGINNING, b"1,\"x\xff", line.as_bytes()].concat()] {
                    assert_eq!(matches!(read(line, &Clock::now()), Line::Event(_)), is_event, "{many}");
                }
            }
        }
    }

    #[test]
    fn what_goes_to_syslog_comes_back() {
        let mut event = event();
        // Names that have what separates names, or begin as a list does.
        event.rules = ["ten at once; three for each user", "another"].map(str::to_owned).to_vec();
        event.repositories = vec!["seats [ann]".to_owned()];
        event.joined = vec!["[\"seats\"]".to_owned()];
        let read =
            |stamp: &str| read(format!("{stamp} rungate[7]: {}", event.line()).as_bytes(), &Clock::now());
        assert_eq!(read("2026-09-21T14:13:20.000+00:00 ws17"), Line::Event(event.clone()));
        let Line::Event(older) = read("Sep 21 14:13:20 ws17") else { panic!("it is an event") };
        assert_eq!(Event { time: event.time, ..older }, event);
    }

    #[test]
    fn what_goes_to_the_journal_comes_back_from_whom_it_was() {
        let event = event();
        let entry = |uid: &str| {
            let entry = serde_json::json!({
                "MESSAGE": event.line(), "_UID": uid, "__REALTIME_TIMESTAMP": "1790000000000123",
            });
            read(entry.to_string().as_bytes(), &Clock::now())
        };
        assert_eq!(entry("7"), Line::Event(event.clone()));
        assert_eq!(entry("0"), Line::Event(event.clone()));
        assert_eq!(entry("8"), Line::Unknown, "somebody else wrote it");
    }

    /// On a full disk a line ends anywhere, and the next event is appended to it; users may append anything.
    #[test]
    fn an_event_behind_anything_else_is_read() {
        let event = event();
        let line = json::line(&Numbered::of(&event)).expect("JSON").into_bytes();
        let behind = |before: &[u8]| read(&[before, &line].concat(), &Clock::now());
        for length in 0..=line.len() {
            assert_eq!(behind(&line[..length]), Line::Event(event.clone()), "{length} bytes of another");
        }
        for other in [&b"x"[..], b"{\"for us\":", b"{\"format\"=", b"\xff", b"{}", &[0; 300]] {
            assert_eq!(behind(other), Line::Event(event.clone()), "{other:?}");
        }
        // Not in what another program wrote to syslog.
        assert_eq!(behind(b"2026-09-21T14:13:20Z ws17 logger[9]: "), Line::Foreign);
        assert_eq!(behind(b"2026-09-21T14:13:20Z ws17 logger[9]: \xff"), Line::Unknown);
    }

    #[test]
    fn what_is_no_event_of_ours_is_none() {
        let case =
            |line: &str, expected: Line| assert_eq!(read(line.as_bytes(), &Clock::now()), expected, "{line}");
        case("Nov  2 14:13:20 ws17 cron[9]: (root) CMD (true)", Line::Foreign);
        case("2026-09-21T14:13:20Z ws17 cron[9]: (root) CMD (true)", Line::Foreign);
        for line in ["", "{", "{}", "not JSON", "Nov 31 14:13:20 ws17 cron[9]: x", "\u{fc}"] {
            case(line, Line::Unknown);
        }
        let ours =
            |message: &str| case(&format!("2026-09-21T14:13:20Z ws17 rungate[9]: {message}"), Line::Unknown);
        ours("event=started command=\"sync");
        ours("event=started command=sync");
        ours("event=burnt command=sync uid=0 pid=7");
        ours("event=burnt command=sync uid=0 pid=7 format=1");
        ours("event=started command=\"\\u{110000}\" uid=0 pid=7");
    }
    /// A log may be of a newer version: on a host that was upgraded before, or before this one was set back.
    #[test]
    fn an_event_that_only_a_newer_version_knows_is_passed_over() {
        let case = |line: &str| assert_eq!(read(line.as_bytes(), &Clock::now()), Line::Foreign, "{line}");
        case(r#"{"format":2,"time":1790000000000,"event":"burnt","command":"sync","uid":0,"pid":7}"#);
        case(r#"{"format":2,"when":"2026-09-21T14:13:20.000Z"}"#);
        case("2026-09-21T14:13:20Z ws17 rungate[9]: event=burnt command=sync uid=0 pid=7 format=2");
        case(
            r#"{"MESSAGE":"event=burnt command=sync uid=0 pid=7 format=2","__REALTIME_TIMESTAMP":"1790000000000123"}"#,
        );
    }
}
