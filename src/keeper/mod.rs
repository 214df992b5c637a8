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

pub use self::{
    agent::{AgentError, Client, Garbage, Granted, Inbox, LONGEST_REQUEST, MOST_CHOSEN, SOCKET},
    error::KeeperError,
    eviction_outcome::EvictionOutcome,
    file::{
        BaseDirectories, Before, Ending, Extent, Header, Holder, Known, LAST_SLOT, LONGEST_PATIENCE,
        LockPath, Look, Means, MutexGuard, Overdue, PATIENCE, Pruned, Record, RepositoryError, TableSnapshot,
        UnverifiedTarget,
    },
    line::{Class, Heartbeat, Number, Waiter, WaitingProcess, Woken},
    memory::{Store, VerifiedAncestry},
    occupancy::{Occupancy, Span, Vacancy},
    outside::{Line, NoSample, Sample, Used, Vouched},
    signalling::{Delivery, SIGNAL_COUNT, SIGNALS, Whom, open_unchanged},
    table::{Keepers, TableGuard, TableId},
    view::{Entry, View},
};
