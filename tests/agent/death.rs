//! Its death: programs go on, and it comes back with its table.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rungate::keeper::agent::message::{Request, Take};

use super::hostility::{LONG, request};
use super::numbers::stop;
use super::waiting::sleeps;
use super::{REFUSED, held, seats, waiter, waiting};
use crate::support::{Ending, Running, Site, eventually, listing, needs_root, set_mode};

/// It reads its table, opens pidfds and compares start times, then answers.
#[test]
fn slots_outlive_the_agent_and_no_longer_than_their_programs() {
    needs_root!();
    let (site, agent) = seats(2, "");
    let stays = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    let goes = site.test().user("nobody").args(["run", "--", "matlab"]).spawn();
    agent.kill();
    goes.kill();
    let agent = site.agent();
    assert_eq!(held(&site), [(1, stays.pid().into())]);
    let _other = site.test().args(["run", "--", "matlab"]).spawn();
    site.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
    agent.kill();
    stays.kill();
    let _agent = site.agent();
    assert_eq!(held(&site).len(), 1);
}

/// A FIFO needs no descriptor store: after a restart EAGAIN on the read end means held, end of file free.
#[test]
fn a_descriptor_keeps_its_slot_over_the_death_of_the_agent() {
    needs_root!();
    for hold in ["descriptor", "tree"] {
        let (site, agent) = seats(1, &format!("hold = \"{hold}\""));
        let running = site.test().user("games").args(["run", "--", "matlab"]).spawn();
        agent.kill();
        let agent = site.agent();
        site.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
        agent.kill();
        drop(running);
        let _agent = site.agent();
        eventually("the slot is free", || held(&site).is_empty().then_some(()));
    }
}

/// What the agent has recorded of one thing.
fn only_file(site: &Site, directory: &str) -> PathBuf {
    let mut files = fs::read_dir(site.agent_state().join(directory)).expect("what is written down");
    let file = files.next().expect("one").expect("a file").path();
    assert!(files.next().is_none(), "there are several");
    file
}

/// Has it say that its process started a tick later.
fn starts_later(file: &Path) {
    let text = fs::read_to_string(file).expect("what is written down");
    let start = text.split("\"start\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
    let start: u64 = start.expect("a start").parse().expect("a number");
    fs::write(file, text.replace(&start.to_string(), &(start + 1).to_string())).expect("it is written");
}

/// A holder that ended while the agent was down and whose PID another process has is not kept.
#[test]
fn a_process_with_the_number_of_a_holder_is_not_the_holder() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let running = site.test().args(["run", "--", "matlab"]).spawn();
    agent.kill();
    // As if this process had started a tick later: it lives, and is somebody else.
    starts_later(&only_file(&site, "holdings"));
    let _agent = site.agent();
    assert_eq!(held(&site), []);
    drop(running);
}

/// Where two of them have the same slot, as the agent has recorded it, each counts.
#[test]
fn two_holders_of_one_slot_count_twice() {
    needs_root!();
    let (site, agent) = seats(2, "");
    let _running = [(); 2].map(|()| site.test().args(["run", "--", "matlab"]).spawn());
    agent.kill();
    for entry in fs::read_dir(site.agent_state().join("holdings")).expect("what is written down") {
        let file = entry.expect("a file").path();
        let text = fs::read_to_string(&file).expect("what is written down");
        fs::write(&file, text.replace("\"slots\":[1]", "\"slots\":[2]")).expect("it is written");
    }
    let _agent = site.agent();
    assert_eq!(held(&site).len(), 2);
    site.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
}

/// An agent with another socket, as the service manager hands one over, does not start beside the one that uses
/// the state: both would grant the same slots. It starts when that one has ended.
#[test]
fn a_second_agent_does_not_start_with_the_same_state() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let running = site.test().args(["run", "--", "matlab"]).spawn();
    let socket = site.path("system-run/rungate-agent/other");
    let refused = format!(
        "rungate: the agent does not run: another agent uses the state directory [..]: PID {0}. To end it: kill {0}\n",
        agent.pid()
    );
    site.test().rungate_agent().args(["--socket"]).args([&socket]).stderr(&refused).status(71);
    assert_eq!(held(&site), [(1, running.pid().into())]);
    agent.kill();
    let _agent = site.agent();
    assert_eq!(held(&site), [(1, running.pid().into())]);
}

