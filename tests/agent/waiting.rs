//! Waiting is a line in memory: first come, first served, and nobody is passed over who answers.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::Signal;
use rungate::{
    judge::terms::keyword::Hold,
    keeper::agent::{
        frame::{Inbox, LONGEST_REQUEST},
        message::{
            Answer, EvictionOutcome, Expired, Granted, Holder, Obstacle, Reason, Refused, Request, WaitState,
        },
    },
};

use super::hostility::LONG;
use super::{REFUSED, held, seats, waiter, waiting};
use crate::support::{Ending, Running, Site, answered, eventually, needs_root, read_some};

/// The slot goes to whoever came first, at once.
#[test]
fn those_who_wait_are_served_in_their_order() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let mut holder = site.test().args(["run", "--", "matlab"]).spawn();
    let waiters: Vec<Running> = (1..=5).map(|place| waiter(&site, "games", place)).collect();
    // A newcomer that does not wait overtakes nobody.
    site.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
    for (index, mut next) in waiters.into_iter().enumerate() {
        holder.kill();
        assert_eq!(next.read_line(), "it runs\n");
        assert_eq!((held(&site), waiting(&site)), (vec![(1, next.pid().into())], 4 - index));
        holder = next;
    }
}

/// A killed waiter leaves the line by dying, and one that is stopped is passed over and keeps its place.
#[test]
fn who_is_killed_leaves_and_who_is_stopped_keeps_its_place() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let killed = waiter(&site, "games", 1);
    let mut stopped = waiter(&site, "nobody", 2);
    let mut next = waiter(&site, "games", 3);
    let mut last = waiter(&site, "games", 4);
    killed.kill();
    stopped.signal(Signal::SIGSTOP);
    eventually("it is stopped", || (stopped.state() == 'T').then_some(()));
    holder.kill();
    assert_eq!(next.read_line(), "it runs\n");
    stopped.signal(Signal::SIGCONT);
    eventually("it is continued", || (stopped.state() != 'T').then_some(()));
    // It beats within a second, and when it has the answer it is the first again.
    let before = sleeps(&stopped);
    eventually("it has beaten twice", || (sleeps(&stopped) >= before + 4).then_some(()));
    next.kill();
    assert_eq!(stopped.read_line(), "it runs\n");
    stopped.kill();
    assert_eq!(last.read_line(), "it runs\n");
    let places = || std::fs::read_dir(site.agent_state().join("places")).expect("the places").count();
    eventually("nobody has a place", || (places() == 0).then_some(()));
}

/// How often it has gone to sleep: for each beat once until the answer is there, and once until the next
/// beat.
#[track_caller]
pub(super) fn sleeps(running: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).expect("it is there");
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).expect("a number")
}

/// "A deadline is kept": 124, and nothing is left behind.
#[test]
fn the_time_runs_out() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    // Also where it is over before the agent has heard of it.
    for time in ["1s", "1ms"] {
        site.test().user("games").args(["run", "-q", "--wait", time, "--", "matlab"]).status(124);
    }
    eventually("nobody stands in line", || (waiting(&site) == 0).then_some(()));
}

/// A limit that is raised is seen by those who wait, in the order of the line.
#[test]
fn a_policy_that_changes_is_seen_from_the_head_of_the_line() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut first = waiter(&site, "games", 1);
    let mut second = waiter(&site, "nobody", 2);
    let policy = std::fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &policy.replace("limit = 1", "limit = 3"));
    assert_eq!((first.read_line(), second.read_line()), ("it runs\n".to_owned(), "it runs\n".to_owned()));
    let slots: Vec<i64> = held(&site).into_iter().map(|(_, pid)| pid).collect();
    assert_eq!(slots[1..], [i64::from(first.pid()), second.pid().into()], "the first has the lower slot");
}

/// A launch that waits for so long and has asked an agent of this test, and their connection.
fn asks(site: &Site, agent: Running, wait: &str) -> (Running, UnixStream, Inbox) {
    agent.kill();
    std::fs::remove_file(site.agent_socket()).expect("the socket of an agent that is gone");
    let listener = UnixListener::bind(site.agent_socket()).expect("an agent of this test");
    let launch = site.test().args(["run", "--wait", wait, "--", "matlab"]).background();
    let (mut connection, _) = listener.accept().expect("it asks");
    connection.set_read_timeout(Some(LONG)).expect("a time");
    let mut inbox = Inbox::default();
    assert!(matches!(request(&mut connection, &mut inbox), Request::Take(_)));
    (launch, connection, inbox)
}

