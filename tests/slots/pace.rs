//! `if_elapsed`: a repository's last start is in its header, written with the slots. … Refusal says when it
//! will be allowed again; it is never waited for.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::{Account, Ending, Site, Test, eventually};

fn site(keys: &str) -> Site {
    let site = Site::with_policy(&format!(
        r#"
        [repository.sync]
        limit = 2
        {keys}

        [[rule]]
        name     = "sync"
        commands = ["sync", "missing", "broken"]
        acquire  = ["sync"]
        "#
    ));
    site.program("sync");
    site
}

fn sync(site: &Site) -> Test {
    site.test().args(["run", "--", "sync"])
}

fn too_soon(site: &Site) -> Test {
    refused(site, &[])
}

fn refused(site: &Site, options: &[&str]) -> Test {
    site.test().args(["run"]).args(options).args(["--", "sync"]).stderr(&format!(
        "
        rungate: sync: too soon: last started by {} at [time] ([age] ago), next allowed at [time]
          repository sync, if_elapsed = \"1h\"
        To start it now anyway: rungate reset sync
        ",
        Account::own().name
    ))
}

/// The fields of rungate's own header, 8 bytes each: magic, version, cursor, last start, last end
/// (milliseconds since 1970).
const HEADER: u64 = 4096;

fn field(site: &Site, number: u64) -> u64 {
    let file = File::open(site.repository("sync.lock")).expect("the repository");
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, HEADER + 8 * number).expect("a header");
    u64::from_le_bytes(bytes)
}

fn set_field(site: &Site, number: u64, value: u64) {
    let file = OpenOptions::new().write(true).open(site.repository("sync.lock")).expect("the repository");
    file.write_all_at(&value.to_le_bytes(), HEADER + 8 * number).expect("the file is ours");
}

const LAST_START: u64 = 3;
const LAST_END: u64 = 4;

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    u64::try_from(since.as_millis()).expect("a time before the year 500 million")
}

/// Not started again within 15 minutes of the last start: with status 69, also when there is room, also
/// with a wait.
#[test]
pub(crate) fn a_start_that_comes_too_soon_is_refused_and_not_waited_for() {
    let site = site("if_elapsed = \"1h\"");
    sync(&site).status(0);
    too_soon(&site).status(69);
    refused(&site, &["--wait", "forever"]).status(69);
    assert_eq!(site.held("sync.lock"), []);
    // When the time has passed, it starts: 59 minutes ago is too soon, an hour ago is not.
    set_field(&site, LAST_START, now() - 59 * 60_000);
    assert_eq!(sync(&site).outcome().ending, Ending::Status(69));
    set_field(&site, LAST_START, now() - 60 * 60_000);
    sync(&site).status(0);
    assert!(now() - field(&site, LAST_START) < 59 * 60_000, "this start counts");
}

/// The same by the clock, with a time that can be waited for.
#[test]
pub(crate) fn a_start_is_allowed_when_the_time_has_passed() {
    let site = site("if_elapsed = \"1s\"");
    sync(&site).status(0);
    let first = field(&site, LAST_START);
    eventually("it is allowed again", || (sync(&site).outcome().ending == Ending::Status(0)).then_some(()));
    assert!(field(&site, LAST_START) - first >= 1000);
}

/// "`if_elapsed_from = "end"` measures from the last end, and needs a supervised hold."
#[test]
pub(crate) fn the_time_may_count_from_the_end() {
    for hold in ["supervisor", "tree"] {
        let site = site(&format!("if_elapsed = \"1h\"\nif_elapsed_from = \"end\"\nhold = \"{hold}\""));
        let mut first = sync(&site).spawn();
        let mut second = sync(&site).spawn();
        assert_eq!(field(&site, LAST_END), 0, "nothing has ended yet");
        first.close_stdin();
        assert_eq!(first.end().ending, Ending::Status(0));
        sync(&site)
            .stderr(
                "
                rungate: sync: too soon: last ended [..]at [time] ([age] ago), next allowed at [time]
                  repository sync, if_elapsed = \"1h\"
                To start it now anyway: rungate reset sync
                ",
            )
            .status(69);
        second.wait_for_echo();
        set_field(&site, LAST_END, now() - 60 * 60_000);
        sync(&site).status(0);
    }
    let site = site("if_elapsed = \"1h\"\nif_elapsed_from = \"end\"");
    let checked = site.test().args(["policy", "check"]).outcome();
    assert_eq!(checked.ending, Ending::Status(1));
    let text = checked.stdout + &checked.stderr;
    assert!(text.contains("if_elapsed_from") && text.contains("supervisor"), "{text}");
}

/// "`too_soon = "ok"` makes it silent with status 0 (for cron)."
#[test]
pub(crate) fn too_soon_may_be_no_failure() {
    let site = site("if_elapsed = \"1h\"\ntoo_soon = \"ok\"");
    site.script("sync", "#!/bin/sh\necho runs\n");
    sync(&site).stdout("runs\n").status(0);
    sync(&site).status(0);
    site.test().args(["run", "-E", "3", "--", "sync"]).status(0);
}

