//! Names of users, groups, hosts and commands, and all arguments, are untrusted text in every message,
//! record and log: control characters are escaped, and none ever becomes part of a path unprocessed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;

use serde_json::{Value, json};

use crate::support::{Ending, Outcome, Site, needs_root, seats};

/// A name that would clear the screen, forge a line, turn the text around, and is not UTF-8.
const NAME: &[u8] = b"mat\x1b[2Jlab\nroot\r\x07\x7f\xc2\x9b\xe2\x80\xae\xff";

/// Clears the screen in two ways, turns the text around, hides in it, begins lines, and rings.
const HOSTILE: &str =
    "\u{1b}[2J\u{9b}2J\u{202e}\u{2066}\u{2028}\u{61c}\u{200b}\u{ad}\u{e0041}\n\r\u{7}\u{7f}lab";

/// The same in what no control character of ASCII can be in.
const SUBTLE: &str = "\u{9b}2J\u{202e}\u{2066}\u{2029}\u{61c}\u{200b}\u{ad}\u{e0041}lab";

/// What of it a process can have for a name.
const NAME_OF_PROCESS: &str = "\u{1b}[2J\u{9b}2J\u{202e}x";

/// Where the first record begins, and how long it is.
const RECORD: (u64, usize) = (8192, 256);

/// Nothing on either stream that a terminal obeys, or that nobody sees; but what was hostile is there, made
/// harmless.
#[track_caller]
fn harmless(outcome: &Outcome) {
    let text = format!("{}{}", outcome.stdout, outcome.stderr);
    let is_hostile =
        |c: char| c != '\n' && (c.is_control() || (HOSTILE.contains(c) && !c.is_ascii()) || c == '\u{2029}');
    let obeyed: Vec<char> = text.chars().filter(|&c| is_hostile(c)).collect();
    assert!(obeyed.is_empty(), "{obeyed:?} in {text:?}");
    assert!(!text.contains("panicked"), "{text}");
}

