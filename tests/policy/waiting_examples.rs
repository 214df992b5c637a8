//! The policies that wait, hold and expire, executed: what their comments promise, with real processes.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::{Ending, Running, Site, Test, eventually, given_time};

/// A site with one of the policies; `changes` are what a test cannot wait for.
fn site(policy: &str, changes: &[(&str, &str)]) -> Site {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("policies").join(policy);
    let mut text = fs::read_to_string(path).expect("a policy").replace("{runtime}", "$DIR/repositories");
    for (from, to) in changes {
        assert_eq!(text.matches(from).count(), 1, "{from} in {policy}");
        text = text.replace(from, to);
    }
    Site::with_policy(&text)
}

fn run(site: &Site, command: &str) -> Test {
    site.test().args(["run", "--", command])
}

/// "One copy job at a time, not again within 15 minutes of its last start … `too_soon = "ok"` is for cron."
#[test]
pub(crate) fn nightly_sync_comes_neither_too_soon_nor_beside_another() {
    let site = site("nightly-sync.toml", &[]);
    site.program("nightly-sync");
    let mut first = run(&site, "nightly-sync").spawn();
    // Too soon comes before full: cron gets no mail.
    run(&site, "nightly-sync").status(0);
    site.test().args(["reset", "nightly-sync"]).status(0);
    run(&site, "nightly-sync")
        .stderr(
            "rungate: nightly-sync: not started: the limit is reached\n  nightly-sync  1 of 1 used\n...\n",
        )
        .status(75);
    first.close_stdin();
    assert_eq!(first.end().ending, Ending::Status(0));
    run(&site, "nightly-sync").status(0);
}

/// One that has run for more than an hour and a half is ended by the next, which then starts in its place.
#[test]
pub(crate) fn nightly_sync_does_not_hang_for_ever() {
    // Whoever is killed must be gone within another grace.
    given_time(&["150ms", "3s", "20s"], nightly_sync_hangs_for_no_longer_than);
}

fn nightly_sync_hangs_for_no_longer_than(grace: &str) {
    let grace = format!("\"{grace}\"");
    let site =
        site("nightly-sync.toml", &[("\"1h30m\"", "\"1ms\""), ("\"30s\"", &grace), ("\"15m\"", "\"0s\"")]);
    site.program("nightly-sync");
    let witness = site.helper("witness");
    let mut hangs = site.test().args(["run", "--as", "nightly-sync", "--"]).args([&witness]).spawn();
    run(&site, "nightly-sync")
        .stderr("rungate: nightly-sync: ended PID [pid] (nightly-sync), overdue by [age], with SIGKILL\n")
        .status(0);
    assert_eq!(hangs.end().ending, Ending::Signal(9));
}

/// Three builds at a time … and a line for the others … Ordinary builds that wait stand below their ceiling
/// of 2 and do not hold up a release; two releases wait for each other.
#[test]
pub(crate) fn builds_stand_in_line_and_a_release_is_not_held_up() {
    let site = site("build-farm.toml", &[]);
    for name in ["build", "build-release"] {
        site.program(name);
    }
    let stands = |running: &Running| site.stands_in_line("builds.lock", running);
    let first = run(&site, "build").spawn();
    let second = run(&site, "build").spawn();
    let mut third = run(&site, "build").background();
    stands(&third);
    let release = run(&site, "build-release").spawn();
    let mut next_release = run(&site, "build-release").background();
    stands(&next_release);
    let fourth = run(&site, "build").background();
    stands(&fourth);
    let listed = site.test().args(["list", "builds"]).outcome().stdout;
    assert!(listed.starts_with("builds: 3 of 3 used, 3 waiting\n"), "{listed}");
    let refused = site.test().args(["run", "--nonblock", "--", "build"]).outcome();
    assert_eq!(refused.ending, Ending::Status(75));
    // One place becomes free: the release takes it, for the older build has to stay below two.
    first.kill();
    next_release.wait_for_echo();
    release.kill();
    next_release.kill();
    third.wait_for_echo();
    second.kill();
    let mut fourth = fourth;
    fourth.wait_for_echo();
}

/// "`RUNGATE_SLOT_GPU` is 1, 2, 3 or 4 … `hold = "tree"` keeps the slot until the last worker process has
/// ended."
#[test]
pub(crate) fn each_run_has_a_gpu_of_its_own_until_its_last_worker_has_ended() {
    let site = site("gpus.toml", &[]);
    mkfifo(&site.path("worker"), Mode::from_bits_truncate(0o666)).expect("a new FIFO");
    site.script(
        "train",
        "
        #!/bin/sh
        echo $((RUNGATE_SLOT_GPU - 1)) $RUNGATE_HELD
        [ \"$1\" = worker ] && { setsid cat $DIR/worker >/dev/null 2>&1 & exit; }
        exec cat
        ",
    );
    let mut devices = Vec::new();
    let mut runs: Vec<Running> = Vec::new();
    for _ in 0..3 {
        let mut run = run(&site, "train").background();
        devices.push(run.read_line());
        runs.push(run);
    }
    let mut last = site.test().args(["run", "--", "train", "worker"]).background();
    devices.push(last.read_line());
    devices.sort();
    assert_eq!(devices, ["0 gpu=1\n", "1 gpu=2\n", "2 gpu=3\n", "3 gpu=4\n"]);
    // The run has ended, its worker has not: the device is not free yet.
    let worker = OpenOptions::new().write(true).open(site.path("worker")).expect("the worker reads");
    run(&site, "train")
        .stderr("rungate: train: not started: the limit is reached\n  gpu  4 of 4 used\n...\nAll GPUs are in use. To wait in the queue: rungate run --wait 12h -- train ...\n...\n")
        .status(75);
    let mut waiting = site.test().args(["run", "--wait", "12h", "--", "train"]).background();
    site.stands_in_line("gpu.lock", &waiting);
    drop(worker);
    assert_eq!(waiting.read_line(), "3 gpu=4\n");
    assert_eq!(last.end().ending, Ending::Status(0));
}

/// The database server that it starts and leaves behind must not keep the lock.
#[test]
pub(crate) fn the_server_that_a_script_leaves_behind_does_not_keep_the_lock() {
    let site = site("database-restart.toml", &[]);
    mkfifo(&site.path("server"), Mode::from_bits_truncate(0o666)).expect("a new FIFO");
    site.script(
        "restart-database",
        "
        #!/bin/sh
        exec 3<$DIR/server
        setsid cat <&3 >/dev/null 2>&1 3<&- &
        exec 3<&-
        echo started
        read -r line
        ",
    );
    // Open for both, it lets nobody wait for the other end: a server that has started has its end.
    let server = OpenOptions::new().read(true).write(true).open(site.path("server")).expect("a FIFO");
    let mut script = run(&site, "restart-database").background();
    assert_eq!(script.read_line(), "started\n");
    // While the script runs nobody else does, and when it has ended, anybody may: the server still runs.
    assert_eq!(run(&site, "restart-database").outcome().ending, Ending::Status(75));
    script.write_line("done");
    assert_eq!(script.end().ending, Ending::Status(0));
    run(&site, "restart-database").stdin("done\n").stdout("started\n").status(0);
    // Under another hold the server keeps it: what the policy says is what does it.
    let mut script = site.test().args(["run", "--hold", "tree", "--", "restart-database"]).background();
    assert_eq!(script.read_line(), "started\n");
    script.write_line("done");
    eventually("the script has ended", || {
        (run(&site, "restart-database").outcome().ending == Ending::Status(75)).then_some(())
    });
    drop(server);
    assert_eq!(script.end().ending, Ending::Status(0));
}
