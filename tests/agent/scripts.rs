//! `rungate acquire` with slots of the agent, as rungate-acquire(1) says: a FIFO that the script has opened keeps
//! them.

use std::{
    fs,
    io::Write,
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        net::UnixStream,
    },
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rungate::keeper::agent::{
    frame::Inbox,
    message::{Answer, Request, Take},
};

use super::{
    held,
    hostility::{LONG, answer, request},
    listing,
};
use crate::support::{Ending, Outcome, Running, Site, eventually, needs_root, needs_strace};

const POLICY: &str = r#"
    [repository.seats]
    keeper = "agent"
    limit  = 1

    [repository.board]
    limit = 1

    [repository.tree]
    keeper = "agent"
    limit  = 1
    hold   = "tree"

    [repository.pause]
    keeper     = "agent"
    limit      = 1
    if_elapsed = "1h"

    [[rule]]
    name     = "seats"
    commands = ["deploy", "both"]
    acquire  = ["seats"]

    [[rule]]
    name     = "board"
    commands = ["both", "flash"]
    acquire  = ["board"]

    [[rule]]
    name     = "tree"
    commands = ["tree"]
    acquire  = ["tree"]

    [repository.other]
    keeper = "agent"
    limit  = 1

    [[rule]]
    name     = "other"
    commands = ["other"]
    acquire  = ["other"]

    [[rule]]
    name     = "pause"
    commands = ["pause"]
    acquire  = ["pause"]
    "#;

fn site() -> (Site, Running) {
    let (site, agent) = Site::with_agent(POLICY);
    site.rungate_in_bin();
    (site, agent)
}

/// A shell of this user that does what it reads.
fn shell(site: &Site, user: &str) -> Running {
    site.test().user(user).program("/bin/bash").background()
}

/// Has the shell do something, and gives its status.
#[track_caller]
fn have(shell: &mut Running, what: &str) -> String {
    shell.write_line(&format!("{what}\necho \"status $?\""));
    shell.read_line()
}

fn outcome(site: &Site, script: &str) -> Outcome {
    site.test().user("games").program("/bin/bash").args(["-c", script]).outcome()
}

/// The processes that hold slots of a repository.
fn holders(site: &Site, name: &str) -> Vec<i64> {
    let listed = listing(&site.test());
    let of_it = listed.iter().find(|one| one["repository"] == name);
    let holders = of_it.and_then(|one| one["holders"].as_array()).into_iter().flatten();
    holders.filter_map(|holder| holder["pid"].as_i64()).collect()
}

const OPEN: &str = "exec 9<\"$(rungate acquire --path deploy)\"";
const LOCK: &str = "exec 9<\"$(rungate acquire --path deploy)\" && rungate acquire --fd 9 deploy";
const OPEN_BOTH: &str = "{ read -r a; read -r b; } < <(rungate acquire --path both); exec 7<\"$a\" 8<\"$b\"";
const BOTH: &str = "rungate acquire --fd 7 --fd 8 both 2>/dev/null";