/// What an agent says to a launch that finds the seats full.
fn full() -> Refused {
    let obstacle =
        Obstacle { table: "seats".to_owned(), reason: Reason::Full, unwaited: None, outside: None };
    Refused { obstacles: vec![obstacle], tables: Vec::new(), has_waited: true }
}

/// A launch whose time is over says so once. If the agent does not answer within five seconds, it ends.
#[test]
fn who_leaves_the_queue_waits_for_no_silent_agent() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let (mut launch, mut connection, mut inbox) = asks(&site, agent, "1s");
    let said = Answer::Waits(WaitState { refused: full(), ahead: 0 }).frame();
    connection.write_all(&said).expect("it listens");
    assert!(matches!(request(&mut connection, &mut inbox), Request::Leave));
    assert_eq!(
        read_some(&mut connection, &mut [0; 64]).expect("it closes the connection"),
        0,
        "it says more"
    );
    let outcome = launch.end();
    assert_eq!(outcome.ending, Ending::Status(74), "{outcome:?}");
    assert!(outcome.stderr.contains(" has not answered for 5 s\n"), "{outcome:?}");
}

/// If the agent refuses because of a repository that the launch does not need, the message says so.
#[test]
fn a_refusal_because_of_something_else_is_told() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let (mut launch, mut connection, _) = asks(&site, agent, "1m");
    let mut refused = full();
    "others".clone_into(&mut refused.obstacles[0].table);
    connection.write_all(&Answer::Refused(refused).frame()).expect("it listens");
    let outcome = launch.end();
    assert!(outcome.stderr.contains("there is no room in others"), "{outcome:?}");
    assert_ne!(outcome.ending, Ending::Status(0), "{outcome:?}");
}

/// A launch that asks again, because the policy has changed, while it is given a slot for its question of
/// before: the agent takes that slot back, and so it is not started with. A holder that was ended for
/// the question of before is reported. While holders are ended for it, the launch shows that it is alive.
#[test]
fn what_was_given_for_an_earlier_question_starts_nothing() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let (mut launch, mut connection, mut inbox) = asks(&site, agent, "forever");
    connection.write_all(&Answer::Ends(full()).frame()).expect("it listens");
    assert!(matches!(request(&mut connection, &mut inbox), Request::Beat));
    let policy = std::fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &policy.replace("limit = 1", "limit = 2"));
    let slots = vec![("seats".to_owned(), "1".to_owned())];
    let granted = Granted { slots, without: Vec::new(), hold: Hold::Process, has_waited: true, joined: None };
    let mut said = Answer::Waits(WaitState { refused: full(), ahead: 0 }).frame();
    said.extend(Answer::Granted(granted).frame());
    connection.write_all(&said).expect("it listens");
    assert!(matches!(request(&mut connection, &mut inbox), Request::Take(_)));
    let holder = Holder {
        slots: (1, 1),
        pid: 7,
        uid: 0,
        host: "lab".to_owned(),
        since: SystemTime::now(),
        taken: None,
        hold: Hold::Process,
        command: "matlab".to_owned(),
        rule: "seats".to_owned(),
        lingers_until: None,
    };
    let (table, fate) = ("seats".to_owned(), EvictionOutcome::HadLeft);
    let expired = Expired { table, holder, slots: 1, by: None, is_elsewhere: false, fate };
    let mut said = Answer::Expired(expired).frame();
    said.extend(Answer::Anew.frame());
    said.extend(Answer::Failed("it is only a test".to_owned()).frame());
    connection.write_all(&said).expect("it listens");
    let outcome = launch.end();
    assert_eq!(outcome.ending, Ending::Status(74), "{outcome:?}");
    assert!(outcome.stderr.contains("seats: PID 7 (matlab) had already exited\n"), "{outcome:?}");
}

/// What a launch says next.
#[track_caller]
pub(super) fn request(connection: &mut UnixStream, inbox: &mut Inbox) -> Request {
    loop {
        if let Some(request) = inbox.request(LONGEST_REQUEST).expect("a message") {
            return request;
        }
        let mut bytes = [0; 1024];
        let count = read_some(connection, &mut bytes).expect("it says something in time");
        assert!(count > 0, "it closed the connection");
        inbox.add(&bytes[..count]);
    }
}

/// A repository is waited for no longer than `max_wait`, also where the command line would wait longer.
#[test]
fn a_claim_of_the_agents_says_how_long_it_is_waited_for() {
    needs_root!();
    let (site, _agent) = seats(1, "max_wait = \"0s\"");
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    site.test().args(["run", "--wait", "forever", "--", "matlab"]).stderr(REFUSED).status(75);
    let (site, _agent) = seats(1, "max_wait = \"1s\"");
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    site.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).status(124);
}

