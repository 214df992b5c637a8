//! Where a system policy exists it always counts: a policy given with `--policy FILE` or `RUNGATE_POLICY`,
//! and the caller's own, are added to it and may only tighten (an `exempt` in them is a fault), unless the
//! caller is root. If none exists, they stand alone.

use std::{
    fs,
    os::unix::fs::{chown, symlink},
};

use crate::support::{Account, Site, Test, needs_root, set_mode};

const SYSTEM: &str = r#"
    [repository.seats]
    limit = 2

    [[rule]]
    name     = "two seats"
    commands = ["matlab"]
    acquire  = ["seats"]
"#;

const NARROWER: &str = r#"
    version = 1
    defaults.directory = "$DIR/repositories"

    [repository.mine]
    limit = 1

    [[rule]]
    name     = "one of mine"
    commands = ["matlab"]
    acquire  = ["mine"]
"#;

const EXEMPTING: &str = r#"
    version = 1

    [[rule]]
    name     = "not me"
    commands = ["matlab"]
    action   = "exempt"
"#;

fn site() -> Site {
    let site = Site::new();
    site.system_policy(SYSTEM);
    site.program("matlab");
    site
}

fn matlab(site: &Site) -> Test {
    site.test().user("games").args(["run", "--", "matlab"])
}

const REFUSED: &str = "rungate: matlab: not started: [..]\n...\n";

#[test]
fn a_system_policy_counts_for_everybody() {
    needs_root!();
    let site = site();
    let _running = [matlab(&site).spawn(), matlab(&site).user("backup").spawn()];
    matlab(&site).stderr(REFUSED).status(75);
    matlab(&site).user("root").stderr(REFUSED).status(75);
    // An empty name, and a policy that says nothing, change nothing.
    matlab(&site).env("RUNGATE_POLICY", "").stderr(REFUSED).status(75);
}

#[test]
fn policies_of_the_caller_are_added() {
    needs_root!();
    for how in ["--policy", "before", "RUNGATE_POLICY", "own"] {
        let site = site();
        site.write("narrower.toml", NARROWER);
        let games = Account::named("games");
        let test = match how {
            "--policy" => site.test().args(["run", "--policy", "$DIR/narrower.toml", "--", "matlab"]),
            "before" => site.test().args(["--policy", "$DIR/narrower.toml", "run", "--", "matlab"]),
            "RUNGATE_POLICY" => {
                site.test().env("RUNGATE_POLICY", "$DIR/narrower.toml").args(["run", "--", "matlab"])
            }
            _ => {
                site.own_policy(&games, NARROWER);
                site.test().args(["run", "--", "matlab"])
            }
        };
        let test = test.user("games");
        let running = test.spawn();
        assert_eq!(
            (site.held_numbers("seats.lock"), site.held_numbers("mine.lock")),
            (vec![1], vec![1]),
            "{how}"
        );
        test.clone().stderr("rungate: matlab: not started: [..]\n  mine [..]1 of 1[..]\n...\n").status(75);
        drop(running);
    }
}

#[test]
fn an_exemption_of_ones_own_is_a_fault() {
    needs_root!();
    let site = site();
    site.write("exempting.toml", EXEMPTING);
    let _running = [matlab(&site).spawn(), matlab(&site).spawn()];
    let exempting = site.test().args(["run", "--policy", "$DIR/exempting.toml", "--", "matlab"]);
    exempting.clone().user("games").stderr("rungate: matlab: not started: the policy has 1 fault\n$DIR/exempting.toml:6:12: [..] [loosens]\n...\n").status(78);
    // Root may.
    exempting.user("root").status(0);
}

#[test]
fn an_exemption_counts_where_there_is_no_system_policy() {
    let site = Site::new();
    site.program("matlab");
    site.write("exempting.toml", EXEMPTING);
    site.test().args(["run", "--policy", "$DIR/exempting.toml", "--", "matlab"]).status(0);
}

