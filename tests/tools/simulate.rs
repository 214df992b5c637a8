//! `rungate simulate`: play the launches of logs under another policy, at their times, with their durations,
//! judged and served by the code of `rungate run`. The simulation of a log under the policy that produced it
//! releases that log's decisions.

use std::fmt::Write;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{Ending, Site, Test, needs_root};

/// A policy that logs everything for a replay, with these repositories and rules.
fn policy(rest: &str) -> String {
    format!("[log]\nto = \"$DIR/work/log.jsonl\"\nreplay = true\n\n{rest}")
}

fn simulate(site: &Site, policy: &str, options: &[&str]) -> Test {
    site.write("work/tried.toml", policy);
    site.test().args(["simulate", "$DIR/work/tried.toml", "$DIR/work/log.jsonl"]).args(options)
}

#[track_caller]
fn as_json(test: &Test) -> Value {
    let outcome = test.outcome();
    serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", outcome.stdout, outcome.stderr))
}

const STORM: &str = r#"
[repository.seats]
limit = 5
hold = "supervisor"

[repository.tokens]
limit = 4
hold = "supervisor"

[[rule]]
name = "seats"
commands = ["matlab", "solver"]
acquire = ["seats"]

[[rule]]
name = "tokens"
commands = ["solver"]
arguments = ["-big"]
acquire = [{ repository = "tokens", slots = 2 }]

[[rule]]
name = "nobody"
commands = ["solver"]
arguments = ["-never"]
action = "deny"
"#;

/// A storm of real launches is logged, and each of them is decided again.
#[test]
fn a_storm_that_is_replayed_gives_the_decisions_of_its_log() {
    let site = Site::with_policy(&policy(STORM));
    for name in ["matlab", "solver"] {
        site.script(name, "#!/bin/sh\n[ $1 = stay ] && exec cat\nexec sleep 0.$1\n");
    }
    // However slow the machine is, one launch at least finds all seats taken.
    let mut holders = [(); 5].map(|()| site.test().args(["run", "--", "matlab", "stay"]).spawn());
    assert_eq!(site.test().args(["run", "-q", "--", "matlab", "0"]).outcome().ending, Ending::Status(75));
    for holder in &mut holders {
        holder.close_stdin();
        holder.end();
    }
    let launch = |thread: usize, number: usize| {
        let lasts = format!("0{}", (thread * 7 + number * 13) % 10);
        let (command, more) = match (thread + number) % 5 {
            0 | 1 => ("matlab", None),
            2 => ("solver", Some("-never")),
            _ => ("solver", Some("-big")),
        };
        site.test().args(["run", "-q", "--", command, &lasts]).args(more).outcome();
    };
    thread::scope(|scope| {
        for thread in 0..8 {
            let launch = &launch;
            scope.spawn(move || (0..25).for_each(|number| launch(thread, number)));
        }
    });
    let replayed = as_json(&simulate(&site, &policy(STORM), &["--json"]));
    let (then, now) = (&replayed["then"]["all"], &replayed["now"]["all"]);
    let counts = ["launches", "at_once", "waited", "refused"];
    assert_eq!(counts.map(|count| &then[count]), counts.map(|count| &now[count]), "{replayed:#}");
    assert_eq!(replayed["different"], json!(0), "{replayed:#}");
    assert_eq!(then["launches"], json!(206));
    assert!(then["at_once"].as_u64() > Some(0) && then["refused"].as_u64() > Some(40), "{then}");
    // Which other rules would have refused it too a log cannot tell to the microsecond.
    assert_eq!(replayed["then"]["rules"]["nobody"], replayed["now"]["rules"]["nobody"]);
    assert_eq!((&replayed["ends"]["missed"], &replayed["ends"]["running"]), (&json!(0), &json!(0)));

    // What is watched for would be seen: fewer seats refuse others, and more start those that were refused.
    let fewer = as_json(&simulate(&site, &policy(&STORM.replacen('5', "1", 1)), &["--json"]));
    assert!(fewer["now"]["all"]["newly_refused"].as_u64() > Some(0), "{fewer:#}");
    let more = as_json(&simulate(&site, &policy(&STORM.replacen('5', "100", 1)), &["--json"]));
    assert!(more["now"]["all"]["newly_started"].as_u64() > Some(0), "{more:#}");
}

