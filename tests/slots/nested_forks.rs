//! Over a fork this needs `descriptor` or stronger: a launch below a holder whose slot goes with an
//! inherited descriptor.

use std::fs::{self, OpenOptions};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::{Ending, Running, Site, eventually, needs_root, seats};

/// The byte before the one that says that slot 1 is shared.
const SHARED_ZERO: i64 = 1 << 41;

/// A policy with the limit and the hold, and a wrapper named `matlab` that calls its own launcher in a child.
/// `inner` is the program itself, and copies its standard input.
fn site(limit: u32, hold: &str, wrapper: &str) -> Site {
    let keys = format!("hold = \"{hold}\"");
    let site = Site::with_policy(&seats(limit, &keys, &["matlab", "simulink"]));
    site.program("simulink");
    let launcher = site.rungate().to_str().expect("a plain path");
    let text =
        format!("#!/bin/bash\n[ \"$1\" = inner ] && exec cat\n{wrapper}\n").replace("LAUNCHER", launcher);
    site.script("matlab", &text);
    site
}

fn is_shared(site: &Site, slot: i64) -> bool {
    site.lock_between("seats.lock", SHARED_ZERO + slot, SHARED_ZERO + slot + 1).is_some()
}

/// `join` (the default) uses the ancestor's slot when that was taken for the same command (a wrapper that
/// calls its own shim would otherwise block itself).
#[test]
fn a_child_joins_the_slot_of_its_parent() {
    for hold in ["descriptor", "supervisor", "tree"] {
        let site = site(1, hold, "LAUNCHER run -- matlab inner; echo $?");
        let mut running = site.test().args(["run", "--", "matlab"]).spawn();
        assert_eq!(site.held_numbers("seats.lock"), [1], "{hold}");
        assert!(is_shared(&site, 1), "{hold}");
        running.close_stdin();
        let outcome = running.end();
        assert_eq!((outcome.stdout.as_str(), outcome.ending), ("0\n", Ending::Status(0)), "{hold}");
        eventually("nothing is locked", || {
            site.lock_between("seats.lock", 0, i64::MAX).is_none().then_some(())
        });
    }
}

/// The same with slots that lie apart, and with many.
#[test]
fn a_child_joins_all_slots_of_its_parent() {
    for (limit, slots, told) in [(8, "5", "seats=1,3-5,7"), (30_000, "29000", "seats=1,3-5,7-29002")] {
        let site = Site::with_policy(&format!(
            "[repository.seats]\nlimit = {limit}\nhold = \"descriptor\"\n[[rule]]\nname = \"seats\"\n\
             commands = [\"matlab\"]\nacquire = [{{ repository = \"seats\", slots = {slots} }}]\n"
        ));
        let launcher = site.rungate().display();
        site.script(
            "matlab",
            &format!("#!/bin/bash\n[ \"$1\" = inner ] && exec printenv RUNGATE_HELD\n{launcher} run -- matlab inner; echo $?\n"),
        );
        // Slots 2 and 6.
        let _others = site.holder("seats.lock", ["posix", "write", "9:1", "13:1"]);
        site.test().args(["run", "--", "matlab"]).stdout(&format!("{told}\n0\n")).status(0);
        eventually("nothing is shared", || {
            site.lock_between("seats.lock", SHARED_ZERO, i64::MAX).is_none().then_some(())
        });
    }
}

/// The slot stays while the one that joined it lives, also when the one that took it has ended. A supervisor
/// had freed it with its own command, while the other program ran.
#[test]
fn a_joined_slot_outlives_the_one_that_took_it() {
    for hold in ["descriptor", "supervisor"] {
        let wrapper = "LAUNCHER run -- matlab inner <&0 & echo started; read -r go <$DIR/fifo; exit";
        let site = site(1, hold, wrapper);
        mkfifo(&site.path("fifo"), Mode::from_bits_truncate(0o666)).expect("a new FIFO");
        let mut running = site.test().args(["run", "--", "matlab"]).background();
        assert_eq!(running.read_line(), "started\n");
        eventually("the child has joined", || is_shared(&site, 1).then_some(()));
        fs::write(site.path("fifo"), "go\n").expect("a reader");
        eventually("the parent has ended", || running.is_zombie().then_some(()));
        assert_eq!(site.held_numbers("seats.lock"), [1], "{hold}");
        let refused = "rungate: matlab: not started: the limit is reached\n...\n";
        site.test().args(["run", "--", "matlab"]).stderr(refused).status(75);
        running.close_stdin();
        eventually("nothing is locked", || {
            site.lock_between("seats.lock", 0, i64::MAX).is_none().then_some(())
        });
    }
}

/// One descendant at a time (it write-locks byte 2^41+n; the next one finds that and takes a slot of its
/// own, so that one seat does not run five solvers). When the first has ended the next may join again.
#[test]
fn one_descendant_at_a_time_joins() {
    let wrapper = "
        LAUNCHER run -- matlab inner <$DIR/fifo &
        read go; LAUNCHER run -- bash -c 'echo $RUNGATE_HELD' 2>&1
        LAUNCHER run --as matlab -- printenv RUNGATE_HELD
        wait
        LAUNCHER run --as matlab -- printenv RUNGATE_HELD";
    let site = site(2, "descriptor", wrapper);
    let fifo = site.path("fifo");
    mkfifo(&fifo, Mode::from_bits_truncate(0o666)).expect("a new FIFO");
    let mut running = site.test().args(["run", "--", "matlab"]).background();
    let first = OpenOptions::new().write(true).open(&fifo).expect("the first descendant reads");
    eventually("the first has joined", || is_shared(&site, 1).then_some(()));
    assert_eq!(site.held_numbers("seats.lock"), [1]);
    running.write_line("go");
    assert_eq!(running.read_line(), "seats=1\n", "a command that no rule names has what its ancestors have");
    assert_eq!(running.read_line(), "seats=2 seats=1\n", "the first still uses slot 1");
    drop(first);
    assert_eq!(running.read_line(), "seats=1\n", "nobody uses it any more");
    assert_eq!(running.end().ending, Ending::Status(0));
}

