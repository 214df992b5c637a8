//! Captures, with real processes: a cap for each project, by the directory that the kernel knows and not by
//! the way there.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::support::{Ending, Site, Test, needs_root};

const PROJECTS: &str = r#"
    [repository.project]
    per    = "{project}"
    limit  = 0
    limits = { apollo = 1, gemini = 1 }

    [[rule]]
    name        = "the project's runs"
    commands    = ["simulate"]
    directories = ["$DIR/work/proj/{project}/**"]
    acquire     = ["project"]
"#;

fn site() -> Site {
    let site = Site::with_policy(PROJECTS);
    site.program("simulate");
    for directory in ["apollo/run", "gemini", "mercury"] {
        fs::create_dir_all(site.path("work/proj").join(directory)).expect("a project");
    }
    site
}

fn simulate(site: &Site, directory: &str) -> Test {
    site.test().directory(&format!("work/{directory}")).args(["run", "--", "simulate"])
}

#[track_caller]
fn full(test: Test, project: &str) {
    let use_of = if project == "mercury" { "closed: its limit is 0" } else { "1 of 1 used" };
    test.stderr(&format!("rungate: simulate: not started: [..]\n  project [{project}]  {use_of}[..]\n...\n"))
        .status(75);
}

fn json(test: &Test) -> Value {
    let outcome = test.outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{outcome:?}");
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"))
}

/// A part of the directory: each project has its own slots, and what is not listed has none.
#[test]
fn a_project_cap_is_one_repository_and_one_rule() {
    let site = site();
    let _apollo = simulate(&site, "proj/apollo/run").spawn();
    full(simulate(&site, "proj/apollo"), "apollo");
    simulate(&site, "proj/gemini").status(0);
    full(simulate(&site, "proj/mercury"), "mercury");
    // What is beside the projects is no project's.
    simulate(&site, "proj").status(0);
}

/// The physical directory counts: a link to a project is that project, and one that leads out of them is
/// none.
#[test]
fn a_link_is_where_it_leads() {
    let site = site();
    symlink("gemini", site.path("work/proj/alias")).expect("a link");
    symlink("../../elsewhere", site.path("work/proj/out")).expect("a link");
    fs::create_dir(site.path("elsewhere")).expect("a directory");
    let by_link = |link: &str| {
        // What a shell says of where it is.
        let pwd = site.path("work/proj").join(link);
        simulate(&site, &format!("proj/{link}")).env("PWD", pwd)
    };
    let _gemini = by_link("alias").spawn();
    assert_eq!(site.held_numbers("project.gemini.lock"), [1]);
    full(simulate(&site, "proj/gemini"), "gemini");
    full(by_link("alias"), "gemini");
    by_link("out").status(0);
    assert!(!site.repository("project.alias.lock").exists() && !site.repository("project.out.lock").exists());
}

/// `cd` into gemini spends gemini's slots: where a launch starts is what counts, and nothing that it says
/// of itself.
#[test]
fn a_change_of_directory_spends_the_slots_of_the_other_project() {
    needs_root!();
    let site = Site::new();
    site.system_policy(PROJECTS);
    site.program("simulate");
    for directory in ["apollo", "gemini"] {
        fs::create_dir_all(site.path("work/proj").join(directory)).expect("a project");
    }
    site.account("ann", &[]);
    site.account("bob", &[]);
    let cd = |user: &str, from: &str, to: &str| {
        let line = format!("cd {to} && exec {} run -- simulate", site.rungate().display());
        site.test().user(user).program("/bin/sh").directory(&format!("work/proj/{from}")).args(["-c", &line])
    };
    let ann = cd("ann", "apollo", "../gemini").spawn();
    assert_eq!(site.held_numbers("project.gemini.lock"), [1]);
    assert_eq!(site.held_numbers("project.apollo.lock"), [] as [i64; 0]);
    // Ann has left apollo's slot to others, and gemini's people wait for hers.
    let at = |user, directory| simulate(&site, directory).user(user);
    at("bob", "proj/apollo").status(0);
    full(at("bob", "proj/gemini").env("PWD", site.path("work/proj/apollo")), "gemini");
    drop(ann);
    at("bob", "proj/gemini").status(0);
}

/// Every output tells of the member that was captured, by its name.
#[test]
fn every_listing_shows_the_project() {
    let site = site();
    let running = simulate(&site, "proj/apollo").spawn();
    let explain = |words: &[&str]| {
        site.test().directory("work/proj/apollo").args(["explain"]).args(words).args(["simulate"])
    };
    explain(&["--"])
        .stdout(
            "
            ...
            the project's runs[gap]policy.toml:[..][gap]counts, project = apollo
            ...
            project [apollo][gap]1[gap]1[gap]1[gap]0[gap]0s[gap]FULL[..]
            ...
            now[gap]refused, status 75[..]
            ...
            ",
        )
        .status(0);
    let explained = json(&explain(&["--json", "--"]));
    assert_eq!(explained["rules"][0]["captured"], json!({ "project": "apollo" }));
    assert_eq!(explained["rules"][0]["result"], "counts, project = apollo");
    assert_eq!(
        (&explained["claims"][0]["member"], &explained["claims"][0]["limit"]),
        (&json!("apollo"), &json!(1))
    );
    site.test().args(["status"]).stdout("...\n  apollo[gap]1[gap]1[gap]0[..]\n...\n").status(0);
    let status = json(&site.test().args(["status", "--json"]));
    let of_apollo = status.to_string();
    assert!(of_apollo.contains("\"member\":\"apollo\""), "{of_apollo}");
    let listed = json(&site.test().args(["list", "--json", "project"]));
    assert_eq!(listed[0]["member"], "apollo");
    assert_eq!(listed[0]["holders"][0]["pid"], running.pid());
    let metrics = site.test().args(["metrics"]).outcome().stdout;
    assert!(metrics.contains("member=\"apollo\""), "{metrics}");
    // What is printed is read again as the same policy.
    let printed = site.test().args(["policy", "show"]).outcome().stdout;
    for line in
        ["path = \"project.{project}.lock\"", &site.expand("directories = [\"$DIR/work/proj/{project}/**\"]")]
    {
        assert!(printed.contains(line), "{printed}");
    }
    site.write("again.toml", &printed);
    simulate(&site, "proj/apollo")
        .env("RUNGATE_POLICY", site.path("again.toml"))
        .stderr("rungate: simulate: not started: [..]\n...\n")
        .status(75);
}

