//! Seen by everybody as ever: `status`, `list`, `explain` and `metrics` ask the agent and show the same
//! columns.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::{held, seats, waiting};
use crate::support::{Ending, eventually, given_time, needs_root};

#[test]
fn everything_that_shows_repositories_shows_the_agents() {
    needs_root!();
    let (site, agent) = seats(2, "per = \"user\"\nwait = \"1h\"");
    let _running = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    site.test()
        .args(["status"])
        .stdout(
            "
            REPOSITORY USED LIMIT FREE WAIT OLDEST NOTE
            seats         -     2    -    -      - 1 in use or used before
              games       1     2    1    0[gap][age]
            ",
        )
        .status(0);
    site.test()
        .args(["list"])
        .stdout(
            "
            seats [games]: 1 of 2 used
            SLOT[..] PID USER  HOST SINCE[..] AGE HOLD    COMMAND RULE
               1[..] games [..] process matlab  seats
            ",
        )
        .status(0);
    let metrics = site.test().args(["metrics"]).outcome().stdout;
    assert!(metrics.contains("rungate_slots_used{repository=\"seats\",member=\"games\"} 1\n"), "{metrics}");
    let explained = site.test().user("games").args(["explain", "--", "matlab"]).outcome().stdout;
    assert!(explained.contains("seats [games]    1    1     2       0   1h ok"), "{explained}");
    let json = site.test().args(["status", "--json"]).outcome().stdout;
    assert!(json.contains("\"path\": null") && json.contains("\"used\": 1"), "{json}");
    agent.kill();
    let status = site.test().args(["status"]).outcome();
    assert!(status.stdout.contains("the agent cannot be reached"), "{}", status.stdout);
    assert!(
        status.stdout.contains(" 1 not known\n  ? ") && !status.stdout.contains("in use"),
        "{}",
        status.stdout
    );
}

/// An agent that does not answer is a fault where it has something to keep, and none if lock files keep
/// everything.
#[test]
fn a_host_without_an_agent_may_have_no_site() {
    needs_root!();
    let (site, agent) = seats(1, "");
    agent.kill();
    let shown = || site.test().args(["doctor", "agent", "site"]);
    shown().stdout("...\n[..]the agent cannot be reached at [..]\n...\n").status(1);
    site.system_policy("[repository.seats]\nlimit = 1\n");
    shown().stdout("Nothing to fix: agent, site checked (details: rungate doctor -v)\n").status(0);
    let json = shown().args(["--json"]).outcome();
    assert_eq!((json.ending, json.stderr.as_str()), (Ending::Status(0), ""), "{json:?}");
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert!(json["topics"][1]["details"].is_null(), "{json}");
}

/// A table is called as a lock file would be, and shown as people know it, to whoever asks.
#[test]
fn a_directory_is_shown_by_its_path() {
    needs_root!();
    let (site, _agent) = seats(1, "per = [\"directory\", \"user\"]");
    let _running = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    let work = site.path("work").canonicalize().expect("where commands start");
    let title = format!("seats [{}, games]", work.display());
    for user in ["root", "nobody"] {
        let listed = site.test().user(user).directory("/").args(["list"]).outcome().stdout;
        assert!(listed.starts_with(&format!("{title}: 1 of 1 used\n")), "{listed}");
    }
    let refused = site.test().user("games").args(["run", "--", "matlab"]).outcome().stderr;
    assert!(refused.contains(&format!("\n  {title}  1 of 1 used\n")), "{refused}");
}

/// What is printed decides as the original does: `per` and `keeper`, and no path.
#[test]
fn the_policy_is_shown_as_it_is() {
    needs_root!();
    let (site, _agent) = seats(2, "per = [\"user\", \"host\"]\nunreachable = \"start\"");
    let shown = site.test().args(["policy", "show"]).outcome().stdout;
    for line in ["keeper", "per", "unreachable"] {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "{line}: {shown}");
    }
    assert!(!shown.contains("path"), "{shown}");
}

