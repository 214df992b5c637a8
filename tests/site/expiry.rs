//! An overdue holder is on another host: the launch that it is in the way of has notice given, and the
//! holder's own host ends it, if it is overdue there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{REFUSED, held, hosts, hosts_with, seats, status, waiting};
use crate::support::{Ending, Etcd, Host, Running, Test, copy_program, eventually, needs_etcd, state_of};

/// Overdue at once. Who dies of the first signal has all the time that a slow machine takes for that.
pub(super) const OVERDUE: &str = "expire_after = \"1ms\"\nexpire_grace = \"10m\"";

/// So long may a host be silent in tests whose agents are away: none of them is taken for gone.
pub(super) const SILENT: &str = "10m";

pub(super) fn matlab(host: &Host, user: &str) -> Test {
    host.test().user(user).args(["run", "--", "matlab"]).through(["env", "--default-signal"])
}

/// A launch that waits, as long as it takes.
pub(super) fn waits(host: &Host, user: &str) -> Running {
    host.test().user(user).args(["run", "--wait", "forever", "--", "matlab"]).background()
}

/// One that holds a slot, which is seen on another host.
fn holder(host: &Host, other: &Host) -> Running {
    let running = matlab(host, "games").spawn();
    eventually("the slot is seen", || (held(other) == 1).then_some(()));
    running
}

/// A launch has its turn; what it said of the others until then.
pub(super) fn has_its_turn(mut launch: Running) -> String {
    launch.wait_for_echo();
    launch.close_stdin();
    launch.end().stderr
}

/// What stands below a prefix, each key with its value.
pub(super) fn keys(etcd: &Etcd, prefix: &str) -> Vec<(String, Value)> {
    let said = eventually("etcd answers", || etcd.control(&["get", "--prefix", prefix]));
    let lines: Vec<&str> = said.lines().collect();
    lines.chunks(2).map(|pair| (pair[0].to_owned(), serde_json::from_str(pair[1]).expect("JSON"))).collect()
}

/// Gives a host another policy, in one step: nobody reads half of one.
fn give(host: &Host, policy: &str) {
    host.site.system_file("next.toml", &format!("version = 1\n{policy}"));
    let etc = host.site.path("etc/rungate");
    fs::rename(etc.join("next.toml"), etc.join("policy.toml")).expect("replace the policy");
}

/// "The agent ends overdue holders itself", also where the table is the site's.
#[test]
fn an_overdue_holder_of_the_same_host_is_ended() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one] = hosts(&etcd, &seats(1, OVERDUE), ["lab1"]);
    let mut overdue = matlab(&one, "games").spawn();
    let said = has_its_turn(waits(&one, "backup"));
    assert!(
        said.contains(&format!("rungate: seats: ended PID {} (matlab), overdue by ", overdue.pid())),
        "{said}"
    );
    assert_eq!(overdue.end().ending, Ending::Signal(2));
}

/// The refused agent leaves a request key; the holder's agent ends it.
#[test]
fn an_overdue_holder_of_another_host_is_ended_by_its_own() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let prefix = Etcd::prefix();
    let settings = etcd.settings(&prefix, super::LASTING);
    let [one, two] = ["lab1", "lab2"].map(|name| Host::new(name, &seats(1, OVERDUE), &settings));
    let mut overdue = holder(&one, &two);
    let said = has_its_turn(waits(&two, "backup"));
    let ended = format!("rungate: seats: ended PID {} (matlab) on lab1, overdue by ", overdue.pid());
    assert!(said.contains(&ended) && said.contains(", with SIGINT"), "{said}");
    assert_eq!(overdue.end().ending, Ending::Signal(2));
    eventually("the notice is taken back", || keys(&etcd, &format!("{prefix}e/")).is_empty().then_some(()));
}

