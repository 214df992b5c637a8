//! "Hostile clients": half a message, a slow reader, a thousand connections, garbage: none of them takes a
//! slot, and none of them delays anybody else.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use rungate::{
    judge::terms::{keyword::Hold, span_of_time::Wait},
    keeper::agent::{
        frame::Inbox,
        message::{Answer, Request, Take},
    },
};

use super::{REFUSED, held, seats, waiting};
use crate::support::{
    Ending, LOOK, Outcome, Running, Site, Trace, eventually, needs_root, needs_strace, read_some,
};

/// Far above what a launch takes, and far below the time after which the agent counts as unreachable.
const SOON: Duration = Duration::from_secs(3);

/// For answers that have to come, on whatever machine.
pub(crate) const LONG: Duration = Duration::from_secs(180);

/// A launch is served, and soon: one is, of those that a machine with much else to do delays. Whoever is in
/// the way is in the way of each of them.
#[track_caller]
fn still_serves(site: &Site) {
    eventually("a launch is served soon", || {
        let begun = Instant::now();
        site.test().user("games").args(["run", "--", "matlab"]).status(0);
        (begun.elapsed() < SOON).then_some(())
    });
}

fn connections(site: &Site, count: usize) -> Vec<UnixStream> {
    (0..count).map(|_| UnixStream::connect(site.agent_socket()).expect("the agent accepts")).collect()
}

#[test]
fn who_connects_and_says_nothing_or_half_of_it_delays_nobody() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let mut others = connections(&site, 400);
    still_serves(&site);
    for other in &mut others {
        other.write_all(&[200, 0, 3, 0, 1, 1, 50, 0]).expect("the agent reads");
    }
    still_serves(&site);
    assert_eq!(held(&site), []);
}

/// Leaves descriptors of connections with unsent data in the socket of the agent: whoever closes the last one
/// waits for an hour. One is beside an urgent byte, and one behind what ends the conversation.
const LINGERS: &str = r#"#!/usr/bin/python3
import array, os, socket, struct, sys
kept = []
for first, flags in [(b"", 0), (b"", socket.MSG_OOB), (b"\xff" * 64, 0)]:
    listener = socket.create_server(("127.0.0.1", 0))
    agent = socket.socket(socket.AF_UNIX)
    agent.connect(sys.argv[1])
    child = os.fork()
    if child == 0:
        sender = socket.create_connection(listener.getsockname())
        sender.setblocking(False)
        try:
            while True:
                sender.send(b"x" * 65536)
        except BlockingIOError:
            pass
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
        sender.setblocking(True)
        beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [sender.fileno()]))]
        try:
            agent.sendall(first)
            agent.sendmsg([b"\x00"], beside, flags)
            agent.sendall(b"\x00")
        except OSError as error:
            print(error, file=sys.stderr)
        # A process that ends does not wait for its own descriptors.
        os._exit(0)
    kept += [agent, listener, listener.accept()]
    os.waitpid(child, 0)
print("sent", flush=True)
sys.stdin.read()
"#;

/// Descriptors that clients send are no business of the agent's, and it never waits until they are closed:
/// neither those that the kernel refuses, nor those that came before it could.
#[test]
fn who_sends_descriptors_delays_nobody() {
    needs_root!();
    let (site, agent) = seats(1, "");
    site.script("lingers", LINGERS);
    let socket = site.agent_socket();
    let attack = || {
        let lingers = site.test().user("games").program(site.path("bin/lingers"));
        let mut lingers = lingers.args([&socket]).background();
        assert_eq!(lingers.read_line(), "sent\n");
        lingers
    };
    let _first = attack();
    still_serves(&site);
    agent.kill();
    // The service manager listens before there is an agent.
    fs::remove_file(&socket).expect("the socket");
    let listener = UnixListener::bind(&socket).expect("a socket");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).expect("it is ours");
    let _second = attack();
    fcntl(&listener, FcntlArg::F_SETFD(FdFlag::empty())).expect("it is open");
    let become_it =
        format!("exec 3<&{}; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$@\"", listener.as_raw_fd());
    let _agent = site.agent_through(["bash", "-c", &become_it, "bash"]);
    still_serves(&site);
    assert_eq!(held(&site), []);
}

