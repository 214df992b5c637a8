//! Use that rungate did not start: room is what the limit leaves of slots that are held and of what a sample
//! says is used outside. Samples come from `rungate measure`, or are made up to be wrong.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::support::{
    Ending, Running, Site, Test, eventually, is_over_the_agent, listing, needs_root, set_mode, sleeps_of,
};

const POLICY: &str = r#"
    [repository.seats]
    limit = 3
    REPOSITORY
    [repository.seats.outside]
    command = ["/bin/cat", "$DIR/work/used"]
    settle  = "0s"
    KEYS
    [[rule]]
    commands = ["tool"]
    acquire  = ["seats"]
"#;

fn policy(keys: &str) -> String {
    POLICY.replace("REPOSITORY", "").replace("KEYS", keys)
}

/// A site with a policy of the system's, whose samples say what is written into the file `used`.
fn site(policy: &str) -> Site {
    let site = Site::new();
    for user in ["ann", "bob"] {
        site.account(user, &[]);
    }
    if !is_over_the_agent() {
        site.directory_over_run();
    }
    site.system_policy(policy);
    site.script("tool", "#!/bin/sh\necho \"$RUNGATE_NAME_SEATS\"\nexec cat\n");
    site
}

fn used(site: &Site, lines: &str) {
    site.write("work/used", &lines.replace("HERE", &here()));
    measure(site).status(0);
}

fn measure(site: &Site) -> Test {
    site.test().args(["measure"])
}

/// This host, with a domain and in capitals.
fn here() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
    format!("{}.EXAMPLE", name.trim().split('.').next().unwrap_or_default().to_uppercase())
}

fn tool(site: &Site, user: &str) -> Test {
    site.test().user(user).args(["run", "--", "tool"])
}

fn start(site: &Site, user: &str) -> Running {
    let mut running = tool(site, user).background();
    running.read_line();
    running.wait_for_echo();
    running
}

fn starts(site: &Site) {
    let outcome = tool(site, "bob").stdin("").outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
}

#[track_caller]
fn full(site: &Site, numbers: &str) {
    let outcome = tool(site, "bob").outcome();
    assert!(outcome.stderr.contains(&format!("  seats  {numbers}\n")), "{}", outcome.stderr);
    assert_eq!(outcome.ending, Ending::Status(75), "{}", outcome.stderr);
}

/// A sample knows who was there a moment before it began.
#[track_caller]
fn full_in_time(site: &Site, lines: &str, numbers: &str) {
    eventually("the sample knows the holders", || {
        used(site, lines);
        tool(site, "bob").outcome().stderr.contains(&format!("  seats  {numbers}\n")).then_some(())
    });
    full(site, numbers);
}

fn sample(site: &Site) -> PathBuf {
    site.path("system-run/rungate-outside/seats.jsonl")
}

const BOB_ELSEWHERE: &str = "{\"user\":\"bob\",\"host\":\"lab1\"}\n";

/// Bob on another host, and ann here: both take room, and ann's counts once, also for bob, who may not look
/// into her process.
#[test]
pub(crate) fn what_is_used_outside_takes_room_and_our_own_counts_once() {
    needs_root!();
    let site = site(&policy(""));
    used(&site, BOB_ELSEWHERE);
    let first = start(&site, "ann");
    let both = format!("{BOB_ELSEWHERE}{{\"user\":\"ANN\",\"host\":\"HERE\",\"amount\":1}}\n");
    // Two of three are used, and one of these is ours.
    let second = eventually("the sample knows ann", || {
        used(&site, &both);
        let mut second = tool(&site, "ann").background();
        (second.read_line() == "\n" && second.answers()).then_some(second)
    });
    full(&site, "2 of 3 used, 1 in use outside rungate");
    full_in_time(&site, &both.replace(":1}", ":2}"), "2 of 3 used, 1 in use outside rungate");
    // One past rungate, beside the two that have a slot.
    full_in_time(
        &site,
        "{\"user\":\"ann\",\"host\":\"HERE\",\"amount\":3}\n",
        "2 of 3 used, 1 in use outside rungate",
    );
    let explained = site.test().user("bob").args(["explain", "--", "tool"]).outcome().stdout;
    assert!(explained.contains("1 in use outside rungate"), "{explained}");
    first.kill();
    second.kill();
    // What ended counts until the next sample.
    eventually("the slots are free", || {
        let refused = tool(&site, "bob").outcome().stderr;
        refused.contains("0 of 3 used, 3 in use outside rungate").then_some(())
    });
    used(&site, "");
    starts(&site);
}

