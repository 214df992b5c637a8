//! Ending overdue holders needs no record: the agent has the process and the time, and is root; it signals
//! only processes whose real user is the holder's.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use nix::sys::{signal::Signal, stat::Mode};
use nix::unistd::mkfifo;
use rungate::{
    judge::terms::claim::ExpireKill,
    keeper::agent::message::{Answer, Chosen, Evict, MOST_CHOSEN, Request, Take, Which},
};

use super::hostility::{LONG, request};
use super::numbers::Caller;
use super::waiting::sleeps;
use super::{held, seats, waiter};
use crate::support::{Ending, Running, Site, Test, copy_program, eventually, given_time, needs_root};

/// Overdue at once. Who dies of the first signal has all the time that a slow machine takes for that.
const OVERDUE: &str = "expire_after = \"1ms\"\nexpire_grace = \"10m\"";

fn matlab(site: &Site, user: &str) -> Test {
    site.test().user(user).args(["run", "--", "matlab"]).through(["env", "--default-signal"])
}

fn ended(pid: i64, with: &str) -> String {
    format!("rungate: seats: ended PID {pid} (matlab), overdue by [age], with {with}\n")
}

/// With lock files only root could do that.
#[test]
fn an_overdue_holder_of_another_user_is_ended_for_whoever_comes_next() {
    needs_root!();
    for hold in ["process", "descriptor", "supervisor", "tree"] {
        let (site, _agent) = seats(1, &format!("hold = \"{hold}\"\n{OVERDUE}"));
        let mut holder = matlab(&site, "games").spawn();
        let is_a_child = hold == "supervisor" || hold == "tree";
        let program = eventually("the program is listed", || {
            let pid = held(&site)[0].1;
            (is_a_child == (pid != i64::from(holder.pid()))).then_some(pid)
        });
        matlab(&site, "backup").stderr(&ended(program, "SIGINT")).status(0);
        assert_eq!(holder.end().ending, Ending::Signal(2), "{hold}");
    }
}

/// Whoever inherited the descriptor of an overdue job keeps its slot, and is ended like it.
#[test]
fn a_child_that_was_left_behind_is_ended_too() {
    needs_root!();
    let (site, _agent) = seats(1, &format!("hold = \"descriptor\"\n{OVERDUE}"));
    site.script(
        "matlab",
        "#!/bin/sh\n[ $# = 0 ] && exec cat\nsetsid env --default-signal sleep 1000 </dev/null >/dev/null 2>&1 &\n\
         until [ \"$(cat /proc/$!/comm)\" = sleep ]; do :; done\n",
    );
    site.test().user("games").args(["run", "--", "matlab", "leave"]).status(0);
    assert_eq!(held(&site).len(), 1, "the child keeps it");
    let ended = "rungate: seats: ended PID [pid] (matlab), overdue by [age], with SIGINT\n";
    matlab(&site, "backup").stderr(ended).status(0);
}

