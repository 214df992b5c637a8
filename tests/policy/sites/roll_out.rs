//! Caps that are tried out before they bind.

use std::fs;

use super::{changed, denied, full, run, site_with, spawn};
use crate::support::{Site, Test, needs_root, set_mode};

fn site() -> Site {
    let policy = changed("roll-out.toml", "\"syslog\"", "\"$DIR/work/log.jsonl\"");
    let site = site_with(
        &policy.replace("\"/home/**\"", "\"$DIR/home/**\""),
        &[("ann", &[]), ("bob", &[]), ("cid", &[]), ("dan", &[])],
        &["simulate"],
    );
    fs::create_dir(site.path("home")).expect("a directory");
    site.write("work/log.jsonl", "");
    set_mode(&site.path("work/log.jsonl"), 0o666);
    site
}

fn simulate(site: &Site, user: &str) -> Test {
    run(site, user, &["simulate"])
}

#[test]
fn roll_out() {
    needs_root!();
    let site = site();
    // "The cap for each person is enforced already."
    let _running: Vec<_> = ["ann", "bob", "cid"].map(|user| spawn(&simulate(&site, user), 2)).into();
    full(&simulate(&site, "ann"), &[("simulations-per-user [ann]", "2 of 2")]);
    // "The cap for all is still on trial, as is everything new. Nothing is refused."
    let seventh = simulate(&site, "dan").spawn();
    assert_eq!(site.held_numbers("simulations.lock").len(), 6);
    let from_home = simulate(&site, "dan").directory("home").spawn();
    drop((seventh, from_home));
    // "What would have been refused is logged, and `rungate report` says whom the caps would have
    // hit."
    let log = fs::read_to_string(site.path("work/log.jsonl")).expect("a log");
    let would_refuse: Vec<&str> = log.lines().filter(|line| line.contains("\"would-refuse\"")).collect();
    assert!(would_refuse.iter().any(|line| line.contains("simulations")), "{log}");
    assert!(would_refuse.iter().any(|line| line.contains("no simulations from home directories")), "{log}");
    let summary = site.test().args(["report", "$DIR/work/log.jsonl"]).outcome();
    for rule in ["simulations", "no simulations from home directories"] {
        assert!(summary.stdout.contains(rule), "{summary:?}");
    }
    // "Then they are tightened: in the third week the default goes."
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    assert!(policy.contains("\nenforce   = false\n"), "{policy}");
    site.system_policy(&policy.replace("\nenforce   = false\n", "\n"));
    full(&simulate(&site, "dan"), &[("simulations", "6 of 6")]);
    denied(&simulate(&site, "dan").directory("home"), "no simulations from home directories");
}
