//! What is not done too early: how long a host may be silent, and what of a host's own is deleted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::expiry::keys;
use super::scene::Scene;
use super::{MISSED, TTL, held, listed, seats, status};
use crate::support::{Etcd, Host, Mishap, Running, eventually, needs_etcd};

/// Longer than a test takes.
const ENDLESS: &str = "10m";

fn host_of(host: &Host, name: &str) -> Value {
    let hosts = status(host)["site"]["hosts"].as_array().cloned().unwrap_or_default();
    hosts.into_iter().find(|of| of["host"] == name).unwrap_or_default()
}

/// A host that goes down now, for all others to see: its agent ends, and its key with it.
fn goes_down(etcd: &Etcd, host: &Host, name: &str) {
    eventually("it has a lease", || host_of(host, name)["lease"].is_string().then_some(()));
    let prefix =
        eventually("it knows the site", || status(host)["site"]["prefix"].as_str().map(str::to_owned));
    host.agent.signal(Signal::SIGKILL);
    loses_its_key(etcd, &prefix, name);
}

/// Revokes the lease of the host's key, unless that is over by itself.
fn loses_its_key(etcd: &Etcd, prefix: &str, name: &str) {
    let key = format!("{prefix}h/{name}");
    eventually("its key is gone", || {
        let told: Value = serde_json::from_str(&etcd.control(&["get", "-w", "json", &key])?).expect("JSON");
        let Some(found) = told["kvs"].get(0) else { return Some(()) };
        let lease = found["lease"].as_i64().expect("a lease");
        etcd.control(&["lease", "revoke", &format!("{lease:x}")]);
        None
    });
}

/// How long it takes until the slots of an absent host are free, as another host sees it.
fn free_in(by: &Host, name: &str) -> f64 {
    eventually("it is absent", || host_of(by, name)["free_in"].as_f64())
}

fn program(host: &Host) -> Running {
    host.test().args(["run", "--", "matlab"]).spawn()
}

/// On which hosts the slots are.
fn hosts_of_slots(etcd: &Etcd, prefix: &str) -> Vec<String> {
    let slots = keys(etcd, &format!("{prefix}s/"));
    slots.iter().map(|(_, slot)| slot["host"].as_str().expect("a host").to_owned()).collect()
}

/// A host is given up after the longer of two times: the ttl that it named itself, and the ttl of the host
/// that sees it absent.
#[test]
fn a_host_may_be_silent_for_its_own_ttl_and_for_that_of_others() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let prefix = Etcd::prefix();
    let host = |name, ttl| Host::new(name, &seats(3, ""), &etcd.settings(&prefix, ttl));
    let (one, mut two) = (host("lab1", ENDLESS), host("lab2", TTL));
    eventually("both are there", || host_of(&one, "lab2")["lease"].is_string().then_some(()));
    goes_down(&etcd, &two, "lab2");
    assert!(free_in(&one, "lab2") > 500.0, "the host that sees it waits for its own ttl");
    two.restart();
    let three = host("lab3", TTL);
    let _first = program(&one);
    let second = program(&three);
    eventually("both slots are seen", || (held(&two) == 2).then_some(()));
    goes_down(&etcd, &one, "lab1");
    assert!(free_in(&two, "lab1") > 500.0, "the host named a longer ttl itself");
    // It goes down later, and is given up sooner.
    goes_down(&etcd, &three, "lab3");
    drop(second);
    eventually("the third host is given up", || (hosts_of_slots(&etcd, &prefix) == ["lab1"]).then_some(()));
}

/// Absent for a ttl without a break: a host that was there meanwhile has its whole time again.
#[test]
fn a_host_that_was_there_meanwhile_may_be_silent_for_as_long_again() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let prefix = Etcd::prefix();
    let [one, two] =
        ["lab1", "lab2"].map(|name| Host::new(name, &seats(1, ""), &etcd.settings(&prefix, ENDLESS)));
    let _running = program(&one);
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    goes_down(&etcd, &one, "lab1");
    let absent = || host_of(&two, "lab1")["absent"].as_f64();
    let before = eventually("it is absent for some time", || absent().filter(|absent| *absent > 5.0));
    // As its agent writes it when it registers.
    let key = format!("{prefix}g/lab1");
    let value = etcd.control(&["get", "--print-value-only", &key]).expect("the key of the host");
    etcd.control(&["put", &key, value.trim()]).expect("it is written");
    eventually("its absence has begun again", || absent().filter(|absent| *absent < before));
    assert_eq!(held(&two), 1);
}

/// What a key of a slot says, with other values in it.
fn changed(record: &Value, changes: &[(&str, Value)]) -> String {
    let mut record = record.clone();
    for (name, value) in changes {
        assert!(record.get(name).is_some(), "a slot says its {name}");
        record[*name] = value.clone();
    }
    record.to_string()
}

