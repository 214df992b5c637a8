//! Policies that others could have written, also in the moment between a check and the reading.

use std::{fs, os::unix::fs::chown};

use crate::support::{Account, Ending, Site, Test, needs_root, set_mode};

const LAX: &str = "version = 1\n";

const STRICT: &str = "version = 1\n[[rule]]\nname = \"nobody\"\naction = \"deny\"\n";

fn launch(site: &Site) -> Test {
    site.test().args(["run", "--policy", "$DIR/changing/policy.toml", "--", "true"])
}

/// Checked on the open descriptor, never by path twice: while two files change places all the time, one of
/// them the caller's and one somebody else's, what is judged is what was opened. What nobody else could have
/// written is obeyed; the other is refused; the text of the one is never read with the owner of the other.
#[test]
fn a_policy_that_changes_places_with_another() {
    needs_root!();
    let site = Site::new();
    fs::create_dir(site.path("changing")).expect("a directory");
    set_mode(&site.path("changing"), 0o1777);
    let games = Account::named("games");
    site.write("changing/policy.toml", STRICT);
    chown(site.path("changing/policy.toml"), Some(games.uid), Some(games.gid)).expect("chown");
    site.write("changing/other", LAX);
    chown(site.path("changing/other"), Some(Account::named("backup").uid), None).expect("chown");
    let swap = "cd \"$0\" && echo ready && while :; do mv -T policy.toml mine; mv -T other policy.toml; \
                mv -T policy.toml other; mv -T mine policy.toml; done";
    let mut swapping = site.test().program("/bin/sh").args(["-c", swap, "$DIR/changing"]).background();
    assert_eq!(swapping.read_line(), "ready\n");
    for _ in 0..40 {
        let outcome = launch(&site).user("games").outcome();
        assert_ne!(outcome.ending, Ending::Status(0), "the policy of somebody else was obeyed");
        let is_refused = matches!(outcome.ending, Ending::Status(77 | 78));
        assert!(is_refused, "{:?}: {}", outcome.ending, outcome.stderr);
    }
    drop(swapping);
}

/// In a user namespace the files of everybody whom it does not map seem to belong to one user, and its
/// creator can seem to be that user: then no owner says anything, and nothing is believed.
#[test]
fn a_policy_of_anybody_in_a_user_namespace() {
    needs_root!();
    let site = Site::new();
    fs::create_dir(site.path("changing")).expect("a directory");
    set_mode(&site.path("changing"), 0o1777);
    site.write("changing/policy.toml", LAX);
    chown(site.path("changing/policy.toml"), Some(Account::named("backup").uid), None).expect("chown");
    let said = "rungate: true: not started: the policy has 1 fault\n\
                /etc/rungate/policy.toml: cannot be trusted: /: belongs to a user who is not mapped into this user \
                namespace, and may be any user; start rungate outside of it [untrusted-file]\n...\n";
    for unshare in
        [&["unshare", "--user"][..], &["unshare", "--map-root-user"], &["unshare", "--map-current-user"]]
    {
        launch(&site).user("games").through(unshare).stderr(said).status(78);
    }
    // Where root is mapped, what is root's is believed.
    chown(site.path("changing/policy.toml"), Some(0), None).expect("chown");
    launch(&site).through(["unshare", "--map-root-user"]).status(0);
}

/// Policy files and every directory above them: a link on the way is not a way around that.
#[test]
fn a_link_to_a_policy_in_a_directory_of_somebody_else() {
    needs_root!();
    let site = Site::new();
    for directory in ["changing", "theirs"] {
        fs::create_dir(site.path(directory)).expect("a directory");
    }
    chown(site.path("theirs"), Some(Account::named("backup").uid), None).expect("chown");
    site.write("theirs/policy.toml", LAX);
    std::os::unix::fs::symlink(site.path("theirs/policy.toml"), site.path("changing/policy.toml"))
        .expect("a link");
    // The owner of a sticky directory can replace what is in it.
    for mode in [0o755, 0o1777] {
        set_mode(&site.path("theirs"), mode);
        launch(&site)
            .user("games")
            .stderr("rungate: true: not started: the policy has 1 fault\n[..] [untrusted-file]\n...\n")
            .status(78);
    }
}

/// What `RUNGATE_POLICY` names may be anything: it is read as a policy, or refused; never waited for.
#[test]
fn a_policy_that_is_no_file() {
    let site = Site::new();
    site.test().program("/usr/bin/mkfifo").args(["$DIR/work/fifo"]).status(0);
    for (path, what) in [
        ("/dev/zero", "is not a regular file, but a device"),
        ("$DIR/work/fifo", "is not a regular file, but a FIFO"),
        ("$DIR/work", "is not a regular file, but a directory"),
        ("/proc/self/mem", ""),
        ("", ""),
        ("relative", ""),
        ("/dev/stdin", ""),
    ] {
        let outcome = site.test().env("RUNGATE_POLICY", path).args(["run", "--", "true"]).outcome();
        assert_eq!(outcome.ending, Ending::Status(78), "{path:?}: {}", outcome.stderr);
        let is_told = outcome.stderr.starts_with("rungate: ") && outcome.stderr.contains(what);
        assert!(is_told, "{path:?}: {}", outcome.stderr);
    }
}