/// Whoever waited waits again, and gets their turn in the same order.
#[test]
fn those_who_waited_wait_again() {
    let text = "[repository.seats]\nlimit = 1\nwait = \"10m\"\nhold = \"supervisor\"\n[[rule]]\nacquire = [\"seats\"]\n";
    let site = Site::with_policy(&policy(text));
    site.program("matlab");
    let mut first = site.test().args(["run", "--", "matlab"]).spawn();
    let mut others = Vec::new();
    for number in 0..3 {
        let test = site.test().args(["run", "-q", "--", "matlab"]).stdin("");
        others.push(test.background());
        crate::support::eventually("it stands in line", || {
            let status = as_json(&site.test().args(["status", "--json"]));
            status.to_string().contains(&format!("\"waiting\":{}", number + 1)).then_some(())
        });
    }
    first.close_stdin();
    first.end();
    for other in &mut others {
        other.close_stdin();
        other.end();
    }
    let replayed = as_json(&simulate(&site, &policy(text), &["--json"]));
    assert_eq!(replayed["different"], json!(0), "{replayed:#}");
    assert_eq!(replayed["now"]["all"]["waited"], json!(3));
    // Without a wait they are refused.
    let refused = as_json(&simulate(&site, &policy(&text.replace("10m", "0s")), &["--json"]));
    assert_eq!(refused["now"]["all"]["newly_refused"], json!(3), "{refused:#}");
}

/// A day of one launch each minute, by two users in turn, each of them for ten minutes.
fn a_day(site: &Site, arguments: &str) {
    let mut text = String::new();
    for minute in 0..1440_u64 {
        let time = 1_790_035_200_000 + minute * 60_000;
        let (uid, pid) = (4000 + minute % 2, 1000 + minute);
        let who = format!("\"command\":\"matlab\",\"uid\":{uid},\"pid\":{pid},\"host\":\"ws1\"");
        let launch =
            format!("{{\"groups\":[100],\"program\":\"/opt/matlab\",\"directory\":\"/tmp\"{arguments}}}");
        let _ = writeln!(text, "{{\"time\":{time},\"event\":\"started\",{who},\"launch\":{launch}}}");
        let _ = writeln!(text, "{{\"time\":{},\"event\":\"ended\",{who},\"seconds\":590}}", time + 590_000);
    }
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_by_key(|line| line.split([':', ',']).nth(1).and_then(|time| time.parse::<u64>().ok()));
    site.write("work/log.jsonl", &(lines.join("\n") + "\n"));
}

const SEATS: &str = "[defaults]\ntime_zone = \"UTC\"\n[repository.matlab]\nlimit = 10\nwait = \"forever\"\n\
    [[rule]]\nname = \"seats\"\ncommands = [\"matlab\"]\nacquire = [\"matlab\"]\n";

#[test]
fn a_sweep_says_how_many_seats_are_enough() {
    let site = Site::new();
    a_day(&site, "");
    simulate(&site, SEATS, &["--limit", "matlab=9..11"])
        .stdout(
            "
            matlab: 1,440 launches in 1.0 days
            LIMIT AT ONCE REFUSED   50%   95%   99% LONGEST  USED MOST OVER 5M/DAY
                9    0.6%      0% [..]    9 [..]
               10    100%      0%     -     -     -       - 97.7%   10           0
               11    100%      0%     -     -     -       - 88.8%   10           0
            10 seats start 99% at once; 9 cost [..] waits over 5 minutes a day.
            ",
        )
        .status(0);
    let found =
        as_json(&simulate(&site, SEATS, &["--limit", "matlab=1..1000", "--seats-for", "50%", "--json"]));
    assert_eq!(found["seats"], json!(10));
    assert!(found["limits"].as_array().is_some_and(|limits| limits.len() < 15), "{found}");
    let few = simulate(&site, SEATS, &["--limit", "matlab=2..3"]).outcome().stdout;
    assert!(few.contains("\nNone of these limits starts 99% at once; 3 start "), "{few}");
    let few = simulate(&site, SEATS, &["--limit", "matlab=2..3", "--seats-for", "29%"]).outcome().stdout;
    assert!(few.contains("\nNone of these limits starts 29% at once; 3 start "), "{few}");
}