/// A nested launch that alone keeps the slot of its ancestor is listed in its place, and is ended like any
/// holder: at a user's request, and for others when the slot is overdue, also right after its ancestor. An
/// agent that restarts knows it too.
#[test]
fn a_nested_launch_that_alone_keeps_a_slot_is_listed_and_ended() {
    needs_root!();
    for (outer_ends, restarts, at_request) in
        [(true, false, true), (true, false, false), (true, true, false), (false, false, false)]
    {
        let (site, agent) = seats(1, &format!("hold = \"supervisor\"\n{OVERDUE}"));
        let (fifo, launcher) = (site.path("fifo"), site.rungate());
        mkfifo(&fifo, Mode::from_bits_truncate(0o666)).expect("a new FIFO");
        fs::remove_file(site.path("bin/matlab")).expect("the link");
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = next ] && exit\n\
             [ \"$1\" = inner ] && echo $$ && exec env --default-signal sleep 1000\n\
             '{}' run -- matlab inner & read -r go <'{}'\n",
            launcher.display(),
            fifo.display(),
        );
        site.script("matlab", &text);
        let mut outer = matlab(&site, "games").background();
        let inner: i64 = outer.read_line().trim_end().parse().expect("a PID");
        assert!(matches!(held(&site)[..], [(1, pid)] if pid != inner), "the outer program has the slot");
        if !outer_ends {
            let next = matlab(&site, "backup").args(["next"]).outcome();
            assert_eq!(next.ending, Ending::Status(0), "{next:?}");
            let told: Vec<&str> = next.stderr.lines().collect();
            let left = "with SIGINT, but a process that it left behind keeps the slot";
            assert!(
                told.len() == 2 && told[0].ends_with(left) && told[1].ends_with("with SIGINT"),
                "{next:?}"
            );
            continue;
        }
        fs::write(&fifo, "go\n").expect("it reads");
        eventually("the outer launch has ended", || outer.is_zombie().then_some(()));
        let _agent = if restarts {
            agent.kill();
            site.agent()
        } else {
            agent
        };
        eventually("the nested launch is listed", || (held(&site) == [(1, inner)]).then_some(()));
        if at_request {
            let sweep = site.test().user("games").args(["end", "--overdue"]).outcome();
            assert_eq!(sweep.ending, Ending::Status(0), "{sweep:?}");
            assert!(sweep.stderr.contains(&format!("ended PID {inner} (matlab)")), "{sweep:?}");
        } else {
            matlab(&site, "backup").args(["next"]).stderr(&ended(inner, "SIGINT")).status(0);
        }
        eventually("the slot is free", || held(&site).is_empty().then_some(()));
    }
}

/// No set-id program: it has powers that its user has not, and others may rely on it.
#[test]
fn a_set_id_program_is_named_and_goes_on() {
    needs_root!();
    let (site, _agent) = seats(1, OVERDUE);
    // A copy: what stands there is a link to a program of the machine.
    let program = site.path("bin/matlab");
    fs::remove_file(&program).expect("the link");
    copy_program("/bin/cat", &program);
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("chmod");
    let mut holder = matlab(&site, "games").spawn();
    let users = fs::read_to_string(format!("/proc/{}/status", holder.pid())).expect("it runs");
    if !users.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0")) {
        return crate::support::skip("set-id programs do not work on this file system");
    }
    let goes_on = "rungate: seats: PID [pid] (matlab), overdue by [age], was not ended: it runs a set-user-id program\n\
                   rungate: matlab: not started: the limit is reached\n...\n";
    matlab(&site, "backup").stderr(goes_on).status(75);
    holder.wait_for_echo();
}

/// Its main thread ends, and another one goes on.
const WITHOUT_MAIN_THREAD: &str = r#"#!/usr/bin/python3
import ctypes, os, signal, threading
signal.signal(signal.SIGINT, signal.SIG_DFL)
def echo():
    while line := os.read(0, 4096):
        os.write(1, line)
    os._exit(0)
threading.Thread(target=echo).start()
ctypes.CDLL(None).syscall({"x86_64": 60}.get(os.uname().machine, 93), 0)
"#;

/// A process without its main thread looks as if it had ended, and is ended like any other.
#[test]
fn a_holder_without_its_main_thread_is_ended() {
    needs_root!();
    let (site, _agent) = seats(1, OVERDUE);
    fs::remove_file(site.path("bin/matlab")).expect("the link");
    site.script("matlab", WITHOUT_MAIN_THREAD);
    let mut holder = matlab(&site, "games").background();
    eventually("its main thread has ended", || (holder.state() == 'Z').then_some(()));
    matlab(&site, "backup").stderr(&ended(i64::from(holder.pid()), "SIGINT")).status(0);
    assert_eq!(holder.end().ending, Ending::Signal(2));
}

