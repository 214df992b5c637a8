//! Where events go.

use std::{io, path::PathBuf};

use crate::log::{event::Event, journal, json_lines, syslog};

/// A place for events.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Target {
    /// Nowhere.
    #[default]
    Off,
    /// The journal of systemd.
    Journal,
    /// The system's log daemon.
    Syslog,
    /// A file with one JSON object on each line.
    File(PathBuf),
}

/// Where events go, and which.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sink {
    /// Where.
    pub target: Target,
    /// Whether events count that nobody was refused in.
    pub everything: bool,
}

impl Sink {
    /// Writes an event down. Whoever launches a program goes on whatever comes back.
    pub fn write(&self, event: &Event) -> io::Result<()> {
        if !self.everything && !event.event.is_refusal() {
            return Ok(());
        }
        match &self.target {
            Target::Off => Ok(()),
            Target::Journal => journal::send(event),
            Target::Syslog => syslog::send(event),
            Target::File(path) => json_lines::append(path, event),
        }
    }
}
