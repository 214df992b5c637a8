//! What happens to a site while launches wait and programs run: no member answers, or etcd is full.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use nix::sys::signal::Signal;

use super::instruments::found;
use super::scene::Scene;
use super::{LASTING, held, hosts_with, seats, status, waiting};
use crate::support::{Ending, Etcd, Host, Running, eventually, needs_etcd};

/// The tickets that etcd has, by the names of their keys.
fn tickets(etcd: &Etcd, host: &Host) -> String {
    let prefix = format!("{}w/", status(host)["site"]["prefix"].as_str().expect("a prefix"));
    eventually("the tickets are told", || etcd.control(&["get", "--prefix", "--keys-only", &prefix]))
}

/// The same while waiting: goes on waiting, keeps its number.
#[test]
fn who_waits_keeps_the_number_while_nobody_answers() {
    needs_etcd!();
    let etcd = Etcd::new();
    let [one, two] = hosts_with(&etcd, LASTING, &seats(1, ""), ["lab1", "lab2"]);
    let holder = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let wait = ["run", "-q", "--wait", "forever", "--", "matlab"];
    let mut first = two.test().args(wait).background();
    eventually("one waits", || (waiting(&one) == 1).then_some(()));
    let mut second = one.test().args(wait).background();
    eventually("two wait", || (waiting(&two) == 2).then_some(()));
    let before = tickets(&etcd, &one);
    etcd.signal(Signal::SIGSTOP);
    for host in [&one, &two] {
        eventually("nobody answers", || status(host)["site"]["trouble"].is_object().then_some(()));
    }
    etcd.signal(Signal::SIGCONT);
    for host in [&one, &two] {
        eventually("it is back", || status(host)["site"]["trouble"].is_null().then_some(()));
    }
    drop(holder);
    first.write_line("first");
    assert_eq!(first.read_line(), "first\n");
    eventually("one waits", || (waiting(&two) == 1).then_some(()));
    let left = tickets(&etcd, &one);
    assert!(!left.trim().is_empty() && before.contains(left.trim()), "{left:?} is not of {before:?}");
    drop(first);
    second.write_line("second");
    assert_eq!(second.read_line(), "second\n");
}

/// An agent that cannot give anything keeps nobody waiting for an answer, and so takes nobody for dead who waits
/// for one: after an outage everybody who waited before it is where they were.
#[test]
fn nobody_is_passed_over_for_an_outage() {
    needs_etcd!();
    let etcd = Etcd::new();
    let scene = Scene::at(etcd.clone(), "", None).with("6s");
    let ((one, _way), (two, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let _holder = two.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&one) == 1).then_some(()));
    let wait = ["run", "-q", "--wait", "forever", "--", "matlab"];
    // Each beats at its own time.
    let waiters: Vec<Running> = (1..=8)
        .map(|number| {
            let waiter = one.test().args(wait).background();
            eventually("it waits", || (scene.tickets(0).len() == number).then_some(()));
            waiter
        })
        .collect();
    let tickets = scene.tickets(0);
    etcd.signal(Signal::SIGSTOP);
    eventually("the outage is long enough", || {
        let lasts = status(&one)["site"]["trouble"]["lasts"].as_f64();
        lasts.filter(|lasts| *lasts > 8.0)
    });
    etcd.signal(Signal::SIGCONT);
    eventually("it is back", || (status(&one)["site"]["connected"] == true).then_some(()));
    let newcomer = two.test().args(wait).background();
    eventually("it waits, too", || (scene.tickets(0).len() == 9).then_some(()));
    let away: Vec<&String> =
        tickets.iter().map(|(ticket, _)| ticket).filter(|ticket| scene.was_away(ticket)).collect();
    assert_eq!(away, [""; 0], "they answered all the time");
    assert_eq!(scene.tickets(0)[..8], tickets[..], "they keep their places");
    assert!(waiters.iter().chain([&newcomer]).all(|waiter| !waiter.is_zombie()));
}

