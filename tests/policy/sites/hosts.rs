//! One machine and what it has: processors, devices; and one policy for many machines.

use std::fs;
use std::process::Command;

use super::{denied, full, run, site, spawn};
use crate::support::{Running, Test, eventually, needs_root};
use nix::sys::signal::Signal;

/// How many processors this machine has online.
fn processors() -> usize {
    let output = Command::new("getconf").arg("_NPROCESSORS_ONLN").output().expect("getconf(1)");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

/// One that this process may use.
fn first_processor() -> String {
    let status = fs::read_to_string("/proc/self/status").expect("the status of this process");
    let list =
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list").trim();
    list.split([',', '-']).next().expect("a processor").to_owned()
}

#[test]
fn build_host() {
    needs_root!();
    let site = site("build-host.toml", &[("ann", &[]), ("bob", &[])], &["gcc", "make"]);
    let all = processors();
    let now = |user| site.test().user(user).args(["run", "--nonblock", "--", "gcc"]);
    // "Accounts of services (below uid 1000) are held to the number of processors alone."
    let mut nightly = spawn(&now("backup"), all);
    let used = format!("{all} of {all}");
    full(&now("backup"), &[("compilers", &used)]);
    full(&now("ann"), &[("compilers", &used)]);
    // "`make` itself is free."
    run(&site, "ann", &["make"]).status(0);
    // "A compiler that finds no room waits for it."
    let mut waiting = run(&site, "ann", &["gcc"]).background();
    site.stands_in_line("compilers.lock", &waiting);
    nightly.remove(0).kill();
    waiting.wait_for_echo();
    nightly.clear();
    // The limit is the machine's, also for whoever is bound to one of its processors.
    let bound = now("backup").through(["taskset", "--cpu-list", &first_processor()]);
    let bound = spawn(&bound, all - 1);
    full(&now("backup").through(["taskset", "--cpu-list", &first_processor()]), &[("compilers", &used)]);
    drop((bound, waiting));
    // "No more than two of them for each person."
    if all >= 3 {
        let _two = spawn(&now("ann"), 2);
        full(&now("ann"), &[("compilers-per-person [ann]", "2 of 2")]);
        now("bob").status(0);
    } else if all == 2 {
        let _two = spawn(&now("ann"), 2);
        full(&now("ann"), &[("compilers", "2 of 2"), ("compilers-per-person [ann]", "2 of 2")]);
    }
}

#[test]
fn gpus() {
    needs_root!();
    let site = site("gpus.toml", &[("ann", &[]), ("bob", &[])], &[]);
    site.script("train", "#!/bin/sh\necho \"device $RUNGATE_NAME_GPU\"\nexec cat\n");
    let train = |user| run(&site, user, &["train"]);
    let start = |test: &Test| -> (String, Running) {
        let mut running = test.background();
        let line = running.read_line();
        running.wait_for_echo();
        (line, running)
    };
    // "Each run on a device of its own, which is told it by RUNGATE_NAME_GPU."
    let (mut devices, mut runs): (Vec<String>, Vec<Running>) =
        ["ann", "bob", "ann", "ann"].iter().map(|user| start(&train(user))).unzip();
    let third = devices[2].clone();
    devices.sort();
    assert_eq!(devices, ["device 0\n", "device 1\n", "device 2\n", "device 3\n"]);
    full(&train("bob"), &[("gpu", "4 of 4")]);
    // The device that was released is the one that the next run gets.
    let mut ended = runs.remove(2);
    ended.signal(Signal::SIGTERM);
    ended.end();
    let (device, _next) = start(&train("bob"));
    assert_eq!(device, third);
    // "Keeps the slot until the last worker process has ended."
    drop(runs);
    eventually("three devices are free", || (site.held_numbers("gpu.lock").len() == 1).then_some(()));
    site.script("train", "#!/bin/sh\nexec 3<&0\ncat <&3 &\n");
    let mut left = train("ann").background();
    left.wait_for_echo();
    assert_eq!(site.held_numbers("gpu.lock").len(), 2);
}

#[test]
fn many_hosts() {
    needs_root!();
    let site = site("many-hosts.toml", &[("ann", &[])], &["job", "drill"]);
    let job = |host: &str| run(&site, "ann", &["job"]).host(host);
    // "A job host takes four jobs, the two big ones twelve, a login node none, and what is not named takes
    // one."
    let mut running = Vec::new();
    for (host, limit, why) in [
        ("job17.example.org", 4, " (limit of job*)"),
        ("big2", 12, ""),
        ("job3", 4, " (limit of job*)"),
        ("ws3", 1, ""),
        ("big1.example.org", 12, ""),
    ] {
        running.extend(spawn(&job(host), limit));
        full(&job(host), &[(&format!("jobs [{host}]"), &format!("{limit} of {limit} used{why}"))]);
    }
    job("login1.example.org")
        .stderr(
            "
            rungate: job: not started: [..]
              jobs [login1.example.org]  closed: its limit is 0 (limit of login*)
            ...
            ",
        )
        .status(75);
    // "The drill runs on the big hosts alone."
    let drill = |host: &str| run(&site, "ann", &["drill"]).host(host);
    drill("big1").status(0);
    drill("big2.example.org").status(0);
    for host in ["ws3", "job17.example.org", "notbig1"] {
        denied(&drill(host), "drills run on big hosts");
    }
}
