//! Caps for projects, and departments that keep rules of their own beside the site's.

use std::{fs, os::unix::fs::chown};

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
    assert_eq!(site.held_numbers("project.apollo.lock").len(), 3);
    for another in [for_project("bob", "apollo"), at("bob", "proj/apollo")] {
        full(&another, &[("project [apollo]", "3 of 3")]);
    }
    // "Apollo has paid for three runs at once, gemini for two."
    let _gemini = [at("bob", "proj/gemini").spawn(), for_project("bob", "gemini").spawn()];
    for another in [at("ann", "proj/gemini"), for_project("ann", "gemini")] {
        full(&another, &[("project [gemini]", "2 of 2")]);
    }
    // "The variable PROJECT where that is set, else the directory."
    drop(apollo);
    full(&at("ann", "proj/apollo").env("PROJECT", "gemini"), &[("project [gemini]", "2 of 2")]);
    at("ann", "proj/gemini").env("PROJECT", "apollo").status(0);
    // "A run that belongs to no project is refused."
    denied(&at("ann", "work"), "no project");
    denied(&at("ann", "proj"), "no project");
    // "A project that is not listed has no run", whatever its name.
    for other in [at("ann", "proj/mercury"), for_project("ann", "mercury"), for_project("ann", "../apollo")] {
        other
            .stderr("rungate: [..]: not started: [..]\n  project [..]  closed: its limit is 0\n...\n")
            .status(75);
    }
    at("ann", "proj/apollo").env("PROJECT", "").status(0);
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
    site.account("cadadm", &[]);
    drop_in("20-cad.toml", "\"2000-01-01\"");
    drop_in("30-sim.toml", "");
    // "It may belong to cadadm."
    let cadadm = site.user("cadadm").uid;
    chown(site.path("etc/rungate/policy.d/20-cad.toml"), Some(cadadm), None).expect("chown");
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
    // "Cad uses three", whoever of it.
    let cad = [spawn(&matlab("ann"), 2), spawn(&matlab("art"), 1)];
    full(&matlab("art"), &[("seats", "3 of 3")]);
    // "An exception to a rule of this file": sim has four for each.
    let sim = spawn(&matlab("sid"), 3);
    full(&matlab("sid"), &[("matlab", "8 of 8")]);
    drop(cad);
    let _fourth = matlab("sid").spawn();
    full(&matlab("sid"), &[("matlab-per-sim-user [sid]", "4 of 4")]);
    // Whoever is in both has the four of sim, below the three of cad, who leave two of all free.
    drop(sim);
    let both = spawn(&matlab("sue"), 3);
    full(&matlab("sue"), &[("matlab", "6 of 6"), ("seats", "3 of 3")]);
    drop(both);
    // "A mistake in it stops cad's MATLAB and nothing else."
    drop_in("20-cad.toml", "nonsense");
    matlab("ann").stderr("rungate: matlab: not started: the policy has 1 fault\n...\n").status(78);
    matlab("sid").outcome();
    run(&site, "ann", &["cat"]).status(0);
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
