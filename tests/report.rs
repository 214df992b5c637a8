//! "`rungate report`: one page that can be mailed: no script is needed to read it, nothing overflows on a
//! phone, and each figure has its numbers beside it."

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Ending, Site, Test, needs_root, set_mode, skip};

/// Two days of launches, of which each seventh is refused.
fn log(site: &Site, command: &str) {
    let mut text = String::new();
    for number in 0..2000_u64 {
        let time = 1_790_035_200_000 + number * 86_400;
        let who = format!(
            "\"command\":{command},\"uid\":{},\"pid\":{},\"host\":\"ws1\"",
            4000 + number % 9,
            1000 + number
        );
        let table = "\"tables\":[{\"repository\":\"matlab\",\"used\":3,\"limit\":5}],\"rules\":[\"seats\"]";
        if number % 7 == 0 {
            let _ = writeln!(
                text,
                "{{\"time\":{time},\"event\":\"refused\",{who},\"repositories\":[\"matlab\"],{table}}}"
            );
            continue;
        }
        let _ = writeln!(
            text,
            "{{\"time\":{time},\"event\":\"started\",{who},\"repositories\":[\"matlab=1\"],{table}}}"
        );
        let _ = writeln!(text, "{{\"time\":{},\"event\":\"ended\",{who},\"seconds\":60}}", time + 60_000);
    }
    site.write("work/log.jsonl", &text);
}

fn report(site: &Site, options: &[&str]) -> Test {
    site.test().args(["report", "$DIR/work/log.jsonl"]).args(options)
}

