//! Transparent: working directory, umask, environment (besides `RUNGATE_*`), descriptors, signal mask and
//! dispositions reach the program as they came, `SIGPIPE` included, which Rust's runtime changes at start and
//! at exec.
//!
//! Every test starts the same program twice, with and without rungate in front, and compares the two
//! processes as `/proc` shows them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::support::{Ending, ProcessState, Site, Test, eventually, listing, needs_root, seats};

/// The descriptors from here on are where rungate keeps what holds a slot (above those that
/// scripts number themselves).
const DESCRIPTOR_FLOOR: u32 = 200;

/// Starts the program without rungate and with it, and compares what it got.
#[track_caller]
fn nothing_else_changes(prepare: impl Fn(Test) -> Test) {
    let site = Site::with_seats(1, "", &["matlab"]);
    let plain = prepare(site.test().program("matlab")).spawn();
    let launched = prepare(site.test().args(["run", "--", "matlab"])).spawn();
    let plain = ProcessState::of(plain.pid(), "matlab");
    let mut with = ProcessState::of(launched.pid(), "matlab");

    let own = with.environment.extract_if(.., |entry| {
        [&b"RUNGATE_HELD="[..], b"RUNGATE_SLOT_"].iter().any(|own| entry.as_bytes().starts_with(own))
    });
    assert_eq!(own.collect::<Vec<OsString>>(), ["RUNGATE_HELD=seats=1", "RUNGATE_SLOT_SEATS=1"]);
    let seat = site.repository("seats.lock");
    let held = with.descriptors.iter().filter(|(_, target)| **target == seat).map(|(number, _)| *number);
    let held: Vec<u32> = held.collect();
    assert_eq!(held.len(), 1, "one descriptor holds the slot: {:?}", with.descriptors);
    assert!(held[0] >= DESCRIPTOR_FLOOR, "descriptor {} is where a program might use it", held[0]);
    with.descriptors.remove(&held[0]);

    assert_eq!(plain.arguments, with.arguments);
    assert_eq!(plain.environment, with.environment);
    assert_eq!(plain.directory, with.directory);
    assert_eq!(plain.status, with.status);
    assert_eq!(plain.limits, with.limits);
    assert_eq!(plain.scheduling, with.scheduling);
    // Each process has pipes of its own; what counts is that there is a pipe.
    let kinds = |state: ProcessState| -> BTreeMap<u32, PathBuf> {
        let is_pipe = |target: &PathBuf| target.as_os_str().as_bytes().starts_with(b"pipe:");
        let kind = |target: PathBuf| if is_pipe(&target) { "pipe".into() } else { target };
        state.descriptors.into_iter().map(|(number, target)| (number, kind(target))).collect()
    };
    assert_eq!(kinds(plain), kinds(with));
}

#[test]
fn a_plain_start() {
    nothing_else_changes(|test| test);
}

#[test]
fn arguments_pass_as_bytes() {
    let site = Site::with_policy(&seats(1, "", &["matlab"]));
    // Without its first line, a script is given to the shell.
    for first_line in ["#!/bin/sh\n", ""] {
        site.script("matlab", &format!("{first_line}printf '<%s>' \"$@\"\n"));
        site.test()
            .args(["run", "--", "matlab", "-r", "", "two\nlines", "--policy", "--"])
            .stdout("<-r><><two\nlines><--policy><-->")
            .status(0);
    }
    site.script("matlab", "#!/bin/sh\nprintf %s \"$1\" | od -An -tx1\n");
    site.test()
        .args(["run", "--", "matlab"])
        .args([OsStr::from_bytes(b"\xff \x1b")])
        .stdout(" ff 20 1b\n")
        .status(0);
}

/// argv[0] of the program stays what the user typed.
#[test]
fn the_name_of_the_program_is_what_was_typed() {
    let site = Site::with_seats(1, "", &["matlab"]);
    for typed in ["matlab", "$DIR/bin/matlab", "../bin/matlab"] {
        let running = site.test().args(["run", "--", typed]).spawn();
        let state = ProcessState::of(running.pid(), "matlab");
        assert_eq!(state.arguments, [site.expand(typed).as_str()]);
        assert_eq!(site.held_numbers("seats.lock"), [1], "{typed}");
    }
}

