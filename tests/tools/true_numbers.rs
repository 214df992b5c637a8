//! Every number that rungate prints is true: one site is used by real launches under every hold, with lock
//! files and with the agent, and a count made outside is what `report`, `history`, `metrics` and `simulate`
//! say, to the unit.

use std::{
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
    thread,
    time::{Duration, SystemTime},
};

use flate2::{Compression, write::GzEncoder};
use nix::{sys::stat::Mode, unistd::mkfifo};
use serde_json::{Value, json};

use crate::support::{Ending, Running, Site, eventually, listing, log_of, needs_root};

const HOLDS: [&str; 4] = ["process", "descriptor", "supervisor", "tree"];

/// Three seats that are logged, with this hold.
fn seats(hold: &str, keeper: &str, replay: bool, limit: u32) -> String {
    format!(
        "
        [log]
        to     = \"$DIR/work/log.jsonl\"
        replay = {replay}

        [repository.seats]
        keeper = \"{keeper}\"
        limit  = {limit}
        hold   = \"{hold}\"

        [[rule]]
        name     = \"seats\"
        commands = [\"matlab\", \"true\"]
        acquire  = [\"seats\"]
        "
    )
}

/// A site with the policy, and the agent where it keeps something.
fn site(policy: &str, keeper: &str) -> (Site, Option<Running>) {
    let (site, agent) = if keeper == "agent" {
        let (site, agent) = Site::with_agent(policy);
        (site, Some(agent))
    } else {
        (Site::with_policy(policy), None)
    };
    site.program("matlab");
    site.script("true", "#!/bin/sh\nexit 0\n");
    (site, agent)
}

#[track_caller]
fn answer(site: &Site, arguments: &[&str]) -> Value {
    let outcome = site.test().args(arguments).outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{arguments:?}: {}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {}", outcome.stdout))
}

fn report(site: &Site) -> Value {
    answer(site, &["report", "--json", "$DIR/work/log.jsonl"])
}

/// How many slots are held, as the table itself says.
fn held(site: &Site) -> usize {
    listing(&site.test()).iter().map(|one| one["holders"].as_array().map_or(0, Vec::len)).sum()
}

fn is_free(site: &Site) {
    eventually("all slots are free", || (held(site) == 0).then_some(()));
}

/// A day in the life of three seats: three at once, one refused, one that waits, and five after each other.
fn use_them(site: &Site) -> Counted {
    let run = |more: &[&str]| site.test().args(["run", "-q"]).args(more).args(["--", "matlab"]);
    let mut counted = Counted::default();
    let mut holders: Vec<Running> = (0..3).map(|_| run(&[]).spawn()).collect();
    counted.most = held(site);
    assert_eq!(run(&[]).outcome().ending, Ending::Status(75));
    let mut waiter = run(&["-w", "forever"]).background();
    eventually("it waits", || {
        let listed = listing(&site.test());
        listed.iter().any(|one| one["waiting"].as_array().is_some_and(|line| !line.is_empty())).then_some(())
    });
    // A look that knows that the holders were alive after it came: else the bounds of their ends are wider.
    assert_eq!(site.test().args(["end", "--overdue"]).outcome().ending, Ending::Status(0));
    let mut first = holders.remove(0);
    first.close_stdin();
    first.end();
    waiter.wait_for_echo();
    counted.most = counted.most.max(held(site));
    for mut holder in holders.into_iter().chain([waiter]) {
        holder.close_stdin();
        holder.end();
    }
    is_free(site);
    for _ in 0..5 {
        assert_eq!(site.test().args(["run", "--", "true"]).outcome().ending, Ending::Status(0));
        is_free(site);
    }
    Counted { started: 3 + 1 + 5, refused: 1, waited: 1, ..counted }
}

/// What was seen from outside.
#[derive(Debug, Default)]
struct Counted {
    started: u64,
    refused: u64,
    waited: u64,
    most: usize,
}

/// Whether each command says what was counted.
#[track_caller]
fn agree(site: &Site, policy: &str, counted: &Counted, case: &str) {
    let report = report(site);
    let seats = &report["programs"]["seats"];
    let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
    for of in [seats, &report["all"]] {
        assert_eq!(
            [&of["started"], &of["refused"], &of["waited"], &of["at_once"]].map(number),
            [counted.started, counted.refused, counted.waited, counted.started - counted.waited],
            "{case}: {report:#}"
        );
    }
    // No use above what there was, and what is given as known is known.
    let (low, high) = (number(&seats["most"]["at_least"]), number(&seats["most"]["at_most"]));
    assert!(low <= counted.most as u64 && counted.most as u64 <= high, "{case}: {seats:#}");
    assert!(high <= 3, "{case}: {seats:#}");
    if let Some(average) = seats["average"]["at_most"].as_f64() {
        assert!(average <= 3.0, "{case}: {seats:#}");
    }
    let is_replayed = case.contains("replay");
    if is_replayed {
        assert_eq!((low, high), (3, 3), "{case}: {seats:#}");
    }

    let history = site.test().args(["history", "--json", "$DIR/work/log.jsonl"]).outcome().stdout;
    let events: Vec<Value> = history.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).count() as u64;
    assert_eq!(
        (of("started"), of("refused"), of("waited")),
        (counted.started, counted.refused, counted.waited),
        "{case}: {history}"
    );

    let metrics = site.test().args(["metrics"]).outcome().stdout;
    for sample in [
        format!("rungate_starts_total{{repository=\"seats\"}} {}", counted.started),
        format!(
            "rungate_refusals_total{{repository=\"seats\",reason=\"full\",enforced=\"true\"}} {}",
            counted.refused
        ),
    ] {
        assert!(metrics.lines().any(|line| line == sample), "{case}: {sample} is not in\n{metrics}");
    }

    site.write("work/same.toml", policy);
    let simulated = answer(site, &["simulate", "--json", "$DIR/work/same.toml", "$DIR/work/log.jsonl"]);
    let then = &simulated["then"]["all"];
    assert_eq!(
        [&then["launches"], &then["at_once"], &then["refused"]].map(number),
        [counted.started + counted.refused, counted.started - counted.waited, counted.refused],
        "{case}: {simulated:#}"
    );
    // The policy that wrote the log refuses those whom it refused; or the log does not tell, and that is
    // said.
    let now = &simulated["now"];
    if now.is_null() {
        let unknown = simulated["unknown"].as_str().expect("a reason");
        assert!(
            unknown.contains("rungate end --overdue") && !is_replayed,
            "{case}: {}",
            simulated["undecided"]
        );
        return;
    }
    // Without replay the log does not tell that somebody would have waited.
    if is_replayed {
        assert_eq!(simulated["different"], 0, "{case}: {simulated:#}");
    }
    assert_eq!(number(&now["repositories"]["seats"]["most"]), 3, "{case}: {simulated:#}");
}

/// All four commands, once as the launches left the log, and once more after ends were written late.
#[track_caller]
fn all_agree(keeper: &str) {
    for hold in HOLDS {
        for replay in [true, false] {
            let case = format!("{keeper}, {hold}{}", if replay { ", replay" } else { "" });
            let policy = seats(hold, keeper, replay, 3);
            let (site, _agent) = site(&policy, keeper);
            let counted = use_them(&site);
            assert_eq!(counted.most, 3, "{case}");
            agree(&site, &policy, &counted, &case);
            // One look afterwards records ends of long before, as far as they are known.
            assert_eq!(site.test().args(["end", "--overdue"]).outcome().ending, Ending::Status(0));
            agree(&site, &policy, &counted, &format!("{case}, with late ends"));
        }
    }
}

#[test]
fn all_agree_with_a_count_from_outside_under_every_hold() {
    all_agree("file");
}

#[test]
fn all_agree_with_the_agent_too() {
    needs_root!();
    all_agree("agent");
}

/// A launch whose parent has ended counts like any other: as from `at`, `setsid` or a script that goes on.
#[test]
fn launches_without_a_parent_are_counted() {
    needs_root!();
    for keeper in ["file", "agent"] {
        for hold in HOLDS {
            let policy = seats(hold, keeper, true, 3);
            let (site, _agent) = site(&policy, keeper);
            for number in 1..=4 {
                let launch = site.test().through(["setsid", "--fork"]).args(["run", "--", "true"]);
                assert_eq!(launch.outcome().ending, Ending::Status(0));
                let started = || fs::read_to_string(site.path("work/log.jsonl")).unwrap_or_default();
                eventually("the launch has started and ended", || {
                    (started().matches("\"started\"").count() == number && held(&site) == 0).then_some(())
                });
            }
            assert_eq!(site.test().args(["end", "--overdue"]).outcome().ending, Ending::Status(0));
            let report = report(&site);
            let seats = &report["programs"]["seats"];
            assert_eq!(
                (&seats["started"], &seats["refused"]),
                (&json!(4), &json!(0)),
                "{keeper} {hold}: {seats:#}"
            );
            assert_eq!(seats["most"]["at_least"], 1, "{keeper} {hold}: {seats:#}");
            let high = seats["most"]["at_most"].as_u64().expect("a number");
            assert!(high <= 3, "{keeper} {hold}: {seats:#}");
            let metrics = site.test().args(["metrics"]).outcome().stdout;
            assert!(metrics.contains("rungate_starts_total{repository=\"seats\"} 4\n"), "{metrics}");
        }
    }
}

fn seats_policy(replay: bool) -> String {
    seats("process", "file", replay, 1)
}

/// With the default hold nobody writes ends down: twenty launches one after another at limit 1 are one at a
/// time.
#[test]
fn a_slot_that_is_given_again_was_free_before() {
    for limit in [1, 10] {
        for replay in [true, false] {
            let (site, _) = site(&seats("process", "file", replay, limit), "file");
            for _ in 0..20 {
                assert_eq!(site.test().args(["run", "--", "true"]).outcome().ending, Ending::Status(0));
            }
            let report = report(&site);
            let seats = &report["programs"]["seats"];
            let high = seats["most"]["at_most"].as_u64().expect("a number");
            assert!(high <= u64::from(limit), "{limit} {replay}: {seats:#}");
            if replay || limit == 1 {
                assert_eq!(high, 1, "{limit} {replay}: {seats:#}");
                assert_eq!(seats["most"]["at_least"], 1, "{limit} {replay}: {seats:#}");
            }
            if let Some(average) = seats["average"]["at_most"].as_f64() {
                assert!(average <= f64::from(limit), "{seats:#}");
            }
            if limit == 1 {
                // The same launches start again: each slot was free before.
                site.write("work/same.toml", &seats_policy(replay));
                let again =
                    answer(&site, &["simulate", "--json", "$DIR/work/same.toml", "$DIR/work/log.jsonl"]);
                assert_eq!(again["now"]["all"]["at_once"], 20, "{replay}: {again:#}");
            }
            let text = site.test().args(["report", "$DIR/work/log.jsonl"]).outcome().stdout;
            assert!(!text.contains("20 of 1") && !text.contains(" 20 at most"), "{text}");
        }
    }
}

/// A program whose end was not seen may have ended as soon as it began, and is not counted with the next one.
#[test]
fn an_end_that_was_not_seen_is_no_second_holder() {
    let site = Site::new();
    site.write("work/p.toml", &seats("process", "file", false, 4));
    let most = |events: &[(&str, u32, u32)]| {
        let event = |(kind, pid, slot): &(&str, u32, u32)| {
            let seats = format!("seats={slot}");
            json!({ "event": kind, "pid": pid, "repositories": [seats] })
        };
        log_of(&site, &events.iter().map(event).collect::<Vec<_>>());
        let report = ["report", "--json", "--policy", "$DIR/work/p.toml", "$DIR/work/log.jsonl"];
        let most = &answer(&site, &report)["programs"]["seats"]["most"];
        (most["at_least"].as_u64(), most["at_most"].as_u64())
    };
    let again = [("started", 1, 1), ("started", 2, 1), ("ended", 2, 1)];
    assert_eq!(most(&again), (Some(1), Some(1)));
    let three = [("started", 4, 2), ("started", 5, 3), ("started", 6, 1), ("ended", 4, 2)];
    let more = [&again[..2], &[("started", 3, 4), ("ended", 2, 1), ("ended", 3, 4)], &three].concat();
    assert_eq!(most(&more), (Some(3), Some(3)));
}

/// With the agent and one look after fourteen launches at limit 10.
#[test]
fn ends_that_are_written_late_are_placed_by_their_time() {
    needs_root!();
    let (site, _agent) = site(&seats("process", "agent", true, 10), "agent");
    for _ in 0..14 {
        assert_eq!(site.test().args(["run", "--", "true"]).outcome().ending, Ending::Status(0));
        is_free(&site);
    }
    assert_eq!(site.test().args(["end", "--overdue"]).outcome().ending, Ending::Status(0));
    let seats = &report(&site)["programs"]["seats"];
    assert_eq!(seats["most"], json!({ "at_least": 1, "at_most": 1 }), "{seats:#}");
    assert!(seats["average"]["at_most"].as_f64().is_some_and(|average| average <= 1.0), "{seats:#}");
}

/// Nobody was refused, and the log does not tell when programs ended: whether the next would be is unknown,
/// and no build fails because of it.
#[test]
fn what_cannot_be_known_is_called_unknown() {
    let policy = seats("process", "file", false, 10);
    let (site, _) = site(&policy, "file");
    for _ in 0..20 {
        assert_eq!(site.test().args(["run", "--", "true"]).outcome().ending, Ending::Status(0));
    }
    site.write("work/one.toml", &policy.replace("limit  = 10", "limit  = 1"));
    let said = site.test().args(["simulate", "$DIR/work/one.toml", "$DIR/work/log.jsonl"]).outcome().stdout;
    assert!(said.contains("\nunknown: whether "), "{said}");
    assert!(said.contains("rungate-overdue.timer") && !said.contains("\nnow "), "{said}");
    let swept =
        site.test().args(["simulate", "$DIR/work/one.toml", "$DIR/work/log.jsonl", "--limit", "seats=1..2"]);
    let swept = swept.outcome().stdout;
    assert!(swept.contains("unknown unknown") && !swept.contains("start 99%"), "{swept}");
    let tested = site
        .test()
        .args(["policy", "check", "--from", "$DIR/work/log.jsonl", "$DIR/work/one.toml"])
        .outcome();
    assert_eq!(tested.ending, Ending::Status(0), "{}", tested.stderr);
    assert!(tested.stdout.starts_with("20 launches of the log: unknown for 1"), "{}", tested.stdout);
    // What does not depend on ends is known nevertheless.
    let denied = "[[rule]]\nname = \"never\"\ncommands = [\"true\"]\naction = \"deny\"\n";
    site.write("work/one.toml", &(policy.replace("limit  = 10", "limit  = 1") + denied));
    let tested = site
        .test()
        .args(["policy", "check", "--from", "$DIR/work/log.jsonl", "$DIR/work/one.toml"])
        .outcome();
    assert_eq!(tested.ending, Ending::Status(1), "{}", tested.stderr);
    assert!(
        tested.stderr.contains("true: 20 launches started at once then, refused now\n"),
        "{}",
        tested.stderr
    );
}

/// `metrics` is a reader: what it is not allowed to write it does not need.
#[test]
fn metrics_writes_nothing() {
    needs_root!();
    let (site, _) = site(&seats("process", "file", true, 3), "file");
    for _ in 0..3 {
        assert_eq!(site.test().args(["run", "--", "true"]).outcome().ending, Ending::Status(0));
    }
    let before = fs::read(site.path("work/log.jsonl")).expect("the log");
    assert_eq!(site.test().args(["metrics"]).outcome().ending, Ending::Status(0));
    assert_eq!(fs::read(site.path("work/log.jsonl")).expect("the log"), before);
    assert!(!site.path("work/log.jsonl.ends").exists());
    // The writer is `end --overdue`; it is the unit of that which may write to the log.
    assert_eq!(site.test().args(["end", "--overdue"]).outcome().ending, Ending::Status(0));
    assert!(fs::read(site.path("work/log.jsonl")).expect("the log").len() > before.len());
    let unit = |name: &str| {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name))
            .expect("a unit")
    };
    assert!(unit("rungate-metrics.service").contains("ProtectSystem=strict"));
    assert!(unit("rungate-overdue.service").contains("ProtectSystem=full"), "it keeps /var writable");
}

