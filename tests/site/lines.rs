//! Lines that end, over hosts: how many wait is one number for all of them.

use super::scenes::joins_a_full_line;
use super::{held, hosts, listed, seats, status, waiting};
use crate::support::{Ending, Etcd, Host, Running, eventually, needs_etcd};

/// A launch that waits, as long as it takes.
fn waits(host: &Host, user: &str) -> Running {
    let mut launch =
        host.test().user(user).args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    launch.write_line(user);
    launch
}

/// A launch that would wait is refused. Where somebody who waits was not heard of for some seconds it may
/// wait itself for a while.
#[track_caller]
fn refused(host: &Host, user: &str, why: &str) {
    eventually("it is refused", || {
        let outcome = host.test().user(user).args(["run", "--wait", "5s", "--", "matlab"]).outcome();
        assert_ne!(outcome.ending, Ending::Status(0), "{outcome:?}");
        (outcome.ending == Ending::Status(75) && outcome.stderr.contains(why)).then_some(())
    });
}

/// `queue` is the maximum length of the queue, on whichever host its launches wait.
#[test]
fn a_line_that_is_full_on_one_host_is_full_on_all() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(1, "queue = 2"), ["lab1", "lab2"]);
    let holder = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let mut first = waits(&one, "games");
    eventually("one waits", || (waiting(&two) == 1).then_some(()));
    let mut second = waits(&two, "games");
    eventually("two wait", || (waiting(&one) == 2 && waiting(&two) == 2).then_some(()));
    for host in [&one, &two] {
        refused(host, "backup", "2 of 2 wait");
    }
    drop(holder);
    assert_eq!(first.read_line(), "games\n");
    // Where one has gone another may come.
    eventually("one waits", || (waiting(&one) == 1).then_some(()));
    let mut third = waits(&one, "backup");
    eventually("two wait", || (waiting(&two) == 2).then_some(()));
    refused(&two, "nobody", "2 of 2 wait");
    drop(first);
    assert_eq!(second.read_line(), "games\n");
    drop(second);
    assert_eq!(third.read_line(), "backup\n");
}

/// `queue_per_user` is the maximum number of queued launches per user.
#[test]
fn a_user_waits_once_over_all_hosts() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(1, "queue_per_user = 1"), ["lab1", "lab2"]);
    let holder = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let mut first = waits(&one, "games");
    eventually("one waits", || (waiting(&two) == 1).then_some(()));
    refused(&two, "games", "1 of 1 of yours wait");
    let mut second = waits(&two, "backup");
    eventually("two wait", || (waiting(&one) == 2).then_some(()));
    refused(&one, "backup", "1 of 1 of yours wait");
    drop(holder);
    assert_eq!(first.read_line(), "games\n");
    drop(first);
    assert_eq!(second.read_line(), "backup\n");
}

/// Many come at once: as many as may wait do, and all others are refused; each of them hears of it. One more
/// may come while the first was not heard of for some seconds.
#[test]
fn who_comes_at_once_with_many_waits_or_is_refused() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let hosts = hosts(&etcd, &seats(1, "queue = 1"), ["lab1", "lab2"]);
    let _holder = hosts[0].test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&hosts[1]) == 1).then_some(()));
    let all: Vec<Running> = (0..8).map(|number| waits(&hosts[number % 2], "games")).collect();
    let ended = || all.iter().filter(|launch| launch.is_zombie()).count();
    eventually("all others are refused", || (ended() >= 6).then_some(()));
    eventually("who is not refused waits", || {
        (waiting(&hosts[0]) + ended() == 8 && waiting(&hosts[1]) + ended() == 8).then_some(())
    });
}

/// Etcd proves that no other has joined meanwhile: a host that has not heard of it joins no queue that is
/// full.
#[test]
fn who_hears_of_nothing_joins_no_line() {
    needs_etcd!();
    assert!(!joins_a_full_line(None));
}

