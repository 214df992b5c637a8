//! Subcommands that read repositories and change nothing: `status`, `list`, `explain`, the watch and
//! `metrics`.

pub(crate) mod explain;
pub(crate) mod list;
pub(crate) mod metrics;
pub mod screen;
pub(crate) mod status;
pub(crate) mod watch;