/// `rungate reset REPOSITORY` forgets the stamp.
#[test]
pub(crate) fn reset_forgets_the_last_start() {
    let site = site("if_elapsed = \"1h\"");
    let reset = site.test().args(["reset", "sync"]);
    let nothing = "rungate: sync: there was no last start to forget\n";
    reset.clone().stderr(nothing).status(0);
    sync(&site).status(0);
    too_soon(&site).status(69);
    reset.clone().status(0);
    reset.clone().stderr(nothing).status(0);
    let running = sync(&site).spawn();
    reset.status(0);
    sync(&site).status(0);
    assert_eq!(site.held("sync.lock").iter().map(|slot| slot.pid).collect::<Vec<i32>>(), [running.pid()]);
}

/// The same for the last end.
#[test]
fn reset_forgets_the_last_end() {
    let site = site("if_elapsed = \"1h\"\nif_elapsed_from = \"end\"\nhold = \"supervisor\"");
    sync(&site).status(0);
    assert_eq!(sync(&site).outcome().ending, Ending::Status(69));
    site.test().args(["reset", "sync"]).status(0);
    assert_eq!(field(&site, LAST_END), 0);
    sync(&site).status(0);
}

/// When exec itself fails (126, 127), no start counts: neither the first one, nor one after a start that
/// does.
#[test]
pub(crate) fn a_command_that_cannot_be_executed_was_not_started() {
    for hold in ["process", "descriptor", "supervisor", "tree"] {
        let site = site(&format!("if_elapsed = \"1h\"\nhold = \"{hold}\""));
        // Found and executable, as far as can be seen before it is executed.
        site.script("missing", "#!/nowhere/at-all\n");
        site.script("broken", "#!/etc/passwd\n");
        let fails = |site: &Site, command: &str, status| {
            let outcome = site.test().args(["run", "--", command]).outcome();
            assert_eq!(outcome.ending, Ending::Status(status), "{hold} {}", outcome.stderr);
            assert_eq!(site.held("sync.lock"), []);
        };
        fails(&site, "missing", 127);
        fails(&site, "broken", 126);
        assert_eq!(field(&site, LAST_START), 0, "{hold}");
        sync(&site).status(0);
        let long_ago = now() - 2 * 60 * 60_000;
        set_field(&site, LAST_START, long_ago);
        fails(&site, "missing", 127);
        assert_eq!(field(&site, LAST_START), long_ago, "{hold}");
        sync(&site).status(0);
    }
}

/// Nor does a start of exectimes whose program is not found.
#[test]
fn a_command_that_is_not_found_was_not_started() {
    let site = site("if_elapsed = \"1h\"");
    let long_ago = now() - 2 * 60 * 60_000;
    for before in [0, long_ago] {
        let exectimes = site.test().args(["exectimes", "$DIR/repositories/sync.lock", "2", "nowhere"]);
        exectimes.stderr("exec failed: nowhere: not found in PATH ([..])\n").status(1);
        assert_eq!(field(&site, LAST_START), before);
        assert_eq!(site.held("sync.lock"), []);
        sync(&site).status(0);
        set_field(&site, LAST_START, long_ago);
    }
}

/// A launch that was refused was not started either.
#[test]
pub(crate) fn a_refused_launch_does_not_count() {
    let site = site("if_elapsed = \"1h\"");
    sync(&site).status(0);
    site.test().args(["reset", "sync"]).status(0);
    let holder = site.holder("sync.lock", ["posix", "write", "8:2"]);
    assert_eq!(sync(&site).outcome().ending, Ending::Status(75));
    drop(holder);
    assert_eq!(field(&site, LAST_START), 0);
    sync(&site).status(0);
}

/// "A stamp in the future counts as elapsed": a clock that was set back locks no job out for ever. And
/// garbage is no stamp.
#[test]
pub(crate) fn a_stamp_from_the_future_locks_nobody_out() {
    for (keys, stamp) in [
        ("if_elapsed = \"1h\"", LAST_START),
        ("if_elapsed = \"1h\"\nif_elapsed_from = \"end\"\nhold = \"supervisor\"", LAST_END),
    ] {
        let site = site(keys);
        for ahead in
            [now() + 600_000, now() + 10 * 365 * 86_400_000, u64::MAX, i64::MAX as u64, u64::MAX / 1000]
        {
            sync(&site).outcome();
            set_field(&site, stamp, ahead);
            sync(&site).status(0);
            let written = field(&site, stamp);
            assert!(
                written <= now() && now() - written < 59 * 60_000,
                "{ahead}: the stamp is right again: {written}"
            );
        }
        // Without its magic it is no header.
        assert_eq!(sync(&site).outcome().ending, Ending::Status(69));
        set_field(&site, 0, 0);
        sync(&site).status(0);
        assert_eq!(sync(&site).outcome().ending, Ending::Status(69), "it was written anew");
        let length = fs::metadata(site.repository("sync.lock")).expect("the repository").len();
        assert!(length >= 8192);
    }
}