#[test]
fn environment_with_odd_entries() {
    nothing_else_changes(|test| {
        test.env("EMPTY", "")
            .env("LINES", "a\nb")
            .env("BYTES", OsStr::from_bytes(b"\xff"))
            .env("TZ", ":/etc/passwd")
    });
}

#[test]
fn working_directory_and_umask() {
    nothing_else_changes(|test| {
        test.directory("repositories").through(["sh", "-c", "umask 027; exec \"$@\"", "sh"])
    });
}

#[test]
fn priority_and_limits() {
    nothing_else_changes(|test| test.through(["nice", "-n", "7", "prlimit", "--core=0", "--nofile=300:400"]));
}

/// Rust's runtime ignores SIGPIPE at start and resets it at exec: the program must see neither.
#[test]
fn signals_ignored_by_the_caller_stay_ignored() {
    for signal in ["PIPE", "INT", "HUP", "CHLD", "ALRM"] {
        nothing_else_changes(|test| test.through(["env", &format!("--ignore-signal={signal}")]));
    }
}

#[test]
fn signals_at_their_defaults_stay_so() {
    nothing_else_changes(|test| test.through(["env", "--default-signal"]));
}

#[test]
fn the_signal_mask_stays() {
    nothing_else_changes(|test| test.through(["env", "--block-signal=USR1", "--block-signal=ALRM"]));
}

/// Rust's runtime opens /dev/null in the place of a closed standard descriptor.
#[test]
fn closed_standard_descriptors_stay_closed() {
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let pause = format!("exec \"$@\" {closed}");
        let site = Site::with_policy(&seats(1, "", &["matlab"]));
        site.copy_of("/bin/sleep", "matlab");
        let launched = site
            .test()
            .args(["run", "--", "matlab", "1000"])
            .through(["sh", "-c", &pause, "sh"])
            .background();
        let state = ProcessState::of(launched.pid(), "matlab");
        let standard: Vec<u32> = state.descriptors.keys().copied().filter(|number| *number <= 2).collect();
        let expected: Vec<u32> = [(0, "<&-"), (1, " >&-"), (2, "2>&-")]
            .into_iter()
            .filter(|(_, word)| !format!(" {closed}").contains(word))
            .map(|(number, _)| number)
            .collect();
        assert_eq!(standard, expected, "{closed}");
        assert_eq!(site.held_numbers("seats.lock"), [1], "{closed}");
    }
}

/// What a launch says while it waits goes nowhere then, and not to the agent.
#[test]
fn who_waits_for_the_agent_may_have_closed_them() {
    needs_root!();
    let policy = seats(1, "keeper = \"agent\"", &["matlab"]);
    let (site, _agent) = Site::with_agent(&policy);
    site.program("matlab");
    for closed in ["2>&-", "0<&- 1>&- 2>&-"] {
        let holder = site.test().args(["run", "--", "matlab"]).spawn();
        let pause = format!("exec \"$@\" {closed}");
        let waits = site.test().args(["run", "--wait", "forever", "--", "matlab"]);
        let mut waiter = waits.through(["sh", "-c", &pause, "sh"]).background();
        let waiting = || listing(&site.test())[0]["waiting"].as_array().map_or(0, Vec::len);
        eventually("it waits", || (waiting() == 1).then_some(()));
        holder.kill();
        // Without standard input the program has nothing to wait for.
        if closed == "2>&-" {
            waiter.wait_for_echo();
            waiter.close_stdin();
        }
        let ending = waiter.end().ending;
        assert_ne!(ending, Ending::Status(74), "{closed}");
    }
}

#[test]
fn descriptors_of_the_caller_reach_the_program() {
    nothing_else_changes(|test| {
        test.through(["sh", "-c", "exec 3</etc/passwd 9>/dev/null; exec \"$@\"", "sh"])
    });
}

/// A program that the user ignores SIGPIPE for goes on; one that they do not dies of it, as it would without
/// rungate.
#[test]
fn a_writer_into_a_closed_pipe_dies_as_it_would() {
    let site = Site::with_policy(&seats(1, "", &["matlab"]));
    site.copy_of("/usr/bin/yes", "matlab");
    let pipe = "set -o pipefail; \"$@\" | head -n1";
    site.test()
        .args(["run", "--", "matlab"])
        .through(["bash", "-c", pipe, "bash"])
        .stdout("y\n")
        .status(128 + 13);
}
