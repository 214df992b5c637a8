//! Clients and their messages: what is read and written, when, and what counts for a user.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
};

use tempfile::TempDir;

use super::*;
use crate::{policy::AgentLimits, sys::own_pid};

/// A client with the number 1, which does not wait for answers, and the directory of the socket.
fn connected() -> (Connections, UnixStream, TempDir) {
    connected_within(AgentLimits::default())
}

/// The same with these quotas.
fn connected_within(limits: AgentLimits) -> (Connections, UnixStream, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let listener = Listener::at(&path).expect("a free path");
    let poller = Rc::new(Poller::new().expect("a poller"));
    let quotas = Quotas::new(limits, 1000);
    let mut connections = Connections::new(poller, listener, quotas).expect("a thread");
    let client = UnixStream::connect(&path).expect("it listens");
    client.set_nonblocking(true).expect("a socket");
    assert!(matches!(connections.on_accept(1), Accepted::Caller(_)));
    (connections, client, directory)
}

/// The client is this user, and it is known who it is.
fn is_of(connections: &mut Connections, uid: u32) -> &mut Connection {
    let connection = connections.all.get_mut(&1).expect("it is connected");
    // An older kernel cannot say that by itself.
    connection.socket.ask_for_senders(false).expect("a socket");
    connection.outbox.clear();
    (connection.peer.uid, connection.peer.challenge) = (uid, None);
    connection
}

fn send(client: &mut UnixStream, request: &Request) {
    client.write_all(&request.frame().expect("it is short")).expect("it is open");
}

/// A client that has closed its connection is heard out when all that it sent was read and processed.
#[test]
fn a_client_is_heard_out_when_everything_was_processed() {
    let (mut connections, mut client, _directory) = connected();
    is_of(&mut connections, 1000);
    assert!(!connections.is_heard_out(1), "it may say something");
    send(&mut client, &Request::Started);
    drop(client);
    assert!(connections.on_readable(1).is_ok());
    assert!(!connections.is_heard_out(1), "it is read, and not processed");
    assert!(matches!(connections.request(1), Ok(Some(Request::Started))));
    assert!(connections.is_heard_out(1));
    connections.disconnect(1);
    assert!(!connections.is_heard_out(1), "nothing is known of it");
}

/// A request is processed when the one before has its answer. Meanwhile the connection is not read.
#[test]
fn a_request_waits_for_the_answer_to_the_one_before() {
    let (mut connections, mut client, _directory) = connected();
    is_of(&mut connections, 1000);
    send(&mut client, &Request::Beat);
    send(&mut client, &Request::Leave);
    assert!(connections.on_readable(1).is_ok());
    assert!(matches!(connections.request(1), Ok(Some(Request::Beat))));
    let mut is_next = |is_busy| {
        let within = connections.set_load(1, Load { is_busy, ..Load::default() });
        assert!(within.is_ok() && connections.flush().is_empty());
        let request = connections.request(1);
        (connections.next_speaker(), matches!(request, Ok(Some(Request::Leave))))
    };
    assert_eq!(is_next(true), (None, false));
    assert_eq!(is_next(false), (Some(1), true));
}

/// A client hears why its connection is closed.
#[test]
fn a_client_is_told_why_its_connection_is_closed() {
    for (over, words) in [
        (Over::Stranger, "is not the one that connected"),
        (Over::Garbage(Garbage::TooLong), "at most 262144 bytes"),
        (Over::Garbage(Garbage::OtherVersion(9)), "version 9 of the protocol"),
        (Over::Garbage(Garbage::Senseless), "the request is invalid"),
    ] {
        let (mut connections, mut client, _directory) = connected();
        is_of(&mut connections, 1000);
        connections.say_why(1, &over);
        assert!(connections.flush().is_empty());
        let (mut inbox, mut bytes) = (Inbox::default(), [0; 4096]);
        let count = client.read(&mut bytes).expect("an answer");
        inbox.add(&bytes[..count]);
        let Ok(Some(Answer::Failed(why))) = inbox.answer() else { panic!("it failed") };
        assert!(why.contains(words), "{why}");
    }
}

/// A user who sends much without waiting for answers is cut off at once, before others are short of
/// memory.
#[test]
fn a_user_who_sends_too_much_is_cut_off_at_once() {
    for (length, is_connected) in [(1600, true), (1601, false)] {
        let limits = AgentLimits { message: 100, ..AgentLimits::default() };
        let (mut connections, mut client, _directory) = connected_within(limits);
        is_of(&mut connections, 1000);
        client.write_all(&vec![0; length]).expect("it is open");
        assert_eq!(connections.on_readable(1).is_ok(), is_connected);
        assert_eq!(connections.work().connections, u64::from(is_connected));
    }
}

