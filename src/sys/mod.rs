//! The operating system: the only module that knows nix, libc, rustix and users. It offers plain values and
//! typed errors, knows nothing of policies or repositories, and keeps all `unsafe` in one file.

pub(crate) mod accounts;
pub(crate) mod atomic_write;
pub mod descriptor;
pub(crate) mod edit_lock;
pub mod executable;
pub mod failure;
pub(crate) mod journal;
pub mod local_socket;
pub(crate) mod mount;
pub(crate) mod ordinary_user;
pub mod process;
pub mod record_lock;
pub mod regular_file;
pub(crate) mod replaced_file;
pub(crate) mod service_manager;
pub(crate) mod signals;
pub mod stamp;
pub(crate) mod terminal;
pub mod trust;
pub mod trusted_file;
mod unsafe_calls;

/// A number that no other process can guess.
pub(crate) fn unguessable() -> Result<u64, Errno> {
    unsafe_calls::random().map(|number| u64::try_from(number >> 64).unwrap_or_default())
}

pub(crate) use self::{
    accounts::{Account, LookupFailure, NameCache},
    atomic_write::{Attributes, Before},
    edit_lock::{EditLock, NoLock},
    mount::Mount,
    ordinary_user::{access, as_ordinary_user, is_full},
    service_manager::ServiceManager,
    signals::{
        Alarm, Event, HangUps, InterruptsHeldBack, Signal, SignalsBlocked, SupervisedSignals, TakenSignals,
    },
    trusted_file::WalkedDirectory,
};
pub use self::{
    accounts::{Credentials, own_uid},
    descriptor::{Bell, FIFO_ENDING, Fifo, Inherited, Interest, Poller, Unfit},
    executable::Entry,
    failure::{Errno, Failure, errno_of},
    local_socket::{Connection, Listener, Peer},
    process::{Change, Ending, NameWhileWaiting, PidFd, Process, own_pid, owner},
    record_lock::{Bytes, Conflict, LAST_BYTE, Mode, Ownership},
    regular_file::{Access, Kind, LOG_GUARDS, Status},
    stamp::{FileId, Stamp},
    trust::{InsecurePath, Reason},
    trusted_file::{JudgedDirectories, TrustedDirectory, TrustedFile},
};
