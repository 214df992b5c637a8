//! Caps for projects, and departments that keep rules of their own beside the site's.

use std::fs;

use super::{changed, denied, directory, full, run, shared, site_with, spawn};
use crate::support::{Site, needs_root, set_mode};

#[test]
fn project_caps() {
    needs_root!();
    let policy = changed("project-caps.toml", "\"/proj/", "\"$DIR/proj/");
    let site = site_with(&policy, &[("ann", &[]), ("bob", &[])], &["simulate", "regress", "less"]);
    for project in ["proj/apollo/run1", "proj/gemini", "proj/mercury"] {
        fs::create_dir_all(site.path(project)).expect("a project");
    }
    let at = |user, directory: &str| run(&site, user, &["simulate"]).directory(directory);
    let for_project = |user, project: &str| run(&site, user, &["regress"]).env("PROJECT", project);
    // "Both ways lead to one file for each project, so that they count together."
    let apollo = [for_project("ann", "apollo").spawn(), for_project("bob", "apollo").spawn()];
    let _third = at("ann", "proj/apollo/run1").spawn();
    assert_eq!(site.held_numbers("projects/apollo.lock").len(), 3);
    full(&for_project("bob", "apollo"), &[("project [apollo]", "3 of 3")]);
    full(&at("bob", "proj/apollo"), &[("apollo", "3 of 3")]);
    // "Apollo has paid for three runs at once, gemini for two."
    let _gemini = [at("bob", "proj/gemini").spawn(), for_project("bob", "gemini").spawn()];
    full(&at("ann", "proj/gemini"), &[("gemini", "2 of 2")]);
    full(&for_project("ann", "gemini"), &[("project [gemini]", "2 of 2")]);
    // "The variable PROJECT where that is set, else the directory."
    drop(apollo);
    full(&at("ann", "proj/apollo").env("PROJECT", "gemini"), &[("project [gemini]", "2 of 2")]);
    at("ann", "proj/gemini").env("PROJECT", "apollo").status(0);
    // "A run that belongs to no project is refused", and an invented one is none.
    denied(&at("ann", "work"), "no project");
    denied(&at("ann", "proj/mercury"), "no project");
    denied(&for_project("ann", "mercury"), "a project that nobody knows");
    denied(&for_project("ann", "apollo/../gemini"), "a project that nobody knows");
    denied(&at("ann", "proj/apollo").env("PROJECT", ""), "a project that nobody knows");
    run(&site, "ann", &["less"]).status(0);
}

#[test]
fn departments() {
    needs_root!();
    let site = Site::new();
    site.system_file("policy.toml", &shared("departments/policy.toml"));
    let drop_in = |name: &str, regression: &str| {
        let file = directory().join("departments/policy.d").join(name);
        let text = fs::read_to_string(file).expect("a drop-in").replace("\"Wed 20:00-02:00\"", regression);
        let directory = site.path("etc/rungate/policy.d");
        fs::create_dir_all(&directory).expect("policy.d");
        set_mode(&directory, 0o755);
        site.system_file(&format!("policy.d/{name}"), &text);
    };
    drop_in("20-cad.toml", "\"2000-01-01\"");
    drop_in("30-sim.toml", "");
    for (user, groups) in [
        ("ann", &["cad"][..]),
        ("art", &["cad"]),
        ("sid", &["sim"]),
        ("eve", &["users"]),
        ("sue", &["cad", "sim"]),
    ] {
        site.account(user, groups);
    }
    site.script("matlab", "#!/bin/sh\nexec cat\n");
    let matlab = |user| run(&site, user, &["matlab"]);
    // "The site buys eight seats of MATLAB and gives two to each person."
    let _eve = spawn(&matlab("eve"), 2);
    full(&matlab("eve"), &[("matlab-per-user [eve]", "2 of 2")]);
    // "A cap of the department's own": cad uses three, whoever of it.
    let cad = [spawn(&matlab("ann"), 2), spawn(&matlab("art"), 1)];
    full(&matlab("art"), &[("matlab-cad", "3 of 3")]);
    // "An exception to a rule of this file": sim has four for each.
    let sim = spawn(&matlab("sid"), 3);
    full(&matlab("sid"), &[("matlab", "8 of 8")]);
    drop(cad);
    let _fourth = matlab("sid").spawn();
    full(&matlab("sid"), &[("matlab-per-sim-user [sid]", "4 of 4")]);
    // Whoever is in both has the four of sim, below the three of cad.
    drop(sim);
    let _both = spawn(&matlab("sue"), 3);
    full(&matlab("sue"), &[("matlab-cad", "3 of 3")]);
    // "And not during the weekly regression."
    drop_in("20-cad.toml", "\"00:00-24:00\"");
    for user in ["ann", "sue"] {
        denied(&matlab(user), "regression night");
    }
    matlab("sid").outcome();
    // Who wrote what can be told: the place is the drop-in's.
    let explained = site.test().user("sid").args(["explain", "--", "matlab"]).outcome().stdout;
    for line in ["policy.d/30-sim.toml", "shadowed by \"four for each of sim\""] {
        assert!(explained.contains(line), "{explained}");
    }
}
