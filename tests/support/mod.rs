//! What the integration tests are written with: a site to work in, a builder that runs one command and
//! compares all that comes out, guards for what runs in the background, and the tests' own reading of locks
//! and processes.

mod accounts;
mod agent;
mod authority;
pub(crate) mod built;
mod deadline;
mod dice;
mod errors_of_calls;
mod etcd;
mod figures;
mod held_slots;
mod line;
mod lock_range;
mod log;
mod observer;
mod outcome;
mod over_agent;
mod pattern;
mod process_state;
mod running;
mod sabotage;
mod site;
pub(crate) mod snapshot;
mod storm;
mod terminal;
mod test;
mod trace;
mod unindent;
mod ways;
mod witness;

pub(crate) use accounts::{Account, is_root, skip};
pub(crate) use agent::{LOOK, answered, listing};
pub(crate) use authority::{Authority, Certificate};
pub(crate) use deadline::{eventually, given_time};
pub(crate) use dice::Dice;
pub(crate) use errors_of_calls::{error_named, errors_of};
pub(crate) use etcd::{ETCD, Etcd, Host, needs_etcd, needs_openssl};
pub(crate) use figures::tell;
pub(crate) use lock_range::lock_range;
pub(crate) use log::{ended, log_of, started};
pub(crate) use observer::{Observed, Observer};
pub(crate) use outcome::{Ending, Outcome};
pub(crate) use over_agent::{is_on as is_over_the_agent, over_the_agent};
pub(crate) use process_state::ProcessState;
pub(crate) use running::{Running, is_alive, sleeps_of, start_of, state_of};
pub(crate) use sabotage::{Fault, Report, Sabotage, Start, TracedCall};
pub(crate) use site::{Site, copy_program, seats, set_mode};
pub(crate) use storm::storm_size;
pub(crate) use terminal::Terminal;
pub(crate) use test::Test;
pub(crate) use trace::{Call, Trace};
pub(crate) use unindent::unindent;
pub(crate) use ways::{Mishap, Ways};
pub(crate) use witness::Witness;

/// A number that no other run of these tests has, also none in another PID namespace: for what has one name on the
/// whole machine.
pub(crate) static RUN: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {
    let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid").expect("a random number");
    u32::from_str_radix(&random[..8], 16).expect("eight digits")
});

/// Reads what there is, as soon as there is something. A read with a timeout also ends if the whole process was stopped
/// or frozen for a moment, with `EINTR` and no signal: signal(7).
pub(crate) fn read_some(from: &mut impl std::io::Read, bytes: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match from.read(bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Whoever changes a setting of the whole machine, or something that has one name on it, or fills a list of the
/// kernel's, is alone with that until the result is dropped: in this run of the tests, and in others beside it.
pub(crate) fn alone_with_the_machine() -> (std::fs::File, std::sync::MutexGuard<'static, ()>) {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // A file that every host has, every user can open, and nobody else locks.
    let file = std::fs::File::open("/etc/os-release").expect("/etc/os-release");
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
    (file, alone)
}

/// Ends a test early, and loudly, where it cannot say anything: it starts processes as several users.
macro_rules! needs_root {
    () => {
        if !crate::support::is_root() {
            return crate::support::skip("only root can start processes as several users");
        }
    };
}
pub(crate) use needs_root;

/// Ends a test early, and loudly, where it cannot stop a launcher at the call that it is about.
macro_rules! needs_strace {
    () => {
        if !std::path::Path::new("/usr/bin/strace").exists() {
            return crate::support::skip("strace(1) is not installed");
        }
    };
}
pub(crate) use needs_strace;

/// Ends a test early, and loudly, where there is no terminal available.
macro_rules! needs_tmux {
    () => {
        if !std::path::Path::new("/usr/bin/tmux").exists() {
            return crate::support::skip("tmux(1) is not installed");
        }
    };
}
pub(crate) use needs_tmux;
