//! docs/stability.md: A test holds samples of every format. The files beside this one were written on the day
//! of the promise. The present program reads each of them. What a newer version might write is beside them:
//! fields and events that nobody knows today are passed over.
//!
//! A sample never changes. When a format changes, its samples stay, and new ones come beside them.

mod documents;
mod names;
mod wire;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Ending, Etcd, Host, Running, Site, answered, eventually, listing, needs_etcd, needs_root,
};

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The record of a process in a sample.
fn of(sample: &str, process: &Running) -> String {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid())).expect("it runs");
    let start = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)).expect("a start");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot id");
    let host = nix::unistd::gethostname().expect("a name");
    sample
        .replace("PID", &process.pid().to_string())
        .replace("START", start)
        .replace("BOOT", &boot[..8])
        .replace("HOST", &host.to_string_lossy())
}

/// A policy of version 1 is read by every 1.x; another version is refused with its number.
#[test]
fn a_policy() {
    let site = Site::new();
    site.write("work/policy.toml", &sample("policy.toml"));
    site.test().args(["policy", "check", "policy.toml"]).stdout("...\n").status(0);
    site.write("work/policy.toml", &sample("policy.toml").replacen("version = 1", "version = 2", 1));
    let outcome = site.test().args(["policy", "check", "policy.toml"]).outcome();
    assert!(
        outcome.stderr.contains("policy.toml:1:11: unsupported version; this rungate supports version 1"),
        "{}",
        outcome.stderr
    );
    assert_eq!(outcome.ending, Ending::Status(1));
}

/// Every event, as a file has it and as `history --json` prints it again; then those of a newer version.
#[test]
fn lines_of_the_log() {
    let site = Site::new();
    let today = sample("log.jsonl");
    site.write("work/log.jsonl", &(today.clone() + &sample("log-newer.jsonl")));
    let newer = "{\"format\":1,\"time\":1790000006000,\"event\":\"started\",\"command\":\"matlab\",\"uid\":1000,\
                 \"pid\":106,\"host\":\"ws17\",\"repositories\":[\"seats=1\"]}\n";
    let outcome = site.test().args(["history", "--json", "log.jsonl"]).outcome();
    assert_eq!((outcome.stderr.as_str(), outcome.stdout), ("", today.clone() + newer));
    // Nothing is counted as damaged by what counts.
    let outcome = site.test().args(["report", "--json", "log.jsonl"]).outcome();
    assert_eq!(outcome.stderr, "");
    for kind in [
        "started",
        "refused",
        "would-refuse",
        "waited",
        "ended",
        "expired",
        "evicted",
        "too-soon",
        "measured",
    ] {
        assert!(today.contains(&format!("\"event\":\"{kind}\"")), "{kind}");
    }
    // As they were before there was a number.
    site.write("work/log.jsonl", &today.replace("\"format\":1,", ""));
    site.test().args(["history", "--json", "log.jsonl"]).stdout(&today).status(0);
}

/// The same in a file of syslog's.
#[test]
fn lines_of_syslog() {
    let site = Site::new();
    site.write("work/syslog", &sample("log.syslog"));
    let outcome = site.test().args(["history", "--json", "syslog"]).outcome();
    assert_eq!((outcome.stderr.as_str(), outcome.stdout), ("", sample("log-syslog.expected")));
}

