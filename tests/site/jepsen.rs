//! The campaign of `tests/jepsen`: hosts and members in namespaces of their own, under cuts, delays, stops, kills and losses
//! of power, with a history and a judge that know nothing of rungate. Here a short one, and whether the judge sees what is
//! wrong.

use std::fmt::Write as _;
use std::process::{Command, Output, Stdio};

use crate::support::{built, needs_etcd, storm_size, tell};

/// Where the campaign is.
const CAMPAIGN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/jepsen");

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Once as it is, and once with seats that are shared, wanted by twos, or linger. Both at a time: most of it is waiting.
#[test]
fn a_short_campaign_breaks_no_promise() {
    needs_etcd!();
    let seconds = storm_size(10).to_string();
    let run = |more: &[&str]| {
        let mut run = Command::new(format!("{CAMPAIGN}/run"));
        run.args(["--seed", "3", "--seconds", &seconds]).args(more).arg("--programs").arg(built::directory());
        run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the campaign starts")
    };
    for campaign in [run(&[]), run(&["--shared"])] {
        let output = campaign.wait_with_output().expect("it ends");
        tell(&said(&output));
        assert!(output.status.success(), "{}", said(&output));
    }
}

/// Two windows of one user are one seat, and who joins overtakes nobody. A seat that lingers is not given too soon.
#[test]
fn the_judge_knows_shared_seats() {
    let shared = |user: u32, command: &str, seats: u32| {
        let of = format!(r#""user": {user}, "command": "{command}", "seats": {seats}"#);
        HISTORY
            .replace(r#""ttl": 5"#, r#""ttl": 5, "shared": true, "linger": 2.0"#)
            .replace(r#""host": "h1""#, &format!(r#""host": "h1", {of}"#))
            .replace(
                r#""host": "h2""#,
                &format!(r#""host": "h2", "user": 7, "command": "{command}", "seats": 1"#),
            )
    };
    let both = r#"{"t": 5, "what": "alive", "launches": [1, 2]}"#;
    let (is_well, said) = judged_as(&shared(7, "work", 1), both, &[]);
    assert!(is_well && said.contains("1 joined"), "{said}");
    for (history, expected) in [
        (shared(7, "pair", 2), "2 programs of 1"),
        (shared(7, "late", 1), "2 programs of 1 in the table that lingers"),
    ] {
        let (is_well, said) = judged_as(&history, both, &[]);
        assert!(!is_well && said.contains(expected), "{expected}: {said}");
    }
    let (is_well, said) = judged_as(&shared(7, "late", 1), "", &[]);
    let expected = "launch 3 on h2 has the seat of launch 2 on h1 1.00 s after its end";
    assert!(!is_well && said.contains(expected), "{said}");
}

/// What the judge says of a history of two launches, changed by one more line, and by leaving out those that have these words.
fn judged(more: &str, without: &[&str]) -> (bool, String) {
    judged_as(HISTORY, more, without)
}

const HISTORY: &str = r#"
        {"t": 0, "what": "begin", "seed": 1, "limit": 1, "ttl": 5}
        {"t": 1, "what": "launch", "launch": 1, "host": "h1"}
        {"t": 1.1, "what": "alive", "launches": [1]}
        {"t": 2, "what": "launch", "launch": 2, "host": "h1"}
        {"t": 8, "what": "launch", "launch": 3, "host": "h2"}
        {"t": 10, "what": "alive", "launches": []}
        {"t": 10, "what": "over", "launch": 1, "status": 0, "said": ""}
        {"t": 11, "what": "alive", "launches": [2]}
        {"t": 12, "what": "alive", "launches": []}
        {"t": 12, "what": "over", "launch": 2, "status": 0, "said": ""}
        {"t": 13, "what": "alive", "launches": [3]}
        {"t": 14, "what": "alive", "launches": []}
        {"t": 14, "what": "over", "launch": 3, "status": 0, "said": ""}
        {"t": 14, "what": "calm"}
        {"t": 15, "what": "end", "unserved": {}, "keys": []}
    "#;

fn judged_as(history: &str, more: &str, without: &[&str]) -> (bool, String) {
    let mut lines: Vec<&str> = history.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.retain(|line| !without.iter().any(|words| line.contains(words)));
    lines.extend(more.lines().map(str::trim));
    let time = |line: &&str| line.split([' ', ',']).nth(1).expect("a time").parse::<f64>().expect("a time");
    lines.sort_by(|one, other| time(one).total_cmp(&time(other)));
    let mut text = String::new();
    for line in lines {
        writeln!(text, "{line}").expect("memory");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("history");
    std::fs::write(&path, text).expect("a history");
    let output = Command::new(format!("{CAMPAIGN}/check")).arg(&path).output().expect("the judge starts");
    (output.status.success(), said(&output))
}

/// The third launch starts before the second.
const EARLY: &str = r#"{"t": 10.5, "what": "alive", "launches": [3]}
    {"t": 10.6, "what": "alive", "launches": []}"#;

#[test]
fn the_judge_is_content_with_what_is_right() {
    let (is_well, said) = judged("", &[]);
    assert!(is_well && !said.contains("BROKEN"), "{said}");
}

#[test]
fn the_judge_sees_what_is_broken() {
    let broken: [(&str, &[&str], &str); 6] = [
        (r#"{"t": 5, "what": "alive", "launches": [1, 2]}"#, &[], "2 programs of 1"),
        (EARLY, &[], "launch 3 on h2, asked for at 8.00 s, started at 10.50 s before launch 2"),
        (
            r#"{"t": 9, "what": "over", "launch": 3, "status": 75, "said": "full"}"#,
            &[r#""launches": [3]"#, r#""over", "launch": 3"#],
            "launch 3 on h2 was refused",
        ),
        (
            r#"{"t": 15, "what": "end", "unserved": {"2": ["77 S work"]}, "keys": []}"#,
            &[],
            "its processes: 77 S work",
        ),
        (r#"{"t": 15, "what": "end", "unserved": {}, "keys": ["/s/1"]}"#, &[], "left in etcd: /s/1"),
        ("", &["unserved"], "did not come to its end"),
    ];
    for (more, without, expected) in broken {
        let (is_well, said) = judged(more, without);
        assert!(!is_well && said.contains(expected), "{expected}: {said}");
    }
}

/// Who was overtaken while its host was cut off was passed, as is promised.
#[test]
fn the_judge_knows_who_may_be_passed() {
    let cut = r#"{"t": 5, "what": "fault", "kind": "cut_host", "at": ["h1"], "about": ""}
        {"t": 9, "what": "healed", "kind": "cut_host", "at": ["h1"]}"#;
    let (is_well, said) = judged(&format!("{EARLY}\n{cut}"), &[]);
    assert!(is_well, "{said}");
    let (is_well, _) = judged(&format!("{EARLY}\n{}", cut.replace("h1", "h2")), &[]);
    assert!(!is_well, "a cut of the other host excuses nobody");
    let late = |since: f64, until: f64| {
        let late = format!(r#"{{"t": {until}, "what": "late", "since": {since}}}"#);
        judged(&format!("{EARLY}\n{late}"), &[])
    };
    let (is_well, said) = late(5.0, 6.5);
    assert!(is_well && said.contains("1 late"), "the machine stood still: {said}");
    let (is_well, _) = late(10.9, 12.4);
    assert!(!is_well, "it stood still afterwards");
    // A fault in which the machine was late ends where it was healed.
    let before = r#"{"t": 0.2, "what": "fault", "kind": "cut_host", "at": ["h1"], "about": ""}
        {"t": 0.5, "what": "late", "since": 0.3}
        {"t": 0.9, "what": "healed", "kind": "cut_host", "at": ["h1"]}"#;
    let history = HISTORY.replace(r#""ttl": 5"#, r#""ttl": 0.1"#);
    let (is_well, _) = judged_as(&history, &format!("{EARLY}\n{before}"), &[]);
    assert!(!is_well, "all was healed long before");
}
