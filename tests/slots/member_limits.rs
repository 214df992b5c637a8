//! "Other limits for some members of `per`, or for some hours": by name, number, group, range and alias; as a
//! list with selectors and hours; and why a limit is what it is, wherever it is shown.

use crate::{
    policy::examples::{full, run},
    policy::hours::Noon,
    support::{Running, Site, Test, eventually, needs_root, set_mode},
};

const POLICY: &str = r#"
    [alias]
    leads = ["eve"]

    [repository.seats]
    per    = "user"
    limit  = 1
    limits = { ann = 3, "%power" = 2, "@leads" = 4 }

    [[rule]]
    name     = "seats by user"
    commands = ["viewer"]
    acquire  = ["seats"]
"#;

/// Ann and pia are power users, eve leads, bob is nobody in particular.
fn site(policy: &str) -> Site {
    let site = Site::new();
    site.system_policy(policy);
    for (name, groups) in [("ann", &["power"][..]), ("pia", &["power"]), ("bob", &[]), ("eve", &[])] {
        site.account(name, groups);
    }
    site.script("viewer", "#!/bin/sh\nexec cat\n");
    site
}

fn viewer(site: &Site, user: &str) -> Test {
    run(site, user, &["viewer"])
}

/// All arguments together are a member too, written with blanks; a launch and its listing agree on the limit.
#[test]
fn the_limit_of_all_arguments_is_written_with_blanks() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        path   = "x/{args}.lock"
        limit  = 1
        limits = { "5 0" = 2 }

        [[rule]]
        commands = ["viewer"]
        acquire  = ["seats"]
        "#,
    );
    site.script("viewer", "#!/bin/sh\nexec cat\n");
    let viewer = |arguments: [&str; 2]| site.test().args(["run", "--", "viewer"]).args(arguments);
    let _running = [(); 2].map(|()| viewer(["5", "0"]).spawn());
    viewer(["5", "0"]).stderr("[..]\n  seats [5 0]  2 of 2 used\n...\n").status(75);
    site.test().args(["list", "seats"]).stdout("seats [5 0]: 2 of 2 used\n...\n").status(0);
    let _other = viewer(["5", "1"]).spawn();
    viewer(["5", "1"]).stderr("[..]\n  seats [5 1]  1 of 1 used\n...\n").status(75);
}

/// Names and numbers count before the others; a group limit is that of the caller's groups.
#[test]
pub(crate) fn a_name_counts_before_a_group_and_an_alias_is_what_it_stands_for() {
    needs_root!();
    let site = site(POLICY);
    let mut running = Vec::new();
    for (user, limit, why) in
        [("ann", 3, ""), ("pia", 2, " (limit of %power)"), ("eve", 4, " (limit of @leads)"), ("bob", 1, "")]
    {
        running.extend((0..limit).map(|_| viewer(&site, user).spawn()));
        viewer(&site, user)
            .stderr(&format!(
                "rungate: viewer: not started: the limit is reached\n  seats [{user}]  {limit} of {limit} used{why}\n...\n"
            ))
            .status(75);
    }
    // "Listings show why."
    site.test()
        .args(["status"])
        .stdout(
            "
            REPOSITORY[..]
            seats[gap]-[gap]1[gap]-[gap]-[gap]-[gap]4 in use or used before, 4 full
              ann[gap]3[gap]3[gap]0[gap]0[gap][..]
              bob[gap]1[gap]1[gap]0[gap]0[gap][..]
              eve[gap]4[gap]4[gap]0[gap]0[gap][..][gap]limit of @leads
              pia[gap]2[gap]2[gap]0[gap]0[gap][..][gap]limit of %power
            ",
        )
        .status(0);
    let list = site.test().args(["list", "seats"]).outcome().stdout;
    assert!(list.contains("seats [pia]: 2 of 2 used (limit of %power)\n"), "{list}");
    for (listing, expected) in [
        (&["status", "--json"][..], "\"limit_of\": \"limit of %power\""),
        (&["list", "--json"], "\"limit_of\": \"limit of @leads\""),
        (&["metrics"], "rungate_slots_limit{repository=\"seats\",member=\"eve\"} 4"),
    ] {
        let outcome = site.test().args(listing.iter().copied()).outcome();
        assert!(outcome.stdout.contains(expected), "{listing:?}: {outcome:?}");
    }
    let explained = site.test().user("pia").args(["explain", "--", "viewer"]).outcome().stdout;
    assert!(explained.contains("(limit of %power)"), "{explained}");
    let explained = site.test().user("pia").args(["explain", "--json", "--", "viewer"]).outcome().stdout;
    assert!(explained.contains("\"limit_of\": \"limit of %power\""), "{explained}");
}

