//! One event of the log: what happened, to which command of which user, and when.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    keeper::outside::Line,
    text::{Show, json},
};
use serde::{Deserialize, Serialize};

/// A hundred years: no wait and no program lasts longer.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// What happened.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The command is about to start.
    Started,
    /// It was refused, by a rule, for lack of one, or because a limit is reached.
    Refused,
    /// It was started although it would have been refused: something is not enforced.
    WouldRefuse,
    /// It waited, and got its turn.
    Waited,
    /// It ended, as its supervisor saw.
    Ended,
    /// A holder was overdue and was to be ended; [`Event::has_left`] tells whether it was.
    Expired,
    /// A holder was to be ended because a user asked for that; [`Event::has_left`] tells whether it was.
    Evicted,
    /// It was refused because the last start was too recent.
    TooSoon,
    /// The use that rungate did not start was measured, and has changed.
    Measured,
}

impl Kind {
    /// As the log writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Refused => "refused",
            Self::WouldRefuse => "would-refuse",
            Self::Waited => "waited",
            Self::Ended => "ended",
            Self::Expired => "expired",
            Self::Evicted => "evicted",
            Self::TooSoon => "too-soon",
            Self::Measured => "measured",
        }
    }

    /// Whether each log has it: a launch was refused, or would have been, or a holder was to be ended.
    pub fn is_notable(self) -> bool {
        matches!(self, Self::Refused | Self::WouldRefuse | Self::TooSoon | Self::Expired | Self::Evicted)
    }
}

/// One event. Fields that do not apply are left out.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Event {
    /// In milliseconds since 1970.
    pub time: u64,
    /// What happened.
    pub event: Kind,
    /// The command as typed, without its arguments; at most [`LONGEST_COMMAND`] bytes of it.
    pub command: String,
    /// How long the command was, in bytes, where the event has only its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<usize>,
    /// The real user id of the caller.
    pub uid: u32,
    /// The process that asked.
    pub pid: i32,
    /// The node name of the host. Events of older versions have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The repositories it is about, each with its slots or, in a refusal, without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<String>,
    /// Those of the slots that other programs of the group had at that moment, in the same form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<String>,
    /// The rules behind them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// For how many seconds it waited, ran or was overdue, as the log says: see [`Event::duration`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// How it ended, or why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The other process: the holder that was ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<i32>,
    /// The real user id of the user who asked for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_uid: Option<u32>,
    /// When it was decided, in microseconds since 1970: while the tables were locked, so that no two
    /// decisions on one table have the same. Like all following fields, only in a log with `replay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<u64>,
    /// When it began to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived: Option<u64>,
    /// Between which moments it ended, if no process saw when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<(u64, u64)>,
    /// The facts of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Box<Circumstances>>,
    /// The repositories as they were at that moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableSeen>,
    /// The use outside rungate from then on, if it was measured: by whom, or which slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Vec<Line>>,
}

/// The status of a holder that had left before any signal was sent.
pub const HAD_LEFT: &str = "had left";

/// The status of a holder whose program had ended, and whose slot was still taken.
pub const FREED: &str = "freed";

/// The status of an end whose program could not be executed.
pub const NOT_EXECUTED: &str = "not executed";

/// No file has a longer name. `--as` can give one that no daemon would take, and the event would be lost.
pub const LONGEST_COMMAND: usize = 255;

/// The longest value of a field, in bytes: a few of them, all escaped, still fit into a datagram.
const LONGEST_VALUE: usize = 2048;

impl Event {
    /// An event of this process, now.
    pub fn now(event: Kind, command: &str, uid: u32, host: &OsStr) -> Self {
        Self {
            time: millis(SystemTime::now()),
            event,
            command: beginning(command, LONGEST_COMMAND).to_owned(),
            cut: (command.len() > LONGEST_COMMAND).then_some(command.len()),
            uid,
            pid: std::process::id().cast_signed(),
            host: host.to_string_lossy().into_owned(),
            repositories: Vec::new(),
            joined: Vec::new(),
            rules: Vec::new(),
            seconds: None,
            status: None,
            holder: None,
            holder_uid: None,
            decided: None,
            arrived: None,
            between: None,
            launch: None,
            tables: Vec::new(),
            outside: None,
        }
    }

    /// The same without what only a replay needs.
    #[must_use]
    pub fn brief(&self) -> Self {
        let Self { time, event, uid, pid, cut, seconds, holder, holder_uid, .. } = *self;
        Self {
            time,
            event,
            command: self.command.clone(),
            cut,
            uid,
            pid,
            host: self.host.clone(),
            repositories: self.repositories.clone(),
            joined: self.joined.clone(),
            rules: self.rules.clone(),
            seconds,
            status: self.status.clone(),
            holder,
            holder_uid,
            decided: None,
            arrived: None,
            between: None,
            launch: None,
            tables: Vec::new(),
            outside: None,
        }
    }