/// `policy.toml`, then `policy.d/*.toml` in byte order of their names. Names that are skipped (not `.toml`,
/// starting with `.`) are named by `rungate policy check`.
#[test]
fn drop_ins_count_and_skipped_files_are_named() {
    needs_root!();
    let site = site();
    let tighter = r#"
        version = 1

        [repository.few]
        limit = 1

        [[rule]]
        name     = "only one"
        commands = ["matlab"]
        acquire  = ["few"]
    "#;
    site.system_file("policy.d/.20-hidden.toml", tighter);
    site.system_file("policy.d/20-old.toml.bak", tighter);
    let running = matlab(&site).spawn();
    matlab(&site).status(0);
    site.test()
        .user("games")
        .args(["policy", "check"])
        .stderr(
            "
            /etc/rungate/policy.d: warning: \".20-hidden.toml\" is skipped: [..] [skipped-file]

            /etc/rungate/policy.d: warning: \"20-old.toml.bak\" is skipped: [..] [skipped-file]
            rungate: 2 warnings
            ",
        )
        .status(0);
    drop(running);

    site.system_file("policy.d/20-tighter.toml", tighter);
    let _running = matlab(&site).spawn();
    matlab(&site)
        .stderr("rungate: matlab: not started: [..]\n...\n  few [..]1 of 1[..]\n[..]policy.d/20-tighter.toml:6\n...\n")
        .status(75);
}