/// The same of a command, which ends with this status and has shown the name.
#[track_caller]
fn shows_harmlessly<A: AsRef<OsStr>>(
    site: &Site,
    words: impl IntoIterator<Item = A>,
    status: i32,
) -> Outcome {
    let outcome = site.test().args(words).outcome();
    harmless(&outcome);
    let shown = outcome.stdout.contains("2J") || outcome.stderr.contains("2J");
    assert!(shown, "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.ending, Ending::Status(status), "{}{}", outcome.stdout, outcome.stderr);
    outcome
}

const ANY: &str = r#"
    [repository.seats]
    limit = 1

    [repository.each]
    path  = "{command}-{arg1}.lock"
    limit = 1

    [[rule]]
    name      = "any"
    arguments = ["*"]
    acquire   = ["seats", "each"]
"#;

#[test]
fn a_name_that_is_no_plain_text_is_escaped_everywhere() {
    let site = Site::with_policy(ANY);
    let name = OsString::from_vec(NAME.to_vec());
    site.program("matlab");
    fs::rename(site.path("bin/matlab"), site.path("bin").join(&name))
        .expect("any name but a few can be a file's");
    let launch = site.test().args([OsStr::new("run"), OsStr::new("--"), &name, OsStr::new("-")]);
    let _running = launch.spawn();

    let plain = |text: &str, place: &str| {
        let odd: Vec<char> =
            text.chars().filter(|&c| c != '\n' && (c.is_control() || c == '\u{202e}')).collect();
        assert!(odd.is_empty(), "{place}: {odd:?} in {text:?}");
        assert!(text.contains("lab"), "{place}: {text:?}");
    };
    let refused = launch.outcome();
    plain(&refused.stderr, "the refusal");
    assert!(refused.stderr.starts_with("rungate: mat\\"), "{}", refused.stderr);
    for command in ["list", "status", "explain", "list --json", "status --json", "explain --json"] {
        let words: Vec<&str> = command.split(' ').collect();
        let mut test = site.test().args(&words);
        if words[0] == "explain" {
            test = test.args([OsStr::new("--"), &name, OsStr::new("a\u{1b}\nb")]);
        }
        let outcome = test.outcome();
        if words[0] != "status" {
            plain(&outcome.stdout, command);
        }
        if words.len() == 2 {
            serde_json::from_str::<serde_json::Value>(&outcome.stdout).expect(command);
        }
    }
    // The record is one line of the file.
    let content = fs::read(site.repository("seats.lock")).expect("the repository");
    let record = &content[8192..8192 + 256];
    plain(std::str::from_utf8(record).expect("a record is text"), "the record");
    assert_eq!(record.split(|&byte| byte == b'\n').count(), 2);

    // The file's name is made of safe characters, and nothing of it is another directory.
    let names: Vec<OsString> = fs::read_dir(site.repository(""))
        .expect("the directory")
        .map(|entry| entry.expect("a file").file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-%".contains(byte);
    assert!(names.iter().all(|name| name.as_bytes().iter().all(safe)), "{names:?}");
}

/// `..`, an empty value and a value that begins with `.` never reach the file system.
#[test]
fn no_value_leads_out_of_the_directory() {
    let site = Site::with_policy(&ANY.replace("{command}-{arg1}", "{arg1}"));
    site.program("matlab");
    for value in [
        "..",
        ".",
        "",
        ".hidden",
        "../../etc/passwd",
        "/etc/passwd",
        "a/../../b",
        "x\0".trim_end_matches('\0'),
    ] {
        let before = fs::read_dir(site.path("")).expect("the site").count();
        let outcome = site.test().args(["run", "--", "matlab", value]).outcome();
        assert_eq!(
            fs::read_dir(site.path("")).expect("the site").count(),
            before,
            "{value:?}: {}",
            outcome.stderr
        );
        for entry in fs::read_dir(site.repository("")).expect("the directory") {
            let name = entry.expect("a file").file_name();
            assert!(!name.as_bytes().starts_with(b"."), "{value:?} made {name:?}");
        }
    }
}

/// A value is made safe for a file name, and when anything was changed a short hash of the original is
/// appended, so that two values never share a file by accident.
#[test]
fn two_values_never_share_a_file() {
    let site = Site::with_policy(&ANY.replace("acquire   = [\"seats\", \"each\"]", "acquire   = [\"each\"]"));
    site.copy_of("/bin/sleep", "nap");
    site.script("hold", "#!/bin/sh\nexec cat\n");
    let values = ["a b", "a_b", "a/b", "a\nb", "a\u{e4}b", "A_b"];
    let running: Vec<_> =
        values.iter().map(|value| site.test().args(["run", "--", "hold", value]).spawn()).collect();
    assert_eq!(fs::read_dir(site.repository("")).expect("the directory").count(), values.len());
    drop(running);
}

/// The name of a lock file reaches whoever is refused because of it.
#[test]
fn the_name_of_a_lock_file_is_escaped_in_every_error() {
    let site = Site::with_policy(&seats(1, "", &["*"]));
    site.program("matlab");
    let file = site.path(format!("work/{HOSTILE}.lock"));
    let path = file.to_str().expect("a name in UTF-8");
    let all = |site: &Site| {
        shows_harmlessly(site, ["run", "--limit", "1", "--repository", path, "--", "matlab"], 74);
        shows_harmlessly(site, ["list", path], 74);
        shows_harmlessly(site, ["list", "--json", path], 74);
        shows_harmlessly(site, ["status", path], 74);
        shows_harmlessly(site, ["status", "--json", path], 74);
        shows_harmlessly(site, ["reset", path], 74);
        shows_harmlessly(site, ["exectimes", path, "1", "matlab"], 1);
        shows_harmlessly(site, ["exectimes", path, "check"], 1);
        shows_harmlessly(site, ["exectimes", path, "list"], 1);
    };
    fs::create_dir(&file).expect("a new directory");
    all(&site);
    fs::remove_dir(&file).expect("the directory");
    fs::write(&file, "").expect("a new file");
    shows_harmlessly(&site, ["list", path], 0);
    shows_harmlessly(&site, ["list", "--json", path], 0);
    fs::hard_link(&file, site.path("work/other")).expect("a second name");
    shows_harmlessly(&site, ["run", "--limit", "1", "--repository", path, "--", "matlab"], 74);
    let below = format!("{path}/below");
    shows_harmlessly(&site, ["run", "--limit", "1", "--repository", &below, "--", "matlab"], 74);
    // No control character gets into a policy's path; others do.
    let turned = SUBTLE.trim_start_matches('\u{9b}');
    fs::create_dir(site.path(format!("work/{turned}"))).expect("a new directory");
    site.policy(&seats(1, &format!("path = \"$DIR/work/{turned}\""), &["*"]));
    shows_harmlessly(&site, ["run", "--", "matlab"], 74);
    shows_harmlessly(&site, ["list"], 74);
}

/// A process chooses its name, and everybody who waits for a mutex that it holds is told it.
#[test]
fn the_name_of_a_process_is_escaped() {
    let site = Site::with_policy(&seats(1, "", &["*"]));
    site.program("matlab");
    let program = site.path("bin").join(NAME_OF_PROCESS);
    site.copy_of(site.helper("holder").to_str().expect("a plain path"), NAME_OF_PROCESS);
    let file = site.repository("seats.lock");
    fs::write(&file, "").expect("a new repository");
    let words =
        [file.as_os_str(), OsStr::new("posix"), OsStr::new("write"), OsStr::new("8:1"), OsStr::new("0:8")];
    let mut holder = site.test().program(&program).args(words).background();
    assert_eq!(holder.read_line(), "ready\n");
    let named = "(\\u{1b}[2J\\u{9b}2J\\u{202e}x)";
    let said = shows_harmlessly(&site, ["run", "--", "matlab"], 74).stderr;
    assert!(said.contains(&format!(" by PID {} {named} of ", holder.pid())), "{said}");
    for words in [&["list"][..], &["list", "--json"], &["exectimes", file.to_str().expect("UTF-8"), "list"]] {
        harmless(&site.test().args(words).outcome());
    }
    let listed = shows_harmlessly(&site, ["list", "--json"], 0).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed[0]["holders"][0]["command"], NAME_OF_PROCESS);
}

/// A record is what anybody wrote who can open the file.
#[test]
fn a_forged_record_is_escaped() {
    let site = Site::with_policy(&seats(1, "", &["*"]));
    site.program("matlab");
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(site.repository("seats.lock"))
        .expect("the repository");
    let mut record = [0; RECORD.1];
    file.read_exact_at(&mut record, RECORD.0).expect("a record");
    let mut record: Value = serde_json::from_slice(&record).expect("a record");
    for (key, text) in
        [("host", "\u{202e}h"), ("rule", "\u{200b}\u{2028}r"), ("command", "\u{1b}[2J\u{9b}2J\nc")]
    {
        record[key] = json!(text);
    }
    let text = record.to_string();
    assert!(text.len() < RECORD.1, "{text}");
    file.write_all_at(
        format!("{text:<0$}\n", RECORD.1 - 1 - (text.len() - text.chars().count())).as_bytes(),
        RECORD.0,
    )
    .expect("the record");
    shows_harmlessly(&site, ["run", "--", "matlab"], 75);
    shows_harmlessly(&site, ["list"], 0);
    let listed = shows_harmlessly(&site, ["list", "--json"], 0).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed[0]["holders"][0]["command"], "\u{1b}[2J\u{9b}2J\nc");
    for words in [
        &["status"][..],
        &["status", "--json"],
        &["metrics"],
        &["explain", "--", "matlab"],
        &["explain", "--json", "--", "matlab"],
        &["end", "--overdue", "--dry-run"],
    ] {
        harmless(&site.test().args(words).outcome());
    }
}

