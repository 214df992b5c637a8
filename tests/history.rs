//! "`rungate history` prints the JSON Lines file as a table and, with `--summary`, for each rule and repository: starts, refusals,
//! waits (median, 95th percentile, longest), run times where they are known, expiries, and what they suggest."

use serde_json::{Value, json};

use crate::support::{Site, Test};

/// A log with these events, one each second.
fn log(site: &Site, events: &[Value]) {
    let mut text = String::new();
    for (second, event) in events.iter().enumerate() {
        let mut event = event.clone();
        event["time"] = json!(1_790_000_000_000_u64 + second as u64 * 1000);
        for (field, value) in [("uid", json!(0)), ("command", json!("sync")), ("pid", json!(100 + second))] {
            if event[field].is_null() {
                event[field] = value;
            }
        }
        text += &format!("{event}\n");
    }
    site.write("work/log.jsonl", &text);
}

fn history(site: &Site, options: &[&str]) -> Test {
    site.test().args(["history", "$DIR/work/log.jsonl"]).args(options)
}

fn started(pid: i32) -> Value {
    json!({ "event": "started", "pid": pid, "repositories": ["disk=1", "net=2,3"], "rules": ["nightly"] })
}

fn ended(pid: i32, seconds: f64) -> Value {
    json!({ "event": "ended", "pid": pid, "seconds": seconds, "status": "0" })
}

#[test]
fn history_is_a_table() {
    let site = Site::new();
    log(
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

/// A log that was cut by rotation, or that something else writes to, still tells what it can.
#[test]
fn lines_that_are_no_events_are_counted() {
    let site = Site::new();
    log(&site, &[started(7)]);
    let text = std::fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    site.write("work/log.jsonl", &format!("repositories\":[]}}\n{text}not JSON\n"));
    let said = "rungate: $DIR/work/log.jsonl: 2 lines are no events of rungate\n";
    history(&site, &[]).stdout("TIME[..]\n[time] started root   7 sync[..]\n").stderr(said).status(0);
    site.write("work/log.jsonl", "");
    history(&site, &[]).status(0);
    let said = "rungate: the log $DIR/work/none cannot be read: No such file or directory\n";
    site.test().args(["history", "$DIR/work/none"]).stderr(said).status(71);
}

/// The log that the policy names, where none is given; and where it names none, that is said.
#[test]
fn the_log_of_the_policy_is_the_one_that_is_meant() {
    let site = Site::with_policy("[log]\nto = \"$DIR/work/log.jsonl\"\nevents = \"all\"\n");
    log(&site, &[started(7)]);
    site.test().args(["history"]).stdout("TIME[..]\n[time] started root   7 sync[..]\n").status(0);
    site.policy("[log]\nto = \"syslog\"\n");
    let said = "rungate: the policy logs to no file of JSON lines\n[..]rungate history FILE[..]\n";
    site.test().args(["history"]).stderr(said).status(64);
}

#[test]
fn a_summary_adds_up() {
    let site = Site::new();
    let mut events = Vec::new();
    for run in 1..=20 {
        events.push(json!({ "event": "waited", "pid": run, "seconds": f64::from(run) }));
        events.push(started(run));
        events.push(ended(run, f64::from(run) * 10.0));
    }
    events.push(json!({ "event": "refused", "repositories": ["disk"], "rules": ["nightly"] }));
    events.push(json!({ "event": "too-soon", "repositories": ["disk"], "rules": ["nightly"] }));
    events.push(json!({ "event": "would-refuse", "repositories": ["net"], "rules": ["other"] }));
    events.push(json!({ "event": "expired", "repositories": ["disk"], "holder": 9 }));
    log(&site, &events);
    history(&site, &["--summary"])
        .stdout(
            "
            REPOSITORY STARTS REFUSED TOO SOON EXPIRED WAIT MEDIAN/95%/MAX RUN MEDIAN/95%/MAX
            disk           20       1        1       1 [..]
            net            20       1        0       0 [..]

            RULE    STARTS REFUSED TOO SOON EXPIRED WAIT MEDIAN/95%/MAX RUN MEDIAN/95%/MAX
            nightly     20       1        1       0 [..]
            other        0       1        0       0 [..]

            ...
            ",
        )
        .status(0);
    let summary: Value =
        serde_json::from_str(&history(&site, &["--summary", "--json"]).outcome().stdout).expect("JSON");
    let disk = &summary["repositories"]["disk"];
    for (name, count, median, p95, longest) in
        [("waits", 20, 10.0, 19.0, 20.0), ("runs", 20, 100.0, 190.0, 200.0)]
    {
        let figures = &disk[name];
        assert_eq!(figures["count"], count, "{name}: {figures}");
        let close = |field: &str, expected: f64| {
            let value = figures[field].as_f64().expect("a number");
            assert!((value - expected).abs() <= expected / 10.0, "{name} {field}: {figures}");
        };
        close("median", median);
        close("p95", p95);
        close("longest", longest);
    }
    // Well above what was ever seen, with the reason and the numbers; and nothing was changed.
    let suggestion = disk["suggestions"][0].as_str().expect("a suggestion");
    assert!(suggestion.starts_with("expire_after = \""), "{suggestion}");
    assert!(suggestion.contains("20 runs") && suggestion.contains("3m20s"), "{suggestion}");
}

/// A number that was given to another process does not lend it the figures of the first.
#[test]
fn figures_belong_to_the_run_that_they_are_of() {
    let site = Site::new();
    log(
        &site,
        &[
            json!({ "event": "waited", "pid": 7, "seconds": 5.0 }),
            started(7),
            started(7),
            ended(7, 3.0),
            ended(7, 90.0),
            ended(8, 90.0),
        ],
    );
    let summary: Value =
        serde_json::from_str(&history(&site, &["--summary", "--json"]).outcome().stdout).expect("JSON");
    let disk = &summary["repositories"]["disk"];
    assert_eq!(
        (&disk["starts"], &disk["waits"]["count"], &disk["runs"]["count"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert_eq!(disk["runs"]["longest"], 3.0);
}
