//! The log: one event for each start, refusal, wait, end and eviction, with named fields. A log that cannot
//! be written never stops a launch. It knows no policy, no lock file and no command.

pub mod event;
pub(crate) mod form;
pub(crate) mod sink;
