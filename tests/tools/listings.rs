//! `status`, `list` and `explain`: what is used, by whom, and why a command would or would not start. They
//! take nothing.

use std::fs;

use serde_json::Value;

use crate::support::{
    Account, Ending, Running, Site, Terminal, Test, eventually, given_time, is_over_the_agent, listing,
    needs_root, needs_tmux,
};

const POLICY: &str = r#"
    version = 1

    [defaults]
    directory = "$DIR/repositories"

    [repository.matlab]
    limit = 5

    [repository.matlab-per-user]
    per   = "user"
    limit = 2

    [[rule]]
    name     = "matlab seats"
    commands = ["matlab"]
    acquire  = ["matlab", "matlab-per-user"]

    [[rule]]
    name     = "not for audio"
    commands = ["matlab"]
    groups   = ["audio"]
    action   = "deny"

    [[rule]]
    name     = "other things"
    commands = ["other"]
    acquire  = ["matlab"]
"#;

fn site() -> Site {
    let site = Site::with_policy(POLICY);
    site.program("matlab");
    site
}

fn json(test: &Test) -> Value {
    let outcome = test.outcome();
    assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(0), ""), "{outcome:?}");
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

#[test]
fn status_shows_use_and_limit_of_every_repository() {
    let site = site();
    let own = Account::own();
    site.test()
        .args(["status"])
        .stdout(
            "
            REPOSITORY[gap]USED[gap]LIMIT[gap]FREE[gap]WAIT[gap]OLDEST[gap]NOTE
            matlab[gap]0[gap]5[gap]5[gap]0[gap]-[..]
            matlab-per-user[gap]-[gap]2[gap]-[gap]-[gap]-[gap]never used
            ",
        )
        .status(0);
    let running = site.test().args(["run", "--", "matlab"]).spawn();
    site.test()
        .args(["status"])
        .stdout(&format!(
            "
            REPOSITORY[gap]USED[gap]LIMIT[gap]FREE[gap]WAIT[gap]OLDEST[gap]NOTE
            matlab[gap]1[gap]5[gap]4[gap]0[gap][age][..]
            matlab-per-user[gap]-[gap]2[gap]-[gap]-[gap]-[gap]1 in use or used before
            [gap]{}[gap]1[gap]2[gap]1[gap]0[gap][age][..]
            ",
            own.name
        ))
        .status(0);
    let listed = json(&site.test().args(["status", "--json"]));
    assert_eq!(listed[0]["repository"], "matlab");
    assert_eq!(
        (&listed[0]["used"], &listed[0]["limit"], &listed[0]["free"]),
        (&1.into(), &5.into(), &4.into())
    );
    assert_eq!(listed[1]["member"], own.name);
    site.test().args(["status", "matlab"]).stdout("REPOSITORY[..]\nmatlab[gap]1[..]\n").status(0);
    site.test().args(["status", "nothing"]).stderr("rungate: [..]\"nothing\"[..]\n...\n").status(64);
    drop(running);
    // It took nothing, and it changed nothing.
    assert_eq!(site.held("matlab.lock"), []);
}

#[test]
fn list_shows_each_slot_and_its_holder() {
    let site = site();
    let own = Account::own();
    let running = site.test().args(["run", "--", "matlab"]).spawn();
    let foreign = site.holder("matlab.lock", ["ofd", "read", "10:1"]);
    site.test()
        .args(["list", "matlab"])
        .stdout(&format!(
            "
            matlab: 2 of 5 used
            SLOT[gap]PID[gap]USER[gap]HOST[gap]SINCE[gap]AGE[gap]HOLD[gap]COMMAND[gap]RULE
            [gap]1[gap]{}[gap]{}[gap][..][gap][time][gap][age][gap]process[gap]matlab[gap]matlab seats
            [gap]3[gap]{}[gap]{}[gap]?[gap][time][gap][age][gap]?[gap]holder[..]
            ",
            running.pid(),
            own.name,
            foreign.pid(),
            own.name
        ))
        .status(0);
    let listed = json(&site.test().args(["list", "--json", "matlab"]));
    let holders = listed[0]["holders"].as_array().expect("holders");
    assert_eq!(holders.len(), 2);
    assert_eq!((&holders[0]["slot"], &holders[0]["pid"]), (&1.into(), &running.pid().into()));
    assert_eq!((&holders[0]["uid"], &holders[0]["command"]), (&own.uid.into(), &"matlab".into()));
    assert_eq!((&holders[1]["slot"], &holders[1]["pid"]), (&3.into(), &foreign.pid().into()));
    drop(foreign);
    drop(running);
    site.test().args(["list", "matlab"]).stdout("matlab: 0 of 5 used\n").status(0);
}

