//! A terminal and somebody who types: under every hold Ctrl-C, Ctrl-Z, `fg` and `bg` behave as without
//! rungate.

use std::fs;

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::supervision::{begins_exec, leased};
use crate::support::{
    Ending, Site, Terminal, eventually, given_time, listing, needs_root, needs_strace, needs_tmux, seats,
    state_of,
};

/// The ways to start a program: without rungate, and with each hold.
fn ways(site: &Site) -> Vec<String> {
    let rungate = site.rungate().display().to_string();
    let holds = ["process", "descriptor", "supervisor", "tree"];
    let with_hold = holds.iter().map(|hold| format!("{rungate} run --hold {hold} -- "));
    std::iter::once(String::new()).chain(with_hold).collect()
}

fn site() -> Site {
    let site = Site::with_policy(&seats(1, "", &["matlab", "patient", "漢字*"]));
    site.program("matlab");
    site.script(
        "patient",
        "#!/bin/bash\ntrap 'echo interrupted; exit 3' INT\necho up\nread -r line\nread -r line\n",
    );
    site
}

#[test]
fn ctrl_c_ends_the_program() {
    needs_tmux!();
    let site = site();
    for way in ways(&site) {
        let terminal = Terminal::open(&site);
        terminal.command(&format!("{way}matlab"));
        terminal.is_repeated("word");
        terminal.interrupt();
        terminal.command("echo status $?");
        terminal.shows("\nstatus 130\n");
        assert_eq!(site.held("seats.lock"), []);
        // A program that deals with it, and ends in its own way.
        terminal.command(&format!("{way}patient"));
        terminal.shows("\nup\n");
        terminal.interrupt();
        terminal.shows("interrupted");
        terminal.command("echo status $?");
        terminal.shows("\nstatus 3\n");
        assert_eq!(site.held("seats.lock"), []);
    }
}

/// Ctrl-C just before a supervisor has a child: the child would inherit no pending signal.
#[test]
fn ctrl_c_before_there_is_a_child_starts_nothing() {
    needs_tmux!();
    needs_strace!();
    let calls = [("pipe2", libc::SYS_pipe2), ("rt_sigpending", libc::SYS_rt_sigpending)];
    for (hold, (name, number)) in ["supervisor", "tree"].into_iter().zip(calls) {
        given_time(&["2s", "10s", "60s"], |delay| {
            let site = site();
            let terminal = Terminal::open(&site);
            let strace = format!(
                "strace -I4 -qq -o {} -e trace={name} -e inject={name}:delay_enter={delay}",
                site.path("work/trace").display()
            );
            let launch = format!("{} run --hold {hold} -- patient", site.rungate().display());
            terminal.command(&format!("clear; sh -c 'echo runs as $$; exec {strace} {launch}'"));
            let numbered = |line: &str| line.strip_prefix("runs as ")?.trim().parse::<i32>().ok();
            let tracer = terminal
                .shows_when("its number", |screen| screen.lines().any(|line| numbered(line).is_some()));
            let tracer = tracer.lines().find_map(numbered).expect("a process id");
            eventually("it is in the call", || {
                let children = fs::read_to_string(format!("/proc/{tracer}/task/{tracer}/children")).ok()?;
                let call = fs::read_to_string(format!("/proc/{}/syscall", children.trim_end())).ok()?;
                (call.split(' ').next() == Some(&number.to_string())).then_some(())
            });
            terminal.interrupt();
            terminal.command("echo status $?");
            let screen = terminal.shows("\nstatus 130\n");
            assert!(!screen.contains("\nup\n"), "{hold}: {screen}");
            assert_eq!(site.held("seats.lock"), []);
        });
    }
}

#[test]
fn ctrl_z_stops_the_program_and_fg_continues_it() {
    needs_tmux!();
    let site = site();
    for way in ways(&site) {
        let terminal = Terminal::open(&site);
        terminal.command(&format!("{way}matlab"));
        terminal.is_repeated("one");
        for word in ["two", "three"] {
            terminal.press("C-z");
            terminal.shows("Stopped");
            terminal.command("clear; jobs -l");
            let screen = terminal.shows("Stopped");
            // Stopped as the program was, by the key, and not by a signal of somebody's.
            assert!(!screen.contains("Stopped ("), "{way}: {screen}");
            assert_eq!(site.held_numbers("seats.lock").len(), usize::from(!way.is_empty()), "{way}");
            terminal.command("clear; fg");
            terminal.is_repeated(word);
        }
        terminal.press("C-d");
        terminal.command("echo status $?");
        terminal.shows("\nstatus 0\n");
        assert_eq!(site.held("seats.lock"), []);
    }
}

