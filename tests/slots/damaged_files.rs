//! This is exact, trusts nothing but the kernel, and holds when the header is garbage, truncated or stale.
//! And what cannot be a repository is a clear error (74) that takes nothing.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::{Ending, Running, Site, Test, eventually, needs_root, needs_strace, seats, set_mode};

const REFUSED: &str = "rungate: matlab: not started: [..]\n...\n";

fn site() -> Site {
    Site::with_seats(3, "", &["matlab"])
}

fn matlab(site: &Site) -> Test {
    site.test().args(["run", "--", "matlab"])
}

/// Whatever somebody does to the content while two of three slots are held: the third is available, no
/// fourth, and an exectimes peer that believes the hint is not let in either.
#[track_caller]
fn holds_in_spite_of(damage: impl Fn(&File)) {
    let site = site();
    let mut holders: Vec<Running> = (0..2).map(|_| matlab(&site).spawn()).collect();
    let file = OpenOptions::new().write(true).open(site.repository("seats.lock")).expect("the repository");
    damage(&file);
    holders.push(matlab(&site).spawn());
    assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3]);
    damage(&file);
    matlab(&site).stderr(REFUSED).status(75);
    let peer = site.test().program(site.helper("peer")).args(["$DIR/repositories/seats.lock"]);
    peer.clone().args(["check"]).stdout("3\n").status(0);
    peer.args(["3", "true"]).status(75);
    // Listing works on whatever is left to read.
    site.test().args(["list"]).stdout("...\n").status(0);
    drop(holders);
    matlab(&site).status(0);
}

#[test]
fn truncated_to_nothing() {
    holds_in_spite_of(|file| file.set_len(0).expect("truncate"));
}

#[test]
fn truncated_in_the_middle_of_the_hint() {
    holds_in_spite_of(|file| file.set_len(5).expect("truncate"));
}

#[test]
fn filled_with_other_bytes() {
    // Not random, but neither a pattern that a header or a record would take for its own.
    let bytes: Vec<u8> = (0..65_536_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    holds_in_spite_of(|file| file.write_all_at(&bytes, 0).expect("overwrite"));
}

#[test]
fn filled_with_records_of_others() {
    // A record that names another process, where ours were.
    let record = format!("{{\"pid\":{},\"command\":\"innocent\",\"uid\":0}}", std::process::id());
    holds_in_spite_of(|file| {
        for slot in 0..3 {
            file.write_all_at(format!("{record:255}\n").as_bytes(), 8192 + 256 * slot).expect("overwrite");
        }
    });
}

#[test]
fn hint_of_any_value() {
    for hint in [0, 1, 7, 8, 1 << 20, 1 << 41, 1 << 43, 1 << 63, u64::MAX] {
        holds_in_spite_of(|file| file.write_all_at(&hint.to_ne_bytes(), 0).expect("overwrite"));
    }
}

/// After the mutex is held, `stat` the path again: another inode means the file was replaced, so release
/// everything, sort again and start over.
#[test]
fn a_file_replaced_between_open_and_lock_is_noticed() {
    for full in [true, false] {
        let site = site();
        matlab(&site).status(0);
        let file = site.repository("seats.lock");
        // While somebody else has the mutex the launcher can open the file, and then gets no further.
        let mutex = site.holder("seats.lock", ["posix", "write", "0:8"]);
        let mut launch = matlab(&site).background();
        let descriptors = format!("/proc/{}/fd", launch.pid());
        eventually("the launcher has the file open", || {
            let mut open = fs::read_dir(&descriptors).ok()?.flatten();
            open.any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == file)).then_some(())
        });
        // The new one is complete before it takes the old one's place.
        let holders = full.then(|| site.holder("new", ["posix", "write", "8:3"]));
        if full {
            fs::rename(site.repository("new"), &file).expect("replace the repository");
        } else {
            fs::remove_file(&file).expect("delete the repository");
        }
        mutex.kill();
        if full {
            let outcome = launch.end();
            assert_eq!(outcome.ending, Ending::Status(75), "{}", outcome.stderr);
            drop(holders);
        } else {
            launch.wait_for_echo();
            assert_eq!(site.held("seats.lock")[0].pid, launch.pid(), "the slot is in the new file");
        }
    }
}

/// What stands in the place of a repository, and the words by which the message must tell it.
#[track_caller]
fn refused_as(site: &Site, words: &str) {
    matlab(site).stderr(&format!("rungate: [..]$DIR/repositories[..]{words}[..]\n...\n")).status(74);
}

#[test]
fn a_directory() {
    let site = site();
    fs::create_dir(site.repository("seats.lock")).expect("a directory");
    refused_as(&site, "directory");
}

/// Never block on a FIFO.
#[test]
fn a_fifo() {
    let site = site();
    mkfifo(&site.repository("seats.lock"), Mode::from_bits_truncate(0o666)).expect("a FIFO");
    refused_as(&site, "FIFO");
}

#[test]
fn a_symlink() {
    for target in ["elsewhere", "missing", "seats.lock"] {
        let site = site();
        site.write("repositories/elsewhere", "");
        symlink(target, site.repository("seats.lock")).expect("a symlink");
        refused_as(&site, "symbolic link");
        assert!(!site.repository("missing").exists());
    }
}

#[test]
fn a_second_hard_link() {
    let site = site();
    matlab(&site).status(0);
    fs::hard_link(site.repository("seats.lock"), site.repository("again.lock")).expect("a hard link");
    refused_as(&site, "link");
}