/// A user who sends many messages at once is not read for a while. Root is.
#[test]
fn a_client_that_is_too_fast_has_to_pause() {
    const MANY: usize = 200;
    for (uid, is_paused) in [(1000, true), (0, false)] {
        let limits = AgentLimits { rate: 1, ..AgentLimits::default() };
        let (mut connections, mut client, _directory) = connected_within(limits);
        is_of(&mut connections, uid);
        for _ in 0..MANY {
            send(&mut client, &Request::Beat);
        }
        assert!(connections.on_readable(1).is_ok());
        let mut count = 0;
        while matches!(connections.request(1), Ok(Some(Request::Beat))) {
            count += 1;
        }
        assert!(connections.flush().is_empty());
        assert!(if is_paused { (51..MANY).contains(&count) } else { count == MANY }, "{count}");
        assert_eq!(connections.hear_again().is_some(), is_paused);
        let interest = if is_paused { Interest::End } else { Interest::Read };
        assert!(connections.all.get(&1).is_some_and(|one| one.interest == interest));
    }
}

/// A connection counts for its user with its descriptors, its input and its output, and with what its
/// session has.
#[test]
fn a_connection_counts_with_all_that_it_has() {
    let (mut connections, mut client, _directory) = connected();
    let descriptors = 1 + usize::from(is_of(&mut connections, 1000).peer.process.is_some());
    let counted = |connections: &Connections| connections.all.get(&1).map(|one| one.counted);
    let least = Share { connections: 1, descriptors, ..Share::default() };
    assert!(connections.flush().is_empty());
    assert_eq!(counted(&connections), Some(least));
    send(&mut client, &Request::Beat);
    assert!(connections.on_readable(1).is_ok());
    let bytes = Request::Beat.frame().expect("it is short").len();
    assert_eq!(counted(&connections), Some(Share { bytes, ..least }));
    assert!(connections.request(1).is_ok());
    connections.answer(1, &Answer::Done(true), None);
    assert!(connections.set_load(1, Load { places: 2, question: 30, is_busy: true }).is_ok());
    let (owed, places, question) = (Answer::Done(true).frame().len(), 2, 30);
    assert_eq!(counted(&connections), Some(Share { places, owed, question, ..least }));
    assert!(connections.flush().is_empty());
    assert_eq!(counted(&connections), Some(Share { places, question, ..least }));
    connections.disconnect(1);
    assert!(!connections.somebody_waits());
}

/// A descriptor is sent once, with its answer.
#[test]
fn a_descriptor_is_sent_with_its_answer() {
    let (mut connections, _client, directory) = connected();
    let path = directory.path().join("socket");
    let client = local_socket::Connection::to(&path, Duration::from_secs(5)).expect("it listens");
    assert!(matches!(connections.on_accept(2), Accepted::Caller(_)));
    for has_one in [true, false] {
        let own = has_one.then(|| io::stderr().as_fd().try_clone_to_owned().expect("a descriptor"));
        connections.answer(2, &Answer::Done(true), own);
        connections.answer(2, &Answer::Done(false), None);
        assert!(connections.flush().is_empty());
        let (count, descriptor) = client.receive(&mut [0; 4096]).expect("an answer");
        assert_eq!((count > 0, descriptor.is_some()), (true, has_one));
    }
}

/// While the agent has no free descriptor, clients wait. They are accepted when a connection is closed, or
/// after a while.
#[test]
fn clients_wait_while_no_descriptor_is_free() {
    for (has_gone, has_passed, is_accepted) in
        [(true, false, true), (false, true, true), (false, false, false)]
    {
        let (mut connections, _client, directory) = connected();
        let _other = UnixStream::connect(directory.path().join("socket")).expect("it listens");
        let hears = |connections: &Connections| {
            connections.poller.wait(Some(Duration::ZERO)).expect("a poller").contains(&LISTENER)
        };
        assert!(hears(&connections));
        connections.spare.clear();
        connections.let_wait();
        assert!(!hears(&connections) && connections.somebody_waits());
        assert!(matches!(connections.on_accept(2), Accepted::Nobody));
        let now = Instant::now();
        connections.full =
            if has_passed { now.checked_sub(2 * LONGEST_WAIT) } else { Some(now + 3600 * LONGEST_WAIT) };
        if has_gone {
            connections.disconnect(1);
        } else {
            connections.accept_again(false);
        }
        assert_eq!((hears(&connections), connections.somebody_waits()), (is_accepted, !is_accepted));
        assert_eq!(connections.spare.len(), if is_accepted { TO_IDENTIFY } else { 0 });
        assert_eq!(matches!(connections.on_accept(2), Accepted::Caller(_)), is_accepted);
    }
}

