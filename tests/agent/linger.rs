//! `linger`: a slot stays taken for some time after its program has ended, and goes to whoever has the same
//! values before it goes to others.

use super::{REFUSED, held, seats};
use crate::support::{Running, Site, Test, eventually, needs_root, set_mode};

fn matlab(site: &Site, user: &str) -> Test {
    site.test().user(user).args(["run", "--", "matlab"])
}

#[track_caller]
fn ends(mut running: Running) {
    running.close_stdin();
    running.end();
}

/// The same user takes the slot over, others find it taken; however often that is done, it is one slot.
#[test]
fn a_slot_stays_taken_for_its_user() {
    needs_root!();
    let (site, agent) = seats(2, "linger = \"1h\"");
    for _ in 0..3 {
        ends(matlab(&site, "games").spawn());
        eventually("it lingers", || (held(&site).len() == 1).then_some(()));
    }
    let _backup = matlab(&site, "backup").spawn();
    matlab(&site, "nobody").stderr(REFUSED).status(75);
    site.test()
        .args(["list"])
        .stdout("seats: 2 of 2 used, 1 lingering\n...\n[..]matlab (ended)[..]\n...\n")
        .status(0);
    // Without shared_by a slot is for one program at a time.
    let again = matlab(&site, "games").spawn();
    matlab(&site, "games").stderr(REFUSED).status(75);
    let files =
        || std::fs::read_dir(site.agent_state().join("holdings")).expect("what is written down").count();
    assert_eq!(files(), 3, "those who run, and one who has ended");
    ends(again);
    agent.kill();
    let _agent = site.agent();
    matlab(&site, "nobody").stderr(REFUSED).status(75);
    let _again = matlab(&site, "games").spawn();
}

/// If the agent did not see the end, the time counts from its start.
#[test]
fn an_unseen_end_counts_from_the_start_of_the_agent() {
    needs_root!();
    let (site, agent) = seats(1, "linger = \"1h\"");
    let running = matlab(&site, "games").spawn();
    agent.kill();
    ends(running);
    let _agent = site.agent();
    matlab(&site, "nobody").stderr(REFUSED).status(75);
    let _again = matlab(&site, "games").spawn();
}

/// When the time is over whoever waits gets it.
#[test]
fn it_ends() {
    needs_root!();
    let (site, _agent) = seats(1, "linger = \"1s\"");
    ends(matlab(&site, "games").spawn());
    let mut waits = site.test().user("backup").args(["run", "-w", "10m", "--", "matlab"]).background();
    assert!(waits.answers(), "it got the slot");
    assert_eq!(held(&site), [(1, waits.pid().into())]);
}

/// With `shared_by` the group keeps it, and any of its launches joins. The log says so of those that join a
/// program, and not of the one that takes over what only lingers.
#[test]
fn a_group_keeps_its_slot() {
    needs_root!();
    let log = "[log]\nto = \"$DIR/work/log.jsonl\"\n";
    let (site, _agent) = seats(1, &format!("linger = \"1h\"\nshared_by = [\"user\", \"host\"]\n{log}"));
    site.write("work/log.jsonl", "");
    set_mode(&site.path("work/log.jsonl"), 0o666);
    let (first, second) = (matlab(&site, "games").spawn(), matlab(&site, "games").spawn());
    ends(first);
    ends(second);
    matlab(&site, "backup").stderr(REFUSED).status(75);
    let _windows = [matlab(&site, "games").spawn(), matlab(&site, "games").spawn()];
    let log = std::fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    assert_eq!(log.matches("\"joined\"").count(), 2, "{log}");
}

/// What is given back without a program does not linger.
#[test]
fn what_was_never_used_is_free() {
    needs_root!();
    let (site, _agent) = seats(1, "linger = \"1h\"");
    site.script("matlab", "#!/does/not/exist\n");
    set_mode(&site.path("bin/matlab"), 0o755);
    let outcome = matlab(&site, "games").outcome();
    assert!(outcome.stderr.contains("matlab"), "{outcome:?}");
    eventually("it is free", || held(&site).is_empty().then_some(()));
}

/// `matlab` needs slots that linger for a second and for an hour; `viewer` the former alone.
fn short_and_long() -> (Site, Running) {
    let (site, agent) = Site::with_agent(
        r#"
        [repository.short]
        keeper = "agent"
        limit  = 1
        linger = "1s"
        [repository.long]
        keeper = "agent"
        limit  = 1
        linger = "1h"
        [[rule]]
        commands = ["matlab"]
        acquire  = ["short", "long"]
        [[rule]]
        commands = ["viewer"]
        acquire  = ["short"]
        "#,
    );
    site.program("matlab");
    site.program("viewer");
    (site, agent)
}