/// Records are shown only while their slot is locked and the kernel's PID agrees. Anything else is shown as
/// an unknown holder, never hidden.
#[test]
fn a_record_that_the_kernel_does_not_confirm_is_not_shown() {
    let site = site();
    let running = site.test().args(["run", "--", "matlab"]).spawn();
    drop(running);
    // The same slot, now of a process that wrote no record.
    let holder = site.holder("matlab.lock", ["posix", "write", "8:1"]);
    let listed = json(&site.test().args(["list", "--json", "matlab"]));
    let holders = listed[0]["holders"].as_array().expect("holders");
    assert_eq!((holders.len(), &holders[0]["pid"]), (1, &holder.pid().into()));
    // What the process is called is the kernel's word; the rule stood only in the record.
    assert_eq!((&holders[0]["command"], &holders[0]["rule"]), (&"holder".into(), &Value::Null));
}

/// The record names the command, never its arguments: those may be secret, and others can read the file.
#[test]
fn arguments_are_in_no_record() {
    let site = site();
    let _running = site.test().args(["run", "--", "matlab", "-"]).env("SECRET", "hunter2").spawn();
    site.script("other", "#!/bin/sh\nexec cat\n");
    let _other = site.test().args(["run", "--", "other", "--password=hunter2"]).spawn();
    for file in ["matlab.lock", &format!("matlab-per-user.{}.lock", Account::own().uid)] {
        let content = std::fs::read(site.repository(file)).expect("the repository");
        assert!(!content.windows(7).any(|bytes| bytes == b"hunter2"), "{file}");
    }
}

/// Every rule: matched or why not; the claims; use of each repository now; the verdict. Takes nothing.
#[test]
fn explain_tells_every_rule_and_the_verdict() {
    let site = site();
    let explain = |verdict: &str| {
        site.test()
            .args(["explain", "-v", "--", "matlab"])
            .stdout(&format!(
                "
                ...
                matlab seats[gap][..]policy.toml:13[gap]counts
                not for audio[gap][..]policy.toml:18[gap]no: groups (audio)
                other things[gap][..]policy.toml:24[gap]no: commands
                ...
                {verdict}
                ...
                "
            ))
            .status(0);
    };
    explain("now[gap]starts");
    assert_eq!(site.held("matlab.lock"), []);
    let _running = [0; 2].map(|_| site.test().args(["run", "--", "matlab"]).spawn());
    explain("now[gap]refused, status 75[..]matlab-per-user[..]");
    let explained = json(&site.test().args(["explain", "--json", "--", "matlab"]));
    assert!(explained.is_object(), "{explained}");
}

/// Where the command is not on this host, rules are judged by its name, and a launch ends as `run` does.
#[test]
fn explain_tells_that_a_command_is_not_here() {
    let site = site();
    let explain = site.test().args(["explain", "--", "nosuch"]);
    let now = "now   not found here, status 127; where it is found: starts, with no slot: nothing limits it";
    explain
        .stdout(&format!("request  nosuch -> not found here, judged by its name\n...\n{now}\n...\n"))
        .status(0);
    site.test()
        .args(["run", "--", "nosuch"])
        .stderr("rungate: nosuch: not found in PATH ([..])\n")
        .status(127);
}

