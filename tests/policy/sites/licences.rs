//! Seats and tokens that were bought, and who may have how many of them. That of `licence-seats.toml` is in
//! `policies.rs`.

use super::{changed, full, run, site, site_with, spawn};
use crate::support::{Running, Site, Test, eventually, needs_root};

#[test]
fn reserved_seats() {
    needs_root!();
    let people: [(&str, &[&str]); 3] = [("ann", &["cad"]), ("bob", &["cad"]), ("eve", &["users"])];
    let site = site("reserved-seats.toml", &people, &["vcs"]);
    let vcs = |user| run(&site, user, &["vcs"]);
    let slots_of = |running: &[Running]| -> Vec<i64> {
        let pids: Vec<i32> = running.iter().map(Running::pid).collect();
        let held = site.held("vcs.lock").into_iter().filter(|slot| pids.contains(&slot.pid));
        held.map(|slot| slot.number).collect()
    };
    // "Others have 12 seats at most: six that are not reserved, and six lent ones."
    let nobodys = spawn(&vcs("eve"), 6);
    assert_eq!(slots_of(&nobodys), [11, 12, 13, 14, 15, 16]);
    let mut lent = spawn(&vcs("eve"), 6);
    assert_eq!(slots_of(&lent), [5, 6, 7, 8, 9, 10]);
    full(&vcs("eve"), &[("vcs", "12 of 16")]);
    // "So cad always finds its four at once."
    let mut cad = spawn(&vcs("ann"), 4);
    assert_eq!(slots_of(&cad), [1, 2, 3, 4]);
    full(&vcs("bob"), &[("vcs", "16 of 16")]);
    // "And the six as soon as they are returned."
    lent.truncate(4);
    cad.extend(spawn(&vcs("bob"), 2));
    assert_eq!(slots_of(&cad), [1, 2, 3, 4, 9, 10]);
    full(&vcs("ann"), &[("vcs", "16 of 16")]);
    // "While those are idle, others may use six of them": no seat but one of those that others had is free
    // for eve.
    drop(cad.drain(..4));
    full(&vcs("eve"), &[("vcs", "12 of 16")]);
    drop(cad.drain(..1));
    vcs("eve").status(0);
    // "Cad takes its own seats first, then free ones of the other six."
    drop((nobodys, lent));
    cad.extend(spawn(&vcs("ann"), 15));
    full(&vcs("eve"), &[("vcs", "16 of 16")]);
}

#[test]
fn abaqus_tokens() {
    needs_root!();
    let site = site("abaqus-tokens.toml", &[("ann", &[]), ("bob", &[])], &["abaqus"]);
    let abaqus = |user, arguments: &[&str]| run(&site, user, &["abaqus"]).args(arguments);
    let held = || site.held_numbers("abaqus-tokens.lock").len();
    // "`cpus=4 gpus=1` is five", and another four processors fit exactly.
    let _five = abaqus("ann", &["job=wing", "cpus=4", "gpus=1"]).spawn();
    assert_eq!(held(), 84);
    let _four = abaqus("bob", &["job=fin", "cpus=4"]).spawn();
    assert_eq!(held(), 160);
    // "A run on more processors than the table has can never start (status 78). Neither can a run whose
    // `cpus` is not a number."
    abaqus("ann", &["cpus=12"])
        .stderr(
            "
            rungate: abaqus: not started: it needs more than it can ever get
              abaqus-tokens  the command line names 12, and the table of slots_from ends at 8
            ...
            Ask for fewer slots, or ask your administrator: rungate explain -- abaqus cpus=12
            ",
        )
        .status(78);
    let many = abaqus("ann", &["cpus=99999999999999999999"]).outcome().stderr;
    assert!(many.contains("the command line names more than 4294967294, and the table"), "{many}");
    abaqus("ann", &["cpus=all"])
        .stderr(
            "
            rungate: abaqus: not started: it needs more than it can ever get
              abaqus-tokens  \"cpus=all\" is not a number of slots
            ...
            Write the number on the command line, or ask your administrator: rungate explain -- abaqus cpus=all
            ",
        )
        .status(78);
    let explained = site.test().user("ann").args(["explain", "--", "abaqus", "cpus=all"]).outcome().stdout;
    assert!(
        explained
            .contains("\nnow   refused, status 78: abaqus-tokens: \"cpus=all\" is not a number of slots\n"),
        "{explained}"
    );
    assert_eq!(held(), 160);
}