/// A launch of two repositories keeps the slots of each for its own time.
#[test]
fn each_repository_has_its_own_time() {
    needs_root!();
    let (site, agent) = short_and_long();
    ends(matlab(&site, "games").spawn());
    let viewer = || site.test().user("backup").args(["run", "-w", "10m", "--", "viewer"]).background();
    let mut waits = viewer();
    assert!(waits.answers(), "it got the slot");
    matlab(&site, "nobody").stderr("rungate: matlab: not started: both limits are reached\n...\n").status(75);
    waits.kill();
    // Written down and read back, too.
    ends(site.test().user("backup").args(["run", "--", "viewer"]).spawn());
    agent.kill();
    let _agent = site.agent();
    let mut waits = viewer();
    assert!(waits.answers(), "it got the slot");
    site.test().args(["list", "long"]).stdout("long: 1 of 1 used, 1 lingering\n...\n").status(0);
}

/// What another program has had since the time was over stays that program's when the agent starts again.
#[test]
fn a_time_that_is_over_stays_over() {
    needs_root!();
    let (site, agent) = short_and_long();
    ends(matlab(&site, "games").spawn());
    let mut viewer = site.test().user("backup").args(["run", "-w", "10m", "--", "viewer"]).background();
    assert!(viewer.answers(), "it got the slot");
    agent.kill();
    let _agent = site.agent();
    let short: Vec<_> = held(&site).into_iter().filter(|(_, pid)| *pid == i64::from(viewer.pid())).collect();
    assert_eq!(short, [(1, viewer.pid().into())]);
    let refused = "rungate: viewer: not started: the limit is reached\n...\n";
    site.test().user("nobody").args(["run", "--", "viewer"]).stderr(refused).status(75);
}

/// The end of an overdue program would make no room, so no launch ends it; `rungate end --overdue` does.
#[test]
fn no_program_is_ended_whose_slot_would_stay() {
    needs_root!();
    let (site, _agent) = seats(1, "linger = \"1h\"\nexpire_after = \"1ms\"");
    let mut running = matlab(&site, "games").spawn();
    matlab(&site, "backup").stderr(REFUSED).status(75);
    assert_eq!(held(&site), [(1, running.pid().into())]);
    running.close_stdin();
    running.end();
}

/// Whoever wants to end a program that has ended is told until when its slot stays; and lists show that, after a
/// restart of the agent too.
#[test]
fn what_lingers_is_called_so() {
    needs_root!();
    let (site, agent) = Site::with_agent(
        "[repository.seats]\nkeeper = \"agent\"\nlimit = 2\nlinger = \"1h\"\n\
         [[rule]]\ncommands = [\"matlab\"]\nacquire = [{ repository = \"seats\", slots = 2 }]\n",
    );
    site.program("matlab");
    ends(matlab(&site, "games").spawn());
    let said = "rungate: seats: PID [..] (matlab (ended)) cannot be ended: the slot lingers until [..] (linger)\n\
                A launch with the same values can have it before. To free it now (as root): rungate end seats slot:[..]\n";
    let until = || {
        eventually("it lingers", || {
            let listed = crate::support::listing(&site.test());
            listed[0]["holders"][0]["lingers_until"].as_str()?.parse::<jiff::Timestamp>().ok()
        })
    };
    let before = until();
    let end = |slot: &str| site.test().user("games").args(["end", "--yes", "seats", slot]);
    end("slot:1").stderr(said).status(71);
    site.test().args(["end", "--yes", "seats"]).stderr(&said.repeat(2)).status(0);
    site.test().args(["list"]).stdout("seats: 2 of 2 used, 2 lingering\n...\n").status(0);
    let status = site.test().args(["status"]).outcome().stdout;
    assert!(status.contains("2 lingering"), "{status}");
    agent.kill();
    let _agent = site.agent();
    assert!(until().duration_since(before).as_secs().abs() <= 1, "until {before}, and now until {}", until());
    end("slot:2").stderr(said).status(71);
    // Both slots of the launch.
    let freed = "rungate: seats: freed slot 1 of PID [..] (matlab (ended))\n";
    site.test().args(["end", "--yes", "seats", "games"]).stderr(freed).status(0);
    assert!(held(&site).is_empty());
}

