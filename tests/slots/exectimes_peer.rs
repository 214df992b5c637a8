//! Compatible with exectimes, so that both can work on one file at the same time and neither lets in too
//! many.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::{Ending, Observed, Observer, Running, Site, Test, needs_root, storm_size};

const SEATS: &str = "$DIR/repositories/seats";

fn peer(site: &Site) -> Test {
    site.test().program(site.helper("peer")).args([SEATS])
}

fn rungate(site: &Site) -> Test {
    site.test().args(["run", "--repository", SEATS, "--limit", "3", "--"])
}

/// Each side counts and lists the holders of the other.
#[test]
fn each_side_sees_the_holders_of_the_other() {
    let site = Site::new();
    let ours = rungate(&site).args(["cat"]).spawn();
    let theirs = [0; 2].map(|_| peer(&site).args(["3", "cat"]).spawn());

    let mut pids: Vec<i32> = [&ours].into_iter().chain(&theirs).map(Running::pid).collect();
    // The last word of each line: the peer prints nothing else, the original "Slot 1 held by PID 8123".
    let listed = |outcome: String| {
        let last =
            |line: &str| line.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a process id");
        let mut pids: Vec<i32> = outcome.lines().map(last).collect();
        pids.sort_unstable();
        pids
    };
    pids.sort_unstable();
    assert_eq!(listed(peer(&site).args(["list"]).outcome().stdout), pids);
    assert_eq!(listed(site.test().args(["exectimes", SEATS, "list"]).outcome().stdout), pids);
    peer(&site).args(["check"]).stdout("3\n").status(0);

    peer(&site).args(["3", "cat"]).status(75);
    rungate(&site).args(["cat"]).stderr("rungate: cat: not started: [..]\n...\n").status(75);
    drop(ours);
    peer(&site).args(["3", "cat"]).status(0);
    rungate(&site).args(["cat"]).status(0);
}

fn exectimes(site: &Site, words: &[&str]) -> Test {
    site.test().args(["exectimes"]).args(words)
}

/// The lock file is a regular file that has one name. … The original follows links, and takes devices.
#[test]
fn a_lock_file_is_a_regular_file_with_one_name() {
    let site = Site::new();
    let file = |name: &str| site.repository(name);
    fs::write(file("file"), "").expect("a new file");
    symlink(file("file"), file("link")).expect("a new link");
    fs::write(file("two"), "").expect("a new file");
    fs::hard_link(file("two"), file("names")).expect("another name");
    mkfifo(&file("fifo"), Mode::from_bits_truncate(0o666)).expect("a new FIFO");
    fs::create_dir(file("directory")).expect("a new directory");
    for (path, fault) in [
        ("$DIR/repositories/link", "is a symbolic link, not a lock file"),
        ("$DIR/repositories/names", "has 2 names (hard links), a lock file has one"),
        ("$DIR/repositories/fifo", "is a FIFO, not a lock file"),
        ("$DIR/repositories/directory", "is a directory, not a lock file"),
        ("/dev/null", "is a device, not a lock file"),
    ] {
        let said = format!("Failed to lock file: {path} {fault}\n");
        exectimes(&site, &[path, "1", "true"]).stderr(&said).status(1);
    }
}

/// Looking creates nothing: a file that does not exist has no holders, also where its directory is missing.
#[test]
fn looking_at_a_missing_file_creates_nothing() {
    let site = Site::new();
    for path in ["$DIR/work/none", "$DIR/work/no/such"] {
        exectimes(&site, &[path, "check"]).stdout("0 instances running\n").status(0);
        exectimes(&site, &[path, "list"]).status(0);
    }
    assert!(!site.path("work/none").exists() && !site.path("work/no").exists());
}

