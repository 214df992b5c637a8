//! The four traps of POSIX locks, each seen to bite in experiments.

use std::{fs, os::unix::fs::symlink};

use nix::{
    sys::{signal::Signal, stat::Mode},
    unistd::mkfifo,
};

use crate::support::{Ending, Running, Site, Test, eventually, is_alive, seats};

/// Closing *any* descriptor of a file drops all of the process's POSIX locks on it. Two claims that reach
/// the same (dev, ino) share one descriptor. And: When several claims name the same file (the same inode,
/// whatever their spelling) they are one claim: the lowest limit, the largest slots (not the sum).
#[test]
fn two_spellings_of_one_file_are_one_claim_that_stays() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 3

        [repository.other-name]
        path  = "again/seats.lock"
        limit = 2

        [[rule]]
        name     = "by both names"
        commands = ["matlab"]
        acquire  = ["seats", "other-name"]
        "#,
    );
    symlink(".", site.repository("again")).expect("a symlink to the directory itself");
    site.program("matlab");
    let matlab = site.test().args(["run", "--", "matlab"]);
    let running = [matlab.spawn(), matlab.spawn()];
    assert_eq!(site.held_numbers("seats.lock"), [1, 2], "one slot each");
    matlab.clone().stderr("rungate: matlab: not started: [..]\n...\n").status(75);
    drop(running);
    matlab.status(0);
}

/// A launch may run in the very process that holds the slot (a shim that execs a script that execs a shim).
#[test]
fn a_launch_in_the_process_of_a_holder_keeps_what_it_holds() {
    // The wrapper becomes the launcher again, in the same process, and that the program.
    let wrapper = "#!/bin/sh\n[ \"$1\" = inner ] && exec cat\nexec $RUNGATE run -- matlab inner\n";
    for (nested, numbers) in [("join", vec![1]), ("take", vec![1, 2])] {
        let site = Site::with_policy(&seats(2, &format!("nested = \"{nested}\""), &["matlab"]));
        site.script("matlab", &wrapper.replace("$RUNGATE", site.rungate().to_str().expect("a plain path")));
        let running = site.test().args(["run", "--", "matlab"]).spawn();
        assert_eq!(site.held_numbers("seats.lock"), numbers, "nested = {nested:?}");
        assert!(site.held("seats.lock").iter().all(|slot| slot.pid == running.pid()), "nested = {nested:?}");
        // Not only the first of them: a script that opens a file of its own on a low number would close one,
        // and drop both slots.
        let numbers =
            fs::read_dir(format!("/proc/{}/fd", running.pid())).expect("the descriptors of a child");
        let ours = numbers.map(|entry| entry.expect("an entry")).filter(|entry| {
            fs::read_link(entry.path()).is_ok_and(|file| file == site.repository("seats.lock"))
        });
        let numbers = ours.map(|entry| entry.file_name().into_string().expect("a number").parse::<i32>());
        let numbers: Vec<i32> = numbers.map(|number| number.expect("a number")).collect();
        assert!(numbers.len() > 1 && numbers.iter().all(|number| *number >= 200), "{nested:?}: {numbers:?}");
        running.kill();
        assert_eq!(site.held("seats.lock"), [], "nested = {nested:?}");
    }
}

/// The path is always opened again: through a description that came along its own locks cannot be seen, so
/// that several launches below one `exec 9<>FILE` all ran on one slot.
#[test]
fn a_descriptor_that_somebody_left_open_hides_no_slot() {
    for hold in ["process", "descriptor", "supervisor", "tree"] {
        for left_open in ["exec 9<>$FILE", "exec 9<>$FILE; flock 9", "exec 9<$FILE", "exec 0<>$FILE"] {
            let site = Site::with_policy(&seats(1, "", &["matlab"]));
            site.script("matlab", "#!/bin/sh\necho started\nexec tail -f /dev/null\n");
            let rungate = site.rungate().display();
            let launch = format!("{rungate} run --hold {hold} -- matlab");
            let file = site.repository("seats.lock");
            let script = format!(
                ": > $FILE; {left_open}; {launch} & read go < $FILE.go; {launch} 2>/dev/null; echo $?; kill $!; wait"
            );
            let script = script.replace("$FILE", file.to_str().expect("a plain path"));
            let go = site.repository("seats.lock.go");
            mkfifo(&go, Mode::from_bits_truncate(0o666)).expect("a new FIFO");
            let mut shell = site.test().program("/bin/bash").args(["-c", &script]).background();
            assert_eq!(shell.read_line(), "started\n", "{hold}: {left_open}");
            fs::write(&go, "go\n").expect("the shell reads");
            assert_eq!(shell.read_line(), "75\n", "{hold}: {left_open}");
            shell.end();
        }
    }
}