    /// When it happened, in microseconds since 1970, as exactly as the log says.
    pub fn micros(&self) -> u64 {
        self.decided.unwrap_or(self.time.saturating_mul(1000))
    }

    /// Everything in the event is known now.
    pub fn written_now(&mut self) {
        self.time = millis(SystemTime::now());
    }

    /// The latest time at which everything in the event was known, in microseconds since 1970.
    pub fn written(&self) -> u64 {
        self.time.saturating_add(1).saturating_mul(1000)
    }

    /// How long it waited, ran or was overdue; none if the log's value is impossible: users who may append to
    /// it can write any number.
    pub fn duration(&self) -> Option<Duration> {
        let duration = Duration::try_from_secs_f64(self.seconds?).ok()?;
        (duration <= LONGEST).then_some(duration)
    }

    /// Whether the holder to be ended has released its slot. Then the status is the signal that ended it, or
    /// says that it needed none. Otherwise it is the reason why the slot is still held.
    pub fn has_left(&self) -> bool {
        let is_signal = |status: &str| status.starts_with("SIG") && !status.contains(',');
        self.status.as_deref().is_none_or(|status| [HAD_LEFT, FREED].contains(&status) || is_signal(status))
    }

    /// The repositories without their slots.
    pub fn names_of_repositories(&self) -> impl Iterator<Item = &str> {
        self.repositories.iter().map(|repository| repository.split('=').next().unwrap_or(repository))
    }

    /// When it happened.
    pub fn moment(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_millis(self.time)).unwrap_or(UNIX_EPOCH)
    }

    /// The event as named fields, for logs that keep those. A long list ends in `…`.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("EVENT", self.event.name().to_owned()),
            ("COMMAND", self.command.clone()),
            ("UID", self.uid.to_string()),
            ("PID", self.pid.to_string()),
        ];
        if !self.host.is_empty() {
            fields.push(("HOST", self.host.clone()));
        }
        if !self.repositories.is_empty() {
            fields.push(("REPOSITORIES", list(&self.repositories, " ")));
        }
        if !self.rules.is_empty() {
            fields.push(("RULES", list(&self.rules, "; ")));
        }
        if !self.joined.is_empty() {
            fields.push(("JOINED", list(&self.joined, " ")));
        }
        fields.push(("FORMAT", json::FORMAT.to_string()));
        fields.extend(self.seconds.map(|seconds| ("SECONDS", format!("{seconds:.3}"))));
        fields.extend(self.status.clone().map(|status| ("STATUS", status)));
        fields.extend(self.holder.map(|holder| ("HOLDER", holder.to_string())));
        fields.extend(self.holder_uid.map(|uid| ("HOLDER_UID", uid.to_string())));
        fields.extend(self.cut.map(|length| ("CUT", length.to_string())));
        fields.extend(self.decided.map(|moment| ("DECIDED", moment.to_string())));
        fields.extend(self.arrived.map(|moment| ("ARRIVED", moment.to_string())));
        fields.extend(self.between.map(|(from, to)| ("BETWEEN", format!("{from}-{to}"))));
        fields.extend(self.launch.as_deref().and_then(whole).map(|text| ("LAUNCH", text)));
        fields.extend(
            Some(&self.tables)
                .filter(|tables| !tables.is_empty())
                .and_then(whole)
                .map(|text| ("TABLES", text)),
        );
        fields.extend(self.outside.as_ref().and_then(whole).map(|text| ("OUTSIDE", text)));
        for (_, value) in &mut fields {
            if value.len() > LONGEST_VALUE {
                value.truncate(beginning(value, LONGEST_VALUE).len());
                value.push('…');
            }
        }
        fields
    }

    /// The event as one line of text.
    pub fn line(&self) -> String {
        let words: Vec<String> = self
            .fields()
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.to_ascii_lowercase(), quoted(&value)))
            .collect();
        words.join(" ")
    }
}

/// A list as one value: its elements with the separator between them or, if that would read back as other
/// ones, as JSON.
fn list(values: &[String], separator: &str) -> String {
    let text = values.join(separator);
    if read_list(&text, separator) == values { text } else { whole(&values).unwrap_or(text) }
}

/// The elements of a list.
pub(super) fn read_list(text: &str, separator: &str) -> Vec<String> {
    let json = text.starts_with('[').then(|| serde_json::from_str(text).ok()).flatten();
    json.unwrap_or_else(|| text.split(separator).map(str::to_owned).collect())
}

