//! The keepers of slots: tables in lock files, in the memory of this process, or in that of the agent. A
//! keeper reports what is held, and takes, releases and remembers on request. The protocol decides whether a
//! launch may have a slot. The rest of the code reaches keepers through the enums of this module only, so
//! that the compiler finds every place when one is added.

pub mod agent;
pub mod error;
mod eviction_outcome;
pub mod file;
pub mod held;
mod hint;
pub mod line;
pub mod memory;
pub mod occupancy;
pub mod outside;
pub mod place;
pub mod signalling;
pub mod table;
pub mod view;

pub use self::eviction_outcome::EvictionOutcome;
pub use self::file::{
    expiry::{Ending, Overdue},
    holder::{Holder, Known},
    job::UnverifiedTarget,
    lock_path::BaseDirectories,
    mutex::{LONGEST_PATIENCE, PATIENCE},
    scan::{Extent, Look, Means},
};
pub use line::{Class, Heartbeat, Number, Waiter, WaitingProcess, Woken};
pub use signalling::Reach;