/// Who is passed keeps nothing for itself: what is free then is free for everybody.
#[test]
fn nothing_is_kept_for_a_head_of_the_queue_that_is_stopped() {
    needs_root!();
    let (site, _agent) = seats(2, "");
    let policy = std::fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    let rule = "[[rule]]\nname = \"two\"\ncommands = [\"other\"]\nacquire = [{ repository = \"seats\", slots = 2 }]\n";
    site.system_policy(&format!("{}\n{rule}", policy.replace("\"matlab\", \"other\"", "\"matlab\"")));
    site.program("other");
    let holders = [(); 2].map(|()| site.test().args(["run", "--", "matlab"]).spawn());
    let head = site.test().args(["run", "-q", "--wait", "forever", "--", "other"]).background();
    eventually("it waits", || (waiting(&site) == 1).then_some(()));
    let [first, _second] = holders;
    let seen = || {
        let status = answered(&site.test().args(["status", "--json"]));
        (status[0]["used"].clone(), status[0]["free"].clone(), status[0]["kept_for_queue"].clone())
    };
    let is = |used: u64, free: u64, kept: u64| (used.into(), free.into(), kept.into());
    head.signal(Signal::SIGSTOP);
    drop(first);
    eventually("it is free for everybody", || (seen() == is(1, 1, 0)).then_some(()));
    site.test().args(["run", "-n", "-q", "--", "matlab"]).status(0);
    head.signal(Signal::SIGCONT);
    eventually("it is kept", || (seen() == is(1, 0, 1)).then_some(()));
}

/// A head that stops when nothing else happens is passed too: who comes, or waits already, has what is free.
#[test]
fn who_waits_behind_a_head_that_stops_has_what_is_free() {
    needs_root!();
    let (site, _agent) = seats(2, "");
    let policy = std::fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    let rule = "[[rule]]\nname = \"two\"\ncommands = [\"other\"]\nacquire = [{ repository = \"seats\", slots = 2 }]\n";
    site.system_policy(&format!("{}\n{rule}", policy.replace("\"matlab\", \"other\"", "\"matlab\"")));
    site.program("other");
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let head = site.test().args(["run", "-q", "--wait", "forever", "--", "other"]).background();
    eventually("it waits", || (waiting(&site) == 1).then_some(()));
    let mut second = waiter(&site, "games", 2);
    head.signal(Signal::SIGSTOP);
    assert_eq!(second.read_line(), "it runs\n");
    second.signal(Signal::SIGKILL);
    eventually("it is free again", || (held(&site).len() == 1).then_some(()));
    eventually("a newcomer passes it", || {
        let outcome = site.test().args(["run", "-n", "-q", "--", "matlab"]).outcome();
        (outcome.ending == Ending::Status(0)).then_some(())
    });
}

/// Nobody loses their place over a policy that is being edited, nor to a slot that becomes free meanwhile:
/// who comes when it is in order again starts last.
#[test]
fn who_waits_keeps_the_place_while_the_policy_has_a_fault() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let path = site.path("etc/rungate/policy.toml");
    let policy = std::fs::read_to_string(&path).expect("the policy");
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let launch = |user: &str| {
        let words = ["run", "-q", "--wait", "forever", "--", "matlab"];
        let mut launch = site.test().user(user).args(words).background();
        launch.write_line(user);
        launch
    };
    let mut first = launch("games");
    eventually("one waits", || (waiting(&site) == 1).then_some(()));
    let mut second = launch("backup");
    eventually("two wait", || (waiting(&site) == 2).then_some(()));
    site.system_policy(&format!("{policy}\n[repository.seats]\n"));
    eventually("newcomers hear of the fault", || {
        (site.test().args(["run", "--", "matlab"]).outcome().ending == Ending::Status(78)).then_some(())
    });
    // By now they would be judged again before they get anything; and then it is longer than an agent waits
    // for a sign of life.
    let begun = Instant::now();
    eventually("the fault lasts", || (begun.elapsed() > Duration::from_secs(2)).then_some(()));
    drop(holder);
    eventually("the fault lasts", || (begun.elapsed() > Duration::from_secs(7)).then_some(()));
    assert!(!first.is_zombie() && !second.is_zombie(), "{:?} {:?}", first.end(), second.end());
    site.system_policy(&policy);
    let mut third = launch("nobody");
    for (launch, user) in [(&mut first, "games"), (&mut second, "backup"), (&mut third, "nobody")] {
        assert_eq!(launch.read_line(), format!("{user}\n"));
        launch.signal(Signal::SIGKILL);
    }
}