/// A process may have lived for long before it becomes a launch. Its slot is younger than the sample, and counts beside
/// what its user has outside.
#[test]
fn a_sample_does_not_know_a_launch_of_an_older_process() {
    needs_root!();
    let site = site(&policy("").replace("limit = 3", "limit = 2"));
    let wait = "read line; exec \"$@\"";
    let mut older = tool(&site, "ann").through(["bash", "-c", wait, "bash"]).background();
    // A holder is known to a sample a sixteenth of a second later.
    let begun = Instant::now();
    eventually("it has lived before", || (begun.elapsed() > Duration::from_millis(250)).then_some(()));
    used(&site, "{\"user\":\"ann\",\"host\":\"HERE\"}\n");
    older.write_line("continue");
    assert_eq!(older.read_line(), "\n");
    older.wait_for_echo();
    full(&site, "1 of 2 used, 1 in use outside rungate");
    // A sample from now on knows it.
    full_in_time(
        &site,
        "{\"user\":\"ann\",\"host\":\"HERE\",\"amount\":2}\n",
        "1 of 2 used, 1 in use outside rungate",
    );
}

/// A slot that a descriptor keeps has no process in the kernel's list. A user who may look into the holder knows
/// whose it is.
#[test]
fn our_own_slot_that_a_descriptor_keeps_counts_once() {
    needs_root!();
    let site = site(&policy("").replace("limit = 3", "limit = 2"));
    used(&site, "");
    let words = ["run", "--hold", "descriptor", "--", "tool"];
    let mut holder = site.test().user("ann").args(words).background();
    assert_eq!(holder.read_line(), "\n");
    holder.wait_for_echo();
    // One of two is used, and it is ours in the sample too.
    let _second = eventually("the sample knows the holder", || {
        used(&site, "{\"user\":\"ann\",\"host\":\"HERE\"}\n");
        let mut second = tool(&site, "ann").background();
        (second.read_line() == "\n" && second.answers()).then_some(second)
    });
    assert_eq!(site.held_numbers("seats.lock").len(), 2);
}

/// Full, and not never: it may be free again.
#[test]
pub(crate) fn more_than_is_left_is_full_and_not_never() {
    needs_root!();
    let site = site(&policy(""));
    used(&site, "{\"user\":\"bob\",\"host\":\"lab1\",\"amount\":900}\n");
    full(&site, "0 of 3 used, 900 in use outside rungate");
}

/// Nor is one counted that is out of order: the limit is without it.
#[test]
pub(crate) fn a_slot_that_is_used_outside_is_not_given() {
    needs_root!();
    let site = site(&policy("").replace("limit = 3", "names = [\"0\", \"1\", \"2\"]"));
    used(&site, "{\"name\":\"0\",\"user\":\"bob\"}\n{\"name\":\"2\",\"user\":\"bob\"}\n");
    let mut running = tool(&site, "ann").background();
    assert_eq!(running.read_line().trim(), "1");
    running.wait_for_echo();
    full(&site, "1 of 3 used, 2 in use outside rungate");
    // Ours is on the GPU that we were given.
    used(&site, "{\"name\":\"1\",\"user\":\"ann\"}\n{\"name\":\"2\",\"user\":\"bob\"}\n");
    let mut second = tool(&site, "ann").background();
    assert_eq!(second.read_line().trim(), "0");
}

