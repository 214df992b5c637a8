//! `rungate report`: what logs come to, as text, as JSON, or as one page that can be mailed: it begins with
//! the answer, no script is needed to read it, nothing overflows on a phone, and each drawing has its numbers
//! beside it.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{
    Ending, Site, Terminal, Test, ended, log_of, needs_root, needs_tmux, set_mode, skip, started,
};

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
    report(&site, &["--html", "$DIR/work/report.html"]).status(0);
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
    // A number stands below the number above it, and a word is no number.
    assert!(page.contains("<th scope=\"col\">Program</th><th scope=\"col\" class=\"number\">Seats</th>"));
    assert!(!page.contains("class=\"number\">expire_after"), "{page}");
    // What each line means.
    for key in ["in use on average", "most at once in each 15 minutes", "seats"] {
        assert!(page.contains(&format!("{key}</span>")), "{key}: {page}");
    }
}

/// Use over time against the limit for each repository, with what was kept and lent.
#[test]
fn what_was_kept_and_lent_is_told() {
    needs_root!();
    let site = Site::new();
    site.system_policy(
        "
        [log]
        to     = \"$DIR/work/log.jsonl\"
        replay = true

        [repository.seats]
        limit   = 5
        hold    = \"supervisor\"
        reserve = [{ users = [\"root\"], slots = 4, lend = 2 }]

        # Its slots have the numbers of others that are lent.
        [repository.licences]
        limit   = 12
        hold    = \"supervisor\"

        [[rule]]
        acquire = [{ repository = \"licences\", slots = 3 }, \"seats\"]
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
    // Of the four that root has reserved, root had one, another was idle, and two were lent.
    let page = report(&site, &["--html", "-"]).outcome().stdout;
    assert!(page.contains(" Up to 1 were kept idle for some users, 2 were lent.</p>"), "{page}");
    assert!(page.contains(">Kept idle</th><th scope=\"col\" class=\"number\">Lent</th>"), "{page}");
}

/// A small site: three seats that are always full, and a program that has too many.
fn two_programs(site: &Site) {
    let mut text = String::new();
    for number in 0..300_u64 {
        let time = 1_790_035_200_000 + number * 60_000;
        let mut add = |name: &str, pid: u64, used: u64, limit: u64, lasts: u64| {
            let who = format!(
                "\"command\":\"{name}\",\"uid\":{},\"pid\":{pid},\"host\":\"ws1\"",
                4000 + number % 3
            );
            let told = format!("\"launch\":{{\"groups\":[{}],\"program\":\"/opt/x\"}}", 4000 + number % 3);
            let (event, slot, used) = if used > limit {
                ("refused", String::new(), limit)
            } else {
                ("started", format!("={used}"), used)
            };
            let _ = writeln!(
                text,
                "{{\"time\":{time},\"event\":\"{event}\",{who},\"repositories\":[\"{name}{slot}\"],\"rules\":[\"{name}\"],{told},\
                 \"tables\":[{{\"repository\":\"{name}\",\"used\":{used},\"limit\":{limit}}}]}}"
            );
            if event == "started" {
                let _ = writeln!(
                    text,
                    "{{\"time\":{},\"event\":\"ended\",{who},\"seconds\":{lasts}}}",
                    time + lasts * 1000
                );
            }
        };
        // One each minute that lasts for three and a half, so that four would be in use.
        if number % 4 == 3 {
            add("matlab", 1000 + number, 4, 3, 0);
        } else {
            add("matlab", 1000 + number, number % 4 + 1, 3, 210);
        }
        add("stata", 5000 + number, 1, 5, 10);
    }
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_by_key(|line| line.split([':', ',']).nth(1).and_then(|time| time.parse::<u64>().ok()));
    site.write("work/log.jsonl", &(lines.join("\n") + "\n"));
    let repository = |name: &str, limit: u32| {
        format!(
            "[repository.{name}]\nlimit = {limit}\n[[rule]]\nname = \"{name}\"\ncommands = [\"{name}\"]\nacquire = [\"{name}\"]\n"
        )
    };
    site.write("work/policy.toml", &(repository("stata", 5) + &repository("matlab", 3)));
}

/// It begins with the answer: one row for each program, the worst first, and what more seats would have
/// come to is what a simulation says.
#[test]
fn it_begins_with_the_answer() {
    let site = Site::new();
    two_programs(&site);
    let said = report(&site, &["--policy", "$DIR/work/policy.toml"]).outcome().stdout;
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("600 launches of 3 users, ") && lines[0].contains(" 2026 "), "{said}");
    assert!(
        lines[2].starts_with("PROGRAM SEATS MOST IN USE REFUSED WAITED LAUNCHES TIME FULL AVERAGE"),
        "{said}"
    );
    assert!(lines[3].starts_with("matlab ") && lines[4].starts_with("stata "), "{said}");
    assert!(
        said.contains("\nmatlab: 1 more seat would have let 99% start at once.\n  rungate simulate "),
        "{said}"
    );
    // The command that shows why works as it is.
    let why = lines.iter().find_map(|line| line.strip_prefix("  rungate ")).expect("a command");
    assert!(why.ends_with(" --limit matlab=3..4"), "{why}");
    let shown = site.test().args(why.split(' ')).outcome();
    assert!(shown.stdout.contains("4 seats start 99% at once"), "{why}: {}{}", shown.stdout, shown.stderr);
    assert!(said.contains("\nstata: 4 of 5 seats were never in use.\n"), "{said}");
    assert!(said.contains("No launch waited.") && !said.contains("Waits by weekday"), "{said}");
    // A user's own group is none to be listed.
    assert!(!said.contains("\nGROUP "), "{said}");
    // The command shows why.
    let simulated = site
        .test()
        .args(["simulate", "$DIR/work/policy.toml", "$DIR/work/log.jsonl", "--limit", "matlab=3..4"])
        .outcome()
        .stdout;
    assert!(simulated.contains("\n4 seats start 99% at once"), "{simulated}");
    let json: Value = serde_json::from_str(
        &report(&site, &["--json", "--policy", "$DIR/work/policy.toml"]).outcome().stdout,
    )
    .expect("JSON");
    assert_eq!(
        (&json["programs"]["matlab"]["enough_seats"], &json["programs"]["matlab"]["refused"]),
        (&4.into(), &75.into())
    );
    report(&site, &["--html", "$DIR/work/report.html", "--policy", "$DIR/work/policy.toml"]).status(0);
    let page = std::fs::read_to_string(site.path("work/report.html")).expect("the page");
    let (answer, rest) = page.split_once("<main>").expect("two parts");
    assert!(
        answer.contains("<b>matlab</b>: 1 more seat would have let 99% start at once.")
            && !rest.contains("<b>"),
        "{page}"
    );
}

/// The most slots in use, and how many there are, and whether for each member, by the report on these events.
#[track_caller]
fn most_and_limit(events: &[Value]) -> (Value, Value, Value) {
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
    let json: Value = serde_json::from_str(&report(&site, &["--json"]).outcome().stdout).expect("JSON");
    let program = &json["programs"]["matlab"];
    let field = |name: &str| program[name].clone();
    (program["most"]["at_most"].clone(), field("seats"), field("seats_are_of_each_member"))
}

fn took(pid: i32, slot: u32) -> Value {
    json!({ "event": "started", "pid": pid, "repositories": [format!("matlab={slot}")] })
}

/// A second start with one PID means that the first process has ended, although no event says so.
#[test]
fn a_reused_pid_holds_one_slot() {
    let most = |pids: [i32; 2]| most_and_limit(&[took(pids[0], 1), took(pids[1], 2)]).0;
    assert_eq!(most([7, 8]), json!(2));
    assert_eq!(most([7, 7]), json!(1));
}

/// A holder keeps its slot if its eviction failed.
#[test]
fn a_holder_that_survives_eviction_keeps_its_slot() {
    for (status, most) in [("survived", 2), ("not permitted", 2), ("SIGINT", 1), ("had left", 1)] {
        let expired = json!({ "event": "expired", "pid": 1, "holder": 7, "status": status });
        let found = most_and_limit(&[took(7, 1), expired, took(8, 2)]).0;
        assert_eq!(found, json!(most), "{status}");
    }
}

/// A report on a part of a log does not know which programs had slots when it begins: it says so, and calls no
/// seat idle. The ends of such programs are those that their supervisors saw, or those that a sweep found.
#[test]
fn programs_from_before_the_log_are_not_forgotten() {
    let site = Site::new();
    let event = |event: &str, hour: u64, pid: u64, more: &str| {
        format!(
            "{{\"time\":{},\"event\":\"{event}\",\"command\":\"matlab\",\"uid\":0,\"pid\":{pid},\"host\":\"ws1\"{more}}}\n",
            1_790_035_200_000 + hour * 3_600_000
        )
    };
    let start = |hour: u64, slot: u64| {
        event("started", hour, slot, &format!(",\"repositories\":[\"matlab={slot}\"]"))
    };
    let end = |hour: u64, slot: u64, hours: u64| {
        event("ended", hour, slot, &format!(",\"seconds\":{},\"status\":\"0\"", hours * 3600))
    };
    let before = start(0, 1) + &start(0, 2);
    let after = start(10, 3) + &end(11, 3, 1) + &end(12, 1, 12) + &end(12, 2, 12);
    site.write("policy.toml", "version = 1\nrepository.matlab.limit = 4\n");
    let said = |log: &str, options: &[&str]| {
        site.write("work/log.jsonl", log);
        let options = [&["--policy", "$DIR/policy.toml"], options].concat();
        report(&site, &options).outcome().stdout
    };
    let idle = |most: u64| format!("{most} of 4 seats were never in use.");
    let doubt = |what: &str| format!("The slots of {what} are in no figure: use may have been higher.");
    let whole = said(&format!("{before}{after}"), &[]);
    assert!(whole.contains(&idle(1)) && !whole.contains("in no figure"), "{whole}");
    let part = said(&after, &[]);
    assert!(part.contains(&doubt("2 programs that started before the log begins")), "{part}");
    let since = said(&format!("{before}{after}"), &["--since", "2026-09-22 05:00"]);
    assert!(since.contains(&doubt("2 programs that started before --since")), "{since}");
    let unseen = said(&format!("{before}{}", start(10, 3)), &["--since", "2026-09-22 05:00"]);
    assert!(unseen.contains(&doubt("programs that started before --since")), "{unseen}");
    let gone = |hour: u64, slot: u64| {
        let at = 1_790_035_200_000_000 + hour * 3_600_000_000;
        event("ended", hour, slot, &format!(",\"status\":\"gone\",\"between\":[{},{at}]", at - 60_000_000))
    };
    let after = start(10, 3) + &gone(11, 3) + &gone(12, 1);
    let swept = said(&after, &[]);
    assert!(swept.contains(&doubt("1 program that started before the log begins")), "{swept}");
    // A sweep logs the end of a program that was evicted again.
    let evicted = event("expired", 9, 9, ",\"holder\":1,\"status\":\"SIGINT\"");
    let whole = said(&format!("{before}{evicted}{after}"), &[]);
    assert!(whole.contains(&idle(2)) && !whole.contains("in no figure"), "{whole}");
    for text in [part, swept, since, unseen] {
        assert!(!text.contains("never in use"), "{text}");
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
        assert_eq!(everybodys.1, json!(9), "{event}");
        let members = most_and_limit(&[with(json!("ann"), 3)]);
        assert_eq!((everybodys.2, members.2), (json!(false), json!(true)), "{event}");
        if event == "started" {
            assert_eq!(everybodys.0, json!(3));
        }
    }
}

/// A launch under a ceiling has a lower limit than the repository.
#[test]
fn a_ceiling_is_not_the_repositorys_limit() {
    let table = |limit_of_all: Value| {
        let seen = json!({ "repository": "matlab", "used": 3, "limit": 3, "limit_of_all": limit_of_all });
        json!({ "event": "started", "pid": 7, "repositories": ["matlab=3"], "tables": [seen] })
    };
    let whole = json!({ "repository": "matlab", "used": 1, "limit": 9 });
    let before = json!({ "event": "started", "pid": 6, "repositories": ["matlab=1"], "tables": [whole] });
    assert_eq!(most_and_limit(&[before.clone(), table(json!(9))]).1, json!(9));
    assert_eq!(most_and_limit(&[before, table(json!(null))]).1, json!(3));
}

/// If there is nothing, that is said, and what to switch on.
#[test]
fn an_empty_log_has_a_report_too() {
    let site = Site::new();
    site.write("work/log.jsonl", "");
    let said = "The log has no launch. Launches are in it where the policy has a [log] section; ";
    for options in [&["--html", "-"][..], &[]] {
        let outcome = report(&site, options).outcome();
        assert_eq!(outcome.ending, Ending::Status(0));
        assert!(outcome.stdout.contains(said), "{}", outcome.stdout);
    }
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
    report(&site, &["--html", "$DIR/work/report.html"]).status(0);
    let page = std::fs::read_to_string(site.path("work/report.html")).expect("the page");
    // Tables are scrolled on wide screens only; and no card leaves half of its row empty.
    let script = "<script>const d = document.documentElement, all = s => [...document.querySelectorAll(s)]; \
        const cards = all('main > section'), full = document.querySelector('main').clientWidth; \
        const alone = cards.filter(c => c.offsetWidth < full - 9 && \
            !cards.some(o => o !== c && o.offsetTop === c.offsetTop)).length; \
        all('details').forEach(e => e.open = true); \
        const cut = innerWidth < 640 ? all('.scroll').filter(e => e.scrollWidth > e.clientWidth).length : 0; \
        document.body.setAttribute('data-overflow', d.scrollWidth - d.clientWidth + alone + cut)</script></body>";
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

#[track_caller]
fn figures(site: &Site) -> Value {
    serde_json::from_str(&report(site, &["--json"]).outcome().stdout).expect("JSON")
}

#[test]
fn a_report_adds_up() {
    let site = Site::new();
    let mut log = Vec::new();
    for run in 1..=20 {
        log.push(json!({ "event": "waited", "pid": run, "seconds": f64::from(run) }));
        log.push(started(run));
        log.push(ended(run, f64::from(run) * 10.0));
    }
    log.push(json!({ "event": "refused", "repositories": ["disk"], "rules": ["nightly"] }));
    log.push(json!({ "event": "too-soon", "repositories": ["disk"], "rules": ["nightly"] }));
    log.push(json!({ "event": "would-refuse", "repositories": ["net"], "rules": ["other"] }));
    log.push(json!({ "event": "expired", "repositories": ["disk"], "rules": ["nightly"], "holder": 9 }));
    log_of(&site, &log);
    let figures = figures(&site);
    let counts = |path: &str| {
        let of = figures.pointer(path).expect(path);
        ["started", "refused", "would_be_refused", "too_soon", "expired"]
            .map(|name| of[name].as_u64().unwrap_or(0))
    };
    assert_eq!(counts("/all"), [20, 2, 1, 1, 1]);
    assert_eq!(counts("/programs/disk"), [20, 2, 0, 1, 1]);
    assert_eq!(counts("/programs/net"), [20, 0, 1, 0, 0]);
    assert_eq!(counts("/rules/nightly"), [20, 2, 0, 0, 0]);
    assert_eq!(counts("/rules/other"), [0, 0, 1, 0, 0]);
    assert_eq!(counts("/users/root"), [20, 2, 1, 0, 0]);
    let disk = &figures["programs"]["disk"];
    // Ranks are exact.
    assert_eq!(disk["waits"], json!({ "count": 20, "p50": 10.0, "p95": 19.0, "p99": 20.0, "longest": 20.0 }));
    assert_eq!(
        disk["runs"],
        json!({ "count": 20, "p50": 100.0, "p95": 190.0, "p99": 200.0, "longest": 200.0 })
    );
    let suggestion = &disk["suggestions"][0];
    assert_eq!(suggestion["setting"], "expire_after = \"7m\"");
    assert_eq!(suggestion["evidence"], "95% of 20 runs took up to 3m10s, the longest 3m20s");
}

/// A number that was given to another process does not lend it the figures of the first.
#[test]
fn figures_belong_to_the_run_that_they_are_of() {
    let site = Site::new();
    let waited = json!({ "event": "waited", "pid": 7, "seconds": 5.0 });
    log_of(&site, &[waited, started(7), started(7), ended(7, 3.0), ended(7, 90.0), ended(8, 90.0)]);
    let disk = &figures(&site)["programs"]["disk"];
    assert_eq!(
        (&disk["started"], &disk["waited"], &disk["runs"]["count"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert_eq!(disk["runs"]["longest"], 3.0);
}

/// A refusal is one, however many repositories and rules it names; and so is a launch that would have been
/// refused by a rule and by a limit.
#[test]
fn a_refusal_counts_once() {
    let site = Site::new();
    let would = |more: &Value| {
        let mut event = json!({ "event": "would-refuse", "pid": 7 });
        event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        event
    };
    log_of(
        &site,
        &[
            json!({ "event": "refused", "repositories": ["disk", "net"], "rules": ["nightly"] }),
            would(&json!({ "rules": ["denied"] })),
            would(&json!({ "repositories": ["disk [ann]", "disk [bob]"], "rules": ["nightly"] })),
            started(7),
            would(&json!({ "rules": ["denied"] })),
        ],
    );
    let figures = figures(&site);
    let counts = |path: &str| {
        let of = figures.pointer(path).expect("a group");
        (of["refused"].as_u64(), of["would_be_refused"].as_u64())
    };
    let are = |refused, would| (Some(refused), Some(would));
    assert_eq!(counts("/all"), are(1, 2));
    assert_eq!((counts("/programs/disk"), counts("/programs/net")), (are(1, 1), are(1, 0)));
    assert_eq!((counts("/rules/nightly"), counts("/rules/denied")), (are(1, 1), are(0, 2)));
    assert_eq!(counts("/users/root"), are(1, 2));
}

/// Where each member has a table, use above the seats of one is never told.
#[test]
fn what_members_hold_together_is_not_the_use_of_one() {
    let site = Site::new();
    let start = |pid: i32, uid: u32, slot: u32, used: u32| {
        json!({
            "event": "started", "pid": pid, "uid": uid, "repositories": [format!("each={slot}")],
            "tables": [{ "repository": "each", "member": format!("uid {uid}"), "used": used, "limit": 2 }],
        })
    };
    let end = |pid: i32, uid: u32| json!({ "event": "ended", "pid": pid, "uid": uid, "seconds": 3 });
    log_of(
        &site,
        &[
            start(1, 4000, 1, 1),
            start(2, 4001, 1, 1),
            start(3, 4000, 2, 2),
            end(1, 4000),
            end(2, 4001),
            end(3, 4000),
        ],
    );
    let said = report(&site, &[]).outcome().stdout;
    assert!(said.lines().nth(3).is_some_and(|row| row.starts_with("each    2 each           2 ")), "{said}");
    assert!(said.contains(" in all"), "{said}");
    let page = report(&site, &["--html", "-"]).outcome().stdout;
    assert!(page.contains("1.8 on average over all members, 2 of 2 at most of one member."), "{page}");
}

/// "On a terminal, use over time and the hours of the week are plots": a pipe gets plain text.
#[test]
fn a_pipe_gets_no_plots() {
    let site = Site::new();
    log(&site, "\"matlab\"");
    let is_drawn = |text: &str| text.contains(['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']);
    let piped = report(&site, &[]).outcome().stdout;
    assert!(piped.contains("Refusals by weekday and hour: "), "{piped}");
    assert!(!is_drawn(&piped) && !piped.contains("\nUSE\n"), "{piped}");
    needs_tmux!();
    site.rungate_in_bin();
    let terminal = Terminal::open_for(site.test(), (80, 120));
    terminal.enter("rungate report log.jsonl");
    terminal.shows_when("both plots", |screen| {
        screen.contains("\nUSE\n") && screen.contains("\nMon ") && is_drawn(screen)
    });
}