/// Where this process holds a slot of the file, its descriptors stay open: also when the inner launch looks
/// at that file, and then takes its slot elsewhere.
#[test]
fn looking_at_a_file_does_not_drop_the_slot_that_this_process_holds_there() {
    let site = Site::with_policy(
        r#"
        [repository.first]
        limit  = 1
        nested = "take"

        [repository.second]
        limit = 1

        [[rule]]
        name     = "outer"
        commands = ["outer"]
        acquire  = ["first"]

        [[rule]]
        name     = "inner"
        commands = ["inner"]
        acquire  = [{ any_of = ["first", "second"] }]
        "#,
    );
    site.program("inner");
    let rungate = site.rungate().to_str().expect("a plain path").to_owned();
    site.script("outer", &format!("#!/bin/sh\nexec {rungate} run -- inner\n"));
    let running = site.test().args(["run", "--", "outer"]).spawn();
    for repository in ["first.lock", "second.lock"] {
        let pids: Vec<i32> = site.held(repository).iter().map(|slot| slot.pid).collect();
        assert_eq!(pids, [running.pid()], "{repository}");
    }
}

/// The two together: a launch in the process of a holder that reaches the holder's file by two paths opens it
/// twice, and needs one of the two no more.
#[test]
fn a_launch_in_the_process_of_a_holder_may_reach_the_file_by_two_paths() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit  = 3
        nested = "take"

        [repository.other-name]
        path   = "again/seats.lock"
        limit  = 3
        nested = "take"

        [[rule]]
        name     = "outer"
        commands = ["outer"]
        acquire  = ["seats"]

        [[rule]]
        name     = "inner"
        commands = ["inner"]
        acquire  = ["seats", "other-name"]
        "#,
    );
    symlink(".", site.repository("again")).expect("a symlink to the directory itself");
    site.program("inner");
    let rungate = site.rungate().to_str().expect("a plain path").to_owned();
    site.script("outer", &format!("#!/bin/sh\nexec {rungate} run -- inner\n"));
    let running = site.test().args(["run", "--", "outer"]).spawn();
    assert_eq!(site.held("seats.lock").iter().map(|slot| slot.pid).collect::<Vec<i32>>(), [running.pid(); 2]);
}

/// A job that is overdue and does not end before its input does, and a sweep that is a limited program itself.
fn sweep_of_an_overdue_job() -> (Site, Running, Test) {
    let site = Site::with_policy(
        r#"
        [repository.first]
        limit        = 1
        expire_after = "1h"

        [repository.second]
        limit        = 1
        expire_after = "1ms"
        expire_grace = "10m"

        [[rule]]
        name     = "first"
        commands = ["sweep"]
        acquire  = ["first"]

        [[rule]]
        name     = "second"
        commands = ["job"]
        acquire  = ["second"]
        "#,
    );
    let job = site.test().args(["run", "--as", "job", "--"]).args([&site.helper("witness")]);
    let job = job.through(["env", "--default-signal"]).spawn();
    let sweep = site.test().args(["run", "--as", "sweep", "--"]).args([site.rungate()]);
    let sweep = sweep.through(["env", "--default-signal"]);
    (site, job, sweep)
}

/// Starts the sweep, which has seen the lock file of its own slot when the job has its signals.
#[track_caller]
fn sweeps(sweep: &Test, job: &mut Running) -> Running {
    let sweeping = sweep.clone().args(["end", "--overdue"]).background();
    let mut asked = [job.read_line(), job.read_line()];
    asked.sort();
    assert_eq!(asked, ["SIGCONT\n", "SIGINT\n"]);
    sweeping
}

/// A subcommand of rungate that is the limited program closes the lock file when it has seen it. It keeps its
/// slot until it ends, and it ends as it would without a slot.
#[test]
fn a_subcommand_that_is_the_limited_program_keeps_its_slot() {
    let (site, mut job, sweep) = sweep_of_an_overdue_job();
    let mut sweeping = sweeps(&sweep, &mut job);
    assert_eq!(site.held("first.lock").iter().map(|slot| slot.pid).collect::<Vec<i32>>(), [sweeping.pid()]);
    sweep.clone().args(["list"]).stderr("rungate: [..]: not started: [..]\n...\n").status(75);
    job.close_stdin();
    let ended = sweeping.end();
    assert_eq!(ended.ending, Ending::Status(0), "{}", ended.stderr);
    assert!(ended.stderr.starts_with("rungate: second: ended PID "), "{}", ended.stderr);
    assert_eq!(site.held("first.lock"), []);

    let plain = site.test().args(["list", "third"]).outcome();
    assert_ne!(plain.ending, Ending::Status(0));
    let limited = sweep.args(["list", "third"]).outcome();
    assert_eq!((limited.ending, limited.stderr), (plain.ending, plain.stderr));
}