/// Use of a named slot above the limit takes room as a holder of it does, also where another slot is out of
/// order. Launches and listings count the same.
#[test]
pub(crate) fn a_slot_above_the_limit_that_is_used_outside_takes_room() {
    needs_root!();
    let four = "limit = 3\nnames = [\"0\", \"1\", \"2\", \"3\"]\nout_of_order = [\"1\"]";
    let site = site(&policy("").replace("limit = 3", four));
    used(&site, "{\"name\":\"1\",\"user\":\"bob\"}\n{\"name\":\"3\",\"user\":\"bob\"}\n");
    let mut running = tool(&site, "ann").background();
    assert_eq!(running.read_line().trim(), "0");
    running.wait_for_echo();
    full(&site, "1 of 2 used, 1 in use outside rungate (1 out of order)");
    assert_eq!(listing(&site.test())[0]["outside"]["slots"], 1);
}

/// With `shared_by` the windows of one user on one host are one seat, in the sample too. A group in both
/// counts once, and who has a seat outside needs no room.
#[test]
pub(crate) fn a_group_that_has_a_seat_outside_needs_no_room() {
    needs_root!();
    let shared = POLICY.replace("REPOSITORY", "shared_by = [\"user\", \"host\"]").replace("KEYS", "");
    let site = site(&shared.replace("settle  = \"0s\"", "settle = \"1h\""));
    let bobs = "{\"user\":\"bob\",\"host\":\"lab1\"}\n{\"user\":\"bob\",\"host\":\"LAB1.example\"}\n";
    used(&site, &format!("{bobs}{{\"user\":\"cid\",\"host\":\"lab2\",\"amount\":2}}\n"));
    full(&site, "0 of 3 used, 3 in use outside rungate");
    let anns = "{\"user\":\"ann\",\"host\":\"HERE\"}\n{\"user\":\"ann\",\"host\":\"HERE\"}\n";
    used(&site, &format!("{bobs}{{\"user\":\"cid\",\"host\":\"lab2\"}}\n{anns}"));
    full(&site, "0 of 3 used, 3 in use outside rungate");
    let _first = start(&site, "ann");
    let _second = start(&site, "ann");
    full(&site, "1 of 3 used, 2 in use outside rungate");
    used(&site, &format!("{bobs}{anns}"));
    starts(&site);
}

/// Who waits behind use outside starts when a sample no longer has it; behind a stale sample he waits on.
#[test]
pub(crate) fn a_waiting_launch_starts_with_the_sample_that_leaves_room() {
    needs_root!();
    let site = site(&policy(""));
    used(&site, &BOB_ELSEWHERE.replace('}', ",\"amount\":2}"));
    let holder = start(&site, "bob");
    let waits = |site: &Site| site.test().user("ann").args(["run", "-w", "10m", "--", "tool"]).background();
    let is_waiting = |site: &Site| {
        eventually("it waits", || (site.line("seats.lock").len() == 1).then_some(()));
    };
    let mut waiting = waits(&site);
    is_waiting(&site);
    let good = fs::read_to_string(sample(&site)).expect("a sample");
    fs::write(sample(&site), good.replace("\"boot\":\"", "\"boot\":\"x")).expect("a sample");
    let sleeps = || sleeps_of(waiting.pid());
    let looks_again = || {
        let before = sleeps();
        eventually("the waiter has looked", || (is_over_the_agent() || sleeps() > before + 5).then_some(()));
    };
    // A look that has read the good sample may still find the slot that becomes free.
    looks_again();
    // The slot that is free makes it look, and it looks several times.
    holder.kill();
    eventually("the slot is free", || site.held_numbers("seats.lock").is_empty().then_some(()));
    looks_again();
    used(&site, &BOB_ELSEWHERE.replace('}', ",\"amount\":3}"));
    is_waiting(&site);
    used(&site, "");
    assert_eq!(waiting.read_line(), "\n");
    assert!(waiting.answers(), "it has started");
}