/// One line for each launch of `true`, so many milliseconds after another.
fn lines(numbers: std::ops::Range<u64>) -> String {
    let mut text = String::new();
    for number in numbers {
        let who = format!("\"command\":\"true\",\"uid\":0,\"pid\":{},\"host\":\"ws1\"", 1000 + number);
        let time = 1_790_000_000_000 + number * 60_000;
        let _ =
            writeln!(text, "{{\"time\":{time},\"event\":\"started\",{who},\"repositories\":[\"seats=1\"]}}");
        let _ = writeln!(text, "{{\"time\":{},\"event\":\"ended\",{who},\"seconds\":1}}", time + 1000);
    }
    text
}

/// A log may be rotated while it is read: each file is read once.
#[test]
fn rotation_in_the_middle_loses_nothing() {
    let (site, _) = site(&seats("supervisor", "file", false, 3), "file");
    let log = |end: &str| site.path(format!("work/log.jsonl{end}"));
    mkfifo(&log(".3"), Mode::from_bits_truncate(0o600)).expect("a new FIFO");
    for (number, end) in [(1, ".2"), (2, ".1"), (3, "")] {
        fs::write(log(end), lines(number * 100..number * 100 + 100)).expect("a log");
    }
    let history = site.test().args(["history", "--json"]);
    let outcome = thread::scope(|scope| {
        let history = scope.spawn(|| history.outcome());
        // It is the oldest file, and opened last.
        let mut oldest = OpenOptions::new().write(true).open(log(".3")).expect("it is read");
        for (from, to) in [(".2", ".4"), (".1", ".2"), ("", ".1")] {
            fs::rename(log(from), log(to)).expect("a file");
        }
        fs::write(log(""), "").expect("a log");
        oldest.write_all(lines(0..100).as_bytes()).expect("it is read");
        drop(oldest);
        history.join().expect("it does not panic")
    });
    assert_eq!(outcome.stdout.lines().count(), 800, "{}", outcome.stderr);
}

