//! `rungate history` prints the events of logs as a table, or as JSON lines.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use crate::support::{Account, Ending, Site, Test, ended, eventually, log_of, needs_root, skip, started};

fn history(site: &Site, options: &[&str]) -> Test {
    site.test().args(["history", "$DIR/work/log.jsonl"]).args(options)
}

#[test]
fn history_is_a_table() {
    let site = Site::new();
    log_of(
        &site,
        &[
            started(7),
            json!({ "event": "refused", "repositories": ["disk"], "seconds": 2.5, "status": "timed out", "command": "o\u{1b}dd" }),
            json!({ "event": "expired", "repositories": ["disk"], "seconds": 61.0, "status": "SIGKILL", "holder": 7 }),
        ],
    );
    history(&site, &[])
        .stdout(
            "
            TIME[gap]EVENT   USER PID COMMAND[gap]SECONDS DETAILS
            [time] started root   7 sync[gap]disk=1 net=2,3
            [time] refused root 101 o\\u{1b}dd[gap]2.5 disk, timed out
            [time] expired root 102 sync[gap]61.0 disk, SIGKILL, PID 7
            ",
        )
        .status(0);
    // As JSON it is what was written.
    let lines = history(&site, &["--json"]).outcome().stdout;
    let first: Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&first["event"], &first["pid"]), (&json!("started"), &json!(7)));
    assert_eq!(lines.lines().count(), 3);
}

/// Where the log is to be replayed it says whose table each was, and they are called as `list` calls them.
#[test]
fn members_are_shown_where_the_log_tells_them() {
    let rest = r#"
        [repository.all]
        limit = 2

        [repository.each]
        per   = ["user", "directory"]
        limit = 1

        [[rule]]
        name     = "one of each, two of all"
        commands = ["matlab"]
        acquire  = ["all", "each"]
    "#;
    let log = "[log]\nto = \"$DIR/work/log.jsonl\"\nreplay = ";
    let site = Site::with_policy(&format!("{log}true\n{rest}"));
    site.program("matlab");
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    let refused = || site.test().args(["run", "--", "matlab"]).stderr("...\n").status(75);
    refused();
    let own =
        format!("{}, {}", Account::own().name, site.path("work").canonicalize().expect("it is").display());
    let details = [format!("all=1 each [{own}]=1"), format!("each [{own}]")];
    let shown = |last: &str| {
        let row = |details: &str| format!("[time] [..] matlab[gap]{details}\n");
        let rows: String = details.iter().map(String::as_str).chain([last]).map(row).collect();
        site.test().args(["history"]).stdout(&format!("TIME[..]\n{rows}")).status(0);
    };
    site.policy(&format!("{log}false\n{rest}"));
    refused();
    shown("each");
}

/// A log that was cut by rotation, or that something else writes to, still tells what it can.
#[test]
fn lines_that_are_no_events_are_counted() {
    let site = Site::new();
    log_of(&site, &[started(7)]);
    let text = std::fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    site.write("work/log.jsonl", &format!("repositories\":[]}}\n{text}not JSON\n"));
    let said = "rungate: $DIR/work/log.jsonl: 2 lines are no events of rungate\n";
    history(&site, &[]).stdout("TIME[..]\n[time] started root   7 sync[..]\n").stderr(said).status(0);
    site.write("work/log.jsonl", "");
    history(&site, &[]).stderr("rungate: the log has no events\n").status(0);
    let said = "rungate: the log $DIR/work/none cannot be read: No such file or directory\n";
    site.test().args(["history", "$DIR/work/none"]).stderr(said).status(71);
}

/// The log that the policy names, where none is given; and where it names none, that is said.
#[test]
fn the_log_of_the_policy_is_the_one_that_is_meant() {
    let site = Site::with_policy("[log]\nto = \"$DIR/work/log.jsonl\"\n");
    log_of(&site, &[started(7)]);
    site.test().args(["history"]).stdout("TIME[..]\n[time] started root   7 sync[..]\n").status(0);
    site.policy("[log]\nto = \"off\"\n");
    let said = "rungate: the policy keeps no log\n[..]rungate history FILE[..]\n";
    site.test().args(["history"]).stderr(said).status(64);
}

