//! From slots to a running program: finding it, telling it what it holds, and becoming it. Nothing of what
//! the caller arranged is changed: working directory, umask, descriptors, signal mask and dispositions,
//! arguments and environment reach the program as they came, except for the `RUNGATE_*` variables.

pub mod depth;
pub mod environment;
pub mod installation;
pub mod program;
pub mod shim;
pub mod start;
pub mod supervision;
