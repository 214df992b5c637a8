//! Launches over the agent: limits, refusals, and an agent that does not exist.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rungate::keeper::agent::message::{Request, Take};

use super::hostility::{LONG, request};
use super::{REFUSED, held, seats, waiting};
use crate::support::{Ending, Site, eventually, needs_root, set_mode};

/// The limit holds for everybody together, and a refusal says what one over lock files says.
#[test]
fn the_limit_holds_between_users() {
    needs_root!();
    let (site, _agent) = seats(2, "");
    let first = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    let second = site.test().user("nobody").args(["run", "--", "matlab"]).spawn();
    assert_eq!(held(&site), [(1, first.pid().into()), (2, second.pid().into())]);
    site.test()
        .user("games")
        .args(["run", "--", "matlab"])
        .stderr(
            r#"
            rungate: matlab: not started: the limit is reached
              seats  2 of 2 used
                  rule "seats", /etc/rungate/policy.toml:[..]
                  PID [..] games matlab, since [..]
                  PID [..] nobody matlab, since [..]
            Close one of yours, or wait in the queue: rungate run --wait 30m -- matlab
            To see why: rungate explain -- matlab
            To end the oldest of yours: rungate end seats [pid]
            "#,
        )
        .status(75);
    first.kill();
    site.test().user("games").args(["run", "--", "matlab"]).status(0);
}

/// The program still learns which slot is its own.
#[test]
fn the_program_is_told_of_its_slots() {
    needs_root!();
    let (site, _agent) = seats(2, "");
    site.script("matlab", "#!/bin/sh\necho $RUNGATE_HELD $RUNGATE_SLOT_SEATS\n");
    site.test().args(["run", "--", "matlab"]).stdout("seats=1 1\n").status(0);
}

/// A repository for each: every member has a table of its own.
#[test]
fn each_user_has_a_limit_of_their_own() {
    needs_root!();
    let (site, _agent) = seats(1, "per = \"user\"");
    let _first = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    let _second = site.test().user("nobody").args(["run", "--", "matlab"]).spawn();
    site.test().user("games").args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
}

/// No answer within 5 s is said with where and what to do.
#[test]
fn an_agent_that_cannot_be_reached_refuses() {
    needs_root!();
    let (site, agent) = seats(1, "");
    agent.kill();
    site.test()
        .user("games")
        .args(["run", "--", "matlab"])
        .stderr(
            "
            rungate: matlab: not started: the agent cannot be reached at /run/rungate-agent/socket: Connection refused
            Tell your administrator: rungate doctor agent
            ",
        )
        .status(74);
}

/// With socket activation connects succeed while a service hangs. All who ask it are as patient.
#[test]
fn an_agent_that_does_not_answer_refuses() {
    needs_root!();
    let (site, agent) = seats(1, "");
    agent.signal(Signal::SIGSTOP);
    let mut reset = site.test().args(["reset", "seats"]).background();
    site.test()
        .user("games")
        .args(["run", "--", "matlab"])
        .stderr("rungate: matlab: not started: the agent at /run/rungate-agent/socket has not answered for 5 s\n...\n")
        .status(74);
    let said = reset.end().stderr;
    assert!(said.contains("the agent at /run/rungate-agent/socket has not answered for 5 s"), "{said}");
}

/// A launch that may wait waits for the agent's answer too: one that waits in the queue, and one that could
/// not even ask. Each of them starts in its turn.
#[test]
fn who_may_wait_waits_for_an_agent_that_does_not_answer() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let waits = |user: &str| {
        let words = ["run", "-q", "--wait", "1m", "--", "matlab"];
        let mut launch = site.test().user(user).args(words).background();
        launch.write_line(user);
        launch
    };
    let mut first = waits("games");
    eventually("it waits", || (waiting(&site) == 1).then_some(()));
    agent.signal(Signal::SIGSTOP);
    let (begun, mut second) = (Instant::now(), waits("nobody"));
    eventually("the agent was silent for longer than others are patient", || {
        assert!(!first.is_zombie() && !second.is_zombie(), "{:?} {:?}", first.end(), second.end());
        (begun.elapsed() > Duration::from_secs(8)).then_some(())
    });
    agent.signal(Signal::SIGCONT);
    eventually("both wait", || (waiting(&site) == 2).then_some(()));
    drop(holder);
    assert_eq!(first.read_line(), "games\n");
    drop(first);
    assert_eq!(second.read_line(), "nobody\n");
}