/// The slots are free again when the last process that inherited the descriptor has closed it or ended. The script
/// is the holder, whatever process asked for it.
#[test]
fn a_descriptor_of_a_script_keeps_the_slot_until_it_is_closed() {
    needs_root!();
    let (site, _agent) = site();
    let mut first = shell(&site, "games");
    let mut second = shell(&site, "daemon");
    for _ in 0..2 {
        assert_eq!(have(&mut first, LOCK), "status 0\n");
        assert_eq!(held(&site), [(1, first.pid().into())]);
        // What the agent has not heard of a start for it releases for the next request of the same process.
        let saved = fs::read_dir(site.agent_state().join("holdings")).expect("holdings");
        let saved: Vec<_> = saved.map(|file| file.expect("a file").path()).collect();
        assert!(saved.len() == 1 && saved[0].extension().is_some_and(|end| end == "started"), "{saved:?}");
        assert_eq!(have(&mut second, &format!("{LOCK} 2>/dev/null")), "status 75\n");
        assert_eq!(have(&mut first, "exec 9<&-"), "status 0\n");
        eventually("it is closed", || held(&site).is_empty().then_some(()));
    }
    assert_eq!(have(&mut first, &format!("{OPEN}; out=$(:; rungate acquire --fd 9 deploy)")), "status 0\n");
    assert_eq!(held(&site), [(1, first.pid().into())], "a subshell asked");
    assert_eq!(have(&mut first, "sleep 1000 & exec 9<&-"), "status 0\n");
    assert_eq!(have(&mut second, &format!("{LOCK} 2>/dev/null")), "status 75\n", "a child inherited it");
    assert_eq!(have(&mut first, "kill $!; wait; :"), "status 0\n");
    eventually("the child has ended", || held(&site).is_empty().then_some(()));
    assert_eq!(have(&mut first, LOCK), "status 0\n");
    first.kill();
    eventually("the script was killed", || held(&site).is_empty().then_some(()));
    assert_eq!(have(&mut second, LOCK), "status 0\n");
    let left = fs::read_dir(site.path("system-run/rungate-agent/open")).expect("folders of users");
    let files = left.flat_map(|user| fs::read_dir(user.expect("a folder").path()).expect("its FIFOs"));
    assert_eq!(files.count(), 4, "the one that keeps the slot, and those of a script that was refused");
}

/// A script waits in the queue among launches, and its FIFO keeps the slots over the death of the agent.
#[test]
fn a_script_waits_and_keeps_its_slot_when_the_agent_fails() {
    needs_root!();
    let (site, agent) = site();
    let mut first = shell(&site, "games");
    assert_eq!(have(&mut first, LOCK), "status 0\n");
    let mut second = shell(&site, "daemon");
    second
        .write_line(&format!("{OPEN}; rungate acquire --fd 9 -w 1h deploy 2>/dev/null; echo \"status $?\""));
    eventually("it waits", || (super::waiting(&site) == 1).then_some(()));
    agent.kill();
    let agent = site.agent();
    assert_eq!(held(&site), [(1, first.pid().into())]);
    eventually("it waits again", || (super::waiting(&site) == 1).then_some(()));
    assert_eq!(have(&mut first, "exec 9<&-"), "status 0\n");
    assert_eq!(second.read_line(), "status 0\n");
    assert_eq!(held(&site), [(1, second.pid().into())]);
    // Opened under one agent, used under the next.
    assert_eq!(have(&mut first, OPEN), "status 0\n");
    agent.kill();
    drop(second);
    let _agent = site.agent();
    eventually("it ended while there was no agent", || held(&site).is_empty().then_some(()));
    assert_eq!(have(&mut first, "rungate acquire --fd 9 deploy"), "status 0\n");
    assert_eq!(held(&site), [(1, first.pid().into())]);
}

/// The FIFO of a script that waits stays, whatever the user opens while the script does not call the next agent.
#[test]
fn the_fifo_of_a_script_stays_until_it_calls_the_next_agent() {
    needs_root!();
    let (site, agent) = site();
    let mut first = shell(&site, "games");
    assert_eq!(have(&mut first, LOCK), "status 0\n");
    let mut second = shell(&site, "games");
    second
        .write_line(&format!("{OPEN}; rungate acquire --fd 9 -w 1h deploy 2>/dev/null; echo \"status $?\""));
    eventually("it waits", || (super::waiting(&site) == 1).then_some(()));
    let listed = listing(&site.test());
    let seats = listed.iter().find(|one| one["repository"] == "seats").expect("it is used");
    let waiter = seats["waiting"][0]["pid"].as_i64().expect("a waiter");
    let waiter = Pid::from_raw(waiter.try_into().expect("a process"));
    kill(waiter, Signal::SIGSTOP).expect("it lives");
    let is_stopped = || {
        let status = fs::read_to_string(format!("/proc/{waiter}/status")).expect("it lives");
        status.contains("State:\tT").then_some(())
    };
    eventually("it is stopped", is_stopped);
    agent.kill();
    let _agent = site.agent();
    let flood = "for i in {1..80}; do rungate acquire --path deploy; done | wc -l";
    assert_eq!(outcome(&site, flood).stdout, "80\n");
    let path = fs::read_link(format!("/proc/{}/fd/9", second.pid())).expect("a FIFO");
    let folder = site.path("system-run/rungate-agent/open").join(site.user("games").uid.to_string());
    let name = path.file_name().expect("a name");
    assert!(folder.join(name).exists(), "it is removed");
    kill(waiter, Signal::SIGCONT).expect("it lives");
    assert_eq!(have(&mut first, "exec 9<&-"), "status 0\n");
    assert_eq!(second.read_line(), "status 0\n");
    assert_eq!(held(&site), [(1, second.pid().into())]);
}

