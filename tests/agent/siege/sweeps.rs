//! To end many holders takes the agent no longer than to end one: while it looks who has their descriptors,
//! nobody else waits for that.

use std::{fs, path::PathBuf, thread::sleep, time::Duration};

use rungate::{
    judge::terms::{claim::ExpireKill, keyword::Hold},
    keeper::agent::message::{Answer, Chosen, Evict, MOST_CHOSEN, Request, Take, Which},
};

use super::{ABOUT, Call, DONE, FAILED, Mob, others_launch, question, site, used_by};
use crate::{
    agent::hostility::memory_of,
    support::{Ending, Running, Site, needs_root, set_mode},
};

/// The number of an answer on the wire: what became of a holder.
const EXPIRED: u8 = 9;

/// A user may have as many launches as this ten times over.
const HOLDERS: usize = 300;

/// So many children ask for a slot, leave the descriptor to their parent, and end. It does not end of what
/// can be ignored.
const HEIR: &str = r#"
import array, os, signal, socket, sys
for ignored in (signal.SIGINT, signal.SIGTERM):
    signal.signal(ignored, signal.SIG_IGN)
said = open(sys.argv[1], "rb").read()
def received(c):
    _, rights, _, _ = c.recvmsg(65536, socket.CMSG_SPACE(4))
    fds = array.array("i")
    for _, _, data in rights:
        fds.frombytes(data)
    return fds
kept = []
ours, theirs = socket.socketpair(socket.AF_UNIX)
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        c = socket.socket(socket.AF_UNIX)
        c.connect("/run/rungate-agent/socket")
        c.sendall(said)
        theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, received(c))])
        os._exit(0)
    kept.append(received(ours))
    os.waitpid(child, 0)
print(sum(len(fds) for fds in kept), flush=True)
sys.stdin.read()
"#;

#[track_caller]
pub(super) fn heir(site: &Site, count: usize) -> Running {
    let message = site.path("question");
    let take = Take { hold: Hold::Descriptor, ..question("free") };
    fs::write(&message, Request::Take(take).frame().expect("it is short")).expect("write what is said");
    set_mode(&message, 0o644);
    let test = site.test().user("bin").program("/usr/bin/python3").args(["-c", HEIR]);
    let mut heir = test.args([message.as_os_str(), count.to_string().as_ref()]).background();
    assert_eq!(heir.read_line(), format!("{count}\n"));
    heir
}

/// Asks for the end of all who have `free` and whom the caller may end, with a long time between the signals.
fn sweep() -> Request {
    let (table, which, kill) = ("free".to_owned(), Which::Overdue(Duration::ZERO), ExpireKill::Process);
    Request::Evict(Evict { table, which, grace: Duration::from_secs(600), kill })
}

/// Their descriptors are looked for once, and not by whoever answers: once for each of them would take
/// seconds of a processor.
#[test]
fn who_sweeps_for_hundreds_of_holders_keeps_nobody_waiting() {
    needs_root!();
    let (site, agent) = site();
    let _heir = heir(&site, HOLDERS);
    let mut mob = Mob::of(&site, "bin");
    mob.calls(1);
    let mut other = Call::to(&site);
    let begun = used_by(&agent);
    mob.says(&sweep());
    let mut longest = Duration::ZERO;
    for _ in 0..30 {
        let before = used_by(&agent);
        other.says(&Request::About);
        assert!(matches!(other.hears(), Answer::About(_)));
        longest = longest.max(used_by(&agent).saturating_sub(before));
        sleep(Duration::from_millis(20));
    }
    let used = used_by(&agent).saturating_sub(begun);
    assert!(longest < Duration::from_millis(500), "{longest:?} of a processor until others are answered");
    assert!(used < Duration::from_millis(1200), "{used:?} of a processor");
}

/// Everybody may have their own holders ended: the agent looks whose they are, whatever a program says that is
/// not rungate. A holder that is another by now than a listing showed is not meant.
#[test]
fn a_request_for_an_end_is_judged_by_the_agent() {
    needs_root!();
    let (site, _agent) = site();
    let launch = site.test().user("games").args(["run", "--", "matlab"]);
    let mut holder = launch.through(["env", "--default-signal"]).spawn();
    let mut root = Call::to(&site);
    root.says(&Request::Look(vec!["seats".to_owned()]));
    let Answer::Tables(tables) = root.hears() else { panic!("it shows tables") };
    let shown = &tables[0].holders[0];
    let chosen = Chosen { slot: 1, pid: shown.pid, since: shown.since };
    let evict = |chosen: Vec<Chosen>| {
        let (table, grace, kill) = ("seats".to_owned(), Duration::from_secs(600), ExpireKill::Process);
        Request::Evict(Evict { table, which: Which::These(chosen), grace, kill })
    };
    let mut stranger = Mob::of(&site, "backup");
    stranger.calls(1);
    stranger.says(&evict(vec![chosen.clone()]));
    assert_eq!(stranger.hears(), [(EXPIRED, 1)].into(), "it is told that it may not");
    assert_eq!(stranger.hears(), [(DONE, 1)].into());
    stranger.says(&evict(vec![chosen.clone(); MOST_CHOSEN + 1]));
    assert_eq!(stranger.hears(), [(FAILED, 1)].into());
    let others = [
        Chosen { slot: 2, ..chosen.clone() },
        Chosen { pid: chosen.pid + 1, ..chosen.clone() },
        Chosen { since: chosen.since + Duration::from_nanos(1), ..chosen.clone() },
    ];
    for other in others {
        root.says(&evict(vec![other]));
        assert_eq!(root.hears(), Answer::Done(true), "nobody is meant");
    }
    holder.wait_for_echo();
    root.says(&evict(vec![chosen]));
    assert!(matches!(root.hears(), Answer::Expired(_)));
    assert_eq!(root.hears(), Answer::Done(true));
    assert_eq!(holder.end().ending, Ending::Signal(2));
}

