//! To end many holders takes the agent no longer than to end one: while it looks who has their descriptors,
//! nobody else waits for that.

use std::{fs, thread::sleep, time::Duration};

use rungate::{
    judge::terms::{claim::ExpireKill, keyword::Hold},
    keeper::agent::message::{Answer, Chosen, Evict, MOST_CHOSEN, Request, Take, Which},
};

use super::{Call, DONE, FAILED, Mob, question, site, used_by};
use crate::support::{Ending, Running, Site, needs_root, set_mode};

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
    mob.says(&Request::Evict(Evict {
        table: "free".to_owned(),
        which: Which::Overdue(Duration::ZERO),
        grace: Duration::from_secs(600),
        kill: ExpireKill::Process,
    }));
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