/// Killed at any of the calls by which it forgets a script that ends, or that has ended, the agent leaves what
/// the next one can start with.
#[test]
fn an_agent_killed_while_it_forgets_a_script_starts_again() {
    needs_root!();
    needs_strace!();
    let (site, mut agent) = site();
    let files = || fs::read_dir(site.agent_state().join("holdings")).expect("holdings").count();
    for is_seen in [true, false] {
        // The last one is not killed: there is no further call.
        for nth in 1.. {
            let mut script = shell(&site, "games");
            assert_eq!(have(&mut script, LOCK), "status 0\n");
            let fifo = fs::read_link(format!("/proc/{}/fd/9", script.pid())).expect("a FIFO");
            let fifo = site.path("system-run").join(fifo.strip_prefix("/run").expect("it is there"));
            assert!(fifo.exists(), "{fifo:?}");
            agent.kill();
            let mut ends = || {
                script.close_stdin();
                script.end()
            };
            if !is_seen {
                ends();
            }
            let inject = format!("inject=/^unlink:signal=SIGKILL:when={nth}");
            let strace = ["strace", "-D", "-qq", "-o", "/dev/null", "-e", &inject];
            let next = site.test().rungate_agent();
            let next = next.through(strace).background();
            if is_seen {
                let answers = || site.asks_the_agent().is_ok();
                eventually("it answers or was killed", || (next.is_zombie() || answers()).then_some(()));
                ends();
            }
            eventually("it has forgotten the script or was killed", || {
                (next.is_zombie() || !fifo.exists() && files() == 0).then_some(())
            });
            let was_killed = next.is_zombie();
            next.kill();
            agent = site.agent();
            eventually("nothing is left", || (held(&site).is_empty() && files() == 0).then_some(()));
            if !was_killed {
                assert!(nth > 3, "{nth}");
                break;
            }
        }
    }
}

/// It takes all slots or none, of the agent and of lock files, and may try again with the same descriptors.
#[test]
fn all_or_none_of_both_keepers() {
    needs_root!();
    let (site, _agent) = site();
    let mut first = shell(&site, "games");
    let mut second = shell(&site, "daemon");
    let own = [i64::from(first.pid())];
    assert_eq!(have(&mut first, OPEN_BOTH), "status 0\n");
    for command in ["deploy", "flash"] {
        assert_eq!(have(&mut second, &LOCK.replace("deploy", command)), "status 0\n");
        assert_eq!(have(&mut first, BOTH), "status 75\n", "{command}");
        let holders = (holders(&site, "seats"), holders(&site, "board"));
        assert!(!holders.0.contains(&own[0]) && !holders.1.contains(&own[0]), "{command}: {holders:?}");
        assert_eq!(have(&mut second, "exec 9<&-"), "status 0\n");
    }
    eventually("it is free", || (have(&mut first, BOTH) == "status 0\n").then_some(()));
    assert_eq!((holders(&site, "seats"), holders(&site, "board")), (own.to_vec(), own.to_vec()));
    // As flock does.
    assert_eq!(have(&mut first, BOTH), "status 0\n");
    assert_eq!(have(&mut first, "exec 7<&- 8<&-"), "status 0\n");
    eventually("both are free", || {
        (holders(&site, "seats").is_empty() && holders(&site, "board").is_empty()).then_some(())
    });
}