/// A log is shown to somebody else than whose commands it names, and may not be rungate's work at all.
#[test]
fn a_forged_log_is_escaped() {
    let site = Site::new();
    let event = |kind: &str| {
        json!({
            "time": 1_790_000_000_000_u64, "event": kind, "command": HOSTILE, "uid": 0, "pid": 7,
            "repositories": [HOSTILE], "rules": [HOSTILE], "seconds": 1.0, "status": HOSTILE,
        })
    };
    let log = site.path(format!("work/{HOSTILE}.log"));
    let text: String =
        ["started", "refused", "expired"].map(event).iter().map(|event| format!("{event}\n")).collect();
    fs::write(&log, text + HOSTILE).expect("a log");
    let file = log.to_str().expect("a name in UTF-8");
    for words in [
        &["history", file][..],
        &["history", "--json", file],
        &["report", file],
        &["report", "--json", file],
        &["report", "--html", "-", file],
    ] {
        let outcome = shows_harmlessly(&site, words, 0);
        if words[..2] == ["history", "--json"] {
            let line: Value =
                serde_json::from_str(outcome.stdout.lines().next().expect("a line")).expect("JSON");
            assert_eq!(line["command"], HOSTILE);
        }
    }
    shows_harmlessly(&site, ["history", &format!("{file}.none")], 71);
}