/// The same while programs run: a log line at half the ttl, and another when it is over.
#[test]
fn the_log_says_that_the_site_is_about_to_be_lost() {
    needs_etcd!();
    let etcd = Etcd::new();
    let [mut one] = hosts_with(&etcd, LASTING, &seats(1, ""), ["lab1"]);
    let mut running = one.test().args(["run", "--", "matlab"]).spawn();
    etcd.signal(Signal::SIGSTOP);
    eventually("it is lost", || (status(&one)["site"]["left"] == 0.0).then_some(()));
    etcd.signal(Signal::SIGCONT);
    eventually("it is back", || (status(&one)["site"]["connected"] == true).then_some(()));
    assert!(running.answers());
    one.agent.signal(Signal::SIGKILL);
    let log = one.agent.end().stderr;
    let lines =
        ["after 20 s this host is considered dead", "the site is back; this host had been considered dead"];
    for line in lines {
        assert!(log.contains(line), "{line:?} is not in\n{log}");
    }
}

/// Keys are written by somebody else, each by a question of its own.
fn write_keys(port: u16, count: usize) {
    let write = || {
        for _ in 0..count {
            let mut connection = TcpStream::connect(("127.0.0.1", port)).expect("a member");
            let body = r#"{"key":"eA==","value":"eA=="}"#;
            let length = body.len();
            let head = "POST /v3/kv/put HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length:";
            write!(connection, "{head} {length}\r\n\r\n{body}").expect("it reads");
            connection.read_to_end(&mut Vec::new()).expect("it answers");
        }
    };
    thread::scope(|scope| (0..10).for_each(|_| drop(scope.spawn(write))));
}

/// How large the files of the members may be.
const QUOTA: u64 = 64 * 1024 * 1024;

/// How large the largest is.
fn size(etcd: &Etcd) -> u64 {
    let told = eventually("the size is told", || etcd.control(&["endpoint", "status", "-w", "json"]));
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let sizes = told.as_array().expect("members").iter().map(|member| member["Status"]["dbSize"].as_u64());
    sizes.max().flatten().expect("a size")
}

/// etcd is full (NOSPACE): launches are refused with what to do, and `doctor` has said before that it fills
/// up, and that nothing is ever compacted.
#[test]
fn an_etcd_that_is_full_is_told() {
    needs_etcd!();
    let etcd = Etcd::with(&[format!("--quota-backend-bytes={QUOTA}")]);
    let settings = etcd.settings(&Etcd::prefix(), LASTING);
    let host = |name: &str| Host::new(name, &seats(1, ""), &settings);
    let was_looked_at = |host: &Host| {
        eventually("it was looked at", || status(host)["site"]["etcd"].is_object().then_some(()));
    };
    // An agent looks at once, and then not for some time.
    let doctor_finds = |code: &str| {
        eventually(code, || {
            let host = host("lab2");
            was_looked_at(&host);
            found(&host).iter().any(|found| found == code).then_some(())
        });
    };
    let one = host("lab1");
    was_looked_at(&one);
    eventually("all is well", || (found(&one) == ["ok agent", "ok agent-version", "ok site"]).then_some(()));
    let megabyte = "x".repeat(1024 * 1024);
    let fill = || etcd.control_with(&["put", "/large"], &megabyte).is_some();
    while size(&etcd) < QUOTA / 100 * 82 {
        assert!(fill());
    }
    doctor_finds("warning site-nearly-full");
    write_keys(etcd.ports().next().expect("a member"), 110);
    doctor_finds("note site-uncompacted");
    while fill() {}
    doctor_finds("fault site-full");
    let run = ["run", "--", "matlab"];
    eventually("a launch is told what to do", || {
        let outcome = one.test().args(run).outcome();
        let is_told = outcome.stderr.contains("full: compact and defragment it");
        (outcome.ending == Ending::Status(74) && is_told).then_some(())
    });
    etcd.compact();
    etcd.control(&["alarm", "disarm"]).expect("it is disarmed");
    eventually("a launch starts", || {
        (one.test().args(run).outcome().ending == Ending::Status(0)).then_some(())
    });
    let other = host("lab2");
    let is_well = |found: &String| found.starts_with("ok ") || found.contains("site-host-gone");
    was_looked_at(&other);
    eventually("all is well", || found(&other).iter().all(is_well).then_some(()));
}