/// All files that rotation made are read, however few descriptors a shell allows.
#[test]
fn more_rotated_files_than_descriptors() {
    let (site, _) = site(&seats("supervisor", "file", false, 3), "file");
    site.write("work/log.jsonl", &lines(60..61));
    for number in 1..=60 {
        site.write(format!("work/log.jsonl.{number}"), &lines(60 - number..61 - number));
    }
    for few in ["ulimit -S -n 40; exec \"$@\"", "ulimit -n 40; exec \"$@\""] {
        let history = site.test().args(["history", "--json"]).through(["bash", "-c", few, "bash"]).outcome();
        assert_eq!(history.stdout.lines().count(), 2 * 61, "{}", history.stderr);
        assert!(!history.stderr.contains("cannot be read"), "{}", history.stderr);
    }
}

/// The log of the policy is read with the files that rotation made of it, compressed or not, in order; and
/// which time that is is said.
#[test]
fn rotated_files_are_read_in_order() {
    let (site, _) = site(&seats("supervisor", "file", false, 3), "file");
    let packed = |text: &str| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(text.as_bytes()).expect("memory can be written");
        packer.finish().expect("memory can be written")
    };
    fs::write(site.path("work/log.jsonl.2.gz"), packed(&lines(0..100))).expect("a log");
    site.write("work/log.jsonl.1", &lines(100..200));
    site.write("work/log.jsonl", &lines(200..202));
    // Beside it, and of others.
    site.write("work/log.jsonl.ends", "{}");
    site.write("work/other.jsonl.1", &lines(300..400));
    let history = site.test().args(["history", "--json"]).outcome();
    let times: Vec<u64> = history
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["time"].as_u64().expect("a time"))
        .collect();
    assert_eq!(times.len(), 404, "{}", history.stderr);
    assert!(times.is_sorted());
    assert!(history.stderr.starts_with("rungate: the log and 2 rotated files, since "), "{}", history.stderr);
    let report = answer(&site, &["report", "--json"]);
    assert_eq!((&report["all"]["started"], &report["rotated_files"]), (&json!(202), &json!(2)));
    let text = site.test().args(["report"]).outcome().stdout;
    assert!(text.contains("; read from the log and 2 rotated files\n"), "{text}");
    // What was named is read, and nothing else.
    let named = answer(&site, &["report", "--json", "$DIR/work/log.jsonl"]);
    assert_eq!((&named["all"]["started"], &named["rotated_files"]), (&json!(2), &json!(0)));
    // Without one of them the rest is told, and that it is missing.
    fs::write(site.path("work/log.jsonl.2.gz"), &packed(&lines(0..100))[..50]).expect("a log");
    let damaged = site.test().args(["report"]).outcome();
    assert_eq!(damaged.ending, Ending::Status(0));
    let said = "log.jsonl.2.gz cannot be read: it is compressed, and damaged or cut off\n";
    assert!(damaged.stderr.ends_with(said), "{}", damaged.stderr);
    assert!(damaged.stdout.contains("2 rotated files, 1 unreadable"), "{}", damaged.stdout);
}

