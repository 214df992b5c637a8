//! A refusal names **every** repository that refused, with use and limit, the rule behind it with its place
//! and the longest holders, then the rule's `message`, then what to do next.

use std::fs;

use crate::support::{Account, Ending, Running, Site, Terminal, given_time, needs_root, needs_tmux, seats};

const POLICY: &str = r#"
    version = 1

    [defaults]
    directory = "$DIR/repositories"
    create_mode = "0666"

    [repository.matlab]
    limit = 5

    [repository.matlab-per-user]
    per   = "user"
    limit = 2

    [repository.matlab-per-group]
    per   = "group"
    limit = 9

    [[rule]]
    name     = "matlab seats"
    commands = ["matlab"]
    acquire  = ["matlab"]

    [[rule]]
    name     = "two for each person"
    commands = ["matlab"]
    acquire  = ["matlab-per-user"]
    message  = "Two for each of us, please."

    [[rule]]
    name     = "departments"
    commands = ["matlab"]
    groups   = ["users"]
    acquire  = ["matlab-per-group"]

    [[rule]]
    name     = "contractors have no access"
    commands = ["virtuoso"]
    users    = ["%audio"]
    action   = "deny"
    message  = "Not covered by your export licence. Contact: tcm@example.com"
"#;

fn site() -> Site {
    let site = Site::with_policy(POLICY);
    site.program("matlab");
    site.program("virtuoso");
    site
}

/// The two repositories that refused, and not the third, which has room.
#[test]
pub(crate) fn every_full_repository_is_named_with_its_rule_and_its_holders() {
    needs_root!();
    let site = site();
    let matlab = |user: &str| site.test().user(user).groups(["users"]).args(["run", "--", "matlab"]);
    let mut running: Vec<Running> = Vec::new();
    for user in ["games", "backup", "games", "backup", "www-data"] {
        running.push(matlab(user).spawn());
    }
    let holder = |index: usize, user: &str| {
        format!("PID {} {user} matlab, since [time] ([age])", running[index].pid())
    };
    matlab("games")
        .stderr(&format!(
            "
            rungate: matlab: not started: 2 of 3 limits are reached
              matlab  5 of 5 used
                  rule \"matlab seats\", $DIR/policy.toml:18
                  {}
                  {}
                  {}
                  {}
                  and 1 more: rungate list matlab
              matlab-per-user [games]  2 of 2 used
                  rule \"two for each person\", $DIR/policy.toml:23
                  {}
                  {}
            Two for each of us, please.
            Close one of yours, or wait in the queue: rungate run --wait 30m -- matlab
            To see why: rungate explain -- matlab
            To end the oldest of yours: rungate end matlab [pid]
            ",
            holder(0, "games"),
            holder(1, "backup"),
            holder(2, "games"),
            holder(3, "backup"),
            holder(0, "games"),
            holder(2, "games"),
        ))
        .status(75);
    // Somebody who has none of their own is not told to close one.
    matlab("nobody")
        .stderr(&format!(
            "
            rungate: matlab: not started: 1 of 3 limits is reached
              matlab  5 of 5 used
                  rule \"matlab seats\", $DIR/policy.toml:18
                  {}
            ...
            Try again later, or wait in the queue: rungate run --wait 30m -- matlab
            To see why: rungate explain -- matlab
            ",
            holder(0, "games")
        ))
        .status(75);
}

/// A holder without a record is named by what the kernel knows of its lock: of a lock of a process always, of
/// one of a description where its descriptors can be seen.
#[test]
pub(crate) fn an_unknown_holder_is_shown() {
    let site = site();
    for owner in ["posix", "ofd"] {
        let holder = site.holder("matlab.lock", [owner, "write", "8:5"]);
        let line = format!("PID {} {} holder[..]", holder.pid(), Account::own().name);
        let explained = site.test().args(["explain", "--", "matlab"]).outcome().stdout;
        assert!(explained.contains(&format!("FULL: PID {}\n", holder.pid())), "{explained}");
        site.test()
            .args(["run", "--", "matlab"])
            .stderr(&format!(
                "rungate: matlab: not started: 1 of 2 limits is reached\n  matlab  5 of 5 used\n      rule [..]\n      {line}\n...\n"
            ))
            .status(75);
        drop(holder);
    }
}

