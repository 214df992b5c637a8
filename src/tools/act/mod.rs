//! Subcommands that change what launches find: `end`, `reset`, `prune` and `measure`.

pub(crate) mod end;
pub(crate) mod measure;
mod past_rungate;
pub(crate) mod prune;
pub(crate) mod reset;
