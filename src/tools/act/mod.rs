//! Subcommands that change who holds slots: `end` and `reset`.

pub(crate) mod end;
pub(crate) mod reset;
