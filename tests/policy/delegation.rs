//! Delegation, tried by real users: a drop-in that belongs to the admin of a department reaches the people
//! and commands that the main file names, and nothing that its owner does to it is so much as noticed by
//! anybody else.

use std::{
    fs,
    io::Write,
    os::unix::fs::{chown, symlink},
    path::PathBuf,
};

use serde_json::Value;

use crate::support::{
    Ending, Running, Site, Test, Trace, eventually, needs_root, needs_strace, set_mode, unindent,
};

const SITE: &str = r#"
    [delegate."20-cad.toml"]
    owner    = "cadadm"
    users    = ["%cad"]
    commands = ["matlab"]

    [repository.matlab]
    limit = 4

    [[rule]]
    name     = "seats"
    commands = ["matlab"]
    acquire  = ["matlab"]
"#;

const ONE: &str = r#"
    version = 1

    [repository.matlab]
    limit = 1

    [[rule]]
    name    = "one for cad"
    acquire = ["matlab"]
"#;

/// A site with ann and art of cad, dan of nothing, and cadadm, to whom a drop-in with this text belongs.
fn site(text: &str) -> Site {
    let site = Site::new();
    site.system_policy(SITE);
    for (user, groups) in [("ann", &["cad"][..]), ("art", &["cad"]), ("dan", &[]), ("cadadm", &[])] {
        site.account(user, groups);
    }
    site.program("matlab");
    site.program("less");
    drop_in(&site, text);
    site
}

fn drop_in(site: &Site, text: &str) {
    let directory = site.path("etc/rungate/policy.d");
    fs::create_dir_all(&directory).expect("policy.d");
    set_mode(&directory, 0o755);
    let file = directory.join("20-cad.toml");
    if file.exists() {
        // Whoever waits may read it just now: it is never empty, and stays the same file of cadadm's.
        let text = site.expand(&unindent(text));
        let mut file = fs::OpenOptions::new().write(true).open(file).expect("the drop-in");
        file.write_all(text.as_bytes()).expect("the drop-in");
        file.set_len(text.len() as u64).expect("the drop-in");
        return;
    }
    site.system_file("policy.d/20-cad.toml", text);
    own(site, "etc/rungate/policy.d/20-cad.toml", "cadadm");
}

fn own(site: &Site, path: &str, user: &str) {
    chown(site.path(path), Some(site.user(user).uid), None).expect("chown");
}

fn matlab(site: &Site, user: &str) -> Test {
    site.test().user(user).args(["run", "--", "matlab"])
}

fn full(test: Test, use_of: &str) {
    test.stderr(&format!("rungate: matlab: not started: [..]\n  {use_of}\n...\n")).status(75);
}

/// Ann of cad is refused with this reason; nobody else notices, nor does she with another command.
#[track_caller]
fn stops_cad_alone(site: &Site, reason: &str) {
    matlab(site, "ann")
        .stderr(&format!("rungate: matlab: not started: the policy has [..]\n[..]{reason}[..]\n...\n"))
        .status(78);
    for (user, command) in [("dan", "matlab"), ("cadadm", "matlab"), ("root", "matlab"), ("ann", "less")] {
        site.test().user(user).args(["run", "--", command]).status(0);
    }
}

fn json(test: &Test) -> Value {
    let outcome = test.outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{outcome:?}");
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"))
}

/// cad defines `matlab`: it is cad's, the site's stays.
#[test]
fn a_department_limits_its_own_people_and_nobody_else() {
    needs_root!();
    let site = site(ONE);
    let ann = matlab(&site, "ann").spawn();
    assert_eq!(site.held_numbers("matlab.lock"), [1]);
    assert_eq!(site.held_numbers("@20-cad/matlab.lock"), [1]);
    full(matlab(&site, "art"), "matlab (20-cad.toml)  1 of 1 used");
    // The others have the seats of the site, all that are left.
    let others: Vec<Running> = (0..3).map(|_| matlab(&site, "dan").spawn()).collect();
    full(matlab(&site, "dan"), "matlab  4 of 4 used");
    drop(others);
    drop(ann);
    matlab(&site, "art").status(0);
    // What it says of a command that is not delegated to it is said to nobody.
    site.test().user("ann").args(["run", "--", "less"]).status(0);
}

