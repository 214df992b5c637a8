//! What becomes of launches when no member of etcd answers.

use nix::sys::signal::Signal;

use super::{TTL, held, seats, status};
use crate::support::{Ending, Etcd, Host, eventually, needs_etcd};

/// No endpoint answers at the start of a launch: 74, naming the endpoints tried and for how long.
#[test]
fn a_site_that_cannot_be_reached_refuses() {
    needs_etcd!();
    let settings = format!(
        "version = 1\n[site]\nendpoints = [\"http://127.0.0.1:1\", \"http://127.0.0.1:2\"]\nttl = \"{TTL}\"\n"
    );
    let host = Host::new("lab1", &seats(1, ""), &settings);
    host.test()
        .args(["run", "--", "matlab"])
        .stderr(
            "
            rungate: matlab: not started: the agent refuses: the site has not been reached for [..] s, trying http://127.0.0.1:1, http://127.0.0.1:2: http://127.0.0.1:[..]: Connection refused (os error 111)
            Check that a majority of the members runs: etcdctl endpoint health --cluster
            ",
        )
        .status(74);
}

/// An agent that has never reached etcd says so in its log, once, and with what to do.
#[test]
fn an_agent_that_never_reaches_the_site_says_so() {
    needs_etcd!();
    let settings = "version = 1\n[site]\nendpoints = [\"http://127.0.0.1:1\"]\nttl = \"60s\"\n";
    let mut host = Host::new("lab1", &seats(1, ""), settings);
    eventually("it has tried for long enough", || {
        let lasts = status(&host)["site"]["trouble"]["lasts"].as_f64();
        lasts.filter(|lasts| *lasts > 5.0)
    });
    host.agent.signal(Signal::SIGKILL);
    let log = host.agent.end().stderr;
    assert_eq!(log.matches("rungate-agent: the site has not been reached for").count(), 1, "{log}");
    for part in ["trying http://127.0.0.1:1: ", "etcdctl endpoint health", "until then it grants no slots"] {
        assert!(log.contains(part), "{part:?} is not in\n{log}");
    }
}

/// `unreachable = "start"`: without a slot, logged as would-refuse.
#[test]
fn a_launch_may_start_without_the_site_where_the_policy_says_so() {
    needs_etcd!();
    let settings = format!("version = 1\n[site]\nendpoints = [\"http://127.0.0.1:1\"]\nttl = \"{TTL}\"\n");
    let more = "unreachable = \"start\"\n[log]\nto = \"$DIR/work/log.jsonl\"";
    let host = Host::new("lab1", &seats(1, more), &settings);
    let _running = host.test().args(["run", "--", "matlab"]).spawn();
    let log = std::fs::read_to_string(host.site.path("work/log.jsonl")).expect("the log");
    assert_eq!(log.matches("\"would-refuse\"").count(), 1, "{log}");
}

/// A member that hangs is left for another; a majority that hangs is told apart from none that exists.
#[test]
fn a_member_that_hangs_holds_up_nobody() {
    needs_etcd!();
    let etcd = Etcd::new();
    let settings = etcd.settings(&Etcd::prefix(), "8s");
    let host = Host::new("lab1", &seats(1, ""), &settings);
    host.test().args(["run", "--", "matlab"]).status(0);
    for member in 0..3 {
        etcd.signal_one(member, Signal::SIGSTOP);
        // A leader that hangs has to be missed by the others first.
        eventually("a launch starts", || {
            let outcome = host.test().args(["run", "-q", "--", "matlab"]).outcome();
            (outcome.stderr.is_empty()).then_some(())
        });
        etcd.signal_one(member, Signal::SIGCONT);
    }
    // Whether it reaches etcd no more, or does not hear what it has done, it is told the same; and is told by
    // the agent, before it loses its patience with that.
    let launch = host.test().args(["run", "-q", "--", "matlab"]);
    eventually("it is refused by the agent", || {
        eventually("a launch starts", || (launch.outcome().ending == Ending::Status(0)).then_some(()));
        eventually("its slot is free", || (held(&host) == 0).then_some(()));
        etcd.signal(Signal::SIGSTOP);
        let outcome = host.test().args(["run", "--", "matlab"]).outcome();
        etcd.signal(Signal::SIGCONT);
        assert_eq!(outcome.ending, Ending::Status(74), "{outcome:?}");
        let silent = "not started: the agent refuses: the site has not been reached for";
        outcome.stderr.contains(silent).then_some(())
    });
    eventually("nothing of it is left", || (held(&host) == 0).then_some(()));
}
