//! The log: one event each for what was started, refused, waited for, ended and expired, with its fields named. A log that
//! cannot be written never stops a launch. This module knows what an event is and how to write it down; it knows no policy,
//! no lock file and no command.

pub mod event;
pub mod history;
mod journal;
mod json_lines;
pub mod sink;
mod syslog;