/// Anybody who may append to a log can write any number into it.
#[test]
fn forged_numbers_stop_nobody() {
    let site = Site::with_policy("[log]\nto = \"$DIR/work/log.jsonl\"\n");
    let mut events = Vec::new();
    for (pid, seconds) in (1..).zip([1e300, -1e300, 1e19, -1.0, 1e18, f64::MIN_POSITIVE, 20.0]) {
        for forged in [seconds, 30.0] {
            events.push(json!({ "event": "waited", "pid": pid, "seconds": forged }));
            events.push(started(pid));
            events.push(ended(pid, forged));
        }
    }
    events.push(
        json!({ "event": "expired", "pid": i32::MIN, "uid": u32::MAX, "seconds": 1e300, "holder": i32::MAX }),
    );
    log_of(&site, &events);
    let path = site.path("work/log.jsonl");
    let text = std::fs::read_to_string(&path).expect("the log");
    let times = text.replacen("\"time\":1790000000000", &format!("\"time\":{}", u64::MAX), 1);
    assert_ne!(text, times, "a time is forged too");
    std::fs::write(&path, times.replacen("\"time\":1790000001000", "\"time\":0", 1)).expect("the log");
    for options in [&["--json"][..], &[]] {
        let outcome = history(&site, options).outcome();
        assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(0), ""), "{options:?}");
    }
    assert_eq!(site.test().args(["metrics"]).outcome().ending, Ending::Status(0));
    let report =
        |options: &[&str]| site.test().args(["report", "$DIR/work/log.jsonl"]).args(options).outcome();
    for options in [&["--html", "-"][..], &["--json"], &[]] {
        assert_eq!(report(options).ending, Ending::Status(0), "{options:?}");
    }
    let figures: Value = serde_json::from_str(&report(&["--json"]).stdout).expect("JSON");
    let runs = &figures["programs"]["disk"]["runs"];
    assert_eq!(runs["longest"], 30.0, "{figures:#}");
    assert!(
        report(&[]).stdout.contains("2 events with an impossible time were left out"),
        "{}",
        report(&[]).stdout
    );
}

/// No number of a few forged lines ends a tool, takes its memory, or keeps honest events out.
#[test]
fn forged_decisions_and_ends_cost_nothing() {
    let (most, now, far) = (u64::MAX, 1_790_000_000_000_000_u64, 7_258_118_399_999_u64);
    let launch = |kind: &str, pid: u32, seen: Value| {
        let mut table = json!({ "repository": "disk", "used": 1, "limit": 9 });
        table.as_object_mut().expect("an object").extend(seen.as_object().expect("an object").clone());
        let repository = if kind == "started" { "disk=1" } else { "disk" };
        json!({ "event": kind, "pid": pid, "repositories": [repository], "tables": [table], "launch": { "groups": [] } })
    };
    let with = |mut event: Value, field: &str, value: Value| {
        event[field] = value;
        event
    };
    let start = |pid| launch("started", pid, json!({}));
    let honest = with(start(5), "time", json!(now / 1000 + 9000));
    let cases = [
        // It ended in the year 584554.
        (vec![start(7), json!({ "event": "ended", "pid": 7, "between": [most - 1, most - 1] })], 2),
        // The last event is of the year 2199.
        (vec![start(7), json!({ "event": "waited", "pid": 6, "seconds": 1.0, "time": far })], 2),
        // It was decided then, or now, and logged at another time.
        (vec![start(7), with(start(6), "decided", json!(far * 1000))], 3),
        (vec![start(7), with(with(start(6), "time", json!(most)), "decided", json!(now))], 2),
        (
            vec![
                launch("started", 7, json!({ "lent": most })),
                launch("started", 6, json!({ "lent": most })),
            ],
            3,
        ),
        (vec![launch("started", 7, json!({ "used": most, "limit": most }))], 2),
        (vec![launch("refused", 7, json!({ "limit": most }))], 2),
    ];
    for (mut events, launches) in cases {
        let site = Site::with_policy(
            "[log]\nto = \"$DIR/work/log.jsonl\"\n[repository.disk]\nlimit = 9\n[[rule]]\nacquire = [\"disk\"]\n",
        );
        events.push(honest.clone());
        log_of(&site, &events);
        let log = "$DIR/work/log.jsonl";
        let ends = |command: &[&str]| {
            let limited = ["prlimit", "--as=300000000", "--cpu=20"];
            let outcome = site.test().args(command).through(limited).outcome();
            assert_eq!(outcome.ending, Ending::Status(0), "{command:?} {events:?}: {}", outcome.stderr);
            outcome.stdout
        };
        ends(&["metrics"]);
        ends(&["report", log]);
        ends(&["report", log, "--html", "-"]);
        ends(&["simulate", "$DIR/policy.toml", log]);
        let report: Value = serde_json::from_str(&ends(&["report", log, "--json"])).expect("JSON");
        assert_eq!(report["programs"]["disk"]["launches"], launches, "{events:?}: {report:#}");
    }
}

