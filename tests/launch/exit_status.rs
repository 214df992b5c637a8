//! rungate's own statuses, each of them, and the command's own.

use std::fs;

use crate::support::{Site, Test, needs_root, set_mode};

const POLICY: &str = r#"
    [repository.seats]
    limit = 1

    [[rule]]
    name     = "one seat"
    commands = ["matlab", "missing", "script"]
    acquire  = ["seats"]

    [[rule]]
    name     = "nobody"
    commands = ["virtuoso"]
    action   = "deny"
"#;

fn site() -> Site {
    let site = Site::with_policy(POLICY);
    for name in ["matlab", "virtuoso"] {
        site.program(name);
    }
    site
}

/// The command's own: it was started.
#[test]
pub(crate) fn the_commands_own() {
    let site = site();
    site.script("script", "#!/bin/sh\nexit $1\n");
    for status in [0, 1, 64, 75, 126, 127, 255] {
        site.test().args(["run", "--", "script", &status.to_string()]).status(status);
    }
    site.script("script", "#!/bin/sh\nkill -$1 $$\n");
    for signal in [6, 9, 13, 15] {
        site.test().args(["run", "--", "script", &signal.to_string()]).killed_by(signal);
    }
}

/// "64: usage".
#[test]
pub(crate) fn usage() {
    let site = site();
    for words in [
        vec!["run"],
        vec!["run", "--"],
        vec!["run", "--no-such-option", "--", "matlab"],
        vec!["run", "--limit", "many", "--", "matlab"],
        vec!["run", "--limit", "-1", "--", "matlab"],
        vec!["run", "--repository", "$DIR/repositories/seats", "--", "matlab"],
        vec!["run", "--slots", "2", "--", "matlab"],
        vec!["run", "-E", "256", "--", "matlab"],
        vec!["no-such-command"],
        vec![],
    ] {
        site.test().args(words).stderr("...\n").status(64);
    }
    // A number below zero is one that is wrong, and no option.
    for option in ["--limit", "--slots"] {
        let said = format!("rungate: invalid value '-1' for '{option} <[..]>': -1 is not in [..]\n...\n");
        site.test().args(["run", option, "-1", "--", "matlab"]).stderr(&said).status(64);
    }
}

/// 74: a repository cannot be opened, created, locked or trusted.
#[test]
pub(crate) fn repository() {
    let site = site();
    std::fs::create_dir(site.repository("seats.lock")).expect("a directory");
    site.test().args(["run", "--", "matlab"]).stderr("rungate: [..]\n...\n").status(74);
}

/// 75: a cap is reached and there was no wait (`-E` changes this).
#[test]
pub(crate) fn full() {
    let site = site();
    let matlab = site.test().args(["run"]);
    let _running = matlab.clone().args(["--", "matlab"]).spawn();
    let refused = "rungate: matlab: not started: [..]\n...\n";
    matlab.clone().args(["--", "matlab"]).stderr(refused).status(75);
    matlab.clone().args(["-n", "--", "matlab"]).stderr(refused).status(75);
    matlab.clone().args(["-E", "7", "--", "matlab"]).stderr(refused).status(7);
    matlab.clone().args(["--conflict-exit-code=0", "--", "matlab"]).stderr(refused).status(0);
}

/// 77: refused by a `deny` rule or `unmatched = "refuse"`. `-E` is about caps, and changes nothing here.
#[test]
pub(crate) fn denied() {
    let site = site();
    site.test().args(["run", "--", "virtuoso"]).stderr("rungate: virtuoso: refused: [..]\n...\n").status(77);
    site.test()
        .args(["run", "-E", "7", "--", "virtuoso"])
        .stderr("rungate: virtuoso: refused: [..]\n...\n")
        .status(77);
    site.policy("version = 1\ndefaults.unmatched = \"refuse\"\n");
    site.test().args(["run", "--", "matlab"]).stderr("rungate: matlab: refused: [..]\n...\n").status(77);
}

/// 78: the policy is faulty or not trusted, or the claim can never be available.
#[test]
pub(crate) fn policy() {
    let site = site();
    site.policy(&POLICY.replace("limit = 1", "limits = 1"));
    let faulty = "rungate: [..]: not started: the policy has 1 fault\n...\n";
    site.test().args(["run", "--", "matlab"]).stderr(faulty).status(78);
    // Not even what no rule names is started by a policy that cannot be read.
    site.test().args(["run", "--", "true"]).stderr(faulty).status(78);
}

/// 126, 127: found but cannot be executed; not found.
#[test]
pub(crate) fn not_executable_and_not_found() {
    let site = site();
    site.test()
        .args(["run", "--", "missing"])
        .stderr("rungate: missing: [..]not found[..]\n...\n")
        .status(127);
    site.test().args(["run", "--", "$DIR/bin/missing"]).stderr("rungate: [..]missing[..]\n...\n").status(127);
    site.write("bin/script", "no program\n");
    site.test()
        .args(["run", "--", "$DIR/bin/script"])
        .stderr("rungate: [..]Permission denied[..]\n...\n")
        .status(126);
    site.write("bin/no-program", "no program\n");
    let found = "rungate: $DIR/bin/no-program: cannot be executed: Permission denied\n...\n";
    site.test().args(["run", "--", "no-program"]).stderr(found).status(126);
    site.test().args(["run", "--", "$DIR/bin"]).stderr("rungate: [..]\n...\n").status(126);
    assert_eq!(site.held("seats.lock"), []);
}

/// An empty name is in no directory of `PATH`: it would be the directory itself.
#[test]
fn an_empty_name_is_not_found() {
    site().test().args(["run", "--", ""]).stderr("rungate: [..]not found in PATH ([..])\n...\n").status(127);
}

