//! Its death: programs go on; new launches get `unreachable`; waiting launchers reconnect for 30 s and keep
//! their place.

use std::fs;
use std::os::unix::net::UnixListener;

use super::{held, seats, waiter, waiting};
use crate::support::{Ending, Running, Site, eventually, needs_root, set_mode};

/// One seat that is held, and one launch that waits for it.
fn begin(unreachable: &str) -> (Site, Running, Running, Running) {
    let more = "[log]\nto = \"$DIR/work/log.jsonl\"";
    let (site, agent) = seats(1, &format!("unreachable = \"{unreachable}\"\n{more}"));
    let launch = site.test().args(["run", "--", "matlab"]);
    // Where the machine stands still the agent is silent for a while, and then these start without it.
    let holder = eventually("one has the slot", || {
        let running = launch.spawn();
        (held(&site) == [(1, running.pid().into())]).then_some(running)
    });
    let waits = waiter(&site, "root", 1);
    (site, agent, holder, waits)
}

/// How many launches have started without a slot.
fn free_starts(site: &Site) -> usize {
    let log = fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    log.matches("\"would-refuse\"").count()
}

/// Waits for a call to an agent that does not exist, and hangs up; or until whoever was to call has given up.
#[track_caller]
fn hang_up(site: &Site, has_given_up: impl Fn() -> bool) {
    let socket = site.agent_socket();
    fs::remove_file(&socket).expect("the socket that is left");
    let listener = UnixListener::bind(&socket).expect("a socket");
    set_mode(&socket, 0o666);
    listener.set_nonblocking(true).expect("a listener");
    eventually("it calls again", || (listener.accept().is_ok() || has_given_up()).then_some(()));
    fs::remove_file(&socket).expect("the socket");
}

/// `start` is for those who cannot ask, and never for those who wait while the agent comes back.
#[test]
fn who_waits_over_a_restart_waits_on_and_who_comes_meanwhile_gets_what_the_policy_says() {
    needs_root!();
    for unreachable in ["refuse", "start"] {
        // Where the machine stands still for longer than a launch is patient, that starts too.
        eventually("nobody lost their patience", || {
            let (site, agent, holder, mut waits) = begin(unreachable);
            let before = free_starts(&site);
            agent.kill();
            let newcomer = site.test().args(["run", "--", "matlab"]);
            let is_free = unreachable == "start";
            if is_free {
                newcomer.status(0);
            } else {
                let refused = newcomer
                    .stderr("rungate: matlab: not started: the agent cannot be reached at [..]\n...\n");
                refused.status(74);
            }
            let has_given_up = || waits.is_zombie() || free_starts(&site) > before + usize::from(is_free);
            hang_up(&site, has_given_up);
            let _agent = site.agent();
            eventually("it stands in line again", || (waiting(&site) == 1 || has_given_up()).then_some(()));
            holder.kill();
            if has_given_up() {
                return None;
            }
            let said = waits.read_line();
            if said.is_empty() || free_starts(&site) > before + usize::from(is_free) {
                return None;
            }
            assert_eq!(said, "it runs\n", "{unreachable}");
            assert_eq!(free_starts(&site), before + usize::from(is_free), "{unreachable}");
            assert_eq!((held(&site), waiting(&site)), (vec![(1, waits.pid().into())], 0), "{unreachable}");
            Some(())
        });
    }
}

/// After that it is for who waits what it is for everybody.
#[test]
fn who_waits_for_an_agent_that_does_not_come_back_gets_what_the_policy_says() {
    needs_root!();
    let (_site, agent, _holder, mut refused) = begin("refuse");
    let (site, other_agent, _other_holder, mut started) = begin("start");
    let before = free_starts(&site);
    agent.kill();
    other_agent.kill();
    let outcome = refused.end();
    assert_eq!(outcome.ending, Ending::Status(74), "{outcome:?}");
    assert!(outcome.stderr.contains("not started: the agent cannot be reached at"), "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert_eq!(started.read_line(), "it runs\n");
    assert_eq!(free_starts(&site), before + 1);
}

/// A launch that needs several repositories starts without the agent only if all of them allow that.
#[test]
fn one_repository_that_refuses_is_enough() {
    needs_root!();
    for (first, second, status) in [("start", "start", 0), ("start", "refuse", 74), ("refuse", "start", 74)] {
        let repository = |name: &str, unreachable: &str| {
            format!("[repository.{name}]\nkeeper = \"agent\"\nlimit = 1\nunreachable = \"{unreachable}\"\n")
        };
        let rule = "[[rule]]\ncommands = [\"matlab\"]\nacquire = [\"a\", \"b\"]\n";
        let site = Site::new();
        site.system_policy(&(repository("a", first) + &repository("b", second) + rule));
        // On this host no agent runs.
        site.directory_over_run();
        site.program("matlab");
        let outcome = site.test().args(["run", "--", "matlab"]).outcome();
        assert_eq!(outcome.ending, Ending::Status(status), "{first} {second}: {}", outcome.stderr);
    }
}