/// A launch of a user whose own policy has a fault leaves the queue, so that others start. It waits again
/// when the fault is gone.
#[test]
fn who_has_a_fault_of_their_own_leaves_the_queue() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let games = site.user("games");
    site.own_policy(&games, "version = 1\n");
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut first = waiter(&site, "games", 1);
    let mut second = waiter(&site, "backup", 2);
    site.own_policy(&games, "version = 1\nnonsense\n");
    eventually("the first has left", || (waiting(&site) == 1).then_some(()));
    holder.kill();
    assert_eq!(second.read_line(), "it runs\n");
    site.own_policy(&games, "version = 1\n");
    eventually("the first waits again", || (waiting(&site) == 1).then_some(()));
    second.kill();
    assert_eq!(first.read_line(), "it runs\n");
}

/// A launch whose agent is gone before it has answered asks the next one, and says that it asks again.
#[test]
fn a_request_that_was_lost_is_repeated() {
    needs_root!();
    let (site, agent) = seats(1, "");
    agent.kill();
    std::fs::remove_file(site.agent_socket()).expect("the socket of an agent that is gone");
    let listener = UnixListener::bind(site.agent_socket()).expect("an agent of this test");
    listener.set_nonblocking(true).expect("a listener");
    let mut launch = site.test().args(["run", "--", "matlab"]).background();
    for is_again in [false, true] {
        let (mut connection, _) = eventually("it asks", || listener.accept().ok());
        connection.set_read_timeout(Some(LONG)).expect("a time");
        let asked = request(&mut connection, &mut Inbox::default());
        assert!(matches!(asked, Request::Take(take) if take.is_again == is_again));
        if is_again {
            let failed = Answer::Failed("it is only a test".to_owned());
            connection.write_all(&failed.frame()).expect("it listens");
            assert_eq!(launch.end().ending, Ending::Status(74));
        }
    }
}

/// An agent that closes every connection is gone, for a launch that does not wait and beyond the time of one
/// that does. It is gone also if it says before that the launch waits.
#[test]
fn an_agent_that_closes_every_connection_is_gone() {
    needs_root!();
    let waits = Answer::Waits(WaitState { refused: full(), ahead: 0 }).frame();
    for (wait, said) in [("0s", &[][..]), ("1s", &[][..]), ("1s", &waits[..])] {
        let (site, agent) = seats(1, "");
        agent.kill();
        std::fs::remove_file(site.agent_socket()).expect("the socket of an agent that is gone");
        let listener = UnixListener::bind(site.agent_socket()).expect("an agent of this test");
        listener.set_nonblocking(true).expect("a listener");
        let mut launch = site.test().args(["run", "--wait", wait, "--", "matlab"]).background();
        let mut asked = 0;
        eventually("it asks no more", || {
            if let Ok((mut connection, _)) = listener.accept() {
                connection.set_read_timeout(Some(LONG)).expect("a time");
                assert!(matches!(request(&mut connection, &mut Inbox::default()), Request::Take(_)));
                connection.write_all(said).expect("it listens");
                asked += 1;
            }
            launch.is_zombie().then_some(())
        });
        let outcome = launch.end();
        assert_eq!(outcome.ending, Ending::Status(74), "{wait}: {outcome:?}");
        assert!(outcome.stderr.contains(" closed the connection\n"), "{wait}: {outcome:?}");
        assert!(asked > 1, "{wait}: it asked once");
    }
}

/// `-w` counts once, from the beginning, however often the launch is judged again or calls another agent.
#[test]
fn the_time_of_a_launch_counts_once() {
    const TIME: Duration = Duration::from_secs(8);
    needs_root!();
    let edits = |site: &Site, agent: Running| {
        let path = site.path("etc/rungate/policy.toml");
        let policy = std::fs::read_to_string(path).expect("the policy");
        site.system_file("policy.toml", &format!("# edited\n{policy}"));
        agent
    };
    let restarts = |site: &Site, agent: Running| {
        agent.kill();
        site.agent()
    };
    for change in [&edits as &dyn Fn(&Site, Running) -> Running, &restarts] {
        let (site, agent) = seats(1, "");
        let _holder = site.test().args(["run", "--", "matlab"]).spawn();
        let begun = Instant::now();
        let mut waits = site.test().args(["run", "-q", "-w", "8s", "--", "matlab"]).background();
        eventually("it stands in line", || (waiting(&site) == 1).then_some(()));
        eventually("half of its time has passed", || (begun.elapsed() > TIME / 2).then_some(()));
        let _agent = change(&site, agent);
        assert_eq!(waits.end().ending, Ending::Status(124));
        assert!(begun.elapsed() >= TIME, "it was refused after {:?}", begun.elapsed());
    }
}