const OF_AGENT: &str = "
    [repository.seats]
    keeper     = \"agent\"
    limit      = 9

    [[rule]]
    name     = \"matlab\"
    commands = [\"matlab\"]
    acquire  = [\"seats\"]
";

/// The state directory of an agent that was ended: holdings, places, and when tables were last used.
#[test]
fn the_state_of_the_agent() {
    needs_root!();
    for (holding, format) in [("holding.json", "1\n"), ("holding.json", ""), ("holding-newer.json", "2\n")] {
        let (site, agent) =
            Site::with_agent(&OF_AGENT.replace("limit      = 9", "limit = 9\nif_elapsed = \"1s\""));
        let state = site.agent_state();
        assert_eq!(fs::read_to_string(state.join("format")).expect("the format"), "1\n");
        agent.kill();
        let process = site.test().program("/bin/cat").background();
        let waits = site.test().program("/bin/cat").background();
        fs::write(state.join("holdings/7.started"), of(&sample(&format!("state/{holding}")), &process))
            .expect("a holding");
        fs::write(state.join("places/8.json"), of(&sample("state/place.json"), &waits)).expect("a place");
        fs::write(state.join("tables/seats.json"), sample("state/stamps.json")).expect("stamps");
        fs::write(state.join("format"), format).expect("a format");
        let _agent = site.agent();
        let listed = listing(&site.test());
        let holder = &listed[0]["holders"][0];
        assert_eq!(
            (&holder["slot"], &holder["pid"], &holder["command"]),
            (&json!(2), &json!(process.pid()), &json!("matlab")),
            "{holding}: {listed:#?}"
        );
        let status = answered(&site.test().args(["status", "--json"]));
        assert_eq!(status[0]["last_start"], "2026-09-21T14:13:20.005Z");
        assert!(state.join("places/8.json").exists(), "the place of a launch that may come back is kept");
    }
}

/// An agent refuses a state that is newer by more than one: it would give slots to others that are held.
#[test]
fn a_state_that_is_much_newer_is_refused() {
    needs_root!();
    let (site, agent) = Site::with_agent(OF_AGENT);
    agent.kill();
    // Some of what the next version saved remains after this one, which is a second step away for an older one.
    let format = site.agent_state().join("format");
    fs::write(&format, "2\n").expect("a format");
    site.agent().kill();
    assert_eq!(fs::read_to_string(&format).expect("a format"), "2\n");
    fs::write(&format, "3\n").expect("a format");
    site.test()
        .rungate_agent()
        .stderr(
            "rungate: the agent does not run: the state directory [..]/state was written by a newer agent (format 3; this one reads up to 2): launches that it knows hold slots. Start that agent again, or reboot this host\n",
        )
        .status(71);
}

/// A lock file as it lies on the disk: the hint of exectimes, the header, and the record of a holder, whose
/// lock is on the byte of its slot. Those who wait leave locks alone.
#[test]
fn a_lock_file() {
    for (record, version) in [("lock-file.record", 1_u64), ("lock-file-newer.record", 2)] {
        let site = Site::with_policy(
            "
            [repository.seats]
            limit = 3

            [[rule]]
            name     = \"matlab\"
            commands = [\"matlab\"]
            acquire  = [\"seats\"]
            ",
        );
        site.program("matlab");
        // Slot 2 is the byte at 9.
        let process = site.holder("seats.lock", ["posix", "write", "9:1"]);
        let file = OpenOptions::new().write(true).open(site.repository("seats.lock")).expect("the file");
        file.write_all_at(&9_u64.to_ne_bytes(), 0).expect("the hint");
        let header =
            [u64::from_le_bytes(*b"rungate\n"), version, 3, 1_790_000_000_005, 1_790_000_001_000, 99];
        let header: Vec<u8> = header.iter().flat_map(|field| field.to_le_bytes()).collect();
        file.write_all_at(&header, 4096).expect("the header");
        let line = of(sample(record).trim_end(), &process);
        file.write_all_at(format!("{line:255}\n").as_bytes(), 8192 + 256).expect("the record");
        let listed = listing(&site.test());
        let holder = &listed[0]["holders"][0];
        assert_eq!(
            (&holder["slot"], &holder["pid"], &holder["command"]),
            (&json!(2), &json!(process.pid()), &json!("matlab-of-a-sample")),
            "{record}: {listed:#?}"
        );
        let status = answered(&site.test().args(["status", "--json"]));
        assert_eq!(status[0]["last_start"], "2026-09-21T14:13:20.005Z", "{record}");
        // Who takes a slot finds the file's own.
        let _other = site.test().args(["run", "--", "matlab"]).spawn();
        assert_eq!(site.held_numbers("seats.lock"), [2, 3], "the search begins where the header says");
        site.test()
            .args(["exectimes", "$DIR/repositories/seats.lock", "check"])
            .stdout("2 instances running\n")
            .status(0);
    }
}

/// What another agent has written into etcd: that it is there, who holds a slot and who waits in the queue
/// there.
#[test]
fn the_records_of_a_site() {
    needs_etcd!();
    for is_newer in [false, true] {
        let (etcd, prefix) = (Etcd::shared(), Etcd::prefix());
        let policy = "
            [repository.seats]
            keeper = \"site\"
            limit  = 2

            [[rule]]
            name     = \"matlab\"
            commands = [\"matlab\"]
            acquire  = [\"seats\"]
        ";
        let host = Host::new("lab1", policy, &etcd.settings(&prefix, "20s"));
        for (key, name) in
            [("h/lab9", "host"), ("s/seats/0000002", "slot"), ("w/seats/0000000000000007", "ticket")]
        {
            let mut record: Value =
                serde_json::from_str(&sample(&format!("etcd/{name}.json"))).expect("JSON");
            if is_newer {
                record["format"] = json!(2);
                record["new"] = json!({ "field": [1] });
            }
            etcd.control(&["put", &format!("{prefix}{key}"), &record.to_string()]).expect("it is written");
        }
        let there = |host: &Value| host["host"] == "lab9" && host["version"] == "0.1.0";
        eventually("the other host is seen", || {
            let page = answered(&host.test().args(["doctor", "site", "--json"]));
            page["topics"][0]["details"]["hosts"]
                .as_array()
                .is_some_and(|hosts| hosts.iter().any(there))
                .then_some(())
        });
        let repository = eventually("its launches are seen", || {
            let listed = listing(&host.test());
            (listed[0]["holders"][0].is_object() && listed[0]["waiting"][0].is_object())
                .then(|| listed[0].clone())
        });
        let holder = &repository["holders"][0];
        assert_eq!(
            (&holder["slot"], &holder["host"], &holder["pid"], &holder["command"]),
            (&json!(2), &json!("lab9"), &json!(4242), &json!("matlab"))
        );
    }
}

/// Every record that an agent writes for others says its format.
#[test]
fn what_is_written_into_etcd_says_its_format() {
    needs_etcd!();
    let (etcd, prefix) = (Etcd::shared(), Etcd::prefix());
    let policy = "
        [repository.seats]
        keeper     = \"site\"
        limit      = 1
        if_elapsed = \"1ms\"

        [[rule]]
        name     = \"matlab\"
        commands = [\"matlab\"]
        acquire  = [\"seats\"]
    ";
    let host = Host::new("lab1", policy, &etcd.settings(&prefix, "20s"));
    let _holder = host.test().args(["run", "--", "matlab"]).spawn();
    let _waits = host.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    let values = eventually("all kinds are there", || {
        let found = etcd.control(&["get", "--prefix", "--print-value-only", &prefix])?;
        let keys = etcd.control(&["get", "--prefix", "--keys-only", &prefix])?;
        let kinds = ["s", "w", "t", "h", "g", "c"];
        kinds.iter().all(|kind| keys.contains(&format!("{prefix}{kind}/"))).then_some(found)
    });
    for value in values.lines().filter(|line| line.starts_with('{')) {
        let record: Value = serde_json::from_str(value).expect("JSON");
        assert_eq!(record["format"], 1, "{value}");
    }
}

/// Where a file of the source is.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Samples that nobody reads would prove nothing.
#[test]
fn every_sample_is_read_by_a_test() {
    let texts: String = ["mod", "documents", "names", "wire"]
        .map(|name| fs::read_to_string(source(&format!("tests/formats/{name}.rs"))).expect("a test"))
        .concat();
    let mut folders = vec![source("tests/formats")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|ending| ending != "rs") {
                let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                let is_named = texts.contains(&format!("{name}\"")) || texts.contains(&format!("\"{stem}\""));
                assert!(is_named, "{name} is read by no test");
            }
        }
    }
}

/// For answers that have to come, on whatever machine.
const LONG: Duration = Duration::from_secs(180);
