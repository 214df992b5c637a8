//! Where events are logged. The policy only says so; writing is the launcher's.

use std::path::PathBuf;

use super::choice::Choice;

/// One layer's wish for a log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Log {
    /// Where events go.
    pub to: LogTarget,
    /// Which events.
    pub events: LogEvents,
}

/// Where events go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LogTarget {
    /// Nowhere.
    Off,
    /// To journald.
    Journald,
    /// To syslog.
    Syslog,
    /// To a file of JSON Lines.
    File(PathBuf),
}

/// Which events are logged.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LogEvents {
    /// Those of launches that did not start, and of holders that were ended.
    #[default]
    Refusals,
    /// All.
    All,
}

impl Choice for LogEvents {
    const WORDS: &'static [(&'static str, Self)] =
        &[("refusals", LogEvents::Refusals), ("all", LogEvents::All)];
}

impl LogTarget {
    /// The words beside a path.
    pub(super) const WORDS: &'static [&'static str] = &["journald", "syslog", "off"];

    /// Reads a word or an absolute path.
    pub(super) fn parse(text: &str) -> Option<LogTarget> {
        match text {
            "off" => Some(LogTarget::Off),
            "journald" => Some(LogTarget::Journald),
            "syslog" => Some(LogTarget::Syslog),
            path if path.starts_with('/') => Some(LogTarget::File(path.into())),
            _ => None,
        }
    }
}
