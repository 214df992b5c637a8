//! While a launch has a mutex it does a bounded amount of work, whatever others have locked, and nothing
//! that can be done before or after. What counts is the number of system calls, and never the time that they
//! take.

use std::{fs::File, sync::MutexGuard};

use nix::sys::signal::Signal;

use crate::support::{
    Ending, Fault, Report, Running, Sabotage, Site, Test, TracedCall, alone_with_the_machine, eventually,
    storm_size, tell,
};

/// Where those who wait in the queue have their locks, how far apart, and where the limits of another policy
/// begin.
const STANDING: u64 = 1 << 61;
const STRETCH: u64 = 1 << 32;
const GENERATION: u64 = 1 << 20;

/// Where the launch with the number 2 has its place. Each heartbeat makes its lock longer.
const PLACE_OF_TWO: i64 = (1 << 62) + (2 << 20);

/// The kernel shows the locks of the whole host in one listing, which is no snapshot: while thousands come
/// and go, some are missing in it, and more has to be asked. Only one test has thousands at a time.
fn alone() -> (File, MutexGuard<'static, ()>) {
    alone_with_the_machine()
}

fn launch(site: &Site, options: &[&str], limit: usize) -> Test {
    let limit = limit.to_string();
    let seats = "$DIR/repositories/seats";
    site.test().args(["run"]).args(options).args(["--limit", &limit, "--repository", seats, "--", "matlab"])
}

fn site() -> Site {
    let site = Site::new();
    site.script("matlab", "#!/bin/sh\n");
    site
}

/// One process that has locked so many ranges.
fn crowd(site: &Site, owner: &str, ranges: impl Iterator<Item = String>) -> Running {
    let ranges: Vec<String> = ranges.collect();
    let kind = if owner == "ofd" { "read" } else { "write" };
    site.holder("seats", [owner, kind].into_iter().chain(ranges.iter().map(String::as_str)))
}

/// Every second slot, so many of them.
fn every_second_slot(site: &Site, count: usize) -> Running {
    // Backwards, which is quick: each is the first in the kernel's list.
    crowd(site, "ofd", (0..count).rev().map(|slot| format!("{}:1", 8 + 2 * slot)))
}

fn traced(site: &Site, test: &Test) -> Report {
    Sabotage::begin(test, Fault::List, &[]).end(site)
}

/// What a launch does from the first lock that it takes or releases to the last: the first is the mutex,
/// and so is the last.
fn under_the_mutex(report: &Report) -> &[TracedCall] {
    let is_lock = |call: &TracedCall| call.name.contains("F_SETLK") && !call.name.contains("OFD");
    let first = report.calls.iter().position(is_lock).expect("the mutex is taken");
    let last = report.calls.iter().rposition(is_lock).expect("the mutex is given back");
    &report.calls[first..=last]
}

fn count(calls: &[TracedCall], name: &str, about: &str) -> usize {
    calls.iter().filter(|call| call.name.contains(name) && call.about.contains(about)).count()
}

/// Who is going to be admitted has read before what it records.
#[test]
fn an_admission_reads_nothing_of_proc_under_the_mutex() {
    let _alone = alone();
    let site = site();
    launch(&site, &["-q"], 5).status(0);
    let report = traced(&site, &launch(&site, &["-q"], 5));
    assert_eq!(report.ending, Ending::Status(0));
    let under = under_the_mutex(&report);
    assert!(
        count(&report.calls, "open", "/proc/sys/kernel/random/boot_id") > 0,
        "the watcher sees such calls"
    );
    assert_eq!(count(under, "", "/proc"), 0, "{under:?}");
    assert!(under.len() <= 20, "{} calls: {under:?}", under.len());
}

/// "A look ends with the locks that prove the refusal."
#[test]
fn the_first_locks_that_are_seen_prove_a_refusal() {
    let _alone = alone();
    let site = site();
    let _crowd = every_second_slot(&site, 3000);
    // The first one also finds the highest of all, for its peers.
    launch(&site, &["-q"], 5).status(75);
    let report = traced(&site, &launch(&site, &["-q"], 5));
    assert_eq!(report.ending, Ending::Status(75));
    let asked = count(&report.calls, "GETLK", "");
    assert!(asked <= 16, "{asked} questions, and five locks are enough");
    assert_eq!(count(&report.calls, "open", "/proc/locks"), 0);
}

