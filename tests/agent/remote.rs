//! The thread that owns the table never waits for a disk: nor for a server or a daemon that keeps files, which
//! here is a small one that stops answering.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rungate::keeper::agent::message::{Answer, Request, Take};

use super::hostility::{LONG, request};
use super::numbers::Caller;
use super::{held, seats, waiter};
use crate::support::{LOOK, Site, eventually, needs_root, skip};

/// Longer than a launch that waits may give no sign of life.
const LONG_JUDGEMENT: Duration = Duration::from_secs(5);

/// Mounts a file system that has one file, serves it from a process beside, and becomes a command. As long as
/// there is a certain file, it does not answer what is asked about attributes, which nobody may keep, or the kinds
/// of questions whose numbers are in that file. It answers once the file has gone.
pub(crate) const REMOTE: &str = r#"
import ctypes, os, signal, struct, sys, time
silence, where, name, source = sys.argv[1:5]
libc = ctypes.CDLL(None, use_errno=True)
text = open(source, "rb").read()
device = os.open("/dev/fuse", os.O_RDWR)
options = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % device
if libc.mount(b"fuse", where.encode(), b"fuse", 0, options.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
def attributes(node):
    mode, size = (0o40755, 0) if node == 1 else (0o100644, len(text))
    return struct.pack("<6Q10I", node, size, 1, 9, 9, 9, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
def answer(kind, node, body):
    if kind == 26:
        return struct.pack("<4I2H2I2H8I", 7, 31, 4096, 0, 9, 9, 4096, 1, 1, 0, *[0] * 8)
    if kind == 1:
        found = 2 if body[:-1] == name.encode() else 0
        return struct.pack("<4Q2I", found, 0, 9999, 0, 0, 0) + attributes(found)
    if kind == 3:
        return struct.pack("<Q2I", 0, 0, 0) + attributes(node)
    if kind == 17:
        return struct.pack("<5Q4I24x", 9, 9, 9, 9, 9, 4096, 255, 4096, 0)
    if kind in (14, 27):
        return struct.pack("<Q2I", 0, 0, 0)
    if kind == 15:
        at, count = struct.unpack("<QI", body[8:20])
        return text[at:at + count]
    return b"" if kind in (18, 25, 28, 29) else -38
def is_silent(kind):
    try:
        return str(kind) in (open(silence).read().split() or ["3"])
    except FileNotFoundError:
        return False
if os.fork() == 0:
    libc.prctl(1, signal.SIGKILL)
    while True:
        said = os.read(device, 65536)
        _, kind, unique, node = struct.unpack("<2I2Q", said[:24])
        if is_silent(kind):
            # Whoever waits in vain could not even be killed.
            signal.alarm(90)
            if os.fork() != 0:
                continue
            signal.alarm(90)
            libc.prctl(1, signal.SIGKILL)
            while os.path.exists(silence):
                time.sleep(0.01)
            told = answer(kind, node, said[40:])
            os.write(device, struct.pack("<IiQ", 16 + len(told), 0, unique) + told)
            os._exit(0)
        if kind in (2, 42):
            continue
        told = answer(kind, node, said[40:])
        error, told = (told, b"") if isinstance(told, int) else (0, told)
        os.write(device, struct.pack("<IiQ", 16 + len(told), error, unique) + told)
os.close(device)
os.execv(sys.argv[5], sys.argv[5:])
"#;

/// An agent that answers says what there is, whatever else it waits for.
#[track_caller]
fn answers(site: &Site) {
    let mut connection = UnixStream::connect(site.agent_socket()).expect("the agent accepts");
    connection.set_read_timeout(Some(LONG)).expect("a time");
    connection.write_all(&LOOK).expect("the agent reads");
    connection.read_exact(&mut [0]).expect("the agent answers");
}

fn asks(site: &Site, held: &str) -> UnixStream {
    let mut connection = UnixStream::connect(site.agent_socket()).expect("the agent accepts");
    let take = Take { held: held.into(), arguments: Vec::new(), ..request("matlab", LONG * 10) };
    let frame = Request::Take(take).frame().expect("it is short");
    connection.write_all(&frame).expect("the agent reads");
    connection
}

#[test]
fn a_policy_on_a_server_that_does_not_answer_keeps_launches_and_not_the_agent() {
    needs_root!();
    if !Path::new("/dev/fuse").exists() {
        return skip("there is no /dev/fuse");
    }
    let (site, agent) = seats(1, "");
    agent.kill();
    let silence = site.path("silence").display().to_string();
    let policy = "/etc/rungate/policy.toml";
    let remote = ["python3", "-c", REMOTE, &silence, "/etc/rungate", "policy.toml", policy];
    let _agent = site.agent_through(remote);
    // It has read the policy, and judges by it.
    asks(&site, "").read_exact(&mut [0]).expect("the agent answers");
    fs::write(&silence, "").expect("a file");
    // What was told of attributes counts for a tick of the kernel's clock.
    let later = |_| {
        thread::sleep(Duration::from_millis(20));
        asks(&site, "")
    };
    let mut asked: Vec<UnixStream> = (0..5).map(later).collect();
    answers(&site);
    let last = asked.last_mut().expect("one of them");
    last.set_nonblocking(true).expect("a socket");
    assert!(last.read(&mut [0]).is_err(), "who knows whether the policy is another by now?");
}

/// A process in a user's home on such a server asks for slots that it says its ancestors have.
#[test]
fn a_file_of_the_caller_on_a_server_that_does_not_answer_keeps_nobody() {
    needs_root!();
    if !Path::new("/dev/fuse").exists() {
        return skip("there is no /dev/fuse");
    }
    let (site, _agent) = seats(1, "");
    let silence = site.path("silence").display().to_string();
    let home = site.path("work").display().to_string();
    let take = Take { held: "seats=1".into(), arguments: Vec::new(), ..request("matlab", LONG * 10) };
    let said = site.path("said");
    fs::write(&said, Request::Take(take).frame().expect("it is short")).expect("a file");
    let call = "import os, socket, sys, time\n\
                file = open(sys.argv[1] + '/data')\n\
                open(sys.argv[2], 'w').close()\n\
                time.sleep(0.02)\n\
                c = socket.socket(socket.AF_UNIX)\n\
                c.connect('/run/rungate-agent/socket')\n\
                c.sendall(open(sys.argv[3], 'rb').read())\n\
                print(len(c.recv(1)), flush=True)\n\
                sys.stdin.read()\n";
    let said = said.display().to_string();
    let remote = ["python3", "-c", REMOTE, &silence, &home, "data", "/etc/hostname", "/usr/bin/python3"];
    let test = site.test().through(remote).program("-c").args([call, &home, &silence, &said]);
    let mut caller = test.background();
    assert_eq!(caller.read_line(), "1\n");
    answers(&site);
    eventually("it has a seat", || (held(&site).len() == 1).then_some(()));
}

/// Who waits for an answer says nothing meanwhile, and has as long as ever to beat once it has come. While it cannot be
/// judged, others may pass it; then it is the first again.
#[test]
fn who_was_kept_waiting_for_an_answer_is_not_passed_over() {
    needs_root!();
    if !Path::new("/dev/fuse").exists() {
        return skip("there is no /dev/fuse");
    }
    // A machine that stands still for seconds makes a waiter look dead.
    assert!((0..3).any(|_| is_served_first_after_a_long_judgement()), "it was passed over");
}

fn is_served_first_after_a_long_judgement() -> bool {
    let (site, agent) = seats(1, "");
    agent.kill();
    let silence = site.path("silence").display().to_string();
    let policy = "/etc/rungate/policy.toml";
    let remote = ["python3", "-c", REMOTE, &silence, "/etc/rungate", "policy.toml", policy];
    let _agent = site.agent_through(remote);
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut first = Caller::new(&site);
    first.takes(false);
    first.waits();
    let _second = waiter(&site, "games", 2);
    fs::write(&silence, "").expect("a file");
    // What was told of attributes counts for a tick of the kernel's clock.
    thread::sleep(Duration::from_millis(20));
    first.takes(true);
    let mut heard = first.hears();
    let asked = Instant::now();
    eventually("it is judged for long", || (asked.elapsed() > LONG_JUDGEMENT).then_some(()));
    fs::remove_file(&silence).expect("the file");
    while heard == Answer::Anew {
        heard = first.hears();
    }
    assert!(matches!(heard, Answer::Ends(_)), "{heard:?}");
    eventually("it is judged", || {
        first.says(&Request::Beat);
        match first.hears() {
            Answer::Waits(_) => Some(()),
            Answer::Ends(_) => None,
            other => panic!("{other:?}"),
        }
    });
    holder.kill();
    let own = i64::from(std::process::id());
    eventually("one of them has the seat", || held(&site).first().map(|(_, pid)| *pid == own))
}