/// No stranger in the same group.
#[test]
fn of_a_group_only_the_holders_own_processes_are_ended() {
    needs_root!();
    let (site, _agent) = seats(1, &format!("expire_kill = \"group\"\n{OVERDUE}"));
    site.script("matlab", "#!/bin/sh\n[ $# = 0 ] || exec sleep 1000\n");
    // Root starts the launcher as the leader of a group, and somebody else's program into the same group: it
    // answers lines.
    let script = "exec 3<&0\n\
                  setpriv --reuid=nobody --clear-groups env --default-signal cat <&3 &\n\
                  exec setpriv --reuid=games --clear-groups LAUNCHER run -- matlab goes on";
    let script = script.replace("LAUNCHER", site.rungate().to_str().expect("a plain path"));
    let leads =
        site.test().program("/bin/sh").args(["-c", &script]).through(["env", "--default-signal", "setsid"]);
    let mut both = leads.background();
    both.wait_for_echo();
    eventually("the holder is listed", || (held(&site) == [(1, both.pid().into())]).then_some(()));
    matlab(&site, "backup")
        .stderr("rungate: seats: ended PID [pid] (matlab), overdue by [age], with SIGINT\n")
        .status(0);
    assert!(both.answers(), "the stranger was ended too");
    both.close_stdin();
    assert_eq!(both.end().ending, Ending::Signal(2));
}

/// `end --overdue` of what is not one's own needs root.
#[test]
fn everybody_may_sweep_what_is_their_own_and_root_everything() {
    needs_root!();
    let (site, _agent) = seats(2, OVERDUE);
    let mut of_games = matlab(&site, "games").spawn();
    let mut of_backup = matlab(&site, "backup").spawn();
    let expire =
        |user: &str, options: &[&str]| site.test().user(user).args(["end", "--overdue"]).args(options);
    let goes_on = format!(
        "rungate: seats: PID {} (matlab), overdue by [age], belongs to another user and was not ended\n",
        of_games.pid()
    );
    let would =
        |running: &Running| format!("seats: would end PID {} (matlab), overdue by [age]\n", running.pid());
    let outcome = site.test().args(["end", "--overdue", "--dry-run"]);
    outcome.stdout(&(would(&of_games) + &would(&of_backup))).status(0);
    expire("backup", &[]).stderr(&(goes_on + &ended(of_backup.pid().into(), "SIGINT"))).status(71);
    assert_eq!(of_backup.end().ending, Ending::Signal(2));
    of_games.wait_for_echo();
    site.test().args(["end", "--overdue"]).stderr(&ended(of_games.pid().into(), "SIGINT")).status(0);
    assert_eq!(of_games.end().ending, Ending::Signal(2));
    eventually("both slots are free", || held(&site).is_empty().then_some(()));
    site.test().args(["end", "--overdue"]).status(0);
}

/// A launch that is gone ends nobody any more, and the agent serves the next.
#[test]
fn whoever_dies_while_a_holder_is_ended_harms_nobody() {
    needs_root!();
    let (site, _agent) = seats(1, "expire_after = \"1ms\"\nexpire_grace = \"1h\"");
    site.script(
        "matlab",
        "#!/bin/sh\ntrap 'echo asked' INT\necho\nwhile :; do read line && echo \"$line\"; done\n",
    );
    let mut holder = matlab(&site, "games").background();
    assert_eq!(holder.read_line(), "\n");
    let mut next = matlab(&site, "backup").background();
    assert_eq!(holder.read_line(), "asked\n");
    next.signal(Signal::SIGKILL);
    next.end();
    holder.wait_for_echo();
    assert_eq!(held(&site).len(), 1);
}

/// Replaces a text of the policy.
fn edit(site: &Site, old: &str, new: &str) {
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    assert!(policy.contains(old), "{policy}");
    site.system_file("policy.toml", &policy.replace(old, new));
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs(text.trim_end_matches('s').parse().expect("seconds"))
}