/// Programs find their slots by the names of the site's repositories, whatever a department calls its own.
#[test]
fn a_department_renames_nothing_of_the_site() {
    needs_root!();
    let site = site(ONE);
    site.system_policy(&SITE.replace("limit = 4", "names = [\"left\", \"right\"]"));
    site.script("matlab", "#!/bin/sh\necho \"$RUNGATE_NAME_MATLAB $RUNGATE_HELD\"\n");
    for user in ["dan", "ann"] {
        let outcome = matlab(&site, user).outcome();
        let (seat, held) = outcome.stdout.split_once(' ').expect("two words");
        assert!(["left", "right"].contains(&seat) && held.starts_with("matlab="), "{outcome:?}");
    }
}

/// Of others' repositories it may only lower what its people may use, which makes no claim: and who waits
/// below a lower ceiling is in nobody's way.
#[test]
fn a_department_lowers_what_its_people_may_use() {
    needs_root!();
    let site = site(
        "
        [[rule]]
        name    = \"leave three\"
        acquire = [{ repository = \"matlab\", ceiling = 1 }]
        ",
    );
    let ann = matlab(&site, "ann").spawn();
    let waiter = site.test().user("art").args(["run", "-wforever", "--", "matlab"]).background();
    site.stands_in_line("matlab.lock", &waiter);
    // Art is first in the site's line, and three seats are for others.
    let dan: Vec<Running> = (0..3).map(|_| matlab(&site, "dan").spawn()).collect();
    full(matlab(&site, "dan"), "matlab  4 of 4 used, 1 waiting");
    assert!(!site.repository("@20-cad").exists());
    drop(dan);
    drop(ann);
    eventually("art's turn", || (site.held_numbers("matlab.lock") == [1]).then_some(()));
    drop(waiter);
}

/// It may only lower: a ceiling above the site's is not one.
#[test]
fn a_department_raises_nothing() {
    needs_root!();
    let ceiling =
        |number: u32| format!("[[rule]]\nacquire = [{{ repository = \"matlab\", ceiling = {number} }}]\n");
    let site = site(&ceiling(3));
    let of_the_site = ceiling(1).replace("acquire", "commands = [\"matlab\"]\ngroups = [\"cad\"]\nacquire");
    site.system_policy(&format!("{SITE}\n{of_the_site}"));
    let _ann = matlab(&site, "ann").spawn();
    full(matlab(&site, "art"), "matlab  1 of 1 used\n      only up to 1 of 4 for this rule; [..]");
    // Dan is not one of them, and shows that there is room.
    matlab(&site, "dan").status(0);
}

/// A look-up that *fails* refuses the launch (71): it never turns into 'no limit', also where it would say
/// whether a delegated file is for the caller.
#[test]
fn nobody_escapes_the_department_because_a_group_cannot_be_looked_up() {
    needs_root!();
    let site = site(ONE);
    site.write("etc/nsswitch.conf", "passwd: files\ngroup: files\n");
    matlab(&site, "ann").status(0);
    set_mode(&site.path("etc/group"), 0o600);
    matlab(&site, "ann")
        .stderr("rungate: matlab: not started: [..]\n[..]cad[..]Permission denied\n...\n")
        .status(71);
}

/// Its faults refuse its scope (78) and nobody else.
#[test]
fn a_mistake_stops_its_own_people_alone() {
    needs_root!();
    let site = site("[[rule]\nname =\n");
    stops_cad_alone(&site, "20-cad.toml:1:");
    matlab(&site, "ann")
        .stderr("...\nTell cadadm [..], or your administrator: rungate policy check\n")
        .status(78);
    // Whoever looks is told, and sees the rest; who is of cad is told why nothing starts.
    let note = "rungate: 20-cad.toml has faults, so its rules are not shown, and launches that it applies \
        to are refused\n  /etc/rungate/policy.d/20-cad.toml:1:[..]\nTell cadadm, or your administrator: rungate policy check\n";
    for user in ["dan", "ann"] {
        site.test().user(user).args(["status"]).stdout("...\nmatlab [..]\n").stderr(note).status(0);
    }
    let explain = |user| site.test().user(user).args(["explain", "--", "matlab"]);
    explain("dan").stdout("...\nnow[gap]starts\n...\n").stderr(note).status(0);
    explain("ann").stderr(&format!("{note}rungate: the policy has [..]\n...\n")).status(78);
    let checked = site.test().user("cadadm").args(["policy", "check"]).outcome();
    assert_eq!(checked.ending, Ending::Status(1));
    assert!(checked.stderr.contains("20-cad.toml:1:"), "{}", checked.stderr);
    for fault in [
        "[defaults]\nwait = \"1h\"\n",
        "[[rule]]\nacquire = [\"matlab\"]\n",
        "[[rule]]\naction = \"exempt\"\n",
    ] {
        drop_in(&site, fault);
        stops_cad_alone(&site, "20-cad.toml:");
    }
}

/// A drop-in is a link of root's to a file in a directory of cadadm's, who does with it what a user can do.
#[test]
fn whatever_the_owner_makes_of_the_file_stops_its_own_people_alone() {
    needs_root!();
    let site = site(ONE);
    let home = site.path("cadadm");
    fs::create_dir(&home).expect("a home");
    set_mode(&home, 0o755);
    own(&site, "cadadm", "cadadm");
    let link = site.path("etc/rungate/policy.d/20-cad.toml");
    fs::remove_file(&link).expect("the drop-in");
    symlink(home.join("rungate.toml"), link).expect("a link");
    site.write("work/dans.toml", "version = 1\n");
    own(&site, "work/dans.toml", "dan");
    for (what, reason) in [
        ("true", "there is no such file"),
        ("mkfifo rungate.toml", "is not a regular file"),
        ("mkdir rungate.toml", "is not a regular file"),
        ("ln -s /dev/zero rungate.toml", "is not a regular file"),
        ("ln -s rungate.toml rungate.toml", "too many symbolic links"),
        ("truncate -s 1G rungate.toml", "is longer than 8 MiB"),
        ("yes '[[rule]]' | head -c 12M > rungate.toml", "is longer than 8 MiB"),
        ("yes '[[rule]]' | head -c 300K > rungate.toml", "is longer than 256 KiB"),
        ("touch rungate.toml; chmod 0 rungate.toml", "open: Permission denied"),
        ("touch rungate.toml; chmod 666 rungate.toml", "all users can write to it"),
        ("ln -s $DIR/work/dans.toml rungate.toml", "belongs to dan [..]; it is delegated to cadadm"),
        ("ln -s /etc/passwd rungate.toml", "20-cad.toml:1:"),
        ("printf '\\377' > rungate.toml", "is not UTF-8"),
        ("ln -s /proc/self/environ rungate.toml", "it is delegated to cadadm"),
        ("chmod 777 .; touch rungate.toml", "all users can write to it"),
    ] {
        let line = site.expand(&format!("rm -rf rungate.toml; chmod 755 .; {what}"));
        site.test().user("cadadm").program("/bin/sh").directory("cadadm").args(["-c", &line]).status(0);
        stops_cad_alone(&site, reason);
    }
    // What is not a fault is read: a hard link to a file of theirs, and a link to what root has written.
    for good in ["cp $DIR/one.toml x; ln x rungate.toml", "ln -s $DIR/one.toml rungate.toml"] {
        site.write("one.toml", ONE);
        let line = site.expand(&format!("rm -rf rungate.toml x; chmod 755 .; {good}"));
        site.test().user("cadadm").program("/bin/sh").directory("cadadm").args(["-c", &line]).status(0);
        let ann = matlab(&site, "ann").spawn();
        full(matlab(&site, "art"), "matlab (20-cad.toml)  1 of 1 used");
        drop(ann);
    }
}

/// "While there is no file of that name, the delegation has no effect."
#[test]
fn a_delegated_file_that_is_not_there_stops_no_launch() {
    needs_root!();
    let site = site(ONE);
    let ann = matlab(&site, "ann").spawn();
    full(matlab(&site, "art"), "matlab (20-cad.toml)  1 of 1 used");
    fs::remove_file(site.path("etc/rungate/policy.d/20-cad.toml")).expect("the drop-in");
    let art = matlab(&site, "art").spawn();
    drop((ann, art));
    symlink(site.path("nowhere.toml"), site.path("etc/rungate/policy.d/20-cad.toml")).expect("a link");
    stops_cad_alone(&site, "there is no such file");
}

/// The file of somebody else, in the place of the delegated one, is as little believed as without a
/// delegation.
#[test]
fn nobody_else_can_own_the_file() {
    needs_root!();
    let site = site(ONE);
    own(&site, "etc/rungate/policy.d/20-cad.toml", "ann");
    stops_cad_alone(&site, "belongs to ann [..]; it is delegated to cadadm");
    own(&site, "etc/rungate/policy.d/20-cad.toml", "root");
    matlab(&site, "ann").status(0);
    // Without a delegation it stops everybody, as ever.
    own(&site, "etc/rungate/policy.d/20-cad.toml", "cadadm");
    site.system_policy(&SITE.replace("20-cad.toml", "30-cad.toml"));
    matlab(&site, "dan").stderr("...\n[..]drop-ins of the system belong to root[..]\n...\n").status(78);
}

/// Replaces it in the middle of a launch: who stands first in the site's line and can no longer be judged
/// is out of it, and in nobody's way.
#[test]
fn a_file_that_breaks_while_its_people_wait_holds_up_nobody() {
    needs_root!();
    let site = site("version = 1\n");
    let seats: Vec<Running> = (0..4).map(|_| matlab(&site, "dan").spawn()).collect();
    let wait = |user| site.test().user(user).args(["run", "-wforever", "--", "matlab"]).background();
    let mut ann = wait("ann");
    site.stands_in_line("matlab.lock", &ann);
    let mut dan = wait("dan");
    site.stands_in_line("matlab.lock", &dan);
    // A change that is none of dan's business lets ann stand where she is.
    drop_in(&site, ONE);
    eventually("ann has read it", || site.repository("@20-cad/matlab.lock").exists().then_some(()));
    // As ann moves, the lock on which dan slept is dan's for a moment.
    let both = [ann.pid(), dan.pid()];
    eventually("ann stands before dan as ever, and nobody else does", || {
        let line = site.line("matlab.lock");
        line.iter().map(|waiter| waiter.pid).eq(both).then_some(())
    });
    drop_in(&site, "broken");
    let ended = ann.end();
    assert_eq!(ended.ending, Ending::Status(78), "{ended:?}");
    assert!(ended.stderr.contains("20-cad.toml:1:"), "{}", ended.stderr);
    drop(seats);
    // Whichever slot it is: under load another one may be the first that is free.
    eventually("dan's turn", || {
        assert!(!dan.is_zombie(), "{:?}", dan.end());
        (site.held_numbers("matlab.lock").len() == 1).then_some(())
    });
    assert!(dan.answers());
}

/// The launches of others cost what they did: with thousands of rules in it, not one call more, and none is
/// about the file.
#[test]
fn nobody_else_so_much_as_opens_the_file() {
    needs_root!();
    needs_strace!();
    let calls = |site: &Site, user: &str, command: &str| -> Vec<String> {
        let test = site.test().user(user).args(["run", "--", command]).stdin("");
        let (mut running, trace) = Trace::begin(&test, "all", &[]);
        running.close_stdin();
        assert_eq!(running.end().ending, Ending::Status(0));
        let text = |call: crate::support::Call| call.text;
        eventually("the record of the end", || {
            let calls: Vec<String> = trace.calls().into_iter().map(text).collect();
            calls.last().is_some_and(|last| last.contains("exit_group")).then_some(calls)
        })
    };
    let rules: String = (0..3_000).map(|n| format!("[[rule]]\nname = \"{n}\"\nacquire = []\n")).collect();
    let (small, large) = (site("version = 1\n"), site(&format!("version = 1\n{rules}")));
    for (user, command) in [("dan", "matlab"), ("ann", "less")] {
        let [small, large] = [&small, &large].map(|site| calls(site, user, command));
        assert!(small.iter().any(|call| call.contains("policy.toml")), "{small:?}");
        assert!(!large.iter().any(|call| call.contains("20-cad.toml")), "{large:?}");
        assert_eq!(small.len(), large.len(), "{user} pays for what is not for them");
    }
    // The watcher would have seen it.
    assert!(calls(&large, "ann", "matlab").iter().any(|call| call.contains("20-cad.toml")));
}

/// Every output tells whose the rules and repositories of a delegated file are.
#[test]
fn every_output_knows_what_is_delegated() {
    needs_root!();
    let site = site(ONE);
    let _ann = matlab(&site, "ann").spawn();
    let explain = |user: &str| site.test().user(user).args(["explain", "--", "matlab"]);
    explain("dan")
        .stdout(
            "
            ...
            seats[gap]policy.toml:[..][gap]counts
            one for cad[gap]policy.d/20-cad.toml:6[gap]no: delegated for %cad
            ...
            now[gap]starts
            ...
            ",
        )
        .status(0);
    explain("art")
        .stdout("...\none for cad[gap][..][gap]counts\n...\nnow[gap]refused, status 75[..]\n...\n")
        .status(0);
    let explained = json(&site.test().user("dan").args(["explain", "--json", "--", "matlab"]));
    assert_eq!(explained["rules"][1]["result"], "no: delegated for %cad");
    assert_eq!(explained["rules"][1]["matches"], false);
    site.test().args(["status"]).stdout("...\nmatlab (20-cad.toml)[gap]1[gap]1[gap]0[..]\n").status(0);
    site.test()
        .args(["list", "matlab (20-cad.toml)"])
        .stdout("matlab (20-cad.toml): 1 of 1 used\n...\n")
        .status(0);
    let metrics = site.test().args(["metrics"]).outcome().stdout;
    assert!(metrics.contains("matlab (20-cad.toml)"), "{metrics}");
    let shown = site.test().args(["policy", "show"]).outcome().stdout;
    let (_, delegated) = shown.split_once("# 20-cad.toml, delegated to cadadm\n").expect("a part of its own");
    let (main, _) = shown.split_once("\n# 20-cad.toml").expect("the system's");
    assert!(main.contains("[delegate.\"20-cad.toml\"]") && main.contains("\"%cad\""), "{main}");
    // What is printed is read again as the same.
    site.system_file("policy.toml", main);
    drop_in(&site, delegated);
    full(matlab(&site, "art"), "matlab (20-cad.toml)  1 of 1 used");
    explain("dan").stdout("...\none for cad[gap][..][gap]no: delegated for %cad\n...\n").status(0);
    // And files that are named are judged as what they are.
    let files: [PathBuf; 2] =
        ["policy.toml", "policy.d/20-cad.toml"].map(|file| site.path("etc/rungate").join(file));
    site.test().user("cadadm").args(["policy", "check"]).args(&files).status(0);
}

/// Nothing beyond it: a department's launches cannot be brought to use a directory that another user has
/// prepared, and neither its file nor a placeholder leads elsewhere.
#[test]
fn a_directory_that_somebody_else_has_prepared_is_not_used() {
    needs_root!();
    for trap in ["mkdir @20-cad", "mkdir -m 777 @20-cad", "ln -s /tmp @20-cad"] {
        let site = site(ONE);
        site.test().user("dan").program("/bin/sh").directory("repositories").args(["-c", trap]).status(0);
        matlab(&site, "ann").stderr("rungate: [..]@20-cad[..]\n...\n").status(74);
        matlab(&site, "dan").status(0);
    }
}

/// Somebody of the department who names its file as a policy too adds it, as any other file.
#[test]
fn a_delegated_file_can_be_named_too() {
    needs_root!();
    let site = site(ONE);
    own(&site, "etc/rungate/policy.d/20-cad.toml", "root");
    let named = ["--policy", "/etc/rungate/policy.d/20-cad.toml"];
    for user in ["ann", "dan"] {
        let test = |command| site.test().user(user).args([command]).args(named).args(["--", "matlab"]);
        test("explain").stdout("...\nnow[gap]starts\n...\n").status(0);
        let running = test("run").spawn();
        let explained = test("explain").outcome().stdout;
        assert!(!explained.contains("starts"), "{user}: {explained}");
        test("run").stderr("rungate: matlab: not started: [..]\n...\n").status(75);
        drop(running);
    }
}