#[test]
fn licence_kinds() {
    needs_root!();
    let site = site("licence-kinds.toml", &[("ann", &[]), ("bob", &[])], &["cfd"]);
    let cfd = |user, arguments: &[&str]| run(&site, user, &["cfd"]).args(arguments);
    let held = || {
        ["cfd-solver.lock", "cfd-mesher.lock", "cfd-parallel.lock"].map(|file| site.held_numbers(file).len())
    };
    // "One solver licence, two of the mesher's, and a parallel token for each process."
    let first = cfd("ann", &["-case", "wing", "-np", "8"]).spawn();
    assert_eq!(held(), [1, 2, 8]);
    // "A run takes all that it needs, or nothing at all."
    let refused = cfd("bob", &["-np=9"]).stderr(
        "
        rungate: cfd: not started: 1 of 3 limits is reached
          cfd-parallel  8 of 16 used, 9 more wanted
        ...
        ",
    );
    refused.status(75);
    assert_eq!(held(), [1, 2, 8]);
    let _second = cfd("bob", &["-np", "8"]).spawn();
    assert_eq!(held(), [2, 4, 16]);
    drop(first);
    // "Without `-np` it is serial, and needs no token."
    let _more = spawn(&cfd("ann", &[]), 2);
    assert_eq!(held(), [3, 6, 8]);
    // A solver is free, but no mesher.
    let refused = cfd("ann", &[]).stderr(
        "
        rungate: cfd: not started: 1 of 2 limits is reached
          cfd-mesher  6 of 6 used, 2 more wanted
        ...
        ",
    );
    refused.status(75);
    // "A run that asks for more processes than there are tokens could never start, and is told so at once
    // (status 78)."
    cfd("ann", &["-np", "64"])
        .stderr(
            "
            rungate: cfd: not started: it needs more than it can ever get
              cfd-mesher  6 of 6 used, 2 more wanted
            ...
              cfd-parallel  64 slots wanted of 16
            ...
            Ask for fewer slots, or ask your administrator: rungate explain -- cfd -np 64
            ",
        )
        .status(78);
    let explained = site.test().user("ann").args(["explain", "--", "cfd", "-np", "64"]).outcome().stdout;
    assert!(
        explained.contains("\nnow   refused, status 78: cfd-parallel can never give that many slots\n"),
        "{explained}"
    );
}

/// A vendor's script that calls itself, through rungate as if a shim stood there, for each step of a session.
const WORKBENCH: &str = r#"#!/bin/sh
case $1 in
    "") LAUNCHER run -- workbench step && LAUNCHER run -- workbench step && exec cat ;;
    step) echo "step on seat $RUNGATE_SLOT_WORKBENCH" ;;
    beside)
        echo "seat $RUNGATE_SLOT_WORKBENCH"
        LAUNCHER run -- workbench first ;;
    first)
        echo "first on seat $RUNGATE_SLOT_WORKBENCH"
        LAUNCHER run -- workbench second ;;
    second) echo "second on seat $RUNGATE_SLOT_WORKBENCH" ;;
    solve) LAUNCHER run -- wbsolve ;;
esac
"#;

/// A solver that starts the next one, which stays.
const WBSOLVE: &str = r#"#!/bin/sh
[ "$1" = next ] && exec cat
LAUNCHER run -- wbsolve next
"#;