/// Slots that launches took as they said cost memory: no more of them are followed than sites have.
#[test]
fn slots_of_many_forged_launches_take_little_memory() {
    let site = Site::new();
    let launch = |number: u32| {
        let repository = format!("r{}=1-4096", number % 900);
        json!({ "event": "started", "pid": number + 2, "repositories": [repository],
            "tables": [{ "repository": format!("r{}", number % 900), "used": 1, "limit": 2, "held": "1" }] })
    };
    log_of(&site, &(0..1500).map(launch).collect::<Vec<Value>>());
    let report = site.test().args(["report", "$DIR/work/log.jsonl", "--json"]);
    let outcome = report.through(["prlimit", "--as=200000000", "--cpu=60"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(report["all"]["started"], 1500);
}

/// A line that others made as long as they liked costs no memory: it is skipped, and that is said.
#[test]
fn a_line_without_end_is_skipped() {
    let site = Site::with_policy("[log]\nto = \"$DIR/work/log.jsonl\"\n");
    log_of(&site, &[started(7)]);
    let path = site.path("work/log.jsonl");
    let event = std::fs::read(&path).expect("the log");
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("the log");
    // More than a program may have.
    let end = 400 << 20;
    file.set_len(end).expect("a file with a hole");
    file.write_all_at(b"\n", end).expect("the end of the line");
    file.write_all_at(&event, end + 1).expect("another event");
    let said = "rungate: $DIR/work/log.jsonl: 1 line is too long for an event, and was skipped\n";
    let limited = ["prlimit", "--as=300000000"];
    let row = "[time] started root   7 sync[..]\n";
    let history = history(&site, &[]).through(limited).stderr(said);
    history.stdout(&format!("TIME[..]\n{row}{row}")).status(0);
    let metrics = site.test().args(["metrics"]).through(limited).outcome();
    assert_eq!((metrics.ending, metrics.stderr), (Ending::Status(0), site.expand(said)));
    assert!(metrics.stdout.contains("rungate_starts_total{repository=\"disk\"} 2\n"), "{}", metrics.stdout);
}

/// Three users, one of whom waits.
fn three(site: &Site) {
    let event = |uid: u32, command: &str, mut event: Value| {
        event["uid"] = json!(uid);
        event["command"] = json!(command);
        event
    };
    log_of(
        site,
        &[
            event(0, "sync", json!({ "event": "waited", "pid": 7, "seconds": 5.0 })),
            event(0, "sync", started(7)),
            event(1, "matlab", json!({ "event": "started", "pid": 8, "repositories": ["matlab=1"] })),
            event(2, "matlab-2", json!({ "event": "would-refuse", "pid": 9, "repositories": ["matlab"] })),
            event(0, "sync", ended(7, 3.0)),
            event(1, "matlab", ended(8, 4.0)),
        ],
    );
}

/// `rungate end` logs the table of a member as `disk [ann]`.
#[test]
fn a_repository_is_found_with_its_members() {
    let site = Site::new();
    let ended = |pid, repository| json!({ "event": "evicted", "pid": pid, "holder": 9, "status": "SIGINT", "repositories": [repository] });
    let events = [("disk [ann]", 7), ("disk", 8), ("diskette [ann]", 9)];
    log_of(&site, &events.map(|(repository, pid)| ended(pid, repository)));
    assert_eq!(pids(&site, &["--repository", "disk"]), [7, 8]);
    assert_eq!(pids(&site, &["--repository", "disk [ann]"]), [7]);
    // Other events have the member in the facts about the table.
    let refused = |pid, member| {
        let table = json!({ "repository": "disk", "member": member, "limit": 1 });
        json!({ "event": "refused", "pid": pid, "repositories": ["disk"], "tables": [table] })
    };
    log_of(&site, &[refused(5, "uid 0"), refused(6, "uid 1")]);
    assert_eq!(pids(&site, &["--repository", "disk"]), [5, 6]);
    assert_eq!(pids(&site, &["--repository", "disk [root]"]), [5]);
}

/// The pids of the events that are left.
fn pids(site: &Site, options: &[&str]) -> Vec<u64> {
    let lines = history(site, options).args(["--json"]).outcome().stdout;
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    events.map(|event| event["pid"].as_u64().expect("a number")).collect()
}

#[test]
fn what_is_asked_for_is_what_is_shown() {
    let site = Site::new();
    three(&site);
    let case = |options: &[&str], expected: &[u64]| assert_eq!(pids(&site, options), expected, "{options:?}");
    case(&[], &[7, 7, 8, 9, 7, 8]);
    case(&["--user", "root"], &[7, 7, 7]);
    case(&["--user", "1"], &[8, 8]);
    case(&["--command", "matlab*"], &[8, 9, 8]);
    case(&["--command", "matlab"], &[8, 8]);
    // Waits and ends go with the start that they belong to.
    case(&["--repository", "disk"], &[7, 7, 7]);
    case(&["--repository", "matlab"], &[8, 9, 8]);
    // One event each second, from 14:13:20 on.
    case(&["--since", "2026-09-21T14:13:22Z"], &[8, 9, 7, 8]);
    case(&["--until", "2026-09-21T14:13:22Z"], &[7, 7]);
    case(&["--since", "2026-09-20", "--until", "2026-09-21T14:13:21Z"], &[7]);
    case(&["--user", "root", "--repository", "matlab"], &[]);
    history(&site, &["--user", "root", "--repository", "matlab"])
        .stderr("rungate: the log has no matching event\n")
        .status(0);
    site.test()
        .args(["history", "--user", "nobody-here"])
        .stderr("rungate: there is no user \"nobody-here\"\n")
        .status(64);
    let said = "rungate: --since takes a time such as 14:02, yesterday, 2026-11-20, \"2026-11-20 14:02\" or 7d, not \"soon\"\n";
    site.test().args(["history", "--since", "soon"]).stderr(said).status(64);
}

/// An event of now is younger than an hour, and of today but for the moments around midnight.
#[test]
fn a_length_of_time_is_one_before_now() {
    let site = Site::with_policy("[log]\nto = \"$DIR/work/log.jsonl\"\n");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let event = |pid: u64, ago: u64| {
        format!(
            "{}\n",
            json!({ "time": (now.as_secs() - ago) * 1000, "event": "started", "command": "sync", "uid": 0, "pid": pid })
        )
    };
    site.write("work/log.jsonl", &[event(1, 8 * 86_400), event(2, 7200), event(3, 60)].concat());
    assert_eq!(pids(&site, &["--since", "1h"]), [3]);
    assert_eq!(pids(&site, &["--since", "7d"]), [2, 3]);
    assert_eq!(pids(&site, &["--until", "1h ago"]), [1, 2]);
}

/// Several hosts' logs are one, in the order of time; and what comes through a pipe is read as it comes.
#[test]
fn several_logs_are_one() {
    let site = Site::new();
    let event = |pid: u64, second: u64, host: &str| {
        let time = 1_790_000_000_000 + second * 1000;
        format!(
            "{}\n",
            json!({ "time": time, "event": "started", "command": "sync", "uid": 0, "pid": pid, "host": host })
        )
    };
    site.write("work/log.jsonl", &[event(1, 1, "a"), event(3, 3, "a"), event(4, 4, "a")].concat());
    site.write("work/b.jsonl", &event(2, 2, "b"));
    assert_eq!(pids(&site, &["$DIR/work/b.jsonl", "-"]), [1, 2, 3, 4]);
    let lines = history(&site, &["-", "--json"]).stdin(event(2, 2, "c")).outcome().stdout;
    assert_eq!(lines.lines().count(), 4, "{lines}");
    assert!(lines.lines().nth(1).expect("a line").contains("\"host\":\"c\""), "{lines}");
}

/// Logs that rotation has compressed with gzip(1) are read as they were.
#[test]
fn logs_that_rotation_compressed_are_read_as_they_were() {
    let site = Site::new();
    let line = |pid: u64| {
        let event =
            json!({ "time": pid * 1000, "event": "started", "command": "sync", "uid": 0, "pid": pid });
        format!("{event}\n")
    };
    let packed = |text: &str| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(text.as_bytes()).expect("memory can be written");
        packer.finish().expect("memory can be written")
    };
    site.write("work/log.jsonl", &line(3));
    // Two that were joined are one; and what a file is called makes no difference.
    let joined = [packed(&line(1)), packed(&line(2))].concat();
    for name in ["log.jsonl.2.gz", "old"] {
        fs::write(site.path("work").join(name), &joined).expect("a log");
        assert_eq!(pids(&site, &[&format!("$DIR/work/{name}")]), [1, 2, 3]);
    }
    let piped = site.test().args(["history", "--json", "-"]).stdin(&joined).outcome().stdout;
    assert_eq!(piped.lines().count(), 2, "{piped}");
    // One that was cut off is said to be so.
    fs::write(site.path("work/old"), &joined[..joined.len() - 9]).expect("a log");
    history(&site, &["$DIR/work/old"])
        .stderr("rungate: the log $DIR/work/old cannot be read: it is compressed, and damaged or cut off\n")
        .status(71);
}

/// What logger(1) writes in the name of rungate, in the two forms that syslog's files have.
#[test]
fn syslogs_file_is_read_and_other_programs_lines_are_passed_over() {
    let site = Site::new();
    let event =
        "event=refused command=\"mat lab\" uid=0 pid=7 host=ws17 repositories=\"seats disk\" rules=\"a; b\"";
    site.write(
        "work/log.jsonl",
        &format!(
            "Sep 21 14:13:20 ws17 cron[3]: (root) CMD (true)\nSep 21 14:13:21 ws17 rungate[7]: {event}\n\
             2026-09-21T14:13:22.000000+00:00 ws17 rungate[7]: {event} seconds=2.500 status=\"timed out\"\n"
        ),
    );
    let row = "[time] refused root   7 mat lab[gap]";
    history(&site, &[])
        .stdout(&format!("TIME[..]\n{row}seats disk\n{row}2.5 seats disk, timed out\n"))
        .status(0);
}

/// The journal itself, where systemd's is installed: the entry of a real refusal, and one that somebody else
/// forged.
#[test]
fn the_journal_is_read() {
    needs_root!();
    let journald = std::path::Path::new("/usr/lib/systemd/systemd-journald");
    if !journald.exists() {
        return skip("systemd-journald is not installed");
    }
    // One event is longer than journalctl shows without being asked to.
    let rules: Vec<String> = (0..18).map(|number| format!("{number}; {}", "r".repeat(90))).collect();
    let mut policy = "[log]\nto = \"journald\"\nreplay = true\n[repository.one]\nlimit = 1\n".to_owned();
    let long = "x".repeat(1800);
    for rule in &rules {
        policy += &format!(
            "[[rule]]\nname = \"{rule}\"\ncommands = [\"matlab\"]\narguments = [\"{long}\"]\nacquire = [\"one\"]\n"
        );
    }
    let site = Site::with_policy(&policy);
    site.script("matlab", "#!/bin/sh\n");
    // A /run and a /var/log/journal of its own, which end with it.
    let script = "
        mount -t tmpfs none /run && mount -t tmpfs none /var/log && mkdir -p /run/log/journal /run/systemd/journal && cp /etc/machine-id /run/ || exit 9
        /usr/lib/systemd/systemd-journald & daemon=$!
        i=0; until [ -S /run/systemd/journal/socket ]; do i=$((i+1)); [ $i -lt 12000 ] || exit 8; sleep 0.01; done
        \"$0\" run -- matlab \"$1\"
        printf 'MESSAGE=event=refused command=forged uid=0 pid=7\\nSYSLOG_IDENTIFIER=rungate\\n' |
          setpriv --reuid=1 --regid=1 --clear-groups logger --journald
        journalctl --sync >/dev/null 2>&1; kill -USR1 $daemon
        \"$0\" history --json; status=$?
        kill $daemon; wait $daemon; exit $status";
    let outcome =
        site.test().program("unshare").args(["--mount", "--propagation", "private", "sh", "-c", script]);
    let outcome = outcome.args([site.rungate()]).args([long]).outcome();
    let events: Vec<Value> =
        outcome.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    let commands: Vec<&Value> = events.iter().map(|event| &event["command"]).collect();
    assert_eq!(commands, ["matlab"], "{} {}", outcome.stdout, outcome.stderr);
    assert_eq!(events[0]["rules"], json!(rules));
}

/// `--follow`: print each event as it is logged. The log is followed by its name, also when rotation renames
/// the file or cuts it off.
#[test]
fn events_are_followed_over_rotations() {
    let site = Site::with_policy(
        "
        [log]
        to     = \"$DIR/work/log.jsonl\"

        [repository.seats]
        limit = 1

        [[rule]]
        acquire = [\"seats\"]
        ",
    );
    for command in ["before", "plain", "renamed", "after"] {
        site.script(command, "#!/bin/sh\n");
    }
    let start = |command: &str| site.test().args(["run", "--", command]).background();
    let log = site.path("work/log.jsonl");
    let rotate = |name: &str| fs::rename(&log, site.path(name)).expect("it is renamed");
    let end = |command: &str| drop(start(command).end());
    end("before");
    let since = ["history", "--follow", "--json", "--since", "7d"];
    let mut all = site.test().args(since).background();
    let mut new = site.test().args(["history", "-f"]).background();
    let heading = new.read_line();
    assert!(heading.starts_with("TIME   EVENT        USER         PID COMMAND"), "{heading}");
    let mut comes = |command: &str| {
        let event: Value = serde_json::from_str(&all.read_line()).expect("JSON");
        assert_eq!((&event["event"], &event["command"]), (&json!("started"), &json!(command)), "{event}");
        assert_eq!(event["format"], 1);
        if command != "before" {
            let row = new.read_line();
            assert!(
                row.contains(" started ") && row.contains(command) && row.ends_with(" seats=1\n"),
                "{row}"
            );
        }
    };
    comes("before");
    end("plain");
    comes("plain");
    // As logrotate does with `create`: launches open the file again, and who had it open writes into the old.
    let mut old = fs::OpenOptions::new().append(true).open(&log).expect("the log");
    rotate("work/log.jsonl.1");
    end("renamed");
    comes("renamed");
    let late = fs::read_to_string(&log).expect("the log").replace("renamed", "late");
    old.write_all(late.as_bytes()).expect("the old log");
    comes("late");
    end("renamed");
    comes("renamed");
    // As with `copytruncate`: the file is shorter than what was read of it.
    fs::write(&log, "").expect("the log");
    end("after");
    comes("after");
    // A line comes when its end has come.
    let line = fs::read_to_string(&log).expect("the log").replace("after", "cut");
    let (begin, rest) = line.split_at(line.len() / 2);
    let mut file = fs::OpenOptions::new().append(true).open(&log).expect("the log");
    file.write_all(begin.as_bytes()).expect("half a line");
    file.write_all(rest.as_bytes()).expect("the other half");
    comes("cut");
    // What was rotated before is read first, and the file that is open is not read twice.
    fs::hard_link(&log, site.path("work/log.jsonl.0")).expect("another name");
    let mut again = site.test().args(since).background();
    let mut next = || -> Value { serde_json::from_str(&again.read_line()).expect("JSON") };
    let seen: Vec<Value> = (0..5).map(|_| next()["command"].clone()).collect();
    assert_eq!(seen, ["before", "plain", "late", "after", "cut"]);
    end("plain");
    assert_eq!(next()["command"], "plain");
}

/// Of a log that does not exist yet, and of one that cannot be followed.
#[test]
fn what_can_be_followed_is_said() {
    let site = Site::with_policy("[log]\nto = \"$DIR/work/log.jsonl\"\n");
    let mut waiting = site.test().args(["history", "--follow"]).background();
    assert!(waiting.read_line().starts_with("TIME"));
    log_of(&site, &[started(7)]);
    assert!(waiting.read_line().contains(" started "));
    let said = "rungate: --follow reads files, not standard input\n";
    site.test().args(["history", "--follow", "-"]).stderr(said).status(64);
    site.test().args(["history", "--follow", "--until", "7d"]).stderr("...\n").status(64);
    // Nobody reads any more: the next event ends it.
    let shell = "trap '' PIPE; rungate history --follow | head -n 2 | tail -n 1";
    site.rungate_in_bin();
    let event = fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    let mut read = site.test().program("/bin/sh").args(["-c", shell]).background();
    let mut log = fs::OpenOptions::new().append(true).open(site.path("work/log.jsonl")).expect("the log");
    eventually("the end after one row", || {
        log.write_all(event.as_bytes()).expect("the log");
        read.is_zombie().then_some(())
    });
    assert!(read.end().stdout.contains(" started "));
}

/// On a full disk a line ends anywhere, and the next event is appended to it: only the first one is lost.
#[test]
fn an_event_behind_half_a_line_is_read() {
    needs_root!();
    let site = Site::with_policy(
        "
        [log]
        to = \"$DIR/work/disk/log.jsonl\"

        [repository.seats]
        limit = 1

        [[rule]]
        commands = [\"job\", \"later\"]
        acquire  = [\"seats\"]
        ",
    );
    for command in ["job", "later"] {
        site.script(command, "#!/bin/sh\nexit 0\n");
    }
    std::fs::create_dir(site.path("work/disk")).expect("a directory");
    let rungate = site.rungate().display().to_string();
    // A page of the file is half full when there is no room for the next one.
    let script = format!(
        "mount -t tmpfs -o size=16k none $DIR/work/disk && cd $DIR/work/disk
        for size in 16k 20k 24k 28k; do
            mount -o remount,size=$size none $DIR/work/disk
            for number in $(seq 200); do {rungate} run -- job; done
            # A line may end with the page.
            [ -z \"$(tail -c 1 log.jsonl)\" ] || break
        done
        mount -o remount,size=64k none $DIR/work/disk
        {rungate} run -- later
        exec {rungate} history --json log.jsonl"
    );
    let outcome = site
        .test()
        .program("/usr/bin/unshare")
        .args(["--mount", "sh", "-c", &site.expand(&script)])
        .outcome();
    let last = outcome.stdout.lines().last().unwrap_or_default();
    assert!(last.contains("\"later\""), "{outcome:?}");
}
