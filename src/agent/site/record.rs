//! The values of the keys, as JSON, for people and for the agent that wrote them. For other hosts only the
//! existence of a key counts.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::Range;
use crate::{
    agent::{
        Fatal,
        judge::shortened,
        ledger::state::{SavedHolding, State, at_millis, in_millis},
    },
    judge::terms::{Hold, table_of_site},
    keeper::{EvictionOutcome, Holder, UnverifiedTarget, WaitingProcess},
    sys::{Signal, process},
    text::{Numbered, json},
};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};

/// How an agent recognizes its own keys: the boot of its host, and a number. The name of the host may change,
/// and another host may have the same; the boot id is that of the kernel, which containers share. So each
/// agent draws a random number, and keeps it in its state directory as long as its holders: until the next
/// boot.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub(super) struct AgentId(String);

impl AgentId {
    /// The number of this state directory; a new one if there is none.
    pub(super) fn of(state: &State, boot: &str) -> Result<Self, Fatal> {
        let number = state.identity()?;
        Ok(Self(format!("{boot}.{number:016x}")))
    }

    /// Whether both are of one boot of one kernel.
    pub(super) fn is_of_boot_of(&self, other: &Self) -> bool {
        let boot = |id: &Self| id.0.split_once('.').map(|(boot, _)| boot.to_owned());
        boot(self).is_some_and(|own| boot(other) == Some(own))
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Who holds a slot.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct SlotRecord {
    #[serde(deserialize_with = "short")]
    pub(super) host: String,
    pub(super) agent: AgentId,
    pub(super) pid: i32,
    /// When the process started: clock ticks since boot.
    pub(super) start: u64,
    pub(super) uid: u32,
    pub(super) hold: Hold,
    #[serde(deserialize_with = "short")]
    pub(super) command: String,
    #[serde(deserialize_with = "short")]
    pub(super) rule: String,
    /// Which of the agent's admissions it was: nanoseconds since boot.
    pub(super) launch: u64,
    /// In milliseconds since 1970.
    pub(super) since: u64,
    /// How long the slot stays taken after the end of the program, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) linger: u64,
    /// Until when it stays taken, in milliseconds since 1970: the program has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lingers_until: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl SlotRecord {
    /// The same as a holder; its process is on another host.
    pub(super) fn holder(&self) -> Holder {
        Holder {
            slots: (0, 0),
            pid: Some(self.pid),
            keeper: None,
            uid: Some(self.uid),
            host: Some(self.host.clone()),
            since: at_millis(self.since),
            taken: None,
            hold: Some(self.hold),
            command: Some(format!("{}{}", self.command, if self.has_ended() { " (ended)" } else { "" })),
            rule: Some(self.rule.clone()),
            lingers_until: self.lingers_until.and_then(at_millis),
            others: Vec::new(),
        }
    }

    /// Whether the program has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.lingers_until.is_some()
    }

    /// For a launch with slots of this table, or one that will get some. Its host has its name at the site,
    /// even if it was renamed.
    pub(super) fn of(saved: &SavedHolding, table: &str, host: &str, agent: &AgentId, launch: u64) -> Self {
        let linger = saved.on_site(table).and_then(|of| of.linger).unwrap_or_default();
        Self {
            host: host.to_owned(),
            agent: agent.clone(),
            pid: saved.pid,
            start: saved.start,
            uid: saved.uid,
            hold: saved.hold,
            command: saved.command.clone(),
            rule: saved.rule_on(table).to_owned(),
            launch,
            since: saved.since,
            linger: u64::try_from(linger.as_millis()).unwrap_or(u64::MAX),
            lingers_until: saved.lingers_on(&table_of_site(table)).map(at_boot),
        }
    }

    /// Whether both are of one process.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let who = |record: &Self| (record.agent.clone(), record.pid, record.start);
        self.host == other.host && who(self) == who(other)
    }

    /// Whether this agent has written it, for this process.
    pub(super) fn is_of(&self, agent: &AgentId, saved: &SavedHolding) -> bool {
        self.agent == *agent && self.pid == saved.pid && self.start == saved.start
    }
}

/// A time since boot, in milliseconds since 1970.
fn at_boot(until: Duration) -> u64 {
    let left = until.saturating_sub(process::since_boot().unwrap_or(until));
    in_millis(SystemTime::now().checked_add(left).unwrap_or(UNIX_EPOCH))
}

/// A waiting launch.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct TicketRecord {
    #[serde(deserialize_with = "short")]
    pub(super) host: String,
    pub(super) agent: AgentId,
    pub(super) pid: i32,
    pub(super) uid: u32,
    #[serde(deserialize_with = "short")]
    pub(super) command: String,
    /// Its class: the policy of its limit, and how many slots there are for it.
    pub(super) classes: Vec<(u16, u64)>,
    /// Whether it does not respond to its agent, and is passed over.
    pub(super) is_away: bool,
    /// How many slots it wants.
    #[serde(default)]
    pub(super) wants: Option<u64>,
    /// When it began to wait, in milliseconds since 1970.
    #[serde(default)]
    pub(super) since: Option<u64>,
}

