//! Whether a launch did right with the fault that it met.

use nix::errno::Errno;
use nix::sys::signal::Signal;

use crate::support::{Ending, Fault, Report, Start, TracedCall, error_named};

/// The slots of a launch that nothing disturbs.
pub(super) struct Expected<'a> {
    /// Each has one slot for it.
    pub(super) files: &'a [&'a str],
    pub(super) status: i32,
    /// Whether somebody is there who keeps it out where they cannot be ended.
    pub(super) may_be_refused: bool,
    /// So many calls are those of the dynamic linker, which has its own ways to fail.
    pub(super) loaded: usize,
}

/// How rungate ends when a call has failed that it cannot do without.
const FAILED: [i32; 5] = [71, 74, 78, 126, 127];

/// What was wrong.
pub(super) fn judge(fault: Fault, report: &Report, expected: &Expected<'_>) -> Vec<String> {
    let mut complaints: Vec<String> =
        report.starts.iter().filter_map(|start| without_slots(start, expected)).collect();
    let has_started = !report.starts.is_empty();
    let (at, error) = match fault {
        Fault::Kill(_) => return complaints,
        Fault::List => (usize::MAX, None),
        Fault::Fail(at, error) | Fault::KeepFailing(at, error) => (at, Some(error)),
    };
    if at <= expected.loaded && !has_started {
        return complaints;
    }
    let Ending::Status(status) = report.ending else {
        if !is_end_of_the_world(fault, report) {
            complaints.push("it died of a signal".to_owned());
        }
        return complaints;
    };
    if report.stderr.contains("panicked") {
        complaints.push("it panicked".to_owned());
    }
    if has_started {
        if status != 0 {
            complaints.push("the program started, and its status got lost".to_owned());
        }
    } else if !(status == expected.status || status == 75 && expected.may_be_refused) {
        complaints.extend(match error {
            Some(error) => badly_explained(fault, error, status, report),
            None => Some("it did not do what it does".to_owned()),
        });
    }
    complaints
}

fn without_slots(start: &Start, expected: &Expected<'_>) -> Option<String> {
    let has_its_slot = |file: &&str| {
        let slots: Vec<i32> =
            start.held.iter().filter(|(held, ..)| held == file).map(|(.., pid)| *pid).collect();
        slots == [start.pid] || slots == [-1]
    };
    (!expected.files.iter().all(has_its_slot)).then(|| "it started without its slots".to_owned())
}

/// What nobody can say anything about: the standard library ends a process that cannot close a directory,
/// and a child whose parent can read nothing tells nobody why it could not become the program.
fn is_end_of_the_world(fault: Fault, report: &Report) -> bool {
    let name = report.calls.first().map(|call| call.name.as_str());
    let of_its_own = match (name, report.ending) {
        (Some("close"), Ending::Signal(signal)) => signal == Signal::SIGABRT as i32,
        (Some("read"), Ending::Signal(signal)) => signal == Signal::SIGPIPE as i32,
        _ => false,
    };
    matches!(fault, Fault::KeepFailing(..)) && report.starts.is_empty() && of_its_own
}

/// A launch that failed names the call and what it was about, and why it failed; of several that failed, one.
fn badly_explained(fault: Fault, error: &str, status: i32, report: &Report) -> Option<String> {
    let call = report.calls.first()?;
    // Where every lock that is asked for is somebody else's, so is the last slot.
    let is_lock = call.name.ends_with("SETLK)") && matches!(error, "EACCES" | "EAGAIN");
    if is_lock && status == 75 && matches!(fault, Fault::KeepFailing(..)) {
        return None;
    }
    let complaint = badly_explained_of(call, error, status, report)?;
    let others = report.calls.iter().skip(1);
    others
        .map(|call| badly_explained_of(call, error, status, report))
        .all(|complaint| complaint.is_some())
        .then_some(complaint)
}

fn badly_explained_of(call: &TracedCall, error: &str, status: i32, report: &Report) -> Option<String> {
    if !FAILED.contains(&status) {
        return Some("its status is not one of those of a launch that failed".to_owned());
    }
    if !report.stderr.starts_with("rungate: ") {
        return Some("it says nothing".to_owned());
    }
    let says = |words: &[&str]| words.iter().any(|word| report.stderr.contains(word));
    // Of a look-up the C library tells no more.
    if status == 71 && says(&["getpwuid(", "getpwnam(", "getgrnam("]) {
        return None;
    }
    // To a call for a lock these are the answer that somebody else has it.
    let is_taken = ["does not take the file's mutex", "stayed locked", "leaves no place"];
    if call.name.ends_with("SETLK)") && matches!(error, "EACCES" | "EAGAIN") && says(&is_taken) {
        return None;
    }
    let errno =
        Errno::from_raw(error_named(error).and_then(|number| i32::try_from(number).ok()).unwrap_or(0));
    if !says(&[errno.desc()]) {
        return Some(format!("it does not say {:?}", errno.desc()));
    }
    if !says(&names_of(call)) {
        return Some(format!("it does not name the call {}", call.name));
    }
    // The other name of a descriptor is not what people know the file by.
    let about = own_file_of_proc(&call.about);
    if about.starts_with('/') && !about.starts_with("/proc/self/fd/") && !says(&[&about]) {
        return Some(format!("it does not name {}", call.about));
    }
    None
}

/// A process calls what `/proc` says of itself `/proc/self`; the kernel knows the open file by its number.
fn own_file_of_proc(path: &str) -> String {
    let number_and_rest = path.strip_prefix("/proc/").and_then(|rest| rest.split_once('/'));
    match number_and_rest {
        Some((number, rest)) if number.parse::<u32>().is_ok() => format!("/proc/self/{rest}"),
        _ => path.to_owned(),
    }
}

/// How a message may name a call.
fn names_of(call: &TracedCall) -> Vec<&str> {
    let names: &[&str] = match call.name.as_str() {
        // "Cannot be executed" is what this comes to; the same for the check whether a file can be.
        "execve" | "faccessat2" => &["cannot be executed"],
        "newfstatat" | "statx" if call.about.contains("/bin/") => &["cannot be executed"],
        // A directory that was just made is checked once more.
        "newfstatat" | "statx" => &["stat", "mkdir"],
        "openat" => &["open"],
        "pread64" => &["pread"],
        "pwrite64" => &["pwrite"],
        "getdents64" => &["readdir"],
        "rt_sigaction" => &["sigaction"],
        "rt_sigprocmask" => &["sigprocmask"],
        "clone" => &["fork"],
        "pipe2" => &["pipe"],
        name => &[name],
    };
    names.to_vec()
}