/// Nor does a process that has the number of a launch which waits in the queue have its place: it comes last.
#[test]
fn a_process_with_the_number_of_a_waiter_is_not_the_waiter() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut first = waiter(&site, "games", 1);
    let file = only_file(&site, "places");
    let second = waiter(&site, "nobody", 2);
    // It calls again when it may.
    first.signal(Signal::SIGSTOP);
    agent.kill();
    starts_later(&file);
    let _agent = site.agent();
    assert!(!file.exists(), "its place is kept for a process that has ended");
    first.signal(Signal::SIGCONT);
    let line = || -> Vec<i64> {
        let listed = listing(&site.test());
        let line = listed[0]["waiting"].as_array().expect("a line");
        line.iter().map(|waiter| waiter["pid"].as_i64().unwrap_or(0)).collect()
    };
    let both = [&second, &first].map(|waiter| i64::from(waiter.pid()));
    eventually("both wait", || (waiting(&site) == 2).then_some(()));
    assert_eq!(line(), both);
    drop((second, holder));
    assert_eq!(first.read_line(), "it runs\n");
}

/// Waiting launchers reconnect for 30 s.
#[test]
fn a_launch_that_waits_waits_for_the_agent_too() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut waits =
        site.test().user("games").args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    waits.write_line("it runs");
    eventually("it stands in line", || (waiting(&site) == 1).then_some(()));
    agent.kill();
    let _agent = site.agent();
    eventually("it stands in line again", || (waiting(&site) == 1).then_some(()));
    holder.kill();
    assert_eq!(waits.read_line(), "it runs\n");
}

/// What another boot left says nothing; what cannot be read is not taken for nothing.
#[test]
fn a_state_of_another_boot_is_forgotten_and_a_damaged_one_is_refused() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    agent.kill();
    let damaged = site.agent_state().join("holdings/99.json");
    fs::write(&damaged, "{").expect("a damaged file");
    let refused = site.test().rungate_agent();
    refused
        .stderr(
            "rungate: the agent does not run: cannot use the state directory [..]/holdings/99.json: read: Structure needs cleaning\n",
        )
        .status(71);
    fs::remove_file(damaged).expect("the damaged file");
    let boot = site.agent_state().join("boot");
    for text in ["", "another"] {
        fs::write(&boot, text).expect("the boot id");
        let refused = site.test().rungate_agent();
        let damaged = "rungate: the agent does not run: cannot use the state directory [..]/boot: read: Structure needs cleaning\n";
        refused.stderr(damaged).status(71);
    }
    fs::write(&boot, "00000000-0000-4000-8000-000000000000").expect("the boot id");
    let _agent = site.agent();
    assert_eq!(held(&site), []);
}

/// With its state directory full: nothing is given that could not be recorded.
#[test]
fn what_cannot_be_written_down_is_not_given() {
    needs_root!();
    let (site, agent) = seats(1, "");
    fs::remove_dir_all(site.agent_state().join("holdings")).expect("the holdings");
    let cannot = "rungate: matlab: not started: the agent refuses: it cannot save its state: open: No such \
        file or directory\n";
    site.test().args(["run", "--", "matlab"]).stderr(cannot).status(74);
    assert_eq!(held(&site), []);
    agent.signal(Signal::SIGTERM);
}

/// Where only some of it can be recorded, nothing of it is left: no holder and no pause.
#[test]
fn nothing_is_left_of_what_was_written_down_in_part() {
    needs_root!();
    for hold in ["process", "descriptor"] {
        let (site, _agent) = seats(1, &format!("hold = \"{hold}\"\nif_elapsed = \"1h\""));
        let pauses = site.agent_state().join("tables");
        fs::remove_dir_all(&pauses).expect("the pauses");
        let cannot = "rungate: matlab: not started: the agent refuses: it cannot save its state: [..]\n";
        site.test().args(["run", "--", "matlab"]).stderr(cannot).status(74);
        assert_eq!(fs::read_dir(site.agent_state().join("holdings")).expect("the holdings").count(), 0);
        fs::create_dir(&pauses).expect("the pauses");
        site.test().args(["run", "--", "matlab"]).status(0);
    }
}

