//! The lock file: a table whose slots are bytes that are locked. The kernel's locks are the only truth:
//! whatever a file *says* may be garbage. This keeper can be used by a process other than the one that
//! becomes the program.

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
pub mod nested;
pub mod record;
pub mod reset;
pub mod roots;
pub mod scan;
pub mod table_snapshot;
pub mod trial;
pub mod view;
