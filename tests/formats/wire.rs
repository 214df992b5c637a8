//! The wire between launches and the agent: "Versions that differ by one understand each other."

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use rungate::{
    judge::terms::{keyword::Hold, span_of_time::Wait},
    keeper::agent::{
        frame::{Inbox, LONGEST_REQUEST},
        message::About,
        message::{Answer, Granted, Request, Take},
    },
};

use super::{LONG, OF_AGENT, sample};
use crate::support::{Ending, Site, needs_root, read_some};

/// The bytes of a sample, in hexadecimal; a line ends where it may.
fn bytes(name: &str) -> Vec<u8> {
    let digits: String = sample(name).split_whitespace().collect();
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("a byte")).collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn take() -> Take {
    Take {
        typed: "matlab".into(),
        path: "/usr/bin/matlab".into(),
        canonical: "/opt/matlab".into(),
        directory: "/home/ann".into(),
        arguments: vec!["-r".into(), "x".into()],
        environment: vec![("A".to_owned(), None), ("B".to_owned(), Some("b".into()))],
        held: "seats=1".into(),
        hold: Hold::Tree,
        wait: Some(Wait::For(Duration::from_secs(60))),
        may_end: true,
        is_again: false,
        opened: None,
        through: None,
    }
}

fn granted() -> Granted {
    Granted {
        slots: vec![("seats".to_owned(), "1".to_owned())],
        without: Vec::new(),
        hold: Hold::Process,
        has_waited: false,
        joined: None,
    }
}

/// The first messages of a launch and of the agent, bit by bit.
#[test]
fn the_first_messages() {
    let asked = [
        ("wire/take.hex", Request::Take(take())),
        ("wire/about.hex", Request::About),
        ("wire/started.hex", Request::Started),
    ];
    for (name, expected) in asked {
        let frame = expected.frame().expect("it is short");
        assert_eq!(hexadecimal(&bytes(name)), hexadecimal(&frame), "{name}");
        let mut inbox = Inbox::default();
        inbox.add(&bytes(name));
        assert_eq!(inbox.request(LONGEST_REQUEST), Ok(Some(expected)), "{name}");
    }
    // A launch of an older version is none of a script.
    let mut inbox = Inbox::default();
    inbox.add(&bytes("wire/take-older.hex"));
    assert_eq!(inbox.request(LONGEST_REQUEST), Ok(Some(Request::Take(take()))));
    let about = About { version: "0.1.0".to_owned(), site: None, work: None };
    // What a field that came later is not in has that field empty.
    let mut inbox = Inbox::default();
    inbox.add(&bytes("wire/of-itself-older.hex"));
    assert_eq!(inbox.answer(), Ok(Some(Answer::About(about.clone()))));
    let mut inbox = Inbox::default();
    inbox.add(&bytes("wire/granted-older.hex"));
    assert_eq!(inbox.answer(), Ok(Some(Answer::Granted(granted()))));
    let joined = Some(vec![("seats".to_owned(), "1".to_owned())]);
    let answered = [
        ("wire/granted.hex", Answer::Granted(granted())),
        ("wire/granted-joined.hex", Answer::Granted(Granted { joined, ..granted() })),
        ("wire/of-itself.hex", Answer::About(about)),
        ("wire/failed.hex", Answer::Failed("no".to_owned())),
    ];
    for (name, expected) in answered {
        assert_eq!(hexadecimal(&bytes(name)), hexadecimal(&expected.frame()), "{name}");
        let mut inbox = Inbox::default();
        inbox.add(&bytes(name));
        assert_eq!(inbox.answer(), Ok(Some(expected)), "{name}");
    }
}

/// A message of another version, and with more in it: `more` goes to the end of its structure.
fn of_version(frame: &[u8], version: u8, more: &[u8]) -> Vec<u8> {
    let mut other = frame.to_vec();
    other[4] = version;
    if !more.is_empty() {
        other.extend(more);
        for (at, counted) in [(0, other.len() - 4), (6, other.len() - 10)] {
            other[at..at + 4].copy_from_slice(&u32::try_from(counted).expect("it is short").to_le_bytes());
        }
    }
    other
}

/// What the agent answers to these bytes.
fn answer(site: &Site, bytes: &[u8]) -> Answer {
    let mut connection = UnixStream::connect(site.agent_socket()).expect("the agent accepts");
    connection.set_read_timeout(Some(LONG)).expect("a time");
    connection.write_all(bytes).expect("the agent reads");
    read(&mut connection, |inbox| inbox.answer().expect("a message"))
}

fn read<M>(connection: &mut UnixStream, next: impl Fn(&mut Inbox) -> Option<M>) -> M {
    let mut inbox = Inbox::default();
    loop {
        if let Some(message) = next(&mut inbox) {
            return message;
        }
        let mut bytes = [0; 4096];
        let count = read_some(connection, &mut bytes).expect("an answer in time");
        assert!(count > 0, "the other end closed the connection");
        inbox.add(&bytes[..count]);
    }
}

/// A launch of the version before, and one of the next, which says more than the agent knows.
#[test]
fn the_agent_answers_launches_that_are_one_version_away() {
    needs_root!();
    let (site, _agent) = Site::with_agent(OF_AGENT);
    let ask =
        Request::Take(Take { hold: Hold::Process, held: "".into(), ..take() }).frame().expect("it is short");
    for (version, more) in [(0, &[][..]), (1, &[]), (2, &[]), (2, &[9, 9, 9])] {
        let answer = answer(&site, &of_version(&ask, version, more));
        assert!(matches!(answer, Answer::Granted(_)), "{version}: {answer:?}");
    }
    // What it does not know it refuses, and says so.
    let unknown = answer(&site, &[2, 0, 0, 0, 2, 200]);
    assert!(matches!(&unknown, Answer::Failed(why) if why.contains("version 2")), "{unknown:?}");
    let far = answer(&site, &of_version(&ask, 3, &[]));
    assert!(matches!(&far, Answer::Failed(why) if why.contains("version 3")), "{far:?}");
}

/// And a launch starts by the word of an agent that is one version away.
#[test]
fn a_launch_understands_agents_that_are_one_version_away() {
    needs_root!();
    let (site, agent) = Site::with_agent(OF_AGENT);
    site.script("matlab", "#!/bin/sh\n");
    agent.kill();
    for (version, more, status) in [(0, &[][..], 0), (2, &[], 0), (2, &[9, 9, 9], 0), (3, &[], 74)] {
        let _ = std::fs::remove_file(site.agent_socket());
        let listener = UnixListener::bind(site.agent_socket()).expect("an agent of this test");
        let mut launch = site.test().args(["run", "-q", "--", "matlab"]).background();
        let (mut connection, _) = listener.accept().expect("it asks");
        connection.set_read_timeout(Some(LONG)).expect("a time");
        let asked = read(&mut connection, |inbox| inbox.request(LONGEST_REQUEST).expect("a message"));
        assert!(matches!(asked, Request::Take(_)), "{asked:?}");
        let said = of_version(&Answer::Granted(granted()).frame(), version, more);
        connection.write_all(&said).expect("it listens");
        if status == 0 {
            let said = read(&mut connection, |inbox| inbox.request(LONGEST_REQUEST).expect("a message"));
            assert_eq!(said, Request::Started);
        }
        let outcome = launch.end();
        assert_eq!(outcome.ending, Ending::Status(status), "version {version}: {outcome:?}");
    }
}
