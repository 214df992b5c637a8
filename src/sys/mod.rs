//! The operating system: the only module that knows nix, libc, rustix and users. It offers plain values and typed
//! errors, knows nothing of policies or repositories, and keeps what needs `unsafe` in one file.

pub mod accounts;
pub mod alarm;
pub mod child;
pub mod credentials;
pub mod descriptor;
pub mod distrust;
pub mod exec;
pub mod executable;
pub mod failure;
pub mod host;
pub mod kernel_locks;
pub mod occasions;
pub mod open_files;
mod own_database;
pub mod pidfd;
pub mod positioned_io;
pub mod proc_file;
pub mod process;
pub mod raw_terminal;
pub mod record_lock;
pub mod regular_file;
pub mod replaced_file;
pub mod signal;
pub mod stamp;
pub mod stops;
pub mod supervised_signals;
pub mod terminal;
pub mod trusted_directory;
pub mod trusted_file;
mod trusted_walk;
mod unsafe_calls;
