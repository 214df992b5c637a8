//! One event of the log.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The command was started.
    Started,
    /// It was refused.
    Refused,
    /// It was started although it would have been refused: something is not enforced.
    WouldRefuse,
    /// It stood in line; with how long, and whether it got its turn.
    Waited,
    /// It ended, as its supervisor saw.
    Ended,
    /// A holder was overdue and had to go.
    Expired,
    /// It came too soon after the last one.
    TooSoon,
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
            Self::TooSoon => "too-soon",
        }
    }

    /// Whether somebody did not get what he wanted, or would not have.
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::Refused | Self::WouldRefuse | Self::TooSoon | Self::Expired)
    }
}

/// One event. Fields that do not apply are left out.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Event {
    /// When, in milliseconds since 1970.
    pub time: u64,
    /// What.
    pub event: Kind,
    /// The command as typed, without its arguments.
    pub command: String,
    /// The real user id of the caller.
    pub uid: u32,
    /// The process that asked.
    pub pid: i32,
    /// The repositories it is about, each with its slots or, in a refusal, without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<String>,
    /// The rules behind them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// How long it waited, or ran, or was overdue: seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// How it ended, or why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The other process: the holder that was ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<i32>,
}

impl Event {
    /// An event of this process, now.
    pub fn now(event: Kind, command: &str, uid: u32) -> Self {
        let time = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        Self {
            time,
            event,
            command: command.to_owned(),
            uid,
            pid: std::process::id().cast_signed(),
            repositories: Vec::new(),
            rules: Vec::new(),
            seconds: None,
            status: None,
            holder: None,
        }
    }

    /// When it happened.
    pub fn moment(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_millis(self.time)).unwrap_or(UNIX_EPOCH)
    }

    /// The event as named fields, for logs that keep those.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("EVENT", self.event.name().to_owned()),
            ("COMMAND", self.command.clone()),
            ("UID", self.uid.to_string()),
            ("PID", self.pid.to_string()),
        ];
        if !self.repositories.is_empty() {
            fields.push(("REPOSITORIES", self.repositories.join(" ")));
        }
        if !self.rules.is_empty() {
            fields.push(("RULES", self.rules.join("; ")));
        }
        fields.extend(self.seconds.map(|seconds| ("SECONDS", format!("{seconds:.3}"))));
        fields.extend(self.status.clone().map(|status| ("STATUS", status)));
        fields.extend(self.holder.map(|holder| ("HOLDER", holder.to_string())));
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

/// A value that cannot be mistaken for two, or for another line.
fn quoted(value: &str) -> String {
    let is_plain = !value.is_empty() && value.chars().all(|c| c.is_ascii_graphic() && c != '"' && c != '=');
    if is_plain { value.to_owned() } else { format!("\"{}\"", value.escape_default()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line() {
        let mut event = Event::now(Kind::Refused, "mat\nlab=\"x\"", 7);
        event.repositories = vec!["seats".to_owned(), "per-user".to_owned()];
        let line = event.line();
        assert!(line.starts_with("event=refused command=\"mat\\nlab=\\\"x\\\"\" uid=7 pid="), "{line}");
        assert!(line.ends_with("repositories=\"seats per-user\""), "{line}");
    }

    #[test]
    fn what_is_written_as_json_reads_back() {
        let mut event = Event::now(Kind::TooSoon, "sync", 0);
        event.seconds = Some(1.5);
        let text = serde_json::to_string(&event).expect("it is plain data");
        assert!(text.contains("\"event\":\"too-soon\""), "{text}");
        assert_eq!(serde_json::from_str::<Event>(&text).expect("it reads back"), event);
    }
}
