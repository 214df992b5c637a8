//! The lock file: a table whose slots are locked bytes. The locks of the kernel are the only truth; the
//! content may be garbage. A process other than the one that becomes the program can use this keeper too.

mod content;
pub mod error;
pub mod expiry;
#[expect(clippy::module_inception, reason = "the lock file itself, in the keeper of lock files")]
pub mod file;
pub mod header;
pub mod held;
pub mod holder;
pub mod job;
pub mod layout;
pub mod line;
pub mod lock_path;
pub mod mutex;
pub mod prune;
pub mod record;
pub mod scan;
pub mod view;

use self::content::{HEADER_INDEX, MAGIC, TELLING};
pub use self::{
    error::RepositoryError,
    expiry::{Ending, Overdue},
    header::Header,
    held::Held,
    holder::{Holder, Known, TableSnapshot},
    job::{Guardian, UnverifiedTarget},
    layout::{HEADER_AT, LAST_NUMBER, LAST_SLOT, MOST_BEATS, MUTEX, PROBE, RECORD_SIZE},
    lock_path::{BaseDirectories, LockPath},
    mutex::{LONGEST_PATIENCE, MutexGuard, PATIENCE},
    prune::{Before, Pruned},
    record::Record,
    scan::{Extent, Look, Means},
};
