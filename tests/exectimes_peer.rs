//! "Compatible with exectimes, so that both can work on one file at the same time and neither lets in too many."

use std::thread;

use crate::support::{Ending, Observed, Observer, Running, Site, Test, storm_size};

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

/// A thousand starts each way at the same time: never more than the limit.
#[test]
fn storm_of_both_sides_keeps_the_limit() {
    let site = Site::new();
    site.copy_of("/bin/sleep", "nap");
    let mut observer = Observer::watch(&site, [("seats", 3)]);
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