/// It changes nothing if the descriptor keeps what the command needs already, and refuses to add to that.
#[test]
fn what_is_held_already_is_enough() {
    needs_root!();
    let (site, _agent) = site();
    let mut first = shell(&site, "games");
    for command in ["deploy", "deploy", "pause"] {
        let status = if command == "pause" { 64 } else { 0 };
        let open = if first_time(&site) { format!("{OPEN} && ") } else { String::new() };
        let ask = format!("{open}rungate acquire --fd 9 {command} 2>/dev/null");
        assert_eq!(have(&mut first, &ask), format!("status {status}\n"), "{command}");
        assert_eq!(holders(&site, "seats"), [i64::from(first.pid())]);
        assert_eq!(holders(&site, "pause"), [0; 0]);
    }
    // Another FIFO of the same script keeps nothing yet.
    let other = OPEN.replace('9', "8");
    assert_eq!(
        have(&mut first, &format!("{other}; rungate acquire --fd 8 deploy 2>/dev/null")),
        "status 75\n"
    );
}

fn first_time(site: &Site) -> bool {
    holders(site, "seats").is_empty()
}

/// A launch of the same command below the script uses the slot of the script if it learns of it; one that only says
/// so does not.
#[test]
fn a_launch_below_joins() {
    needs_root!();
    let (site, _agent) = site();
    site.copy_of("/bin/true", "deploy");
    let join = format!(
        "{OPEN}; env=$(rungate acquire --fd 9 --export deploy) || exit; eval \"$env\"; echo $RUNGATE_HELD; \
         rungate run -- deploy || exit; (exec 9<&-; rungate run -q -- deploy)"
    );
    let Outcome { stdout, stderr, ending } = outcome(&site, &join);
    assert_eq!((stdout.as_str(), stderr.as_str(), ending), ("seats=1\n", "", Ending::Status(75)));
}

/// Slots that are given back because the variables could not be printed begin no pause, and the FIFO can be used again.
#[test]
fn variables_that_cannot_be_printed_begin_no_pause() {
    needs_root!();
    let (site, _agent) = site();
    let script = "exec 9<\"$(rungate acquire --path pause)\"; rungate acquire --fd 9 --export pause >/dev/full; \
                  rungate acquire --fd 9 pause; echo $?; rungate acquire --path pause >/dev/null; exec 9<&-; \
                  exec 9<\"$(rungate acquire --path pause)\"; rungate acquire --fd 9 pause";
    let Outcome { stdout, stderr, ending } = outcome(&site, script);
    assert_eq!((stdout.as_str(), ending), ("0\n", Ending::Status(69)), "{stderr}");
    assert!(stderr.contains("too soon"), "{stderr}");
}

/// So do those that are given back because the process that was to read the variables has ended.
#[test]
fn variables_that_no_process_reads_begin_no_pause() {
    needs_root!();
    for (handler, status) in [("-", 128 + 13), ("''", 71)] {
        let (site, _agent) = site();
        let script = format!(
            "exec 9<\"$(rungate acquire --path pause)\"; trap {handler} PIPE; exec 8> >(:); wait $!; \
             rungate acquire --fd 9 --export pause >&8; echo $?; exec 8>&-; exec 7<\"$(rungate acquire --path pause)\"; \
             rungate acquire --fd 7 pause; echo $?"
        );
        let Outcome { stdout, stderr, .. } = outcome(&site, &script);
        assert_eq!(stdout, format!("{status}\n0\n"), "{stderr}");
    }
}