/// What it had begun to record when it was killed is in nobody's way.
#[test]
fn what_was_left_half_written_keeps_nothing_and_nobody_out() {
    needs_root!();
    let (site, agent) = seats(2, "hold = \"descriptor\"");
    let running = site.test().args(["run", "--", "matlab"]).spawn();
    agent.kill();
    let holdings = site.agent_state().join("holdings");
    let names = fs::read_dir(&holdings).expect("the holdings");
    let numbers =
        names.filter_map(|entry| entry.expect("an entry").path().file_stem()?.to_str()?.parse().ok());
    let last: u64 = numbers.max().expect("a holding");
    for number in last + 1..last + 10 {
        let path = holdings.join(format!("{number}.fifo"));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).expect("a FIFO");
    }
    fs::write(holdings.join(".99.json.4711"), "{\"pid\":").expect("half a file");
    let _agent = site.agent();
    let other = site.test().args(["run", "--", "matlab"]).spawn();
    assert_eq!(held(&site), [(1, running.pid().into()), (2, other.pid().into())]);
}

/// A FIFO that is gone does not show who had it open.
#[test]
fn without_its_fifo_nothing_is_taken_for_free() {
    needs_root!();
    let (site, agent) = seats(1, "hold = \"descriptor\"");
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    agent.kill();
    let holdings = fs::read_dir(site.agent_state().join("holdings")).expect("the holdings");
    let mut paths = holdings.map(|entry| entry.expect("an entry").path());
    let fifo = paths.find(|path| path.extension().is_some_and(|end| end == "fifo")).expect("a FIFO");
    fs::remove_file(fifo).expect("the FIFO");
    let refused = "rungate: the agent does not run: cannot use the state directory [..].fifo: open: No such file or directory\n";
    site.test().rungate_agent().stderr(refused).status(71);
}

/// Waiting launchers keep their place: in the order in which they came, whoever calls first.
#[test]
fn those_who_wait_have_their_places_again() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let mut holder = site.test().args(["run", "--", "matlab"]).spawn();
    let waiters: Vec<Running> = (1..=5).map(|place| waiter(&site, "games", place)).collect();
    agent.kill();
    let agent = site.agent();
    eventually("all stand in line again", || (waiting(&site) == 5).then_some(()));
    let mut late = waiter(&site, "nobody", 6);
    agent.kill();
    let _agent = site.agent();
    for mut next in waiters {
        holder.kill();
        assert_eq!(next.read_line(), "it runs\n");
        holder = next;
    }
    holder.kill();
    assert_eq!(late.read_line(), "it runs\n");
    assert_eq!(fs::read_dir(site.agent_state().join("places")).expect("the places").count(), 0);
}

/// One that does not call is passed over, and has its place when it does; one that has ended has none.
#[test]
fn who_does_not_call_again_delays_nobody_for_long() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let gone = waiter(&site, "games", 1);
    let mut stopped = waiter(&site, "games", 2);
    let mut next = waiter(&site, "nobody", 3);
    stopped.signal(Signal::SIGSTOP);
    eventually("it is stopped", || (stopped.state() == 'T').then_some(()));
    agent.kill();
    gone.kill();
    holder.kill();
    let _agent = site.agent();
    assert_eq!(next.read_line(), "it runs\n");
    assert_eq!(waiting(&site), 1);
    let mut late = waiter(&site, "nobody", 2);
    stopped.signal(Signal::SIGCONT);
    next.kill();
    // Either may be the first to be checked while the other does not answer yet.
    let first = eventually("one of them runs", || held(&site).first().map(|(_, pid)| *pid));
    let (one, other) =
        if first == i64::from(stopped.pid()) { (stopped, &mut late) } else { (late, &mut stopped) };
    one.kill();
    assert_eq!(other.read_line(), "it runs\n");
}