/// Where a directory of `PATH` is somebody else's the status is that of execvp, and no file is named that
/// nobody has seen.
#[test]
fn not_found_where_a_directory_cannot_be_looked_into() {
    needs_root!();
    let site = site();
    site.account("ann", &[]);
    fs::create_dir(site.path("private")).expect("a directory");
    set_mode(&site.path("private"), 0o700);
    let run = |command| {
        let test = site.test().user("ann").env("PATH", "$DIR/private:$DIR/bin:/usr/bin");
        test.args(["run", "--", command])
    };
    run("missing")
        .stderr(
            "rungate: missing: not found in PATH; $DIR/private in it cannot be searched: Permission denied\n",
        )
        .status(126);
    run("true").status(0);
    run("$DIR/private/missing")
        .stderr("rungate: $DIR/private/missing: cannot be executed: [..]\n")
        .status(126);
}

/// 71: a system call or a look-up of a user or group failed. And: A look-up that *fails* refuses the
/// launch (71): it never turns into 'no limit'.
#[test]
pub(crate) fn a_group_lookup_that_fails() {
    needs_root!();
    let site = Site::new();
    site.system_policy(
        r#"
        [repository.seats]
        limit = 1

        [[rule]]
        name     = "students"
        commands = ["matlab"]
        groups   = ["students"]
        acquire  = ["seats"]
        "#,
    );
    site.program("matlab");
    let matlab = site.test().user("games").groups(["users"]).args(["run", "--", "matlab"]);
    let refused = matlab.clone().stderr(
        "rungate: matlab: not started: [..]\n[..]getgrnam[..]students[..]Permission denied\n\
        [..]students[..]/etc/rungate/policy.toml:[..]\n...\n",
    );
    // With one source of names, whose failure nobody can make up for; and with one behind it that answers in
    // any case, which is how most systems are set up.
    for sources in ["files", "files systemd"] {
        site.write("etc/nsswitch.conf", &format!("passwd: {sources}\ngroup: {sources}\n"));
        // A group that does not exist has no members; one that cannot be looked up may have.
        set_mode(&site.path("etc/group"), 0o644);
        matlab.status(0);
        set_mode(&site.path("etc/group"), 0o600);
        refused.status(71);
    }
}

/// The same for the caller's own name, where a later source of names has the last word.
#[test]
pub(crate) fn a_user_lookup_that_fails() {
    needs_root!();
    let site = Site::new();
    site.system_policy(
        r#"
        [repository.seats]
        limit = 1

        [[rule]]
        name     = "games"
        commands = ["matlab"]
        users    = ["games"]
        acquire  = ["seats"]
        "#,
    );
    site.program("matlab");
    let matlab = site.test().user("games").args(["run", "--", "matlab"]);
    for sources in ["files", "files systemd"] {
        site.write("etc/nsswitch.conf", &format!("passwd: {sources}\ngroup: {sources}\n"));
        set_mode(&site.path("etc/passwd"), 0o644);
        matlab.status(0);
        set_mode(&site.path("etc/passwd"), 0o600);
        matlab
            .clone()
            .stderr("rungate: matlab: not started: [..]\n[..]getpw[..]Permission denied\n...\n")
            .status(71);
    }
}

/// It refuses to run set-user-id or set-group-id.
#[test]
pub(crate) fn set_user_id() {
    needs_root!();
    let site = site();
    for mode in ["4755", "2755"] {
        site.test()
            .program("/usr/bin/install")
            .args(["-m", mode])
            .args([site.rungate(), &site.path("bin/copy")])
            .status(0);
        site.test()
            .program(site.path("bin/copy"))
            .user("games")
            .args(["run", "--", "matlab"])
            .stderr("rungate: rungate is installed set-user-id or set-group-id, and refuses to run\n...\n")
            .status(78);
        // Nor by the other name: whatever it starts would have the rights.
        site.test()
            .program("/usr/bin/install")
            .args(["-m", mode])
            .args([site.rungate(), &site.path("bin/exectimes")])
            .status(0);
        site.test()
            .program(site.path("bin/exectimes"))
            .user("games")
            .args(["$DIR/repositories/other.lock", "1", "id"])
            .stderr("rungate: rungate is installed set-user-id or set-group-id, and refuses to run\n...\n")
            .status(78);
    }
    assert_eq!(site.held("seats.lock"), []);
}

/// "Standard output has only what was requested": help and the version are requested.
#[test]
pub(crate) fn success() {
    Test::new().args(["--version"]).stdout("rungate [..]\n").status(0);
    Test::new().args(["--help"]).stdout("...\n").status(0);
    Test::new().args(["run", "--help"]).stdout("...\n").status(0);
}

/// What is said of a word that is no subcommand: where it is one elsewhere, that; otherwise how to start it.
#[test]
fn a_word_that_is_no_subcommand_is_answered_by_what_was_meant() {
    let site = site();
    let said = |words: &[&str]| site.test().args(words).outcome().stderr;
    assert!(said(&["matlab"]).ends_with("To start a program: rungate run -- matlab\n"));
    for words in [["policy", "explain"], ["shim", "status"]] {
        let said = said(&words);
        assert!(said.ends_with(&format!("There is: rungate {}\n", words[1])), "{said}");
    }
    let said = said(&["policy", "matlab"]);
    assert!(said.contains("matlab") && !said.contains("rungate run"), "{said}");
}

/// Whatever name rungate is started by, its usage is that of rungate.
#[test]
fn the_usage_names_rungate() {
    let site = Site::new();
    let command = format!("exec -a exectimes {} nonsense", site.rungate().display());
    let outcome = site.test().program("/bin/bash").args(["-c", &command]).outcome();
    assert!(outcome.stderr.contains("\nUsage: rungate [OPTIONS] <COMMAND>\n"), "{outcome:?}");
}
