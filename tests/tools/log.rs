//! **The log** (`[log] to = …`): one event for each started, refused, waited, ended (supervised), expired,
//! too-soon, with repositories, slots, rule, user, command, times. A log that cannot be written never stops a
//! launch.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown, symlink};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::libc::O_NONBLOCK;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use crate::support::{Account, Ending, Running, Site, Test, eventually, listing, needs_root, set_mode};
use crate::tools::doctor::{all_found, host};

fn policy(to: &str) -> String {
    format!(
        r#"
        [log]
        to = "{to}"

        [repository.seats]
        limit        = 1
        expire_after = "1h"

        [repository.spare]
        limit = 1

        [repository.nightly]
        limit      = 1
        if_elapsed = "1h"

        [repository.trial]
        limit   = 0
        enforce = false

        [[rule]]
        name     = "seats for all"
        commands = ["matlab"]
        acquire  = ["seats"]

        [[rule]]
        name     = "and a spare one"
        commands = ["matlab"]
        acquire  = ["spare"]

        [[rule]]
        name     = "nightly"
        commands = ["nightly"]
        acquire  = ["nightly"]

        [[rule]]
        name     = "tried out"
        commands = ["novel"]
        acquire  = ["trial"]

        [[rule]]
        name     = "nobody"
        commands = ["forbidden"]
        action   = "deny"
        "#
    )
}

fn site_with(to: &str) -> Site {
    let site = Site::with_policy(&policy(to));
    for name in ["matlab", "nightly", "novel", "forbidden"] {
        site.program(name);
    }
    site
}

fn site() -> Site {
    site_with("$DIR/work/log.jsonl")
}

fn run(site: &Site, command: &str) -> Test {
    site.test().args(["run", "--quiet", "--", command])
}

/// The events of the log, and the log begins again.
fn events(site: &Site) -> Vec<Value> {
    let path = site.path("work/log.jsonl");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let _ = fs::remove_file(path);
    text.lines().map(|line| serde_json::from_str(line).expect("one JSON object on each line")).collect()
}

/// One event, without its time, which is now.
#[track_caller]
fn event(site: &Site) -> Value {
    let mut events = events(site);
    assert_eq!(events.len(), 1, "{events:#?}");
    without_time(events.remove(0))
}

fn host_name() -> String {
    nix::unistd::gethostname().expect("a node name").into_string().expect("UTF-8")
}

#[track_caller]
fn without_time(mut event: Value) -> Value {
    let time = event["time"].as_u64().expect("a time");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    let now = u64::try_from(now.as_millis()).expect("a number");
    assert!(time <= now && now - time < 3_600_000, "{event}");
    let event_fields = event.as_object_mut().expect("an object");
    event_fields.remove("time");
    assert_eq!(event_fields.remove("format"), Some(json!(1)));
    assert_eq!(event_fields.remove("host"), Some(json!(host_name())));
    event
}