/// What launches get after the log has ended is counted, with its limit.
#[test]
fn who_starts_after_the_end_of_the_log_is_counted() {
    let site = Site::new();
    let facts = "\"launch\":{\"groups\":[100],\"program\":\"/opt/x\",\"directory\":\"/tmp\"}".to_owned();
    let mut text = String::new();
    for (second, event, command, pid, more) in [
        (0, "started", "matlab", 1, &facts),
        (1, "started", "matlab", 2, &facts),
        (50, "started", "both", 3, &facts),
        (60, "ended", "both", 3, &"\"seconds\":10".to_owned()),
        (100, "ended", "matlab", 1, &"\"seconds\":100".to_owned()),
        (101, "ended", "matlab", 2, &"\"seconds\":100".to_owned()),
    ] {
        let time = 1_790_035_200_000_u64 + second * 1000;
        let who = format!("\"command\":\"{command}\",\"uid\":4000,\"pid\":{pid},\"host\":\"ws1\"");
        let _ = writeln!(text, "{{\"time\":{time},\"event\":\"{event}\",{who},{more}}}");
    }
    site.write("work/log.jsonl", &text);
    let policy = SEATS.replace("limit = 10", "limit = 1")
        + "[repository.second]\nlimit = 3\nwait = \"forever\"\n\
           [[rule]]\nname = \"both\"\ncommands = [\"both\"]\nacquire = [\"matlab\", \"second\"]\n";
    let found = as_json(&simulate(&site, &policy, &["--json"]));
    let second = &found["now"]["repositories"]["second"];
    assert_eq!(
        (&second["launches"], &second["limit"], &second["most"]),
        (&json!(1), &json!(3), &json!(0)),
        "{found:#}"
    );
}

#[test]
fn a_simulation_says_who_would_be_refused() {
    let site = Site::new();
    a_day(&site, "");
    let two =
        SEATS.replace("forever", "0s") + "[[rule]]\nname = \"odd\"\nusers = [4001]\naction = \"deny\"\n";
    let said = simulate(&site, &two, &[]).outcome().stdout;
    let expected = "
1,440 launches of 2 users, Tue 22 Sep 00:00 to Wed 23 Sep 00:08, under $DIR/work/tried.toml

     LAUNCHES AT ONCE WAITED REFUSED 50% 95% 99% LONGEST
then    1,440    100%     0%      0%   -   -   -       -
now     1,440   50.0%     0%   50.0%   -   -   -       -

720 started at once then, refused now
Newly refused: 4001 720
  Tue 22 Sep 00:01 4001 matlab: started at once then, refused now
  Tue 22 Sep 00:03 4001 matlab: started at once then, refused now
  Tue 22 Sep 00:05 4001 matlab: started at once then, refused now
  Tue 22 Sep 00:07 4001 matlab: started at once then, refused now
  Tue 22 Sep 00:09 4001 matlab: started at once then, refused now

REPOSITORY LIMIT LAUNCHES AT ONCE REFUSED THEN 95% 99% USED MOST
matlab        10      720    100%       0    -   -   -  4.9    5

RULE REFUSED THEN NOW
odd             0 720

USER LAUNCHES REFUSED THEN NOW WAITED THEN NOW MEAN WAIT
4001      720            0 720           0   0         -
4000      720            0   0           0   0         -

GROUP LAUNCHES REFUSED THEN NOW WAITED THEN NOW MEAN WAIT
users    1,440            0 720           0   0         -

COMMAND LAUNCHES REFUSED THEN NOW WAITED THEN NOW MEAN WAIT
matlab     1,440            0 720           0   0         -

HOUR LAUNCHES REFUSED THEN NOW WAITED THEN NOW MEAN WAIT
00         60            0  30           0   0         -
";
    assert!(said.starts_with(&site.expand(expected.trim_start())), "{said}");
    assert!(
        said.ends_with(
            "\nEnds: 1,440 to the second, 0 within bounds, 0 not seen, 0 after the end of the log.\n"
        ),
        "{said}"
    );
}

/// With `replay = true` by all that a policy looks at, otherwise by user, groups and command alone.
#[test]
fn a_rule_sees_the_arguments_that_the_log_tells() {
    let site = Site::new();
    a_day(&site, ",\"arguments\":[null,\"-big\"]");
    let denied = |argument: &str| {
        let rule = format!("[[rule]]\nname = \"r\"\narguments = [\"{argument}\"]\naction = \"deny\"\n");
        as_json(&simulate(&site, &(SEATS.to_owned() + &rule), &["--json"]))["now"]["all"]["refused"].clone()
    };
    assert_eq!((denied("-big"), denied("-small")), (json!(1440), json!(0)));
    site.write(
        "work/log.jsonl",
        "{\"time\":1790035200000,\"event\":\"started\",\"command\":\"matlab\",\"uid\":0,\"pid\":7}\n",
    );
    let old = simulate(&site, SEATS, &[]).outcome();
    assert!(old.stdout.contains("Of 1 launches the log has only user and command"), "{}", old.stdout);
}