/// Rotated files may have a date behind a dot. A file that is just being compressed exists twice, and an older
/// one with such a name is another file. Between a rotation and the next event there is no present file.
#[test]
fn rotated_files_are_read_once_and_in_order_under_any_name() {
    let (site, _) = site(&seats("supervisor", "file", false, 3), "file");
    site.write("work/log.jsonl.20261108", &lines(100..200));
    site.write("work/log.jsonl.20261101", &lines(50..100));
    site.write("work/log.jsonl.20261108.gz", &lines(100..150));
    site.write("work/log.jsonl.20261101.gz", &lines(0..50));
    let older =
        fs::File::options().write(true).open(site.path("work/log.jsonl.20261101.gz")).expect("a file");
    older.set_modified(SystemTime::now() - Duration::from_secs(60)).expect("a time");
    let history = site.test().args(["history", "--json"]).outcome();
    assert_eq!(history.ending, Ending::Status(0), "{}", history.stderr);
    let pids: Vec<Value> = history
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["pid"].clone())
        .collect();
    let expected: Vec<Value> = (1000..1200).flat_map(|pid| [json!(pid), json!(pid)]).collect();
    assert_eq!(pids, expected, "{}", history.stderr);
    assert_eq!(answer(&site, &["report", "--json"])["all"]["started"], 200);
    // Without a rotated file, a log that is missing is an error.
    for name in ["20261101", "20261101.gz", "20261108", "20261108.gz"] {
        fs::remove_file(site.path(format!("work/log.jsonl.{name}"))).expect("a file");
    }
    assert_eq!(site.test().args(["report"]).outcome().ending, Ending::Status(71));
}

