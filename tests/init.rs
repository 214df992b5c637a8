//! `rungate init`: a newcomer's first minute. What is there already is never touched, and all of it is made or nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use crate::support::{Account, Ending, Site, needs_root, set_mode};

/// A site whose commands see an `/etc` and a `/run` of their own, without anything of rungate.
fn bare_system() -> Site {
    let site = Site::new();
    site.account("ann", &[]);
    site.directory_over_run();
    fs::remove_dir(site.path("system-run/rungate")).expect("an empty directory");
    for program in ["matlab", "clang-16.0"] {
        site.program(program);
    }
    site
}

#[track_caller]
fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o7777
}

/// Every path below a directory.
fn below(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(&next).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                todo.push(path.clone());
            }
            found.push(path.strip_prefix(directory).expect("it is below").display().to_string());
        }
    }
    found.sort();
    found
}

/// "As root: the system's policy, the directory of its repositories with mode 1777, their lock files, which belong to root, and
/// a file for systemd-tmpfiles."
#[test]
fn root_gets_the_systems_policy_and_all_that_it_needs() {
    needs_root!();
    let site = bare_system();
    let init = site.test().args(["init", "--limit", "2", "matlab", "clang-16.0"]);
    let before = (below(&site.path("etc")), below(&site.path("system-run")));
    init.clone()
        .args(["--dry-run"])
        .stdout(
            "
            would make /run/rungate/ (mode 1777)
            would make /run/rungate/matlab.lock (mode 0666)
            would make /run/rungate/clang-16.0.lock (mode 0666)
            would make /etc/tmpfiles.d/ (mode 0755)
            would make /etc/tmpfiles.d/rungate.conf (mode 0644)
            would make /etc/rungate/ (mode 0755)
            would make /etc/rungate/policy.toml (mode 0644)
            ",
        )
        .status(0);
    assert_eq!((below(&site.path("etc")), below(&site.path("system-run"))), before);

    let test = site.test().program("/bin/sh").args(["-c", "umask 0077; exec \"$0\" \"$@\""]);
    test.args([site.rungate().as_os_str()])
        .args(["init", "--limit", "2", "matlab", "clang-16.0"])
        .stdout(
            "
            made /run/rungate/ (mode 1777)
            made /run/rungate/matlab.lock (mode 0666)
            made /run/rungate/clang-16.0.lock (mode 0666)
            made /etc/tmpfiles.d/ (mode 0755)
            made /etc/tmpfiles.d/rungate.conf (mode 0644)
            made /etc/rungate/ (mode 0755)
            made /etc/rungate/policy.toml (mode 0644)
            Next: rungate run -- matlab, and edit /etc/rungate/policy.toml as you like; rungate policy check reads it.
            ",
        )
        .status(0);
    assert_eq!(mode(&site.path("system-run/rungate")), 0o1777);
    assert_eq!(mode(&site.path("system-run/rungate/matlab.lock")), 0o666);
    assert_eq!(mode(&site.path("etc/rungate/policy.toml")), 0o644);
    let entry = fs::read_to_string(site.path("etc/tmpfiles.d/rungate.conf")).expect("the entry");
    assert!(entry.ends_with("d /run/rungate 1777 root root -\nf /run/rungate/matlab.lock 0666 root root -\nf /run/rungate/clang-16.0.lock 0666 root root -\n"), "{entry}");
    assert!(below(&site.path("etc/rungate")) == ["policy.toml"], "nothing is left behind");

    // It holds for a user at once.
    site.test().args(["policy", "check", "--strict"]).status(0);
    let ann = site.test().user("ann").args(["run", "--", "matlab"]);
    let _holders = [ann.spawn(), ann.spawn()];
    assert_eq!(ann.outcome().ending, Ending::Status(75));
    let _other = site.test().user("ann").args(["run", "--", "clang-16.0"]).spawn();

    // Never again over it.
    init.stderr(
        "
        rungate: /etc/tmpfiles.d/rungate.conf is there already
        Nothing was made, and nothing was changed.
        ",
    )
    .status(71);
    fs::remove_file(site.path("etc/tmpfiles.d/rungate.conf")).expect("the entry");
    site.test()
        .args(["init"])
        .stderr("rungate: /etc/rungate/policy.toml is there already\nNothing was made, and nothing was changed.\n")
        .status(71);
    assert!(!site.path("etc/tmpfiles.d/rungate.conf").exists());
}

/// "Without a command the policy limits nothing, and shows how to."
#[test]
fn the_example_can_be_put_into_force() {
    let site = Site::new();
    let own = Account::own();
    site.program("ffmpeg");
    site.program("make");
    let text = include_str!("../src/commands/init/own.toml");
    let uncommented = |line: &str| match line.strip_prefix('#') {
        Some(code) if !code.starts_with([' ', ':']) => code.to_owned(),
        _ => line.to_owned(),
    };
    let example: Vec<String> = text.lines().map(uncommented).collect();
    for (text, limits) in [(text.to_owned(), false), (example.join("\n"), true)] {
        site.own_policy(&own, &text);
        site.test().args(["policy", "check", "--strict"]).status(0);
        assert_eq!(text.contains("\nlimit = 2"), limits);
    }
    let _holders = [0; 2].map(|_| site.test().args(["run", "--", "ffmpeg"]).spawn());
    assert_eq!(site.test().args(["run", "-n", "--", "ffmpeg"]).outcome().ending, Ending::Status(75));
}