/// The command of a script may end before it reads that it has slots: then they are free, and the FIFO can be used
/// again. They stay if the script was told of them by the first command, or by the next one.
#[test]
fn slots_that_a_script_does_not_know_of_are_free() {
    needs_root!();
    let (site, _agent) = site();
    let mut script = site.test().program("/bin/bash").background();
    let connected = || UnixStream::connect(site.agent_socket()).expect("the agent accepts");
    let granted = |opened| {
        let hold = rungate::judge::terms::keyword::Hold::Descriptor;
        let (mut command, take) = (connected(), Take { hold, opened, ..request("deploy", LONG) });
        let said = answered(&mut command, &Request::Take(take));
        assert!(matches!(said, Answer::Granted(_)), "{said:?}");
        command
    };
    for is_told_by_next in [false, true] {
        assert_eq!(have(&mut script, OPEN), "status 0\n");
        let path = fs::read_link(format!("/proc/{}/fd/9", script.pid())).expect("a FIFO");
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        let opened: u64 = name.parse().expect("a number");
        for _ in 0..2 {
            drop(granted(Some(opened)));
            eventually("it is free, although the FIFO is open", || held(&site).is_empty().then_some(()));
        }
        let mut command = granted(Some(opened));
        if is_told_by_next {
            let said = answered(&mut connected(), &Request::Keeps(opened));
            assert!(matches!(said, Answer::Granted(_)), "{said:?}");
        } else {
            command.write_all(&Request::Started.frame().expect("it is short")).expect("the agent reads");
        }
        drop(command);
        // Meanwhile the agent reads that the connection is closed.
        for _ in 0..10 {
            assert_eq!(held(&site).len(), 1);
        }
        assert_eq!(have(&mut script, "exec 9<&-"), "status 0\n");
        eventually("it is closed", || held(&site).is_empty().then_some(()));
    }
}

/// A command is killed while it prints the variables: the script has not read them, so the slots are free.
#[test]
fn slots_whose_variables_were_not_printed_are_free() {
    needs_root!();
    let (site, _agent) = site();
    let mut script = shell(&site, "games");
    assert_eq!(have(&mut script, OPEN), "status 0\n");
    // A pipe that is full, and that no process reads: the script has both ends.
    let fill = "dd if=/dev/zero of=/dev/fd/8 bs=4096 oflag=nonblock 2>/dev/null";
    assert_eq!(have(&mut script, &format!("exec 8<> <(:); {fill}")), "status 1\n");
    script.write_line("rungate acquire --fd 9 --export deploy >&8 & wait $!; echo \"status $?\"");
    eventually("it has the slot", || (held(&site).len() == 1).then_some(()));
    let children = format!("/proc/{0}/task/{0}/children", script.pid());
    let command = eventually("it writes", || {
        let children = fs::read_to_string(&children).expect("the script lives");
        let mut pids = children.split_ascii_whitespace().map(|pid| pid.parse::<i32>().expect("a process"));
        pids.find(|pid| {
            fs::read_to_string(format!("/proc/{pid}/wchan")).is_ok_and(|call| call.contains("pipe"))
        })
    });
    kill(Pid::from_raw(command), Signal::SIGKILL).expect("it lives");
    assert_eq!(script.read_line(), "status 137\n");
    eventually("the slot is free, although the FIFO is open", || held(&site).is_empty().then_some(()));
}

/// What cannot keep a slot is refused with a reason, and nothing is taken.
#[test]
fn what_cannot_keep_a_slot_is_refused() {
    needs_root!();
    let (site, agent) = site();
    let refused = |script: &str, status: i32, text: &str| {
        let Outcome { stderr, ending, .. } = outcome(&site, script);
        assert_eq!(ending, Ending::Status(status), "{script}: {stderr}");
        assert!(stderr.contains(text), "{script}: {stderr}");
        assert_eq!(holders(&site, "seats"), [0; 0]);
    };
    let path = "p=$(rungate acquire --path deploy);";
    refused("exec 9</etc/passwd; rungate acquire --fd 9 deploy", 64, "is not open for a lock file of this");
    refused("exec 9>/dev/null; rungate acquire --fd 9 deploy", 64, "is not open for a file");
    refused("exec 9>x; rungate acquire --fd 9 deploy", 64, "is open only to write");
    refused("rungate acquire --fd 9 deploy", 64, "is not open:");
    refused(
        &format!("{path} exec 9<$p; rungate acquire --fd 9 flash"),
        64,
        "is not open for a lock file of this",
    );
    refused(
        &format!("{path} exec 9<$p 8<$p; rungate acquire --fd 9 --fd 8 deploy"),
        64,
        "descriptor 8 is not open",
    );
    refused(
        "exec 9<\"$(rungate acquire --path flash)\"; rungate acquire --fd 9 both",
        74,
        "open for the agent",
    );
    let of_agent = "exec 9<\"$(rungate acquire --path both | tail -1)\"; rungate acquire --fd 9 both";
    refused(of_agent, 74, "none of the descriptors given");
    refused(
        &format!("{path} exec 9<$p; rungate acquire --fd 9 tree"),
        78,
        "the policy demands hold = \"tree\"",
    );
    agent.kill();
    refused("rungate acquire --path deploy", 74, "cannot be reached");
}