#[test]
fn each_event_says_what_happened() {
    let site = site();
    let uid = Account::own().uid;
    // Arguments may be secret: the log names the command and no more.
    let holder = site.test().args(["run", "--", "matlab", "-"]).spawn();
    let rules = json!(["seats for all", "and a spare one"]);
    assert_eq!(
        event(&site),
        json!({
            "event": "started", "command": "matlab", "uid": uid, "pid": holder.pid(),
            "repositories": ["seats=1", "spare=1"], "rules": rules,
        })
    );

    let mut refused = run(&site, "matlab").background();
    assert_eq!(refused.end().ending, Ending::Status(75));
    assert_eq!(
        event(&site),
        json!({
            "event": "refused", "command": "matlab", "uid": uid, "pid": refused.pid(),
            "repositories": ["seats", "spare"], "rules": rules,
        })
    );

    let mut timed_out = site.test().args(["run", "-qw", "100ms", "--", "matlab"]).background();
    assert_eq!(timed_out.end().ending, Ending::Status(124));
    let mut logged = event(&site);
    let seconds = logged.as_object_mut().expect("an object").remove("seconds").expect("how long");
    assert!((0.1..3600.0).contains(&seconds.as_f64().expect("a number")), "{seconds}");
    assert_eq!(
        logged,
        json!({
            "event": "refused", "command": "matlab", "uid": uid, "pid": timed_out.pid(),
            "repositories": ["seats", "spare"], "rules": rules, "status": "timed out",
        })
    );

    let mut waiting =
        site.test().args(["run", "-qw", "forever", "--hold", "supervisor", "--", "matlab"]).background();
    site.stands_in_line("seats.lock", &waiting);
    assert_eq!(events(&site), Vec::<serde_json::Value>::new(), "that it waits is said when that is over");
    holder.kill();
    waiting.wait_for_echo();
    let mut both = events(&site);
    assert_eq!(both.len(), 2, "{both:#?}");
    let mut waited = without_time(both.remove(0));
    let seconds = waited.as_object_mut().expect("an object").remove("seconds").expect("how long");
    assert!((0.0..3600.0).contains(&seconds.as_f64().expect("a number")), "{seconds}");
    assert_eq!(waited, json!({ "event": "waited", "command": "matlab", "uid": uid, "pid": waiting.pid() }));
    assert_eq!(both[0]["event"], "started");
    waiting.signal(Signal::SIGTERM);
    assert_eq!(waiting.end().ending, Ending::Signal(15));
    let mut ended = event(&site);
    let seconds = ended.as_object_mut().expect("an object").remove("seconds").expect("how long");
    assert!((0.0..3600.0).contains(&seconds.as_f64().expect("a number")), "{seconds}");
    assert_eq!(
        ended,
        json!({ "event": "ended", "command": "matlab", "uid": uid, "pid": waiting.pid(), "status": "SIGTERM" })
    );

    run(&site, "nightly").status(0);
    run(&site, "nightly").status(69);
    let both = events(&site);
    assert_eq!(both[1]["event"], "too-soon");
    assert_eq!((&both[1]["repositories"], &both[1]["rules"]), (&json!(["nightly"]), &json!(["nightly"])));

    run(&site, "forbidden").status(77);
    let denied = event(&site);
    assert_eq!(
        (&denied["event"], &denied["status"], &denied["rules"]),
        (&json!("refused"), &json!("denied"), &json!(["nobody"]))
    );

    run(&site, "novel").status(0);
    let both = events(&site);
    assert_eq!((&both[0]["event"], &both[0]["repositories"]), (&json!("would-refuse"), &json!(["trial"])));
    assert_eq!(both[0]["rules"], json!(["tried out"]));
    assert_eq!(both[1]["event"], "started");

    // It is found, but cannot be executed.
    site.script("novel", "#!/nowhere/at-all\n");
    assert_eq!(run(&site, "novel").outcome().ending, Ending::Status(127));
    let all = events(&site);
    assert_eq!((all.len(), &all[1]["event"]), (3, &json!("started")));
    assert_eq!((&all[2]["event"], &all[2]["status"]), (&json!("ended"), &json!("not executed")));

    run(&site, "unknown-to-the-policy").outcome();
    assert_eq!(
        events(&site),
        Vec::<serde_json::Value>::new(),
        "what was not found was neither started nor refused"
    );
}

