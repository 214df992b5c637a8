//! One user against the agent: what one user can do to it with default settings, from a program of their
//! own that speaks its language. Each attack is as small as it can be and still be seen, and nothing but the
//! attacker feels it.

mod delegated;
mod ends;
mod ends_together;
pub(super) mod figures;
mod lost_turn;
mod memory;
mod name_service;
mod overdue;
mod sweeps;
mod together;
mod unreachable_socket;

use std::{collections::BTreeMap, fs, io::Write, os::unix::net::UnixStream, path::PathBuf, time::Duration};

use rungate::{
    judge::terms::{keyword::Hold, span_of_time::Wait},
    keeper::agent::{
        frame::Inbox,
        message::{Answer, Request, Take},
    },
};

use super::hostility::{LONG, answer};
use crate::support::{Running, Site, set_mode};

/// The numbers of answers on the wire.
const GRANTED: u8 = 1;
const REFUSED: u8 = 2;
const WAITS: u8 = 3;
const DONE: u8 = 5;
const TABLES: u8 = 6;
const FAILED: u8 = 7;
const ABOUT: u8 = 10;
const ANEW: u8 = 12;
const FAULTY: u8 = 14;

/// Obeys orders from its standard input, one in a line, and answers each with a line. `call N`: connects N
/// times more. `say FILE`: says what is in the file over each connection. `until FILE MS`: asks over each
/// connection what is in the file, a question with a wait, for as long as it takes until the same moment, in
/// so many milliseconds. `hear`: waits for an answer over each connection, and counts them by their numbers;
/// 0 is the end of the connection. `end`: the same, for the first answer that does not say that it waits.
/// `unheard`: says over how many connections no answer has come. `drop`: hangs up. `listen NUMBER COUNT`: waits over each connection for so many answers of this number, or
/// its end.
const MOB: &str = r#"
import resource, select, socket, sys, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
calls = []
def say(c, said):
    try:
        c.sendall(said)
    except OSError:
        pass
def some(c, count):
    got = b""
    while len(got) < count:
        try:
            part = c.recv(min(count - len(got), 1 << 20))
        except OSError:
            part = b""
        if not part:
            return None
        got += part
    return got
def hear(c):
    head = some(c, 4)
    body = head and some(c, int.from_bytes(head, "little"))
    return body[1] if body else 0
for line in sys.stdin:
    verb, *words = line.split()
    told = ["done"]
    if verb == "call":
        for _ in range(int(words[0])):
            c = socket.socket(socket.AF_UNIX)
            c.connect("/run/rungate-agent/socket")
            calls.append(c)
    elif verb == "say":
        said = open(words[0], "rb").read()
        for c in calls:
            say(c, said)
    elif verb == "until":
        said = open(words[0], "rb").read()
        moment = time.monotonic_ns() + int(words[1]) * 1000000
        written = (int(words[1]) * 1000000).to_bytes(8, "little")
        assert said.count(written) == 1
        for c in calls:
            wait = max(0, moment - time.monotonic_ns())
            say(c, said.replace(written, wait.to_bytes(8, "little")))
    elif verb in ("hear", "end"):
        heard = [hear(c) for c in calls]
        while verb == "end" and 3 in heard:
            heard = [hear(c) if kind == 3 else kind for c, kind in zip(calls, heard)]
        told = [f"{kind}:{heard.count(kind)}" for kind in sorted(set(heard))]
    elif verb == "unheard":
        told = [str(sum(not select.select([c], [], [], 0)[0] for c in calls))]
    elif verb == "listen":
        for c in calls:
            heard = None
            left = int(words[1])
            while left and heard != 0:
                heard = hear(c)
                left -= heard == int(words[0])
    elif verb == "drop":
        for c in calls:
            c.close()
        calls = []
    print(*told, flush=True)
"#;

/// Many connections of one process of one user.
struct Mob {
    process: Running,
    message: PathBuf,
}

impl Mob {
    #[track_caller]
    fn of(site: &Site, user: &str) -> Self {
        let process = site.test().user(user).program("/usr/bin/python3").args(["-c", MOB]).background();
        let message = site.path(format!("said by {}", process.pid()).replace(' ', "-"));
        Self { process, message }
    }

    #[track_caller]
    fn obeys(&mut self, order: &str) -> String {
        self.process.write_line(order);
        self.process.read_line()
    }

    /// Connects so often.
    #[track_caller]
    fn calls(&mut self, count: usize) {
        assert_eq!(self.obeys(&format!("call {count}")), "done\n");
    }