/// A launch below a holder does not wait for itself alone: what is used outside may end.
#[test]
pub(crate) fn a_launch_below_a_holder_waits_for_use_outside() {
    needs_root!();
    let policy = POLICY.replace("REPOSITORY", "nested = \"take\"").replace("KEYS", "");
    let site = site(&policy.replace("limit = 3", "limit = 2"));
    let launcher = site.rungate().display();
    site.script(
        "tool",
        &format!("#!/bin/sh\n[ $# = 1 ] && exec cat\nexec {launcher} run -q -w 10m -- tool inner\n"),
    );
    used(&site, BOB_ELSEWHERE);
    let mut both = tool(&site, "ann").background();
    eventually("it waits", || (site.line("seats.lock").len() == 1).then_some(()));
    used(&site, "");
    assert!(both.answers(), "it has started");
}

/// What is used outside is taken off the slots that no reservation has.
#[test]
pub(crate) fn use_outside_fills_what_is_not_reserved() {
    needs_root!();
    let reserve = "reserve = [{ users = [\"ann\"], slots = 1 }]";
    let site = site(&POLICY.replace("REPOSITORY", reserve).replace("KEYS", ""));
    used(&site, &BOB_ELSEWHERE.replace('}', ",\"amount\":2}"));
    let refused = tool(&site, "bob").outcome();
    assert_eq!(refused.ending, Ending::Status(75), "{}", refused.stderr);
    let _anns = start(&site, "ann");
}

/// The total of the head is believed, for nobody else can have written it: if it fits, the lines are not
/// read.
#[test]
fn lines_are_read_only_if_the_total_does_not_fit() {
    needs_root!();
    let site = site(&policy(""));
    used(&site, BOB_ELSEWHERE);
    let good = fs::read_to_string(sample(&site)).expect("a sample");
    fs::write(sample(&site), format!("{good}garbage\n")).expect("a sample");
    starts(&site);
    fs::write(sample(&site), format!("{}garbage\n", good.replace("\"total\":1", "\"total\":3")))
        .expect("a sample");
    let outcome = tool(&site, "bob").outcome();
    assert!(outcome.stderr.contains("line 3"), "{}", outcome.stderr);
    assert_eq!(outcome.ending, Ending::Status(74), "{}", outcome.stderr);
}

/// A sample that cannot be believed refuses (74), unless the policy does without.
#[test]
pub(crate) fn a_sample_that_cannot_be_believed_refuses() {
    needs_root!();
    let site = site(&policy(""));
    let refused = |why: &str| {
        let outcome = tool(&site, "bob").outcome();
        assert!(outcome.stderr.contains(why), "{why}: {}", outcome.stderr);
        assert_eq!(outcome.ending, Ending::Status(74), "{}", outcome.stderr);
    };
    refused("there is no sample");
    used(&site, "");
    starts(&site);
    let path = sample(&site);
    let good = fs::read_to_string(&path).expect("a sample");
    let head: serde_json::Value = serde_json::from_str(good.trim()).expect("a head");
    let with = |key: &str, value: serde_json::Value| {
        let mut head = head.clone();
        head[key] = value;
        fs::write(&path, format!("{head}\n")).expect("a sample");
    };
    with("boot", "00000000-0000-0000-0000-000000000000".into());
    refused("the sample is from before the boot");
    with("began", u64::MAX.into());
    refused("the sample is from the future");
    with("began", (head["began"].as_u64().expect("a number").saturating_sub(121_000)).into());
    refused(" seconds old");
    let full = good.replace("\"total\":0", "\"total\":9");
    for wrong in
        ["{\"user\":\"ann\",\"amount\":-1}", "{\"user\":\"ann\",\"amount\":4294967296}", "ann 1", "\u{0}"]
    {
        fs::write(&path, format!("{full}{wrong}\n")).expect("a sample");
        refused("line 2");
    }
    fs::write(&path, [full.as_bytes(), b"\xff\n"].concat()).expect("a sample");
    refused("not UTF-8");
    fs::remove_file(&path).expect("gone");
    fs::create_dir(&path).expect("a directory");
    refused("seats.jsonl");
    fs::remove_dir(&path).expect("gone");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    refused("seats.jsonl");
    fs::remove_file(&path).expect("gone");
    fs::write(&path, &good).expect("a sample");
    std::os::unix::fs::chown(&path, Some(65_534), None).expect("chown");
    refused("seats.jsonl");
    site.system_policy(&policy("when_stale = \"ignore\""));
    starts(&site);
}