/// `replay`: events also tell what the decision looked at. Of arguments
/// only those are told that a rule names.
#[test]
fn a_log_that_is_to_be_replayed_tells_what_was_looked_at_and_no_secret() {
    let site = Site::with_policy(
        r#"
        [log]
        to     = "$DIR/work/log.jsonl"
        replay = true

        [repository.seats]
        per   = "user"
        limit = 2
        hold  = "supervisor"

        [[rule]]
        commands    = ["matlab"]
        arguments   = ["-batch", "--job=*"]
        environment = { PROJECT = ["apollo", "*"], TOKEN = true, DISPLAY = false }
        acquire     = ["seats"]
        "#,
    );
    // With a minus it runs as long as somebody reads.
    site.script("matlab", "#!/bin/sh\n[ \"$1\" != - ] || exec cat\n");
    let with = |arguments: &[&str]| {
        let test = site.test().args(["run", "--wait", "2m", "--", "matlab"]).args(arguments);
        test.env("PROJECT", "apollo").env("TOKEN", "hush").env_remove("DISPLAY")
    };
    with(&["-batch", "password", "--job=7"]).status(0);
    let logged = events(&site);
    let [started, ended] = logged.as_slice() else { panic!("a start and an end: {logged:#?}") };
    let uid = Account::own().uid;
    assert_eq!(
        started["tables"],
        json!([{ "repository": "seats", "member": format!("uid {uid}"), "used": 1, "held": "1", "limit": 2 }])
    );
    let launch = &started["launch"];
    assert_eq!(launch["arguments"], json!(["-batch", null, "--job=7"]));
    assert_eq!(launch["environment"], json!({ "PROJECT": "apollo", "TOKEN": null }));
    assert_eq!(launch["wait"], json!("2m"));
    assert!(launch["program"].as_str().is_some_and(|path| path.ends_with("/matlab")), "{launch}");
    assert!(launch["directory"].as_str().is_some_and(|path| path.starts_with('/')), "{launch}");
    let (began, end) = (started["decided"].as_u64(), ended["decided"].as_u64());
    assert!(began.is_some() && began <= end, "{began:?} {end:?}");
    assert_eq!(ended["launch"], Value::Null, "the start has it");
    assert!(!logged.iter().any(|event| event.to_string().contains("password")));
    assert!(!logged.iter().any(|event| event.to_string().contains("hush")));

    // Whoever waits says since when; a refusal says how many slots were held.
    let holders: Vec<_> = (0..2).map(|_| with(&["-", "-batch"]).spawn()).collect();
    let refused = eventually("it stands in line before its time is over", || {
        let refused = site.test().args(["run", "-qw", "300ms", "--", "matlab", "-batch"]);
        refused.env("PROJECT", "x").env("TOKEN", "x").env_remove("DISPLAY").status(124);
        events(&site).pop().filter(|refused| refused["arrived"].is_u64())
    });
    assert_eq!(refused["tables"][0]["used"], json!(2));
    assert_eq!(refused["tables"][0]["held"], json!("1,2"));
    assert_eq!(refused["launch"]["environment"], json!({ "PROJECT": null, "TOKEN": null }));
    let (arrived, decided) = (refused["arrived"].as_u64(), refused["decided"].as_u64());
    assert!(arrived < decided, "{refused}");
    let mut waiting = with(&["-", "-batch"]).background();
    eventually("it waits", || {
        let is_alone = listing(&site.test())[0]["waiting"].as_array()?.is_empty();
        (!is_alone).then_some(())
    });
    drop(holders);
    waiting.wait_for_echo();
    let waited = events(&site).into_iter().find(|event| event["event"] == "waited").expect("its wait");
    let (arrived, decided) = (waited["arrived"].as_u64(), waited["decided"].as_u64());
    assert!(arrived.is_some() && arrived < decided, "{waited}");
}

/// A start tells of each repository which slots are held there, with its own.
#[test]
fn a_start_tells_which_slots_are_held_in_each_table() {
    let site = Site::with_policy(
        r#"
        [log]
        to     = "$DIR/work/log.jsonl"
        replay = true

        [repository]
        seats.limit  = 2
        tokens.limit = 2

        [[rule]]
        commands = ["matlab", "novel"]
        acquire  = ["seats"]

        [[rule]]
        commands = ["matlab"]
        acquire  = ["tokens"]
        "#,
    );
    let held = |command: &str| {
        site.program(command);
        let running = run(&site, command).spawn();
        let started = event(&site);
        let tables = started["tables"].as_array().expect("tables").iter();
        let held: Vec<Value> = tables.map(|table| json!([table["repository"], table["held"]])).collect();
        (running, held)
    };
    let (_first, of_first) = held("novel");
    assert_eq!(of_first, [json!(["seats", "1"])]);
    let (_second, of_second) = held("matlab");
    assert_eq!(of_second, [json!(["seats", "1,2"]), json!(["tokens", "1"])]);
}

/// A launch under a ceiling tells its limit, and that of the repository.
#[test]
fn a_start_under_a_ceiling_tells_both_limits() {
    let site = Site::with_policy(
        r#"
        [log]
        to     = "$DIR/work/log.jsonl"
        replay = true

        [repository]
        seats.limit = 9

        [[rule]]
        commands = ["matlab"]
        acquire  = [{ repository = "seats", ceiling = 3 }]

        [[rule]]
        commands = ["novel"]
        acquire  = ["seats"]
        "#,
    );
    let limits = |command: &str| {
        site.program(command);
        let _running = run(&site, command).spawn();
        let table = event(&site)["tables"][0].take();
        (table["limit"].clone(), table["limit_of_all"].clone())
    };
    assert_eq!(limits("matlab"), (json!(3), json!(9)));
    assert_eq!(limits("novel"), (json!(9), json!(null)));
}