/// What no rule names is not in the log. It is there, but it is not the empty text.
#[test]
fn what_the_log_does_not_tell_matches_no_rule() {
    let site = Site::new();
    let denied = |told: &str, selector: &str| {
        a_day(&site, told);
        let rule = format!("[[rule]]\nname = \"r\"\n{selector}\naction = \"deny\"\n");
        as_json(&simulate(&site, &(SEATS.to_owned() + &rule), &["--json"]))["now"]["all"]["refused"].clone()
    };
    let (all, none) = (json!(1440), json!(0));
    let environment = |value: &str| format!(",\"environment\":{{\"DISPLAY\":{value}}}");
    let display = |entry: &str| format!("environment = {{ DISPLAY = [\"{entry}\"] }}");
    for entry in ["", "{,none}"] {
        assert_eq!(denied(&environment("\"\""), &display(entry)), all, "{entry}");
        assert_eq!(denied(&environment("null"), &display(entry)), none, "{entry}");
    }
    assert_eq!(denied(&environment("null"), &display("?*")), none);
    assert_eq!(denied(&environment("null"), &display("*")), all);
    assert_eq!(denied(&environment("null"), "environment = { DISPLAY = true }"), all);
    let argument = "arguments = [\"{,-small}\"]";
    assert_eq!(denied(",\"arguments\":[\"\"]", argument), all);
    assert_eq!(denied(",\"arguments\":[null]", argument), none);
}

/// `--from LOG`: whoever started in it has to start, at once or after a wait. Said is who would be refused.
#[test]
fn a_policy_is_tested_by_what_happened() {
    let site = Site::new();
    a_day(&site, "");
    let test = |policy: &str, options: &[&str]| {
        site.write("work/next.toml", policy);
        let arguments = ["policy", "check", "--from", "$DIR/work/log.jsonl", "$DIR/work/next.toml"];
        site.test().args(arguments).args(options)
    };
    let passed = "1,440 launches of the log: none is refused that was not before\n";
    test(SEATS, &[]).stdout(passed).status(0);
    // Whoever waits instead is not refused.
    test(&SEATS.replace("10", "9"), &[]).stdout(passed).status(0);
    let odd = "[[rule]]\nname = \"odd\"\nusers = [4001]\naction = \"deny\"\n";
    let denied = SEATS.to_owned() + odd;
    test(&denied, &[]).stderr("4001, matlab: 720 launches started at once then, refused now\n").status(1);
    // Who is called how may be known elsewhere.
    site.write("work/passwd", "kim:x:4001:4001::/home/kim:/bin/sh\n");
    site.write("work/group", "cad:x:4001:\n");
    let elsewhere = ["--accounts", "$DIR/work"];
    let by_name = SEATS.to_owned() + &odd.replace("4001", "\"kim\"");
    for policy in [&denied, &by_name] {
        let named = "kim, matlab: 720 launches started at once then, refused now\n";
        test(policy, &elsewhere).stderr(named).status(1);
    }
    let said = test(&denied, &["--json"]).outcome();
    let said: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let refused = json!([{ "user": "4001", "command": "matlab", "launches": 720,
        "then": "started at once", "now": "refused" }]);
    assert_eq!(
        said["from"],
        json!({ "launches": 1440, "refused": refused, "started": [], "unknown": 0 }),
        "{said:#}"
    );
    // Its own tests count as well.
    let own = "[[test]]\nname = \"own\"\nuser = \"ann\"\ncommand = \"matlab\"\nexpect = \"refuse\"\n";
    let failed = test(&(SEATS.to_owned() + own), &[]).outcome();
    assert_eq!(failed.ending, Ending::Status(1), "{}", failed.stderr);
    assert!(failed.stderr.ends_with("rungate: 1 of 1 test failed\n"), "{}", failed.stderr);
}

/// Who was refused and would start is said too; that is no failure.
#[test]
fn whoever_would_start_now_is_said() {
    let site = Site::new();
    a_day(&site, "");
    let log = std::fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    // Each of 4001's launches is refused.
    let is_ended = |line: &&str| line.contains("\"ended\"") && line.contains("4001");
    let lines: Vec<&str> = log.lines().filter(|line| !is_ended(line)).collect();
    let refused = |line: &str| {
        if line.contains("\"uid\":4001") { line.replace("started", "refused") } else { line.to_owned() }
    };
    let text: Vec<String> = lines.into_iter().map(refused).collect();
    site.write("work/log.jsonl", &(text.join("\n") + "\n"));
    site.write("work/next.toml", SEATS);
    site.test()
        .args(["policy", "check", "--from", "$DIR/work/log.jsonl", "$DIR/work/next.toml"])
        .stdout(
            "
            1,440 launches of the log: none is refused that was not before
            4001, matlab: 720 launches refused then, started at once now
            ",
        )
        .status(0);
}