/// Ends that are written after the rotation, of launches that are in the rotated file.
#[test]
fn an_end_is_not_lost_in_a_rotation() {
    needs_root!();
    let (site, _) = site(&seats("process", "file", true, 3), "file");
    let launch = || assert_eq!(site.test().args(["run", "--", "true"]).outcome().ending, Ending::Status(0));
    let look = || assert_eq!(site.test().args(["end", "--overdue"]).outcome().ending, Ending::Status(0));
    launch();
    look();
    launch();
    fs::rename(site.path("work/log.jsonl"), site.path("work/log.jsonl.1")).expect("a rotation");
    launch();
    look();
    let report = answer(&site, &["report", "--json"]);
    assert_eq!(report["all"]["started"], 3);
    let log = fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    assert_eq!(log.matches("\"event\":\"ended\"").count(), 2, "{log}");
}

/// Two times are suggested, each by one rule: from twenty observations on, and the same wherever it is shown.
#[test]
fn one_log_suggests_one_time() {
    let site = Site::new();
    site.write("work/log.jsonl", &lines(0..19));
    let suggestions = |site: &Site| report(site)["programs"]["seats"]["suggestions"].clone();
    assert_eq!(suggestions(&site), json!([]));
    site.write("work/log.jsonl", &lines(0..40));
    let evidence = "95% of 40 runs took up to 1s, the longest 1s";
    assert_eq!(suggestions(&site), json!([{ "setting": "expire_after = \"1m\"", "evidence": evidence }]));
    site.test().args(["report", "--html", "$DIR/work/page.html", "$DIR/work/log.jsonl"]).status(0);
    let page = fs::read_to_string(site.path("work/page.html")).expect("the page");
    let text = site.test().args(["report", "$DIR/work/log.jsonl"]).outcome().stdout;
    assert!(page.contains(evidence) && text.contains(evidence), "{text}");
}