/// A launch that starts without a slot, because the limit is not enforced, has borrowed none.
#[test]
fn a_start_without_a_slot_tells_of_none() {
    let site = site();
    site.policy(&policy("$DIR/work/log.jsonl").replace("jsonl\"", "jsonl\"\n        replay = true"));
    run(&site, "novel").status(0);
    let started = events(&site).pop().expect("a start");
    assert_eq!((&started["event"], &started["repositories"]), (&json!("started"), &Value::Null));
    let table = &started["tables"][0];
    assert_eq!((&table["repository"], &table["lent"]), (&json!("trial"), &Value::Null), "{started}");
}

/// The log also has the commands that are refused because no rule allows them.
#[test]
fn a_command_that_no_rule_allows_is_logged() {
    let log = "[log]\nto = \"$DIR/work/log.jsonl\"\n";
    let site = Site::with_policy(&format!("defaults.unmatched = \"refuse\"\n{log}"));
    site.program("matlab");
    run(&site, "matlab").status(77);
    let refused = event(&site);
    assert_eq!((&refused["event"], &refused["status"]), (&json!("refused"), &json!("unmatched")));
    assert_eq!(refused["rules"], Value::Null, "{refused}");
}

/// A start tells how many of the free slots are kept for others, and how many of its own are lent by others.
#[test]
fn a_start_tells_what_is_kept_and_what_is_lent() {
    let site = Site::with_policy(
        r#"
        [log]
        to     = "$DIR/work/log.jsonl"
        replay = true

        [repository.seats]
        limit   = 4
        reserve = [{ users = ["nobody-of-that-name"], slots = 2, lend = 1 }]

        [[rule]]
        commands = ["matlab"]
        acquire  = ["seats"]
        "#,
    );
    site.program("matlab");
    let mut running = Vec::new();
    for (used, lent) in [(1, Value::Null), (2, Value::Null), (3, json!(1))] {
        running.push(run(&site, "matlab").spawn());
        let started = event(&site);
        let table = &started["tables"][0];
        assert_eq!(
            (&table["used"], &table["kept"], &table["lent"]),
            (&json!(used), &json!(1), &lent),
            "{started}"
        );
    }
    assert_eq!(site.held_numbers("seats.lock"), [2, 3, 4]);
}

/// A refusal tells of each table once: how many slots were held in those that refused, and how many there
/// were for the launch in the others.
#[test]
fn a_refusal_tells_in_which_tables_there_was_room() {
    let site = Site::with_policy(
        r#"
        [log]
        to     = "$DIR/work/log.jsonl"
        replay = true

        [repository]
        closed.limit = 0
        shut.limit   = 0
        open.limit   = 5
        soft         = { limit = 5, enforce = false }

        [[rule]]
        commands = ["matlab"]
        acquire  = ["closed", { repository = "open", slots = 2 }, "shut", "soft"]
        "#,
    );
    site.program("matlab");
    run(&site, "matlab").status(75);
    let refused = event(&site);
    let tables = refused["tables"].as_array().expect("tables").iter();
    let told: Vec<Value> = tables.map(|table| json!([table["repository"], table["room"]])).collect();
    assert_eq!(told, [json!(["closed", null]), json!(["shut", null]), json!(["open", 2])], "{refused}");
    // One rule claims all of them, and is named once.
    assert_eq!(refused["rules"], json!(["rule 1"]));
}

/// The journal and syslog have no starts, unless the log is to be replayed, but each holder that was ended.
#[test]
fn refusals_and_evictions_are_all_that_is_logged_outside_of_files() {
    needs_root!();
    let site = site_with("syslog");
    fs::create_dir(site.path("dev")).expect("a new directory");
    let daemon = Receiver::bind(&site, "dev/log");
    let launch = |command: &str| site.test().args(["run", "-q", "--", command]).through(behind_syslog(&site));
    let holder = launch("matlab").spawn();
    launch("nightly").status(0);
    launch("nightly").status(69);
    launch("novel").status(0);
    launch("forbidden").status(77);
    launch("matlab").status(75);
    let pid = holder.pid().to_string();
    site.test().args(["end", "--yes", "seats", &pid]).through(behind_syslog(&site)).stderr("...\n").status(0);
    drop(holder);
    for event in ["too-soon", "would-refuse", "refused", "refused", "evicted"] {
        let line = daemon.next();
        assert!(line.contains(&format!(" event={event} ")), "{event}: {line}");
    }
}