/// A key that the agent deletes at once: it says that this agent has written it, and no launch stands for it.
fn leaves_a_marker(etcd: &Etcd, prefix: &str, record: &Value) {
    let key = format!("{prefix}s/marker/0000001");
    let marker = changed(record, &[("pid", i32::MAX.into()), ("launch", 1.into())]);
    etcd.control(&["put", &key, &marker]).expect("the marker is written");
}

/// Waits until the agent has deleted it, and with it everything else that it does not know.
fn marker_is_gone(etcd: &Etcd, prefix: &str) {
    eventually("the marker is deleted", || {
        keys(etcd, &format!("{prefix}s/marker/")).is_empty().then_some(())
    });
}

/// What another agent of the same host left is deleted only when nobody else can call itself by that name:
/// after a ttl.
#[test]
fn what_another_agent_of_the_host_left_stays_for_a_ttl() {
    needs_etcd!();
    let etcd = Etcd::shared();
    for (ttl, stays) in [(ENDLESS, true), (TTL, false)] {
        let prefix = Etcd::prefix();
        let one = Host::new("lab1", &seats(3, ""), &etcd.settings(&prefix, ttl));
        let _running = program(&one);
        let (_, record) = keys(&etcd, &format!("{prefix}s/seats/")).remove(0);
        let other = changed(&record, &[("agent", "another".into()), ("launch", 1.into())]);
        let key = format!("{prefix}s/seats/0000002");
        etcd.control(&["put", &key, &other]).expect("a slot of another agent");
        leaves_a_marker(&etcd, &prefix, &record);
        if stays {
            marker_is_gone(&etcd, &prefix);
            assert_eq!(hosts_of_slots(&etcd, &prefix), ["lab1", "lab1"]);
        } else {
            eventually("it is deleted", || (hosts_of_slots(&etcd, &prefix) == ["lab1"]).then_some(()));
        }
    }
}

/// A program ends, and what frees its slot comes late, when somebody else has the slot: that one keeps it.
#[test]
fn what_is_freed_late_takes_nothing_from_who_has_it_by_then() {
    needs_etcd!();
    let scene = Scene::new("", None).of(2);
    let (one, way) = scene.host("lab1");
    Scene::meet(&[&one]);
    let running = program(&one);
    let (key, record) = keys(&scene.etcd, &format!("{}s/seats/", scene.prefix)).remove(0);
    way.befall(STANDARD.encode(&key), Mishap::Late);
    drop(running);
    eventually("the slot is about to be free", || way.has_befallen().then_some(()));
    let other = changed(&record, &[("host", "lab2".into()), ("agent", "another".into()), ("pid", 1.into())]);
    scene.etcd.control(&["put", &key, &other]).expect("somebody else has the slot");
    let taken = scene.revision();
    // The host asks again, and takes no answer for none.
    eventually("the host knows whose the slot is", || {
        let holders = &listed(&one)[0]["holders"];
        (holders.as_array().map_or(0, Vec::len) == 1 && holders[0]["host"] == "lab2").then_some(())
    });
    one.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).status(0);
    way.ask_late();
    eventually("the slot is freed late", || way.has_been_asked_late().then_some(()));
    eventually("the other slot is free", || (scene.slots() == 1).then_some(()));
    assert!(scene.has_the_slot_of(taken), "it is not what it was");
}

/// A host that was taken for gone comes back with a program that has two slots, one of which somebody else
/// has by now: it has two slots again, another one in the place of that.
#[test]
fn who_has_several_slots_has_as_many_when_one_of_them_is_somebody_elses() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let prefix = Etcd::prefix();
    let pairs = "
        [[rule]]
        name     = \"pairs\"
        commands = [\"other\"]
        acquire  = [{ repository = \"seats\", slots = 2 }]
        ";
    let policy = format!("{}{pairs}", seats(2, ""));
    let [one, two] = ["lab1", "lab2"].map(|name| Host::new(name, &policy, &etcd.settings(&prefix, MISSED)));
    let slots = || keys(&etcd, &format!("{prefix}s/seats/")).len();
    let pair = one.test().args(["run", "--", "other"]).spawn();
    eventually("both are taken", || (slots() == 2).then_some(()));
    let (_, record) = keys(&etcd, &format!("{prefix}s/seats/")).remove(0);
    one.agent.signal(Signal::SIGSTOP);
    loses_its_key(&etcd, &prefix, "lab1");
    let mut third = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    third.wait_for_echo();
    assert_eq!(hosts_of_slots(&etcd, &prefix), ["lab2"]);
    one.agent.signal(Signal::SIGCONT);
    eventually("three are taken", || (slots() == 3).then_some(()));
    leaves_a_marker(&etcd, &prefix, &record);
    marker_is_gone(&etcd, &prefix);
    assert_eq!(slots(), 3, "the program runs, and has two of them");
    drop(third);
    eventually("two are taken", || (slots() == 2).then_some(()));
    for host in [&one, &two] {
        host.test().args(["run", "-q", "-n", "--", "matlab"]).status(75);
    }
    drop(pair);
    eventually("none is taken", || (slots() == 0).then_some(()));
}
