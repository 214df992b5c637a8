//! The integration tests, one program. Each file is one behaviour, and reads like the manual: its sentence first, then
//! what must happen to somebody who relies on it.

mod support;

mod adaptive_locks;
#[cfg(target_arch = "x86_64")]
mod campaign;
mod compiled;
mod completions;
mod corpora;
mod damaged_files;
mod escaping;
mod exectimes_peer;
mod exit_status;
mod expiry;
mod faults;
mod hand_over;
mod history;
mod holds;
mod hours;
mod init;
mod instruments;
mod json;
mod launch;
mod layers;
mod limits;
mod listings;
mod log;
mod manual;
mod metrics;
mod model;
mod modules;
mod nested;
mod nested_forks;
mod pace;
mod packaging;
mod policies;
mod policy_check;
mod posix_traps;
mod properties;
mod readme;
mod refusal;
mod reservations;
mod schema;
mod semantics;
mod several_repositories;
mod shared_directory;
mod shims;
mod sigkill;
mod sites;
mod storm;
mod supervision;
mod terminal;
mod transparency;
mod waiting;
mod waiting_policies;
mod watch;