/// What the agent answers to a request.
fn answered(connection: &mut UnixStream, asked: &Request) -> Answer {
    connection.set_read_timeout(Some(LONG)).expect("a time");
    connection.write_all(&asked.frame().expect("it is short")).expect("the agent reads");
    answer(connection, &mut Inbox::default())
}

/// A user cannot fill the memory with FIFOs, use those of others, list them, or have slots that nothing keeps. FIFOs
/// that keep slots, or with which a script waits, stay.
#[test]
fn a_user_gets_few_fifos_and_no_others_use_them() {
    needs_root!();
    let (site, _agent) = site();
    let mut first = shell(&site, "games");
    assert_eq!(have(&mut first, LOCK), "status 0\n");
    let mut second = shell(&site, "games");
    second
        .write_line(&format!("{OPEN}; rungate acquire --fd 9 -w 1h deploy 2>/dev/null; echo \"status $?\""));
    eventually("it waits", || (super::waiting(&site) == 1).then_some(()));
    let flood = "for i in {1..80}; do rungate acquire --path deploy; done | sort | uniq | wc -l";
    assert_eq!(outcome(&site, flood).stdout, "80\n", "each is a new one");
    let open = site.path("system-run/rungate-agent/open");
    let folder = open.join(site.user("games").uid.to_string());
    let all: Vec<_> = fs::read_dir(&folder).expect("its folder").map(|one| one.expect("a file")).collect();
    let is_fifo = |one: &fs::DirEntry| one.file_type().expect("a type").is_fifo();
    let mode = |one: &fs::DirEntry| one.metadata().expect("it is there").permissions().mode() & 0o777;
    assert!(all.iter().all(|one| is_fifo(one) && mode(one) == 0o644), "only root can write into them");
    assert_eq!(all.len(), 64 + 2, "those that are unused, and those of the two scripts");
    for directory in [&open, &folder] {
        assert_eq!(fs::metadata(directory).expect("it is there").permissions().mode() & 0o777, 0o711);
    }
    // Root, who asks here, is another user than the one whose FIFO it is.
    let number =
        all[0].file_name().into_string().expect("a number").replace(".fifo", "").parse().expect("a number");
    let stranger = || UnixStream::connect(site.agent_socket()).expect("the agent accepts");
    let take = |opened| Take {
        hold: rungate::judge::terms::keyword::Hold::Descriptor,
        opened,
        ..request("pause", LONG)
    };
    for opened in [number, 0, u64::MAX] {
        let said = answered(&mut stranger(), &Request::Take(take(Some(opened))));
        assert!(matches!(said, Answer::Failed(_)), "{said:?}");
    }
    // One that keeps slots already, of the same user.
    let mut third = site.test().program("/bin/bash").background();
    assert_eq!(have(&mut third, &LOCK.replace("deploy", "other")), "status 0\n");
    let path = fs::read_link(format!("/proc/{}/fd/9", third.pid())).expect("a FIFO");
    let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
    let said = answered(&mut stranger(), &Request::Take(take(Some(name.parse().expect("a number")))));
    assert!(matches!(said, Answer::Failed(_)), "{said:?}");
    // A hold that a descriptor cannot keep.
    let mut fourth = site.test().program("/bin/bash").background();
    assert_eq!(have(&mut fourth, OPEN), "status 0\n");
    let path = fs::read_link(format!("/proc/{}/fd/9", fourth.pid())).expect("a FIFO");
    let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
    let opened = Some(name.parse().expect("a number"));
    let said = answered(&mut stranger(), &Request::Take(Take { opened, ..request("tree", LONG) }));
    assert!(matches!(&said, Answer::Failed(why) if why.contains("tree")), "{said:?}");
    // Its own one, which it has not opened.
    let Answer::Opened(path) = answered(&mut stranger(), &Request::Open) else { panic!("a path") };
    let name = path.to_str().and_then(|path| path.rsplit('/').next()).expect("a name").replace(".fifo", "");
    let said = answered(&mut stranger(), &Request::Take(take(Some(name.parse().expect("a number")))));
    assert!(matches!(said, Answer::Failed(_)), "{said:?}");
    assert_eq!(holders(&site, "pause"), [0; 0]);
    assert_eq!(have(&mut first, "exec 9<&-"), "status 0\n");
    assert_eq!(second.read_line(), "status 0\n");
}