/// A value as JSON; none if it is too long for a field, because half of it could not be read.
fn whole(value: &impl Serialize) -> Option<String> {
    json::line(value).ok().filter(|text| text.len() <= LONGEST_VALUE)
}

fn millis(moment: SystemTime) -> u64 {
    micros(moment) / 1000
}

/// In microseconds since 1970.
pub fn micros(moment: SystemTime) -> u64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A value in quotes where it could be mistaken for two values or two lines.
fn quoted(value: &str) -> String {
    let is_plain = !value.is_empty() && value.chars().all(|c| c.is_ascii_graphic() && c != '"' && c != '=');
    let quoted = || value.replace('\\', r"\\").replace('"', "\\\"");
    if is_plain { value.to_owned() } else { format!("\"{}\"", quoted().shown()) }
}

/// As many whole characters as fit into this many bytes.
fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.get(..end).unwrap_or(text)
}

// The facts in a log from which its launches can be judged again: everything that a decision used, and
// nothing else. Only arguments and variables that a rule names are logged; the others are null.

/// A launch, as judgement sees it.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Circumstances {
    /// The ids of the groups of the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// The same without links, if that is another path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical: Option<String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// The arguments that a rule names; the others are counted, and not logged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<Option<String>>,
    /// The variables that a rule asks about, if they are set; each with its value, where a rule names
    /// that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, Option<String>>,
    /// The longest wait, if the command line gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
}

/// A repository at the moment of a decision.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct TableSeen {
    /// Its name.
    pub repository: String,
    /// The member of the table, if each member has one: `uid 1000`, `gid 100`, or a text. Several are
    /// separated by commas, in older logs by blanks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// How many slots were held, with those of this launch; none if that was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Which slots these were, a moment after the decision: `1-3,5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// How many of the others were kept for others.
    #[serde(default, skip_serializing_if = "is_none")]
    pub kept: u64,
    /// How many of its slots this launch has borrowed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub lent: u64,
    /// The limit for this launch.
    pub limit: u64,
    /// The limit of the repository, if that is higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_of_all: Option<u64>,
    /// For a launch that another table refused: how many slots it would have had here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u64>,
    /// Whether an ancestor's slots were enough.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared: bool,
}

impl TableSeen {
    /// The limit of the repository, as far as it is known.
    pub fn whole_limit(&self) -> u64 {
        self.limit_of_all.unwrap_or(self.limit)
    }