/// Where the header says that the last start was of a slot that no file has room for, nobody is named, and
/// nothing breaks.
#[test]
pub(crate) fn a_cursor_of_any_value_only_loses_the_name() {
    let site = site("if_elapsed = \"1h\"");
    sync(&site).status(0);
    for cursor in [0, 1, 1 << 20, 1 << 56, 1 << 63, u64::MAX] {
        set_field(&site, 2, cursor);
        let unnamed = "
            rungate: sync: too soon: last started at [time] ([age] ago), next allowed at [time]
              repository sync, if_elapsed = \"1h\"
            To start it now anyway: rungate reset sync
            ";
        site.test().args(["run", "--", "sync"]).stderr(unnamed).status(69);
    }
}

/// A launch that started nothing leaves its record, and the header has an older start. That record does not say who
/// started then.
#[test]
fn the_record_of_another_start_names_no_user() {
    let site = site("if_elapsed = \"1h\"");
    sync(&site).status(0);
    too_soon(&site).status(69);
    set_field(&site, LAST_START, field(&site, LAST_START) - 60_000);
    let unnamed = "
        rungate: sync: too soon: last started at [time] ([age] ago), next allowed at [time]
          repository sync, if_elapsed = \"1h\"
        To start it now anyway: rungate reset sync
        ";
    sync(&site).stderr(unnamed).status(69);
}

/// The user of a start is recorded with the last of its slots.
#[test]
fn a_start_in_several_slots_names_its_user() {
    let site = site("");
    site.policy(
        r#"
        [repository.sync]
        limit      = 2
        if_elapsed = "1h"

        [[rule]]
        commands = ["sync"]
        acquire  = [{ repository = "sync", slots = 2 }]
        "#,
    );
    sync(&site).status(0);
    too_soon(&site).status(69);
}

/// What the hint names forgets no more than is in the way: the one file of a member, and the policy that
/// was named.
#[test]
fn the_hint_forgets_one_member_and_repeats_the_policy() {
    let site = Site::new();
    let own = Account::own();
    site.program("sync");
    site.write(
        "work/own.toml",
        "
        version  = 1
        defaults = { directory = \"$DIR/repositories\" }

        [repository.one]
        limit      = 1
        if_elapsed = \"1h\"

        [repository.each]
        per        = \"user\"
        limit      = 1
        if_elapsed = \"1h\"

        [[rule]]
        commands = [\"sync\"]
        acquire  = [\"one\", \"each\"]
        ",
    );
    let run = || site.test().args(["run", "--policy", "own.toml", "--", "sync"]).stdin("");
    run().status(0);
    let hint = run().outcome().stderr.lines().last().expect("a hint").to_owned();
    let file = site.repository(&format!("each.{}.lock", own.uid));
    assert_eq!(
        hint,
        format!("To start it now anyway: rungate reset --policy own.toml one {}", file.display())
    );
    let typed = hint.split_once("rungate ").expect("a command").1;
    site.test().args(typed.split(' ')).status(0);
    run().status(0);
}

/// "One evaluator": of an alternative that can never be available, neither the refusal nor the explanation
/// speaks where the other one only comes too soon.
#[test]
fn what_can_never_be_had_is_not_in_the_way_of_what_comes_too_soon() {
    let site = Site::with_policy(
        r#"
        [repository.nightly]
        limit = 1
        if_elapsed = "1h"

        [repository.spare]
        limit = 1
        reserve = [{ users = ["nobody-of-that-name"], slots = 1 }]

        [[rule]]
        commands = ["true"]
        acquire  = [{ any_of = ["nightly", { repository = "spare", slots = "all" }] }]
        "#,
    );
    site.test().args(["run", "--", "true"]).status(0);
    let refused = site.test().args(["run", "--", "true"]).outcome();
    assert_eq!(refused.ending, Ending::Status(69), "{}", refused.stderr);
    assert!(refused.stderr.contains("  repository nightly, ") && !refused.stderr.contains("spare"));
    let explained = site.test().args(["explain", "--json", "--", "true"]).outcome();
    let explained: serde_json::Value = serde_json::from_str(&explained.stdout).expect("it prints JSON");
    assert_eq!(explained["in_the_way"], serde_json::json!(["nightly"]), "{explained:#}");
}

/// It says so where there is nothing to forget: no start, or no `if_elapsed` that would look at it.
#[test]
fn reset_of_what_nothing_waits_for_says_so() {
    let site = site("");
    sync(&site).status(0);
    site.test()
        .args(["reset", "sync"])
        .stderr("rungate: sync: this has no effect: the policy has no if_elapsed for it\n")
        .status(0);
}
