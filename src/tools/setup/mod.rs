//! Subcommands for setting up a host: `init`, shims and completions.

pub(crate) mod completions;
pub(crate) mod init;
pub(crate) mod shim;
