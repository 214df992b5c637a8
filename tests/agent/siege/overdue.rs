//! "`expire_after`" holds for whoever has a slot, whatever keeps it, and whatever its process has or has not
//! below it.

use std::fs;

use rungate::keeper::agent::message::{Request, Take};

use super::question;
use crate::{
    agent::{held, seats},
    support::{Ending, Outcome, Running, Site, Test, eventually, needs_root, set_mode},
};

/// Asks for a slot and keeps the descriptor that comes with it: `open`, or in the queue of a socket that
/// nobody reads. With `leave` its child keeps that socket, which has no descriptor of it, and it ends itself.
const KEEPER: &str = r#"
import array, os, socket, sys
c = socket.socket(socket.AF_UNIX)
c.connect("/run/rungate-agent/socket")
c.sendall(open(sys.argv[1], "rb").read())
_, rights, _, _ = c.recvmsg(65536, socket.CMSG_SPACE(4))
fds = array.array("i")
for _, _, data in rights:
    fds.frombytes(data)
how = sys.argv[2]
if how != "open":
    queue = socket.socketpair(socket.AF_UNIX)
    queue[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    os.close(fds[0])
if how == "leave" and os.fork():
    os._exit(0)
if how == "leave":
    os.setsid()
    c.close()
print("kept", flush=True)
sys.stdin.read()
"#;

/// A keeper of the one seat, whose hold the policy gives.
#[track_caller]
fn keeper(site: &Site, how: &str) -> Running {
    let message = site.path("question");
    let take = Take { typed: "matlab".into(), ..question("matlab") };
    fs::write(&message, Request::Take(take).frame().expect("it is short")).expect("write what is said");
    set_mode(&message, 0o644);
    let test = site.test().user("bin").program("/usr/bin/python3").args(["-c", KEEPER]);
    let test = test.args([message.as_os_str(), how.as_ref()]).through(["env", "--default-signal"]);
    let mut keeper = test.background();
    assert_eq!(keeper.read_line(), "kept\n");
    assert_eq!(held(site), [(1, keeper.pid().into())]);
    keeper
}

fn matlab(site: &Site) -> Test {
    site.test().user("games").args(["run", "--", "matlab"])
}

/// What would be ended is a child of the process that asked, or what has its descriptor open. Where there is
/// neither it is the process itself.
#[test]
fn who_takes_a_slot_and_has_no_child_is_ended_itself() {
    needs_root!();
    for hold in ["process", "descriptor", "supervisor", "tree"] {
        for how in ["open", "queue"] {
            // Without the process nothing comes beside the answer.
            if (hold, how) == ("process", "queue") {
                continue;
            }
            for sweep in [true, false] {
                let more = format!("hold = \"{hold}\"\nexpire_after = \"1ms\"\nexpire_grace = \"1s\"");
                let (site, _agent) = seats(1, &more);
                let mut keeper = keeper(&site, how);
                let test = if sweep { site.test().args(["end", "--overdue"]) } else { matlab(&site) };
                let outcome = test.outcome();
                let case = format!("{hold}, {how}: {outcome:?}");
                assert_eq!(outcome.ending, Ending::Status(0), "{case}");
                assert!(outcome.stderr.contains("ended PID"), "{case}");
                assert!(matches!(keeper.end().ending, Ending::Signal(_) | Ending::Status(1 | 130)), "{case}");
            }
        }
    }
}

/// Nobody can be found who has it: that is what is said, and not that it is somebody else's.
#[test]
fn of_a_slot_that_nobody_is_seen_to_keep_nothing_is_said_that_is_not_true() {
    needs_root!();
    let (site, _agent) = seats(1, "hold = \"descriptor\"\nexpire_after = \"1ms\"\nexpire_grace = \"1ms\"");
    let _keeper = keeper(&site, "leave");
    for user in ["root", "bin"] {
        let end = site.test().user(user).args(["end", "--overdue"]);
        // To find nobody takes a look at all processes, and there may be many of other tests.
        let patient = |outcome: &Outcome| !outcome.lost_its_patience();
        let outcome = eventually("the agent answers", || Some(end.outcome()).filter(patient));
        assert_eq!(outcome.ending, Ending::Status(71), "{outcome:?}");
        assert!(!outcome.stderr.contains("another user"), "{}", outcome.stderr);
    }
    eventually("it is kept", || (held(&site).len() == 1).then_some(()));
}