/// Stops one thread of a process, as a debugger does, until a line comes.
const STOPPER: &str = "
import ctypes, os, sys
c, thread = ctypes.CDLL(None, use_errno=True), int(sys.argv[1])
c.ptrace.argtypes = [ctypes.c_long] * 4
SEIZE, INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
assert c.ptrace(SEIZE, thread, 0, 0) == 0 and c.ptrace(INTERRUPT, thread, 0, 0) == 0
os.waitpid(thread, WALL)
print('stopped', flush=True)
sys.stdin.readline()
";

/// Stops the thread of the agent that sends signals.
#[track_caller]
fn stop_the_evictor(site: &Site, agent: &Running) -> Running {
    let threads = fs::read_dir(format!("/proc/{}/task", agent.pid())).expect("it runs");
    let mut threads = threads.map(|thread| thread.expect("a thread").path());
    let is_it = |path: &PathBuf| fs::read_to_string(path.join("comm")).expect("its name") == "evictor\n";
    let evictor = threads.find(is_it).expect("it sends signals");
    let number = evictor.file_name().expect("a number");
    let stopper = site.test().user("root").program("/usr/bin/python3");
    let mut stopper = stopper.args(["-c".as_ref(), STOPPER.as_ref(), number]).background();
    assert_eq!(stopper.read_line(), "stopped\n");
    stopper
}

/// How many descriptors a process has open.
fn descriptors(process: &Running) -> usize {
    fs::read_dir(format!("/proc/{}/fd", process.pid())).expect("it runs").count()
}

/// Waits until the agent has read all that was said before over other connections of this user.
#[track_caller]
fn is_heard(last: &mut Mob) {
    last.says(&Request::About);
    assert_eq!(last.hears(), [(ABOUT, 1)].into());
}

/// The agent opens no descriptor for a request to end a holder, while signals are still to be sent.
#[test]
fn the_end_of_one_holder_takes_no_descriptor_for_each_request() {
    const CALLS: usize = 100;
    needs_root!();
    let (site, agent) = site();
    let launch = site.test().user("bin").args(["run", "--", "free"]);
    let mut holder = launch.through(["env", "--default-signal"]).spawn();
    let [mut mob, mut last] = [CALLS, 1].map(|count| {
        let mut mob = Mob::of(&site, "bin");
        mob.calls(count);
        mob
    });
    mob.says(&Request::About);
    assert_eq!(mob.hears(), [(ABOUT, CALLS)].into());
    is_heard(&mut last);
    let mut stopper = stop_the_evictor(&site, &agent);
    let before = descriptors(&agent);
    mob.says(&sweep());
    is_heard(&mut last);
    let after = descriptors(&agent);
    assert!(after < before + CALLS / 2, "{before} descriptors before, and {after} for {CALLS} requests");
    stopper.write_line("go");
    assert_eq!(mob.hears(), [(EXPIRED, CALLS)].into(), "it gets a signal, and each request is answered");
    assert_eq!(mob.hears(), [(DONE, CALLS)].into());
    assert_eq!(holder.end().ending, Ending::Signal(2));
}

/// The evictions that a user requests over many connections take a share of the memory that is theirs. More
/// are refused with the reason, and another user may still request some.
#[test]
fn who_sweeps_over_many_connections_is_refused_when_that_takes_too_much_memory() {
    const CALLS: usize = 50;
    const MOST: u64 = 64 * 1024;
    needs_root!();
    let (site, agent) = site();
    let _heir = heir(&site, HOLDERS);
    let mut mob = Mob::of(&site, "bin");
    mob.calls(CALLS);
    mob.says(&sweep());
    let mut last = Mob::of(&site, "bin");
    last.calls(1);
    is_heard(&mut last);
    last.says(&sweep());
    assert_eq!(last.hears(), [(FAILED, 1)].into());
    let accepted: usize = mob.obeys("unheard").trim_end().parse().expect("a number");
    assert!(0 < accepted && accepted < CALLS, "{accepted} were accepted");
    others_launch(&site);
    assert!(memory_of(&agent) < MOST, "{} KiB", memory_of(&agent));
    let mut other = Mob::of(&site, "games");
    other.calls(1);
    other.says(&sweep());
    assert_eq!(other.hears(), [(EXPIRED, 1)].into(), "it hears that the holders are another user's");
}
