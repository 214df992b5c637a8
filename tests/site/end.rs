//! A holder on another host is ended by the agent of that host: at the request of root, and of the user whose
//! it is, for whom the agent of their host vouches.

use nix::sys::signal::Signal;
use serde_json::json;

use super::expiry::{OVERDUE, SILENT, keys, matlab, waits};
use super::{held, hosts, hosts_with, seats};
use crate::support::{Ending, Etcd, Host, Outcome, Running, Test, eventually, needs_etcd};

fn end(host: &Host, user: &str, words: &[&str]) -> Test {
    host.test().user(user).args(["end", "--yes", "seats"]).args(words)
}

/// The command says this. It gives up after some seconds if the hosts, or etcd, are slow: none then.
#[track_caller]
fn is_told(outcome: &Outcome, said: &str) -> Option<()> {
    if outcome.stderr.ends_with("its host was asked to end it\n") {
        return None;
    }
    assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(0), said));
    Some(())
}

/// Root ends any holder of the site, a user their own; by process id, by slot and by user. The log of the
/// holder's host says at whose request.
#[test]
fn a_holder_of_another_host_is_ended_by_its_own() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let prefix = Etcd::prefix();
    let settings = etcd.settings(&prefix, super::LASTING);
    let [mut one, two] = ["lab1", "lab2"].map(|name| Host::new(name, &seats(1, ""), &settings));
    let ends = |user: &str, by_pid: bool| {
        let mut holder = matlab(&one, "games").spawn();
        eventually("the slot is seen", || (held(&two) == 1).then_some(()));
        let pid = holder.pid().to_string();
        // A user ends nobody else's, here as there.
        end(&two, "backup", &[&pid])
            .stderr(&format!(
                "
                rungate: seats: PID {pid} (matlab) belongs to games
                Only root and games may end it. Ask one of them: rungate end seats {pid}
                "
            ))
            .status(77);
        holder.wait_for_echo();
        let words: &[&str] = if by_pid { &[&pid] } else { &[] };
        let outcome = end(&two, user, words).outcome();
        assert_eq!(holder.end().ending, Ending::Signal(2), "{user}");
        eventually("both hosts see it", || (held(&one) + held(&two) == 0).then_some(()));
        let said = format!("rungate: seats: ended PID {pid} (matlab) on lab1, with SIGINT\n");
        is_told(&outcome, &said).map(|()| pid)
    };
    let uid = |name: &str| nix::unistd::User::from_name(name).expect("users").expect("a user").uid.as_raw();
    let mut lines = Vec::new();
    for (user, by_pid) in [("root", true), ("games", false)] {
        let pid = eventually("it is ended while the command waits", || ends(user, by_pid));
        let (of, by) = (uid("games"), uid(user));
        lines.push(format!(
            "rungate-agent: seats: ended PID {pid} (matlab) of user {of}, with SIGINT, at the request of user \
             {by} on lab2\n"
        ));
    }
    eventually("the notice is taken back", || keys(&etcd, &format!("{prefix}e/")).is_empty().then_some(()));
    one.agent.signal(Signal::SIGKILL);
    let log = one.agent.end().stderr;
    assert!(lines.iter().all(|line| log.contains(line)), "{log}");
}

/// So many holders that one transaction cannot name all of them, here as there.
#[test]
fn any_number_of_holders_is_ended() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(70, ""), ["lab1", "lab2"]);
    let mut holders: Vec<Running> = (0..70).map(|_| matlab(&one, "games").spawn()).collect();
    eventually("all slots are seen", || (held(&two) == 70).then_some(()));
    // Hosts that are slow have not answered in time, and are asked again.
    eventually("all are ended", || {
        end(&two, "root", &[]).outcome();
        (held(&two) == 0).then_some(())
    });
    assert!(holders.iter_mut().all(|holder| holder.end().ending == Ending::Signal(2)));
}

