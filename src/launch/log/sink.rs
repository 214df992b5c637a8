//! The targets of events.

use std::{
    fmt,
    fs::OpenOptions,
    io,
    os::unix::{fs::OpenOptionsExt, net::UnixDatagram},
    path::{Path, PathBuf},
};

use super::event::Event;
use crate::{
    sys::{LOG_GUARDS, journal, regular_file},
    text::{Numbered, Show, json},
};

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) enum Target {
    #[default]
    Off,
    Journal,
    Syslog,
    /// Of JSON lines.
    File(PathBuf),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("no log"),
            Self::Journal => f.write_str("the journal"),
            Self::Syslog => f.write_str("syslog"),
            Self::File(path) => write!(f, "the log {}", path.shown()),
        }
    }
}

/// One log: where events go, and which.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Sink {
    pub(crate) target: Target,
    /// Whether starts, waits, ends and measurements are written too.
    pub(crate) everything: bool,
    /// Whether they can be replayed.
    pub(crate) replay: bool,
}

impl Sink {
    /// Writes an event. A launch continues whatever the result.
    pub(crate) fn write(&self, event: &Event) -> io::Result<()> {
        if !self.everything && !event.event.is_notable() {
            return Ok(());
        }
        let brief = (!self.replay).then(|| event.brief());
        let event = brief.as_ref().unwrap_or(event);
        match &self.target {
            Target::Off => Ok(()),
            Target::Journal => send_to_journal(event),
            Target::Syslog => send(event),
            Target::File(path) => append(path, event),
        }
    }
}

// A file with one JSON object on each line. Each line is appended by a single write, so that simultaneous
// launches do not mix their lines.

pub(super) fn append(path: &Path, event: &Event) -> io::Result<()> {
    let line = json::line(&Numbered::of(event))? + "\n";
    let file =
        OpenOptions::new().append(true).create(true).mode(0o640).custom_flags(LOG_GUARDS).open(path)?;
    let status = file.metadata()?;
    if !status.is_file() {
        return Err(io::Error::other("the log is no regular file"));
    }
    regular_file::append(&file, status.len(), line.as_bytes())
}

// The system's log daemon, by its socket: one datagram `<PRIORITY>rungate[PID]: text`, facility
// `daemon` (RFC 3164, as local daemons take it).

const SOCKET: &str = "/dev/log";

/// The facility `daemon`.
const DAEMON: u8 = 3;

pub(super) fn send(event: &Event) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to(datagram(event).as_bytes(), SOCKET).map(drop)
}

fn datagram(event: &Event) -> String {
    format!("<{}>rungate[{}]: {}", DAEMON * 8 + priority(event), event.pid, event.line())
}

// The journal of systemd. Values are escaped, so that none has a newline.

/// The priority of `warning` for refusals and ended holders and of `info` for the rest, as syslog(3) numbers
/// them.
pub(super) fn priority(event: &Event) -> u8 {
    if event.event.is_notable() { 4 } else { 6 }
}

pub(super) fn send_to_journal(event: &Event) -> io::Result<()> {
    let entry = entry(event);
    let fields: Vec<(&str, &str)> =
        entry.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    journal::send(&fields)
}

fn entry(event: &Event) -> Vec<(String, String)> {
    let field = |name: &str, value: String| (name.to_owned(), value);
    let mut entry = vec![
        field("MESSAGE", event.line()),
        field("PRIORITY", priority(event).to_string()),
        field("SYSLOG_IDENTIFIER", "rungate".to_owned()),
    ];
    let fields = event.fields();
    let own = |(name, value): &(&str, String)| field(&format!("RUNGATE_{name}"), value.shown().to_string());
    entry.extend(fields.iter().map(own));
    entry
}

#[cfg(test)]
mod journal_tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::launch::log::event::Kind;

    #[test]
    fn a_value_is_one_line() {
        let entry = entry(&Event::now(Kind::Refused, "a\nb\u{9b}2J\u{202e}", 7, OsStr::new("ws17")));
        let text: String = entry.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        assert!(text.contains("PRIORITY=4\nSYSLOG_IDENTIFIER=rungate\nRUNGATE_EVENT=refused\n"), "{text}");
        assert!(text.contains("\nRUNGATE_COMMAND=a\\nb\\u{9b}2J\\u{202e}\nRUNGATE_UID=7\n"), "{text}");
    }
}

#[cfg(test)]
mod tests {
    use crate::launch::log::{event::Kind, sink::*};
    use std::ffi::OsStr;

    #[test]
    fn a_datagram_has_facility_and_severity_in_one_number() {
        let mut event = Event::now(Kind::Started, "sync", 0, OsStr::new("ws17"));
        event.pid = 12;
        assert_eq!(
            datagram(&event),
            "<30>rungate[12]: event=started command=sync uid=0 pid=12 host=ws17 format=1"
        );
    }
}
