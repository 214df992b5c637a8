//! A peer in a foreign user namespace is judged as that namespace's owner, with the database's groups:
//! otherwise sub-uids are 65,536 users without groups. The launcher itself is refused there by what it sees,
//! so that those who ask here are clients of their own.

use std::fs;

use super::hostility::take;
use super::{held, older_kernel::older_agent, seats};
use crate::support::{Ending, Running, Site, Test, eventually, needs_root};

/// Asks what stands in a file, proves who it is where it has to, and says what the answer was.
const CLIENT: &str = r#"
import signal, socket, struct, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
c = socket.socket(socket.AF_UNIX)
c.connect("/run/rungate-agent/socket")
def message():
    size = struct.unpack("<I", c.recv(4, socket.MSG_WAITALL))[0]
    return c.recv(size, socket.MSG_WAITALL)
try:
    c.sendall(open(sys.argv[1], "rb").read())
except OSError:
    pass
answer = message()
if answer[1] == 11:
    c.sendall(struct.pack("<IBB", 18, 1, 10) + answer[2:18])
    answer = message()
print({1: "granted", 2: "refused"}.get(answer[1]) or answer[6:].decode(), flush=True)
sys.stdin.read()
"#;

const MAPPED: [&str; 3] = ["unshare", "--user", "--map-root-user"];

/// Becomes another user of its namespace, once that has users.
const SUBORDINATE: [&str; 6] = [
    "unshare",
    "--user",
    "sh",
    "-c",
    "echo here; read go; exec setpriv --reuid=7 --regid=7 --clear-groups \"$@\"",
    "sh",
];

/// A client as this user that asks for `matlab`.
fn client(site: &Site, user: &str) -> Test {
    let question = site.path("question");
    fs::write(&question, take(std::time::Duration::ZERO)).expect("write what is asked");
    site.test().user(user).program("/usr/bin/python3").args(["-c", CLIENT]).args([question])
}

/// The same as another user of a namespace like that of a rootless container: the users after the first are
/// from a range of the host's that is nobody else's.
#[track_caller]
fn subordinate(site: &Site, user: &str) -> Running {
    let mut running = client(site, user).through(SUBORDINATE).background();
    assert_eq!(running.read_line(), "here\n");
    let account = site.user(user);
    for (map, own) in [("uid_map", account.uid), ("gid_map", account.gid)] {
        let text = format!("0 {own} 1\n1 100000 65535\n");
        fs::write(format!("/proc/{}/{map}", running.pid()), text).expect("root may map users");
    }
    running.write_line("go");
    running
}

/// What `list` says of a slot is the process, and this user.
#[track_caller]
fn holds_as(site: &Site, running: &Running, user: &str) {
    assert_eq!(held(site), [(1, running.pid().into())]);
    let listed = site.test().args(["list"]).outcome().stdout;
    assert!(listed.contains(&format!(" {} {user} ", running.pid())), "{listed}");
}

#[test]
fn a_client_in_a_user_namespace_is_whoever_made_it() {
    needs_root!();
    for is_older in [false, true] {
        let (site, mut agent) = seats(1, "");
        if is_older {
            agent.kill();
            agent = older_agent(&site);
        }
        let within = || client(&site, "games").through(MAPPED).background();
        let deeper = || client(&site, "games").through(MAPPED).through(MAPPED).background();
        let kinds: [&dyn Fn() -> Running; 3] = [&within, &deeper, &|| subordinate(&site, "games")];
        for begin in kinds {
            let mut running = begin();
            assert_eq!(running.read_line(), "granted\n");
            holds_as(&site, &running, "games");
            running.kill();
            eventually("its end is seen", || held(&site).is_empty().then_some(()));
        }
        agent.kill();
    }
}

/// The groups of the process in its namespace say nothing about the user.
#[test]
fn groups_are_those_of_the_database() {
    needs_root!();
    let (site, _agent) = Site::with_agent(
        "repository.seats = { limit = 1, keeper = \"agent\" }\n\
         [[rule]]\nname = \"crew\"\ncommands = [\"matlab\"]\ngroups = [\"crew\"]\nacquire = [\"seats\"]\n",
    );
    site.account("ann", &["crew"]);
    for (through, is_of_crew) in [(&[][..], false), (&MAPPED[..], true)] {
        let mut running = client(&site, "ann").groups([]).through(through).background();
        assert_eq!(running.read_line(), "granted\n");
        assert_eq!(held(&site).len(), usize::from(is_of_crew), "{through:?}");
    }
}

/// Root's namespaces have the users of a container that root has made: they are not root, and nobody else.
#[test]
fn other_users_of_a_namespace_of_roots_are_refused() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let refused = "in a user namespace of root, the user of a launch cannot be determined\n";
    assert_eq!(subordinate(&site, "root").read_line(), refused);
    assert_eq!(held(&site), []);
    let mut running = client(&site, "root").through(MAPPED).background();
    assert_eq!(running.read_line(), "granted\n");
    holds_as(&site, &running, "root");
}

/// It signals only processes whose real uid is the holder's: those of their namespaces are theirs too.
#[test]
fn an_overdue_holder_in_a_user_namespace_is_ended() {
    needs_root!();
    let (site, _agent) = seats(1, "expire_after = \"1ms\"\nexpire_grace = \"10m\"");
    let mut running = subordinate(&site, "games");
    assert_eq!(running.read_line(), "granted\n");
    let told =
        format!("rungate: seats: ended PID {} (matlab), overdue by [age], with SIGINT\n", running.pid());
    site.test().user("backup").args(["run", "--", "matlab"]).stderr(&told).status(0);
    assert_eq!(running.end().ending, Ending::Signal(2));
}
