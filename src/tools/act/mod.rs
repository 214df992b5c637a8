//! Subcommands that change who holds slots: `end`, `reset` and `prune`.

pub(crate) mod end;
pub(crate) mod prune;
pub(crate) mod reset;