/// A supervisor stops with its program also where `/proc` is that of another PID namespace, and shows it a
/// stranger under the number of the program.
#[test]
fn a_supervisor_stops_with_a_program_that_proc_does_not_show() {
    needs_root!();
    needs_tmux!();
    let site = site();
    for hold in ["supervisor", "tree"] {
        let terminal = Terminal::open(&site);
        terminal.command("clear; unshare --pid --fork --kill-child bash --norc --noprofile -i");
        terminal.command(&format!("clear; {} run --hold {hold} -- matlab", site.rungate().display()));
        terminal.is_repeated("one");
        terminal.press("C-z");
        terminal.shows("Stopped");
        terminal.command("clear; fg");
        terminal.is_repeated("two");
        terminal.press("C-d");
        terminal.command("echo status $?");
        terminal.shows("\nstatus 0\n");
        assert_eq!(site.held("seats.lock"), []);
    }
}

/// Also before the program is executed: its exec can take long.
#[test]
fn a_supervisor_stops_with_a_program_that_is_not_yet_executed() {
    needs_tmux!();
    for hold in ["supervisor", "tree"] {
        let site = site();
        let lease = leased(&site, "patient");
        let terminal = Terminal::open(&site);
        let launch = format!("{} run --hold {hold} -- patient", site.rungate().display());
        terminal.command(&format!("clear; sh -c 'echo runs as $$; exec {launch}'"));
        let number = |line: &str| line.strip_prefix("runs as ")?.trim().parse::<i32>().ok();
        let screen =
            terminal.shows_when("its number", |screen| screen.lines().any(|line| number(line).is_some()));
        begins_exec(screen.lines().find_map(number).expect("a process id"));
        terminal.press("C-z");
        terminal.shows("Stopped");
        lease.kill();
        terminal.command("clear; fg");
        terminal.shows("executed");
        terminal.is_repeated("one");
        terminal.press("C-d");
        terminal.command("echo status $?");
        terminal.shows("\nstatus 0\n");
        assert_eq!(site.held("seats.lock"), []);
    }
}

/// In the background it says once what it waits for: its user types something else meanwhile.
#[test]
fn a_wait_in_the_background_leaves_the_prompt_alone() {
    needs_tmux!();
    let site = site();
    let mut holder = site.test().args(["run", "--", "matlab"]).spawn();
    let terminal = Terminal::open(&site);
    terminal.command(&format!("{} run -w 1h -- matlab &", site.rungate().display()));
    terminal.shows("waits for seats (1 of 1 used), first in line");
    terminal.enter("");
    terminal.type_text("unfinished");
    terminal.shows("$ unfinished");
    // Its line would be written again each second.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let screen = terminal.screen();
    assert!(screen.trim_end().ends_with("$ unfinished"), "{screen}");
    assert_eq!(screen.matches("waits for").count(), 1, "{screen}");
    holder.wait_for_echo();
}

/// It shows one living line: also where a name has characters that are two columns wide.
#[test]
fn a_living_line_never_wraps() {
    needs_tmux!();
    let site = site();
    let name = "漢字".repeat(10);
    site.program(&name);
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let ahead = site.test().args(["run", "--wait", "forever", "--", "matlab"]).background();
    site.stands_in_line("seats.lock", &ahead);
    let terminal = Terminal::open_for(site.test(), (92, 20));
    terminal.command(&format!("clear; {} run -w forever -- {name}", site.rungate().display()));
    terminal.shows(&format!("rungate: {name}: waits for seats (1 of 1 used), 1 ahead,~\n"));
    ahead.kill();
    let screen = terminal.shows("waits for seats (1 of 1 used), first in~\n");
    assert_eq!(screen.matches("waits for").count(), 1, "{screen}");
}

/// Messages and living lines fit into a terminal of 20 columns. With fewer columns, the width does not count.
#[test]
fn lines_fit_into_twenty_columns() {
    needs_tmux!();
    let site = site();
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let terminal = Terminal::open_for(site.test(), (20, 60));
    let rungate = site.rungate().display().to_string();
    terminal.command(&format!("clear; {rungate} run -- nope"));
    terminal.shows("rungate: nope: not\n");
    terminal.command(&format!("clear; {rungate} run -w forever -- matlab"));
    terminal.shows("rungate: matlab: w~\n");
}