#[test]
fn an_expired_holder_is_logged() {
    let site = site();
    let overdue = policy("$DIR/work/log.jsonl").replacen("\"1h\"", "\"1ms\"", 1);
    site.policy(&overdue.replacen("limit = 1\n", "limit = 9\n", 1));
    let mut holder = run(&site, "matlab").spawn();
    run(&site, "matlab").status(0);
    assert_eq!(holder.end().ending, Ending::Signal(2));
    let expired: Vec<Value> = events(&site).into_iter().filter(|event| event["event"] == "expired").collect();
    let [expired] = expired.as_slice() else { panic!("one holder was ended: {expired:#?}") };
    assert_eq!((&expired["event"], &expired["holder"]), (&json!("expired"), &json!(holder.pid())));
}

/// `{host}` …: each host writes a file of its own, and an event says where it happened.
#[test]
fn each_host_can_have_a_log_of_its_own() {
    needs_root!();
    let site = site_with("$DIR/work/{host}.jsonl");
    for host in ["ws17", "lab.example.com"] {
        run(&site, "nightly").host(host).outcome();
        let text = fs::read_to_string(site.path(format!("work/{host}.jsonl"))).expect("the host's log");
        let event: Value = serde_json::from_str(&text).expect("one event");
        assert_eq!(event["host"], host);
        assert_eq!(site.test().args(["history", "--json"]).host(host).outcome().stdout, text);
    }
    assert!(!site.path("work/{host}.jsonl").exists());
    let metrics = site.test().args(["metrics"]).host("ws17").outcome();
    assert!(
        metrics.stdout.contains("rungate_starts_total{repository=\"nightly\"} 1\n"),
        "{}",
        metrics.stdout
    );
}

/// The holder that was ended had its slot by a rule.
#[test]
fn who_was_overdue_is_logged_with_the_rule() {
    let site = site();
    let overdue = policy("$DIR/work/log.jsonl").replacen("\"1h\"", "\"1ms\"", 1);
    site.policy(&overdue.replacen("limit = 1\n", "limit = 9\n", 1));
    let mut holder = run(&site, "matlab").spawn();
    let mut next = run(&site, "matlab").spawn();
    assert_eq!(holder.end().ending, Ending::Signal(2));
    site.test()
        .args(["end", "--overdue", "seats"])
        .stderr("rungate: seats: ended PID [pid] (matlab), [..]\n")
        .status(0);
    assert_eq!(next.end().ending, Ending::Signal(2));
    let expired: Vec<Value> =
        events(&site).into_iter().filter(|event| event["event"] == "expired").map(without_time).collect();
    let holders: Vec<&Value> = expired.iter().map(|event| &event["holder"]).collect();
    assert_eq!(holders, [&json!(holder.pid()), &json!(next.pid())]);
    for event in &expired {
        assert_eq!((&event["repositories"], &event["rules"]), (&json!(["seats"]), &json!(["seats for all"])));
    }
}

/// A holder that was started without `expire_after`, so that nothing proves it to be the job, goes on. That
/// is logged with the reason, and who goes on is not counted among those that were ended.
#[test]
fn an_overdue_holder_that_goes_on_is_logged_and_not_counted() {
    let site = site();
    let overdue = policy("$DIR/work/log.jsonl").replacen("\"1h\"", "\"1ms\"", 1);
    site.policy(&overdue.replacen("expire_after = \"1ms\"", "", 1));
    let holder = run(&site, "matlab").spawn();
    site.policy(&overdue);
    site.test()
        .args(["end", "--overdue", "seats"])
        .stderr("rungate: seats: PID [pid] (matlab), overdue by [age], was not ended: [..]\n  [..]\n")
        .status(71);
    let logged = events(&site).pop().expect("an event");
    let what = (&logged["event"], &logged["holder"], &logged["status"]);
    assert_eq!(what, (&json!("expired"), &json!(holder.pid()), &json!("not proved")));
    let mut text = String::new();
    for status in ["not proved", "not permitted", "survived", "SIGKILL, left others", "SIGINT", "had left"] {
        let mut event = logged.clone();
        event["status"] = json!(status);
        text.push_str(&format!("{event}\n"));
    }
    fs::write(site.path("work/log.jsonl"), text).expect("the log");
    let metrics = site.test().args(["metrics"]).outcome().stdout;
    assert!(metrics.contains("rungate_expired_holders_total{repository=\"seats\"} 2\n"), "{metrics}");
    let summary = site.test().args(["report", "--json"]).outcome().stdout;
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["programs"]["seats"]["expired"], 2);
    drop(holder);
}