#[test]
fn a_report_is_one_page_in_which_each_figure_has_its_numbers() {
    let site = Site::new();
    // What others chose is text in it.
    log(&site, "\"<script>alert(1)</script>\"");
    report(&site, &["-o", "$DIR/work/report.html"]).status(0);
    let page = std::fs::read_to_string(site.path("work/report.html")).expect("the page");
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
    for foreign in ["src=", "http-equiv", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let drawings = page.matches("<figure>").count();
    assert!(drawings >= 3, "{drawings}");
    for drawing in page.split("<figure>").skip(1) {
        assert!(drawing.contains("role=\"img\" aria-label=\""), "a drawing without words");
        let behind = drawing.split_once("</figure>").map_or("", |(_, behind)| behind);
        assert!(behind.trim_start().starts_with("<details><summary>The numbers</summary>"), "no numbers");
    }
    assert!(!page.contains("#0102"), "a colour that is none of the page's");
}

/// "Use over time against the limit for each repository, with what was kept and lent."
#[test]
fn what_was_kept_and_lent_is_told() {
    needs_root!();
    let site = Site::new();
    site.system_policy(
        "
        [log]
        to     = \"$DIR/work/log.jsonl\"
        events = \"all\"
        replay = true

        [repository.seats]
        limit   = 5
        hold    = \"supervisor\"
        reserve = [{ for = [\"root\"], slots = 4, lend = 2 }]

        [[rule]]
        acquire = [\"seats\"]
        ",
    );
    site.program("matlab");
    site.write("work/log.jsonl", "");
    set_mode(&site.path("work/log.jsonl"), 0o666);
    let own = site.test().args(["run", "--", "matlab"]).spawn();
    let others = || site.test().user("games").args(["run", "-q", "--", "matlab"]);
    let holders = [(); 3].map(|()| others().spawn());
    others().status(75);
    drop((own, holders));
    let json: Value = serde_json::from_str(&report(&site, &["--json"]).outcome().stdout).expect("JSON");
    let figures = json["figures"].as_array().expect("figures");
    let seats = figures.iter().find(|figure| figure["id"] == "use-seats").expect("seats");
    // Of the four that root has reserved, root had one, another was idle, and two were lent.
    let says = seats["says"].as_str().expect("a sentence");
    assert!(says.ends_with("Up to 1 were idle and kept for some, 2 were lent."), "{says}");
    let row = &seats["rows"][0];
    assert_eq!((row["Kept idle"].as_str(), row["Lent"].as_str()), (Some("1"), Some("2")), "{seats:#}");
}

#[test]
fn the_numbers_are_there_for_whoever_wants_them() {
    let site = Site::new();
    log(&site, "\"=matlab,x\"");
    let json: Value = serde_json::from_str(&report(&site, &["--json"]).outcome().stdout).expect("JSON");
    let overview = &json["figures"][0];
    assert_eq!(
        (overview["id"].as_str(), overview["rows"][0]["Number"].as_str()),
        (Some("overview"), Some("2,000"))
    );
    let csv = report(&site, &["--csv"]).outcome().stdout;
    assert!(csv.starts_with("figure,row,column,value\noverview,1,What,Launches\n"), "{csv}");
    // No spreadsheet takes a command for a formula.
    assert!(csv.contains("commands,1,Name,\"'=matlab,x\""), "{csv}");
    let metrics = report(&site, &["--openmetrics"]).outcome().stdout;
    assert!(
        metrics.ends_with("# EOF\n") && metrics.contains("rungate_slots_limit{repository=\"matlab\"} 5 1790"),
        "{metrics}"
    );
    let plot = site.test().args(["history", "--plot", "$DIR/work/log.jsonl"]).outcome().stdout;
    assert!(plot.starts_with("matlab |") && plot.contains("286 refused"), "{plot}");
}

/// The most slots that were held in the first hour, and the limit, of a log of these events.
#[track_caller]
fn most_and_limit(events: &[Value]) -> (Option<String>, Option<String>) {
    let site = Site::new();
    let text = |(minute, event): (u64, &Value)| {
        let mut event = event.clone();
        event["time"] = json!(1_790_035_200_000 + minute * 60_000);
        for (field, value) in [("command", json!("matlab")), ("uid", json!(4000)), ("host", json!("ws1"))] {
            event[field] = value;
        }
        format!("{event}\n")
    };
    site.write("work/log.jsonl", &(0..).zip(events).map(text).collect::<String>());
    let metrics = report(&site, &["--openmetrics"]).outcome().stdout;
    let first = |name: &str| {
        let start = format!("{name}{{repository=\"matlab\"}} ");
        let rest = metrics.lines().find_map(|line| line.strip_prefix(&start));
        rest.and_then(|rest| rest.split(' ').next()).map(str::to_owned)
    };
    (first("rungate_slots_used"), first("rungate_slots_limit"))
}

fn started(pid: i32) -> Value {
    json!({ "event": "started", "pid": pid, "repositories": ["matlab=1"] })
}

/// A second start with one PID means that the first process has ended, although no event says so.
#[test]
fn a_reused_pid_holds_one_slot() {
    let of_one = |pids: &[i32]| most_and_limit(&pids.iter().map(|pid| started(*pid)).collect::<Vec<_>>()).0;
    assert_eq!(of_one(&[7, 8]).as_deref(), Some("2"));
    assert_eq!(of_one(&[7, 7]).as_deref(), Some("1"));
}

/// A holder keeps its slot if its eviction failed.
#[test]
fn a_holder_that_survives_eviction_keeps_its_slot() {
    for (status, most) in [("survived", "2"), ("not permitted", "2"), ("SIGINT", "1"), ("had left", "1")] {
        let expired = json!({ "event": "expired", "pid": 1, "holder": 7, "status": status });
        assert_eq!(most_and_limit(&[started(7), expired, started(8)]).0.as_deref(), Some(most), "{status}");
    }
}

/// The limit and the use of one member are not those of the whole repository.
#[test]
fn a_members_limit_is_not_the_repositorys() {
    for event in ["started", "refused"] {
        let with = |member: Value, used: u64| {
            let table = json!({ "repository": "matlab", "member": member, "used": used, "limit": 9 });
            json!({ "event": event, "pid": 7, "repositories": ["matlab=1"], "tables": [table] })
        };
        let everybodys = most_and_limit(&[with(json!(null), 3)]);
        assert_eq!(everybodys.1.as_deref(), Some("9"), "{event}");
        let members = most_and_limit(&[with(json!("ann"), 3)]);
        assert_ne!(members.1.as_deref(), Some("9"), "{event}: {members:?}");
        if event == "started" {
            assert_eq!((everybodys.0.as_deref(), members.0.as_deref()), (Some("3"), Some("1")));
        }
    }
}

/// "As `OpenMetrics` with timestamps, for `promtool tsdb create-blocks-from openmetrics`": Prometheus' own
/// tool takes it, and gives back the same samples.
#[test]
fn prometheus_takes_what_was() {
    if !Path::new("/usr/bin/promtool").exists() {
        return skip("promtool(1) is not installed: it is in Debian's package prometheus");
    }
    let site = Site::new();
    log(&site, "\"matlab\"");
    let text = report(&site, &["--openmetrics"]).outcome().stdout;
    let promtool = |arguments: &[&str]| {
        site.test().program("/usr/bin/promtool").directory("work").args(["tsdb"]).args(arguments).outcome()
    };
    let fill = |name: &str, text: &str| {
        site.write(format!("work/{name}.om"), text);
        promtool(&["create-blocks-from", "openmetrics", &format!("{name}.om"), name])
    };
    let filled = fill("blocks", &text);
    assert_eq!(filled.ending, Ending::Status(0), "{}{}", filled.stdout, filled.stderr);
    // It dumps no database without a log of what is not in blocks yet.
    std::fs::create_dir_all(site.path("work/blocks/wal")).expect("a directory");
    let dumped = promtool(&["dump", "blocks"]).stdout;
    let mut known: Vec<&str> = dumped.lines().filter(|line| line.starts_with('{')).collect();
    known.sort_unstable();
    // A line of ours is `name{labels} value seconds`, and one of theirs `{__name__="name", labels} value
    // milliseconds`.
    let theirs = |line: &str| {
        let (name, rest) = line.split_once('{').expect("labels");
        format!("{{__name__=\"{name}\", {rest}000")
    };
    let mut ours: Vec<String> = text.lines().filter(|line| !line.starts_with('#')).map(theirs).collect();
    ours.sort_unstable();
    let different: Vec<(&&str, &String)> =
        known.iter().zip(&ours).filter(|(one, other)| one != other).collect();
    assert_eq!((known.len(), different.first()), (ours.len(), None));
    assert!(ours.len() > 4 * 40, "{}", ours.len());
    // It would say so.
    let cut = fill("cut", text.trim_end_matches("# EOF\n"));
    assert_ne!(cut.ending, Ending::Status(0), "{}", cut.stdout);
}

/// How much wider than the window a page is, by a script that only this test adds. A browser that gives up
/// on a slow machine, and says nothing, is asked again; each time it is a new one, for the one before it may
/// not be quite gone.
fn overflow(page: &Path, width: u32, profiles: &Path) -> Option<i64> {
    (0..5).find_map(|_| {
        let profile = tempfile::tempdir_in(profiles).expect("a directory");
        measured(page, width, profile.path())
    })
}

fn measured(page: &Path, width: u32, profile: &Path) -> Option<i64> {
    let chromium = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .env("HOME", profile)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&chromium.stdout).into_owned();
    let (_, rest) = text.split_once("data-overflow=\"")?;
    rest.split('"').next()?.parse().ok()
}

#[test]
fn nothing_overflows_at_any_width() {
    if Command::new("chromium").arg("--version").output().is_err() {
        return skip("chromium is not installed");
    }
    let site = Site::new();
    log(&site, &format!("\"{}\"", "long".repeat(60)));
    report(&site, &["-o", "$DIR/work/report.html"]).status(0);
    let page = std::fs::read_to_string(site.path("work/report.html")).expect("the page");
    let script = "<script>const d = document.documentElement; document.querySelectorAll('details').forEach(e => e.open = true); \
        document.body.setAttribute('data-overflow', d.scrollWidth - d.clientWidth)</script></body>";
    let wide = "<div style=\"width:3000px\">x</div>";
    site.write("work/measured.html", &page.replace("</body>", script));
    site.write(
        "work/wide.html",
        &page.replace("<main>", &format!("{wide}<main>")).replace("</body>", script),
    );
    let profiles = site.path("work");
    for width in [360, 800, 1280] {
        let measured = overflow(&site.path("work/measured.html"), width, &profiles);
        assert_eq!(measured, Some(0), "at a width of {width}");
    }
    // It would be seen.
    let seen = overflow(&site.path("work/wide.html"), 800, &profiles);
    assert!(seen > Some(1000), "{seen:?}");
}