/// From the end of the last: also where the agent was not there to see it.
#[test]
fn an_end_that_nobody_saw_begins_the_pause_all_the_same() {
    needs_root!();
    let (site, agent) = seats(2, "hold = \"supervisor\"\nif_elapsed = \"1ms\"\nif_elapsed_from = \"end\"");
    let mut running = site.test().args(["run", "--", "matlab"]).spawn();
    agent.kill();
    running.close_stdin();
    running.end();
    let policy = fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy");
    site.system_file("policy.toml", &policy.replace("\"1ms\"", "\"1h\""));
    let agent = site.agent();
    let too_soon = "rungate: matlab: too soon: [..]\n...\n";
    site.test().args(["run", "--", "matlab"]).stderr(too_soon).status(69);
    agent.kill();
    let _agent = site.agent();
    site.test().args(["run", "--", "matlab"]).stderr(too_soon).status(69);
}

/// A program that nobody else may be in the slot of while it runs; it says so if somebody is.
const ALONE: &str = "#!/bin/sh
mkdir \"$1/$RUNGATE_SLOT_SEATS\" || echo \"slot $RUNGATE_SLOT_SEATS is somebody else's too\"
for step in 1 2 3 4 5 6 7 8; do /bin/true; done
rmdir \"$1/$RUNGATE_SLOT_SEATS\"
";

/// Restarted in the middle of a storm: no slot lost, none doubled, and everybody is served.
#[test]
fn an_agent_that_is_killed_again_and_again_in_a_storm_loses_and_doubles_nothing() {
    needs_root!();
    for hold in ["process", "tree"] {
        let (site, mut agent) = seats(3, &format!("hold = \"{hold}\""));
        site.script("matlab", ALONE);
        site.program("other");
        let slots = site.path("work/slots");
        fs::create_dir_all(&slots).expect("a directory");
        set_mode(&slots, 0o777);
        let holders = [(); 3].map(|()| site.test().args(["run", "--", "other"]).spawn());
        let users = ["games", "nobody", "backup"].into_iter().cycle().take(20);
        let arguments = ["run", "-q", "--wait", "forever", "--", "matlab", "$DIR/work/slots"];
        let launches: Vec<Running> =
            users.map(|user| site.test().user(user).args(arguments).background()).collect();
        eventually("all stand in line", || (waiting(&site) == launches.len()).then_some(()));
        for mut holder in holders {
            holder.close_stdin();
            holder.end();
        }
        for left in [16, 12, 8, 4] {
            agent.kill();
            agent = site.agent();
            eventually("some of them have run", || (waiting(&site) <= left).then_some(()));
        }
        for mut launch in launches {
            let outcome = launch.end();
            assert_eq!(
                (outcome.ending, outcome.stdout.as_str(), outcome.stderr.as_str()),
                (Ending::Status(0), "", ""),
                "{hold}"
            );
        }
        eventually("all slots are free", || held(&site).is_empty().then_some(()));
        assert_eq!(waiting(&site), 0);
    }
}

/// Asks what stands in each file but the first, over a connection of its own, and says which kind of answer comes.
/// It beats, which stands in the first file, at a line that says so, and goes on at another.
const ASKS: &str = r#"
import socket, struct, sys
def says(c, path):
    c.sendall(open(path, 'rb').read())
    size = struct.unpack('<I', c.recv(4, socket.MSG_WAITALL))[0]
    print(c.recv(size, socket.MSG_WAITALL)[1], flush=True)
beat, *questions = sys.argv[1:]
for question in questions:
    c = socket.socket(socket.AF_UNIX)
    c.connect('/run/rungate-agent/socket')
    says(c, question)
    while sys.stdin.readline() == 'beat\n':
        says(c, beat)
"#;