/// Nobody waits for an agent for longer than for slots.
#[test]
fn who_waits_for_an_agent_in_vain_is_refused_when_the_wait_is_over() {
    needs_root!();
    let (site, agent) = seats(1, "");
    agent.signal(Signal::SIGSTOP);
    site.test()
        .args(["run", "--wait", "7s", "--", "matlab"])
        .stderr("rungate: matlab: not started: the agent at /run/rungate-agent/socket has not answered for 7 s\n...\n")
        .status(74);
}

/// `unreachable = "start"`: without a slot, logged as would-refuse.
#[test]
fn a_launch_may_start_without_the_agent_where_the_policy_says_so() {
    needs_root!();
    let (site, agent) = seats(1, "unreachable = \"start\"\n[log]\nto = \"$DIR/work/log.jsonl\"");
    let launch = site.test().args(["run", "--", "matlab"]);
    // Where the machine stands still the agent is silent for a while, and then these start without it.
    let _running = eventually("one has the slot", || {
        let running = launch.spawn();
        (held(&site) == [(1, running.pid().into())]).then_some(running)
    });
    // A refusal for the limit is never a free start.
    let refused = eventually("one is refused", || {
        Some(launch.outcome()).filter(|outcome| outcome.ending == Ending::Status(75))
    });
    assert!(
        refused.stderr.starts_with("rungate: matlab: not started: the limit is reached\n"),
        "{refused:?}"
    );
    let free_starts = || {
        let log = fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
        log.matches("\"would-refuse\"").count()
    };
    let before = free_starts();
    agent.kill();
    let _other = launch.spawn();
    assert_eq!(free_starts(), before + 1);
}

/// The launcher checks that the listener is root's.
#[test]
fn a_listener_that_is_not_roots_is_asked_nothing() {
    needs_root!();
    let (site, agent) = seats(1, "unreachable = \"start\"");
    agent.kill();
    fs::remove_file(site.agent_socket()).expect("the socket that is left");
    set_mode(&site.path("system-run/rungate-agent"), 0o777);
    let listen = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.bind('/run/rungate-agent/socket')\n\
                  s.listen()\nprint('ready',flush=True)\nsys.stdin.read()";
    let mut other = site.test().user("games").program("/usr/bin/python3").args(["-c", listen]).background();
    assert_eq!(other.read_line(), "ready\n");
    site.test()
        .args(["run", "--", "matlab"])
        .stderr("rungate: matlab: not started: /run/rungate-agent/socket is not root's agent: user [..] listens there\n...\n")
        .status(74);
}

/// An agent that is two versions newer is there: nothing is started without it, and both ends say what is
/// wrong.
#[test]
fn a_launcher_and_an_agent_of_different_versions_say_so() {
    needs_root!();
    let (site, agent) = seats(1, "unreachable = \"start\"");
    agent.kill();
    fs::remove_file(site.agent_socket()).expect("the socket that is left");
    // What an agent says to who speaks another version than its own.
    let why = "it does not support version 1";
    let newer = format!(
        "import os, socket, struct, sys\nl = socket.socket(socket.AF_UNIX)\n\
         l.bind('/run/rungate-agent/socket')\nl.listen()\nprint('ready', flush=True)\n\
         why = b'{why}'\nwhile True:\n    \
         c = l.accept()[0]\n    c.recv(65536)\n    \
         c.sendall(struct.pack('<IBBI', len(why) + 6, 3, 7, len(why)) + why)\n    c.close()\n"
    );
    let mut newer = site.test().program("/usr/bin/python3").args(["-c", &newer]).background();
    assert_eq!(newer.read_line(), "ready\n");
    let said = "the agent at /run/rungate-agent/socket uses version 3 of the protocol\n";
    let advice = "Their versions may differ by one: restart the agent after an upgrade.\n";
    site.test()
        .args(["run", "--", "matlab"])
        .stderr(&format!("rungate: matlab: not started: {said}{advice}"))
        .status(74);
    site.test().args(["list"]).stdout(&format!("seats: {said}")).status(74);
}