/// What rungate logs to a file is checked with less(1) and tail(1).
#[test]
fn what_is_logged_is_escaped() {
    let site = Site::with_policy(
        "log.to = \"$DIR/work/log\"\n[[rule]]\nname = \"no\"\ncommands = [\"*\"]\naction = \"deny\"\n",
    );
    site.program("matlab");
    shows_harmlessly(&site, ["run", "--as", HOSTILE, "--", "matlab"], 77);
    let text = fs::read_to_string(site.path("work/log")).expect("the log");
    harmless(&Outcome { ending: Ending::Status(0), stdout: text.clone(), stderr: String::new() });
    let event: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(event["command"], HOSTILE);
}

/// The faults of a user's policy are shown to root, and those of a drop-in to everybody.
#[test]
fn what_a_policy_says_is_escaped() {
    let site = Site::new();
    site.program("matlab");
    let all = |policy: &str, fault: i32| {
        let policy = policy.replace('@', &format!("\\u001b\\u007f{SUBTLE}"));
        site.policy(&policy);
        for words in [&["policy", "check"][..], &["policy", "check", "--json"]] {
            let outcome = site.test().args(words).outcome();
            harmless(&outcome);
            assert_eq!(outcome.ending, Ending::Status(i32::from(fault != 0)), "{}", outcome.stderr);
        }
        for words in [
            &["run", "--", "matlab"][..],
            &["explain", "-v", "--", "matlab"],
            &["explain", "--json", "--", "matlab"],
            &["policy", "show"],
            &["status"],
            &["metrics"],
        ] {
            let outcome = site.test().args(words).outcome();
            harmless(&outcome);
            if fault != 0 {
                assert_eq!(outcome.ending, Ending::Status(fault), "{words:?}: {}", outcome.stderr);
            }
        }
    };
    let rule = "[[rule]]\nname = \"r\"\ncommands = [\"matlab\"]\n";
    let plain = |text: &str| text.replace('@', SUBTLE);
    for fault in [
        "\"@\" = 1\n".to_owned(),
        format!("{rule}acquire = [\"@\"]\n"),
        format!("{rule}action = \"@\"\n"),
        format!("{rule}wait = \"@\"\n"),
        format!("{rule}action = \"deny\"\nusers = [\"[@\"]\n"),
        format!("{rule}action = \"deny\"\nusers = [\"!@\"]\n"),
        format!("{rule}action = \"deny\"\ncommands = [\"[@\"]\n"),
        format!("{rule}action = \"deny\"\nwhen = [\"@\"]\n"),
        format!("{rule}action = \"deny\"\nenvironment = {{ \"@=\" = false }}\n"),
        "[defaults]\ntime_zone = \"@\"\n".to_owned(),
        "[repository.\"@\"]\nlimit = 1\n".to_owned(),
        "[repository.r]\nlimit = \"@\"\n".to_owned(),
        "[repository.r]\nlimit = 1\npath = \"{@}\"\n".to_owned(),
        "[repository.r]\nlimit = 1\ncreate_mode = \"@\"\n".to_owned(),
        plain("limit = @\n"),
        plain("x = [ # @ \n"),
    ] {
        all(&fault, 78);
    }
    // No fault, but warnings and listings.
    all(
        "[[rule]]\nname = \"@\"\nusers = [\"@\"]\ncommands = [\"matlab\"]\naction = \"deny\"\nmessage = \"@\"\n",
        0,
    );
    let file = site.path(format!("work/{HOSTILE}.toml"));
    fs::write(&file, "limit = 1\n").expect("a policy");
    for words in [&["policy", "check"][..], &["policy", "check", "--json"]] {
        let words = words.iter().map(OsStr::new).chain([file.as_os_str()]);
        let outcome = site.test().args(words).outcome();
        harmless(&outcome);
        assert!(outcome.ending != Ending::Status(0));
    }
}