/// Where more than a thousand have to be seen, the listing of all locks is read, once.
#[test]
fn many_locks_are_read_from_one_listing() {
    let _alone = alone();
    let site = site();
    let _crowd = every_second_slot(&site, 3000);
    launch(&site, &["-q"], 3000).status(75);
    let report = traced(&site, &launch(&site, &["-q"], 3000));
    assert_eq!(report.ending, Ending::Status(75));
    assert_eq!(count(&report.calls, "open", "/proc/locks"), 1);
    let asked = count(&report.calls, "GETLK", "");
    assert!(asked <= 100, "{asked} questions beside the listing");
    // Whoever is hidden between those that it shows is asked for: that is exact, and there is room.
    let report = traced(&site, &launch(&site, &["-q"], 3010));
    assert_eq!(report.ending, Ending::Status(0));
    let asked = count(&report.calls, "GETLK", "");
    assert!((3000..3100).contains(&asked), "{asked} questions for 3,000 gaps");
}

/// Beyond that nobody can tell, and nothing starts. `RUNGATE_STORM` makes it more.
#[test]
fn a_flood_of_scattered_locks_costs_a_bounded_number_of_questions() {
    let _alone = alone();
    let site = site();
    let count_of_locks = storm_size(8000).max(8000);
    let _crowd = every_second_slot(&site, count_of_locks);
    let test = launch(&site, &["-q"], count_of_locks + 10);
    let is_bounded = |_| {
        let report = traced(&site, &test);
        assert_eq!(report.ending, Ending::Status(74), "{}", report.stderr);
        count(&report.calls, "GETLK", "") <= 4200
    };
    // While others on the host take and free locks the listing misses some, and the fewer it has, the cheaper is
    // each question.
    assert!((0..5).any(is_bounded), "more questions each time, however many gaps there are");
    launch(&site, &[], count_of_locks + 10)
        .stderr(
            "rungate: matlab: not started: $DIR/repositories/seats has too many scattered locks to tell whether there is room\n\
             To see who has them: lslocks -o PID,COMMAND,PATH\n",
        )
        .status(74);
    // Nobody sits beyond, and there is a free slot: a handful of questions says so.
    let report = traced(&site, &launch(&site, &["-q"], 3 * count_of_locks));
    assert_eq!(report.ending, Ending::Status(0));
}

/// A message tells of a bounded number of holders, and that there are more.
#[test]
fn a_message_asks_proc_about_few_of_many_holders() {
    let _alone = alone();
    let site = site();
    let holder = |slot: u64| crowd(&site, "posix", [format!("{}:1", 8 + slot)].into_iter());
    let _holders: Vec<Running> = (0..60).map(holder).collect();
    let report = traced(&site, &launch(&site, &[], 60));
    assert_eq!(report.ending, Ending::Status(75));
    let asked = count(&report.calls, "open", "/stat");
    // Those of whom it can tell, and the ancestors of the launch.
    assert!(asked < 40, "{asked} processes were asked about: {}", report.stderr);
    launch(&site, &[], 60).stderr("...\n      and 56 more: rungate list [..]\n...\n").status(75);
    let quiet = traced(&site, &launch(&site, &["-q"], 60));
    assert_eq!(quiet.ending, Ending::Status(75));
    let asked = count(&quiet.calls, "open", "/stat");
    assert!(asked <= 1, "{asked} processes were asked about for nobody");
}

/// Those whose limit is lower are passed, however many they are; and whoever is stopped is asked once.
#[test]
fn a_long_line_of_others_is_passed_in_a_few_questions() {
    let _alone = alone();
    for is_stopped in [false, true] {
        let site = site();
        // Either below a lower limit, or stopped, with the same.
        let reach = if is_stopped { 5 } else { 1 };
        let standing = (1..=1500).map(|number| format!("{}:1", STANDING + number * STRETCH + reach));
        let crowd = crowd(&site, "posix", standing);
        if is_stopped {
            crowd.signal(Signal::SIGSTOP);
            eventually("the crowd stops", || (crowd.state() == 'T').then_some(()));
        }
        let report = traced(&site, &launch(&site, &["-q"], 5));
        assert_eq!(report.ending, Ending::Status(0), "{is_stopped}: {}", report.stderr);
        let asked = count(&report.calls, "GETLK", "");
        assert!(asked < 4000, "{asked} questions ({is_stopped})");
        let read = count(&report.calls, "open", "/stat");
        assert!(read <= 4, "{read} processes were asked about ({is_stopped})");
    }
}