/// A program in the background that wants to read is stopped, and the shell is told so.
#[test]
fn a_program_in_the_background_stops_when_it_reads() {
    needs_tmux!();
    let site = site();
    for way in ways(&site) {
        let terminal = Terminal::open(&site);
        terminal.command(&format!("{way}matlab &"));
        terminal.shows_when("the shell says that it is stopped", |screen| {
            if screen.contains("tty input") {
                return true;
            }
            terminal.command("clear; jobs -l");
            false
        });
        terminal.command("clear; fg");
        terminal.is_repeated("one");
        terminal.interrupt();
        terminal.command("echo status $?");
        terminal.shows("\nstatus 130\n");
    }
}

/// A wait shows one living line on a terminal (repository, use/limit, place in the line, time), which is
/// gone when the command starts; and Ctrl-C and Ctrl-Z work there too.
#[test]
fn a_wait_shows_one_living_line() {
    needs_tmux!();
    let site = site();
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let ahead = site.test().args(["run", "--wait", "forever", "--", "matlab"]).background();
    site.stands_in_line("seats.lock", &ahead);
    let terminal = Terminal::open(&site);
    let rungate = site.rungate().display().to_string();
    terminal.command(&format!("clear; {rungate} run -w forever -- matlab"));
    // The time goes on, in the same line.
    let seconds = |screen: &str| {
        let (_, rest) = screen.split_once("rungate: matlab: waits for seats (1 of 1 used), 1 ahead, ")?;
        let time = rest.split(['s', '\n']).next().unwrap_or_default().to_owned();
        time.starts_with(|c: char| c.is_ascii_digit()).then_some(time)
    };
    let screen = terminal.shows_when("how long it has waited", |screen| seconds(screen).is_some());
    let first = seconds(&screen);
    let screen = terminal
        .shows_when("it waits for longer", |screen| seconds(screen).is_some() && seconds(screen) != first);
    assert_eq!(screen.matches("waits for").count(), 1, "{screen}");
    ahead.kill();
    terminal.shows("waits for seats (1 of 1 used), first in line,");

    terminal.press("C-z");
    terminal.shows("Stopped");
    terminal.command("clear; fg");
    // What stood there before is gone: it is the one that was continued.
    terminal.shows_when("it waits on", |screen| {
        screen.contains("waits for seats (1 of 1 used), first in line,") && !screen.contains("Stopped")
    });
    terminal.interrupt();
    terminal.command("echo status $?");
    terminal.shows("\nstatus 130\n");
    assert_eq!(site.line("seats.lock"), []);

    terminal.command(&format!("clear; {rungate} run -w forever -- matlab"));
    terminal.shows("waits for seats (1 of 1 used), first in line,");
    holder.kill();
    // Nothing is typed into the line: it could be wiped no more.
    terminal.shows_when("the line is wiped", |screen| !screen.contains("waits for"));
    terminal.is_repeated("one");
}

/// A message during a wait has a line of its own: the living line is wiped first.
#[test]
fn a_message_during_a_wait_stands_in_its_own_line() {
    needs_tmux!();
    let repository = |name: &str| {
        format!(
            "[repository.{name}]\nlimit = 1\nmax_wait = \"1h\"\n\
             [[rule]]\ncommands = [\"{name}\", \"both\"]\nacquire = [\"{name}\"]\n"
        )
    };
    let site = Site::with_policy(&(repository("a") + &repository("b")));
    for name in ["a", "b", "both"] {
        site.program(name);
    }
    let first = site.test().args(["run", "--", "a"]).spawn();
    let terminal = Terminal::open(&site);
    terminal.command(&format!("clear; {} run -w 2h -- both", site.rungate().display()));
    terminal.shows("\nrungate: both: waits for a (1 of 1 used), first in line,");
    let _second = site.test().args(["run", "--", "b"]).spawn();
    first.kill();
    terminal.shows("\nrungate: both: waits for b no longer than 1h, not 2h: ");
}

/// A terminal whose output is stopped, as by Ctrl-S, takes nothing of what a wait shows: the wait keeps its
/// deadline and its turn all the same.
#[test]
fn a_terminal_whose_output_is_stopped_holds_up_no_wait() {
    needs_tmux!();
    let site = site();
    let rungate = site.rungate().display().to_string();
    let after = |launch: &str| {
        let output = |what: &str| format!("perl -MPOSIX -e 'tcflow(2, {what})'");
        format!("clear; {}; {launch}; status=$?; {}; echo status $status", output("TCOOFF"), output("TCOON"))
    };
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let terminal = Terminal::open(&site);
    terminal.command(&after(&format!("{rungate} run --notify -w 3s -- matlab")));
    terminal.shows("status 124\n");
    assert_eq!(site.line("seats.lock"), []);

    // The program says nothing while it runs: only its status shows that it was started.
    terminal.command(&after(&format!("{rungate} run -v --notify -w 1h --as matlab -- sh -c 'exit 7'")));
    eventually("it waits", || (site.line("seats.lock").len() == 1).then_some(()));
    holder.kill();
    terminal.shows("status 7\n");
    assert_eq!((site.held("seats.lock"), site.line("seats.lock")), (vec![], vec![]));
}

