//! An environment and a name of the program that the caller made up. Whatever they say, a slot is had or it
//! is not.

use std::ffi::CString;
use std::fs::File;

use nix::{
    spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn},
    sys::wait::{WaitStatus, waitpid},
};

use crate::support::{Ending, Site, Test};

fn site() -> Site {
    Site::with_seats(1, "", &["matlab"])
}

fn matlab(site: &Site) -> Test {
    site.test().args(["run", "--", "matlab"])
}

/// Whoever forges it gains nothing, because the kernel has the last word. While the seat is somebody
/// else's, no variable makes it one's own; while it is free, none loses it.
#[test]
fn forged_variables_of_rungates_own() {
    let site = site();
    let long = "seats=1 ".repeat(10_000);
    let forged = [
        ("RUNGATE_HELD", "seats=1"),
        ("RUNGATE_HELD", "seats=1 seats=1 seats=1,1,1"),
        ("RUNGATE_HELD", "seats=18446744073709551615"),
        ("RUNGATE_HELD", "seats=0"),
        ("RUNGATE_HELD", "= =, \u{1b}"),
        ("RUNGATE_HELD", long.as_str()),
        ("RUNGATE_SLOT_SEATS", "1"),
        ("RUNGATE_DEPTH", "\u{1b}=x/"),
        ("RUNGATE_DEPTH", "matlab=-1"),
    ];
    for (name, value) in forged {
        matlab(&site).env(name, value).status(0);
        let holder = matlab(&site).spawn();
        let outcome = matlab(&site).env(name, value).outcome();
        assert_eq!(outcome.ending, Ending::Status(75), "{name}={value:.40}: {}", outcome.stderr);
        assert_eq!(site.held_numbers("seats.lock"), [1], "{name}");
        drop(holder);
    }
}

/// What others read from the environment: the zone, the language, the search path.
#[test]
fn hostile_variables_of_everybody() {
    let site = site();
    let program = site.path("bin/matlab").into_os_string().into_string().expect("a path");
    for (name, value) in [
        ("TZ", ":/etc/shadow"),
        ("TZ", "/dev/zero"),
        ("TZ", "../../../../dev/zero"),
        ("LANG", "../../../../../tmp/x"),
        ("LC_ALL", "\u{1b}[2J"),
        ("PATH", ""),
        ("PATH", ":::/dev/null:/proc/self/fd:"),
        ("HOME", "../.."),
        ("XDG_RUNTIME_DIR", "relative"),
        ("XDG_CONFIG_HOME", "/dev/null"),
        ("COLUMNS", "0"),
        ("TERM", "\u{1b}"),
    ] {
        let test = site.test().env(name, value).args(["run", "--", &program]);
        let outcome = test.outcome();
        assert_eq!(outcome.ending, Ending::Status(0), "{name}={value}: {}", outcome.stderr);
        let holder = test.spawn();
        assert_eq!(site.held_numbers("seats.lock"), [1], "{name}={value}");
        drop(holder);
    }
}

/// argv[0] is the caller's: it may be anything, and is shown only with everything escaped that a terminal
/// would obey.
#[test]
fn forged_names_of_the_program() {
    let site = site();
    let long = "x".repeat(100_000);
    for name in ["", "-", "..", "../../etc/passwd", "x\u{1b}[2J\ny", "rungate/", long.as_str()] {
        let through = ["bash", "-c", "exec -a \"$0\" \"$@\"", name];
        let outcome = matlab(&site).through(through).outcome();
        assert!(matches!(outcome.ending, Ending::Status(0 | 64 | 127)), "{name:.40?}: {outcome:?}");
        assert!(outcome.stderr.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", outcome.stderr);
        let _holder = matlab(&site).spawn();
        let outcome = matlab(&site).through(through).outcome();
        assert_ne!(outcome.ending, Ending::Status(0), "{name:.40?} got in");
    }
}

/// No arguments at all, not even a name (newer kernels make that one empty argument), and no environment.
#[test]
fn no_arguments_at_all() {
    let site = site();
    let output = site.path("work/output");
    let file = File::create(&output).expect("a file");
    let mut actions = PosixSpawnFileActions::init().expect("actions");
    for descriptor in [1, 2] {
        actions.add_dup2(std::os::fd::AsRawFd::as_raw_fd(&file), descriptor).expect("an action");
    }
    let nothing: [CString; 0] = [];
    let attributes = PosixSpawnAttr::init().expect("attributes");
    let child = posix_spawn(site.rungate(), &actions, &attributes, &nothing, &nothing).expect("a child");
    let WaitStatus::Exited(_, status) = waitpid(child, None).expect("it ends") else {
        panic!("it was killed")
    };
    let said = std::fs::read_to_string(&output).expect("what it said");
    assert_eq!(status, 64, "{said}");
    assert!(said.contains("Usage"), "{said}");
}