/// A program that ends when its children have filled the FIFO that keeps its slot. They go on writing until
/// its standard input is closed.
const WRITES: &str = r#"#!/usr/bin/python3
import array, fcntl, os, sys, termios, time
is_fifo = lambda number: os.path.realpath(f"/proc/self/fd/{number}").endswith(".fifo")
end = next(number for number in map(int, os.listdir("/proc/self/fd")) if is_fifo(number))
fcntl.fcntl(end, fcntl.F_SETFL, 0)
size = fcntl.fcntl(end, 1031, 1 << 20) # F_SETPIPE_SZ
if os.fork():
    unread = array.array("i", [0])
    while unread[0] < size:
        time.sleep(0.01)
        fcntl.ioctl(end, termios.FIONREAD, unread)
    print("it is full", flush=True)
    os._exit(0)
writers = []
for _ in range(4):
    writers.append(os.fork())
    while writers[-1] == 0:
        os.write(end, b"x" * size)
sys.stdin.read()
for writer in writers:
    os.kill(writer, 9)
"#;

/// What keeps a slot is written into by four processes all the time: neither that nor what is left unread
/// hides the end of the last one.
#[test]
fn who_writes_into_what_keeps_a_slot_delays_nobody() {
    needs_root!();
    needs_strace!();
    let (site, agent) = seats(1, "hold = \"descriptor\"");
    site.script("matlab", WRITES);
    agent.kill();
    let (agent, trace) = Trace::begin(&site.test().rungate_agent(), "read", &[]);
    eventually("the agent answers", || site.asks_the_agent().ok());
    let matlab = |user: &str| site.test().user(user).args(["run", "--", "matlab"]);
    let mut writes = matlab("games").background();
    assert_eq!(writes.read_line(), "it is full\n");
    eventually("the program has ended", || writes.is_zombie().then_some(()));
    matlab("nobody").stderr(REFUSED).status(75);
    let reads = trace.calls().iter().filter(|call| call.text.contains("\"x")).count();
    assert!(reads < 1 << 8, "it reads what is written, which may never end: {reads} times");
    agent.kill();
    let _agent = site.agent();
    matlab("nobody").stderr(REFUSED).status(75);
    writes.close_stdin();
    eventually("the slot is free", || held(&site).is_empty().then_some(()));
}

/// A launch below two holders, and so many other processes between, that asks for one more slot.
const DEEP: &str = r#"#!/usr/bin/python3
import os, sys
for _ in range(DEPTH):
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.execvp("rungate", ["rungate", "run", "--", "other"])
"#;

/// Only the nearest ancestors are looked at, and each once for all slots; whoever is further below waits for
/// its ancestors as for others.
#[test]
fn who_stacks_processes_delays_nobody() {
    needs_root!();
    needs_strace!();
    for (depth, is_among_ancestors) in [(10, true), (400, false)] {
        let (site, agent) = seats(2, "");
        site.rungate_in_bin();
        agent.kill();
        let (_agent, trace) = Trace::begin(&site.test().rungate_agent(), "open,openat", &[]);
        eventually("the agent answers", || site.asks_the_agent().ok());
        site.script("matlab", "#!/bin/sh\nrungate run -- other\n");
        site.script("other", &DEEP.replace("DEPTH", &depth.to_string()));
        let Outcome { stderr, ending, .. } =
            site.test().user("games").args(["run", "--", "matlab"]).outcome();
        assert_eq!(ending, Ending::Status(75), "{stderr}");
        let waits_for_itself = stderr.contains("Start it outside of the program that holds the slot.");
        assert_eq!(waits_for_itself, is_among_ancestors, "{depth}: {stderr}");
        let reads = trace.calls().iter().filter(|call| call.text.contains("/stat\"")).count();
        assert!(reads < 256 + 30, "{reads} at {depth}");
    }
}