/// Holders are ended by the policy as it is now, and not by that of the last request of a waiter.
#[test]
fn a_waiter_ends_nobody_by_an_earlier_policy() {
    needs_root!();
    given_time(&["4s", "20s"], |after| {
        let (site, _agent) = seats(1, &format!("expire_after = \"{after}\"\nexpire_grace = \"10m\""));
        let mut holder = matlab(&site, "games").spawn();
        let begun = Instant::now();
        let waits = waiter(&site, "backup", 1);
        waits.signal(Signal::SIGSTOP);
        eventually("it is stopped", || (waits.state() == 'T').then_some(()));
        edit(&site, after, "10h");
        let after = seconds(after);
        assert!(begun.elapsed() < after, "the machine is too slow");
        eventually("it would be overdue", || (begun.elapsed() > after).then_some(()));
        let before = sleeps(&waits);
        waits.signal(Signal::SIGCONT);
        eventually("it has beaten twice", || (sleeps(&waits) >= before + 4).then_some(()));
        holder.wait_for_echo();
    });
}

/// An edit of the policy also ends what has begun, whether the launch for which it was begun runs or not.
#[test]
fn who_is_not_overdue_any_more_gets_no_further_signal() {
    needs_root!();
    for stops in [false, true] {
        given_time(&["4s", "20s"], |grace| {
            let (site, _agent) = seats(1, &format!("expire_after = \"1ms\"\nexpire_grace = \"{grace}\""));
            site.script(
                "matlab",
                "#!/bin/sh\ntrap 'echo asked' INT\necho\nwhile :; do read line && echo \"$line\"; done\n",
            );
            let mut holder = matlab(&site, "games").background();
            assert_eq!(holder.read_line(), "\n");
            let next =
                site.test().user("backup").args(["run", "-q", "-w", "forever", "--", "matlab"]).background();
            let begun = Instant::now();
            assert_eq!(holder.read_line(), "asked\n");
            if stops {
                next.signal(Signal::SIGSTOP);
            }
            edit(&site, "expire_after = \"1ms\"", "expire_after = \"10h\"");
            let grace = seconds(grace);
            assert!(begun.elapsed() < grace / 2, "the machine is too slow");
            eventually("the grace has passed", || (begun.elapsed() > grace * 3 / 2).then_some(()));
            holder.wait_for_echo();
        });
    }
}

/// As long as a holder is being ended for a launch, no other one is ended for the same slot, however often the
/// launch shows that it waits.
#[test]
fn no_second_holder_is_ended_for_one_slot() {
    needs_root!();
    let (site, _agent) = seats(2, "expire_after = \"1ms\"\nexpire_grace = \"1h\"");
    site.script(
        "matlab",
        "#!/bin/sh\ntrap 'echo asked' INT\necho\nwhile :; do read line && echo \"$line\"; done\n",
    );
    let [mut oldest, mut other] = ["games", "backup"].map(|user| {
        let mut holder = matlab(&site, user).background();
        assert_eq!(holder.read_line(), "\n");
        holder
    });
    let mut waits = Caller::new(&site);
    waits.takes(false);
    waits.waits();
    assert_eq!(oldest.read_line(), "asked\n");
    for _ in 0..20 {
        waits.beats();
        // It would say that it was asked, as the oldest has.
        other.wait_for_echo();
    }
}

/// No holder is ended for a request that says so, however often the launch shows that it waits.
#[test]
fn a_request_may_ask_that_no_holder_is_ended() {
    needs_root!();
    let (site, _agent) = seats(1, "expire_after = \"1ms\"\nexpire_grace = \"1h\"");
    site.script(
        "matlab",
        "#!/bin/sh\ntrap 'echo asked' INT\necho\nwhile :; do read line && echo \"$line\"; done\n",
    );
    let mut holder = matlab(&site, "games").background();
    assert_eq!(holder.read_line(), "\n");
    let mut waits = Caller::new(&site);
    waits.says(&Request::Take(Take { may_end: false, ..request("matlab", LONG * 10) }));
    waits.waits();
    for _ in 0..20 {
        waits.beats();
        holder.wait_for_echo();
    }
    waits.takes(false);
    assert_eq!(waits.hears(), Answer::Anew);
    waits.waits();
    assert_eq!(holder.read_line(), "asked\n");
}