/// A launch that does not wait stays until its signals have done what they could.
#[test]
fn a_launch_that_does_not_wait_has_an_overdue_holder_of_another_host_ended() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(1, OVERDUE), ["lab1", "lab2"]);
    let mut overdue = holder(&one, &two);
    // An agent that does not run for four seconds has not answered in time; it ends the holder nevertheless.
    let mut said = String::new();
    eventually("it has its turn", || {
        let outcome = matlab(&two, "backup").outcome();
        said.push_str(&outcome.stderr);
        (outcome.ending == Ending::Status(0)).then_some(())
    });
    assert!(said.contains(&format!("PID {} (matlab) on lab1, overdue by ", overdue.pid())), "{said}");
    assert_eq!(overdue.end().ending, Ending::Signal(2));
}

/// Who waits in the queue keeps the order: the first in the queue has a holder ended when that becomes
/// overdue.
#[test]
fn the_head_of_the_line_is_served_when_a_holder_of_another_host_becomes_overdue() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let settings = etcd.settings(&Etcd::prefix(), super::LASTING);
    let policy = seats(1, "expire_after = \"3s\"\nexpire_grace = \"10m\"");
    let [one, two] = ["lab1", "lab2"].map(|name| Host::new(name, &policy, &settings));
    // Whoever waits there has nobody ended.
    let three = Host::new("lab3", &seats(1, ""), &settings);
    let mut overdue = holder(&one, &two);
    let mut first = waits(&two, "backup");
    first.write_line("first");
    let has_begun = || waiting(&three) == 1 || (held(&three) == 1 && state_of(overdue.pid()) == Some('Z'));
    eventually("one waits, or has its turn", || has_begun().then_some(()));
    let mut second = waits(&three, "backup");
    second.write_line("second");
    assert_eq!(first.read_line(), "first\n");
    assert_eq!(overdue.end().ending, Ending::Signal(2));
    drop(first);
    assert_eq!(second.read_line(), "second\n");
}

/// What others write proves nothing: a notice ends nobody who is not overdue by the policy and the clock of
/// the host itself.
#[test]
fn a_forged_notice_ends_nobody() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let prefix = Etcd::prefix();
    let policy = |after: &str| seats(1, &format!("expire_after = \"{after}\"\nexpire_grace = \"10m\""));
    let one = Host::new("lab1", &policy("1h"), &etcd.settings(&prefix, super::LASTING));
    let mut running = matlab(&one, "games").spawn();
    let slots = eventually("the slot is there", || {
        Some(keys(&etcd, &format!("{prefix}s/"))).filter(|slots| slots.len() == 1)
    });
    let (key, record) = &slots[0];
    // A host that exists, and a holder that has been there for long.
    let (_, mut host) = keys(&etcd, &format!("{prefix}h/lab1")).remove(0);
    host["agent"] = json!("another");
    let notice = key.replace("/s/", "/e/");
    let mut antedated = record.clone();
    antedated["since"] = json!(1);
    let forged = json!({ "host": "lab9\u{1b}[2J", "agent": host["agent"], "holder": antedated, "after": 1 });
    let put = |key: &str, value: &Value| {
        eventually("it is written", || etcd.control(&["put", key, &value.to_string()]));
    };
    put(&format!("{prefix}h/lab9\u{1b}[2J"), &host);
    put(&notice, &forged);
    let reply = |wanted: &Value| {
        eventually("there is a reply", || {
            let found = keys(&etcd, &notice);
            found.first().is_some_and(|(_, value)| &value["reply"] == wanted).then_some(())
        });
    };
    reply(&json!("NotOverdue"));
    assert_eq!(status(&one)["site"]["hosts"].as_array().map(Vec::len), Some(2));
    // It has held its slot for longer than the time that anybody but the host itself gives it.
    assert!(running.answers());
    assert_eq!(held(&one), 1);
    // What is no notice at all, and whom it does not name, changes nothing.
    for nonsense in
        [json!({}), json!("\u{1b}"), json!({ "host": "lab9", "holder": { "pid": running.pid() } })]
    {
        put(&notice, &nonsense);
    }
    put(&notice, &forged);
    reply(&json!("NotOverdue"));
    assert!(running.answers());
    // The host's own policy is what counts.
    give(&one, &policy("1ms"));
    assert_eq!(running.end().ending, Ending::Signal(2));
}