/// Others cannot see the descriptors of root: they learn whom to ask.
#[test]
pub(crate) fn who_cannot_see_a_holder_learns_whom_to_ask() {
    needs_root!();
    let site = site();
    site.policy(&POLICY.replace("limit = 5", "limit = 1"));
    site.test().user("games").args(["run", "--", "matlab"]).stdin("").status(0);
    let _holder = site.holder("matlab.lock", ["ofd", "write", "8:1"]);
    let refused = site.test().user("games").args(["run", "--", "matlab"]).outcome();
    let lines = "      slot 1: a process that cannot be seen from here\n      \
                 ask your administrator who that is: rungate list matlab\n";
    assert!(refused.stderr.contains(lines), "{}", refused.stderr);
    // Also if others are known.
    site.policy(&POLICY.replace("limit = 5", "limit = 2"));
    let known = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    let refused = site.test().user("games").args(["run", "--", "matlab"]).outcome();
    assert!(
        refused.stderr.contains(&format!("      PID {} games matlab", known.pid())),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains(lines), "{}", refused.stderr);
}

#[test]
pub(crate) fn a_closed_repository_says_so() {
    let site = site();
    site.policy(&POLICY.replace("limit = 5", "limit = 0"));
    site.test()
        .args(["run", "--", "matlab"])
        .stderr(
            "
            rungate: matlab: not started: 1 of 2 limits is reached
              matlab  closed: its limit is 0
                  rule \"matlab seats\", $DIR/policy.toml:18
            Nothing new may start there now. Ask your administrator how long.
            ",
        )
        .status(75);
}

#[test]
pub(crate) fn a_denial_names_the_rule_what_matched_and_whom_to_ask() {
    needs_root!();
    site()
        .test()
        .user("games")
        .groups(["audio"])
        .args(["run", "--", "virtuoso"])
        .stderr(
            "
            rungate: virtuoso: refused: rule \"contractors have no access\"
              ($DIR/policy.toml:35) matches your group \"audio\"
            Not covered by your export licence. Contact: tcm@example.com
            ",
        )
        .status(77);
}

#[test]
pub(crate) fn what_no_rule_allows_is_told_so() {
    let site = Site::with_policy("version = 1\ndefaults.unmatched = \"refuse\"\n");
    site.program("matlab");
    site.test()
        .args(["run", "--", "matlab"])
        .stderr(
            "
            rungate: matlab: refused: no rule of the policy allows it (unmatched = \"refuse\")
            To see each rule: rungate explain -v -- matlab
            ",
        )
        .status(77);
}

/// A ceiling is told apart from the limit, which has room left.
#[test]
pub(crate) fn a_ceiling_is_explained() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 3

        [[rule]]
        name     = "batch leaves two free"
        commands = ["batch"]
        acquire  = [{ repository = "seats", ceiling = 1 }]
        "#,
    );
    site.program("batch");
    let batch = site.test().args(["run", "--", "batch"]);
    let _running = batch.spawn();
    batch
        .clone()
        .stderr(
            "
            rungate: batch: not started: the limit is reached
              seats  1 of 1 used
                  only up to 1 of 3 for this rule; the rest is kept for others
                  rule \"batch leaves two free\", $DIR/policy.toml:7
                  PID [pid] [..] batch, since [time] ([age])
            Close one of yours, or wait in the queue: rungate run --wait 30m -- batch
            To see why: rungate explain -- batch
            To end the oldest of yours: rungate end seats [pid]
            ",
        )
        .status(75);
}

/// A repository that two rules have as an alternative is named once, and so is a message that both have.
#[test]
fn what_several_rules_have_in_common_is_named_once() {
    let site = Site::with_policy(
        r#"
        [repository]
        a.limit      = 1
        b.limit      = 1
        common.limit = 1

        [[rule]]
        commands = ["matlab"]
        acquire  = [{ any_of = ["a", "common"] }]
        message  = "Ask first."

        [[rule]]
        commands = ["matlab"]
        acquire  = [{ any_of = ["b", "common"] }]
        message  = "Ask first."
        "#,
    );
    site.program("matlab");
    let _holders = [(); 2].map(|()| site.test().args(["run", "--", "matlab"]).spawn());
    let told = site.test().args(["run", "--", "matlab"]).outcome().stderr;
    for once in ["  a  1 of 1 used", "  b  1 of 1 used", "  common  1 of 1 used", "Ask first."] {
        assert_eq!(told.lines().filter(|line| *line == once).count(), 1, "{once}: {told}");
    }
}

/// A launch that waits below its ceiling gets both numbers: what is used, and how much its rule allows.
#[test]
fn a_ceiling_is_explained_to_a_launch_that_waits() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 3

        [[rule]]
        commands = ["matlab"]
        acquire  = ["seats"]

        [[rule]]
        commands = ["batch"]
        acquire  = [{ repository = "seats", ceiling = 1 }]
        "#,
    );
    for name in ["matlab", "batch"] {
        site.program(name);
    }
    let waits = |numbers: &str| {
        // A launch whose time is over before it has looked once does not wait.
        given_time(&["100ms", "2s", "20s"], |wait| {
            let told = site.test().args(["run", "-w", wait, "--", "batch"]).outcome().stderr;
            let expected = format!("rungate: batch: waits for seats ({numbers}), first in line, ");
            assert!(told.starts_with(&expected), "{told}");
        });
    };
    let _first = site.test().args(["run", "--", "matlab"]).spawn();
    waits("1 of 1 used");
    let _second = site.test().args(["run", "--", "matlab"]).spawn();
    waits("2 used, up to 1 for this rule");
}

