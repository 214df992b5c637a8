//! Who gets which slots, what keeps them, when they are free again, and the lock files they are in.

mod by_descriptor;
mod damaged_files;
mod exectimes_peer;
pub(crate) mod expiry;
pub(crate) mod holds;
pub(crate) mod limits;
pub(crate) mod member_limits;
pub(crate) mod named_slots;
pub(crate) mod nested;
mod nested_forks;
pub(crate) mod outside;
pub(crate) mod pace;
mod posix_traps;
mod prune;
pub(crate) mod reservations;
pub(crate) mod several_repositories;
pub(crate) mod shared;
mod shared_directory;
mod sigkill;