/// A launch on this host is told that the holder of another host is not overdue there.
fn is_told_to_go_on(host: &Host) {
    eventually("that is told", || {
        let outcome = matlab(host, "backup").outcome();
        assert_ne!(outcome.ending, Ending::Status(0), "{outcome:?}");
        outcome
            .stderr
            .contains("was not ended: by the policy and the clock of its host it is not overdue")
            .then_some(())
    });
}

/// Hosts have policies of their own: one by which nobody is overdue ends nobody, and that is told.
#[test]
fn a_host_ends_its_holders_by_its_own_policy() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let settings = etcd.settings(&Etcd::prefix(), super::LASTING);
    let one = Host::new("lab1", &seats(1, ""), &settings);
    let two = Host::new("lab2", &seats(1, OVERDUE), &settings);
    let mut running = holder(&one, &two);
    is_told_to_go_on(&two);
    running.wait_for_echo();
    let next = waits(&two, "backup");
    eventually("one waits", || (waiting(&one) == 1).then_some(()));
    give(&one, &seats(1, OVERDUE));
    assert_eq!(running.end().ending, Ending::Signal(2));
    has_its_turn(next);
}

/// The agent of the holder's host is away: nobody is ended, and that is told; when it is back it does so.
#[test]
fn an_agent_that_was_away_heeds_the_notice_when_it_is_back() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [mut one, two] = hosts_with(&etcd, SILENT, &seats(1, OVERDUE), ["lab1", "lab2"]);
    let mut overdue = holder(&one, &two);
    one.agent.signal(Signal::SIGKILL);
    let goes_on = format!(
        "rungate: seats: PID {} (matlab) on lab1, overdue by [age], is still running: its host was asked to end it\n{REFUSED}",
        overdue.pid()
    );
    matlab(&two, "backup").stderr(&goes_on).status(75);
    let (next, begun) = (waits(&two, "backup"), Instant::now());
    // Who waits does not lose patience.
    eventually("it has waited for longer", || (begun.elapsed() > Duration::from_secs(6)).then_some(()));
    overdue.wait_for_echo();
    one.restart();
    assert_eq!(overdue.end().ending, Ending::Signal(2));
    let said = has_its_turn(next);
    assert!(said.contains(&format!("ended PID {} (matlab) on lab1", overdue.pid())), "{said}");
}

/// No set-id program, and whoever gave notice hears why.
#[test]
fn a_set_id_program_of_another_host_is_named_and_goes_on() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(1, OVERDUE), ["lab1", "lab2"]);
    let program = one.site.path("bin/matlab");
    fs::remove_file(&program).expect("the link");
    copy_program("/bin/cat", &program);
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("chmod");
    let mut running = holder(&one, &two);
    let users = fs::read_to_string(format!("/proc/{}/status", running.pid())).expect("it runs");
    if !users.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0")) {
        return crate::support::skip("set-id programs do not work on this file system");
    }
    eventually("that is told", || {
        let outcome = matlab(&two, "backup").outcome();
        assert_ne!(outcome.ending, Ending::Status(0), "{outcome:?}");
        outcome.stderr.contains(", was not ended: it runs a set-user-id program\n").then_some(())
    });
    running.wait_for_echo();
}

/// `rungate end --overdue` sweeps the holders of its own host.
#[test]
fn each_host_sweeps_its_own() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(2, OVERDUE), ["lab1", "lab2"]);
    let mut of_one = matlab(&one, "games").spawn();
    let mut of_two = matlab(&two, "games").spawn();
    eventually("both hosts see both", || (held(&one) == 2 && held(&two) == 2).then_some(()));
    let would = format!("seats: would end PID {} (matlab), overdue by [age]\n", of_two.pid());
    two.test().args(["end", "--overdue", "--dry-run"]).stdout(&would).status(0);
    let ended =
        format!("rungate: seats: ended PID {} (matlab), overdue by [age], with SIGINT\n", of_two.pid());
    two.test().args(["end", "--overdue"]).stderr(&ended).status(0);
    assert_eq!(of_two.end().ending, Ending::Signal(2));
    of_one.wait_for_echo();
    eventually("one is seen", || (held(&one) == 1 && held(&two) == 1).then_some(()));
}