/// Each waiter is served in their order: also one whose slots were recorded by an agent that died before
/// it could tell them.
#[test]
fn who_was_not_told_of_their_slots_keeps_their_turn() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let question = |name: &str, is_again: bool| {
        let take = Take { is_again, ..request("matlab", LONG * 10) };
        fs::write(site.path(name), Request::Take(take).frame().expect("it is not too long"))
            .expect("write it");
        site.path(name)
    };
    let beat = site.path("beat");
    fs::write(&beat, Request::Beat.frame().expect("it is short")).expect("write it");
    let questions = [beat, question("once", false), question("again", true)];
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let first = site.test().user("games").program("/usr/bin/python3").args(["-c", ASKS]).args(questions);
    let mut first = first.background();
    assert_eq!(first.read_line(), "3\n", "it waits");
    let mut second = waiter(&site, "games", 2);
    first.write_line("beat");
    assert_eq!(first.read_line(), "3\n", "it is not away, however long it has said nothing");
    holder.kill();
    eventually("the first has the slot", || (held(&site) == [(1, first.pid().into())]).then_some(()));
    agent.kill();
    let _agent = site.agent();
    eventually("the second stands in line again", || (waiting(&site) == 1).then_some(()));
    first.write_line("");
    assert_eq!(first.read_line(), "1\n", "it has them");
    assert_eq!((held(&site), waiting(&site)), (vec![(1, first.pid().into())], 1));
    first.kill();
    assert_eq!(second.read_line(), "it runs\n");
}

/// A program that leaves a child behind, which lives as long as the process that is named.
const LEAVES_A_CHILD: &str =
    "#!/bin/sh\ntail --pid \"$1\" -f /dev/null </dev/null >/dev/null 2>&1 &\nexec cat\n";

/// A supervisor gives back the slot when its command ends, to an agent that was started meanwhile too. No
/// other process gives it back.
#[test]
fn a_supervisor_gives_back_the_slot_to_another_agent() {
    needs_root!();
    let (site, agent) = seats(1, "hold = \"supervisor\"");
    site.script("matlab", LEAVES_A_CHILD);
    let alive = site.test().program("/bin/cat").spawn();
    let pid = alive.pid().to_string();
    let mut running = site.test().user("games").args(["run", "--", "matlab", &pid]).spawn();
    agent.kill();
    let _agent = site.agent();
    let mut other = UnixStream::connect(site.agent_socket()).expect("an agent");
    other.write_all(&Request::GiveBack(true).frame().expect("it is short")).expect("it listens");
    other.read_exact(&mut [0]).expect("an answer");
    assert_eq!(held(&site).len(), 1);
    running.close_stdin();
    assert_eq!(running.end().ending, Ending::Status(0));
    assert_eq!(held(&site), [], "a child that is left behind keeps nothing");
    drop(alive);
}

/// So it does if the agent is silent when the command ends, and is then ended and started again.
#[test]
fn a_supervisor_gives_back_the_slot_after_the_agent_was_silent() {
    needs_root!();
    let (site, agent) = seats(1, "hold = \"supervisor\"");
    site.script("matlab", LEAVES_A_CHILD);
    let alive = site.test().program("/bin/cat").spawn();
    let pid = alive.pid().to_string();
    let mut running = site.test().user("games").args(["run", "--", "matlab", &pid]).spawn();
    let launcher = running.pid();
    let connections = || {
        let descriptors = fs::read_dir(format!("/proc/{launcher}/fd")).expect("it was not reaped");
        let targets = descriptors.filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok());
        targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
    };
    let before = connections();
    assert!(before > 0 && held(&site).len() == 1);
    stop(&agent);
    running.close_stdin();
    eventually("it has heard nothing, and asks again", || (connections() > before).then_some(()));
    agent.kill();
    let _agent = site.agent();
    assert_eq!(running.end().ending, Ending::Status(0));
    assert_eq!(held(&site), [], "a child that is left behind keeps nothing");
    drop(alive);
}