#[test]
fn who_says_what_makes_no_sense_is_told_so_and_hung_up_on() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    for (said, answer) in [
        (&[255, 255, 255, 255][..], "too long"),
        (&[9, 0, 0, 0, 7, 1], "version 7"),
        (&[2, 0, 0, 0, 1, 250], "request is invalid"),
    ] {
        let mut other = UnixStream::connect(site.agent_socket()).expect("the agent accepts");
        other.set_read_timeout(Some(LONG)).expect("a time");
        other.write_all(said).expect("the agent reads");
        let mut bytes = Vec::new();
        other.read_to_end(&mut bytes).expect("an answer, and the end");
        assert!(String::from_utf8_lossy(&bytes).contains(answer), "{bytes:?}");
    }
    still_serves(&site);
}

/// A question for the judges.
pub(super) fn take(wait: Duration) -> Vec<u8> {
    Request::Take(request("matlab", wait)).frame().expect("it is not too long")
}

/// What is asked.
pub(crate) fn request(command: &str, wait: Duration) -> Take {
    let path = format!("/usr/bin/{command}");
    Take {
        typed: command.into(),
        path: path.clone().into(),
        canonical: path.into(),
        directory: "/".into(),
        arguments: vec!["x".repeat(10_000).into()],
        environment: Vec::new(),
        held: "".into(),
        hold: Hold::Process,
        wait: Some(Wait::For(wait)),
        may_end: true,
        is_again: false,
        opened: None,
        through: None,
    }
}

/// Memory that a process has, in KiB.
pub(super) fn memory_of(process: &Running) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The agent below 100 MB: no question is judged before the one before it has its answer.
#[test]
fn who_asks_again_and_again_fills_no_memory_and_gets_what_it_asked_for_last() {
    needs_root!();
    let (site, agent) = seats(100, "");
    let mut others = connections(&site, 20);
    for other in &mut others {
        other.set_nonblocking(true).expect("a socket");
        for _ in 0..100 {
            let _ = other.write(&take(Duration::ZERO));
        }
    }
    still_serves(&site);
    // The test's own process has asked, over each connection: a question releases what the one before it
    // got.
    assert!(held(&site).len() <= others.len());
    assert!(memory_of(&agent) < 100 * 1024, "{} KiB", memory_of(&agent));
    drop(others);
}

/// The next answer in a conversation.
#[track_caller]
pub(super) fn answer(connection: &mut UnixStream, inbox: &mut Inbox) -> Answer {
    loop {
        if let Some(answer) = inbox.answer().expect("a message") {
            return answer;
        }
        let mut bytes = [0; 1024];
        let count = read_some(connection, &mut bytes).expect("the agent answers in time");
        assert!(count > 0, "the agent closed the connection");
        inbox.add(&bytes[..count]);
    }
}

/// A launcher looks for changes of the policy while it waits. One that does not gets nothing by the policy of
/// before.
#[test]
fn who_stands_in_line_gets_nothing_by_an_old_policy() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut waits = UnixStream::connect(site.agent_socket()).expect("the agent accepts");
    waits.set_read_timeout(Some(LONG)).expect("a time");
    let mut inbox = Inbox::default();
    waits.write_all(&take(Duration::from_secs(600))).expect("the agent reads");
    assert!(matches!(answer(&mut waits, &mut inbox), Answer::Waits(_)));
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &policy.replace("limit = 1", "limit = 0"));
    // It is obeyed for a second after it was judged, and no longer.
    let judged = Instant::now();
    while judged.elapsed() < Duration::from_millis(1200) {
        waits.write_all(&Request::Beat.frame().expect("it is short")).expect("the agent reads");
        assert!(matches!(answer(&mut waits, &mut inbox), Answer::Waits(_)));
    }
    holder.kill();
    eventually("the slot is free", || held(&site).is_empty().then_some(()));
    waits.write_all(&Request::Beat.frame().expect("it is short")).expect("the agent reads");
    assert!(matches!(answer(&mut waits, &mut inbox), Answer::Waits(_)));
    assert_eq!(held(&site), []);
}

/// Makes local time so many hours later than UTC, at once: a zone of one type of local time.
fn set_clock(site: &Site, hours: i32) {
    let mut zone = b"TZif".to_vec();
    zone.extend([0; 16]);
    for count in [0, 0, 0, 0, 1, 4_u32] {
        zone.extend(count.to_be_bytes());
    }
    zone.extend((hours * 3600).to_be_bytes());
    zone.extend(*b"\0\0XXX\0");
    fs::write(site.path("etc/zone.new"), zone).expect("a zone");
    fs::rename(site.path("etc/zone.new"), site.path("etc/localtime")).expect("a zone");
}