/// "explain" without a command looks at lock files like any subcommand, and its process keeps its slot.
#[test]
fn explain_without_a_command_keeps_the_slot_of_its_own_process() {
    let names: Vec<String> = (0..1000).map(|n| format!("{}{n}", "x".repeat(95))).collect();
    let repositories: String = names.iter().map(|name| format!("[repository.{name}]\nlimit = 1\n")).collect();
    let rule = format!("[[rule]]\ncommands = [\"other\"]\nacquire = {names:?}\n");
    let site = Site::with_policy(&(repositories + &seats(1, "", &["mine"]) + &rule));
    let mine = site.test().args(["run", "--as", "mine", "--"]).args([site.rungate()]);
    let mut explaining = mine.args(["explain"]).background();
    // It has looked, and does not end, because the pipe has no room for all that it says.
    assert!(!explaining.read_line().is_empty());
    assert_eq!(site.held("seats.lock").iter().map(|slot| slot.pid).collect::<Vec<i32>>(), [explaining.pid()]);
    while !explaining.read_line().is_empty() {}
    let ended = explaining.end();
    assert_eq!(ended.ending, Ending::Status(0), "{}", ended.stderr);
}

/// A signal that ends its process ends the subcommand too. SIGKILL leaves none without a slot.
#[test]
fn a_subcommand_ends_with_the_process_that_has_its_slot() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGKILL] {
        let (site, mut job, sweep) = sweep_of_an_overdue_job();
        let mut sweeping = sweeps(&sweep, &mut job);
        let pid = sweeping.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("it runs");
        let child: i32 = children.trim_end().parse().expect("one child");
        sweeping.signal(signal);
        assert_eq!(sweeping.end().ending, Ending::Signal(signal as i32));
        eventually("the subcommand has ended", || (!is_alive(child)).then_some(()));
        assert_eq!(site.held("first.lock"), []);
    }
}

/// A nested launch that is refused, or that finds nothing to execute, ends its process: nothing of it
/// remains.
#[test]
fn a_nested_launch_that_fails_leaves_nothing() {
    let site = Site::with_policy(&seats(1, "nested = \"take\"", &["outer", "missing"]));
    let rungate = site.rungate().to_str().expect("a plain path").to_owned();
    site.script("outer", &format!("#!/bin/sh\nexec {rungate} run -- missing\n"));
    site.test().args(["run", "--", "outer"]).stderr("rungate: [..]\n...\n").status(127);
    assert_eq!(site.held("seats.lock"), []);
}

/// A query over a range returns the first conflicting lock in the *kernel's list order*, not the lowest.
#[test]
fn locks_that_were_taken_in_any_order_are_all_counted() {
    let site = Site::new();
    site.program("matlab");
    let holder = site.holder("seats", ["posix", "write", "57:1", "17:1", "37:1"]);
    let matlab = |limit| {
        let seats = ["run", "--repository", "$DIR/repositories/seats", "--limit", limit, "--", "matlab"];
        site.test().args(seats)
    };
    matlab("3").stderr("rungate: matlab: not started: [..]\n...\n").status(75);
    let running = matlab("4").spawn();
    assert_eq!(site.held_numbers("seats").len(), 4);
    drop(running);
    drop(holder);
    matlab("1").status(0);
}

/// Neighbouring locks of one owner are merged and a foreign lock may cover many bytes or run to the end:
/// clamp, and count bytes, not locks.
#[test]
fn a_foreign_lock_counts_with_every_byte_it_covers() {
    for (owner, kind) in [("posix", "write"), ("ofd", "read")] {
        let site = Site::new();
        site.program("matlab");
        let matlab = |limit| {
            let seats = ["run", "--repository", "$DIR/repositories/seats", "--limit", limit, "--", "matlab"];
            site.test().args(seats)
        };
        let refused = "rungate: matlab: not started: [..]\n...\n";
        let holder = site.holder("seats", [owner, kind, "8:5"]);
        matlab("5").stderr(refused).status(75);
        let running = matlab("6").spawn();
        assert_eq!(site.held_numbers("seats"), [1, 2, 3, 4, 5, 6]);
        drop(running);
        drop(holder);
        // Slots 3 and up, as far as there are any: slots 1 and 2 are free, but nobody can prove that there is
        // room.
        let holder = site.holder("seats", [owner, kind, "10:0"]);
        matlab("2").stderr(refused).status(75);
        matlab("1000000").stderr(refused).status(75);
        drop(holder);
        matlab("1").status(0);
    }
}
