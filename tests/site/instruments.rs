//! What the site shows of itself: `doctor site`, metrics and the doctor.

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{MISSED, TTL, held, hosts, hosts_with, listed, seats, status};
use crate::support::{Etcd, Host, eventually, needs_etcd, needs_root};

/// The codes of what the doctor finds, with how it is, sorted.
#[track_caller]
pub(super) fn found(host: &Host) -> Vec<String> {
    let outcome = host.test().args(["doctor", "agent", "site", "--json"]).outcome();
    let page: Value = serde_json::from_str(&outcome.stdout).expect(&outcome.stderr);
    let topics = page["topics"].as_array().expect("topics").iter();
    let findings = topics.flat_map(|topic| topic["findings"].as_array().expect("findings"));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    findings.map(|finding| format!("{} {}", text(&finding["status"]), text(&finding["code"]))).collect()
}

#[track_caller]
fn metric(host: &Host, name: &str) -> Option<f64> {
    let outcome = host.test().args(["metrics"]).outcome();
    let value = outcome.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map(|value| value.parse().expect("a number"))
}

/// `doctor -v site` shows the hosts, their agents' versions, the lag of the mirror, the leases and what each
/// host holds.
#[test]
fn the_site_is_shown_as_each_host_sees_it() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(3, ""), ["lab1", "lab2"]);
    let _running = one.test().args(["run", "--", "matlab"]).spawn();
    let _more = two.test().args(["run", "--", "matlab"]).spawn();
    eventually("both are seen", || (held(&one) == 2 && held(&two) == 2).then_some(()));
    let is_level = |host: &Host| status(host)["site"]["lag"].as_f64().is_some_and(|lag| lag < 3.0);
    eventually("the mirrors are level", || (is_level(&one) && is_level(&two)).then_some(()));
    eventually("all is well", || (found(&one) == ["ok agent", "ok agent-version", "ok site"]).then_some(()));
    one.test()
        .args(["doctor", "-v", "site"])
        .stdout(
            "
            ok       site          keeps seats
              ok       2 hosts of it are there, lab1 among them; the mirror is [..] behind

            etcd    http://127.0.0.1:[..], http://127.0.0.1:[..], http://127.0.0.1:[..] below /test-[..]/
            host    lab1: connected, seen [..] ago, considered dead in [..] without contact
            mirror  [..] behind
            lease   lost 0 times since the agent started

            HOST VERSION[gap]LEASE[gap]WAIT HOLDS
            lab1 [..][gap]0 seats 1
            lab2 [..][gap]0 seats 1

            Nothing to fix.
            ",
        )
        .status(0);
    let site = &status(&two)["site"];
    assert_eq!(site["hosts"][0]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&site["host"], &site["connected"]), (&"lab2".into(), &true.into()));
    assert!(site["lag"].is_f64(), "{site}");
    assert_eq!(site["hosts"][0]["slots"], serde_json::json!({ "seats": 1 }), "{site}");
    let lease = site["hosts"][0]["lease"].as_str().expect("a lease");
    let leases = etcd.control(&["lease", "list"]).expect("the leases");
    assert!(leases.contains(lease), "{lease} is not among\n{leases}");
    eventually("it is connected", || (metric(&one, "rungate_site_connected") == Some(1.0)).then_some(()));
    assert_eq!(metric(&one, "rungate_site_hosts"), Some(2.0));
    assert_eq!(metric(&one, "rungate_site_leases_lost_total"), Some(0.0));
    eventually("the mirror is level", || {
        metric(&one, "rungate_site_mirror_lag_seconds").filter(|lag| *lag < 3.0)
    });
}

/// The log of an agent. The agent is killed.
#[track_caller]
fn log(host: &mut Host) -> String {
    host.agent.signal(Signal::SIGKILL);
    host.agent.end().stderr
}

/// A lease that is revoked is taken again, and counted. The log says so.
#[test]
fn lost_leases_are_counted() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [mut one] = hosts(&etcd, &seats(1, ""), ["lab1"]);
    let lease = || status(&one)["site"]["hosts"][0]["lease"].as_str().map(str::to_owned);
    let first = eventually("it has a lease", lease);
    etcd.control(&["lease", "revoke", &first]).expect("it is revoked");
    eventually("it has another", || lease().filter(|lease| *lease != first));
    eventually("it is counted", || {
        (metric(&one, "rungate_site_leases_lost_total") == Some(1.0)).then_some(())
    });
    eventually("the doctor finds it", || {
        found(&one).contains(&"note site-leases-lost".to_owned()).then_some(())
    });
    let log = log(&mut one);
    assert!(log.contains("rungate-agent: the lease of this host was lost; it is acquired again\n"), "{log}");
}

/// A host that dies is shown as gone, with the time after which its slots are free.
#[test]
fn a_host_that_has_gone_is_shown() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts_with(&etcd, MISSED, &seats(3, ""), ["lab1", "lab2"]);
    let _running = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("it is seen", || (held(&two) == 1).then_some(()));
    one.agent.signal(Signal::SIGKILL);
    let gone = eventually("it has gone", || {
        let host = status(&two)["site"]["hosts"][0].clone();
        host["absent"].is_number().then_some(host)
    });
    assert_eq!((&gone["host"], &gone["lease"]), (&"lab1".into(), &Value::Null), "{gone}");
    eventually("it is forgotten", || {
        status(&two)["site"]["hosts"].as_array().is_some_and(|hosts| hosts.len() == 1).then_some(())
    });
}