/// The number of a job that has ended says nothing, when another process has it: a launch below that one may
/// wait for the slot that a child of the job keeps.
#[test]
fn a_process_with_the_number_of_an_ended_job_does_not_wait_for_itself() {
    needs_root!();
    let (site, agent) = seats(1, "hold = \"descriptor\"");
    site.script(
        "matlab",
        "#!/bin/sh\n[ $# = 0 ] || tail --pid \"$1\" -f /dev/null </dev/null >/dev/null 2>&1 &\n",
    );
    let alive = site.test().program("/bin/cat").spawn();
    site.test().user("games").args(["run", "--", "matlab", &alive.pid().to_string()]).status(0);
    eventually("a child keeps the slot", || (held(&site).len() == 1).then_some(()));
    let (_, job) = held(&site)[0];
    agent.kill();
    let script = "read line; LAUNCHER run -q -w forever -- matlab; echo $?; read line";
    let script = script.replace("LAUNCHER", &site.rungate().display().to_string());
    let mut shell = site.test().program("/bin/sh").args(["-c", &script]).background();
    let file = only_file_of_holdings(&site);
    let text = fs::read_to_string(&file).expect("what is written down");
    let (old, new) = (format!("\"pid\":{job},"), format!("\"pid\":{},", shell.pid()));
    assert!(text.contains(&old), "{text}");
    fs::write(&file, text.replace(&old, &new)).expect("it is written");
    let _agent = site.agent();
    shell.write_line("go on");
    eventually("it waits", || (waiting(&site) == 1).then_some(()));
    drop(alive);
    assert_eq!(shell.read_line(), "0\n");
}

/// What the agent has recorded of the only holder, whose FIFO is beside it.
fn only_file_of_holdings(site: &Site) -> PathBuf {
    let files = fs::read_dir(site.agent_state().join("holdings")).expect("what is written down");
    let mut files = files.map(|entry| entry.expect("a file").path());
    files.find(|file| file.extension().is_none_or(|ending| ending != "fifo")).expect("a holder")
}

/// Two repositories that one program needs, with a wait for each of them.
const BOTH: &str = "
    version = 1
    [defaults]
    keeper = \"agent\"
    [repository]
    one = { limit = 1, wait = \"1h\" }
    two = { limit = 1, wait = \"4s\" }
    [[rule]]
    name = \"one\"
    commands = [\"first\"]
    acquire = [\"one\"]
    [[rule]]
    name = \"two\"
    commands = [\"second\"]
    acquire = [\"two\"]
    [[rule]]
    name = \"both\"
    commands = [\"matlab\"]
    acquire = [\"one\", \"two\"]
    ";

/// The time for a repository runs only while the launch waits for it, whichever agent keeps it.
#[test]
fn the_time_for_a_free_repository_does_not_run_over_a_restart() {
    const TIME: Duration = Duration::from_secs(4);
    needs_root!();
    let (site, agent) = Site::with_agent(BOTH);
    for name in ["first", "second", "matlab"] {
        site.program(name);
    }
    let _first = site.test().args(["run", "--", "first"]).spawn();
    let mut waits = site.test().args(["run", "-q", "--", "matlab"]).background();
    eventually("it waits", || (waiting(&site) > 0).then_some(()));
    let begun = Instant::now();
    eventually("it waits for long", || (begun.elapsed() > TIME).then_some(()));
    agent.kill();
    let _agent = site.agent();
    let begun = Instant::now();
    let _second = site.test().args(["run", "--", "second"]).spawn();
    assert_eq!(waits.end().ending, Ending::Status(124));
    assert!(begun.elapsed() >= TIME, "it waited for the second repository for {:?}", begun.elapsed());
}

/// A launch that is stopped while the agent restarts has its place when it continues, however late.
#[test]
fn who_is_stopped_over_a_restart_keeps_the_place() {
    needs_root!();
    let (site, agent) = seats(1, "");
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut stopped = waiter(&site, "games", 1);
    stopped.signal(Signal::SIGSTOP);
    eventually("it is stopped", || (stopped.state() == 'T').then_some(()));
    agent.kill();
    let _agent = site.agent();
    let begun = Instant::now();
    eventually("others would not call again", || (begun.elapsed() > Duration::from_secs(32)).then_some(()));
    assert_eq!(waiting(&site), 1);
    let _late = waiter(&site, "nobody", 2);
    let before = sleeps(&stopped);
    stopped.signal(Signal::SIGCONT);
    eventually("it has called and beaten", || (sleeps(&stopped) >= before + 6).then_some(()));
    holder.kill();
    assert_eq!(stopped.read_line(), "it runs\n");
}