/// Let the policy, the records and the log see NAME as the name of the command: so does who is refused.
#[test]
pub(crate) fn a_refusal_speaks_of_the_name_that_was_given() {
    let site = Site::with_policy(
        r#"
        [repository.sync]
        limit = 1

        [[rule]]
        name     = "sync"
        commands = ["nightly-sync"]
        acquire  = ["sync"]

        [[rule]]
        name     = "not this"
        commands = ["secret"]
        action   = "deny"
        "#,
    );
    site.program("python");
    let _running = site.test().args(["run", "--as", "nightly-sync", "--", "python"]).spawn();
    site.test()
        .args(["run", "--as", "nightly-sync", "--", "python"])
        .stderr(
            "
            rungate: nightly-sync: not started: the limit is reached
              sync  1 of 1 used
                  rule [..]
                  PID [pid] [..] nightly-sync, since [time] ([age])
            Close one of yours, or wait in the queue: rungate run --wait 30m --as nightly-sync -- python
            To see why: rungate explain --as nightly-sync -- python
            To end the oldest of yours: rungate end sync [pid]
            ",
        )
        .status(75);
    site.test()
        .args(["run", "--as", "secret", "--", "python"])
        .stderr("rungate: secret: refused: rule \"not this\"\n...\n")
        .status(77);
}

/// The end of an own program is suggested only if it is proved which process has the slot. Of one that a
/// descriptor keeps that is proved where holders may be overdue.
#[test]
fn the_end_of_a_program_is_suggested_where_it_is_proved() {
    for (expiry, is_suggested) in [("", false), ("expire_after = \"1h\"", true)] {
        let site = Site::with_policy(&seats(1, &format!("hold = \"descriptor\"\n{expiry}"), &["matlab"]));
        site.program("matlab");
        let launch = site.test().args(["run", "--", "matlab"]);
        let _running = launch.spawn();
        let refused = launch.outcome();
        assert_eq!(refused.ending, Ending::Status(75), "{refused:?}");
        let is_told = refused.stderr.contains("\nTo end the oldest of yours: rungate end seats ");
        assert_eq!(is_told, is_suggested, "{refused:?}");
    }
}

/// Options are told to a launch that sshd has not started, also if it cannot be seen which process has.
#[test]
fn a_launch_whose_parent_cannot_be_seen_is_told_of_options() {
    needs_root!();
    let site = Site::with_policy(&seats(1, "", &["nightly-sync"]));
    site.program("python");
    let launch = site.test().args(["run", "--as", "nightly-sync", "--", "python"]);
    let _running = launch.spawn();
    let first = launch.clone().through(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    let wait = " wait in the queue: rungate run --wait 30m --as nightly-sync -- python\n";
    let refused = first.outcome();
    assert_eq!(refused.ending, Ending::Status(75), "{refused:?}");
    assert!(refused.stderr.contains(wait), "{refused:?}");
}

/// On a terminal every line that is too long for it is broken between words, and what is to be copied is not;
/// whatever reads what was redirected gets the lines as they are.
#[test]
fn on_a_terminal_lines_are_broken_between_words() {
    needs_tmux!();
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 0

        [[rule]]
        name     = "the seats that are lent to whoever asks for one"
        commands = ["matlab"]
        acquire  = ["seats"]
        message  = "The licences of the department are away for the week, or so the server says."
        "#,
    );
    site.program("matlab");
    let terminal = Terminal::open_for(site.test(), (72, 40));
    let commands = [
        ("run -- matlab", "Ask your"),
        ("run -- notmatlab", "not found in PATH"),
        ("shim list", "shim install /etc"),
    ];
    for (number, (command, last)) in commands.into_iter().enumerate() {
        let end = format!("\nended {number}\n");
        let command = format!("{} {command}", site.rungate().display());
        terminal.command(&format!("{command} 2>redirected; clear; {command}; echo en''ded {number}"));
        let screen = terminal.shows(&end);
        let said = screen.split(&end).next().unwrap_or_default();
        let redirected = fs::read_to_string(site.path("work/redirected")).expect("what was redirected");
        assert!(
            redirected.contains(last) && redirected.lines().any(|line| line.len() > 72),
            "{screen} {redirected}"
        );
        // A list of paths is broken between these.
        let words = |text: &str| text.replace(":/", ": /").split_whitespace().map(str::to_owned).collect();
        let (said, whole): (Vec<String>, Vec<String>) = (words(said), words(&redirected));
        assert_eq!(said, whole, "{screen}");
    }
}