/// A log that cannot be written never stops a launch, nor does one at which somebody has put a trap.
#[test]
fn a_log_that_cannot_be_written_stops_nobody() {
    let site = site();
    let log = site.path("work/log.jsonl");
    mkfifo(&log, Mode::from_bits_truncate(0o666)).expect("a new FIFO");
    run(&site, "matlab").status(0);
    // The same if a process reads the FIFO: it gets nothing.
    let mut reader = fs::File::options().read(true).custom_flags(O_NONBLOCK).open(&log).expect("the FIFO");
    run(&site, "matlab").status(0);
    assert_eq!(reader.read(&mut [0]).expect("nobody writes"), 0);
    fs::remove_file(&log).expect("the FIFO");
    let victim = site.path("work/victim");
    fs::write(&victim, "").expect("a new file");
    symlink(&victim, &log).expect("a new link");
    run(&site, "matlab").status(0);
    assert_eq!(fs::read(&victim).expect("the file"), b"", "nobody writes through a link");
    fs::remove_file(&log).expect("the link");
    fs::create_dir(&log).expect("a new directory");
    run(&site, "matlab").status(0);
    fs::remove_dir(&log).expect("the directory");
    symlink("/dev/full", &log).expect("a new link");
    run(&site, "matlab").status(0);
    fs::remove_file(&log).expect("the link");
    let site = site_with("$DIR/nowhere/log.jsonl");
    run(&site, "matlab").status(0);
    for to in ["journald", "syslog", "off"] {
        let site = site_with(to);
        run(&site, "matlab").status(0);
    }
}

/// A line is appended by one write, so that those of launches that happen at the same moment do not run into
/// each other.
#[test]
fn lines_of_many_launches_stay_whole() {
    let site = site();
    let launches: Vec<Running> = (0..100).map(|_| run(&site, "matlab").background()).collect();
    for mut launch in launches {
        launch.close_stdin();
        launch.end();
    }
    assert_eq!(events(&site).len(), 100);
}

/// What the daemon of a log receives.
struct Receiver {
    socket: UnixDatagram,
}

impl Receiver {
    fn bind(site: &Site, path: &str) -> Self {
        let path = site.path(path);
        let socket = UnixDatagram::bind(&path).expect("a new socket");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        set_mode(&path, 0o666);
        Self { socket }
    }