/// A launch whose only obstacles are its own ancestors is refused with that reason: waiting for oneself
/// would last forever. Also with a wait, also for another command, and also when the descriptor was closed
/// but a supervisor keeps the slot.
#[test]
fn a_launch_that_waits_for_its_own_ancestor_is_refused() {
    let close = "for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && eval \"exec $fd>&-\"; done;";
    for (hold, before) in [
        ("descriptor", ""),
        ("supervisor", ""),
        ("tree", ""),
        ("supervisor", close),
        ("tree", close),
        ("process", ""),
    ] {
        let wrapper = format!("{before} LAUNCHER run --wait forever -- simulink; echo $?");
        let site = site(1, hold, &wrapper);
        let mut running = site.test().args(["run", "--", "matlab"]).background();
        assert_eq!(running.read_line(), "75\n", "{hold} {before}");
        let outcome = running.end();
        let reason = "held by a process that waits for this command: it would wait forever";
        assert!(outcome.stderr.contains(reason), "{hold} {before}: {}", outcome.stderr);
    }
}

/// The same for a second descendant, when the first one uses the only slot.
#[test]
fn a_second_descendant_with_a_limit_of_one_is_refused() {
    let site = site(
        1,
        "descriptor",
        "LAUNCHER run -- matlab inner <$DIR/fifo & read go; LAUNCHER run --wait forever -- matlab inner; echo $?; wait",
    );
    let fifo = site.path("fifo");
    mkfifo(&fifo, Mode::from_bits_truncate(0o666)).expect("a new FIFO");
    let mut running = site.test().args(["run", "--", "matlab"]).background();
    let first = OpenOptions::new().write(true).open(&fifo).expect("the first descendant reads");
    eventually("the first has joined", || is_shared(&site, 1).then_some(()));
    running.write_line("go");
    assert_eq!(running.read_line(), "75\n");
    drop(first);
    let outcome = running.end();
    assert!(outcome.stderr.contains("held by a process that waits for this command"), "{}", outcome.stderr);
}

/// When somebody else holds a slot as well, there is something to wait for: their end.
#[test]
fn a_nested_launch_waits_for_others() {
    let site = site(2, "descriptor", "LAUNCHER run --wait forever -- simulink; echo $?");
    let other = site.test().args(["run", "--", "simulink"]).spawn();
    let mut running: Running = site.test().args(["run", "--", "matlab"]).background();
    eventually("the nested launch stands in line", || (site.line("seats.lock").len() == 1).then_some(()));
    other.kill();
    running.wait_for_echo();
    running.close_stdin();
    assert_eq!(running.end().stdout, "0\n");
}

/// The same behind a launch that waits for the ancestor too: when the others have ended, only the ancestor is left.
#[test]
fn a_nested_launch_behind_a_waiter_for_its_ancestor_is_refused() {
    let site = site(3, "descriptor", "read go; LAUNCHER run --wait forever -- simulink; echo $?");
    let all = "[[rule]]\ncommands = [\"whole\"]\nacquire = [{ repository = \"seats\", slots = \"all\" }]\n";
    site.policy(&(seats(3, "hold = \"descriptor\"", &["matlab", "simulink"]) + all));
    site.program("whole");
    let other = site.test().args(["run", "--", "simulink"]).spawn();
    let mut running = site.test().args(["run", "--", "matlab"]).background();
    eventually("it has its slot", || (site.held_numbers("seats.lock").len() == 2).then_some(()));
    let mut whole = site.test().args(["run", "-q", "--wait", "forever", "--", "whole"]).background();
    site.stands_in_line("seats.lock", &whole);
    running.write_line("go");
    eventually("the nested launch stands in line", || (site.line("seats.lock").len() == 2).then_some(()));
    other.kill();
    assert_eq!(running.read_line(), "75\n");
    let outcome = running.end();
    assert!(outcome.stderr.contains("it would wait forever"), "{}", outcome.stderr);
    whole.wait_for_echo();
}

/// Also below a holder of another user, of which this launch can see nothing: the environment says so, and
/// whoever lies there refuses himself alone.
#[test]
fn a_launch_below_a_holder_of_another_user_does_not_wait_for_itself() {
    needs_root!();
    for hold in ["supervisor", "tree"] {
        let site = Site::new();
        site.system_policy(&seats(1, &format!("hold = \"{hold}\""), &["matlab", "simulink"]));
        site.program("simulink");
        let rungate = site.rungate().display();
        // As sudo does, it closes what it knows nothing of.
        let close = "for n in /proc/self/fd/*; do n=${n##*/}; [ $n -lt 10 ] || eval \"exec $n<&-\"; done";
        let user = "setpriv --reuid=5 --regid=60 --clear-groups";
        let launch = format!("{user} {rungate} run --wait forever -- simulink; echo $?");
        site.script("matlab", &format!("#!/bin/bash\n{close}\n{launch}\n"));
        let outcome = site.test().args(["run", "--", "matlab"]).outcome();
        assert_eq!(outcome.stdout, "75\n", "{hold}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("it would wait forever"), "{hold}: {}", outcome.stderr);
    }
}
