//! Subcommands for logs: `history`, `report` and `simulate`, over one reading and one statistics.

pub(crate) mod history;
pub(crate) mod parsers;
pub(crate) mod reading;
pub mod rendering;
pub(crate) mod report;
pub(crate) mod simulate;
pub mod simulation;
pub mod statistics;