/// The agent judges it by the system policy itself: what a launcher makes of its own policy gives it
/// nothing.
#[test]
fn a_policy_of_the_callers_cannot_name_the_agent() {
    needs_root!();
    let site =
        Site::with_policy("[repository.a]\nkeeper = \"agent\"\nlimit = 1\n[[rule]]\nacquire = [\"a\"]\n");
    site.test()
        .args(["run", "--", "true"])
        .stderr("...\n[..] is allowed only in the system's policy, [..] [agent-outside-system-policy]\n...\n")
        .status(78);
}

/// Not started again within this time of the last start, and only root may have that forgotten.
#[test]
fn a_pause_is_kept_also_over_the_death_of_the_agent() {
    needs_root!();
    let (site, agent) = seats(3, "if_elapsed = \"1h\"");
    site.test().user("games").args(["run", "--", "matlab"]).status(0);
    let too_soon =
        "rungate: matlab: too soon: last started by games at [..] ([..] ago), next allowed at [..]\n...\n";
    site.test().args(["run", "--", "matlab"]).stderr(too_soon).status(69);
    agent.kill();
    let _agent = site.agent();
    site.test().args(["run", "--", "matlab"]).stderr(too_soon).status(69);
    let refused = "rungate: seats: the agent refuses: only root may reset [..]\n";
    site.test().user("games").args(["reset", "seats"]).stderr(refused).status(74);
    site.test().args(["reset", "seats"]).status(0);
    site.test().args(["run", "--", "matlab"]).status(0);
}

/// The agent judges by each variable of the environment under its own name.
#[test]
fn the_agent_judges_by_each_variable() {
    needs_root!();
    let of = |name: &str| {
        format!(
            "[repository.{name}]\nkeeper = \"agent\"\nlimit = 1\n\
             [[rule]]\nname = \"{name}\"\ncommands = [\"matlab\"]\nenvironment = {{ {name} = [\"yes\"] }}\n\
             acquire = [\"{name}\"]\n"
        )
    };
    let (site, _agent) = Site::with_agent(&(of("one") + &of("two")));
    site.script("matlab", "#!/bin/sh\necho $RUNGATE_HELD\n");
    for (one, two, held) in [("yes", "no", "one=1\n"), ("no", "yes", "two=1\n")] {
        site.test().env("one", one).env("two", two).args(["run", "--", "matlab"]).stdout(held).status(0);
    }
}

/// What root has forgotten stays forgotten when the agent fails.
#[test]
fn a_pause_that_was_forgotten_does_not_come_back() {
    needs_root!();
    let (site, agent) = seats(1, "if_elapsed = \"1h\"");
    site.test().args(["run", "--", "matlab"]).status(0);
    site.test().args(["run", "--", "matlab"]).stderr("rungate: matlab: too soon: [..]\n...\n").status(69);
    site.test().args(["reset", "seats"]).status(0);
    agent.kill();
    let _agent = site.agent();
    site.test().args(["run", "--", "matlab"]).status(0);
}