/// A launch that could wait does not begin to wait while use outside is unknown: it would wait without knowing for what.
#[test]
pub(crate) fn no_launch_begins_to_wait_without_a_sample() {
    needs_root!();
    let site = site(&policy(""));
    let waits = site.test().user("bob").args(["run", "-w", "300ms", "--", "tool"]);
    let refused = waits.outcome();
    assert!(refused.stderr.contains("there is no sample"), "{}", refused.stderr);
    assert_eq!(refused.ending, Ending::Status(74), "{}", refused.stderr);
    // With a sample it waits.
    used(&site, &BOB_ELSEWHERE.replace('}', ",\"amount\":3}"));
    assert_eq!(waits.outcome().ending, Ending::Status(124));
}

/// A repository that is not enforced needs no sample: a launch takes a slot if one is free.
#[test]
fn what_is_not_enforced_is_taken_without_a_sample() {
    needs_root!();
    let site = site(&POLICY.replace("REPOSITORY", "enforce = false").replace("KEYS", ""));
    let _holders: Vec<Running> = (0..3).map(|_| start(&site, "bob")).collect();
    assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3]);
    let _beyond = start(&site, "bob");
    assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3]);
}

/// Commands that fail, hang, print for ever or leave children: the last sample stays, and none of them does.
#[test]
fn a_command_that_misbehaves_leaves_the_last_sample() {
    needs_root!();
    let site = site(&policy(""));
    used(&site, BOB_ELSEWHERE);
    let before = fs::read(sample(&site)).expect("a sample");
    for (script, why) in [
        ("exit 3", "it ended with exit status: 3"),
        ("yes '{\"user\":\"ann\"}'", "more than 1 MiB"),
        ("sleep 1000 & sleep 1000", "it took longer than 1 seconds"),
        ("echo '{\"user\":\"ann\",\"amount\":-1}'", "line 1"),
        ("printf '\\377'", "not UTF-8"),
    ] {
        let longest = if script.starts_with("sleep") { "1s" } else { "1m" };
        let script = toml_text(script);
        let command = format!(
            "command = [\"/bin/sh\", \"-c\", {script}]\n    every = \"1s\"\n    stale_after = \"{longest}\""
        );
        let policy = policy("").replace("command = [\"/bin/cat\", \"$DIR/work/used\"]", &command);
        site.system_policy(&policy);
        let outcome = measure(&site).outcome();
        assert!(outcome.stderr.contains(why), "{script}: {}", outcome.stderr);
        assert_eq!(outcome.ending, Ending::Status(74), "{script}");
        assert_eq!(fs::read(sample(&site)).expect("a sample"), before, "{script}");
    }
    // As root it has no rights.
    let command = "command = [\"/bin/sh\", \"-c\", \"echo \\\"{\\\\\\\"user\\\\\\\":\\\\\\\"$(id -un)$(id -G)\\\\\\\"}\\\"\"]";
    site.system_policy(&policy("").replace("command = [\"/bin/cat\", \"$DIR/work/used\"]", command));
    measure(&site).status(0);
    let text = fs::read_to_string(sample(&site)).expect("a sample");
    assert!(text.contains("\"user\":\"nobody65534\""), "{text}");
}

fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A refusal tells how many slots must be freed with those that are used outside, too.
#[test]
pub(crate) fn what_must_be_freed_counts_use_outside() {
    needs_root!();
    let pair = "[[rule]]\n    commands = [\"pair\"]\n    acquire = [{ repository = \"seats\", slots = 2 }]\n";
    let site = site(&(policy("") + pair));
    site.program("pair");
    used(&site, &BOB_ELSEWHERE.replace('}', ",\"amount\":2}"));
    let _first = start(&site, "ann");
    let outcome = site.test().user("bob").args(["run", "--", "pair"]).outcome();
    let expected = "  seats  1 of 3 used, 2 in use outside rungate, 2 more wanted\n";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("\n      2 slots must be freed before it can start\n"),
        "{}",
        outcome.stderr
    );
    assert_eq!(outcome.ending, Ending::Status(75));
}