/// Ends: exact where a parent or the agent sees them: whoever looks later records when that was.
#[test]
fn whoever_looks_writes_down_when_the_agent_has_seen_an_end() {
    needs_root!();
    let log = "\n[log]\nto = \"$DIR/work/log.jsonl\"\nreplay = true";
    for more in [log.to_owned(), format!("hold = \"descriptor\"{log}")] {
        let (site, _agent) = seats(1, &more);
        let running = site.test().user("root").args(["run", "--", "matlab"]).spawn();
        let pid = running.pid();
        site.test().args(["end", "--overdue"]).status(0);
        drop(running);
        eventually("the slot is free", || held(&site).is_empty().then_some(()));
        let not_after = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_micros();
        for look in [&["metrics"][..], &["end", "--overdue"]] {
            assert_eq!(site.test().args(look).outcome().ending, Ending::Status(0), "{look:?}");
        }
        let log = fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
        let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
        let ends: Vec<Value> = events.filter(|event| event["event"] == "ended").collect();
        let [end] = ends.as_slice() else { panic!("{ends:?}") };
        let bound = |place: usize| end["between"][place].as_u64().expect("a moment");
        assert_eq!((end["pid"].as_i64(), bound(0)), (Some(pid.into()), bound(1)), "{end}");
        assert!(u128::from(bound(1)) <= not_after, "{end} {not_after}");
    }
}

/// A policy with faults is 78, also for a launch that waits while the agent is the first to see them.
#[test]
fn a_fault_that_the_agent_sees_first_is_a_fault_of_the_policy() {
    needs_root!();
    given_time(&["5s", "20s", "40s"], the_agent_sees_a_fault_first);
}

fn the_agent_sees_a_fault_first(wait: &str) {
    let (site, _agent) = seats(1, "");
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut waiter = site.test().args(["run", "--wait", wait, "--", "matlab"]).background();
    eventually("it stands in line", || (super::waiting(&site) == 1).then_some(()));
    site.system_policy("version = 1\nfault = 1\n");
    let outcome = waiter.end();
    assert_eq!(outcome.ending, Ending::Status(78), "{outcome:?}");
    assert!(outcome.stderr.contains("the policy has 1 fault\n"), "{outcome:?}");
    let refused = site.test().args(["run", "--", "matlab"]).outcome();
    assert_eq!(refused.ending, Ending::Status(78), "{refused:?}");
}

/// `explain` without a command shows a user the agent's tables: their limit, their slots and their place.
#[test]
fn explain_without_a_command_shows_what_the_agent_keeps() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let holder = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    let waiter = site.test().user("nobody").args(["run", "-w", "forever", "--", "matlab"]).background();
    eventually("it waits", || (waiting(&site) == 1).then_some(()));
    let mine = |user: &str| -> serde_json::Value {
        let outcome = site.test().user(user).args(["explain", "--json"]).outcome();
        assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(0), ""), "{outcome:?}");
        serde_json::from_str(&outcome.stdout).expect("JSON")
    };
    let (holds, waits) = (mine("games"), mine("nobody"));
    for (json, own) in [(&holds, 1), (&waits, 0)] {
        let limit = &json["limits"][0];
        assert_eq!(
            (&limit["limit"], &limit["mine"], &limit["used"], &limit["waiting"]),
            (&1.into(), &own.into(), &1.into(), &1.into())
        );
    }
    assert_eq!((&holds["held"][0]["pid"], &holds["held"][0]["host"]), (&holder.pid().into(), &().into()));
    assert_eq!((&holds["waiting"], &waits["held"]), (&serde_json::json!([]), &serde_json::json!([])));
    let place = &waits["waiting"][0];
    assert_eq!(
        (&place["pid"], &place["place"], &place["behind"]),
        (&waiter.pid().into(), &1.into(), &().into())
    );
}