#[test]
fn vendor_wrapper() {
    needs_root!();
    let site = site("vendor-wrapper.toml", &[("ann", &[])], &[]);
    let launcher = site.rungate().to_str().expect("a plain path").to_owned();
    site.script("workbench", &WORKBENCH.replace("LAUNCHER", &launcher));
    site.script("wbsolve", &WBSOLVE.replace("LAUNCHER", &launcher));
    let start = |command: &[&str]| run(&site, "ann", command);
    let seats = || site.held_numbers("workbench.lock");
    // "A session is one seat, not three."
    let session = |seat: i64| {
        let mut session = start(&["workbench"]).background();
        for _ in 0..2 {
            assert_eq!(session.read_line(), format!("step on seat {seat}\n"));
        }
        session.wait_for_echo();
        session
    };
    let first = session(1);
    assert_eq!(seats(), [1]);
    let second = session(2);
    assert_eq!(seats(), [1, 2]);
    full(&start(&["workbench"]), &[("workbench", "2 of 2")]);
    // "Each of them takes a solver licence of its own, also where one solver starts the next."
    full(&start(&["workbench", "solve"]), &[("workbench", "2 of 2")]);
    drop(second);
    let mut solving = start(&["workbench", "solve"]).background();
    solving.wait_for_echo();
    assert_eq!(site.held_numbers("solver.lock"), [1, 2]);
    let _third = start(&["wbsolve", "next"]).spawn();
    full(&start(&["wbsolve", "next"]), &[("solver", "3 of 3")]);
    // "A step that runs beside another one takes a seat of its own."
    drop((first, solving));
    eventually("both sessions are over", || seats().is_empty().then_some(()));
    start(&["workbench", "beside"]).stdout("seat [..]\nfirst on seat [..]\nsecond on seat [..]\n").status(0);
}

/// The same with other hours; those of the file are asked about by its own tests.
fn batch_pool_at(hours: &str) -> Site {
    let policy = changed("batch-pool.toml", "\"20:00-06:00\"", hours);
    site_with(&policy, &[("ann", &[]), ("bob", &[])], &["matlab"])
}

fn matlab(site: &Site, user: &str, arguments: &[&str]) -> Test {
    site.test().user(user).args(["run", "--nonblock", "--", "matlab"]).args(arguments)
}

#[test]
fn batch_pool_by_day() {
    needs_root!();
    let site = batch_pool_at("\"2000-01-01\"");
    // "-batch, -nodisplay, or -r with a text that ends in exit."
    let mut batch = vec![
        matlab(&site, "ann", &["-batch", "run_all"]).spawn(),
        matlab(&site, "bob", &["-logfile", "x", "-r", "run_all; exit"]).spawn(),
    ];
    for arguments in [&["-batch", "x"][..], &["-nodisplay"], &["-r", "x;exit"]] {
        full(&matlab(&site, "ann", arguments), &[("batch", "2 of 2")]);
    }
    // "Whoever sits in front of it has five at any time", also with a script that does not end.
    let _interactive = spawn(&matlab(&site, "ann", &["-r", "startup"]), 5);
    full(&matlab(&site, "bob", &[]), &[("interactive", "5 of 5"), ("seats", "7 of 7")]);
    // "Batch runs wait for their turn."
    let mut waiting = run(&site, "ann", &["matlab", "-batch", "y"]).background();
    site.stands_in_line("batch.lock", &waiting);
    batch.remove(0).kill();
    waiting.wait_for_echo();
}

#[test]
fn batch_pool_by_night() {
    needs_root!();
    let site = batch_pool_at("\"00:00-24:00\"");
    // "Five at night; whoever sits in front of it has five, as far as they are idle."
    let mut batch = spawn(&matlab(&site, "ann", &["-batch", "x"]), 5);
    full(&matlab(&site, "ann", &["-batch", "x"]), &[("batch", "5 of 5 used (limit of this hour)")]);
    let _interactive = spawn(&matlab(&site, "bob", &[]), 2);
    full(&matlab(&site, "bob", &[]), &[("seats", "7 of 7")]);
    drop(batch.pop());
    matlab(&site, "bob", &[]).status(0);
}