/// Nobody is ended in vain: not behind use outside that stays, and not while that is unknown.
#[test]
pub(crate) fn no_overdue_holder_is_ended_for_what_is_used_outside() {
    needs_root!();
    let overdue = "expire_after = \"1ms\"\n    expire_grace = \"10m\"";
    let site = site(&POLICY.replace("REPOSITORY", overdue).replace("KEYS", ""));
    used(&site, "");
    let mut holders = [start(&site, "ann"), start(&site, "ann")];
    used(&site, &BOB_ELSEWHERE.replace('}', ",\"amount\":3}"));
    let refused = tool(&site, "ann").outcome();
    assert_eq!(refused.ending, Ending::Status(75), "{}", refused.stderr);
    holders.iter_mut().for_each(Running::wait_for_echo);
    let waits = ["run", "-q", "--wait", "forever", "--", "tool"];
    let waiter = site.test().user("ann").args(waits).background();
    site.stands_in_line("seats.lock", &waiter);
    fs::remove_file(sample(&site)).expect("a sample");
    let begun = Instant::now();
    eventually("it has looked some more times", || (begun.elapsed() > Duration::from_secs(4)).then_some(()));
    holders.iter_mut().for_each(Running::wait_for_echo);
}

/// "A command has no input, only `PATH=/usr/bin:/bin` and `LC_ALL=C` in its environment."
#[test]
fn a_measuring_command_has_a_fixed_environment() {
    needs_root!();
    let command = "[\"/bin/cat\", \"$DIR/work/used\"]";
    let site = site(&policy("").replace(command, "[\"$DIR/bin/environment\"]"));
    let script =
        "#!/bin/sh\ntr '\\0' '\\n' </proc/$$/environ >$DIR/work/environment\ncat >>$DIR/work/environment\n";
    site.script("environment", script);
    // The command runs as nobody.
    site.write("work/environment", "");
    set_mode(&site.path("work/environment"), 0o666);
    measure(&site).env("SECRET", "1").stdin("input").status(0);
    let text = fs::read_to_string(site.path("work/environment")).expect("what the command has written");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["LC_ALL=C", "PATH=/usr/bin:/bin"]);
}

const CHOICE: &str = r#"
    [repository.spare]
    limit = 1
    [[rule]]
    commands = ["spare"]
    acquire  = ["spare"]
    [[rule]]
    commands = ["either"]
    acquire  = [{ any_of = ["seats", "spare"] }]
"#;

/// While use outside is unknown, a repository is as if it were full: another choice may have room, or be waited
/// for.
#[test]
fn a_choice_with_room_needs_no_sample_of_the_other() {
    needs_root!();
    let site = site(&format!("{}{CHOICE}", policy("")));
    for name in ["spare", "either"] {
        site.program(name);
    }
    let run = |name: &str| site.test().user("bob").args(["run", "--", name]);
    let either = run("either").spawn();
    assert_eq!(site.held_numbers("spare.lock"), [1]);
    let refused = run("either").outcome();
    assert_eq!(refused.ending, Ending::Status(74), "{}", refused.stderr);
    assert!(refused.stderr.contains("there is no sample"), "{}", refused.stderr);
    let explained = site.test().user("bob").args(["explain", "--", "either"]).outcome();
    assert!(explained.stdout.contains("there is no sample"), "{}", explained.stdout);
    either.kill();

    let spare = run("spare").spawn();
    let mut waiting = site.test().user("bob").args(["run", "-w", "forever", "--", "either"]).background();
    site.stands_in_line("spare.lock", &waiting);
    spare.kill();
    waiting.wait_for_echo();
}
