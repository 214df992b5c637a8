//! `rungate prune`: removes lock files of members that have no use any more, as rungate-prune(1) says.

use std::fs::{self, File, hard_link};
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use crate::support::{Ending, Running, Site, Test, eventually, needs_root};

const POLICY: &str = r#"
    [repository.job]
    path  = "{arg1}.lock"
    limit = 1
    wait  = "forever"

    [repository.paced]
    path       = "paced/{arg1}.lock"
    limit      = 1
    if_elapsed = "30d"

    [repository.seats]
    path  = "seats/all.lock"
    limit = 5

    [[rule]]
    name     = "jobs"
    commands = ["job"]
    acquire  = ["job"]

    [[rule]]
    name     = "paced jobs"
    commands = ["paced"]
    acquire  = ["paced"]

    [[rule]]
    name     = "seats"
    commands = ["cat"]
    acquire  = ["seats"]
    "#;

fn site() -> Site {
    let site = Site::with_policy(POLICY);
    site.script("job", "cat\n");
    site.script("paced", "true\n");
    site
}

/// As if the file had not been changed for a little more than a day.
fn age(site: &Site, repository: &str) {
    let Ok(file) = File::options().append(true).open(site.repository(repository)) else { return };
    let then = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
    file.set_modified(then).expect("the time of a file of our own");
}

fn run(site: &Site, words: &[&str]) {
    assert_eq!(start(site, words).outcome().ending, Ending::Status(0));
}

fn start(site: &Site, words: &[&str]) -> Test {
    site.test().args(["run", "--"]).args(words)
}

fn is_there(site: &Site, repository: &str) -> bool {
    site.repository(repository).exists()
}

/// What is not held, not waited for, not remembered and not new is removed, and nothing else.
#[test]
fn what_has_no_use_any_more_is_removed() {
    let site = site();
    for name in ["old", "new", "held"] {
        run(&site, &["job", name]);
    }
    run(&site, &["paced", "x"]);
    run(&site, &["cat"]);
    fs::write(site.repository("notes.lock"), "not a lock file of rungate's").expect("a file");
    let holder = start(&site, &["job", "held"]).spawn();
    for name in ["old.lock", "held.lock", "paced/x.lock", "seats/all.lock", "notes.lock"] {
        age(&site, name);
    }
    let would = "would remove $DIR/repositories/old.lock\n";
    site.test().args(["prune", "--dry-run"]).stdout(would).status(0);
    assert!(is_there(&site, "old.lock"));
    let removed = "removed 1 of 4 lock files; the others are in use, or were used lately\n";
    site.test().args(["prune"]).stdout(removed).status(0);
    assert!(!is_there(&site, "old.lock"));
    for name in ["new.lock", "held.lock", "paced/x.lock", "seats/all.lock", "notes.lock"] {
        assert!(is_there(&site, name), "{name}");
    }
    site.test().args(["prune"]).status(0);
    drop(holder);
    site.test().args(["reset", "paced [x]"]).status(0);
    age(&site, "paced/x.lock");
    site.test()
        .args(["prune", "paced"])
        .stdout("removed 1 of 1 lock files; the others are in use, or were used lately\n")
        .status(0);
    let stderr = "rungate: seats: its lock file is never removed: it has no members\n";
    site.test().args(["prune", "seats"]).stderr(stderr).status(64);
}

/// The lock file of another layer stays, although the pattern of a user's own policy matches it.
#[test]
fn the_file_of_another_layer_stays() {
    needs_root!();
    let site = Site::new();
    site.system_policy(POLICY);
    let own = r#"
        version = 1
        defaults.directory = "$DIR/repositories"

        [repository.own]
        path  = "seats/{arg1}.lock"
        limit = 1

        [[rule]]
        name     = "own"
        commands = ["own"]
        acquire  = ["own"]
        "#;
    site.write("own.toml", own);
    site.script("own", "true\n");
    run(&site, &["cat"]);
    let prune = || site.test().args(["prune", "--policy", "$DIR/own.toml"]);
    start(&site, &["own", "x"]).env("RUNGATE_POLICY", "$DIR/own.toml").status(0);
    for name in ["seats/all.lock", "seats/x.lock"] {
        age(&site, name);
    }
    prune().stdout("removed 1 of 1 lock files; [..]\n").status(0);
    assert!(is_there(&site, "seats/all.lock") && !is_there(&site, "seats/x.lock"));
}