#[test]
fn a_device() {
    let site = Site::with_policy(&seats(3, "path = \"/dev/null\"", &["matlab"]));
    site.program("matlab");
    matlab(&site).stderr("rungate: [..]/dev/null[..]device[..]\n...\n").status(74);
}

/// `directory` itself only when it is the caller's own: `rungate init` and the package make the system's.
#[test]
fn a_directory_that_is_not_there() {
    let own = site();
    fs::remove_dir(own.repository("")).expect("an empty directory");
    matlab(&own).status(0);
    assert_eq!(fs::metadata(own.repository("")).expect("the directory").permissions().mode() & 0o7777, 0o700);

    needs_root!();
    let system = Site::new();
    system.system_policy(&seats(3, "", &["matlab"]));
    system.program("matlab");
    fs::remove_dir(system.repository("")).expect("an empty directory");
    refused_as(&system, "does not exist");
    assert!(!system.repository("").exists());
}

#[test]
fn a_read_only_file_system() {
    needs_root!();
    let site = site();
    let mounted = "mount -t tmpfs -o ro none $DIR/repositories && exec \"$@\"";
    matlab(&site)
        .through(["unshare", "--mount", "sh", "-c", mounted, "sh"])
        .stderr("rungate: [..]$DIR/repositories/seats.lock[..]Read-only file system[..]\n...\n")
        .status(74);
}

/// When hint or record cannot be written (full disk), refuse (74).
#[test]
fn a_full_disk() {
    needs_root!();
    let site = site();
    // The file system has room for the file's name, not for its content; afterwards nobody holds anything.
    let mounted =
        "mount -t tmpfs -o size=4k none $DIR/repositories && head -c 4096 /dev/zero >$DIR/repositories/filler
        \"$@\"; status=$?
        $PEER $DIR/repositories/seats.lock check
        exit $status";
    let mounted = mounted.replace("$PEER", site.helper("peer").to_str().expect("a plain path"));
    matlab(&site)
        .through(["unshare", "--mount", "sh", "-c", &mounted, "sh"])
        .stdout("0\n")
        .stderr("rungate: [..]$DIR/repositories/seats.lock[..]No space left on device[..]\n...\n")
        .status(74);
}

/// Wherever the descriptors run out: the launch starts with its slots, or it says why not and has none.
#[test]
fn no_descriptors_left() {
    let site = Site::with_policy(
        r#"
        [repository.first]
        limit = 3

        [repository.second]
        limit = 3

        [[rule]]
        name     = "both"
        commands = ["matlab"]
        acquire  = ["first", "second"]
        "#,
    );
    // It lists what it has: a descriptor for each repository.
    site.copy_of("/bin/ls", "matlab");
    let (mut started, mut refused) = (0, 0);
    for limit in 3..=16 {
        let listing = matlab(&site).args(["-l", "/proc/self/fd"]);
        let outcome = listing.through(["prlimit", &format!("--nofile={limit}")]).outcome();
        if outcome.stderr.starts_with("rungate: ") {
            assert!(matches!(outcome.ending, Ending::Status(71 | 74 | 78)), "with {limit}: {outcome:?}");
            assert!(outcome.stderr.contains("Too many open files"), "with {limit}: {outcome:?}");
            assert_eq!(outcome.stdout, "");
            refused += 1;
        } else if outcome.ending == Ending::Status(0) {
            assert_eq!(outcome.stdout.matches("/repositories/").count(), 2, "with {limit}: {outcome:?}");
            started += 1;
        } else {
            // The dynamic linker needs a descriptor, too: rungate's own, or that of the program with its
            // slots.
            assert!(outcome.stderr.contains("loading shared libraries"), "with {limit}: {outcome:?}");
        }
        assert_eq!((site.held("first.lock"), site.held("second.lock")), (vec![], vec![]));
    }
    assert!(started > 0 && refused > 0, "{started} started, {refused} refused");
}

/// A file system that has no room for locks any more, or cannot lock at all: whichever of the calls it is
/// that fails.
#[test]
fn no_locks_left() {
    needs_strace!();
    let site = site();
    let peer = site.helper("peer");
    site.script("matlab", &format!("#!/bin/sh\n{} $DIR/repositories/seats.lock check\n", peer.display()));
    let mut refusals = Vec::new();
    for call in 1..=40 {
        let fails = format!("inject=fcntl:error=ENOLCK:when={call}");
        let strace = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=fcntl", "-e", &fails];
        let outcome = matlab(&site).through(strace).outcome();
        assert_eq!(site.held("seats.lock"), [], "call {call}");
        if outcome.stderr.starts_with("rungate: ") {
            assert_eq!(outcome.ending, Ending::Status(74), "call {call}: {outcome:?}");
            assert!(outcome.stderr.contains("locks available"), "call {call}: {outcome:?}");
            assert_eq!(outcome.stdout, "", "call {call}");
            refusals.push(outcome.stderr);
        } else if outcome.ending == Ending::Status(0) {
            assert_eq!(outcome.stdout, "1\n", "call {call} does not matter: it runs with its slot");
        }
    }
    assert!(refusals.len() > 3 && refusals.iter().any(|text| text.contains("SETLK")), "{refusals:?}");
}

#[test]
fn a_file_that_the_user_may_not_write() {
    needs_root!();
    let site = site();
    site.write("repositories/seats.lock", "");
    set_mode(&site.repository("seats.lock"), 0o644);
    matlab(&site)
        .user("games")
        .stderr("rungate: [..]$DIR/repositories/seats.lock[..]Permission denied[..]\n...\n")
        .status(74);
    assert!(Path::new(&site.repository("seats.lock")).exists());
}