/// A lock that means nothing is looked past, but not thousands of them: nobody could tell who waits.
/// Whoever waits in the queue stays there.
#[test]
fn locks_that_mean_nothing_hide_the_line_from_newcomers_alone() {
    let _alone = alone();
    let site = site();
    let meaningless =
        || (1..=2000).map(|number| format!("{}:2", STANDING + 2 * STRETCH + number * GENERATION - 1));
    let holder = launch(&site, &["-q"], 1);
    site.script("matlab", "#!/bin/sh\nexec cat\n");
    let mut running = holder.background();
    running.wait_for_echo();
    let mut waiting = launch(&site, &["-q", "-w", "forever"], 1).background();
    eventually("it stands in line", || (site.line("seats").len() == 1).then_some(()));
    let crowd = crowd(&site, "ofd", meaningless());
    let report = traced(&site, &launch(&site, &["-q"], 1));
    assert_eq!(report.ending, Ending::Status(74), "{}", report.stderr);
    let asked = count(&report.calls, "GETLK", "");
    assert!(asked < 100, "{asked} questions about locks that mean nothing");
    eventually("it waits on", || (waiting.state() == 'S').then_some(()));
    drop(crowd);
    running.close_stdin();
    running.end();
    waiting.close_stdin();
    assert_eq!(waiting.end().ending, Ending::Status(0));
}

/// The same where such locks hide who waits ahead: each time that it looks it meets them, and waits on.
#[test]
fn locks_that_mean_nothing_cost_no_waiter_its_place() {
    let site = site();
    site.script("matlab", "#!/bin/sh\nexec cat\n");
    let mut running = launch(&site, &["-q"], 1).background();
    running.wait_for_echo();
    let wait = || launch(&site, &["-q", "-w", "forever"], 1).background();
    let first = wait();
    site.stands_in_line("seats", &first);
    let mut waiting = wait();
    site.stands_in_line("seats", &waiting);
    // Its number is free, so that the kernel names only what means nothing.
    first.kill();
    // Who slept behind it has its lock for a moment.
    eventually("its number is free", || {
        let line = site.line("seats");
        line.iter().map(|waiter| (waiter.number, waiter.pid)).eq([(2, waiting.pid())]).then_some(())
    });
    let crowd = crowd(
        &site,
        "ofd",
        (1..=20).map(|number| format!("{}:2", STANDING + STRETCH + number * GENERATION - 1)),
    );
    let beats = || site.lock_between("seats", PLACE_OF_TWO, PLACE_OF_TWO + 1).map_or(0, |lock| lock.l_len);
    let before = beats();
    eventually("it has sent five heartbeats", || {
        assert!(!waiting.is_zombie(), "it waits no more: {:?}", waiting.end());
        (beats() >= before + 5).then_some(())
    });
    drop(crowd);
    running.close_stdin();
    running.end();
    waiting.wait_for_echo();
}

/// `RUNGATE_STORM=10` makes it a thousand at once.
#[test]
fn a_storm_of_refusals_at_a_thousand_held_ends_with_refusals_alone() {
    let _alone = alone();
    for count in [1000, 10_000] {
        let site = site();
        let _crowd = every_second_slot(&site, count);
        let begun = std::time::Instant::now();
        let mut launches: Vec<Running> =
            (0..storm_size(100)).map(|_| launch(&site, &["-q"], 1000).background()).collect();
        let endings: Vec<Ending> = launches.iter_mut().map(|launch| launch.end().ending).collect();
        tell(&format!("{} refusals with {count} locks took {:?}", endings.len(), begun.elapsed()));
        assert_eq!(endings, vec![Ending::Status(75); endings.len()]);
    }
}