/// A launch that looks for slots has the mutex, and nothing else yet.
#[test]
fn what_is_looked_at_stays() {
    let site = site();
    run(&site, &["job", "x"]);
    let mutex = site.holder("x.lock", ["posix", "write", "0:8"]);
    age(&site, "x.lock");
    site.test().args(["prune"]).stdout("").status(0);
    assert!(is_there(&site, "x.lock"));
    drop(mutex);
    site.test().args(["prune"]).stdout("removed 1 of 1 lock files; [..]\n").status(0);
}

/// Any user can put a link or a FIFO where a lock file may be. It is no error, so that the service that prunes reports
/// only what an administrator can correct.
#[test]
fn what_is_no_lock_file_stays_and_is_no_error() {
    let site = site();
    run(&site, &["job", "old"]);
    age(&site, "old.lock");
    symlink("/x", site.repository("link.lock")).expect("a link");
    hard_link(site.repository("old.lock"), site.path("work/other-name")).expect("a second name");
    site.test().program("/usr/bin/mkfifo").args(["$DIR/repositories/fifo.lock"]).status(0);
    site.test().args(["prune"]).stdout("").stderr("").status(0);
    for name in ["old.lock", "fifo.lock"] {
        assert!(is_there(&site, name), "{name}");
    }
    assert!(site.repository("link.lock").is_symlink());
    // Without the second name it is a lock file.
    fs::remove_file(site.path("work/other-name")).expect("the second name");
    site.test().args(["prune"]).stdout("removed 1 of 1 lock files; [..]\n").stderr("").status(0);
}

/// A launch that waits keeps the file.
#[test]
fn what_is_waited_for_stays() {
    let site = site();
    let holder = start(&site, &["job", "x"]).spawn();
    let waiter = start(&site, &["job", "x"]).background();
    site.stands_in_line("x.lock", &waiter);
    age(&site, "x.lock");
    site.test().args(["prune"]).status(0);
    assert!(is_there(&site, "x.lock"));
    drop((holder, waiter));
}

/// A launch that comes at the same moment starts over with a new file: never one too many. Each job makes its file old
/// before it ends, so that the next prune finds it so; launches go on until files were removed among them. They pause
/// for a moment: a file that one of them has, or waits for, is removed by nobody.
#[test]
fn storm_of_launches_beside_prune() {
    let site = site();
    let work = site.path("work");
    let (work, lock) = (work.display(), site.repository("x.lock"));
    site.script(
        "job",
        &format!(
            "mkdir {work}/in 2>/dev/null || echo two >>{work}/bad\n\
             touch -c -d '2 days ago' {}\nrmdir {work}/in\n",
            lock.display()
        ),
    );
    let launcher = site.rungate().display();
    let loops = format!("until [ -e {work}/over ]; do {launcher} run -q -- job x || exit; sleep 0.2; done");
    let all: Vec<Running> =
        (0..2).map(|_| site.test().program("/bin/sh").args(["-c", &loops]).background()).collect();
    let mut removed = 0;
    eventually("files were removed while launches came", || {
        let outcome = site.test().args(["prune"]).outcome();
        assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(0), ""));
        removed += usize::from(!outcome.stdout.is_empty());
        (removed >= 4).then_some(())
    });
    site.write("work/over", "");
    for mut one in all {
        assert_eq!(one.end().ending, Ending::Status(0));
    }
    assert!(!site.path("work/bad").exists(), "two jobs ran at once");
}