#[test]
fn explain_answers_for_another_user() {
    needs_root!();
    let site = Site::new();
    site.account("ann", &["cad"]);
    site.account("bob", &["audio"]);
    site.policy(POLICY);
    site.program("matlab");
    let explain = |user| site.test().args(["explain", "--user", user, "--", "matlab"]);
    explain("ann").stdout("...\nnow[gap]starts\n...\n").status(0);
    explain("bob").stdout("...\nnow[gap]refused, status 77[..]\n...\n").status(0);
    explain("nobody-knows").stderr("rungate: [..]nobody-knows[..]\n...\n").status(64);
    // The directory of the caller is not that of the other user.
    let seats = crate::support::seats(1, "", &["matlab"]);
    site.policy(&format!("version = 1\ndefaults.directory = \"{{runtime}}\"\n{seats}"));
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    explain("root").stdout("...\nnow[gap]refused, status 75[..]\n...\n").status(0);
    explain("bob").stdout("...\nnow[gap]starts\n...\n").status(0);
}

/// A directory is shown by its path, to people and to scripts, whether anybody is in it or not, alone and
/// beside others.
#[test]
fn a_directory_is_shown_by_its_path() {
    let site = Site::with_policy(
        "
        [repository.tree]
        per   = \"directory\"
        limit = 1
        [repository.first]
        per   = [\"directory\", \"user\"]
        limit = 1
        [repository.last]
        per   = [\"user\", \"directory\"]
        limits = [{ directories = [\"$DIR/work\"], limit = 1 }]
        limit = 2
        [[rule]]
        commands = [\"make\"]
        acquire  = [\"tree\", \"first\", \"last\"]
        ",
    );
    site.program("make");
    let own = Account::own().name;
    let running = site.test().args(["run", "--", "make"]).spawn();
    let work = site.path("work").canonicalize().expect("where commands start");
    let work = work.display();
    let titles =
        [format!("tree [{work}]"), format!("first [{work}, {own}]"), format!("last [{own}, {work}]")];
    let refused = site.test().args(["run", "--", "make"]).outcome().stderr;
    let explained = site.test().args(["explain", "--", "make"]).outcome().stdout;
    let shown = |used| {
        let listed = site.test().args(["list", "tree", "first", "last"]).directory("/").outcome().stdout;
        let status = site.test().args(["status"]).directory("/").outcome().stdout;
        for title in &titles {
            assert!(listed.contains(&format!("{title}: {used} of 1 used")), "{listed}");
            let member = title.split(['[', ']']).nth(1).expect("the member");
            assert!(status.lines().any(|line| line.starts_with(&format!("  {member} "))), "{status}");
        }
    };
    for title in &titles {
        assert!(
            refused.contains(title.as_str()) && explained.contains(title.as_str()),
            "{refused}{explained}"
        );
    }
    shown(1);
    let listed = json(&site.test().args(["list", "--json"]).directory("/"));
    let again = json(&site.test().args(["status", "--json"]));
    let metrics = site.test().args(["metrics"]).outcome().stdout;
    for (index, title) in titles.iter().enumerate() {
        let member = listed[index]["member"].as_str().expect("a name");
        assert_eq!(again[index]["member"], member);
        assert!(title.ends_with(&format!(" [{member}]")), "{listed}");
        let labels =
            format!("repository=\"{}\",member=\"{member}\"", title.split(' ').next().expect("its name"));
        assert!(metrics.contains(&format!("rungate_slots_used{{{labels}}} 1\n")), "{metrics}");
    }
    drop(running);
    shown(0);
}

/// A directory is known once nobody is there, however deep it is and whatever its name holds; a name that
/// looks like another one is another one's.
#[test]
fn every_directory_is_shown_by_its_path() {
    let site = Site::with_policy(
        "
        [repository.tree]
        per   = [\"directory\", \"user\"]
        limit = 1
        [[rule]]
        commands = [\"make\"]
        acquire  = [\"tree\"]
        ",
    );
    site.program("make");
    let own = Account::own().name;
    let names =
        ["a b", "a_b", "a%20b", "50%", "ü", "alpha_2/run_1/lib/cell/view/sim/out/corner_tt/seed_7/log"];
    let mut titles = Vec::new();
    for name in names {
        let directory = format!("work/{name}");
        fs::create_dir_all(site.path(&directory)).expect("directories");
        drop(site.test().directory(&directory).args(["run", "--", "make"]).spawn());
        let path = site.path(&directory).canonicalize().expect("where the command started");
        titles.push(format!("tree [{}, {own}]: 0 of 1 used", path.display()));
    }
    let listed = site.test().args(["list", "tree"]).directory("/").outcome().stdout;
    for title in &titles {
        assert!(listed.contains(title.as_str()), "{title} in {listed}");
    }
    assert_eq!(listed.matches("tree [").count(), titles.len(), "{listed}");
}

/// Somebody asks what another user would meet with a policy of their own: the file is theirs, and they can be
/// trusted with it.
#[test]
fn the_owner_of_a_policy_may_ask_for_another_user() {
    needs_root!();
    let site = Site::new();
    site.account("ann", &[]);
    site.account("bob", &[]);
    site.account("eve", &[]);
    site.program("matlab");
    site.write(
        "work/own.toml",
        "version = 1\n[[rule]]\nname = \"not bob\"\nusers = [\"bob\"]\naction = \"deny\"\n",
    );
    std::os::unix::fs::chown(site.path("work/own.toml"), Some(site.user("ann").uid), None).expect("chown");
    let explain = |user: &str| {
        let words = ["explain", "--user", "bob", "--policy", "own.toml", "--", "matlab"];
        site.test().user(user).args(words).outcome()
    };
    let explained = explain("ann");
    assert!(
        explained.stdout.contains("rule \"not bob\" matches"),
        "{}{}",
        explained.stdout,
        explained.stderr
    );
    let distrusted = explain("eve");
    assert_eq!(distrusted.ending, Ending::Status(78));
    assert!(distrusted.stderr.contains("neither to root nor to you"), "{}", distrusted.stderr);
}

/// Nothing that is shown looks as if something had failed.
#[test]
fn a_policy_that_limits_nothing_says_so() {
    let site = Site::with_policy("version = 1\n");
    for listing in ["status", "list"] {
        let none = "The policy has no repository: nothing is limited.\n";
        site.test().args([listing]).stdout(none).status(0);
    }
    let explain = site.test().args(["explain", "--", "cat"]);
    explain
        .clone()
        .stdout("...\n\nNo rule in the policy\n\nnow   starts, [..]\nNothing was taken.\n")
        .status(0);

    site.policy(
        r#"
        [repository.seats]
        per   = "user"
        limit = 1
        [[rule]]
        commands = ["matlab"]
        acquire  = ["seats"]
        "#,
    );
    let idle = "No slot is held, and no launch waits. All repositories: rungate status\n";
    site.test().args(["list"]).stdout(idle).status(0);
    site.test().args(["list", "seats"]).stdout("None of them has been used yet.\n").status(0);
    let others =
        "...\n\nNo rule for it; 1 for other commands (-v)\n\nnow   starts, [..]\nNothing was taken.\n";
    explain.stdout(others).status(0);
}

/// A member is named as listings show it.
#[test]
fn one_member_can_be_named() {
    let site = Site::with_policy(
        "
        [repository.all]
        limit = 9
        [repository.tree]
        per   = \"directory\"
        limit = 1
        [[rule]]
        commands = [\"matlab\"]
        acquire  = [\"all\", \"tree\"]
        ",
    );
    site.program("matlab");
    fs::create_dir(site.path("work/other")).expect("a directory");
    let _one = site.test().args(["run", "--", "matlab"]).spawn();
    drop(site.test().directory("work/other").args(["run", "--", "matlab"]).spawn());
    let work = site.path("work").canonicalize().expect("where commands start").display().to_string();
    let (here, other) = (format!("tree [{work}]"), format!("tree [{work}/other]"));
    let list = |name: &str| site.test().args(["list", name]);
    list(&here).stdout(&format!("{here}: 1 of 1 used\nSLOT[..]\n   1[..]\n")).status(0);
    list(&other).stdout(&format!("{other}: 0 of 1 used\n")).status(0);
    let stable = json(&site.test().args(["list", "--json", &other]))[0]["member"].clone();
    let stable = format!("tree [{}]", stable.as_str().expect("its name"));
    list(&stable).stdout(&format!("{other}: 0 of 1 used\n")).status(0);
    let status = |name: &str| site.test().args(["status", name]);
    status(&here).stdout(&format!("REPOSITORY[..]\ntree[..]\n  {work}[gap]1[..]\n")).status(0);
    status("tree [/nowhere]").stdout("REPOSITORY[..]\ntree [/nowhere][..]never used\n").status(0);
    list("tree [/nowhere]").stdout("None of them has been used yet.\n").status(0);
    list("all [x]").stderr("rungate: repository \"all\" has no members\n").status(64);
    let reset = |name: &str| site.test().args(["reset", name]);
    let unpaced = |name: &str| {
        let why = "this has no effect: the policy has no if_elapsed for it";
        reset(name).stderr(&format!("rungate: {name}: {why}\n"))
    };
    unpaced(&other).status(0);
    for forgotten in [&other, "tree [/nowhere]"] {
        let said = format!("rungate: {forgotten}: there was no last start to forget\n");
        reset(forgotten).stderr(&said).status(0);
    }
    unpaced(&here).status(0);
}

/// Only who has or had a slot counts: not who waits for one, and not who was refused.
#[test]
fn who_only_waits_or_was_refused_has_used_nothing() {
    let site = Site::with_policy(
        r#"
        [repository.all]
        limit = 1

        [repository.each]
        path  = "each-{arg1}.lock"
        limit = 1

        [repository.closed]
        path  = "closed-{arg1}.lock"
        limit = 0
        wait  = "forever"

        [[rule]]
        name     = "one of each, and of all"
        commands = ["matlab"]
        acquire  = ["each", "all"]

        [[rule]]
        name     = "not now"
        commands = ["later"]
        acquire  = ["closed"]
        "#,
    );
    site.script("matlab", "#!/bin/sh\nexec cat\n");
    site.program("later");
    let waiter = site.test().args(["run", "--", "later", "bob"]).background();
    site.stands_in_line("closed-bob.lock", &waiter);
    let summaries = |expected: &str| site.test().args(["status"]).stdout(expected).status(0);
    let refused = |name| site.test().args(["run", "--", "matlab", name]).stderr("...\n").status(75);
    let holder = site.holder("all.lock", ["ofd", "write", "8:1"]);
    refused("cid");
    summaries(
        "
        REPOSITORY[..]
        all[..]
        each[gap]-[gap]1[gap]-[gap]-[gap]-[gap]none in use
        [gap]cid[gap]0[gap]1[gap]1[gap]0[gap]-
        closed[gap]-[gap]0[gap]-[gap]-[gap]-[gap]1 only waited for
        [gap]bob[gap]0[gap]0[gap]0[gap]1[gap]-[gap]closed: its limit is 0
        ",
    );
    drop(holder);
    let running = site.test().args(["run", "--", "matlab", "ann"]).spawn();
    refused("dan");
    summaries(
        "
        REPOSITORY[..]
        all[..]
        each[gap]-[gap]1[gap]-[gap]-[gap]-[gap]1 in use or used before, 1 full
        [gap]ann[gap]1[gap]1[gap]0[gap]0[gap][age]
        [gap]cid[..]
        [gap]dan[..]
        closed[..]
        [gap]bob[..]
        ",
    );
    drop(running);
    waiter.kill();
}

/// On a terminal what is no table is broken between words too.
#[test]
fn on_a_terminal_explain_breaks_lines_between_words() {
    needs_tmux!();
    let site = Site::with_policy(
        r#"
        [[rule]]
        name     = "nobody has access to the simulators of the other departments"
        commands = ["matlab"]
        action   = "deny"
        "#,
    );
    site.program("matlab");
    let terminal = Terminal::open_for(site.test(), (72, 20));
    let explain = format!("{} explain -- matlab", site.rungate().display());
    terminal.command(&format!("{explain} >redirected; clear; {explain}"));
    let screen = terminal.shows("Nothing was taken.");
    let redirected = fs::read_to_string(site.path("work/redirected")).expect("what was redirected");
    let words = |text: &str| -> Vec<String> {
        let (_, now) = text.split_once("\nnow ").expect("what would happen now");
        let (now, _) = now.split_once("\nNothing").expect("the end");
        assert_eq!(now.contains('\n'), text == screen, "{text}");
        now.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(words(&screen), words(&redirected));
}

/// Returns when a launch stands in the line of the only table.
#[track_caller]
fn stands_in_line(site: &Site, waiter: &Running) {
    eventually("it stands in line", || {
        let listed = listing(&site.test());
        let line = listed[0]["waiting"].as_array()?;
        line.iter().any(|one| one["pid"] == waiter.pid() && !one["wants"].is_null()).then_some(())
    });
}

/// Slots are kept for the queue where a launch that comes now would be refused because others wait: what
/// `status` and `list` show is what `run` does, also when the first in the queue is stopped and so is passed
/// over.
#[test]
pub(crate) fn what_is_free_and_kept_for_the_queue_is_what_run_goes_by() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 3

        [[rule]]
        commands = ["large"]
        acquire  = [{ repository = "seats", slots = 2 }]

        [[rule]]
        commands = ["small"]
        acquire  = ["seats"]
        "#,
    );
    site.program("large");
    site.program("small");
    let run = |command: &str| site.test().args(["run", "-n", "--", command]);
    let shown = || {
        let status: Value = json(&site.test().args(["status", "--json"]));
        (status[0]["free"].clone(), status[0]["kept_for_queue"].clone())
    };
    let holder = run("large").spawn();
    assert_eq!(shown(), (1.into(), 0.into()));
    let waiter = site.test().args(["run", "-w", "forever", "--", "large"]).background();
    stands_in_line(&site, &waiter);
    assert_eq!(shown(), (0.into(), 1.into()));
    run("small")
        .stderr("rungate: small: not started: others wait in the queue for what is left\n...\n")
        .status(75);
    site.test()
        .args(["status"])
        .stdout(
            "
            REPOSITORY USED LIMIT FREE KEPT WAIT OLDEST NOTE
            seats         2     3    0    1    1[gap][age] 1 kept for the queue
            ",
        )
        .status(0);
    site.test()
        .args(["list"])
        .stdout(&format!(
            "
            seats: 2 of 3 used, 1 kept for the queue, 1 waiting
            SLOT[..]
            ...
            LINE[gap]PID USER[gap]SINCE AGE WANTS WAITS FOR[gap]COMMAND
               1[gap]{} [..] [time] [age][gap]2 PID {} [..] large
            ",
            waiter.pid(),
            holder.pid()
        ))
        .status(0);
    let listed: Value = json(&site.test().args(["list", "--json"]));
    assert_eq!((&listed[0]["kept_for_queue"], &listed[0]["waiting"][0]["wants"]), (&1.into(), &2.into()));
    assert_eq!(listed[0]["waiting"][0]["behind"], Value::Null);
    let metrics = site.test().args(["metrics"]).outcome().stdout;
    let kept = "rungate_slots_kept_for_queue{repository=\"seats\"} 1";
    assert!(metrics.lines().any(|line| line == kept), "{metrics}");
    // Who comes behind it waits for it; and the wait itself names the holder.
    given_time(&["100ms", "3s", "20s"], |wait| {
        let second = site.test().args(["run", "-w", wait, "--", "small"]).outcome().stderr;
        let told = format!(
            "rungate: small: waits for seats (2 of 3 used), 1 ahead, 0s; held by PID {} ",
            holder.pid()
        );
        assert!(second.starts_with(&told), "{second}");
    });
    let second = site.test().args(["run", "-w", "forever", "--", "small"]).background();
    stands_in_line(&site, &second);
    let listed: Value = json(&site.test().args(["list", "--json"]));
    assert_eq!(listed[0]["waiting"][1]["behind"], waiter.pid());
    let text = site.test().args(["list"]).outcome().stdout;
    assert!(text.contains(&format!(" 1 PID {} ", waiter.pid())), "{text}");
    drop(second);
    let explained = site.test().args(["explain", "--", "small"]).outcome().stdout;
    let told = format!("FULL: 1 ahead in the queue, the first is PID {}, it waits for PID ", waiter.pid());
    assert!(explained.contains(&told), "{explained}");
    // The agent finds out only when somebody asks it for a slot.
    if is_over_the_agent() {
        return;
    }
    waiter.signal(nix::sys::signal::Signal::SIGSTOP);
    eventually("it is seen to be stopped", || (shown() == (1.into(), 0.into())).then_some(()));
    run("small").status(0);
}

/// What a waiter wants is a lock of the waiter's own. A lock of another process on those bytes is not
/// believed.
#[test]
fn only_a_waiter_itself_says_how_many_slots_it_wants() {
    let site = Site::with_policy(
        "
        repository.seats = { limit = 9 }
        [[rule]]
        commands = [\"matlab\"]
        acquire  = [{ repository = \"seats\", slots = 5 }]
        ",
    );
    site.program("matlab");
    // The first in the queue has the number 1. Its stretch of bytes says how many slots it wants.
    let wants = |slots: i64| (1_i64 << 62) + (1 << 61) + (1 << 20) + slots;
    let _forger = site.holder("seats.lock", ["posix", "write", &format!("{}:1", wants(3))]);
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let waiter = site.test().args(["run", "-w", "forever", "--", "matlab"]).background();
    site.stands_in_line("seats.lock", &waiter);
    let is_locked = |slots| site.lock_between("seats.lock", wants(slots), wants(slots) + 1).is_some();
    eventually("it says how many", || is_locked(5).then_some(()));
    assert!(is_locked(3));
    assert_ne!(listing(&site.test())[0]["waiting"][0]["wants"], 3, "another process says so");
}

/// "Without names it shows only lock files and tables of the agent that are held or waited for, also with
/// `--json`. `rungate status` shows all repositories."
#[test]
fn list_without_names_leaves_out_what_is_idle() {
    let site = site();
    let names = |test: &Test| -> Vec<String> {
        let listed = json(test);
        let listed = listed.as_array().expect("a list").iter();
        listed.map(|one| one["repository"].as_str().expect("a name").to_owned()).collect()
    };
    let list = site.test().args(["list", "--json"]);
    assert_eq!(names(&list), [""; 0]);
    assert_eq!(names(&list.clone().args(["matlab"])), ["matlab"]);
    let idle = "No slot is held, and no launch waits. All repositories: rungate status\n";
    site.test().args(["list"]).stdout(idle).status(0);
    site.script("other", "#!/bin/sh\nexec cat\n");
    let running = site.test().args(["run", "--", "other"]).spawn();
    assert_eq!(names(&list), ["matlab"]);
    site.test().args(["list"]).stdout("matlab: 1 of 5 used\nSLOT[..]\n[..]other[..]\n").status(0);
    assert_eq!(names(&site.test().args(["status", "--json"])), ["matlab"]);
    drop(running);
    assert_eq!(names(&list), [""; 0]);
}

/// "Show only the slots and the places in queues of this user, by name or number. A place is still counted
/// among all who wait."
#[test]
fn list_shows_what_one_user_holds_and_waits_for() {
    needs_root!();
    let site = Site::with_policy("[repository.seats]\nlimit = 2\n[[rule]]\nacquire = [\"seats\"]\n");
    site.program("matlab");
    let matlab = |user: &str| site.test().user(user).args(["run", "-w", "forever", "--", "matlab"]);
    let (_ann, bob) = (matlab("games").spawn(), matlab("nobody").spawn());
    let first = matlab("nobody").background();
    site.stands_in_line("seats.lock", &first);
    let second = matlab("games").background();
    site.stands_in_line("seats.lock", &second);
    let of = |user: &str| {
        let listed = json(&site.test().user("nobody").args(["list", "--json", "--user", user]));
        let pids = |key: &str| -> Vec<i64> {
            let all = listed[0][key].as_array().expect("a list").iter();
            all.map(|one| one["pid"].as_i64().expect("a number")).collect()
        };
        let place = listed[0]["waiting"][0]["place"].clone();
        (listed[0]["used"].clone(), pids("holders"), pids("waiting"), place)
    };
    let uid = Account::own().uid;
    assert_eq!(of("nobody"), (2.into(), vec![bob.pid().into()], vec![first.pid().into()], 1.into()));
    assert_eq!(of("games").3, 2);
    let by_number = site.user("nobody").uid.to_string();
    assert_eq!(of(&by_number), of("nobody"));
    let text = site.test().args(["list", "--user", "games"]).outcome().stdout;
    assert!(text.starts_with("seats: 2 of 2 used, 2 waiting\n"), "{text}");
    assert!(!text.contains("nobody  "), "{text}");
    let line: Vec<&str> = text.lines().last().expect("a line").split_whitespace().take(3).collect();
    assert_eq!(line, ["2", second.pid().to_string().as_str(), "games"]);
    let none = "daemon holds no slot and waits for none. All repositories: rungate status\n";
    site.test().args(["list", "--user", "daemon"]).stdout(none).status(0);
    site.test()
        .args(["list", "--user", "no-such-user"])
        .stderr("rungate: there is no user \"no-such-user\"\n")
        .status(64);
    assert_eq!(uid, 0);
}

/// A holder whose user cannot be seen may be any user's, so its repository is listed for each of them.
#[test]
fn a_user_who_cannot_be_seen_may_be_the_one_who_is_meant() {
    needs_root!();
    let site = Site::with_policy("[repository.seats]\nlimit = 2\n[repository.idle]\nlimit = 2\n");
    let _unknown = site.holder("seats.lock", ["ofd", "write", "8:1"]);
    let elsewhere = ["unshare", "--pid", "--fork", "--mount-proc"];
    let list = site.test().through(elsewhere).args(["list", "--user", "0"]);
    list.stdout("seats: 1 of 2 used, 1 of a user who cannot be seen\n").status(0);
}

/// Each holder and each waiting launch has one line: on a narrow terminal the rule is cut, then other text.
#[test]
fn on_a_terminal_each_slot_has_one_line() {
    needs_tmux!();
    let rule = "seats for everybody in physics, chemistry and biology";
    let site = Site::with_policy(&format!(
        "[repository.seats]\nlimit = 1\n[repository.missing]\nlimit = 1\npath = \"/nosuch/{}/x.lock\"\n\
         [[rule]]\nname = \"{rule}\"\ncommands = [\"matlab\"]\nacquire = [\"seats\"]\n",
        "long".repeat(20)
    ));
    site.program("matlab");
    let running = site.test().args(["run", "--", "matlab"]).spawn();
    let rungate = site.rungate().display().to_string();
    for columns in [80, 120, 200] {
        let terminal = Terminal::open_for(site.test(), (columns, 20));
        terminal.command(&format!("clear; {rungate} list; {rungate} status; echo 'the end'"));
        let screen = terminal.shows("\nthe end\n");
        let of_slot = |line: &&str| line.split_whitespace().take(2).eq(["1", &running.pid().to_string()]);
        let lines: Vec<&str> = screen.lines().collect();
        let at = lines.iter().position(of_slot).unwrap_or_else(|| panic!("no slot: {screen}"));
        assert!(lines[at].contains("matlab"), "{screen}");
        assert!(lines[at].ends_with(if columns == 80 { "~" } else { rule }), "{screen}");
        assert!(lines[at + 1].starts_with("REPOSITORY"), "{screen}");
        assert!(lines[at + 2].starts_with("seats  ") && lines[at + 3].starts_with("missing"), "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= columns), "{screen}");
    }
    let piped = site.test().args(["list"]).outcome().stdout;
    assert!(piped.contains(rule), "{piped}");
}