/// A missing or faulty file refuses, it is never passed over: one faulty drop-in and nothing is applied.
#[test]
fn a_faulty_drop_in_starts_nothing() {
    needs_root!();
    let site = site();
    site.system_file(
        "policy.d/30-students.toml",
        "version = 1\n[[rule]]\nname = \"x\"\nacquire = [\"saets\"]\n",
    );
    matlab(&site)
        .stderr(
            "
            rungate: matlab: not started: the policy has 1 fault
            /etc/rungate/policy.d/30-students.toml:4:12: unknown repository \"saets\"; did you mean \"seats\"? [unknown-repository]
              |
            4 | acquire = [\"saets\"]
              |            ^^^^^^^
            /etc/rungate/policy.d/30-students.toml was changed [time] by root (0)
            Tell your administrator: rungate policy check
            ",
        )
        .status(78);
    // A change is reported once, however many faults it made.
    let faults = "version = 1\n[[rule]]\nname = \"x\"\nacquire = [\"saets\", \"seets\"]\n";
    site.system_file("policy.d/30-students.toml", faults);
    let refused = site.test().args(["run", "--", "matlab"]).outcome().stderr;
    assert!(refused.contains("the policy has 2 faults\n"), "{refused}");
    assert_eq!(refused.matches(" was changed ").count(), 1, "{refused}");
    // Others can correct none of them, and are told the first.
    let refused = matlab(&site).outcome().stderr;
    assert!(refused.contains("the policy has 2 faults, the first of them\n"), "{refused}");
    assert!(refused.ends_with("\nTell your administrator: rungate policy check\n"), "{refused}");
}

#[test]
fn a_policy_that_is_named_and_missing_starts_nothing() {
    let site = Site::new();
    site.program("matlab");
    let missing =
        "rungate: matlab: not started: the policy has 1 fault\n$DIR/missing.toml: [..] [missing-file]\n...\n";
    site.test().args(["run", "--policy", "$DIR/missing.toml", "--", "matlab"]).stderr(missing).status(78);
    site.test()
        .env("RUNGATE_POLICY", "$DIR/missing.toml")
        .args(["run", "--", "matlab"])
        .stderr(missing)
        .status(78);
}

/// Policy files and every directory above them must belong to root or to the caller and not be writable by
/// others.
#[test]
fn a_policy_that_others_could_have_written_starts_nothing() {
    let site = Site::new();
    site.program("matlab");
    std::fs::create_dir(site.path("policies")).expect("a directory");
    site.write("policies/mine.toml", NARROWER);
    let mine = site.test().args(["run", "--policy", "$DIR/policies/mine.toml", "--", "matlab"]);
    mine.status(0);
    let refused = "rungate: matlab: not started: the policy has 1 fault\n$DIR/policies/mine.toml: [..] [untrusted-file]\n...\n";
    for (path, trusted, open) in [("policies/mine.toml", 0o644, 0o666), ("policies", 0o755, 0o777)] {
        set_mode(&site.path(path), open);
        mine.clone().stderr(refused).status(78);
        set_mode(&site.path(path), trusted);
    }
    // "A sticky directory is as good as one that is not writable."
    set_mode(&site.path("policies"), 0o1777);
    mine.status(0);
}

#[test]
fn a_policy_of_another_user_starts_nothing() {
    needs_root!();
    let site = Site::new();
    site.program("matlab");
    let backup = Account::named("backup");
    site.own_policy(&backup, NARROWER);
    set_mode(&site.path(format!("config/{}", backup.uid)), 0o755);
    let policy = format!("$DIR/config/{}/rungate/policy.toml", backup.uid);
    let theirs = site.test().args(["run", "--policy", policy.as_str(), "--", "matlab"]);
    theirs.clone().user("backup").status(0);
    theirs
        .user("games")
                .stderr("rungate: matlab: not started: the policy has 1 fault\n[..]belongs to backup (34), neither to root nor to you; chown root fixes that [untrusted-file]\n...\n")
        .status(78);
}

/// Not be writable by others: nor by a group that is not the owner's alone, on the file or above it.
#[test]
fn a_policy_that_a_group_could_have_written_starts_nothing() {
    needs_root!();
    let site = Site::new();
    site.program("matlab");
    let games = Account::named("games");
    for directory in ["above", "above/policies"] {
        std::fs::create_dir(site.path(directory)).expect("a directory");
    }
    site.write("above/policies/mine.toml", NARROWER);
    let mine = site.test().args(["run", "--policy", "$DIR/above/policies/mine.toml", "--", "matlab"]);
    for (path, mode) in [("above", 0o755), ("above/policies", 0o755), ("above/policies/mine.toml", 0o644)] {
        let place = site.path(path);
        set_mode(&place, mode | 0o020);
        // Group 0 is root's, and may write to directories.
        if mode == 0o755 {
            mine.status(0);
        }
        chown(&place, None, Some(games.gid)).expect("give it to the group");
        let reason = format!("its group can write to it (mode {:04o}); chmod g-w fixes that", mode | 0o020);
        mine.clone()
            .stderr(&format!(
                "rungate: matlab: not started: the policy has 1 fault\n$DIR/above/policies/mine.toml: [..]{reason} [untrusted-file]\n...\n"
            ))
            .status(78);
        set_mode(&place, mode);
        mine.status(0);
    }
}

/// A group may write if it is its owner's alone: the group that the owner logs in with, which has the owner's
/// name, and in which no other user is listed.
#[test]
fn a_policy_that_the_group_of_its_owner_alone_could_have_written_counts() {
    needs_root!();
    let site = Site::new();
    site.account("ann", &[]);
    let ann = site.user("ann");
    site.own_policy(&ann, "[[rule]]\nname = \"none\"\naction = \"deny\"\n");
    let own = site.path(format!("config/{}/rungate", ann.uid));
    set_mode(&own, 0o775);
    set_mode(&own.join("policy.toml"), 0o664);
    let launch = || site.test().user("ann").args(["run", "--", "true"]);
    let counts = || launch().stderr("rungate: true: refused: rule \"none\"\n...\n").status(77);
    let is_refused = || {
        let said =
            "rungate: true: not started: the policy has 1 fault\n[..]its group can write to it[..]\n...\n";
        launch().stderr(said).status(78);
    };
    counts();
    let file = |name: &str| std::fs::read_to_string(site.path(name)).expect("a database of the site");
    let (users, groups) = (file("etc/passwd"), file("etc/group"));
    site.account("bob", &["ann"]);
    is_refused();
    site.write("etc/group", &groups);
    counts();
    // It may list its owner.
    let own_line = format!("ann:x:{}:", ann.uid);
    site.write("etc/group", &groups.replace(&own_line, &format!("{own_line}ann")));
    counts();
    // A group that all users log in with lists none of them.
    let (own_group, of_all) = (format!(":{0}:{0}:", ann.uid), format!(":{}:54999:", ann.uid));
    assert!(users.contains(&own_group), "{users}");
    site.write("etc/passwd", &users.replace(&own_group, &of_all));
    is_refused();
    site.write("etc/group", &format!("{groups}everyone:x:54999:\n"));
    for path in [own.clone(), own.join("policy.toml")] {
        chown(path, None, Some(54999)).expect("give it to the group");
    }
    is_refused();
}

/// The caller's own `$XDG_CONFIG_HOME/rungate/policy.toml`: where the environment leads to somebody else's
/// directory, as it may after su(1), there is no policy of theirs.
#[test]
fn a_directory_of_somebody_else_holds_no_policy_of_the_caller() {
    needs_root!();
    let site = site();
    let backup = Account::named("backup");
    site.own_policy(&backup, NARROWER);
    let theirs = format!("$DIR/config/{}", backup.uid);
    let matlab = site.test().args(["run", "--", "matlab"]);
    matlab.clone().env("XDG_CONFIG_HOME", &theirs).user("games").status(0);
    matlab.clone().env_remove("XDG_CONFIG_HOME").env("HOME", &theirs).user("games").status(0);
    assert!(!site.path("repositories/mine.lock").exists());
}

/// Drop-ins of the system belong to root, and so does their directory, to which nobody else may add a file:
/// in one that is sticky anybody could add rules for themselves alone.
#[test]
fn a_drop_in_that_is_not_roots_starts_nothing() {
    needs_root!();
    let site = site();
    site.system_file("policy.d/50-mine.toml", "version = 1\n");
    matlab(&site).status(0);
    let refused = |what: &str| {
        let text = format!(
            "rungate: matlab: not started: the policy has 1 fault\n/etc/rungate/policy.d{what} [untrusted-file]\n...\n"
        );
        matlab(&site).stderr(&text).status(78);
    };
    let games = Account::named("games");
    for (name, message) in [("policy.d/50-mine.toml", "/50-mine.toml"), ("policy.d", "")] {
        let path = site.path("etc/rungate").join(name);
        chown(&path, Some(games.uid), None).expect("give it away");
        refused(&format!(
            "{message}: cannot be trusted: belongs to games (5); drop-ins of the system belong to root; chown root fixes that"
        ));
        chown(&path, Some(0), None).expect("take it back");
    }
    set_mode(&site.path("etc/rungate/policy.d"), 0o1777);
    refused(": cannot be trusted: all users can write to it (mode 1777); chmod o-w fixes that");
    set_mode(&site.path("etc/rungate/policy.d"), 0o1775);
    chown(site.path("etc/rungate/policy.d"), None, Some(games.gid)).expect("give it to the group");
    refused(": cannot be trusted: its group can write to it (mode 1775); chmod g-w fixes that");
    set_mode(&site.path("etc/rungate/policy.d"), 0o755);
    matlab(&site).status(0);
}

/// Drop-ins on a share that is not mounted may hold the limits.
#[test]
fn a_directory_of_drop_ins_that_is_not_there_starts_nothing() {
    needs_root!();
    let site = site();
    let drop_ins = site.path("etc/rungate/policy.d");
    matlab(&site).status(0);
    symlink("../share/policy.d", &drop_ins).expect("a link");
    let refused = "rungate: matlab: not started: the policy has 1 fault\n/etc/rungate/policy.d: cannot be read: is a link to a directory that is not there [unreadable-file]\n...\n";
    matlab(&site).stderr(refused).status(78);
    let fault = "/etc/rungate/policy.d: cannot be read: is a link to a directory that is not there [unreadable-file]\n";
    site.test().args(["policy", "check"]).stderr(&format!("{fault}rungate: 1 fault\n")).status(1);
    fs::create_dir_all(site.path("etc/share/policy.d")).expect("it is mounted");
    set_mode(&site.path("etc/share"), 0o755);
    set_mode(&site.path("etc/share/policy.d"), 0o755);
    matlab(&site).status(0);
}

/// Twelve faults are the administrator's business: whoever can mend none of them learns of one, and whom to
/// tell.
#[test]
fn a_user_is_told_one_fault_and_whom_to_tell() {
    needs_root!();
    let site = site();
    site.system_file(
        "policy.d/30-students.toml",
        "version = 1\n[[rule]]\nname = \"x\"\nacquire = [\"saets\"]\nlimt = 3\nwiat = \"1s\"\n",
    );
    let said = "
        rungate: matlab: not started: the policy has 3 faults, the first of them
        /etc/rungate/policy.d/30-students.toml:[..] [[..]]
        Tell your administrator: rungate policy check
        ";
    matlab(&site).user("games").stderr(said).status(78);
    matlab(&site)
        .user("root")
        .stderr("rungate: matlab: not started: the policy has 3 faults\n[..]\n  |\n...\n")
        .status(78);
    // In a policy of their own it is they who see all of it.
    site.write("work/own.toml", "[[rule]]\nlimt = 3\nwiat = \"1s\"\n");
    let own = site.path("work/own.toml");
    chown(&own, Some(Account::named("games").uid), None).expect("chown");
    std::fs::remove_file(site.path("etc/rungate/policy.d/30-students.toml")).expect("it was there");
    let check = site.test().user("games").args(["run", "--policy", "$DIR/work/own.toml", "--", "matlab"]);
    check.stderr("rungate: matlab: not started: the policy has [..] faults\n[..]\n  |\n...\n").status(78);
}

/// The time of a test is one of the policy's time zone, also in a file that is added to it and names none.
#[test]
fn a_test_of_an_added_policy_has_the_time_zone_of_the_whole() {
    needs_root!();
    let site = Site::new();
    site.system_policy(
        r#"
        version = 1
        defaults.time_zone = "Asia/Tokyo"

        [[rule]]
        name     = "not in the morning"
        commands = ["matlab"]
        when     = ["09:00-10:00"]
        action   = "deny"
        "#,
    );
    site.policy(
        r#"
        version = 1

        [[test]]
        name    = "in the morning"
        command = "matlab"
        time    = "2026-11-20 09:30"
        expect  = "refuse"
        by      = "not in the morning"
        "#,
    );
    site.test().args(["policy", "check"]).stdout("1 test passed\n").stderr("...").status(0);
}

/// What is not in force without being named has to be named to the check as well.
#[test]
fn a_policy_that_was_named_is_named_to_the_check() {
    let site = Site::new();
    site.program("matlab");
    site.write("mine.toml", "version = 1\nno = 1\n");
    let says = |words: &str| format!("...\nAfter you correct it, check it: rungate policy check {words}\n");
    for command in [
        &["run", "--policy", "$DIR/mine.toml", "--", "matlab"][..],
        &["status", "--policy", "$DIR/mine.toml"],
    ] {
        site.test().args(command).stderr(&says("--policy $DIR/mine.toml")).status(78);
    }
    for words in [&["--policy", "$DIR/mine.toml"][..], &["$DIR/mine.toml"]] {
        let check = site.test().args(["policy", "check"]).args(words);
        check.stderr("$DIR/mine.toml:2:1: unknown key \"no\"[..]\n...\nrungate: 1 fault\n").status(1);
    }
}
