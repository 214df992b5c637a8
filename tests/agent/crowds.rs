//! Ten thousand connections, half messages, slow readers: from several users at once. Each of them is cut off
//! at what one user may have, the agent stays below 100 MB, and the launches of others go on.

use std::fs;
use std::io::Write;
use std::iter;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use rungate::{
    judge::terms::{keyword::Hold, span_of_time::Wait},
    keeper::agent::{
        frame::Inbox,
        message::{Request, Take},
    },
};

use super::hostility::{answer, memory_of};
use super::settings::seats_with;
use crate::support::{Ending, LOOK, Running, Site, eventually, needs_root};

const USERS: [&str; 5] = ["bin", "lp", "mail", "news", "uucp"];

/// More than one user may have.
const CALLS: usize = 2100;

/// "connections = 2048".
const MOST: usize = 2048;

/// Calls so often, says the same each time, and tells how many were answered and how many refused, and why.
/// Then it says half of a message over some connections, over others it asks and never reads.
const CROWD: &str = r#"
import resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
said = open(sys.argv[2], "rb").read()
held, refused = [], {}
for call in range(int(sys.argv[1])):
    if call % 100 == 0:
        print(flush=True)
    c = socket.socket(socket.AF_UNIX)
    c.connect("/run/rungate-agent/socket")
    try:
        c.sendall(said)
    except OSError:
        pass
    answer = c.recv(65536)
    if b"too m" in answer:
        why = answer[answer.index(b"too m"):].split(b" (")[0].decode()
        refused[why] = refused.get(why, 0) + 1
        c.close()
    else:
        held.append(c)
print(len(held), sum(refused.values()), ", ".join(refused), flush=True)
look = bytes([6, 0, 0, 0, 1, 6, 0, 0, 0, 0])
for number, c in enumerate(held):
    c.setblocking(False)
    try:
        if number % 3 == 0:
            c.send(bytes([200, 0, 3, 0, 1, 1, 50, 0]))
        if number % 3 == 1:
            for _ in range(2000):
                c.send(look)
    except OSError:
        pass
print("done", flush=True)
sys.stdin.read()
"#;

/// A crowd: the process that it is, how many conversations it has, how many were refused, and why.
struct Crowd {
    _process: Running,
    has: usize,
    refused: usize,
    why: String,
}

/// A site where others launch `matlab`, and there is one `other` to wait for.
fn site() -> (Site, Running) {
    let of = |name: &str, command: &str, limit: u32| {
        format!(
            "[repository.{name}]\nkeeper = \"agent\"\nlimit = {limit}\n\
             [[rule]]\nname = \"{name}\"\ncommands = [\"{command}\"]\nacquire = [\"{name}\"]\n"
        )
    };
    let (site, agent) = Site::with_agent(&(of("seats", "matlab", 1) + &of("one", "other", 1)));
    for name in ["matlab", "other"] {
        site.program(name);
    }
    (site, agent)
}

#[track_caller]
fn crowd(site: &Site, user: &str, calls: usize, said: &Path) -> Crowd {
    let test = site.test().user(user).program("/usr/bin/python3").args(["-c", CROWD, &calls.to_string()]);
    let mut process = test.args([said]).background();
    // It shows that it goes on: the deadline is for a hundred calls, and not for all.
    let line = iter::repeat_with(|| process.read_line()).find(|line| line != "\n").expect("its last words");
    let mut words = line.trim_end().splitn(3, ' ');
    let mut number = || words.next().and_then(|word| word.parse().ok()).expect(&line);
    let (has, refused) = (number(), number());
    let why = words.next().unwrap_or_default().to_owned();
    assert_eq!(process.read_line(), "done\n");
    Crowd { _process: process, has, refused, why }
}

/// How many descriptors a process has, and how many it may have.
fn descriptors(process: &Running) -> (usize, usize) {
    let count = fs::read_dir(format!("/proc/{}/fd", process.pid())).expect("it runs").count();
    let limits = fs::read_to_string(format!("/proc/{}/limits", process.pid())).expect("it runs");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    (count, line.split_ascii_whitespace().nth(3).and_then(|most| most.parse().ok()).expect("a number"))
}

#[track_caller]
fn others_launch(site: &Site) {
    for user in ["games", "root"] {
        site.test().user(user).args(["run", "--", "matlab"]).status(0);
    }
}