/// A wait is as long as the launch measured it, also if the clock of its host was set in between.
#[test]
fn a_clock_that_is_set_is_no_wait() {
    let site = Site::new();
    let an_hour_ago = 1_789_996_400_000_000_u64;
    let waited = json!({ "event": "waited", "pid": 9, "seconds": 10.0, "arrived": an_hour_ago });
    log_of(&site, &[waited, json!({ "event": "started", "pid": 9, "arrived": an_hour_ago })]);
    assert_eq!(report(&site)["all"]["waits"]["longest"], json!(10.0));
}

/// A program that could not be executed has no length, so that no time is suggested because of it, and a launch
/// that is simulated does not last as long as it.
#[test]
fn a_program_that_was_not_executed_has_no_length() {
    let site = Site::new();
    let mut events = Vec::new();
    for (pid, seconds) in (1..=25).map(|pid| (pid, (pid == 25).then_some(0.5))) {
        events.push(json!({ "event": "started", "pid": pid, "repositories": ["seats=1"] }));
        let status = if seconds.is_some() { "0" } else { "not executed" };
        events.push(json!({ "event": "ended", "pid": pid, "status": status, "seconds": seconds }));
    }
    log_of(&site, &events);
    let seats = report(&site)["programs"]["seats"].clone();
    assert_eq!((&seats["runs"]["count"], &seats["suggestions"]), (&json!(1), &json!([])), "{seats}");
    assert_eq!((&seats["ends"]["missed"], &seats["most"]["at_most"]), (&json!(0), &json!(1)), "{seats}");
}

