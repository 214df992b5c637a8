//! Where events go.

use std::{fmt, io, path::PathBuf};

use crate::{
    escape::Show,
    log::{event::Event, journal, json_lines, syslog},
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
    /// Whether events are written in which nobody was refused.
    pub(crate) everything: bool,
    /// Whether they are to be replayed.
    pub(crate) replay: bool,
}

impl Sink {
    /// Writes an event. A launch goes on whatever comes back.
    pub(crate) fn write(&self, event: &Event) -> io::Result<()> {
        if !self.everything && !event.event.is_refusal() {
            return Ok(());
        }
        let brief = (!self.replay).then(|| event.brief());
        let event = brief.as_ref().unwrap_or(event);
        match &self.target {
            Target::Off => Ok(()),
            Target::Journal => journal::send(event),
            Target::Syslog => syslog::send(event),
            Target::File(path) => json_lines::append(path, event),
        }
    }
}