/// When a program ended is known exactly where its parent saw it; otherwise it ended between two looks of
/// `rungate end --overdue`.
#[test]
fn whoever_looks_writes_down_who_has_ended() {
    // Nobody else may write into the log of all.
    needs_root!();
    let look = ["end", "--overdue"];
    let text = policy("[repository.seats]\nlimit = 1\n[[rule]]\nacquire = [\"seats\"]\n");
    let site = Site::with_policy(&text);
    site.program("matlab");
    let ends = || -> Vec<Value> {
        let log = std::fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
        let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
        events.filter(|event| event["event"] == json!("ended")).collect()
    };
    let looked = || {
        let before = now();
        assert_eq!(site.test().args(look).outcome().ending, Ending::Status(0), "{look:?}");
        before
    };
    // Here rungate becomes the program, so that nobody sees its end.
    let mut running = site.test().args(["run", "--", "matlab"]).spawn();
    let pid = running.pid();
    let first = looked();
    assert_eq!(ends(), Vec::<Value>::new(), "{look:?}");
    let not_before = now();
    running.close_stdin();
    running.end();
    let not_after = now();
    looked();
    looked();
    let ends = ends();
    assert_eq!(ends.len(), 1, "{look:?}: {ends:?}");
    assert_eq!((&ends[0]["pid"], &ends[0]["status"]), (&json!(pid), &json!("gone")), "{look:?}");
    let bound = |place: usize| ends[0]["between"][place].as_u64().expect("a bound");
    assert!(
        bound(0) >= first && bound(0) <= not_before && bound(1) >= not_after,
        "{look:?}: {first} {not_before} {not_after} {ends:?}"
    );
    let simulated = as_json(&simulate(&site, &text, &["--json"]));
    let number = |what: &str| simulated["ends"][what].as_u64().expect("a number");
    // Bounds within a second are as good as exact.
    assert_eq!((number("exact") + number("bounded"), number("missed")), (1, 0), "{look:?}: {simulated:#}");
}

/// A clock that is set makes no program another one: what has been seen alive is known by its process.
#[test]
fn a_clock_that_is_set_ends_nothing() {
    needs_root!();
    let text = policy("[repository.seats]\nlimit = 1\n[[rule]]\nacquire = [\"seats\"]\n");
    let site = Site::with_policy(&text);
    site.program("matlab");
    let look = || site.test().args(["end", "--overdue"]).status(0);
    let mut running = site.test().args(["run", "--", "matlab"]).spawn();
    look();
    // As if the clock had shown an earlier time when it started.
    let read = || -> Value {
        let text = std::fs::read(site.path("work/log.jsonl.ends")).expect("what a sweep saves");
        serde_json::from_slice(&text).expect("JSON")
    };
    let mut saved = read();
    let began = saved["open"][0]["began"].as_u64().expect("a start");
    saved["open"][0]["began"] = json!(began - 3_600_000_000);
    site.write("work/log.jsonl.ends", &saved.to_string());
    look();
    assert_eq!(read()["open"].as_array().map(Vec::len), Some(1), "it still runs");
    // What a sweep of an older version has saved can be read.
    saved = read();
    saved["open"][0].as_object_mut().expect("a launch").remove("process");
    saved["open"][0]["began"] = json!(began);
    site.write("work/log.jsonl.ends", &saved.to_string());
    look();
    assert_eq!(read()["open"].as_array().map(Vec::len), Some(1), "it still runs");
    running.close_stdin();
    running.end();
    look();
    assert_eq!(read()["open"], json!([]));
}

/// In microseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
    u64::try_from(since.as_micros()).expect("it is long before the end of time")
}

#[test]
fn what_cannot_be_played_is_said() {
    let site = Site::new();
    site.write("work/log.jsonl", "");
    simulate(&site, SEATS, &[])
        .stderr(
            "
            rungate: the log has no launch
            Starts are in it where the policy says: [log] replay = true
            ",
        )
        .status(64);
    // No command is suggested that would mend a log as if it were a policy.
    site.test()
        .args(["simulate", "log.jsonl"])
        .stderr(
            "
            rungate: log.jsonl has the name of a log; the policy to try must come first
            rungate simulate /etc/rungate/policy.toml log.jsonl
            ",
        )
        .status(64);
    let wrong = |limit: &str, said: &str| simulate(&site, SEATS, &["--limit", limit]).stderr(said).status(64);
    wrong("matlab", "rungate: --limit takes a repository and its limits, as matlab=8..16, not \"matlab\"\n");
    wrong(
        "matlab=9..8",
        "rungate: --limit takes a repository and its limits, as matlab=8..16, not \"matlab=9..8\"\n",
    );
    wrong("seats=1..2", "rungate: the policy has no repository \"seats\"\nIt has: matlab\n");
}