/// "The original takes the lowest slot that is free, rungate the next one after that which was taken last."
#[test]
fn slots_are_taken_in_turn() {
    let site = Site::new();
    let numbers = |test: Test| {
        let _running = test.spawn();
        site.held_numbers("seats")
    };
    for number in [1, 2, 3, 1, 2] {
        assert_eq!(numbers(exectimes(&site, &[SEATS, "3", "cat"])), [number]);
    }
    for _ in 0..2 {
        assert_eq!(numbers(peer(&site).args(["3", "cat"])), [1]);
    }
    assert_eq!(numbers(exectimes(&site, &[SEATS, "3", "cat"])), [3]);
}

/// "*max* is a number from 0 to 4294967295, also with blanks or a plus sign in front."
#[test]
fn the_limit_is_a_number() {
    let site = Site::new();
    for max in ["1", " 1", "+1", "4294967295"] {
        exectimes(&site, &[SEATS, max, "true"]).status(0);
    }
    let none = "Cannot start, 0 instances already running\n";
    exectimes(&site, &[SEATS, "0", "true"]).stderr(none).status(1);
    for max in ["-1", "4294967296", "4294967297", "99999999999999999999", "3x", "x", "", "1 "] {
        let said = format!(
            "exectimes: max-instances is a number from 0 to 4294967295, not \"{max}\"\nUsage: exectimes lock-file max-instances command\n"
        );
        exectimes(&site, &[SEATS, max, "true"]).stderr(&said).status(1);
    }
}

/// "A holder that cannot be named has the number -1."
#[test]
fn a_holder_without_a_process_is_listed() {
    needs_root!();
    let site = Site::new();
    let holder = site.holder("seats", ["ofd", "read", "8:1"]);
    let list = exectimes(&site, &[SEATS, "list"]);
    list.clone().stdout(&format!("Slot 1 held by PID {}\n", holder.pid())).status(0);
    list.user("games").stdout("Slot 1 held by PID -1\n").status(0);
    exectimes(&site, &[SEATS, "check"]).stdout("1 instances running\n").status(0);
    exectimes(&site, &[SEATS, "1", "true"]).stderr("Cannot start, 1 instances already running\n").status(1);
}

/// Messages on the usage, on holders, and on a limit that is reached are the original's to the letter;
/// others … tell more.
#[test]
fn messages_begin_as_the_originals_do() {
    let site = Site::new();
    let usage = "Usage: exectimes lock-file max-instances command\n";
    for words in [&[][..], &[SEATS], &[SEATS, "1"]] {
        exectimes(&site, words).stdout(usage).status(1);
    }
    assert!(!site.repository("seats").exists());
    let said = "exec failed: nowhere: not found in PATH ([..])\n";
    exectimes(&site, &[SEATS, "1", "nowhere"]).stderr(said).status(1);
    let said = "Failed to lock file: the directory of the repositories, $DIR/work/no, does not exist\n";
    exectimes(&site, &["$DIR/work/no/such", "1", "true"]).stderr(said).status(1);
}

/// A process that becomes another keeps its locks, and the original does not see those of its own process:
/// so one exectimes may become another, and keeps its one slot.
#[test]
fn one_exectimes_may_become_another() {
    let site = Site::new();
    let rungate = site.rungate().display().to_string();
    let ours = |most: &str| vec![rungate.clone(), "exectimes".into(), SEATS.into(), most.to_owned()];
    let theirs = |most: &str| vec![site.helper("peer").display().to_string(), SEATS.into(), most.to_owned()];
    let cat = |chain: &[Vec<String>]| site.test().program("/usr/bin/env").args(chain.concat()).args(["cat"]);
    for outer in [ours("2"), theirs("2")] {
        let first = cat(&[outer.clone(), ours("2"), ours("1")]).spawn();
        assert_eq!(site.held_numbers("seats"), [1]);
        assert_eq!(site.held("seats")[0].pid, first.pid());
        let second = cat(&[outer.clone(), ours("2")]).spawn();
        assert_eq!(site.held_numbers("seats"), [1, 2]);
        drop(first);
        // The slots of others count for each of them.
        cat(&[outer, ours("1")]).stderr("Cannot start, 2 instances already running\n").status(1);
        drop(second);
        assert_eq!(site.held("seats"), []);
    }
    // A child is another process.
    let child = format!("{rungate} exectimes {SEATS} 1 true; exit $?");
    site.test()
        .args(["exectimes", SEATS, "1", "sh", "-c", &child])
        .stderr("Cannot start, 1 instances already running\n")
        .status(1);
}