/// Memory has a bound: anybody who may append to a log can make up names.
#[test]
fn a_hundred_thousand_names_fit_into_memory() {
    let site = Site::new();
    let mut text = String::new();
    for number in 0..100_000_u64 {
        let time = 1_790_000_000_000 + number * 1000;
        let who = format!(
            "\"command\":\"c{number}\",\"uid\":{number},\"pid\":{},\"host\":\"h{number}\"",
            1000 + number
        );
        let tables = format!("\"tables\":[{{\"repository\":\"r{number}\",\"used\":1,\"limit\":2}}]");
        let _ = writeln!(
            text,
            "{{\"time\":{time},\"event\":\"started\",{who},\"repositories\":[\"r{number}=1\"],\"rules\":[\"x{number}\"],\
             \"launch\":{{\"groups\":[{number}]}},{tables}}}"
        );
    }
    site.write("work/log.jsonl", &text);
    let script = "import resource, subprocess, sys\nstatus = subprocess.call(sys.argv[2:], stdout=open(sys.argv[1], 'w'))\n\
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\nsys.exit(status)";
    let test = site.test().program("/usr/bin/python3").args(["-c", script, "$DIR/work/report.json"]);
    let test = test.args([site.rungate().as_os_str()]);
    let outcome = test.args(["report", "--json", "$DIR/work/log.jsonl"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    let kibibytes: u64 = outcome.stderr.trim().parse().expect("a number");
    assert!(kibibytes < 256 * 1024, "{kibibytes} KiB");
    let text = fs::read_to_string(site.path("work/report.json")).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["all"]["started"], 100_000);
    assert!(report["programs"].as_object().is_some_and(|programs| programs.len() <= 200));
}

/// The programs of a group have one slot together, until the last of them ends. No command counts it twice, and
/// none believes it free when the first has ended.
#[track_caller]
fn members_have_one_slot(keeper: &str) {
    for replay in [true, false] {
        let policy = seats("supervisor", keeper, replay, 1);
        let policy = policy.replace("limit  = 1\n", "limit  = 1\n        shared_by = \"command\"\n");
        let (site, _agent) = site(&policy, keeper);
        let run = |name: &str| site.test().args(["run", "-q", "--", name]);
        let mut first = run("matlab").spawn();
        let mut second = run("matlab").spawn();
        second.close_stdin();
        second.end();
        assert_eq!(run("true").outcome().ending, Ending::Status(75));
        first.close_stdin();
        first.end();
        is_free(&site);
        let log = fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
        assert_eq!(log.matches("\"joined\":[\"seats=1\"]").count(), 1, "{log}");

        let case = format!("{keeper}, replay = {replay}");
        let seats = &report(&site)["programs"]["seats"];
        assert_eq!(seats["most"], json!({ "at_least": 1, "at_most": 1 }), "{case}: {seats:#}");
        assert!(seats["average"]["at_most"].as_f64().is_some_and(|most| most <= 1.0), "{case}: {seats:#}");
        site.write("work/same.toml", &policy);
        let again = answer(&site, &["simulate", "--json", "$DIR/work/same.toml", "$DIR/work/log.jsonl"]);
        assert_eq!(again["different"], 0, "{case}: {again:#}");
        let now = &again["now"]["repositories"]["seats"];
        assert_eq!((&now["refused"], &now["most"]), (&json!(1), &json!(1)), "{case}: {again:#}");
        let check = ["policy", "check", "--json", "--from", "$DIR/work/log.jsonl", "$DIR/work/same.toml"];
        let from = &answer(&site, &check)["from"];
        assert_eq!((&from["refused"], &from["started"]), (&json!([]), &json!([])), "{case}: {from:#}");
    }
}

#[test]
fn members_have_one_slot_in_a_lock_file() {
    members_have_one_slot("file");
}

#[test]
fn members_have_one_slot_of_the_agents() {
    needs_root!();
    members_have_one_slot("agent");
}

/// What happened in one millisecond happened in the order of the log: who was refused there came before the end that
/// follows, however exactly the log knows the moment of the refusal.
#[test]
fn events_of_one_millisecond_happened_in_the_order_of_the_log() {
    let site = Site::new();
    site.write("work/p.toml", &seats("process", "file", false, 1));
    let event = |kind: &str, at: u64, command: &str, pid: u32, rest: &str| {
        let time = 1_790_000_000_000 + at;
        format!(
            "{{\"time\":{time},\"event\":\"{kind}\",\"command\":\"{command}\",\"uid\":0,\"pid\":{pid},\
             \"repositories\":[\"seats{rest}}}\n"
        )
    };
    let ends = event("ended", 47, "matlab", 1, "\"],\"seconds\":0.047,\"status\":\"0\"");
    for decided in ["", ",\"decided\":1790000000047600"] {
        let refused = event("refused", 47, "true", 2, &format!("\"]{decided}"));
        let next = event("started", 47, "true", 3, "=1\"]");
        let first = event("started", 0, "matlab", 1, "=1\"]");
        site.write("work/log.jsonl", &[first, refused, ends.clone(), next].concat());
        let again = answer(&site, &["simulate", "--json", "$DIR/work/p.toml", "$DIR/work/log.jsonl"]);
        assert_eq!(
            (&again["different"], &again["now"]["all"]["refused"]),
            (&json!(0), &json!(1)),
            "{again:#}"
        );
    }
}

/// A slot of a group is in use from the first start to the last end, in whichever order its programs end; and
/// if nobody saw them end, until another group has the slot.
#[test]
fn a_slot_that_several_have_is_in_use_once() {
    let site = Site::new();
    let event = |at: u64, kind: &str, pid: u32, rest: &str| {
        let time = 1_790_000_000_000 + at * 1000;
        format!(
            "{{\"time\":{time},\"event\":\"{kind}\",\"command\":\"matlab\",\"uid\":{pid},\"pid\":{pid}{rest}}}\n"
        )
    };
    let (one, both) = (",\"repositories\":[\"seats=1\"]", ",\"repositories\":[\"seats=1,2\"]");
    let first = event(0, "started", 1, one);
    let joins = |at, pid| event(at, "started", pid, &format!("{one},\"joined\":[\"seats=1\"]"));
    let wider = event(2, "started", 2, &format!("{both},\"joined\":[\"seats=1\"]"));
    let ends = |at, pid, ran| event(at, "ended", pid, &format!(",\"seconds\":{ran},\"status\":\"0\""));
    site.write("work/p.toml", &seats("process", "file", false, 2));
    let reported = |log: &str| {
        site.write("work/log.jsonl", log);
        let report = ["report", "--policy", "$DIR/work/p.toml", "--json", "$DIR/work/log.jsonl"];
        answer(&site, &report)["programs"]["seats"].clone()
    };
    let slot_seconds = |log: &str, most: u64| {
        let seats = reported(log);
        assert_eq!(seats["most"]["at_most"], most, "{log}{seats:#}");
        let average = |bound: &str| seats["average"][bound].as_f64().expect("a number") * 10.0;
        (average("at_least").round(), average("at_most").round())
    };
    let over = event(10, "ended", 9, "");
    let inside = [first.clone(), joins(1, 2), ends(2, 2, 1), ends(9, 1, 9), over.clone()].concat();
    assert_eq!(slot_seconds(&inside, 1), (9.0, 9.0));
    // A log that tells how much was in use tells how long that was all: until the last of them has ended.
    let of_one = &one[1..];
    let told = format!("{of_one},\"tables\":[{{\"repository\":\"seats\",\"used\":1,\"limit\":1}}]");
    assert_eq!(reported(&inside.replace(of_one, &told))["full_share_at_most"], 0.9);
    let after =
        [first.clone(), joins(3, 2), ends(4, 1, 4), joins(5, 3), ends(6, 2, 3), ends(9, 3, 4), over.clone()];
    assert_eq!(slot_seconds(&after.concat(), 1), (9.0, 9.0));
    // The second has one slot alone, for four seconds.
    let more = [first.clone(), wider, ends(6, 2, 4), ends(9, 1, 9), over.clone()].concat();
    assert_eq!(slot_seconds(&more, 2), (13.0, 13.0));
    // A group that only the start of another one shows to have left.
    let unseen = [first, joins(1, 2), event(8, "started", 3, one), ends(10, 3, 2)].concat();
    assert!((slot_seconds(&unseen, 1).1 - 10.0).abs() < 0.5);
}
