//! "What keeps a slot": the process, a descriptor, or the tree, and nothing that a program does to its
//! descriptors by accident.

use super::{REFUSED, held, listing, seats};
use crate::support::{self, Ending, Site, copy_program, eventually, needs_root};

/// Closing descriptors loses nothing.
#[test]
fn a_program_that_closes_all_descriptors_keeps_its_slot() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    // All of them, and then it opens those that the test needs again, under other numbers.
    site.script("matlab", "#!/bin/bash\nfor n in /proc/self/fd/*; do n=${n##*/}; [ $n -gt 2 ] && eval \"exec $n>&-\"; done\nexec cat\n");
    let running = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    assert_eq!(held(&site), [(1, running.pid().into())]);
    site.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
}

/// A child that is left behind: with `process` the slot is free, with `descriptor` and `tree` it is not.
#[test]
fn a_child_that_is_left_behind_keeps_the_slot_where_the_hold_says_so() {
    needs_root!();
    for (hold, is_kept) in [("process", false), ("descriptor", true), ("supervisor", false), ("tree", true)] {
        let (site, _agent) = seats(1, &format!("hold = \"{hold}\""));
        // The child tells its number and lives until its input, a FIFO of the test's, comes to its end.
        site.script("matlab", "#!/bin/sh\nsetsid sh -c 'echo $$; exec tail --pid '$1' -f /dev/null' </dev/null 2>/dev/null &\nexit 0\n");
        let alive = site.test().program("/bin/cat").spawn();
        let pid = alive.pid().to_string();
        let mut running = site.test().user("games").args(["run", "--", "matlab", &pid]).background();
        assert!(!running.read_line().is_empty(), "the child has started");
        if hold != "tree" {
            eventually("the program has ended", || running.is_zombie().then_some(()));
        }
        if is_kept {
            site.test().args(["run", "--", "matlab", &pid]).stderr(REFUSED).status(75);
        }
        if !is_kept {
            eventually("the slot is free", || held(&site).is_empty().then_some(()));
        }
        alive.kill();
        eventually("the slot is free", || held(&site).is_empty().then_some(()));
    }
}

/// `tree`: if the launcher is killed, the slot stays while the FIFO has a writer.
#[test]
fn a_supervisor_that_is_killed_leaves_the_slot_to_its_program() {
    needs_root!();
    let (site, _agent) = seats(1, "hold = \"tree\"");
    site.script("matlab", "#!/bin/sh\necho $$\nexec cat\n");
    let mut launcher = site.test().user("games").args(["run", "--", "matlab"]).background();
    let program = launcher.read_line();
    let program: i32 = program.trim().parse().expect("a process id");
    let keeper = nix::unistd::Pid::from_raw(launcher.pid());
    // Its standard input is the program's: as long as the guard lives, so does the program.
    nix::sys::signal::kill(keeper, nix::sys::signal::Signal::SIGKILL).expect("the launcher is there");
    eventually("the launcher is gone", || launcher.is_zombie().then_some(()));
    site.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(program), nix::sys::signal::Signal::SIGKILL)
        .expect("the program is there");
    eventually("the slot is free", || held(&site).is_empty().then_some(()));
}

/// As over lock files: the program is listed, and not the launcher that stays as its parent.
#[test]
fn who_stays_as_a_parent_is_listed_as_its_program() {
    needs_root!();
    for hold in ["supervisor", "tree"] {
        let (site, agent) = seats(1, &format!("hold = \"{hold}\""));
        site.script("matlab", "#!/bin/sh\necho $$\nexec cat\n");
        let mut launcher = site.test().user("games").args(["run", "--", "matlab"]).background();
        let program: i64 = launcher.read_line().trim().parse().expect("a process id");
        let is_listed = || {
            let holder = &listing(&site.test())[0]["holders"][0];
            holder["pid"].as_i64() == Some(program)
        };
        eventually("the program is listed", || is_listed().then_some(()));
        agent.kill();
        let _agent = site.agent();
        assert!(is_listed());
    }
}

/// A program that a wrapper has left behind keeps the slot of the wrapper. It does not count as one past
/// rungate too; another one of its user does.
#[test]
fn what_a_wrapper_leaves_behind_is_not_past_rungate() {
    needs_root!();
    let keys = "keeper = \"agent\"\nhold = \"descriptor\"";
    let (site, _agent) = Site::with_agent(&support::seats(2, keys, &["$DIR/bin/matlab", "$DIR/bin/wrapper"]));
    copy_program("/bin/sleep", site.path("bin/matlab"));
    site.script(
        "wrapper",
        "#!/bin/sh\nsetsid $DIR/bin/matlab 1000 </dev/null >/dev/null 2>&1 &\n\
         until [ \"$(cat /proc/$!/comm)\" = matlab ]; do :; done\necho $!\n",
    );
    let left = site.test().user("games").args(["run", "--", "$DIR/bin/wrapper"]).outcome();
    assert_eq!((left.ending, held(&site).len()), (Ending::Status(0), 1), "{}", left.stderr);
    let past = |user| site.test().user(user).program(site.path("bin/matlab")).args(["1000"]).background();
    let _of_games = past("games");
    let of_backup = past("backup");
    // The last of them counts when it is old enough, and then the others are.
    let of_user = |user: &str| {
        let lines = site.test().user("nobody").args(["measure", "--processes", "seats"]).outcome().stdout;
        lines.matches(&format!("\"user\":\"{user}\"")).count()
    };
    eventually("the last one counts", || (of_user("backup") == 1).then_some(()));
    assert_eq!(of_user("games"), 1);
    of_backup.kill();
    site.test().program("/bin/kill").args([left.stdout.trim()]).status(0);
    eventually("the slot is free", || held(&site).is_empty().then_some(()));
    assert_eq!(of_user("games"), 1, "the one that has no slot");
}