/// A script of root that asks as another user is not that user's to end, and no holder.
#[test]
fn a_process_of_another_user_is_not_the_holder() {
    needs_root!();
    let (site, _agent) = site();
    let mut root = site.test().program("/bin/bash").background();
    let user = site.user("games");
    let become_user = format!("setpriv --reuid={} --regid={} --clear-groups", user.uid, user.gid);
    let lock = LOCK.replace("rungate acquire", &format!("{become_user} rungate acquire"));
    assert_eq!(have(&mut root, &lock), "status 0\n");
    let holders = holders(&site, "seats");
    assert!(holders.len() == 1 && holders[0] != i64::from(root.pid()), "{holders:?}");
    // The slots are kept nevertheless.
    let mut other = shell(&site, "daemon");
    assert_eq!(have(&mut other, &format!("{LOCK} 2>/dev/null")), "status 75\n");
    site.test().user("games").args(["end", "--yes", "seats"]).outcome();
    assert_eq!(have(&mut root, "true"), "status 0\n", "it lives");
}

/// `rungate end` ends the script, and with it the children that keep the slot.
#[test]
fn a_script_can_be_ended() {
    needs_root!();
    let (site, _agent) = site();
    let mut script = shell(&site, "games");
    assert_eq!(have(&mut script, LOCK), "status 0\n");
    site.test().user("games").args(["end", "--yes", "seats", &script.pid().to_string()]).outcome();
    eventually("it ends", || held(&site).is_empty().then_some(()));
    script.signal(Signal::SIGKILL);
}

/// The open of a script never waits, however many FIFOs this user and others have, and also after the agent has
/// failed.
#[test]
fn a_script_opens_its_fifo_at_once() {
    needs_root!();
    let (site, agent) = site();
    let paths = "for i in {1..64}; do rungate acquire --path deploy; done";
    let own = outcome(&site, paths).stdout;
    site.test().user("daemon").program("/bin/bash").args(["-c", paths]).outcome();
    let open = |path: &str| outcome(&site, &format!("exec 9<{path}; rungate acquire --fd 9 deploy")).ending;
    let own: Vec<&str> = own.lines().collect();
    assert_eq!((open(own[0]), open(own[63])), (Ending::Status(0), Ending::Status(0)));
    agent.kill();
    let _agent = site.agent();
    assert_eq!((open(own[1]), open(own[62])), (Ending::Status(0), Ending::Status(0)));
    // The first two are used up by now.
    assert_eq!(outcome(&site, &format!("exec 9<{}", own[0])).ending, Ending::Status(1));
}