/// A request for an end means a holder as a listing showed it, and no other one with its slot or its process. It
/// names not more of them than it may.
#[test]
fn a_holder_is_ended_as_it_was_shown() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let mut holder = matlab(&site, "games").spawn();
    let mut root = Caller::new(&site);
    root.says(&Request::Look(vec!["seats".to_owned()]));
    let Answer::Tables(tables) = root.hears() else { panic!("it shows tables") };
    let shown = &tables[0].holders[0];
    let shown = Chosen { slot: 1, pid: shown.pid, since: shown.since };
    let mut end = |chosen: Vec<Chosen>| {
        let (table, grace, kill) = ("seats".to_owned(), Duration::from_secs(600), ExpireKill::Process);
        root.says(&Request::Evict(Evict { table, which: Which::These(chosen), grace, kill }));
        root.hears()
    };
    let others = [
        Chosen { slot: 2, ..shown.clone() },
        Chosen { pid: shown.pid + 1, ..shown.clone() },
        Chosen { since: shown.since + Duration::from_nanos(1), ..shown.clone() },
    ];
    assert_eq!(end(vec![others[1].clone(); MOST_CHOSEN]), Answer::Done(true));
    let said = end(vec![shown.clone(); MOST_CHOSEN + 1]);
    assert!(matches!(said, Answer::Failed(_)), "{said:?}");
    for other in others {
        assert_eq!(end(vec![other]), Answer::Done(true));
    }
    holder.wait_for_echo();
    let said = end(vec![shown]);
    assert!(matches!(said, Answer::Expired(_)), "{said:?}");
    assert_eq!(root.hears(), Answer::Done(true));
    assert_eq!(holder.end().ending, Ending::Signal(2));
}

/// A holder of slots of two repositories is ended for a launch that needs a slot of one of them.
#[test]
fn a_holder_of_two_repositories_is_ended_for_one_of_them() {
    needs_root!();
    let (site, _agent) = Site::with_agent(&format!(
        "
        [repository.other]
        keeper = \"agent\"
        limit  = 2

        [[rule]]
        name     = \"both\"
        commands = [\"matlab\"]
        acquire  = [\"other\", \"seats\"]

        [[rule]]
        name     = \"seats\"
        commands = [\"viewer\"]
        acquire  = [\"seats\"]

        [repository.seats]
        keeper = \"agent\"
        limit  = 1
        {OVERDUE}
        "
    ));
    for program in ["matlab", "viewer"] {
        site.program(program);
    }
    let mut holder = matlab(&site, "games").spawn();
    let viewer = site.test().user("backup").args(["run", "--", "viewer"]);
    viewer.stderr(&ended(holder.pid().into(), "SIGINT")).status(0);
    assert_eq!(holder.end().ending, Ending::Signal(2));
}

/// The end of one holder says nothing of another one that is ended by the same request: each gets the signals that
/// it needs.
#[test]
fn each_of_two_holders_gets_the_signals_that_it_needs() {
    needs_root!();
    let (site, _agent) = seats(2, "expire_after = \"1ms\"\nexpire_grace = \"10ms\"");
    let mut quick = matlab(&site, "games").spawn();
    site.script("other", "#!/bin/sh\ntrap '' INT TERM\necho\nwhile :; do read line; done\n");
    let mut stubborn = site.test().user("backup").args(["run", "--", "other"]).background();
    assert_eq!(stubborn.read_line(), "\n");
    let outcome = site.test().args(["end", "--overdue"]).outcome();
    let is_told = |pid: i32, command: &str, with: &str| {
        let begins = format!("rungate: seats: ended PID {pid} ({command}), overdue by ");
        outcome.stderr.lines().any(|line| line.starts_with(&begins) && line.contains(with))
    };
    assert!(is_told(quick.pid(), "matlab", ", with SIG"), "{outcome:?}");
    assert!(is_told(stubborn.pid(), "other", ", with SIGKILL"), "{outcome:?}");
    assert!(matches!(quick.end().ending, Ending::Signal(_)));
    assert_eq!(stubborn.end().ending, Ending::Signal(9));
}