    /// Waits over each connection for so many answers of this number, or its end.
    #[track_caller]
    fn listens(&mut self, kind: u8, count: usize) {
        assert_eq!(self.obeys(&format!("listen {kind} {count}")), "done\n");
    }

    /// Hangs up.
    #[track_caller]
    fn hangs_up(&mut self) {
        assert_eq!(self.obeys("drop"), "done\n");
    }

    #[track_caller]
    fn write(&self, requests: &[Request]) {
        let frames = requests.iter().flat_map(|request| request.frame().expect("it is not too long"));
        fs::write(&self.message, frames.collect::<Vec<u8>>()).expect("write what is said");
        set_mode(&self.message, 0o644);
    }

    /// Says this over each connection.
    #[track_caller]
    fn says(&mut self, request: &Request) {
        self.says_all(std::slice::from_ref(request));
    }

    /// The same of several messages.
    #[track_caller]
    fn says_all(&mut self, requests: &[Request]) {
        self.write(requests);
        let order = format!("say {}", self.message.display());
        assert_eq!(self.obeys(&order), "done\n");
    }

    /// Asks over each connection, and waits until the same moment over all of them.
    #[track_caller]
    fn asks_until(&mut self, take: Take, moment: Duration) {
        self.write(&[Request::Take(Take { wait: Some(Wait::For(moment)), ..take })]);
        let order = format!("until {} {}", self.message.display(), moment.as_millis());
        assert_eq!(self.obeys(&order), "done\n");
    }

    /// Waits for an answer over each connection: how many of each number.
    #[track_caller]
    fn hears(&mut self) -> BTreeMap<u8, usize> {
        self.counts("hear")
    }

    /// The same for what it waits for in the end.
    #[track_caller]
    fn ends_with(&mut self) -> BTreeMap<u8, usize> {
        self.counts("end")
    }

    #[track_caller]
    fn counts(&mut self, order: &str) -> BTreeMap<u8, usize> {
        let line = self.obeys(order);
        let pair = |word: &str| {
            let (kind, count) = word.split_once(':').expect(&line);
            (kind.parse().expect(&line), count.parse().expect(&line))
        };
        line.split_whitespace().map(pair).collect()
    }
}

/// A conversation.
struct Call {
    connection: UnixStream,
    inbox: Inbox,
}

impl Call {
    #[track_caller]
    fn to(site: &Site) -> Self {
        let connection = UnixStream::connect(site.agent_socket()).expect("the agent accepts");
        connection.set_read_timeout(Some(LONG)).expect("a time");
        Self { connection, inbox: Inbox::default() }
    }

    #[track_caller]
    fn says(&mut self, request: &Request) {
        self.connection.write_all(&request.frame().expect("it is short")).expect("the agent reads");
    }

    #[track_caller]
    fn hears(&mut self) -> Answer {
        answer(&mut self.connection, &mut self.inbox)
    }
}

/// A question for this command, which may wait for as long as it takes.
pub(super) fn question(command: &str) -> Take {
    let path = format!("/usr/bin/{command}");
    Take {
        typed: command.into(),
        path: path.clone().into(),
        canonical: path.into(),
        directory: "/".into(),
        arguments: Vec::new(),
        environment: Vec::new(),
        held: "".into(),
        hold: Hold::Process,
        wait: Some(Wait::Forever),
        may_end: true,
        is_again: false,
        opened: None,
        through: None,
    }
}

/// A site with `matlab`, of which there is one at a time, and `free`, of which there are a thousand.
fn site() -> (Site, Running) {
    let of = |name: &str, command: &str, limit: u32| {
        format!(
            "[repository.{name}]\nkeeper = \"agent\"\nlimit = {limit}\n\
             [[rule]]\nname = \"{name}\"\ncommands = [\"{command}\"]\nacquire = [\"{name}\"]\n"
        )
    };
    let (site, agent) = Site::with_agent(&(of("seats", "matlab", 1) + &of("free", "free", 1000)));
    for name in ["matlab", "free"] {
        site.program(name);
    }
    (site, agent)
}

/// Somebody else launches what is free.
#[track_caller]
fn others_launch(site: &Site) {
    site.test().user("games").args(["run", "--", "free"]).status(0);
}

/// How much of a processor a process has used. That is the same on a machine with much else to do, and while
/// it is used nobody else is heard.
pub(super) fn used_by(process: &Running) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid())).expect("it runs");
    let fields = stat.rsplit_once(") ").expect("a name in parentheses").1.split(' ');
    // The fields after the name begin with the third; a hundred ticks are a second.
    let ticks = fields.skip(14 - 3).take(2).map(|field| field.parse::<u64>().expect("a number"));
    Duration::from_millis(10 * ticks.sum::<u64>())
}