/// A name of a user or group can come from a directory service that others fill.
#[test]
fn the_name_of_a_user_is_escaped() {
    needs_root!();
    let site = Site::with_policy(&seats(1, "", &["*"]));
    site.program("matlab");
    site.account("\u{1b}[2J\u{202e}ann", &["\u{9b}2Jcad"]);
    site.test().user("\u{1b}[2J\u{202e}ann").args(["list"]).outcome();
    shows_harmlessly(&site, ["explain", "--user", "\u{1b}[2J\u{202e}ann", "--", "matlab"], 0);
    let mine = site.test().user("\u{1b}[2J\u{202e}ann").args(["run", "--", "matlab"]);
    let _holder = mine.spawn();
    shows_harmlessly(&site, ["list"], 0);
    shows_harmlessly(&site, ["list", "--json"], 0);
    shows_harmlessly(&site, ["run", "--", "matlab"], 75);
}

/// What somebody typed is repeated to them, and to whoever reads the output of their script.
#[test]
fn what_was_typed_is_escaped() {
    let site = Site::with_policy(&seats(1, "", &["*"]));
    site.program("matlab");
    for words in [
        &[HOSTILE][..],
        &["--", HOSTILE],
        &["run", "--", HOSTILE],
        &["run", HOSTILE],
        &["run", "--wait", HOSTILE, "--", "matlab"],
        &["run", "--hold", HOSTILE, "--", "matlab"],
        &["run", "--limit", HOSTILE, "--", "matlab"],
        &["run", "--policy", HOSTILE, "--", "matlab"],
        &["explain", "--user", HOSTILE, "--", "matlab"],
        &["explain", "--at", HOSTILE, "--", "matlab"],
        &["list", HOSTILE],
        &["status", HOSTILE],
        &["acquire", "--path", HOSTILE],
        &["acquire", "--fd", "0", "--wait", HOSTILE, HOSTILE],
        &["prune", HOSTILE],
        &["reset", HOSTILE],
        &["end", "--overdue", HOSTILE],
        &["history", HOSTILE],
        &["metrics", "--output", HOSTILE, HOSTILE],
        &["policy", HOSTILE],
        &["policy", "check", HOSTILE],
        &["policy", "check", "--from", HOSTILE],
        &["shim", "install", HOSTILE],
        &["shim", "install", "$DIR/bin", HOSTILE],
        &["shim", "remove", "$DIR/bin", HOSTILE],
        &["shim", "list", HOSTILE],
        &["completions", HOSTILE],
        &["init", HOSTILE],
        &["exectimes", HOSTILE, HOSTILE, HOSTILE],
        &["exectimes", "$DIR/work/x", "1", HOSTILE],
    ] {
        let outcome = site.test().args(words).outcome();
        harmless(&outcome);
    }
}
