//! The subcommands that show, count and change things, and the log that they read.

mod completions;
pub(crate) mod doctor;
mod doctor_topics;
pub(crate) mod end;
mod escaping;
mod help;
mod history;
mod init;
mod json;
pub(crate) mod listings;
mod log;
mod looking;
mod measuring;
mod metrics;
mod report;
mod simulate;
mod true_numbers;
mod watch;
