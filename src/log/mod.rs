//! The log: one event for each start, refusal, wait, end and expiry, with named fields. A log that cannot be
//! written never stops a launch. This module knows what an event is, and how to write and read one; it knows
//! no policy, no lock file and no command.

pub mod circumstances;
pub mod event;
mod form;
pub(crate) mod history;
mod journal;
pub(crate) mod parsers;
pub(crate) mod sink;
mod syslog;
pub(crate) mod tail;