/// The wait for a mutex is bounded (10 s), and Ctrl-Z does not make anybody wait for it: who is stopped has
/// given it back.
#[test]
fn nobody_is_stopped_with_the_mutex() {
    needs_tmux!();
    needs_strace!();
    // Slow enough to be met in the middle of its work, and right after it got the lock.
    for slow in ["delay_enter=200ms", "delay_exit=400ms"] {
        let site = site();
        site.test().args(["run", "--", "matlab"]).status(0);
        let terminal = Terminal::open(&site);
        let rungate = site.rungate().display().to_string();
        // strace(1) itself does not stop when it writes to a file.
        let trace = site.path("work/trace");
        let options = format!("-e trace=fcntl -e inject=fcntl:{slow}");
        terminal.command(&format!("strace -I4 -qq -o {} {options} {rungate} run -- matlab", trace.display()));
        eventually("it has the mutex", || site.lock_between("seats.lock", 0, 8));
        terminal.press("C-z");
        let calls = eventually("it is stopped", || {
            let text = fs::read_to_string(&trace).expect("the record of the calls");
            text.contains("stopped by SIGTSTP").then_some(text)
        });
        assert_eq!(site.lock_between("seats.lock", 0, 8).map(|lock| lock.l_pid), None, "{slow}: {calls}");
        let other = site.test().args(["run", "--", "patient"]).outcome();
        assert_ne!(other.ending, Ending::Status(74), "{slow}: {}", other.stderr);
    }
}

/// Only there: a shell waits for the supervisor, and must see that the program was stopped.
#[test]
fn a_supervisor_stops_with_a_program_in_the_foreground() {
    needs_tmux!();
    let site = site();
    for hold in ["supervisor", "tree"] {
        let terminal = Terminal::open(&site);
        terminal.command(&format!("{} run --hold {hold} -- matlab", site.rungate().display()));
        terminal.is_repeated("one");
        let program = listing(&site.test())[0]["holders"][0]["pid"].as_i64().expect("a process");
        let program = Pid::from_raw(program.try_into().expect("a process id"));
        kill(program, Signal::SIGSTOP).expect("it lives");
        eventually("it is stopped", || (state_of(program.as_raw()) == Some('T')).then_some(()));
        terminal.shows("Stopped");
        terminal.command("clear; fg");
        terminal.is_repeated("two");
        terminal.interrupt();
        assert_eq!(site.held("seats.lock"), []);
    }
}

/// When the command has ended, the keys stop and end the parent, which waits for the rest of a tree. What is
/// left then keeps the slot as with `descriptor`.
#[test]
fn the_keys_reach_the_parent_of_a_tree_without_its_command() {
    needs_tmux!();
    let site = site();
    let terminal = Terminal::open(&site);
    let rungate = site.rungate().display();
    terminal.command(&format!(
        "clear; {rungate} run --hold tree --as matlab -- sh -c 'sleep 600 & echo left $! below $PPID'"
    ));
    let numbers = |line: &str| {
        let (left, parent) = line.strip_prefix("left ")?.trim_end().split_once(" below ")?;
        Some((left.parse::<i32>().ok()?, parent.parse::<i32>().ok()?))
    };
    let screen =
        terminal.shows_when("the numbers", |screen| screen.lines().any(|line| numbers(line).is_some()));
    let (left, parent) = screen.lines().find_map(numbers).expect("the numbers");
    eventually("the command has ended", || {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        (children.trim_end() == left.to_string()).then_some(())
    });
    terminal.press("C-z");
    terminal.shows("Stopped");
    terminal.command("clear; fg");
    eventually("it is continued", || (state_of(parent) == Some('S')).then_some(()));
    terminal.interrupt();
    terminal.command("echo status $?");
    terminal.shows("\nstatus 130\n");
    assert_eq!(site.held_numbers("seats.lock"), [1]);
    kill(Pid::from_raw(left), Signal::SIGKILL).expect("it lives");
    eventually("the slot is free", || site.held("seats.lock").is_empty().then_some(()));
}
