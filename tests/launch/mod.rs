//! From the command line to the program: how it starts, what it inherits, and what the user reads when it does not start.

pub(crate) mod command;
pub(crate) mod exit_status;
mod hints;
pub(crate) mod refusal;
mod shims;
mod supervision;
mod system_calls;
mod terminal;
mod transparency;