/// Where the agent may open fewer descriptors than the users may have connections, each gets its part.
#[test]
fn ten_thousand_connections_of_five_users_keep_nobody_else_out() {
    needs_root!();
    let (site, agent) = site();
    let (before, most) = descriptors(&agent);
    let look = site.path("look");
    fs::write(&look, LOOK).expect("write what is said");
    let crowds = USERS.map(|user| crowd(&site, user, CALLS, &look));
    for crowd in &crowds {
        assert!(crowd.has <= MOST && crowd.has + crowd.refused == CALLS, "{} {}", crowd.has, crowd.refused);
        assert!(crowd.why.starts_with("too many launches of this user are connected"), "{}", crowd.why);
    }
    let all: usize = crowds.iter().map(|crowd| crowd.has).sum();
    assert!(most < 16_000 || all == USERS.len() * MOST, "{all}");
    others_launch(&site);
    assert!(memory_of(&agent) < 100 * 1024, "{} KiB", memory_of(&agent));
    drop(crowds);
    eventually("they are forgotten", || (descriptors(&agent).0 <= before).then_some(()));
    others_launch(&site);
}

/// Where it may open few, one user cannot have all of them.
#[test]
fn who_calls_again_and_again_leaves_descriptors_to_others() {
    needs_root!();
    let (site, agent) = site();
    agent.kill();
    let agent = site.agent_through(["prlimit", "--nofile=600:600"]);
    let look = site.path("look");
    fs::write(&look, LOOK).expect("write what is said");
    let crowds = USERS.map(|user| crowd(&site, user, 300, &look));
    let mut before = usize::MAX;
    for Crowd { has, why, .. } in &crowds {
        assert!((1..before).contains(has), "{has}");
        assert_eq!(
            why,
            "too many launches of this user are connected or have slots: the agent may not open more \
                descriptors"
        );
        before = *has;
    }
    others_launch(&site);
    assert!(descriptors(&agent).0 < 500);
}

/// Nobody has called who could hang up: it was something else that took all descriptors.
#[test]
fn whoever_calls_when_there_are_no_descriptors_is_heard_when_there_are_some() {
    needs_root!();
    let (site, agent) = site();
    let allow = |most: usize| {
        let nofile = format!("--nofile={most}:4096");
        site.test().program("/usr/bin/prlimit").args(["--pid", &agent.pid().to_string(), &nofile]).status(0);
    };
    let matlab = || site.test().args(["run", "-q", "--", "matlab"]).outcome().ending;
    // As many as any program has.
    allow(3);
    assert_eq!(matlab(), Ending::Status(74));
    allow(4096);
    eventually("launches are heard", || (matlab() == Ending::Status(0)).then_some(()));
}

/// A question is kept until it is answered: a list of short texts takes many times what it took on the wire.
#[test]
fn long_questions_of_several_users_take_little_memory() {
    needs_root!();
    let (site, agent) = site();
    let take = Take {
        typed: "other".into(),
        path: "/usr/bin/other".into(),
        canonical: "/usr/bin/other".into(),
        directory: "/".into(),
        arguments: vec!["x".into(); 50_000],
        environment: Vec::new(),
        held: "".into(),
        hold: Hold::Process,
        wait: Some(Wait::For(Duration::from_secs(600))),
        may_end: false,
        is_again: false,
        opened: None,
        through: None,
    };
    let long = site.path("long");
    fs::write(&long, Request::Take(take).frame().expect("it is not too long")).expect("write what is said");
    let _holder = site.test().args(["run", "--", "other"]).spawn();
    let crowds = USERS.map(|user| crowd(&site, user, 100, &long));
    for Crowd { has, why, .. } in &crowds {
        assert!((1..100).contains(has), "{has}");
        assert_eq!(why, "too much memory");
    }
    others_launch(&site);
    assert!(memory_of(&agent) < 100 * 1024, "{} KiB", memory_of(&agent));
}

/// Sends most of a long message over each of sixty connections. For each line of input it prints how many of
/// them the agent has closed.
const HALVES: &str = r#"
import socket, sys
halves = []
for _ in range(60):
    c = socket.socket(socket.AF_UNIX)
    c.connect("/run/rungate-agent/socket")
    c.settimeout(5)
    try:
        c.sendall((250_000).to_bytes(4, "little") + bytes([1, 1]) + bytes(200_000))
    except OSError:
        pass
    c.setblocking(False)
    halves.append(c)
def is_gone(c):
    try:
        return c.recv(65536) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
gone = set()
for line in sys.stdin:
    gone |= {c for c in halves if c not in gone and is_gone(c)}
    print(len(gone), flush=True)
"#;

/// The agent buffers at most sixteen messages of full length for each user.
#[test]
fn connections_with_unfinished_long_messages_are_closed() {
    needs_root!();
    let (site, agent) = site();
    let before = memory_of(&agent);
    let mut halves = site.test().user("games").program("/usr/bin/python3").args(["-c", HALVES]).background();
    let mut gone = || {
        halves.write_line("how many?");
        halves.read_line().trim_end().parse::<usize>().expect("a number")
    };
    // Of 200,000 bytes each, 4 MiB are 20 messages.
    eventually("forty of sixty are gone", || (gone() >= 60 - 21).then_some(()));
    assert!(gone() <= 60 - 10, "some are kept");
    assert!(memory_of(&agent) < before + 16 * 1024, "{} KiB, {before} before", memory_of(&agent));
    others_launch(&site);
}