/// What a client has sent is unread until it is processed: in its socket, and when it was received.
#[test]
fn input_is_unread_until_it_is_processed() {
    let (mut connections, mut client, _directory) = connected();
    assert!(!connections.is_unheard(1), "it has sent nothing");
    client.write_all(&Request::Beat.frame().expect("it is short")).expect("it is open");
    assert!(connections.is_unheard(1));
    assert!(connections.on_readable(1).is_ok());
    assert!(connections.is_unheard(1), "the message is not processed yet");
    assert!(!connections.is_unheard(2), "there is no such client");
}

/// An answer is sent immediately, also if the client has sent nothing since its last one. A client that
/// has closed the connection is named.
#[test]
fn an_answer_is_sent_immediately() {
    let (mut connections, mut client, _directory) = connected();
    assert!(connections.flush().is_empty());
    // On an older kernel it is asked who it is.
    let _ = client.read(&mut [0; 256]);
    let answer = Answer::Done(true);
    connections.answer(1, &answer, None);
    assert!(connections.flush().is_empty());
    let mut bytes = vec![0; answer.frame().len()];
    client.read_exact(&mut bytes).expect("it is sent");
    assert_eq!(bytes, answer.frame());
    // A child that another test starts at this moment has a copy of the descriptor until it executes.
    client.shutdown(Shutdown::Both).expect("it is connected");
    connections.answer(1, &answer, None);
    assert_eq!(connections.flush(), [1]);
}

/// Answers for which the socket has no room are sent as soon as the client has read those before.
#[test]
fn answers_go_on_when_the_client_has_read() {
    let (mut connections, mut client, _directory) = connected();
    let answer = Answer::Failed("x".repeat(ROOM));
    let mut left = 0;
    while !connections.all.get(&1).is_some_and(Connection::has_to_write) {
        connections.answer(1, &answer, None);
        assert!(connections.flush().is_empty());
        left += answer.frame().len();
    }
    let mut bytes = vec![0; ROOM];
    while left > 0 {
        let Ok(count) = client.read(&mut bytes) else {
            let happened = connections.poller.wait(Some(Duration::ZERO)).expect("a poller");
            assert!(happened.contains(&(KINDS + SESSION)), "{left} bytes are left");
            assert!(connections.on_readable(1).is_ok() && connections.flush().is_empty());
            continue;
        };
        assert!(count > 0, "the connection is closed");
        left = left.saturating_sub(count);
    }
    assert!(connections.on_readable(1).is_ok() && connections.flush().is_empty());
    assert_eq!(connections.poller.wait(Some(Duration::ZERO)), Ok(Vec::new()), "nothing is left to do");
}

/// Before it is certain who calls, one request waits. It is answered when the process at the other end has
/// said the number of the challenge itself, and lives.
#[test]
fn a_request_waits_until_it_is_certain_who_calls() {
    let (mut connections, mut client, _directory) = connected();
    let own = || PidFd::open(own_pid()).ok();
    for (said, sender, process, is_certain) in [
        (7, own_pid(), own(), true),
        (8, own_pid(), own(), false),
        (7, own_pid() + 1, own(), false),
        (7, own_pid(), None, false),
    ] {
        let connection = is_of(&mut connections, 1000);
        let user = connection.peer.own_uid;
        (connection.peer.challenge, connection.peer.process) = (Some(7), process);
        (connection.sender, connection.early) = (Some((sender, user)), None);
        connection.peer.pid = own_pid();
        connection.socket.ask_for_senders(true).expect("a socket");
        assert!(matches!(connection.identified(Request::Beat, 9), Ok(None)), "it waits");
        assert_eq!(connection.count().bytes, 9);
        match connection.identified(Request::Response(said), 9) {
            Ok(Some(Request::Beat)) => assert!(is_certain),
            Err(Over::Stranger) => assert!(!is_certain),
            _ => panic!("it is certain, or it is not"),
        }
        assert_eq!(connection.peer.challenge.is_none(), is_certain);
        if is_certain {
            // What it says from now on has no sender beside it.
            send(&mut client, &Request::Leave);
            assert!(connections.on_readable(1).is_ok());
            assert!(matches!(connections.request(1), Ok(Some(Request::Leave))));
        }
    }
    let connection = is_of(&mut connections, 1000);
    (connection.peer.challenge, connection.early) = (Some(7), None);
    assert!(connection.identified(Request::Beat, 9).is_ok());
    let second = connection.identified(Request::Beat, 9);
    assert!(matches!(second, Err(Over::Garbage(Garbage::Senseless))), "it waits for no answer");
}