/// The agent looks only at the nearest of a script's ancestors: a user can start thousands of them.
#[test]
fn the_holder_is_the_outermost_of_the_nearest_ancestors() {
    needs_root!();
    let (site, _agent) = site();
    let deep = "if [ $1 -gt 0 ]; then bash -c \"$2\" bash $(($1 - 1)) \"$2\"; exit; fi; \
                rungate acquire --fd 9 deploy && echo $PPID && read -r";
    for (depth, is_outermost) in [(240, true), (260, false)] {
        let mut shell = shell(&site, "games");
        shell.write_line(&format!("{OPEN}; bash -c '{deep}' bash {depth} '{deep}'"));
        let parent: i64 = shell.read_line().trim().parse().expect("a process");
        let holders = holders(&site, "seats");
        assert_eq!(holders == [i64::from(shell.pid())], is_outermost, "{depth}: {holders:?}");
        assert!(!holders.contains(&parent) && holders.len() == 1, "{depth}: {holders:?}");
        shell.kill();
        site.test().args(["end", "--yes", "seats"]).outcome();
        eventually("it is free", || held(&site).is_empty().then_some(()));
    }
}

/// The log has the script, the start of each part, and the end of each that the agent saw, although the script
/// continues.
#[test]
fn the_log_has_both_ends_of_each_part() {
    needs_root!();
    let (site, _agent) =
        Site::with_agent(&format!("log = {{ to = \"$DIR/work/log.jsonl\", replay = true }}\n{POLICY}"));
    site.rungate_in_bin();
    let log = site.path("work/log.jsonl");
    fs::write(&log, "").expect("a log");
    fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).expect("it is for all");
    let mut script = shell(&site, "games");
    let pid = i64::from(script.pid());
    let lock = LOCK.replace("--fd 9", "--fd 9 -w 1h");
    let parts = format!("{lock}; exec 9<&-; out=$({lock}); {lock} 2>/dev/null; exec 9<&-");
    assert_eq!(have(&mut script, &parts), "status 0\n");
    assert_eq!(have(&mut script, &LOCK.replace("deploy", "other")), "status 0\n");
    eventually("it is closed", || holders(&site, "seats").is_empty().then_some(()));
    let history = || {
        site.test().args(["end", "--overdue"]).outcome();
        let text = fs::read_to_string(&log).expect("the log");
        let events: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
        let count = |kind: &str, by: &[i64]| {
            let of_kind = events.iter().filter(|event| event["event"] == kind);
            of_kind
                .filter(|event| event["pid"].as_i64().is_some_and(|pid| by.is_empty() || by.contains(&pid)))
                .count()
        };
        (count("started", &[pid]), count("ended", &[pid]), count("ended", &[]))
    };
    // One of the parts was a subshell's, which is a script of its own.
    assert_eq!(history(), (3, 2, 3), "the last part has not ended");
    assert_eq!(history(), (3, 2, 3), "nothing is written twice");
    assert_eq!(have(&mut script, "exec 9<&-"), "status 0\n");
    eventually("it is closed", || holders(&site, "other").is_empty().then_some(()));
    assert_eq!(history(), (3, 3, 4));
}

/// The same with a lock file: a FIFO keeps as many slots as the agent has given it.
#[test]
fn a_descriptor_with_too_few_slots_is_not_enough() {
    needs_root!();
    let (site, _agent) = Site::with_agent(
        r#"
        [repository.seats]
        keeper = "agent"
        limit  = 4

        [[rule]]
        commands = ["small"]
        acquire  = ["seats"]

        [[rule]]
        commands = ["big"]
        acquire  = [{ repository = "seats", slots = 4 }]
        "#,
    );
    site.rungate_in_bin();
    let run = |script: &str| {
        let script = format!("exec 9<\"$(rungate acquire --path small)\"; {script}");
        site.test().program("/bin/bash").args(["-c", &script]).outcome()
    };
    let few = run("rungate acquire --fd 9 small && rungate acquire --fd 9 big");
    assert_eq!(few.ending, Ending::Status(64), "{few:?}");
    assert!(few.stderr.contains("keeps a slot already, but the command needs others too"), "{few:?}");
    let many =
        run("rungate acquire --fd 9 big && rungate acquire --fd 9 big && rungate acquire --fd 9 small");
    assert_eq!(many.ending, Ending::Status(0), "{many:?}");
}