/// A program that cannot start leaves the last start of another one as it was, also for the next agent.
#[test]
fn a_program_that_cannot_start_leaves_the_start_before_it() {
    needs_root!();
    let (site, agent) = seats(1, "if_elapsed = \"1ms\"");
    site.test().user("games").args(["run", "--", "matlab"]).status(0);
    site.script("other", "#!/nowhere/at/all\n");
    let other = site.test().user("backup").args(["run", "--", "other"]);
    eventually("it is not too soon", || (other.outcome().ending == Ending::Status(127)).then_some(()));
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &policy.replace("\"1ms\"", "\"1h\""));
    let too_soon =
        "rungate: matlab: too soon: last started by games at [..] ([..] ago), next allowed at [..]\n...\n";
    site.test().args(["run", "--", "matlab"]).stderr(too_soon).status(69);
    agent.kill();
    let _agent = site.agent();
    site.test().args(["run", "--", "matlab"]).stderr(too_soon).status(69);
}

/// The user of the last start is named, also if a program of another user ends after it, and by the next agent.
#[test]
fn who_has_started_last_is_named_whoever_ends_later() {
    needs_root!();
    let (site, agent) = seats(2, "if_elapsed = \"1ms\"");
    let mut first = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    let second = site.test().user("backup").args(["run", "--", "matlab"]).spawn();
    first.close_stdin();
    first.end();
    eventually("its end is seen", || (held(&site) == [(2, second.pid().into())]).then_some(()));
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &policy.replace("\"1ms\"", "\"1h\""));
    let too_soon =
        "rungate: matlab: too soon: last started by backup at [..] ([..] ago), next allowed at [..]\n...\n";
    site.test().args(["run", "--", "matlab"]).stderr(too_soon).status(69);
    agent.kill();
    let _agent = site.agent();
    site.test().args(["run", "--", "matlab"]).stderr(too_soon).status(69);
}

/// When exec itself fails (126, 127), no start counts, and the slot is free again.
#[test]
fn a_program_that_cannot_start_gives_everything_back() {
    needs_root!();
    let (site, _agent) = seats(1, "if_elapsed = \"1h\"");
    site.script("matlab", "#!/nowhere/at/all\n");
    for _ in 0..2 {
        let missing = "rungate: $DIR/bin/matlab: its interpreter, or the file itself, was not found\n";
        site.test().args(["run", "--", "matlab"]).stderr(missing).status(127);
    }
    assert_eq!(held(&site), []);
}

/// A launch below a holder uses the holder's slot, if it is for the same command.
#[test]
fn a_wrapper_that_calls_its_own_shim_does_not_block_itself() {
    needs_root!();
    for (hold, last) in [("process", "exec LAUNCHER"), ("descriptor", "LAUNCHER"), ("tree", "LAUNCHER")] {
        let (site, _agent) = seats(1, &format!("hold = \"{hold}\""));
        let launcher = site.rungate().display().to_string();
        let wrapper = "#!/bin/sh\n[ \"$1\" = inner ] && exec cat\nLAST run -- matlab inner\n";
        site.script("matlab", &wrapper.replace("LAST", &last.replace("LAUNCHER", &launcher)));
        let mut running = site.test().user("games").args(["run", "--", "matlab"]).spawn();
        assert_eq!(held(&site).len(), 1, "{hold}");
        running.close_stdin();
        running.end();
        eventually("the slot is free", || held(&site).is_empty().then_some(()));
    }
}

/// Runs as a child below the launch until a process ends, and says so; its launch ends when its input does.
const BELOW: &str = "#!/bin/sh\n[ \"$1\" = inner ] && echo below && exec tail --pid \"$2\" -f /dev/null\n\
                     LAUNCHER run -- matlab inner \"$1\" </dev/null &\nread line\n";

