//! One launch may need slots of both keepers, all or none.

use std::{fs, io::Write, os::unix::net::UnixListener};

use nix::sys::signal::Signal;
use rungate::{
    judge::terms::keyword::Hold,
    keeper::agent::{
        frame::Inbox,
        message::{Answer, Granted, Request},
    },
};
use serde_json::Value;

use super::{held, hostility::LONG, waiting, waiting::request};
use crate::support::{Ending, Running, Site, eventually, listing, needs_root};

const POLICY: &str = "
    [repository.seats]
    keeper = \"agent\"
    limit  = 1

    [repository.files]
    limit  = 1

    [[rule]]
    name     = \"both\"
    commands = [\"matlab\"]
    acquire  = [\"files\", \"seats\"]

    [[rule]]
    name     = \"one\"
    commands = [\"other\"]
    acquire  = [\"files\"]

    [[rule]]
    name     = \"another\"
    commands = [\"third\"]
    acquire  = [\"seats\"]
";

fn site() -> (Site, Running) {
    let (site, agent) = Site::with_agent(POLICY);
    for name in ["matlab", "other", "third"] {
        site.program(name);
    }
    (site, agent)
}

#[test]
fn a_launch_takes_slots_of_both_keepers_or_of_none() {
    needs_root!();
    let (site, _agent) = site();
    let running = site.test().args(["run", "--", "matlab"]).spawn();
    assert_eq!((held(&site).len(), site.held_numbers("files.lock")), (2, vec![1]));
    let both = "rungate: matlab: not started: both limits are reached\n...\n";
    site.test().args(["run", "--", "matlab"]).stderr(both).status(75);
    running.kill();
    let _other = site.test().args(["run", "--", "other"]).spawn();
    let one = "rungate: matlab: not started: 1 of 2 limits is reached\n  files  1 of 1 used\n...\n";
    site.test().args(["run", "--", "matlab"]).stderr(one).status(75);
    // What the agent gave went back.
    let _third = site.test().args(["run", "--", "third"]).spawn();
}

/// Then it starts over: whoever waits for one keeper holds nothing of the other.
#[test]
fn whoever_waits_for_a_file_holds_nothing_of_the_agents() {
    needs_root!();
    let (site, _agent) = site();
    let other = site.test().args(["run", "--", "other"]).spawn();
    let mut both = site.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    both.write_line("it runs");
    eventually("it waits for the file", || (waiting(&site) == 1).then_some(()));
    let third = site.test().args(["run", "--", "third"]).spawn();
    other.kill();
    eventually("it waits for the agent", || (waiting(&site) == 1).then_some(()));
    third.kill();
    assert_eq!(both.read_line(), "it runs\n");
    assert_eq!(held(&site).len(), 2);
}

/// A launch that has waited for the agent is no newcomer at a file that another process keeps locked. It
/// waits for the file too, and without the seat, which other launches use meanwhile.
#[test]
fn a_locked_file_costs_no_launch_that_waited_for_the_agent_its_wait() {
    needs_root!();
    let (site, _agent) = site();
    let third = site.test().args(["run", "--", "third"]).spawn();
    let mut both = site.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    both.write_line("it runs");
    eventually("it waits for the agent", || (waiting(&site) == 1).then_some(()));
    let mutex = site.holder("files.lock", ["posix", "write", "0:8"]);
    third.kill();
    // Two, one after the other: a launch that had to try for ten seconds has tried by then.
    let locked = "rungate: other: not started: [..]files.lock stayed locked for [..]\n...\n";
    for _ in 0..2 {
        site.test().args(["run", "--", "other"]).stderr(locked).status(74);
        let third = site.test().args(["run", "--", "third"]).spawn();
        assert_eq!(held(&site).len(), 1, "the other one has no seat");
        third.kill();
    }
    assert!(!both.is_zombie(), "it waits");
    drop(mutex);
    assert_eq!(both.read_line(), "it runs\n");
    assert_eq!((held(&site).len(), site.held_numbers("files.lock")), (2, vec![1]));
}

/// A launch may be stopped while it has its seat and waits for the lock of a file. It then starts nothing by
/// a decision that is older than a second.
#[test]
fn a_launch_that_was_stopped_at_a_file_starts_nothing_by_an_old_policy() {
    needs_root!();
    let (site, _agent) = site();
    let mutex = site.holder("files.lock", ["posix", "write", "0:8"]);
    // It waits for the lock first with the seat, for a second, and then without.
    let mut both = eventually("it is stopped while it has the seat", || {
        let both = site.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
        let waits = || (site.waits_for_lock("files.lock") == Some(both.pid())).then_some(());
        eventually("it waits for the lock", waits);
        both.signal(Signal::SIGSTOP);
        eventually("it is stopped", || (both.state() == 'T').then_some(()));
        (held(&site).len() == 1).then_some(both)
    });
    // Meanwhile another launch has waited for a second.
    let outcome = site.test().args(["run", "--wait", "1s", "--", "other"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(124), "{outcome:?}");
    site.system_policy(&POLICY.replace("[\"files\", \"seats\"]", "[\"seats\"]"));
    drop(mutex);
    both.signal(Signal::SIGCONT);
    both.wait_for_echo();
    assert_eq!((held(&site).len(), site.held_numbers("files.lock")), (1, vec![]));
}

/// A waiter for a file, and whoever has it. It says where it waits each time that it is judged.
fn behind_a_file(site: &Site) -> (Running, Running) {
    let other = site.test().args(["run", "--", "other"]).spawn();
    let said = ["sh", "-c", "exec \"$@\" 2>$DIR/work/said", "sh"];
    let both = site.test().args(["run", "--wait", "forever", "--", "matlab"]).through(said).background();
    site.stands_in_line("files.lock", &both);
    (other, both)
}

/// The turn at the file may come while the agent restarts. The launch then waits for the agent, holds nothing
/// meanwhile, and starts with both slots, whatever the policy says for those who cannot reach it.
#[test]
fn whose_turn_comes_while_the_agent_restarts_waits_for_it() {
    needs_root!();
    for unreachable in ["refuse", "start"] {
        let keys = format!("keeper = \"agent\"\n    unreachable = \"{unreachable}\"");
        let (site, agent) = Site::with_agent(&POLICY.replace("keeper = \"agent\"", &keys));
        for name in ["matlab", "other"] {
            site.program(name);
        }
        let (other, mut both) = behind_a_file(&site);
        agent.kill();
        other.kill();
        eventually("it holds nothing", || {
            let is_free = site.held_numbers("files.lock").is_empty() && site.line("files.lock").is_empty();
            is_free.then_some(())
        });
        let _agent = site.agent();
        both.wait_for_echo();
        assert_eq!((held(&site).len(), site.held_numbers("files.lock")), (2, vec![1]), "{unreachable}");
    }
}

/// A launch whose turn has come at the file asks the agent, and takes nothing before the answer. So the start
/// that does not happen keeps no later launch from starting.
#[test]
fn a_start_that_the_agent_delays_is_not_too_soon_for_others() {
    needs_root!();
    let pause = "[repository.files]\n    limit  = 1\n    if_elapsed = \"1h\"";
    let (site, agent) = Site::with_agent(&POLICY.replace("[repository.files]\n    limit  = 1", pause));
    for name in ["matlab", "other"] {
        site.program(name);
    }
    // It holds the slot, and has never started anything.
    let slot = site.holder("files.lock", ["posix", "write", "8:1"]);
    let wait = |command| site.test().args(["run", "-q", "--wait", "forever", "--", command]).background();
    let mut both = wait("matlab");
    site.stands_in_line("files.lock", &both);
    let mut other = wait("other");
    site.stands_in_line("files.lock", &other);
    agent.signal(Signal::SIGSTOP);
    eventually("the agent answers no more", || (agent.state() == 'T').then_some(()));
    drop(slot);
    other.wait_for_echo();
    assert_eq!(site.held("files.lock").iter().map(|slot| slot.pid).collect::<Vec<_>>(), [other.pid()]);
    agent.signal(Signal::SIGCONT);
    let outcome = both.end();
    assert_eq!(outcome.ending, Ending::Status(69), "the other one has started: {outcome:?}");
}

/// A request at once gives up an agent that does not answer, and may be granted by it nevertheless. The next
/// one says so over its new connection: the launch would wait for its own slot, and be refused.
#[test]
fn a_launch_says_that_it_has_asked_before() {
    needs_root!();
    let (site, agent) = site();
    let slot = site.test().args(["run", "--", "other"]).spawn();
    let both = site.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    site.stands_in_line("files.lock", &both);
    agent.signal(Signal::SIGSTOP);
    eventually("the agent answers no more", || (agent.state() == 'T').then_some(()));
    // Its old connection leads to the agent, and a new one to this test.
    fs::remove_file(site.agent_socket()).expect("the socket");
    let listener = UnixListener::bind(site.agent_socket()).expect("an agent of this test");
    slot.kill();
    let (mut connection, _) = listener.accept().expect("it asks");
    connection.set_read_timeout(Some(LONG)).expect("a time");
    let Request::Take(take) = request(&mut connection, &mut Inbox::default()) else {
        panic!("it asks for something else");
    };
    assert!(take.is_again, "{take:?}");
}

/// The agent may be gone when a launch gives its slots back. The launch then asks it again, which settles
/// what has become of them, before it waits for the file. It starts when both are free.
#[test]
fn slots_that_could_not_be_given_back_are_settled_before_a_launch_waits_for_a_file() {
    needs_root!();
    let (site, agent) = site();
    agent.kill();
    fs::remove_file(site.agent_socket()).expect("the socket");
    let listener = UnixListener::bind(site.agent_socket()).expect("an agent of this test");
    listener.set_nonblocking(true).expect("a listener");
    let other = site.test().args(["run", "--", "other"]).spawn();
    let mut both = site.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    let slots = vec![("seats".to_owned(), "1".to_owned())];
    let (without, hold) = (Vec::new(), Hold::Process);
    let granted = Answer::Granted(Granted { slots, without, hold, has_waited: false, joined: None }).frame();
    // It is granted its slots, and gives them back.
    let serve = |is_again: bool| {
        let (mut connection, _) = eventually("it asks", || listener.accept().ok());
        connection.set_read_timeout(Some(LONG)).expect("a time");
        let mut inbox = Inbox::default();
        let Request::Take(take) = request(&mut connection, &mut inbox) else {
            panic!("it asks for something else");
        };
        assert_eq!((take.is_again, site.line("files.lock")), (is_again, Vec::new()));
        connection.write_all(&granted).expect("it reads");
        assert_eq!(request(&mut connection, &mut inbox), Request::GiveBack(false));
        assert_eq!(site.line("files.lock"), []);
        (connection, inbox)
    };
    drop(serve(false));
    let (mut connection, mut inbox) = serve(true);
    connection.write_all(&Answer::Done(true).frame()).expect("it reads");
    site.stands_in_line("files.lock", &both);
    other.kill();
    assert!(matches!(request(&mut connection, &mut inbox), Request::Take(_)));
    connection.write_all(&Answer::Anew.frame()).expect("it reads");
    connection.write_all(&granted).expect("it reads");
    both.wait_for_echo();
    assert_eq!(site.held_numbers("files.lock"), [1]);
}

/// Another policy asks the agent again. The place in the queue of the file is where it was.
#[test]
fn whoever_waits_for_a_file_keeps_its_place_under_another_policy() {
    needs_root!();
    let (site, _agent) = site();
    let (other, mut both) = behind_a_file(&site);
    let place = site.line("files.lock");
    for judged in 1..=2 {
        eventually("it is judged", || {
            let said = fs::read_to_string(site.path("work/said")).expect("what it says");
            (said.lines().count() == judged).then_some(())
        });
        assert_eq!(site.line("files.lock"), place);
        site.system_policy(&format!("# {judged}\n{POLICY}"));
    }
    other.kill();
    both.wait_for_echo();
    assert_eq!(site.held_numbers("files.lock"), [1]);
}

/// The slot that it then takes is its own: no place that it leaves takes the lock away.
#[test]
fn whoever_waits_for_a_file_keeps_the_slot_that_another_policy_gives() {
    needs_root!();
    let (site, _agent) = site();
    let (_other, mut both) = behind_a_file(&site);
    site.system_policy(
        &POLICY.replace("[repository.files]\n    limit  = 1", "[repository.files]\n    limit  = 2"),
    );
    both.wait_for_echo();
    assert_eq!(site.held_numbers("files.lock"), [1, 2]);
    assert_eq!(site.line("files.lock"), []);
}

/// The place in a queue that no longer counts is left: a supervisor lives as long as its program.
#[test]
fn a_file_that_the_new_policy_does_not_name_is_left() {
    needs_root!();
    let (site, _agent) = site();
    let other = site.test().args(["run", "--", "other"]).spawn();
    let wait = ["run", "-q", "--hold", "supervisor", "--wait", "forever", "--", "matlab"];
    let mut both = site.test().args(wait).background();
    site.stands_in_line("files.lock", &both);
    site.system_policy(&POLICY.replace("[\"files\", \"seats\"]", "[\"seats\"]"));
    both.wait_for_echo();
    assert_eq!(site.line("files.lock"), []);
    drop(other);
}

/// The same for a queue of the agent.
#[test]
fn a_queue_of_the_agent_that_the_new_policy_does_not_name_is_left() {
    needs_root!();
    let (site, _agent) = site();
    let third = site.test().args(["run", "--", "third"]).spawn();
    let wait = ["run", "-q", "--hold", "supervisor", "--wait", "forever", "--", "matlab"];
    let mut both = site.test().args(wait).background();
    eventually("it waits for the agent", || (waiting(&site) == 1).then_some(()));
    site.system_policy(&POLICY.replace("[\"files\", \"seats\"]", "[\"files\"]"));
    both.wait_for_echo();
    eventually("it waits no more", || (waiting(&site) == 0).then_some(()));
    drop(third);
}

/// Whoever waits for the agent, under another policy, blocks nobody in the queue of a file.
#[test]
fn whoever_waits_for_the_agent_meanwhile_blocks_nobody_at_a_file() {
    needs_root!();
    let (site, _agent) = site();
    let (other, mut both) = behind_a_file(&site);
    let third = site.test().args(["run", "--", "third"]).spawn();
    site.system_policy(&format!("# another\n{POLICY}"));
    eventually("it waits for the agent alone", || {
        (site.line("files.lock").is_empty() && waiting(&site) == 1).then_some(())
    });
    other.kill();
    let newcomer = site.test().args(["run", "--", "other"]).spawn();
    third.kill();
    site.stands_in_line("files.lock", &both);
    newcomer.kill();
    both.wait_for_echo();
}

/// Whoever has to start over comes before those who came later.
#[test]
fn whoever_starts_over_has_its_old_number() {
    needs_root!();
    let (site, _agent) = site();
    let (other, mut both) = behind_a_file(&site);
    let third = site.test().args(["run", "--", "third"]).spawn();
    other.kill();
    eventually("it has the file no more, and waits for the agent", || {
        (site.line("files.lock").is_empty() && waiting(&site) == 1).then_some(())
    });
    let newcomer = site.test().args(["run", "--", "other"]).spawn();
    let later = site.test().args(["run", "-q", "--wait", "forever", "--", "other"]).background();
    site.stands_in_line("files.lock", &later);
    third.kill();
    site.stands_in_line("files.lock", &both);
    let line: Vec<i32> = site.line("files.lock").iter().map(|waiter| waiter.pid).collect();
    assert_eq!(line, [both.pid(), later.pid()]);
    newcomer.kill();
    both.wait_for_echo();
}

/// It keeps its place at the agent, too, when it is judged again there.
#[test]
fn whoever_waits_for_the_agent_after_a_file_keeps_its_place_there() {
    needs_root!();
    let (site, _agent) = site();
    let (other, mut both) = behind_a_file(&site);
    let third = site.test().args(["run", "--", "third"]).spawn();
    other.kill();
    let waits_alone = || (site.line("files.lock").is_empty() && waiting(&site) == 1).then_some(());
    eventually("it has the file no more, and waits for the agent", waits_alone);
    let later = site.test().args(["run", "-q", "--wait", "forever", "--", "third"]).background();
    eventually("another one waits behind it", || (waiting(&site) == 2).then_some(()));
    let said = || fs::read_to_string(site.path("work/said")).expect("what it says").lines().count();
    let before = said();
    site.system_policy(&format!("# another\n{POLICY}"));
    eventually("it is judged again", || (said() > before).then_some(()));
    third.kill();
    both.wait_for_echo();
    drop(later);
}

/// Whether a launch is in the queue of the file, and in that of the agent, and in how many tables it has
/// slots. It leaves the one before it joins the other, so it is in both only if it keeps its turn.
fn state(site: &Site, launch: &Running) -> (bool, bool, usize) {
    let listed = listing(&site.test());
    let is_it = |of: &Value| of["pid"] == i64::from(launch.pid());
    let has = |one: &Value, key: &str| one[key].as_array().into_iter().flatten().any(is_it);
    let waits_at_agent = listed.iter().any(|one| one["repository"] == "seats" && has(one, "waiting"));
    let waits_at_file = site.line("files.lock").iter().any(|waiter| waiter.pid == launch.pid());
    (waits_at_file, waits_at_agent, listed.iter().filter(|one| has(one, "holders")).count())
}

/// A launch that needs both is not overtaken for ever, also if others always wait for each of both, and
/// neither is ever free when its turn comes at the other. After eight moves it keeps its turn at the file,
/// and it has its number at the agent again.
#[test]
fn whoever_needs_both_is_not_overtaken_for_ever() {
    needs_root!();
    let (site, _agent) = site();
    let wait = |command| site.test().args(["run", "-q", "--wait", "forever", "--", command]).background();
    let is_in = |launch: &Running, expected| {
        let what = format!("process {} waits and runs like {expected:?}", launch.pid());
        eventually(&what, || (state(&site, launch) == expected).then_some(()));
    };
    let (at_file, at_agent, runs) = ((true, false, 0), (false, true, 0), (false, false, 1));
    let mut file = wait("other");
    is_in(&file, runs);
    let mut seat = wait("third");
    is_in(&seat, runs);
    let mut both = wait("matlab");
    is_in(&both, at_agent);
    let mut starts = 0;
    let next_seat = 'starts: loop {
        // It has the seat, finds the file in use, and gives the seat back to the next one.
        let mut next_seat = wait("third");
        is_in(&next_seat, at_agent);
        seat.kill();
        is_in(&both, at_file);
        is_in(&next_seat, runs);
        seat = next_seat;
        starts += 1;
        loop {
            // Its turn comes at the file, while the seat is in use, and one more launch waits for that.
            let next_file = wait("other");
            is_in(&next_file, at_file);
            next_seat = wait("third");
            is_in(&next_seat, at_agent);
            file.kill();
            let is_kept = eventually("it waits for the agent", || match state(&site, &both) {
                (is_kept, true, 0) => Some(is_kept),
                _ => None,
            });
            if !is_kept {
                is_in(&next_file, runs);
                (file, starts) = (next_file, starts + 1);
                assert!(starts < 60, "others have started all the time");
                // The one before it at the agent.
                seat.kill();
                is_in(&next_seat, runs);
                (seat, starts) = (next_seat, starts + 1);
                break;
            }
            // It has its turn at the file, and comes first at the agent, unless it was too long.
            seat.kill();
            let has_started = eventually("it starts, or has lost its turn", || {
                match (state(&site, &both), state(&site, &next_seat)) {
                    ((false, false, 2), _) => Some(true),
                    ((true, false, 0), (false, false, 1)) => Some(false),
                    _ => None,
                }
            });
            if has_started {
                assert_eq!((state(&site, &next_file), state(&site, &next_seat)), (at_file, at_agent));
                break 'starts next_seat;
            }
            (file, seat, starts) = (next_file, next_seat, starts + 2);
        }
    };
    both.wait_for_echo();
    assert_eq!((held(&site).len(), site.held_numbers("files.lock")), (2, vec![1]));
    drop(next_seat);
}