/// Root frees a slot that lingers, by its number, its user or its process. A launch that waits gets it, and
/// nothing of it is left for an agent that is started again.
#[test]
fn root_frees_what_it_names() {
    needs_root!();
    let (site, agent) = seats(1, "linger = \"1h\"\nshared_by = \"user\"");
    [matlab(&site, "games").spawn(), matlab(&site, "games").spawn()].into_iter().for_each(ends);
    let lingers = || {
        eventually("it lingers", || {
            let listed = crate::support::listing(&site.test());
            listed[0]["holders"][0]["lingers_until"].is_string().then_some(())
        });
    };
    lingers();
    let mut waits = site.test().user("backup").args(["run", "-q", "-w", "10m", "--", "matlab"]).background();
    waits.write_line("it has it");
    let end = |words: &[&str]| site.test().args(["end", "--yes", "seats"]).args(words);
    let of = "slot 1 of PID [..] (matlab (ended))\n";
    end(&["--dry-run", "slot:1"]).stdout(&format!("seats: would free {of}")).status(0);
    assert_eq!(held(&site).len(), 1);
    let freed = format!("rungate: seats: freed {of}");
    end(&["slot:1"]).stderr(&freed).status(0);
    assert_eq!(waits.read_line(), "it has it\n");
    ends(waits);
    lingers();
    end(&["backup"]).stderr(&freed).status(0);
    let running = matlab(&site, "games").spawn();
    let pid = running.pid().to_string();
    ends(running);
    lingers();
    end(&[&pid]).stderr(&freed).status(0);
    agent.kill();
    let _agent = site.agent();
    let _running = matlab(&site, "nobody").spawn();
}

/// Of a launch of two repositories, root frees the slot of one: that of the other stays, and an agent that is
/// started again knows both.
#[test]
fn the_slot_of_another_repository_stays() {
    needs_root!();
    let (site, agent) = Site::with_agent(
        r#"
        [repository.one]
        keeper = "agent"
        limit  = 1
        linger = "2h"
        [repository.other]
        keeper = "agent"
        limit  = 1
        linger = "1h"
        [[rule]]
        commands = ["matlab"]
        acquire  = ["one", "other"]
        [[rule]]
        commands = ["viewer"]
        acquire  = ["one"]
        "#,
    );
    site.program("matlab");
    site.program("viewer");
    ends(matlab(&site, "games").spawn());
    let lingers = |name: &str| site.test().args(["list", name]).outcome().stdout.contains("1 lingering");
    eventually("both linger", || (lingers("one") && lingers("other")).then_some(()));
    let freed = "rungate: one: freed slot 1 of PID [..] (matlab (ended))\n";
    site.test().args(["end", "--yes", "one", "games"]).stderr(freed).status(0);
    agent.kill();
    let _agent = site.agent();
    let _viewer = site.test().user("backup").args(["run", "--", "viewer"]).spawn();
    assert!(lingers("other") && !lingers("one"));
}

/// Root frees the slot that it names: another one of the same repository lingers on.
#[test]
fn another_slot_of_the_repository_stays() {
    needs_root!();
    let (site, _agent) = seats(2, "linger = \"1h\"");
    ["games", "backup"].map(|user| matlab(&site, user).spawn()).into_iter().for_each(ends);
    let slots = || held(&site).into_iter().map(|(slot, _)| slot).collect::<Vec<u64>>();
    let lingers = || site.test().args(["list"]).outcome().stdout.contains("2 of 2 used, 2 lingering");
    eventually("both linger", || lingers().then_some(()));
    let freed = "rungate: seats: freed slot 1 of PID [..] (matlab (ended))\n";
    site.test().args(["end", "--yes", "seats", "slot:1"]).stderr(freed).status(0);
    assert_eq!(slots(), [2]);
}

/// A launch that executes another one is one process with one slot, and has one row.
#[test]
fn a_chain_of_launches_is_one_row() {
    needs_root!();
    let (site, _agent) = seats(1, "shared_by = \"user\"");
    site.script("other", &format!("#!/bin/sh\nexec {} run -- matlab\n", site.rungate().display()));
    let chain = site.test().user("games").args(["run", "--", "other"]).spawn();
    eventually("both have it", || (held(&site) == [(1, chain.pid().into())]).then_some(()));
    let listed = crate::support::listing(&site.test());
    let holder = &listed[0]["holders"][0];
    assert_eq!(
        (&holder["command"], &holder["shared_with"]),
        (&"matlab".into(), &serde_json::json!([])),
        "{listed:#?}"
    );
    let _window = matlab(&site, "games").spawn();
    let listed = crate::support::listing(&site.test());
    assert_eq!(listed[0]["holders"][0]["shared_with"].as_array().map(Vec::len), Some(1), "{listed:#?}");
}
