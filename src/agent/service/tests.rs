//! When the agent sleeps, and for how long.

use std::os::unix::net::UnixStream;

use tempfile::TempDir;

use super::*;
use crate::{
    agent::{
        Blocked, Caller, Load,
        tests::{HOUR, needs},
    },
    keeper::agent::message::Refused,
    launch::SystemNames,
};

/// An agent, and its directories: of its state, and of its socket.
fn service() -> (Service, [TempDir; 2]) {
    let [state, run] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let listener = Listener::at(&run.path().join("socket")).expect("a free path");
    let service = Service::new(listener, state.path(), &AgentFile::default(), &SystemNames);
    (service.expect("an agent"), [state, run])
}

/// A launch waits in a queue until this moment.
fn waits_until(service: &mut Service, number: u64, next: Instant) {
    let sessions = &mut service.local.sessions;
    sessions.insert(number, Session::new(Caller::default()));
    let refused = Refused { obstacles: Vec::new(), tables: Vec::new(), has_waited: false };
    let blocked = Blocked { refused, waits: true, ahead: 0, next: Some(next), evictions: Vec::new() };
    let session = sessions.get_mut(&number).expect("it is connected");
    session.on(Event::Blocked(needs(Vec::new()), blocked, true, true));
    while sessions.next_change().is_some() {}
}

/// The agent sleeps until the first thing is due, and no longer than a second while a launch waits. With
/// pending work it does not sleep.
#[test]
fn the_agent_sleeps_until_the_first_thing_is_due() {
    let (mut service, [_state, run]) = service();
    assert_eq!(service.longest_wait(), None, "there is nothing to do");
    let now = Instant::now();
    for (number, hours) in [(1, 2), (2, 1), (3, 3)] {
        waits_until(&mut service, number, now + HOUR * hours);
    }
    let longest = service.longest_wait().expect("something is due");
    assert!(longest <= HOUR && longest > HOUR / 2);
    let _client = UnixStream::connect(run.path().join("socket")).expect("it listens");
    assert!(matches!(service.local.connections.on_accept(9), Accepted::Caller(_)));
    let waits = Load { places: 1, ..Load::default() };
    assert!(service.local.connections.set_load(9, waits).is_ok());
    assert_eq!(service.longest_wait(), Some(LONGEST_WAIT));
    service.local.work.look_again([1]);
    assert_eq!(service.longest_wait(), Some(Duration::ZERO));
}

/// An agent that did not run for much longer than it wanted to wait has stood still. It says so once.
/// An agent with nothing to wait for may sleep for any time.
#[test]
fn a_standstill_is_a_longer_gap_than_the_agent_wanted() {
    let seconds = Duration::from_secs;
    let since = |ago| StallDetector(Instant::now().checked_sub(seconds(ago)).expect("a moment"));
    let mut stalls = since(10_000);
    assert!(stalls.check_stall(Some(seconds(5000))));
    assert!(!stalls.check_stall(Some(seconds(5000))), "it ran since");
    assert!(!since(10_000).check_stall(Some(seconds(20_000))));
    assert!(!since(10_000).check_stall(None));
}