/// The members hang: the status says so, and what is lost; so do the doctor and the metrics.
#[test]
fn a_site_that_is_lost_says_so() {
    needs_etcd!();
    let etcd = Etcd::new();
    let [one] = hosts_with(&etcd, TTL, &seats(1, ""), ["lab1"]);
    eventually("it is connected", || (metric(&one, "rungate_site_connected") == Some(1.0)).then_some(()));
    etcd.signal(Signal::SIGSTOP);
    eventually("it is lost", || {
        (status(&one)["site"]["left"] == 0.0 && status(&one)["site"]["trouble"].is_object()).then_some(())
    });
    one.test()
        .args(["doctor", "-v", "site"])
        .stdout(
            "
            fault    site          keeps seats
              fault    it grants no slots here, [..]
            ...
            etcd    [..]
            host    lab1: lost, seen [..] ago: others may have taken its slots
            mirror  [..] behind
            lease   lost [..] since the agent started
            wrong   for [..]: http://127.0.0.1:[..]: [..]
                    check that a majority of the members runs: etcdctl endpoint health --cluster

            HOST VERSION[gap]LEASE[gap]WAIT HOLDS
            lab1 [..][gap]0 -

            1 fault[..]
            ",
        )
        .status(1);
    assert_eq!(metric(&one, "rungate_site_connected"), Some(0.0));
    eventually("the doctor finds it", || {
        found(&one).contains(&"fault site-unreached".to_owned()).then_some(())
    });
    eventually("the mirror is known to be behind", || {
        metric(&one, "rungate_site_mirror_lag_seconds").filter(|lag| *lag > 3.0)
    });
    etcd.signal(Signal::SIGCONT);
    eventually("it is back", || (metric(&one, "rungate_site_connected") == Some(1.0)).then_some(()));
}

/// With one host and no etcd configured, `site` is served by the local agent, and says so.
#[test]
fn an_agent_that_is_alone_says_so() {
    needs_root!();
    let host = Host::new("lab1", &seats(1, ""), "version = 1\n");
    assert_eq!(status(&host)["site"], Value::Null);
    assert!(found(&host).contains(&"warning site-alone".to_owned()), "{:?}", found(&host));
    host.agent.signal(Signal::SIGKILL);
    eventually("it has gone", || {
        (found(&host) == ["fault agent-silent", "fault site-unknown"]).then_some(())
    });
    let text = host.test().args(["metrics"]).outcome().stdout;
    assert!(text.contains("\nrungate_agent_up 0\n"), "{text}");
}

/// "Two hosts have one name": whoever does not exist says so, and not that etcd cannot be reached. Its log
/// says so, too.
#[test]
fn a_name_that_two_hosts_have_is_told() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [mut one] = hosts(&etcd, &seats(1, ""), ["lab1"]);
    eventually("it is there", || status(&one)["site"]["hosts"][0]["lease"].is_string().then_some(()));
    etcd.control(&[
        "put",
        &format!("{}h/lab1", prefix(&one)),
        r#"{"agent":"another","version":"0","ttl":3000}"#,
    ])
    .expect("the key is written");
    let trouble = eventually("it is told", || {
        let trouble = status(&one)["site"]["trouble"]["text"].as_str().map(str::to_owned);
        trouble.filter(|text| text.contains("another host calls itself lab1 too"))
    });
    assert!(trouble.contains("its own name"), "{trouble}");
    let log = log(&mut one);
    let told = "rungate-agent: another host calls itself lab1 too (its agent is another): ";
    assert!(log.contains(told), "{log}");
}

/// A slot whose value nobody can read is held for ever. Who looks hears which key that is, and what frees it.
/// The log says so once.
#[test]
fn a_slot_that_nobody_can_read_is_told() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [mut one] = hosts(&etcd, &seats(1, ""), ["lab1"]);
    eventually("it is there", || status(&one)["site"]["hosts"][0]["lease"].is_string().then_some(()));
    let key = format!("{}s/seats/0000001", prefix(&one));
    etcd.control(&["put", &key, "a mistake"]).expect("the key is written");
    eventually("it holds the seat", || (held(&one) == 1).then_some(()));
    eventually("the doctor has found it", || {
        found(&one).contains(&"warning site-trouble".to_owned()).then_some(())
    });
    // A slow etcd may be another trouble, for some seconds.
    let trouble = eventually("it is told", || {
        let trouble = status(&one)["site"]["trouble"].clone();
        trouble["text"].as_str().is_some_and(|text| text.contains(&key)).then_some(trouble)
    });
    assert_eq!(
        trouble["text"],
        format!("a slot has no readable holder: the value of {key} was not written by an agent")
    );
    assert_eq!(trouble["advice"], format!("if no program of the site runs for it: etcdctl del {key}"));
    // Who meets it without looking at the site hears of it, too.
    let told = format!(
        "slot 1: {}; {}",
        trouble["text"].as_str().expect("text"),
        trouble["advice"].as_str().expect("text")
    );
    let list = one.test().args(["list"]).outcome().stdout;
    assert!(list.replace('\n', " ").contains(&told), "{list}");
    assert_eq!(listed(&one)[0]["holders"][0]["unreadable_key"], key.as_str());
    let explained = one.test().user("nobody").args(["explain", "matlab"]).outcome().stdout;
    assert!(explained.contains(&format!("note  seats, {told}")), "{explained}");
    assert_eq!(status(&one)["site"]["unreadable"][0]["key"], key.as_str());
    etcd.control(&["del", &key]).expect("the key is deleted");
    eventually("all is well", || status(&one)["site"]["trouble"].is_null().then_some(()));
    one.test().args(["run", "-q", "-n", "--", "matlab"]).status(0);
    let log = log(&mut one);
    let told = format!("rungate-agent: a slot has no readable holder: the value of {key} ");
    assert_eq!(log.matches(&told).count(), 1, "{log}");
}

fn prefix(host: &Host) -> String {
    status(host)["site"]["prefix"].as_str().expect("a prefix").to_owned()
}