/// An attack: `newgrp`. A launch has its session's groups, and listings ask the database; `explain` shows
/// both.
#[test]
pub(crate) fn a_session_without_the_group_has_the_limit_without_it() {
    needs_root!();
    let site = site(POLICY);
    let session = viewer(&site, "pia").groups([]);
    let _one = session.spawn();
    full(&session, &[("seats [pia]", "1 of 1")]);
    site.test().args(["status"]).stdout("...\n  pia[gap]1[gap]2[gap]1[gap][..]limit of %power\n").status(0);
    let explained = site.test().user("pia").groups([]).args(["explain", "--", "viewer"]).outcome().stdout;
    let note =
        "note     seats [pia]: the limit is 1 in this session, and 2 (limit of %power) by the database\n";
    assert!(explained.contains(note), "{explained}");
    // A session of the whole account has the seat that the other one must not take.
    let _two = viewer(&site, "pia").spawn();
}

/// An attack: a formatter sorts the keys of a table. What is named stays before what selects, and what is
/// written out before what an alias stands for; of a list the order is the author's.
#[test]
pub(crate) fn a_sorted_table_says_the_same() {
    needs_root!();
    let site = site(POLICY);
    let sorted = POLICY
        .replace(r#"{ ann = 3, "%power" = 2, "@leads" = 4 }"#, r#"{ "%power" = 2, "@leads" = 4, ann = 3 }"#);
    assert_ne!(sorted, POLICY);
    let leads_ann = sorted.replace(r#"["eve"]"#, r#"["ann", "pia", "eve"]"#);
    let list = POLICY.replace(
        r#"{ ann = 3, "%power" = 2, "@leads" = 4 }"#,
        r#"[{ users = ["ann"], limit = 3 }, { users = ["%power"], limit = 2 }, { users = ["@leads"], limit = 4 }]"#,
    );
    for (policy, limits) in
        [(sorted.as_str(), [3, 2, 4, 1]), (&leads_ann, [3, 4, 4, 1]), (&list, [3, 2, 4, 1])]
    {
        site.system_policy(policy);
        for (user, limit) in ["ann", "pia", "eve", "bob"].into_iter().zip(limits) {
            let running: Vec<_> = (0..limit).map(|_| viewer(&site, user).spawn()).collect();
            full_for(&viewer(&site, user), &format!("seats [{user}]  {limit} of {limit} used"));
            drop(running);
        }
    }
}

/// Refused by one limit, whose reason may follow.
#[track_caller]
fn full_for(test: &Test, line: &str) {
    let outcome = test.outcome();
    assert!(outcome.stderr.contains(&format!("\n  {line}")), "{outcome:?}");
}

/// List form: the first table whose keys all match; keys are selectors of what the repository is by.
#[test]
pub(crate) fn a_list_says_it_for_users_and_hosts_together() {
    needs_root!();
    let site = site(
        r#"
        [repository.seats]
        per    = ["user", "host"]
        limit  = 1
        limits = [{ users = ["%power"], hosts = ["build*"], limit = 3 }, { hosts = ["BUILD2"], limit = 2 }]

        [[rule]]
        name     = "seats by user and host"
        commands = ["viewer"]
        acquire  = ["seats"]
        "#,
    );
    let mut running = Vec::new();
    for (user, host, limit, why) in [
        ("pia", "build1.example.org", 3, " (limit of %power on build*)"),
        ("pia", "build2", 3, " (limit of %power on build*)"),
        ("bob", "build2", 2, " (limit of BUILD2)"),
        ("bob", "build1", 1, ""),
        ("pia", "ws3", 1, ""),
    ] {
        let test = viewer(&site, user).host(host);
        running.extend((0..limit).map(|_| test.spawn()));
        full_for(&test, &format!("seats [{user}, {host}]  {limit} of {limit} used{why}\n"));
    }
    let status = site.test().args(["status"]).outcome().stdout;
    for line in [
        "pia, build1.example.org 3 3 0 0 [..] limit of %power on build*",
        "bob, build2 2 2 0 0 [..] limit of BUILD2",
    ] {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let expected = words(line);
        let is_it =
            |words: &Vec<String>| words.starts_with(&expected[..6]) && words.ends_with(&expected[7..]);
        assert!(status.lines().map(words).any(|line| is_it(&line)), "{line}: {status}");
    }
}

/// A look-up that fails is 71, for a launch and for a listing; a number asks nobody.
#[test]
pub(crate) fn a_member_that_cannot_be_looked_up_has_no_limit_that_anybody_knows() {
    needs_root!();
    let site = site(POLICY);
    drop(viewer(&site, "pia").spawn());
    site.write("etc/nsswitch.conf", "passwd: files\ngroup: files\n");
    set_mode(&site.path("etc/group"), 0o600);
    viewer(&site, "pia")
        .stderr("rungate: viewer: not started: [..]\n[..]getgrnam[..]power[..]Permission denied\n...\n")
        .status(71);
    // Root could read the file; nobody is asked who is checked by another user.
    let listing = site.test().user("bob").args(["status"]);
    listing.stdout("REPOSITORY[..]\n...\n  pia[gap]0[gap]?[gap][..]Permission denied\n").status(71);
    set_mode(&site.path("etc/group"), 0o644);
    let by_number = POLICY.replace("\"%power\"", "\"5000-5999\"").replace("ann = 3, ", "");
    site.system_policy(
        &by_number.replace(", \"@leads\" = 4", "").replace("[alias]\n    leads = [\"eve\"]\n", ""),
    );
    set_mode(&site.path("etc/group"), 0o600);
    viewer(&site, "pia").status(0);
}

/// An attack: the hour passes while people wait. They are decided again, and keep their numbers: who came
/// first starts first.
#[test]
pub(crate) fn who_waits_when_the_hour_of_a_limit_is_over_is_decided_anew_and_keeps_the_number() {
    needs_root!();
    Noon::plays(who_waits_at_noon);
}

/// Whether there was time to see it.
fn who_waits_at_noon(site: &Site, noon: &Noon) -> bool {
    site.policy(
        r#"
        [repository.seats]
        limit  = 2
        limits = [{ when = ["11:00-12:00"], limit = 1 }]

        [repository.kept]
        limit   = 2
        reserve = [{ users = ["nobody-of-that-name"], when = ["11:00-12:00"], slots = "50%" }]

        [[rule]]
        name     = "seats"
        commands = ["job"]
        acquire  = ["seats"]

        [[rule]]
        name     = "kept"
        commands = ["other"]
        acquire  = ["kept"]
        "#,
    );
    site.program("job");
    site.program("other");
    let run = |name| site.test().args(["run", "--quiet", "--wait", "1h", "--", name]);
    let _running = [run("job").spawn(), run("other").spawn()];
    let now = |name| site.test().args(["run", "--nonblock", "--", name]).outcome().stderr;
    let (job_now, other_now) = (now("job"), now("other"));
    if noon.has_come() {
        return false;
    }
    assert!(job_now.contains("  seats  1 of 1 used (limit until 12:00)\n"), "{job_now}");
    let kept = "      only 1 of 2 for you: 1 kept for nobody-of-that-name until 12:00\n";
    assert!(other_now.contains(kept), "{other_now}");
    let stands = |line: &str, running: &Running| {
        eventually("it stands in line in time", || {
            let stands = site.line(line).iter().any(|waiter| waiter.pid == running.pid());
            (stands || noon.has_come()).then_some(stands)
        })
    };
    let mut first = run("job").background();
    let first_stands = stands("seats.lock", &first);
    let mut other = run("other").background();
    let other_stands = stands("kept.lock", &other);
    let second = run("job").background();
    let second_stands = stands("seats.lock", &second);
    let status = site.test().args(["status"]).outcome().stdout;
    if !(first_stands && other_stands && second_stands) || noon.has_come() {
        return false;
    }
    assert!(status.contains("limit until 12:00\n"), "{status}");
    assert!(status.contains("1 kept for nobody-of-that-name until 12:00\n"), "{status}");
    first.wait_for_echo();
    other.wait_for_echo();
    assert!(noon.has_come(), "they started in the hour of the other limit");
    assert_eq!(site.held_numbers("seats.lock"), [1, 2]);
    assert!(
        site.held("seats.lock").iter().all(|slot| slot.pid != second.pid()),
        "the second overtook the first"
    );
    site.stands_in_line("seats.lock", &second);
    true
}

/// `ceiling` and a reservation's `slots` may be a share (rounded down), of the limit of the member.
#[test]
pub(crate) fn a_share_is_one_of_the_limit_of_the_member() {
    needs_root!();
    let site = site(
        r#"
        [repository.seats]
        per     = "user"
        limit   = 1
        limits  = { pia = 5 }

        [repository.beds]
        limit   = 5
        reserve = [{ users = ["%power"], slots = "50%" }]

        [[rule]]
        name     = "half of the seats"
        commands = ["viewer"]
        acquire  = [{ repository = "seats", ceiling = "50%" }]

        [[rule]]
        name     = "beds"
        commands = ["sleeper"]
        acquire  = ["beds"]

        [[rule]]
        name     = "a third stays free"
        commands = ["guest"]
        acquire  = [{ repository = "seats", ceiling = "70%" }]
        "#,
    );
    site.script("sleeper", "#!/bin/sh\nexec cat\n");
    site.script("guest", "#!/bin/sh\nexec cat\n");
    let pia: Vec<_> = (0..2).map(|_| viewer(&site, "pia").spawn()).collect();
    full_for(&viewer(&site, "pia"), "seats [pia]  2 of 2 used\n      only up to 2 of 5 for this rule");
    let _guest = run(&site, "pia", &["guest"]).spawn();
    full_for(&run(&site, "pia", &["guest"]), "seats [pia]  3 of 3 used\n");
    drop(pia);
    // A share of a limit is never a ceiling of 0.
    let _bob = viewer(&site, "bob").spawn();
    full_for(&viewer(&site, "bob"), "seats [bob]  1 of 1 used\n");
    let _strangers: Vec<_> = (0..3).map(|_| run(&site, "bob", &["sleeper"]).spawn()).collect();
    full_for(
        &run(&site, "bob", &["sleeper"]),
        "beds  3 of 5 used\n      only 3 of 5 for you: 2 kept for %power\n",
    );
    let _members: Vec<_> = (0..2).map(|_| run(&site, "pia", &["sleeper"]).spawn()).collect();
    assert_eq!(site.held_numbers("beds.lock"), [1, 2, 3, 4, 5]);
}

/// "`reserve = [{ hosts = ["lab*"], slots = 5 }]`": for whoever is at one of these hosts.
#[test]
pub(crate) fn slots_are_kept_for_hosts() {
    needs_root!();
    let site = site(
        r#"
        [repository.seats]
        limit   = 3
        reserve = [{ hosts = ["lab*"], slots = 1 }, { users = ["%power"], hosts = ["lab*"], slots = 1, lend = 1 }]

        [[rule]]
        name     = "seats"
        commands = ["viewer"]
        acquire  = ["seats"]
        "#,
    );
    let at = |user, host: &str| viewer(&site, user).host(host);
    let _desk = [at("pia", "ws1").spawn(), at("bob", "ws1").spawn()];
    assert_eq!(site.held_numbers("seats.lock"), [2, 3], "the last is lent");
    full_for(&at("bob", "ws1"), "seats  2 of 3 used\n      only 2 of 3 for you: 1 kept for lab*\n");
    let list = site.test().args(["list", "seats"]).outcome().stdout;
    assert!(list.starts_with("seats: 2 of 3 used, 1 kept for lab*\n"), "{list}");
    let _lab = at("bob", "lab7.example.org").spawn();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3]);
}