/// A log of launches that each end, on one host: second, user, and how long it runs; none if it was refused.
fn short_log(launches: &[(u64, u32, Option<u64>)], more: &str) -> String {
    let time = |second: u64| 1_790_035_200_000 + second * 1000;
    let mut lines: Vec<(u64, String)> = more.lines().map(|line| (time_of(line), line.to_owned())).collect();
    for (number, (second, uid, runs)) in launches.iter().enumerate() {
        let event = |at: u64, kind: &str, rest: &str| {
            let pid = 100 + number;
            let who = format!("\"command\":\"matlab\",\"uid\":{uid},\"pid\":{pid},\"host\":\"ws1\"{rest}");
            (time(at), format!("{{\"time\":{},\"event\":\"{kind}\",{who}}}", time(at)))
        };
        match runs {
            Some(runs) => lines.extend([
                event(*second, "started", ""),
                event(second + runs, "ended", &format!(",\"seconds\":{runs},\"status\":\"0\"")),
            ]),
            None => lines.push(event(*second, "refused", "")),
        }
    }
    lines.sort_by_key(|(time, _)| *time);
    lines.into_iter().map(|(_, line)| line + "\n").collect()
}

fn time_of(line: &str) -> u64 {
    serde_json::from_str::<Value>(line).expect("JSON")["time"].as_u64().expect("a time")
}

/// What the launches of the log come to under a policy: refused, started after a wait, seconds of that.
#[track_caller]
fn played(site: &Site, log: &str, policy: &str) -> (u64, u64, f64) {
    site.write("work/log.jsonl", log);
    let played = as_json(&simulate(site, policy, &["--json"]));
    let all = &played["now"]["all"];
    let number = |key: &str| all[key].as_u64().unwrap_or_else(|| panic!("{played:#}"));
    (number("refused"), number("waited"), all["wait_seconds"].as_f64().expect("seconds"))
}

/// A slot that lingers is taken for others, and not for the user who had it; it counts as in use.
#[test]
fn a_lingering_slot_is_taken_for_others() {
    let site = Site::new();
    let policy = |keys: &str| {
        format!(
            "[repository.seats]\nkeeper = \"agent\"\nlimit = 1\n{keys}\n[[rule]]\nacquire = [\"seats\"]\n"
        )
    };
    let lingers = policy("linger = \"90s\"");
    // The second takes the slot over, the third comes 25 s after its end, the fourth 95 s.
    let log =
        short_log(&[(0, 4001, Some(10)), (30, 4001, Some(5)), (60, 4002, Some(5)), (130, 4002, Some(5))], "");
    assert_eq!(played(&site, &log, &policy("")), (0, 0, 0.0));
    assert_eq!(played(&site, &log, &lingers), (1, 0, 0.0));
    let log = short_log(&[(0, 4001, Some(10)), (60, 4002, Some(5)), (200, 4001, Some(1))], "");
    assert_eq!(
        played(&site, &log, &(lingers.replace("limit = 1", "limit = 1\nwait = \"1h\""))),
        (0, 1, 40.0)
    );
    let whole = as_json(&simulate(&site, &lingers, &["--json"]));
    let used = whole["now"]["repositories"]["seats"]["used"].as_f64().expect("a number");
    assert!((used - (100.0 + 1.0) / 201.0).abs() < 0.001, "{whole:#}");
    // A group keeps it until the last of its programs has ended, and as long as it lingers after that.
    let group = lingers.replace("linger", "shared_by = \"user\"\nlinger");
    let log = short_log(
        &[(0, 4001, Some(50)), (10, 4001, Some(5)), (130, 4002, Some(1)), (141, 4002, Some(1))],
        "",
    );
    assert_eq!(played(&site, &log, &group), (1, 0, 0.0));
}