/// A launch that waits on another host is listed with its host, process, user and command, what it wants, and
/// since: in every listing, and after the other agent was killed. A ticket that says less is shown with what
/// it says.
#[test]
fn who_waits_on_another_host_is_named() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let two_slots = seats(3, "").replace("[\"seats\"]", "[{ repository = \"seats\", slots = 2 }]");
    let policy =
        format!("{two_slots}\n[[rule]]\nname = \"one\"\ncommands = [\"other\"]\nacquire = [\"seats\"]\n");
    let [one, mut two] = hosts(&etcd, &policy, ["lab1", "lab2"]);
    let _holder = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slots are seen", || (held(&two) > 0).then_some(()));
    let first = waits(&two, "games");
    eventually("it is seen", || (waiting(&one) == 1).then_some(()));
    let second = waits(&one, "backup");
    eventually("both are seen", || (waiting(&one) == 2 && waiting(&two) == 2).then_some(()));
    let seen = |host: &Host| listed(host)[0]["waiting"].clone();
    let (here, there) = (seen(&one), seen(&two));
    for seen in [&here, &there] {
        for (place, (host, user, launch)) in
            [("lab2", "games", &first), ("lab1", "backup", &second)].into_iter().enumerate()
        {
            let waiter = &seen[place];
            assert_eq!(waiter["host"], host, "{seen}");
            assert_eq!(waiter["user"], user, "{seen}");
            assert_eq!(waiter["pid"], launch.pid(), "{seen}");
            assert_eq!(waiter["command"], "matlab", "{seen}");
            assert_eq!(waiter["wants"], 2, "{seen}");
            assert_eq!(waiter["since"], here[place]["since"], "{seen}");
            assert!(waiter["since"].is_string(), "{seen}");
        }
        assert_eq!((&seen[1]["behind"], &seen[1]["behind_host"]), (&first.pid().into(), &"lab2".into()));
    }
    let pid = first.pid();
    let list = one.test().args(["list"]).outcome().stdout;
    let row = list.lines().find(|line| line.contains("games")).expect(&list);
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..4], ["1", &pid.to_string(), "games", "lab2"], "{list}");
    assert_eq!(cells.last(), Some(&"matlab"), "{list}");
    // There is a slot for one that wants no more; these two come first.
    let explained = one.test().user("nobody").args(["explain", "other"]).outcome().stdout;
    assert!(explained.contains(&format!("the first is PID {pid}@lab2")), "{explained}");
    let refused = one.test().user("nobody").args(["run", "--", "other"]).outcome().stderr;
    let first_in_line = format!("first in line: PID {pid} games matlab on lab2, 2 slots wanted, since ");
    assert!(refused.contains(&first_in_line), "{refused}");

    // The other agent takes up what was recorded, and says the same of it.
    let ticket = ticket_of(&two, &etcd, "lab2");
    two.restart();
    eventually("the agent is there again", || status(&two)["site"]["connected"].as_bool().filter(|is| *is));
    let third = waits(&two, "nobody");
    eventually("three wait", || (waiting(&one) == 3).then_some(()));
    assert_eq!(seen(&one)[0], here[0]);
    assert_eq!(ticket_of(&two, &etcd, "lab2"), ticket, "it was written once more");
    drop(third);
    eventually("two wait", || (waiting(&one) == 2).then_some(()));

    // As an older agent writes it, or a newer one.
    let prefix = status(&one)["site"]["prefix"].as_str().expect("a prefix").to_owned();
    let record = serde_json::json!({
        "host": "lab9", "agent": "x.1", "pid": 1, "uid": 65534, "command": "c".repeat(10_000), "classes": [[0, 3]],
        "is_away": false, "later": [1, 2],
    });
    let key = format!("{prefix}w/seats/{:016x}", i64::MAX);
    etcd.control(&["put", &key, &record.to_string()]).expect("it is written");
    let last = eventually("it is seen", || {
        let seen = seen(&one);
        (seen.as_array().map(Vec::len) == Some(3)).then(|| seen[2].clone())
    });
    assert_eq!((&last["host"], &last["pid"], &last["user"]), (&"lab9".into(), &1.into(), &"nobody".into()));
    assert_eq!((&last["wants"], &last["since"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    // Nobody's text is kept that is longer than a name.
    assert_eq!(last["command"], "c".repeat(255));
}

/// The ticket of a host as etcd has it: its value, and how often it was written.
fn ticket_of(host: &Host, etcd: &Etcd, name: &str) -> (serde_json::Value, serde_json::Value) {
    let prefix = format!("{}w/", status(host)["site"]["prefix"].as_str().expect("a prefix"));
    let told = etcd.control(&["get", "--prefix", &prefix, "-w", "json"]).expect("the tickets");
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let of = |key: &serde_json::Value| (super::scene::value(key), key["version"].clone());
    let tickets = told["kvs"].as_array().expect("some").iter().map(of);
    tickets.into_iter().find(|(ticket, _)| ticket["host"] == name).expect("it is there")
}

/// `explain` without a command shows what the user holds and where they wait on all hosts, each process with
/// its host, and nothing of other users.
#[test]
fn explain_without_a_command_names_the_hosts_of_holders_and_waiters() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(1, ""), ["lab1", "lab2"]);
    let holder = two.test().user("games").args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&one) == 1).then_some(()));
    let other = waits(&one, "backup");
    eventually("one waits", || (waiting(&two) == 1).then_some(()));
    let waiter = waits(&two, "games");
    eventually("both are seen", || (waiting(&one) == 2).then_some(()));
    let mine = |host: &Host, user: &str| -> serde_json::Value {
        let outcome = host.test().user(user).args(["explain", "--json"]).outcome();
        assert_eq!(outcome.ending, Ending::Status(0), "{outcome:?}");
        serde_json::from_str(&outcome.stdout).expect("JSON")
    };
    for (host, elsewhere) in [(&one, serde_json::json!("lab2")), (&two, serde_json::json!(null))] {
        let json = mine(host, "games");
        let limit = &json["limits"][0];
        assert_eq!((&limit["mine"], &limit["used"], &limit["waiting"]), (&1.into(), &1.into(), &2.into()));
        assert_eq!((&json["held"][0]["pid"], &json["held"][0]["host"]), (&holder.pid().into(), &elsewhere));
        let place = &json["waiting"][0];
        assert_eq!((&place["pid"], &place["host"]), (&waiter.pid().into(), &elsewhere), "{json}");
        assert_eq!((&place["place"], &place["behind"]), (&2.into(), &other.pid().into()), "{json}");
        assert_eq!(
            (json["held"].as_array().map(Vec::len), json["waiting"].as_array().map(Vec::len)),
            (Some(1), Some(1))
        );
    }
    let text = one.test().user("games").args(["explain"]).outcome().stdout;
    for process in [&holder, &waiter] {
        assert!(text.contains(&format!(" {}@lab2 ", process.pid())), "{text}");
    }
    let json = mine(&two, "backup");
    assert_eq!(json["held"], serde_json::json!([]), "{json}");
    assert_eq!(
        (&json["waiting"][0]["pid"], &json["waiting"][0]["host"]),
        (&other.pid().into(), &"lab1".into())
    );
}