/// "Never empty", and "made safe as ever": what an argument says is a name and never a way elsewhere.
#[test]
fn what_an_argument_says_is_a_name_and_no_path() {
    let site = Site::with_policy(
        r#"
        [repository.job]
        per   = "{job}"
        limit = 1

        [[rule]]
        commands  = ["simulate"]
        arguments = [["--job", "{job}"], "--job={job}"]
        acquire   = ["job"]
        "#,
    );
    site.script("simulate", "#!/bin/sh\nexec cat\n");
    let job = |words: &[&str]| site.test().args(["run", "--", "simulate"]).args(words);
    let first = job(&["--job", "7"]).spawn();
    job(&["-v", "--job=7"]).stderr("...\n  job [7]  1 of 1 used\n...\n").status(75);
    job(&["--job", "8"]).status(0);
    // Empty, it is no job at all.
    job(&["--job", ""]).status(0);
    drop(first);
    let _hostile = job(&["--job=../../../tmp/x"]).spawn();
    let names: Vec<String> = fs::read_dir(site.path("repositories"))
        .expect("the repositories")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.iter().any(|name| *name == "job.%2E.%2F..%2F..%2Ftmp%2Fx.lock"), "{names:?}");
    assert_eq!(names.iter().filter(|name| name.starts_with("job.")).count(), 3, "{names:?}");
}

/// "All entries of one list capture the same names", but where all of them must match each captures its own,
/// and so does each pattern of `exactly`. Both lead to the same files.
#[test]
fn each_entry_of_all_and_each_pattern_of_exactly_captures() {
    let site = Site::with_policy(
        r#"
        [repository.job]
        per   = ["{queue}", "{job}"]
        limit = 1

        [[rule]]
        name      = "all of these"
        commands  = ["simulate"]
        arguments = { all = [["--queue", "{queue}"], "--job={job}"] }
        acquire   = ["job"]

        [[rule]]
        name      = "exactly these"
        commands  = ["push"]
        arguments = { exactly = ["{queue}", "**", "{job}"] }
        acquire   = ["job"]
        "#,
    );
    for program in ["simulate", "push"] {
        site.script(program, "#!/bin/sh\nexec cat\n");
    }
    let run = |command: &[&str]| site.test().args(["run", "--"]).args(command);
    let full = |command: &[&str], job: &str| {
        run(command).stderr(&format!("...\n  job [{job}]  1 of 1 used\n...\n")).status(75);
    };
    let _night = run(&["simulate", "--job=7", "-v", "--queue", "night"]).spawn();
    assert_eq!(site.held_numbers("job.night,7.lock"), [1]);
    full(&["push", "night", "now", "--force", "7"], "night, 7");
    full(&["push", "night", "7"], "night, 7");
    let _day = run(&["push", "day", "7"]).spawn();
    full(&["simulate", "--queue", "day", "--job=7"], "day, 7");
    // What one entry does not find, or what is one argument short, is no job.
    for none in [&["simulate", "--queue", "night"][..], &["simulate", "--job=7"], &["push", "night"]] {
        run(none).status(0);
    }
    site.test()
        .args(["explain", "--", "push", "day", "x", "7"])
        .stdout(
            "...\nexactly these[gap][..][gap]counts, queue = day, job = 7\n...\njob [day, 7][gap][..]\n...\n",
        )
        .status(0);
}

/// A rule that does not count captures nothing, though its pattern matches.
#[test]
fn only_rules_that_count_capture() {
    let site = Site::new();
    site.write(
        "policy.toml",
        r#"
        version = 1
        repository.project = { per = "{project}", limit = 1 }
        [[rule]]
        name      = "mine"
        commands  = ["true"]
        arguments = ["-p={project}"]
        acquire   = ["project"]
        [[rule]]
        name      = "of another host"
        commands  = ["true"]
        arguments = ["-p={project}"]
        hosts     = ["elsewhere"]
        acquire   = ["project"]
        "#,
    );
    let explain = ["explain", "--json", "--policy", "$DIR/policy.toml", "--", "true", "-p=apollo"];
    let rules = json(&site.test().args(explain))["rules"].clone();
    assert_eq!(rules[0]["captured"], json!({ "project": "apollo" }), "{rules}");
    assert_eq!(
        (&rules[1]["rule"], &rules[1]["captured"]),
        (&json!("of another host"), &json!({})),
        "{rules}"
    );
}