const MEASURED: &str = "
    [repository.seats]
    limit = 2
    KEYS
    [repository.seats.outside]
    command = [\"/bin/true\"]
    settle  = \"0s\"
    [[rule]]
    acquire = [\"seats\"]
";

/// Use outside rungate takes room from one sample to the next, and what the launches themselves use counts
/// once. Whoever waits for it starts when a sample leaves room.
#[test]
fn use_outside_takes_room_as_it_was_measured() {
    let site = Site::new();
    let measured = |second: u64, lines: &str| {
        let time = 1_790_035_200_000 + second * 1000;
        format!(
            "{{\"time\":{time},\"event\":\"measured\",\"command\":\"measure\",\"uid\":0,\"pid\":1,\"host\":\"ws1\",\
             \"repositories\":[\"seats\"],\"outside\":[{lines}]}}\n"
        )
    };
    let bob = |amount: u32| format!("{{\"user\":\"bob\",\"host\":\"lab1\",\"amount\":{amount}}}");
    let ann = "{\"user\":\"ann\",\"uid\":4001,\"host\":\"WS1.example\",\"amount\":1}";
    let policy = MEASURED.replace("KEYS", "");
    let (full, none) = (measured(5, &bob(2)), measured(10, ""));
    let log =
        short_log(&[(1, 4001, Some(1)), (6, 4001, Some(1)), (11, 4001, Some(1))], &(full.clone() + &none));
    assert_eq!(played(&site, &log, &policy), (1, 0, 0.0));
    // One is held by ann and one used by bob. Hers counts once until she ends, and until the next sample after.
    let both = measured(30, &format!("{ann},{}", bob(1)));
    let log = short_log(
        &[(20, 4001, Some(20)), (31, 4002, Some(1)), (45, 4002, Some(1))],
        &(both + &measured(41, &bob(1))),
    );
    assert_eq!(played(&site, &log, &policy), (1, 0, 0.0));
    let log = short_log(&[(20, 4001, Some(20)), (31, 4002, Some(1))], &measured(30, ann));
    assert_eq!(played(&site, &log, &policy), (0, 0, 0.0));
    // With shared_by a user with a seat outside needs no room.
    let shared = MEASURED.replace("KEYS", "shared_by = [\"user\", \"host\"]");
    let seated = measured(5, &format!("{ann},{}", bob(1)));
    let log = short_log(&[(6, 4001, Some(1)), (8, 4002, Some(1))], &seated);
    assert_eq!((played(&site, &log, &shared).0, played(&site, &log, &policy).0), (1, 2));
    let waits = MEASURED.replace("KEYS", "wait = \"1m\"");
    let log = short_log(&[(6, 4001, Some(1)), (100, 4001, Some(1))], &(full + &none));
    assert_eq!(played(&site, &log, &waits), (0, 1, 4.0));
    let said = simulate(&site, &waits, &[]).outcome().stdout;
    assert!(said.ends_with("\nUse of seats outside rungate: 2 samples of the log.\n"), "{said}");
    // A log without any is played as if there were none, and that is said.
    site.write("work/log.jsonl", &short_log(&[(6, 4001, Some(1))], ""));
    let said = simulate(&site, &waits, &[]).outcome().stdout;
    let assumed = "Use of seats outside rungate is not in the log: the simulation assumes that there was none.\n\
        To have it logged, set replay = true in [log] and run rungate-measure.service.\n";
    assert!(said.ends_with(assumed), "{said}");
    let swept = simulate(&site, &waits, &["--limit", "seats=1..2"]).outcome().stdout;
    assert!(swept.ends_with(assumed), "{swept}");
    let check = ["policy", "check", "--from", "$DIR/work/log.jsonl", "$DIR/work/tried.toml"];
    let checked = site.test().args(check).outcome().stdout;
    assert!(checked.ends_with(&format!("none is refused that was not before\n{assumed}")), "{checked}");
}

/// A netgroup has users of some hosts.
#[test]
fn hosts_of_netgroups_are_told_apart() {
    needs_root!();
    let site = Site::new();
    site.account("ann", &[]);
    site.write("etc/nsswitch.conf", "passwd: files\ngroup: files\nnetgroup: files\n");
    site.write("etc/netgroup", "lab (ws1,ann,)\n");
    let ann = site.user("ann").uid;
    let log = short_log(&[(0, ann, Some(1)), (5, ann, Some(1)), (9, 4711, Some(1))], "");
    let log = log.replace("\"pid\":101,\"host\":\"ws1\"", "\"pid\":101,\"host\":\"ws2\"");
    for policy in [
        "[[rule]]\nusers = [\"+lab\"]\naction = \"deny\"\n",
        "[[rule]]\nusers = [\"ann\"]\nexcept = [{ users = [\"+lab\"] }]\naction = \"deny\"\n",
        "[repository.a]\nlimit = 1\nreserve = [{ users = [\"+lab\"], slots = 1 }]\n[[rule]]\nusers = [\"ann\"]\nacquire = [\"a\"]\n",
        "[repository.a]\nper = \"user\"\nlimit = 1\nlimits = { \"+lab\" = 0 }\n[[rule]]\nacquire = [\"a\"]\n",
    ] {
        assert_eq!(played(&site, &log, policy).0, 1, "{policy}");
    }
}

/// The entries of a netgroup may have the name of the host up to the first dot, although the host knows its domain.
#[test]
fn a_netgroup_may_have_short_names_of_hosts() {
    needs_root!();
    let site = Site::new();
    site.account("ann", &[]);
    site.write("etc/nsswitch.conf", "passwd: files\ngroup: files\nnetgroup: files\n");
    site.write("etc/netgroup", "lab (ws1,ann,)\nfarm (ws1.example,ann,)\n");
    let log = short_log(&[(0, site.user("ann").uid, Some(1))], "");
    let deny = |netgroup: &str| format!("[[rule]]\nusers = [\"+{netgroup}\"]\naction = \"deny\"\n");
    for (host, netgroup, refused) in [
        ("ws1.example", "lab", 1),
        ("ws1.example", "farm", 1),
        ("ws1", "farm", 0),
        ("ws10.example", "lab", 0),
    ] {
        let log = log.replace("\"host\":\"ws1\"", &format!("\"host\":\"{host}\""));
        assert_eq!(played(&site, &log, &deny(netgroup)).0, refused, "{netgroup} at {host}");
    }
}

/// Whose use outside it is, who takes a lingering slot over, and who is in a group depends on the host, if the
/// policy says so. A holder that began after the command that measured is not in the sample.
#[test]
fn hosts_are_told_apart_if_the_policy_does() {
    let site = Site::new();
    let agents = |keys: &str| {
        format!(
            "[repository.seats]\nkeeper = \"agent\"\nlimit = 1\n{keys}\n[[rule]]\nacquire = [\"seats\"]\n"
        )
    };
    let (lingers, group) = (agents("linger = \"90s\""), agents("shared_by = [\"user\", \"host\"]"));
    let of_site = MEASURED.replace("KEYS", "");
    let of_host = of_site.replace("settle", "of = \"host\"\n    settle");
    let measured = |second: u64, took: u64, line: &str| {
        let time = 1_790_035_200_000 + second * 1000;
        format!(
            "{{\"time\":{time},\"event\":\"measured\",\"command\":\"measure\",\"uid\":0,\"pid\":1,\"host\":\"ws1\",\
             \"seconds\":{took},\"repositories\":[\"seats\"],\"outside\":[{line}]}}\n"
        )
    };
    let full = measured(5, 0, "{\"user\":\"bob\",\"host\":\"lab1\",\"amount\":2}");
    let anns = "{\"user\":\"ann\",\"uid\":4001,\"host\":\"WS1.example\",\"amount\":1}";
    let again = [(0, 4001, Some(10)), (30, 4001, Some(5))];
    let together = [(0, 4001, Some(50)), (10, 4001, Some(5))];
    let soon = [(0, 4003, Some(1)), (6, 4001, Some(1)), (8, 4001, Some(1))];
    let before = [(0, 4003, Some(1)), (20, 4001, Some(20)), (31, 4002, Some(1))];
    let during = [(0, 4003, Some(1)), (25, 4001, Some(20)), (31, 4002, Some(1))];
    // The policy, what else is in the log, the launches, the host of the last one, and how many are refused.
    for (policy, more, launches, host, refused) in [
        (&lingers, String::new(), &again[..], "ws1", 0),
        (&lingers, String::new(), &again[..], "ws2", 1),
        (&group, String::new(), &together[..], "ws1", 0),
        (&group, String::new(), &together[..], "ws2", 1),
        (&of_site, full.clone(), &soon[..], "ws2", 2),
        (&of_host, full, &soon[..], "ws2", 1),
        (&of_site, measured(30, 0, anns), &before[..], "ws1", 0),
        (&of_site, measured(30, 0, anns), &before[..], "ws2", 0),
        (&of_site, measured(30, 0, anns), &during[..], "ws1", 0),
        (&of_site, measured(30, 10, anns), &during[..], "ws1", 1),
    ] {
        let log = short_log(launches, &more);
        let of_last = |host: &str| format!("\"pid\":{},\"host\":\"{host}\"", 99 + launches.len());
        let log = log.replace(&of_last("ws1"), &of_last(host));
        assert_eq!(played(&site, &log, policy).0, refused, "{policy}{host}\n{log}");
    }
}