/// "Anybody else gets a policy of his own."
#[test]
fn a_user_gets_a_policy_of_his_own() {
    needs_root!();
    let site = bare_system();
    let ann = site.test().user("ann").env_remove("RUNGATE_POLICY");
    let config =
        site.test().user("ann").program("/bin/sh").args(["-c", "echo $XDG_CONFIG_HOME"]).outcome().stdout;
    let config = Path::new(config.trim());
    ann.clone()
        .args(["init", "matlab"])
        .stdout(&format!(
            "
            made {config}/rungate/ (mode 0700)
            made {config}/rungate/policy.toml (mode 0644)
            Next: rungate run -- matlab, and edit {config}/rungate/policy.toml as you like; rungate policy check reads it.
            ",
            config = config.display()
        ))
        .status(0);
    ann.clone().args(["policy", "check", "--strict"]).status(0);
    let _holder = ann.clone().args(["run", "--", "matlab"]).spawn();
    assert_eq!(ann.clone().args(["run", "--", "matlab"]).outcome().ending, Ending::Status(75));
    ann.clone()
        .args(["init"])
        .stderr("rungate: [..]/rungate/policy.toml is there already\nNothing was made, and nothing was changed.\n")
        .status(71);
    // Below HOME, with a directory for it.
    let home = site.path("work/home");
    fs::create_dir(&home).expect("a home");
    let metadata = fs::metadata(config).expect("Ann's directory");
    chown(&home, Some(metadata.uid()), Some(metadata.gid())).expect("give it to Ann");
    let home = home.display().to_string();
    ann.clone()
        .env_remove("XDG_CONFIG_HOME")
        .env("HOME", &home)
        .args(["init", "--dry-run"])
        .stdout(&format!(
            "
            would make {home}/.config/ (mode 0700)
            would make {home}/.config/rungate/ (mode 0700)
            would make {home}/.config/rungate/policy.toml (mode 0644)
            "
        ))
        .status(0);
    ann.env_remove("XDG_CONFIG_HOME")
        .env("HOME", "/")
        .args(["init"])
        .stderr(
            "
            rungate: there is no place for a policy of yours
            It would be below XDG_CONFIG_HOME, or below HOME, in a directory that is yours.
            ",
        )
        .status(71);
}

/// "All of it is made, or nothing."
#[test]
fn what_stands_in_the_way_stops_everything() {
    needs_root!();
    let site = bare_system();
    let init = site.test().args(["init", "matlab"]);
    let untouched = |in_the_way: &str| {
        let outcome = init.outcome();
        assert_eq!(outcome.ending, Ending::Status(71), "{}", outcome.stderr);
        let expected = format!("rungate: {in_the_way}\nNothing was made");
        assert!(outcome.stderr.starts_with(&expected), "{}", outcome.stderr);
        assert!(!site.path("etc/rungate").exists() && !site.path("etc/tmpfiles.d").exists());
    };
    // A directory that is not as it must be.
    let directory = site.path("system-run/rungate");
    fs::create_dir(&directory).expect("a directory");
    set_mode(&directory, 0o755);
    untouched(
        "/run/rungate is there already, and is not a directory of root's with mode 1777: it is a directory of root (0) with mode 0755",
    );
    set_mode(&directory, 0o1777);
    // A lock file that a user was faster with.
    let lock = directory.join("matlab.lock");
    fs::write(&lock, "").expect("a file");
    set_mode(&lock, 0o666);
    let ann = Account::named("games");
    chown(&lock, Some(ann.uid), None).expect("give it away");
    untouched(
        "/run/rungate/matlab.lock is there already, and is not a file of root's with mode 0666: it is a regular file of games (5) with mode 0666",
    );
    fs::remove_file(&lock).expect("the file");
    // A step that fails undoes the others: /etc/rungate leads to a file system that cannot be written.
    symlink("/proc/rungate", site.path("etc/rungate")).expect("a link");
    let outcome = init.outcome();
    assert_eq!(outcome.ending, Ending::Status(71), "{}", outcome.stderr);
    assert_eq!(below(&site.path("system-run")), ["rungate"], "{}", outcome.stderr);
    assert!(!site.path("etc/tmpfiles.d").exists());
    fs::remove_file(site.path("etc/rungate")).expect("the link");
    symlink("/proc", site.path("etc/rungate")).expect("a link");
    let outcome = init.outcome();
    assert!(
        outcome.stderr.starts_with("rungate: /etc/rungate/policy.toml cannot be made: open: "),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.ends_with("\nNothing was made.\n"), "{}", outcome.stderr);
    assert_eq!(below(&site.path("system-run")), ["rungate"]);
    assert!(!site.path("etc/tmpfiles.d").exists());
}

#[test]
fn only_plain_names_can_be_limited_this_way() {
    let site = Site::new();
    site.test()
        .args(["init", "--dry-run", "a b"])
        .stderr(
            "
            rungate: \"a b\" is no plain name of a command
            Letters, digits, \".\", \"_\" and \"-\" are. A policy can do more: write it into the file.
            ",
        )
        .status(64);
    site.test().args(["init", "--limit", "3"]).stderr("rungate: [..]\n...\n").status(64);
}