/// Several users, each calling from several processes at once.
#[test]
fn who_connects_without_end_is_not_served_alone() {
    needs_root!();
    let (site, _agent) = site();
    let calls = "import os, socket\n\
                 first = os.getpid()\n\
                 os.fork()\n\
                 print('calls', flush=True)\n\
                 while first in (os.getpid(), os.getppid()):\n    \
                 c = socket.socket(socket.AF_UNIX)\n    c.connect('/run/rungate-agent/socket')\n    c.close()\n";
    let crowds = ["bin", "lp"].map(|user| {
        let mut running = site.test().user(user).program("/usr/bin/python3").args(["-c", calls]).background();
        assert_eq!(running.read_line(), "calls\n");
        running
    });
    others_launch(&site);
    drop(crowds);
}

/// Asks so often without waiting for an answer, and tells how long it took until all were there.
const TALK: &str = r#"
import socket, sys, time
begun = time.monotonic()
c = socket.socket(socket.AF_UNIX)
c.connect("/run/rungate-agent/socket")
count = int(sys.argv[1])
c.sendall(bytes([6, 0, 0, 0, 1, 6, 0, 0, 0, 0]) * count)
answers = c.makefile("rb")
for _ in range(count):
    answers.read(int.from_bytes(answers.read(4), "little"))
print(int(1000 * (time.monotonic() - begun)), flush=True)
"#;

/// A connection a rate: fifty at once, five a second, and nothing that was said is lost.
#[test]
fn who_says_more_than_one_may_is_heard_later() {
    needs_root!();
    let (site, _agent) = site();
    let talk = |user: &str, count: u32| {
        let test = site.test().user(user).program("/usr/bin/python3");
        let told = test.args(["-c", TALK, &count.to_string()]).background().read_line();
        Duration::from_millis(told.trim().parse().expect("a time"))
    };
    // The first 51 are heard at once, and each of the others a fifth of a second later.
    assert!(talk("bin", 65) >= Duration::from_millis(2800));
    // "Root may have more of everything": this would take 200 seconds.
    assert!(talk("root", 1050) < Duration::from_secs(180));
    others_launch(&site);
}

/// Calls so often, and then says something over each connection; tells how many were answered when it is asked.
const CHORUS: &str = r#"
import select, socket, sys
calls = [socket.socket(socket.AF_UNIX) for _ in range(int(sys.argv[1]))]
for c in calls:
    c.connect("/run/rungate-agent/socket")
look = bytes([6, 0, 0, 0, 1, 6, 0, 0, 0, 0])
for c in calls:
    c.sendall(look)
    c.recv(65536)
print("called", flush=True)
for line in sys.stdin:
    if line == "say\n":
        for c in calls:
            c.sendall(look)
        print("said", flush=True)
    else:
        print(len(select.select(calls, [], [], 0)[0]), flush=True)
        for c in calls:
            c.recv(65536)
"#;

const VOICES: usize = 700;

/// None of them delays anybody else: of users who speak at the same time each is heard in turn, however many
/// connections somebody has.
#[test]
fn who_speaks_over_many_connections_is_heard_no_sooner_than_others() {
    needs_root!();
    // As often as it takes until this test is scheduled in time; by default they would soon be paused.
    let (site, agent) = seats_with("version = 1\n[agent]\nrate = 1000000\n");
    let test = site.test().user("bin").program("/usr/bin/python3");
    let mut chorus = test.args(["-c", CHORUS, &VOICES.to_string()]).background();
    assert_eq!(chorus.read_line(), "called\n");
    let mut other = UnixStream::connect(site.agent_socket()).expect("the agent accepts");
    let mut inbox = Inbox::default();
    other.write_all(&LOOK).expect("the agent reads");
    answer(&mut other, &mut inbox);
    // Fewer than all, unless this test was not scheduled for as long as it takes to answer them.
    eventually("it is heard before others have been heard to the end", || {
        // It has nothing left to look at: from then on it hears in the order in which they speak, or by turns.
        eventually("it rests", || (agent.state() == 'S').then_some(()));
        agent.signal(Signal::SIGSTOP);
        chorus.write_line("say");
        assert_eq!(chorus.read_line(), "said\n");
        other.write_all(&LOOK).expect("the agent reads");
        agent.signal(Signal::SIGCONT);
        answer(&mut other, &mut inbox);
        agent.signal(Signal::SIGSTOP);
        eventually("it is stopped", || (agent.state() == 'T').then_some(()));
        chorus.write_line("tell");
        let answered: usize = chorus.read_line().trim().parse().expect("a number");
        agent.signal(Signal::SIGCONT);
        (answered < VOICES).then_some(())
    });
}