/// A child of a holder is another process, and takes a slot of its own.
#[test]
fn a_child_of_an_exectimes_counts_beside_it() {
    let site = Site::new();
    let child = format!("{} exectimes {SEATS} 2 cat; exit $?", site.rungate().display());
    let _both = exectimes(&site, &[SEATS, "2", "sh", "-c", &child]).spawn();
    assert_eq!(site.held_numbers("seats"), [1, 2]);
}

/// A slot that a descriptor keeps is listed with its process too, beside one of a process.
#[test]
fn each_holder_is_listed_with_its_process() {
    let site = Site::new();
    let words = ["run", "--hold", "descriptor", "--repository", SEATS, "--limit", "3", "--", "cat"];
    let by_descriptor = site.test().args(words).spawn();
    let by_process = exectimes(&site, &[SEATS, "3", "cat"]).spawn();
    let listed = exectimes(&site, &[SEATS, "list"]).outcome().stdout;
    let mut lines: Vec<&str> = listed.lines().collect();
    lines.sort_unstable();
    let line = |slot: i32, holder: &Running| format!("Slot {slot} held by PID {}", holder.pid());
    assert_eq!(lines, [line(1, &by_descriptor), line(2, &by_process)]);
}

/// Whoever waits comes first, and that is said where fewer are running than may.
#[test]
fn behind_a_waiting_line_it_says_so() {
    let site = Site::new();
    let _holder = rungate(&site).args(["cat"]).spawn();
    let wants_all =
        ["run", "-w", "forever", "--repository", SEATS, "--limit", "3", "--slots", "3", "--", "cat"];
    let waiting = site.test().args(wants_all).background();
    site.stands_in_line("seats", &waiting);
    let exectimes = |most: &str| site.test().args(["exectimes", SEATS, most, "cat"]);
    exectimes("3").stderr("Cannot start, 1 instances already running, 1 waiting\n").status(1);
    exectimes("1").stderr("Cannot start, 1 instances already running\n").status(1);
}

/// A thousand starts each way at the same time: never more than the limit.
#[test]
fn storm_of_both_sides_keeps_the_limit() {
    let site = Site::new();
    site.copy_of("/bin/sleep", "nap");
    let mut observer = Observer::watch(&site, [("seats", 3)]);
    // How many it sees at once in a storm is a matter of luck; that it sees them all, show some that stay.
    let stay = [peer(&site).args(["3", "cat"]), rungate(&site).args(["cat"]), peer(&site).args(["3", "cat"])];
    let stay = stay.map(|one| one.spawn());
    assert_eq!(observer.report(), [Observed { most: 3, violations: 0 }]);
    drop(stay);
    let starts = storm_size(1_000);
    let commands = [rungate(&site).args(["nap", "0.002"]), peer(&site).args(["3", "nap", "0.002"])];
    let started: Vec<usize> = thread::scope(|scope| {
        let workers: Vec<_> = commands
            .iter()
            .flat_map(|command| [command; 3])
            .map(|command| scope.spawn(move || (0..starts.div_ceil(3)).filter(|_| admitted(command)).count()))
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker")).collect()
    });
    assert_eq!(observer.report(), [Observed { most: 3, violations: 0 }]);
    let (ours, theirs) = started.split_at(3);
    assert!(
        ours.iter().sum::<usize>() > 0 && theirs.iter().sum::<usize>() > 0,
        "{started:?}: both sides start"
    );
    assert_eq!(site.held("seats"), []);
}

/// Whether the launch was admitted; it must have been refused otherwise.
fn admitted(command: &Test) -> bool {
    let outcome = command.outcome();
    match outcome.ending {
        Ending::Status(0) => true,
        Ending::Status(75) => false,
        other => panic!("{other:?}: {}", outcome.stderr),
    }
}