impl TicketRecord {
    /// The same as a waiter; its process is on another host.
    pub(super) fn process(&self) -> WaitingProcess {
        WaitingProcess {
            pid: Some(self.pid),
            host: Some(self.host.as_str().into()),
            user: Some(self.uid),
            command: Some(self.command.as_str().into()),
            since: self.since.and_then(at_millis),
        }
    }
}

/// Notice of a holder on another host: it is overdue and keeps a launch waiting, or a user asks for its end.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct NoticeRecord {
    /// The host of the launch, or of the user.
    pub(super) host: String,
    pub(super) agent: AgentId,
    /// The user who requests its end, as that host's agent confirms; none for an overdue holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<u32>,
    /// The holder, as the slot's record has it.
    pub(super) holder: SlotRecord,
    /// The reply of the holder's host; none yet if there is none.
    #[serde(default)]
    pub(super) reply: Option<Reply>,
}

impl NoticeRecord {
    /// Whether the holder is ended regardless of its age: at the request of root, or of its own user.
    pub(super) fn ends_at_request(&self) -> bool {
        self.by.is_some_and(|uid| uid == 0 || uid == self.holder.uid)
    }
}

/// A host's reply about a holder of its own.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Reply {
    /// It is about to get this signal.
    Ending(i32),
    NotOverdue,
    /// It has ended, and others that cannot be ended keep the slot.
    LeftOthers(i32),
    NotPermitted,
    Privileged,
    OutOfSight,
    InTransit,
    Survived,
}

impl Reply {
    /// For a holder that was ended and still has its slot.
    pub(super) fn of(fate: EvictionOutcome) -> Self {
        match fate {
            EvictionOutcome::Ended(signal, _) => Self::Ending(signal as i32),
            EvictionOutcome::LeftOthers(signal) => Self::LeftOthers(signal as i32),
            EvictionOutcome::NotPermitted => Self::NotPermitted,
            EvictionOutcome::NotProved(UnverifiedTarget::Privileged) => Self::Privileged,
            EvictionOutcome::NotProved(UnverifiedTarget::InTransit) => Self::InTransit,
            EvictionOutcome::NotProved(
                UnverifiedTarget::OutOfSight | UnverifiedTarget::Gone | UnverifiedTarget::NoGuardian,
            ) => Self::OutOfSight,
            EvictionOutcome::Survived => Self::Survived,
            EvictionOutcome::HadLeft
            | EvictionOutcome::Noticed
            | EvictionOutcome::NotOverdueThere
            | EvictionOutcome::Freed => Self::NotOverdue,
        }
    }

    /// The report while the holder has its slot.
    pub(super) fn fate(self) -> EvictionOutcome {
        match self {
            Self::Ending(_) => EvictionOutcome::Noticed,
            Self::NotOverdue => EvictionOutcome::NotOverdueThere,
            Self::LeftOthers(signal) => {
                Signal::try_from(signal).map_or(EvictionOutcome::NotPermitted, EvictionOutcome::LeftOthers)
            }
            Self::NotPermitted => EvictionOutcome::NotPermitted,
            Self::Privileged => EvictionOutcome::NotProved(UnverifiedTarget::Privileged),
            Self::InTransit => EvictionOutcome::NotProved(UnverifiedTarget::InTransit),
            Self::OutOfSight => EvictionOutcome::NotProved(UnverifiedTarget::OutOfSight),
            Self::Survived => EvictionOutcome::Survived,
        }
    }

    /// Whether nothing more will be done.
    pub(super) fn is_final(self) -> bool {
        !matches!(self, Self::Ending(_) | Self::NotOverdue)
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct HostRecord {
    pub(super) agent: AgentId,
    pub(super) version: String,
    /// How long it may be silent, in milliseconds.
    pub(super) ttl: u64,
    /// The settings of its policy for each repository of the site, a line for each key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) repositories: BTreeMap<String, String>,
    /// The revision of the key, which its value does not contain.
    #[serde(skip)]
    pub(super) lease: i64,
}

/// The etcd that the tables belong to.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct ClusterRecord {
    /// Its cluster id; empty while it is in doubt whether the tables are complete.
    pub(super) cluster: String,
}

/// Text for people. Another host has written it, so it is cut to the maximum length of a name.
fn short<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(shortened(String::deserialize(deserializer)?.as_ref()))
}