/// The slot is kept for a launch below that uses it, also when a supervisor gives it back.
#[test]
fn a_slot_that_is_used_below_is_free_when_both_have_ended() {
    needs_root!();
    for hold in ["descriptor", "supervisor"] {
        let (site, agent) = seats(1, &format!("hold = \"{hold}\""));
        site.script("matlab", &BELOW.replace("LAUNCHER", &site.rungate().display().to_string()));
        let alive = site.test().program("/bin/cat").spawn();
        let pid = alive.pid().to_string();
        let mut running = site.test().user("games").args(["run", "--", "matlab", &pid]).background();
        assert_eq!(running.read_line(), "below\n");
        running.close_stdin();
        eventually("the launch above has ended", || running.is_zombie().then_some(()));
        assert_eq!(held(&site).len(), 1, "{hold}");
        agent.kill();
        let _agent = site.agent();
        assert_eq!(held(&site).len(), 1, "{hold}");
        drop(alive);
        eventually("the slot is free", || held(&site).is_empty().then_some(()));
    }
}

/// The same where nothing has the FIFO of the launch above any more: only the process below keeps the slot.
#[test]
fn a_slot_that_is_used_below_without_its_fifo_is_kept_over_a_restart() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let close = "for n in /proc/self/fd/*; do n=${n##*/}; [ $n -gt 2 ] && eval \"exec $n>&-\"; done";
    let script = format!(
        "#!/bin/bash\nif [ \"$1\" = inner ]; then\n{close}\necho below\nexec tail --pid \"$2\" -f /dev/null\nfi\n\
         {} run -- matlab inner \"$1\" </dev/null &\nread line\n",
        site.rungate().display(),
    );
    site.script("matlab", &script);
    let alive = site.test().program("/bin/cat").spawn();
    let (pid, hold) = (alive.pid().to_string(), ["run", "--hold", "descriptor", "--", "matlab"]);
    let mut running = site.test().user("games").args(hold.into_iter().chain([pid.as_str()])).background();
    assert_eq!(running.read_line(), "below\n");
    running.close_stdin();
    eventually("the launch above has ended", || running.is_zombie().then_some(()));
    assert_eq!(held(&site).len(), 1);
    agent.kill();
    let _agent = site.agent();
    site.test().args(["run", "--", "matlab"]).stderr("...\n").status(75);
    drop(alive);
    eventually("the slot is free", || held(&site).is_empty().then_some(()));
}

/// Takes a slot; a child that has its descriptor uses it too, and says so. After a byte of input it gives the
/// slot back as unused. The child ends with it.
const GIVES_BACK: &str = r#"
import array, os, socket, sys
messages = [open(name, "rb").read() for name in sys.argv[1:]]
def asks(message):
    c = socket.socket(socket.AF_UNIX)
    c.connect("/run/rungate-agent/socket")
    c.sendall(message)
    answer, rights, _, _ = c.recvmsg(65536, socket.CMSG_SPACE(4))
    fds = array.array("i")
    for _, _, data in rights:
        fds.frombytes(data)
    return c, fds, answer[5]
c, fds, _ = asks(messages[0])
end, keeps = os.pipe()
if os.fork() == 0:
    os.close(keeps)
    below = asks(messages[1])
    print(below[2], flush=True)
    os.read(end, 1)
    os._exit(0)
os.read(0, 1)
c.sendall(messages[2])
print(c.recv(65536)[5], flush=True)
sys.stdin.read()
"#;

