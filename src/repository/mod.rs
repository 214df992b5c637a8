//! The lock file: a repository whose bytes are slots. From claims (paths, limits, numbers of slots) to slots that are held,
//! in several files at once, all of them or none. This module knows no policy, and can be used by a process other than the
//! one that becomes the program. The kernel's locks are the only truth: whatever a file *says* may be garbage.

pub mod acquisition;
pub mod admission;
pub mod admitted;
pub mod blocking;
pub mod claim;
pub mod error;
pub mod expiry;
pub mod file;
pub mod header;
pub mod held;
pub mod hold;
pub mod holder;
pub mod layout;
pub mod line;
pub mod mutex;
pub mod nested;
pub mod occupancy;
pub mod record;
pub mod refused;
pub mod reset;
pub mod survey;
pub mod waiting;