/// A value as text, with the number of its format.
pub(super) fn bytes(record: &impl Serialize) -> Vec<u8> {
    // Every record can be serialized.
    serde_json::to_vec(&Numbered::of(record)).unwrap_or_default()
}

/// A record, if a value is one.
pub(super) fn read<T: DeserializeOwned>(value: &[u8]) -> Option<T> {
    json::read(value)
}

// The keys below the prefix: what each means, and back. Numbers are written so that they sort as text.

/// The meaning of a key.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Key {
    /// `s/TABLE/SLOT`: a slot that is held.
    Slot(String, u64),
    /// `w/TABLE/NUMBER`: a launch in the queue.
    Ticket(String, u64),
    /// `e/TABLE/SLOT`: notice that the holder of the slot is overdue, and blocks a launch.
    Notice(String, u64),
    /// `t/TABLE`: when it was last used.
    Stamps(String),
    /// `h/HOST`: a host that is present, under its lease.
    Host(String),
    /// `g/HOST`: when that was last written, without a lease. It distinguishes one absence of the host from
    /// the next.
    Written(String),
    /// `c/id`: the etcd that the tables belong to. A restored backup has that of another one.
    Cluster,
}

/// Where all keys are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) fn below(prefix: &str) -> Self {
        Self { prefix: format!("{}/", prefix.trim_end_matches('/')) }
    }

    /// The prefix of all keys.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A key as etcd has it.
    pub(super) fn name(&self, key: &Key) -> String {
        let prefix = &self.prefix;
        match key {
            Key::Slot(table, slot) => format!("{prefix}s/{table}/{slot:07}"),
            Key::Ticket(table, number) => format!("{prefix}w/{table}/{number:016x}"),
            Key::Notice(table, slot) => format!("{prefix}e/{table}/{slot:07}"),
            Key::Stamps(table) => format!("{prefix}t/{table}"),
            Key::Host(host) => format!("{prefix}h/{host}"),
            Key::Written(host) => format!("{prefix}g/{host}"),
            Key::Cluster => format!("{prefix}c/id"),
        }
    }

    /// The meaning of a key; none if it is none of these, or is spelt differently, such as a second key for
    /// the same slot.
    pub(super) fn parse(&self, name: &str) -> Option<Key> {
        self.meant(name).filter(|key| self.name(key) == name)
    }

    fn meant(&self, name: &str) -> Option<Key> {
        let (kind, rest) = name.strip_prefix(&self.prefix)?.split_once('/')?;
        let numbered = |radix| {
            let (table, number) = rest.rsplit_once('/')?;
            Some((table.to_owned(), u64::from_str_radix(number, radix).ok()?))
        };
        Some(match kind {
            "s" => numbered(10).map(|(table, slot)| Key::Slot(table, slot))?,
            "w" => numbered(16).map(|(table, number)| Key::Ticket(table, number))?,
            "e" => numbered(10).map(|(table, slot)| Key::Notice(table, slot))?,
            "t" => Key::Stamps(rest.to_owned()),
            "h" => Key::Host(rest.to_owned()),
            "g" => Key::Written(rest.to_owned()),
            "c" if rest == "id" => Key::Cluster,
            _ => return None,
        })
    }

    pub(super) fn all(&self) -> Range {
        Range::below(&self.prefix)
    }

    pub(super) fn slots(&self, table: &str) -> Range {
        Range::below(format!("{}s/{table}/", self.prefix))
    }

    /// The slots of a table above this one.
    pub(super) fn slots_above(&self, table: &str, slot: u64) -> Range {
        let first = self.name(&Key::Slot(table.to_owned(), slot.saturating_add(1)));
        Range { from: first, ..self.slots(table) }
    }

    pub(super) fn hosts(&self) -> Range {
        Range::below(format!("{}h/", self.prefix))
    }

    /// All launches in a table's queue.
    pub(super) fn line(&self, table: &str) -> Range {
        Range::below(format!("{}w/{table}/", self.prefix))
    }

    /// All launches in a table's queue before this number.
    pub(super) fn line_before(&self, table: &str, number: u64) -> Range {
        Range { to: Some(self.name(&Key::Ticket(table.to_owned(), number))), ..self.line(table) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_read_as_it_was_written() {
        let keys = Keys::below("/rungate");
        for key in [
            Key::Slot("matlab.1000".to_owned(), 17),
            Key::Ticket("a b".to_owned(), u64::MAX),
            Key::Notice("matlab.1000".to_owned(), 17),
            Key::Stamps("sync".to_owned()),
            Key::Host("lab7".to_owned()),
            Key::Written("lab7".to_owned()),
            Key::Cluster,
        ] {
            assert_eq!(keys.parse(&keys.name(&key)), Some(key));
        }
        assert_eq!(keys.name(&Key::Slot("matlab".to_owned(), 17)), "/rungate/s/matlab/0000017");
        for strange in [
            "/other/s/a/0000001",
            "/rungate/s/a",
            "/rungate/s/a/x",
            "/rungate/s/a/1",
            "/rungate/s/a/+000001",
            "/rungate/w/a/1",
            "/rungate/e/a/1",
            "/rungate/q/a",
            "/rungate/",
        ] {
            assert_eq!(keys.parse(strange), None, "{strange}");
        }
    }

    fn agent(id: &str) -> AgentId {
        AgentId(id.to_owned())
    }

    /// A key of another boot is that of the same host before it was started again, and no other host has its
    /// name.
    #[test]
    fn agents_of_one_boot_are_told_apart_from_those_of_another() {
        assert!(agent("boot.1").is_of_boot_of(&agent("boot.2")));
        for (one, other) in [("boot.1", "reboot.1"), ("boot", "boot"), ("boot.1", "boot"), ("", "")] {
            assert!(!agent(one).is_of_boot_of(&agent(other)), "{one:?} and {other:?}");
        }
    }

    fn holder(uid: u32) -> SlotRecord {
        let text = r#"{"host":"lab","agent":"x","pid":7,"start":5,"uid":0,"hold":"process","command":"","rule":"","launch":1,"since":1}"#;
        SlotRecord { uid, ..read(text.as_bytes()).expect("a record") }
    }

    /// Root ends every holder, and a user their own. A notice that no user has left only says that the holder
    /// is overdue.
    #[test]
    fn a_request_ends_the_holders_of_its_user_alone() {
        for (by, uid, ends) in [
            (Some(0), 1000, true),
            (Some(1000), 1000, true),
            (Some(1001), 1000, false),
            (Some(1000), 0, false),
            (None, 0, false),
            (None, 1000, false),
        ] {
            let (host, agent) = ("other".to_owned(), AgentId::default());
            let notice = NoticeRecord { host, agent, by, holder: holder(uid), reply: None };
            assert_eq!(notice.ends_at_request(), ends, "{by:?} {uid}");
        }
    }

    /// People see at its command that the program of a slot has ended.
    #[test]
    fn the_command_of_an_ended_program_says_so() {
        let runs = SlotRecord { command: "matlab".to_owned(), ..holder(0) };
        let ended = SlotRecord { lingers_until: Some(1), ..runs.clone() };
        let shown = [runs, ended].map(|record| record.holder().command);
        assert_eq!(shown, ["matlab", "matlab (ended)"].map(|text| Some(text.to_owned())));
    }

    /// A time that has no length is not written, and each other one is.
    #[test]
    fn the_time_of_a_record_after_its_program_is_written_if_there_is_one() {
        for (linger, written) in [(0, None), (1, Some(1)), (60_000, Some(60_000))] {
            let text = serde_json::to_value(SlotRecord { linger, ..holder(0) }).expect("a record");
            assert_eq!(text.get("linger").and_then(serde_json::Value::as_u64), written, "{text}");
        }
    }

    /// Another process may have the number of one that has ended, and another agent one of the same number.
    #[test]
    fn a_record_is_about_one_process_of_one_agent() {
        let saved =
            r#"{"pid":7,"start":5,"uid":0,"hold":"process","host":"","command":"","since":1,"tables":[]}"#;
        let saved: SavedHolding = serde_json::from_str(saved).expect("a holding");
        let record = holder(0);
        assert!(record.is_of(&agent("x"), &saved));
        let others = [
            SlotRecord { pid: 8, ..record.clone() },
            SlotRecord { start: 6, ..record.clone() },
            SlotRecord { agent: agent("y"), ..record.clone() },
        ];
        for other in others {
            assert!(!other.is_of(&agent("x"), &saved) && !other.is_same(&record), "{other:?}");
        }
        let renamed = SlotRecord { host: "lab9".to_owned(), ..record.clone() };
        assert!(renamed.is_of(&agent("x"), &saved) && !renamed.is_same(&record));
    }

    #[test]
    fn ranges_have_what_they_say() {
        let keys = Keys::below("/rungate/");
        let slot = |table: &str, slot| keys.name(&Key::Slot(table.to_owned(), slot));
        let above = keys.slots_above("a", 9);
        assert!(above.contains(&slot("a", 10)) && above.contains(&slot("a", 1_048_575)));
        assert!(!above.contains(&slot("a", 9)) && !above.contains(&slot("ab", 10)));
        let before = keys.line_before("a", 10);
        let ticket = |number| keys.name(&Key::Ticket("a".to_owned(), number));
        assert!(before.contains(&ticket(0)) && before.contains(&ticket(9)) && !before.contains(&ticket(10)));
        assert!(!before.contains(&keys.name(&Key::Ticket("b".to_owned(), 1))));
    }
}