    /// The maximum number of held slots up to the limit, as far as it is known.
    pub fn most_held(&self) -> Option<u64> {
        self.used.or_else(|| self.limit.checked_sub(self.room?)).filter(|_| !self.shared)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use crate::launch::log::event::*;

    #[test]
    fn a_line_stays_one_line() {
        let mut event = Event::now(Kind::Refused, "mat\nlab=\"x\"", 7, OsStr::new("ws17"));
        event.repositories = vec!["seats".to_owned(), "per-user".to_owned()];
        let line = event.line();
        assert!(line.starts_with("event=refused command=\"mat\\nlab=\\\"x\\\"\" uid=7 pid="), "{line}");
        assert!(line.ends_with(" host=ws17 repositories=\"seats per-user\" format=1"), "{line}");
    }

    /// What is not known of a launch is left out.
    #[test]
    fn a_line_has_what_is_known() {
        let mut event = Event::now(Kind::Started, "matlab", 7, OsStr::new(""));
        let begin = format!("event=started command=matlab uid=7 pid={} ", event.pid);
        assert_eq!(event.line(), format!("{begin}format=1"));
        event.repositories = vec!["seats=1".to_owned(), "spare=2".to_owned()];
        (event.rules, event.joined) = (vec!["one".to_owned()], vec!["seats=1".to_owned()]);
        event.seconds = Some(1.5);
        let known = "repositories=\"seats=1 spare=2\" rules=one joined=\"seats=1\" format=1 seconds=1.500";
        assert_eq!(event.line(), format!("{begin}{known}"));
    }

    #[test]
    fn a_duration_that_cannot_be_is_none() {
        let mut event = Event::now(Kind::Waited, "sync", 0, OsStr::new("ws17"));
        for (seconds, duration) in [
            (Some(1.5), Some(Duration::from_millis(1500))),
            (Some(3_162_240_000.0), Some(Duration::from_secs(3_162_240_000))),
            (Some(3_162_240_001.0), None),
            (Some(1e300), None),
            (Some(1e18), None),
            (Some(-1.0), None),
            (Some(f64::NAN), None),
            (None, None),
        ] {
            event.seconds = seconds;
            assert_eq!(event.duration(), duration, "{seconds:?}");
        }
    }

    /// The status of a holder that was to be ended says that its slot is free, or why it is not.
    #[test]
    fn the_status_says_whether_a_holder_has_left() {
        let mut event = Event::now(Kind::Evicted, "sync", 0, OsStr::new("ws17"));
        for (status, has_left) in [
            ("SIGTERM", true),
            ("SIGKILL", true),
            (HAD_LEFT, true),
            (FREED, true),
            ("SIGTERM, left others", false),
            ("survived", false),
            ("not permitted", false),
        ] {
            event.status = Some(status.to_owned());
            assert_eq!(event.has_left(), has_left, "{status}");
        }
        event.status = None;
        assert!(event.has_left(), "it needed no signal");
    }

    /// An event has the time at which it was written.
    #[test]
    fn an_event_that_is_written_is_of_now() {
        let mut event = Event::now(Kind::Ended, "sync", 0, OsStr::new("ws17"));
        let before = event.time;
        event.time = 0;
        event.written_now();
        assert!(event.time >= before, "{}", event.time);
    }

    /// How many slots were held is known if they were counted, or from the room that there was. It is not
    /// known if an ancestor's slots were enough.
    #[test]
    fn how_many_slots_were_held_is_known_from_the_room() {
        let seen = TableSeen { limit: 5, ..TableSeen::default() };
        let counted = TableSeen { used: Some(4), room: Some(2), ..seen.clone() };
        let with_room = TableSeen { room: Some(2), ..seen.clone() };
        assert_eq!((counted.most_held(), with_room.most_held(), seen.most_held()), (Some(4), Some(3), None));
        let more_than_that = TableSeen { room: Some(6), ..seen };
        assert_eq!(more_than_that.most_held(), None);
        assert_eq!(TableSeen { shared: true, ..counted }.most_held(), None);
    }

    #[test]
    fn what_is_quoted_reads_back_and_moves_no_cursor() {
        assert_eq!(quoted("größe"), "\"größe\"");
        assert_eq!(quoted("a\\n b\\"), r#""a\\n b\\""#);
        assert_eq!(quoted("\u{9b}2J\u{202e}"), r#""\u{9b}2J\u{202e}""#);
    }

    #[test]
    fn a_command_that_no_daemon_would_take_is_cut() {
        let event = Event::now(Kind::Refused, &"ü".repeat(60_000), 7, OsStr::new("ws17"));
        assert_eq!((event.command.as_str(), event.cut), ("ü".repeat(127).as_str(), Some(120_000)));
        assert!(event.line().ends_with(" cut=120000"), "{}", event.line());
        for (length, cut) in [(255, None), (256, Some(256))] {
            let event = Event::now(Kind::Refused, &"m".repeat(length), 7, OsStr::new("ws17"));
            assert_eq!((event.command.len(), event.cut), (255, cut));
        }
    }

    #[test]
    fn a_list_that_no_daemon_would_take_is_cut() {
        let mut event = Event::now(Kind::Started, "matlab", 7, OsStr::new("ws17"));
        event.repositories = vec!["\u{1b}".repeat(100_000)];
        event.rules = event.repositories.clone();
        assert!(event.line().len() < 30_000);
        let mut told = |length: usize| {
            event.rules = vec!["r".repeat(length)];
            let mut fields = event.fields().into_iter();
            fields.find_map(|(name, value)| (name == "RULES").then_some(value)).unwrap_or_default()
        };
        assert_eq!(told(2048), "r".repeat(2048));
        assert_eq!(told(2049), format!("{}…", "r".repeat(2048)));
    }

    /// The facts of a decision that are too long for a field are left out, because a part of them could not
    /// be read.
    #[test]
    fn facts_are_told_as_a_whole_or_not_at_all() {
        let mut event = Event::now(Kind::Started, "matlab", 7, OsStr::new("ws17"));
        let mut is_told = |length: usize| {
            let arguments = vec![Some("a".repeat(length))];
            event.launch = Some(Box::new(Circumstances { arguments, ..Circumstances::default() }));
            event.fields().iter().any(|(name, _)| *name == "LAUNCH")
        };
        assert_eq!((is_told(10), is_told(3000)), (true, false));
    }

    #[test]
    fn what_is_written_as_json_reads_back() {
        let mut event = Event::now(Kind::TooSoon, "sync", 0, OsStr::new("ws17"));
        event.seconds = Some(1.5);
        let text = serde_json::to_string(&event).expect("it is plain data");
        assert!(text.contains("\"event\":\"too-soon\""), "{text}");
        assert_eq!(serde_json::from_str::<Event>(&text).expect("it reads back"), event);
    }
}