/// A slot that its launch gives back as unused stays taken as long as a launch below uses it, also over a
/// restart: otherwise a user would have slots that count for no user, or use that of another one.
#[test]
fn a_slot_that_is_given_back_stays_taken_while_a_launch_below_uses_it() {
    needs_root!();
    let (site, agent) = seats(1, "hold = \"descriptor\"");
    let above = request("matlab", LONG);
    let below = Take { held: "seats=1".into(), ..above.clone() };
    let messages = [Request::Take(above), Request::Take(below), Request::GiveBack(false)];
    let names = ["above", "below", "back"].map(|name| site.path(name));
    for (name, message) in names.iter().zip(messages) {
        fs::write(name, message.frame().expect("it is short")).expect("write what is said");
        set_mode(name, 0o644);
    }
    let test = site.test().user("bin").program("/usr/bin/python3").args(["-c", GIVES_BACK]);
    let mut running = test.args(&names).background();
    assert_eq!(running.read_line(), "1\n", "the launch below is granted");
    assert_eq!(held(&site), [(1, running.pid().into())]);
    running.write_line("");
    assert_eq!(running.read_line(), "5\n", "it is done");
    let other = site.test().user("games").args(["run", "--", "matlab"]);
    other.clone().stderr(REFUSED).status(75);
    agent.kill();
    let _agent = site.agent();
    other.clone().stderr(REFUSED).status(75);
    running.close_stdin();
    eventually("the slot is free", || held(&site).is_empty().then_some(()));
    other.status(0);
}

/// One program at a time uses the slot of the launch above, whichever agent lets it.
#[test]
fn one_launch_below_uses_a_slot_after_a_restart_too() {
    needs_root!();
    for hold in ["descriptor", "tree"] {
        let (site, agent) = seats(1, &format!("hold = \"{hold}\""));
        let script = BELOW.to_owned() + "LAUNCHER run -q -- matlab inner 1\necho $?\n";
        site.script("matlab", &script.replace("LAUNCHER", &site.rungate().display().to_string()));
        let alive = site.test().program("/bin/cat").spawn();
        let pid = alive.pid().to_string();
        let mut running = site.test().user("games").args(["run", "--", "matlab", &pid]).background();
        assert_eq!(running.read_line(), "below\n");
        agent.kill();
        let _agent = site.agent();
        running.write_line("go on");
        assert_eq!(running.read_line(), "75\n", "{hold}");
    }
}

/// A process keeps its slot only for itself: a launch that it becomes, and that has to keep a slot for its
/// children too, takes its own.
#[test]
fn a_launch_that_keeps_more_than_its_process_takes_a_slot_of_its_own() {
    needs_root!();
    let (site, _agent) = seats(2, "");
    let script = "#!/bin/sh\n[ \"$1\" = inner ] || exec LAUNCHER run --hold descriptor -- matlab inner \"$1\"\n\
                  setsid tail --pid \"$2\" -f /dev/null </dev/null >/dev/null 2>&1 &\n";
    site.script("matlab", &script.replace("LAUNCHER", &site.rungate().display().to_string()));
    let alive = site.test().program("/bin/cat").spawn();
    site.test().user("games").args(["run", "--", "matlab", &alive.pid().to_string()]).status(0);
    eventually("one is free", || (held(&site).len() < 2).then_some(()));
    assert_eq!(held(&site).len(), 1, "a child keeps the other");
    drop(alive);
    eventually("both are free", || held(&site).is_empty().then_some(()));
}

/// A process that inherited the holder's descriptors, or its PID, but runs as another user joins nothing.
#[test]
fn another_user_joins_nothing() {
    needs_root!();
    for hold in ["process", "descriptor"] {
        let (site, _agent) = seats(1, &format!("hold = \"{hold}\""));
        let rungate = site.rungate().display().to_string();
        let script =
            format!("#!/bin/sh\n[ \"$1\" = inner ] && exec cat\nexec \"$@\" {rungate} run -- matlab inner\n");
        site.script("matlab", &script);
        let matlab = site.test().args(["run", "--", "matlab"]);
        matlab.clone().args(["env"]).stdin("it runs\n").stdout("it runs\n").status(0);
        matlab.args(["setpriv", "--reuid=games"]).stderr(REFUSED).status(75);
    }
}

/// Root in a namespace of its own is root, for the launcher and for the agent.
#[test]
fn root_may_launch_from_another_user_namespace() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let running =
        site.test().through(["unshare", "--user", "--map-root-user"]).args(["run", "--", "matlab"]).spawn();
    assert_eq!(held(&site), [(1, running.pid().into())]);
    site.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
}