/// A user's request that another host writes ends only what is that user's; what else it says of a holder
/// ends nobody who is not overdue.
#[test]
fn a_request_of_somebody_else_ends_nobody() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let prefix = Etcd::prefix();
    let one = Host::new("lab1", &seats(1, ""), &etcd.settings(&prefix, super::LASTING));
    let mut running = matlab(&one, "games").spawn();
    let uid = |name: &str| nix::unistd::User::from_name(name).expect("users").expect("a user").uid.as_raw();
    let slots = eventually("the slot is there", || {
        Some(keys(&etcd, &format!("{prefix}s/"))).filter(|slots| slots.len() == 1)
    });
    let (key, record) = &slots[0];
    let (_, mut host) = keys(&etcd, &format!("{prefix}h/lab1")).remove(0);
    host["agent"] = json!("another");
    let put = |key: &str, value: &serde_json::Value| {
        eventually("it is written", || etcd.control(&["put", key, &value.to_string()]));
    };
    put(&format!("{prefix}h/lab9"), &host);
    let notice = key.replace("/s/", "/e/");
    let ask = |user: &str| {
        put(&notice, &json!({ "host": "lab9", "agent": "another", "by": uid(user), "holder": record }));
    };
    // The record in the notice lies about the user, too.
    ask("backup");
    eventually("there is a reply", || {
        keys(&etcd, &notice).first().is_some_and(|(_, value)| value["reply"] == "NotOverdue").then_some(())
    });
    running.wait_for_echo();
    // The same of the user whose it is.
    ask("games");
    assert_eq!(running.end().ending, Ending::Signal(2));
}

/// A launch that waits has left a notice that the holder is overdue, which its own host denies. The request
/// of a user counts nevertheless.
#[test]
fn a_request_counts_where_there_is_another_notice() {
    needs_etcd!();
    eventually("it is ended while the command waits", counts_beside_another_notice);
}

fn counts_beside_another_notice() -> Option<()> {
    let etcd = Etcd::shared();
    let prefix = Etcd::prefix();
    let settings = etcd.settings(&prefix, super::LASTING);
    let one = Host::new("lab1", &seats(1, ""), &settings);
    let two = Host::new("lab2", &seats(1, OVERDUE), &settings);
    let mut holder = matlab(&one, "games").spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let mut next = waits(&two, "backup");
    let notice = || keys(&etcd, &format!("{prefix}e/")).pop().map(|(_, value)| value);
    eventually("it is not overdue there", || notice().filter(|notice| notice["reply"] == "NotOverdue"));
    // The agent that was asked is away until the command has given up: the request has gone with it then.
    one.agent.signal(Signal::SIGSTOP);
    let pid = holder.pid();
    end(&two, "root", &["slot:1"])
        .stderr(&format!(
            "rungate: seats: PID {pid} (matlab) on lab1 is still running: its host was asked to end it\n"
        ))
        .status(71);
    eventually("the request is withdrawn", || notice().filter(|notice| notice["by"].is_null()));
    one.agent.signal(Signal::SIGCONT);
    eventually("it is not overdue there", || notice().filter(|notice| notice["reply"] == "NotOverdue"));
    holder.wait_for_echo();
    let outcome = end(&two, "root", &["slot:1"]).outcome();
    assert_eq!(holder.end().ending, Ending::Signal(2));
    next.wait_for_echo();
    is_told(&outcome, &format!("rungate: seats: ended PID {pid} (matlab) on lab1, with SIGINT\n"))
}

/// The agent of the holder's host is away: nobody is ended, and that is told.
#[test]
fn a_host_that_does_not_answer_is_named() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [mut one, two] = hosts_with(&etcd, SILENT, &seats(1, ""), ["lab1", "lab2"]);
    let mut holder = matlab(&one, "games").spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    one.agent.signal(Signal::SIGKILL);
    let pid = holder.pid();
    let said = format!(
        "rungate: seats: PID {pid} (matlab) on lab1 is still running: its host was asked to end it\n"
    );
    end(&two, "root", &[]).stderr(&said).status(71);
    one.restart();
    holder.wait_for_echo();
}

/// A process of this host that has the same number as a holder on another one is not meant.
#[test]
fn the_own_host_ends_its_own_holders() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(2, ""), ["lab1", "lab2"]);
    let mut of_one = matlab(&one, "games").spawn();
    let mut of_two = matlab(&two, "games").spawn();
    eventually("both are seen", || (held(&one) == 2 && held(&two) == 2).then_some(()));
    let pid = of_two.pid().to_string();
    let said = format!("rungate: seats: ended PID {pid} (matlab), with SIGINT\n");
    end(&two, "games", &[&pid]).stderr(&said).status(0);
    assert_eq!(of_two.end().ending, Ending::Signal(2));
    of_one.wait_for_echo();
}