/// The same policy by another clock is another one.
#[test]
fn who_asks_gets_nothing_by_the_time_of_another_zone() {
    needs_root!();
    let (site, _agent) = Site::with_agent(
        "
        [repository.seats]
        keeper = \"agent\"
        limit  = 1
        [[rule]]
        name     = \"by day\"
        commands = [\"matlab\"]
        when     = [\"06:00-18:00\"]
        acquire  = [\"seats\"]
        ",
    );
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let hour = i32::try_from(since.as_secs() / 3600 % 24).expect("an hour");
    let asks = || {
        let mut asks = UnixStream::connect(site.agent_socket()).expect("the agent accepts");
        asks.set_read_timeout(Some(LONG)).expect("a time");
        asks.write_all(&take(Duration::ZERO)).expect("the agent reads");
        match answer(&mut asks, &mut Inbox::default()) {
            Answer::Granted(granted) => granted.slots.len(),
            answer => panic!("{answer:?}"),
        }
    };
    set_clock(&site, 0 - hour);
    assert_eq!(asks(), 0, "it is just after midnight");
    set_clock(&site, 12 - hour);
    assert_eq!(asks(), 1, "it is noon");
}

/// One slot for `matlab`, and another for `other`.
fn first_and_second() -> (Site, Running) {
    let of = |name: &str, command: &str| {
        format!("[[rule]]\nname = \"{name}\"\ncommands = [\"{command}\"]\nacquire = [\"{name}\"]\n")
    };
    let kept = "limit = 1, keeper = \"agent\"";
    let (site, agent) = Site::with_agent(&format!(
        "repository.first = {{ {kept} }}\nrepository.second = {{ {kept} }}\n{}{}",
        of("first", "matlab"),
        of("second", "other")
    ));
    for name in ["matlab", "other"] {
        site.program(name);
    }
    (site, agent)
}

/// Stands in the queue for one program, and then asks for another: comes last there. Meanwhile it may get
/// what it waits in the queue for, and does not use it; and the agent may die.
fn comes_last_for_something_else(is_granted: bool, agent_dies: bool) {
    needs_root!();
    let (site, agent) = first_and_second();
    let of_first = site.test().args(["run", "--", "matlab"]).spawn();
    let of_second = site.test().args(["run", "--", "other"]).spawn();
    let calls = || {
        let changes = UnixStream::connect(site.agent_socket()).expect("the agent accepts");
        changes.set_read_timeout(Some(LONG)).expect("a time");
        (changes, Inbox::default())
    };
    let (mut changes, mut inbox) = calls();
    changes.write_all(&take(LONG * 10)).expect("the agent reads");
    assert!(matches!(answer(&mut changes, &mut inbox), Answer::Waits(_)));
    // It is not away, however long it has said nothing.
    let beats = |changes: &mut UnixStream, inbox: &mut Inbox| {
        changes.write_all(&Request::Beat.frame().expect("it is short")).expect("the agent reads");
        assert!(matches!(answer(changes, inbox), Answer::Waits(_)));
    };
    let stands = |count: usize| eventually("so many wait", || (waiting(&site) == count).then_some(()));
    stands(1);
    let wait = ["run", "-q", "--wait", "forever", "--", "other"];
    // Numbers grow from one to the next in the same line.
    let before = site.test().args(wait).background();
    stands(2);
    let mut waits = site.test().args(wait).background();
    stands(3);
    before.kill();
    stands(2);
    if is_granted {
        beats(&mut changes, &mut inbox);
        of_first.kill();
        assert!(matches!(answer(&mut changes, &mut inbox), Answer::Granted(_)));
    }
    let _agent = if agent_dies {
        agent.kill();
        let next = site.agent();
        (changes, inbox) = calls();
        next
    } else {
        agent
    };
    let other = Take { is_again: agent_dies, ..request("other", LONG * 10) };
    changes.write_all(&Request::Take(other).frame().expect("it is short")).expect("the agent reads");
    if !agent_dies {
        assert_eq!(answer(&mut changes, &mut inbox), Answer::Anew);
    }
    assert!(matches!(answer(&mut changes, &mut inbox), Answer::Waits(_)));
    stands(2);
    of_second.kill();
    assert!(waits.answers());
    assert_eq!(waiting(&site), 1);
}

/// Nobody is overtaken: to have stood in one line is worth nothing in another.
#[test]
fn who_waits_for_something_else_comes_last() {
    comes_last_for_something_else(false, false);
}

/// Nor is it while the agent is gone in between.
#[test]
fn who_comes_back_for_something_else_comes_last() {
    comes_last_for_something_else(false, true);
}

/// Nor is it to have got there what one does not use.
#[test]
fn who_has_something_and_wants_something_else_comes_last() {
    comes_last_for_something_else(true, false);
    comes_last_for_something_else(true, true);
}

/// Out of descriptors, it refuses nobody, and answers those who call later once others have gone.
#[test]
fn an_agent_without_descriptors_goes_on_once_others_have_gone() {
    needs_root!();
    let (site, agent) = seats(1, "");
    agent.kill();
    let agent = site.agent_through(["prlimit", "--nofile=48:48"]);
    let mut others = connections(&site, 100);
    let descriptors = format!("/proc/{}/fd", agent.pid());
    let is_full = || fs::read_dir(&descriptors).is_ok_and(|open| open.count() >= 45);
    eventually("no descriptor is free", || is_full().then_some(()));
    for other in &mut others {
        other.set_nonblocking(true).expect("a socket");
        let answered = other.read(&mut [0; 256]).map_err(|error| error.kind());
        assert_eq!(answered, Err(ErrorKind::WouldBlock));
    }
    let mut waits = site.test().args(["run", "--", "matlab"]).background();
    waits.write_line("it runs");
    drop(others);
    if waits.read_line() != "it runs\n" {
        // The machine stood still for longer than launches are patient.
        let outcome = waits.end();
        assert!(outcome.lost_its_patience(), "{outcome:?}");
        let _next = site.test().args(["run", "--", "matlab"]).spawn();
    }
}

#[test]
fn who_asks_and_does_not_read_the_answers_delays_nobody() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let mut others = connections(&site, 50);
    for other in &mut others {
        other.set_nonblocking(true).expect("a socket");
        // As much as goes in: then the agent has stopped reading.
        while let Ok(count) = other.write(&LOOK) {
            if count < LOOK.len() {
                break;
            }
        }
    }
    still_serves(&site);
}

/// Nobody has a slot in somebody else's name.
#[test]
fn who_calls_a_process_of_others_its_program_is_not_believed() {
    needs_root!();
    let (site, _agent) = seats(1, "hold = \"tree\"");
    let mut lies = UnixStream::connect(site.agent_socket()).expect("the agent accepts");
    lies.set_read_timeout(Some(LONG)).expect("a time");
    let mut inbox = Inbox::default();
    lies.write_all(&take(LONG)).expect("the agent reads");
    assert!(matches!(answer(&mut lies, &mut inbox), Answer::Granted(_)));
    for pid in [1, 0, -1, i32::MAX, std::os::unix::process::parent_id().cast_signed()] {
        lies.write_all(&Request::RunsAs(pid).frame().expect("it is short")).expect("the agent reads");
    }
    // The answer comes when all of that was heard.
    lies.write_all(&Request::About.frame().expect("it is short")).expect("the agent reads");
    assert!(matches!(answer(&mut lies, &mut inbox), Answer::About(_)));
    assert_eq!(held(&site), [(1, std::process::id().into())]);
}

/// The agent tells only root which programs have ended.
#[test]
fn who_is_not_root_is_not_told_what_others_run() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let ask = "import socket, sys\n\
               c = socket.socket(socket.AF_UNIX)\n\
               c.connect('/run/rungate-agent/socket')\n\
               c.sendall(bytes.fromhex(sys.argv[1]))\n\
               print(b'only root' in c.recv(65536))\n";
    let frame = Request::Ends.frame().expect("it is short");
    let said: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    for (user, is_refused) in [("games", "True\n"), ("root", "False\n")] {
        let test = site.test().user(user).program("/usr/bin/python3").args(["-c", ask, said.as_str()]);
        test.stdout(is_refused).status(0);
    }
}
