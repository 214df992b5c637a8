//! A machine that is for many, for one, or for nobody.

use super::{changed, denied, full, run, site_with, spawn};
use crate::support::needs_root;

#[test]
fn maintenance() {
    const WINDOW: &str = "\"2026-11-28 22:00..2026-11-29 06:00\"";
    needs_root!();
    let long_ago = changed("maintenance.toml", WINDOW, "\"2000-01-01\"");
    let site = site_with(&long_ago, &[("ann", &[]), ("bob", &[])], &["job", "benchmark"]);
    let job = |user| run(&site, user, &["job"]);
    let mut jobs = spawn(&job("ann"), 8);
    full(&job("bob"), &[("machine", "8 of 8")]);
    jobs.truncate(1);
    // "A benchmark only when it has the machine to itself."
    site.test()
        .user("bob")
        .args(["run", "--nonblock", "--", "benchmark"])
        .stderr("rungate: benchmark: not started: [..]\n  machine  1 of 8 used, 8 more wanted\n...\n")
        .status(75);
    // "A benchmark that has to wait keeps later jobs from overtaking it, so its turn comes."
    let mut benchmark = run(&site, "bob", &["benchmark"]).background();
    site.stands_in_line("machine.lock", &benchmark);
    job("ann")
        .stderr("rungate: job: not started: others wait in the queue for what is left\n  machine  1 of 8 used, 1 waiting\n...\n")
        .status(75);
    jobs.clear();
    benchmark.wait_for_echo();
    assert_eq!(site.held_numbers("machine.lock").len(), 8);
    full(&job("ann"), &[("machine", "8 of 8")]);
    drop(benchmark);

    // "On the night of the maintenance nothing starts any more, except what root starts … What runs when the
    // maintenance begins is not ended: the machine drains."
    let before = job("ann").spawn();
    site.system_policy(&changed("maintenance.toml", WINDOW, "\"00:00-24:00\""));
    for user in ["ann", "bob"] {
        denied(&job(user), "maintenance");
        denied(&run(&site, user, &["ls"]), "maintenance");
    }
    assert_eq!(site.held("machine.lock")[0].pid, before.pid());
    let _root = job("root").spawn();
    assert_eq!(site.held_numbers("machine.lock").len(), 2);
}