    #[track_caller]
    fn next(&self) -> String {
        let mut bytes = [0; 8192];
        let length = self.socket.recv(&mut bytes).expect("a datagram in time");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}

/// What puts a directory where the journal has its socket, for what is started behind it.
fn behind_the_journal(site: &Site) -> [String; 8] {
    let mount = format!(
        "mount -t tmpfs none /run && mkdir -p /run/systemd && mkdir /run/systemd/journal && \
         mount --bind {} /run/systemd/journal && exec \"$@\"",
        site.path("journal").display()
    );
    ["unshare", "--mount", "--propagation", "private", "sh", "-c", &mount, "sh"].map(str::to_owned)
}

/// What does the same for syslog.
fn behind_syslog(site: &Site) -> [String; 8] {
    let mount = format!(
        "touch {0}/null && mount --bind /dev/null {0}/null && mount --rbind {0} /dev && exec \"$@\"",
        site.path("dev").display()
    );
    ["unshare", "--mount", "--propagation", "private", "sh", "-c", &mount, "sh"].map(str::to_owned)
}

/// `to = "journald"`: the native protocol of the journal, with the fields named.
#[test]
fn the_journal_gets_named_fields() {
    needs_root!();
    let site = Site::with_policy(&policy("journald\"\nreplay = true\n#"));
    site.program("matlab");
    site.program("nightly");
    fs::create_dir(site.path("journal")).expect("a new directory");
    let journal = Receiver::bind(&site, "journal/socket");
    let through = behind_the_journal(&site);
    let matlab = site.test().args(["run", "-q", "--", "matlab", "secret"]).through(&through);
    let nightly = site.test().args(["run", "-q", "--", "nightly"]).through(&through);
    nightly.status(0);
    let started = journal.next();
    for line in [
        "PRIORITY=6",
        "SYSLOG_IDENTIFIER=rungate",
        "RUNGATE_EVENT=started",
        "RUNGATE_COMMAND=nightly",
        "RUNGATE_UID=0",
        &format!("RUNGATE_HOST={}", host_name()),
        "RUNGATE_REPOSITORIES=nightly=1",
        "RUNGATE_RULES=nightly",
    ] {
        assert!(started.lines().any(|other| other == line), "{line}: {started}");
    }
    nightly.status(69);
    let refused = journal.next();
    assert!(
        refused.contains("\nPRIORITY=4\n") && refused.contains("\nRUNGATE_EVENT=too-soon\n"),
        "{refused}"
    );
    matlab.outcome();
    assert!(!journal.next().contains("secret"));
}

/// "Default: in the system's policy the journal, if it runs; in any other policy nothing."
#[test]
fn without_a_target_the_systems_policy_logs_to_the_journal() {
    needs_root!();
    let without = policy("X").replacen("to = \"X\"", "", 1);
    without_a_target(&without);
}

fn without_a_target(without: &str) {
    let (site, other) = (Site::new(), Site::with_policy(without));
    site.program("nightly");
    other.program("forbidden");
    site.system_policy(without);
    // Another layer changes nothing.
    site.own_policy(&Account::own(), "version = 1\n");
    fs::create_dir(site.path("journal")).expect("a new directory");
    let journal = Receiver::bind(&site, "journal/socket");
    let through = behind_the_journal(&site);
    other.test().args(["run", "-q", "--", "forbidden"]).through(&through).status(77);
    let nightly = site.test().args(["run", "-q", "--", "nightly"]).through(&through);
    nightly.status(0);
    nightly.status(69);
    let first = journal.next();
    assert!(first.contains("RUNGATE_EVENT=too-soon") && first.contains("RUNGATE_COMMAND=nightly"), "{first}");
    site.program("matlab");
    let holder = site.test().args(["run", "-q", "--", "matlab"]).through(&through).spawn();
    let pid = holder.pid().to_string();
    site.test().args(["end", "--yes", "seats", &pid]).through(&through).stderr("...\n").status(0);
    let ended = journal.next();
    assert!(ended.contains("RUNGATE_EVENT=evicted") && ended.contains("RUNGATE_COMMAND=matlab"), "{ended}");
}

/// `to = "syslog"`: one datagram of text to `/dev/log`.
#[test]
fn syslog_gets_one_line() {
    needs_root!();
    let site = Site::with_policy(&policy("syslog\"\nreplay = true\n#"));
    site.program("nightly");
    fs::create_dir(site.path("dev")).expect("a new directory");
    let daemon = Receiver::bind(&site, "dev/log");
    let nightly = site.test().args(["run", "-q", "--", "nightly"]).through(behind_syslog(&site));
    nightly.status(0);
    let started = daemon.next();
    assert!(started.starts_with("<30>rungate["), "{started}");
    assert!(started.contains("]: event=started command=nightly uid=0 pid="), "{started}");
    assert!(started.contains(" repositories=\"nightly=1\" rules=nightly format=1 "), "{started}");
    nightly.status(69);
    let refused = daemon.next();
    assert!(refused.starts_with("<28>rungate[") && refused.contains("event=too-soon"), "{refused}");
}

/// A log daemon that does not read holds up no launch.
#[test]
fn a_daemon_that_reads_nothing_holds_up_nobody() {
    needs_root!();
    for (to, socket) in [("journald", "journal/socket"), ("syslog", "dev/log")] {
        let site = site_with(to);
        fs::create_dir(site.path(socket).parent().expect("a directory")).expect("a new directory");
        let _daemon = Receiver::bind(&site, socket);
        let sender = UnixDatagram::unbound().expect("a new socket");
        sender.set_nonblocking(true).expect("a flag");
        while sender.send_to(b"x", site.path(socket)).is_ok() {}
        let through = if to == "syslog" { behind_syslog(&site) } else { behind_the_journal(&site) };
        site.test().args(["run", "-q", "--", "forbidden"]).through(through).status(77);
    }
}

/// A name that no daemon would take in one datagram: what was refused is logged nevertheless, and says that
/// it was cut.
#[test]
fn a_long_name_keeps_no_refusal_out_of_a_log() {
    needs_root!();
    let name = "\u{1b}\u{9b}m".repeat(30_000);
    for (to, socket) in [("journald", "journal/socket"), ("syslog", "dev/log")] {
        let site = site_with(to);
        fs::create_dir(site.path(socket).parent().expect("a directory")).expect("a new directory");
        let daemon = Receiver::bind(&site, socket);
        let through = if to == "syslog" { behind_syslog(&site) } else { behind_the_journal(&site) };
        site.test().args(["run", "-q", "--as", &name, "--", "forbidden"]).through(through).status(77);
        let event = daemon.next();
        assert!(event.contains("command=\"\\u{1b}\\u{9b}m\\u{1b}"), "{event}");
        assert!(event.contains(" cut=120000"), "{event}");
        assert!(!event.contains(['\u{1b}', '\u{9b}']), "{event}");
    }
    let site = site_with("$DIR/work/log.jsonl");
    site.test().args(["run", "-q", "--as", &name, "--", "forbidden"]).status(77);
    let history = site.test().args(["history"]).outcome().stdout;
    assert!(history.contains("denied, a command of 120000 bytes, cut"), "{history}");
    let event = event(&site);
    assert_eq!(
        (&event["command"], &event["cut"]),
        (&json!("\u{1b}\u{9b}m".repeat(63) + "\u{1b}\u{9b}"), &json!(120_000))
    );
}

/// A log that nobody can write loses a week in silence, but for those who ask.
#[test]
fn a_log_that_cannot_be_written_is_named_to_whoever_asks() {
    let site = site_with("$DIR/work/none/log.jsonl");
    site.test().args(["run", "--", "novel"]).status(0);
    let said =
        "...\nrungate: the log $DIR/work/none/log.jsonl cannot be written: No such file or directory\n...\n";
    site.test().args(["run", "-v", "--", "novel"]).stderr(said).status(0);
}

/// In a directory like /tmp, another user can put a FIFO or a link in place of the log, or of what a sweep saves beside
/// it. That stops neither the sweep nor the doctor, and what another user saved is not read.
#[test]
fn what_another_user_puts_in_place_of_a_log_stops_no_sweep() {
    needs_root!();
    let site = host();
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_policy(&format!("{policy}[log]\nto = \"$DIR/logs/log.jsonl\"\nreplay = true\n"));
    fs::create_dir(site.path("logs")).expect("a new directory");
    set_mode(&site.path("logs"), 0o1777);
    let [log, ends] = ["logs/log.jsonl", "logs/log.jsonl.ends"].map(|name| site.path(name));
    let ann = |script: &str| site.test().user("ann").program("/bin/sh").args(["-c", script]).status(0);
    let launch = || site.test().args(["run", "--", "matlab"]).stdin("").status(0);
    let sweep = || site.test().args(["end", "--overdue"]).status(0);
    let seen = || fs::read_to_string(&log).expect("the log").matches("\"gone\"").count();
    launch();
    ann("mkfifo $DIR/logs/log.jsonl.ends");
    sweep();
    let saved = fs::symlink_metadata(&ends).expect("the saved state");
    assert_eq!((seen(), saved.is_file(), saved.uid()), (1, true, 0));

    launch();
    let status = fs::metadata(&log).expect("the log");
    let (file, offset) = ((status.dev(), status.ino()), status.len());
    let lie = serde_json::json!({ "file": file, "offset": offset, "looked": 0, "open": [] });
    fs::remove_file(&ends).expect("the saved state");
    ann(&format!("echo '{lie}' >$DIR/logs/log.jsonl.ends"));
    sweep();
    assert_eq!(seen(), 2);

    // Where no others can create files, a server may store what root saves under the name of another user.
    launch();
    let offset = fs::metadata(&log).expect("the log").len();
    let read = serde_json::json!({ "file": file, "offset": offset, "looked": 0, "open": [] });
    fs::write(&ends, format!("{read}\n")).expect("the saved state");
    chown(&ends, Some(Account::named("nobody").uid), None).expect("chown");
    set_mode(&site.path("logs"), 0o755);
    sweep();
    assert_eq!(seen(), 2);
    set_mode(&site.path("logs"), 0o1777);

    ann("touch $DIR/work/other");
    for replacement in ["mkfifo $DIR/logs/log.jsonl", "ln -s $DIR/work/other $DIR/logs/log.jsonl"] {
        fs::remove_file(&log).expect("the log");
        ann(replacement);
        sweep();
        for user in ["root", "ann"] {
            let lost = ("warning".to_owned(), "log-lost".to_owned());
            let found = all_found(&site.test().user(user).args(["doctor", "log"])).into_iter();
            let found: Vec<(String, String)> = found.map(|(status, code, _)| (status, code)).collect();
            assert!(found.contains(&lost), "{user}: {found:?}");
        }
    }
}
