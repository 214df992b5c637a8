//! A supervisor forwards all signals that a process can want to send to the program, but not those of a
//! terminal, which reach both. It stops with the program where a shell has to see that, unlocks before it
//! reaps, exits with the program's status, and dies of the signal of which the program died.

use std::env;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{
    Ending, ProcessState, Running, Site, Terminal, Test, eventually, given_time, needs_root, needs_strace,
    needs_tmux, seats, state_of,
};

const SUPERVISED: [&str; 2] = ["supervisor", "tree"];

fn site() -> Site {
    site_with(9)
}

fn site_with(limit: u32) -> Site {
    let site = Site::with_policy(&seats(limit, "", &["matlab", "missing", "broken"]));
    site.copy_of("/bin/bash", "matlab");
    site
}

fn run(site: &Site, hold: &str, arguments: &[&str]) -> Test {
    site.test().args(["run", "--hold", hold, "--", "matlab"]).args(arguments)
}

/// The only child of a process: the command of a supervisor.
#[track_caller]
fn child_of(pid: i32) -> i32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("a running process");
    children.trim_end().parse().unwrap_or_else(|_| panic!("one child of {pid}, not {children:?}"))
}

/// Exits with the child's status; and when the child died of a signal, dies of the same one. Signal 34 is
/// the first of those that have no name of their own.
#[test]
fn the_status_and_the_death_of_the_command_are_those_of_the_supervisor() {
    let site = site();
    for hold in SUPERVISED {
        for status in [0, 1, 2, 75, 126, 127, 128, 255] {
            run(&site, hold, &["-c", &format!("exit {status}")]).status(status);
        }
        for signal in [1, 2, 3, 6, 9, 10, 11, 13, 14, 15, 34, 64] {
            let script = format!("kill {signal}, $$; sleep 60");
            site.test()
                .args(["run", "--hold", hold, "--as", "matlab", "--", "perl", "-e", &script])
                .through(["prlimit", "--core=0"])
                .killed_by(signal);
        }
        assert_eq!(site.held("seats.lock"), []);
    }
}

/// A command that cannot be executed is what it is without a supervisor: 127 or 126, and nothing is held.
#[test]
fn a_command_that_cannot_be_executed_is_reported_as_without_a_supervisor() {
    let site = site();
    site.script("missing", "#!/nowhere/at-all\n");
    site.script("broken", "#!/etc/passwd\n");
    for (command, status) in [("missing", 127), ("broken", 126)] {
        let plain = site.test().args(["run", "--hold", "process", "--", command]).outcome();
        assert_eq!(plain.ending, Ending::Status(status), "{command}");
        for hold in SUPERVISED {
            let outcome = site.test().args(["run", "--hold", hold, "--", command]).outcome();
            assert_eq!((outcome.ending, &outcome.stderr), (plain.ending, &plain.stderr), "{command} {hold}");
            assert_eq!(site.held("seats.lock"), []);
        }
    }
}

/// A supervised command that writes the name of each signal that it gets.
fn witness(site: &Site, hold: &str) -> Running {
    let witness = site.helper("witness");
    site.test().args(["run", "--hold", hold, "--as", "matlab", "--"]).args([&witness]).spawn()
}

/// An alarm(2) of the caller is one of them: it survives exec and no fork.
#[test]
fn a_supervisor_passes_signals_on() {
    let site = site();
    for hold in SUPERVISED {
        let mut running = witness(&site, hold);
        for signal in [
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
            Signal::SIGALRM,
            Signal::SIGTSTP,
            Signal::SIGCONT,
            Signal::SIGWINCH,
        ] {
            running.signal(signal);
            assert_eq!(running.read_line(), format!("{signal}\n"), "{hold}");
        }
        drop(running);
        // No process sends the alarm that it has set.
        given_time(&["1", "10", "60"], |seconds| {
            let alarm = format!("alarm {seconds}; exec @ARGV");
            let launch = site.test().args(["run", "--hold", hold, "--as", "matlab", "--"]);
            let launch = launch.args([&site.helper("witness")]).through(["perl", "-e", &alarm]);
            assert_eq!(launch.spawn().read_line(), "SIGALRM\n", "{hold}");
        });
    }
}

/// What the terminal sends goes to both of them: the supervisor adds nothing, and lives on.
#[test]
fn a_supervisor_leaves_to_the_command_what_the_terminal_sends() {
    needs_tmux!();
    let site = site();
    let (rungate, witness) = (site.rungate().display(), site.helper("witness"));
    for hold in SUPERVISED {
        let terminal = Terminal::open(&site);
        let launch = format!("{rungate} run --hold {hold} --as matlab -- {}", witness.display());
        terminal.command(&format!("clear; sh -c 'echo runs as $$; exec {launch}'"));
        let supervisor: i32 = terminal
            .shows_when("its number", |screen| {
                screen.contains("\nruns as ") || screen.starts_with("runs as ")
            })
            .lines()
            .find_map(|line| line.strip_prefix("runs as ")?.trim().parse().ok())
            .expect("a process id");
        eventually("the command runs", || {
            let children =
                fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).ok()?;
            ProcessState::of(children.trim_end().parse().ok()?, "witness");
            Some(())
        });
        let keys = [("C-c", "SIGINT"), ("C-\\", "SIGQUIT"), ("C-z", "SIGTSTP")];
        for (key, signal) in keys {
            terminal.press(key);
            terminal.shows(&format!("{signal}\n"));
        }
        // The supervisor takes the signals one after the other, the lower numbers first: this is the last of
        // them.
        kill(Pid::from_raw(supervisor), Signal::SIGWINCH).expect("it lives");
        let screen = terminal.shows("SIGWINCH\n");
        for (_, signal) in keys {
            assert_eq!(screen.matches(signal).count(), 1, "{hold}: {screen}");
        }
    }
}

/// Who stops the command continues the command, and need not know of a supervisor, which does not stop then.
#[test]
fn a_supervisor_is_not_left_stopped() {
    let site = site();
    for hold in SUPERVISED {
        let mut running = witness(&site, hold);
        let supervisor = Pid::from_raw(running.pid());
        let command = Pid::from_raw(child_of(running.pid()));
        let stop = |pid: Pid| {
            kill(pid, Signal::SIGSTOP).expect("it lives");
            eventually("it is stopped", || (state_of(pid.as_raw()) == Some('T')).then_some(()));
        };
        // The command alone. What the supervisor forwards meanwhile shows that it has seen the stop.
        stop(command);
        running.signal(Signal::SIGWINCH);
        eventually("it is forwarded", || {
            let status = fs::read_to_string(format!("/proc/{command}/status")).ok()?;
            let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:\t"))?;
            let is_pending = u64::from_str_radix(pending, 16).ok()? >> (Signal::SIGWINCH as i32 - 1) & 1 == 1;
            is_pending.then_some(())
        });
        kill(command, Signal::SIGCONT).expect("it lives");
        assert_eq!([running.read_line(), running.read_line()], ["SIGCONT\n", "SIGWINCH\n"], "{hold}");
        // Both, before the supervisor has seen that its command is stopped: it tells the command, or both are
        // continued.
        for also in [false, true] {
            stop(supervisor);
            stop(command);
            kill(supervisor, Signal::SIGCONT).expect("it lives");
            if also {
                kill(command, Signal::SIGCONT).expect("it lives");
            }
            assert_eq!(running.read_line(), "SIGCONT\n", "{hold}");
            running.signal(Signal::SIGUSR1);
            let mut next = running.read_line();
            if next == "SIGCONT\n" {
                next = running.read_line();
            }
            assert_eq!(next, "SIGUSR1\n", "{hold}");
        }
        running.close_stdin();
        assert_eq!(running.end().ending, Ending::Status(0), "{hold}");
        assert_eq!(site.held("seats.lock"), [], "{hold}");
    }
}

/// Resets an ignored SIGCHLD for itself and gives it back to the child.
#[test]
fn an_ignored_sigchld_hides_nothing_from_the_supervisor() {
    let site = site();
    for hold in SUPERVISED {
        let ignoring =
            |arguments: &[&str]| run(&site, hold, arguments).through(["env", "--ignore-signal=CHLD"]);
        ignoring(&["-c", "exit 7"]).status(7);
        ignoring(&["-c", "kill -SEGV $$"]).killed_by(11);
        site.copy_of("/bin/cat", "cat-17");
        let running = site
            .test()
            .args(["run", "--hold", hold, "--as", "matlab", "--", "cat-17"])
            .through(["env", "--ignore-signal=CHLD"])
            .spawn();
        let state = ProcessState::of(child_of(running.pid()), "cat-17");
        assert_eq!(state.signals("SigIgn") >> (17 - 1) & 1, 1, "{hold}");
    }
}

/// Working directory, umask, environment (besides `RUNGATE_*`), descriptors, signal mask and dispositions
/// reach the program as they came, through a supervisor too.
#[test]
fn a_supervised_program_gets_everything_as_it_came() {
    let site = site();
    site.program("program");
    let prefix = ["nice", "-n5", "env", "--ignore-signal=PIPE,HUP,TSTP", "--block-signal=USR1,TERM,ALRM"];
    let plain = site.test().program(site.path("bin/program")).through(prefix).spawn();
    let plain = ProcessState::of(plain.pid(), "program");
    for hold in SUPERVISED {
        let running = site
            .test()
            .args(["run", "--hold", hold, "--as", "matlab", "--", "program"])
            .through(prefix)
            .spawn();
        let mut state = ProcessState::of(child_of(running.pid()), "program");
        state.environment.retain(|entry| !entry.to_string_lossy().starts_with("RUNGATE_"));
        let mut expected = plain.environment.clone();
        expected.retain(|entry| !entry.to_string_lossy().starts_with("RUNGATE_"));
        assert_eq!(state.environment, expected, "{hold}");
        assert_eq!(state.directory, plain.directory, "{hold}");
        assert_eq!(state.status, plain.status, "{hold}");
        assert_eq!(state.limits, plain.limits, "{hold}");
        assert_eq!(state.scheduling, plain.scheduling, "{hold}");
        state.descriptors.retain(|number, _| !plain.descriptors.contains_key(number));
        let more: Vec<PathBuf> = state.descriptors.into_values().collect();
        assert_eq!(more, [site.repository("seats.lock")], "{hold}");
    }
}

/// A server that says that it is ready, closes its output and serves: who reads that to its end has it at once,
/// and who writes to a program that closes its input is told so. The program runs on.
#[test]
fn a_pipe_ends_when_the_command_closes_it() {
    let site = site_with(1);
    let rungate = site.rungate().display();
    for hold in SUPERVISED {
        let run = format!("{rungate} run --hold {hold} -- matlab -c");
        let scene = |script: &str, lines: &[&str]| {
            let mut running = site.test().program("/bin/bash").args(["-c", script]).background();
            for line in lines {
                assert_eq!(running.read_line(), format!("{line}\n"), "{hold}: {script}");
            }
            assert_eq!(site.held_numbers("seats.lock"), [1], "{hold}: {script}");
            running.close_stdin();
            assert_eq!(running.end().ending, Ending::Status(0), "{hold}: {script}");
            assert_eq!(site.held("seats.lock"), [], "{hold}: {script}");
        };
        scene(
            &format!("{run} 'echo ready; exec >&-; read -r line' | {{ cat; echo ended; }}"),
            &["ready", "ended"],
        );
        let writer = "{ trap '' PIPE; while echo word; do :; done 2>/dev/null; echo refused >&4; }";
        scene(&format!("exec 3<&0 4>&1; {writer} | {run} 'exec <&-; read -r line <&3; :'"), &["refused"]);
    }
}

/// Unlocks before it reaps: whoever saw the command end finds room, at once and without a wait.
#[test]
fn whoever_waits_for_the_end_of_the_command_finds_room() {
    let site = site_with(1);
    for hold in SUPERVISED {
        for _ in 0..20 {
            run(&site, hold, &["-c", ":"]).status(0);
        }
    }
}

/// `tree`: the command and all its descendants have ended. The status is that of the command, whatever
/// becomes of the others; and who has had enough of waiting for them may end the supervisor.
#[test]
fn a_tree_ends_with_its_last_branch_and_the_status_of_its_trunk() {
    let site = site();
    let script = "echo $$; (setsid cat >/dev/null; kill -SEGV $BASHPID) <&0 >/dev/null 2>&1 & exit 7";
    let begin = || {
        let mut running = run(&site, "tree", &["-c", script]).background();
        let trunk = running.read_line().trim_end().parse().expect("a process id");
        eventually("the trunk has ended", || state_of(trunk).is_none().then_some(()));
        assert_eq!(site.held("seats.lock").len(), 1);
        running
    };
    let mut running = begin();
    running.close_stdin();
    assert_eq!(running.end().ending, Ending::Status(7));
    assert_eq!(site.held("seats.lock"), []);

    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        let mut running = begin();
        running.signal(signal);
        eventually(&format!("{signal} ends the supervisor"), || running.is_zombie().then_some(()));
        assert_eq!(site.held("seats.lock").len(), 1, "who inherited the descriptor keeps the slot");
        running.close_stdin();
        assert_eq!(running.end().ending, Ending::Signal(signal as i32));
        eventually("the slot is free", || site.held("seats.lock").is_empty().then_some(()));
    }
}

/// What a script has started before it becomes rungate is not of the command: bash waits for no
/// `exec > >(tee log)` either.
#[test]
fn a_tree_does_not_wait_for_what_the_script_had_started() {
    let site = site();
    let rungate = site.rungate().display();
    let launch = format!("exec {rungate} run --hold tree -- matlab -c 'sleep 0.2 & exit 7'");
    let script = format!("cat <&0 >/dev/null 2>&1 & {launch}");
    let mut running = site.test().program("/bin/bash").args(["-c", &script]).background();
    eventually("it has ended", || running.is_zombie().then_some(()));
    assert_eq!(site.held("seats.lock"), []);
    assert_eq!(running.end().ending, Ending::Status(7));
}

/// Where `/proc` is that of another PID namespace, a stranger has the number of the supervisor there. The
/// children of the stranger are not the supervisor's.
#[test]
fn a_tree_is_waited_for_where_proc_has_other_numbers() {
    needs_root!();
    let site = site();
    let stranger = site.test().program("/bin/bash").args(["-c", "cat <&0 >/dev/null & echo here; wait"]);
    let mut stranger = stranger.background();
    assert_eq!(stranger.read_line(), "here\n");
    let number = stranger.pid();
    let first = format!("echo {} >/proc/sys/kernel/ns_last_pid && \"$@\"; exit", number - 1);
    let script = "echo $PPID; cat <&0 >/dev/null 2>&1 & exit 7";
    let launch = run(&site, "tree", &["-c", script]);
    let apart = ["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", &first, "sh"];
    let mut running = launch.through(apart).background();
    assert_eq!(running.read_line(), format!("{number}\n"));
    let supervisor = child_of(child_of(running.pid()));
    let sleeps = libc::SYS_rt_sigtimedwait.to_string();
    eventually("it waits for the rest of the tree", || {
        let children = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).ok()?;
        // The command is not among them: it was reaped.
        let left = fs::read_to_string(format!("/proc/{}/comm", children.trim_end())).ok()?;
        let call = fs::read_to_string(format!("/proc/{supervisor}/syscall")).ok()?;
        (left == "cat\n" && call.split(' ').next() == Some(&sleeps)).then_some(())
    });
    assert_eq!(site.held_numbers("seats.lock"), [1]);
    running.close_stdin();
    assert_eq!(running.end().ending, Ending::Status(7));
    assert_eq!(site.held("seats.lock"), []);
}

/// Makes a program on which another process has a lease, so that its exec takes long.
#[track_caller]
pub(super) fn leased(site: &Site, name: &str) -> Running {
    site.script(name, "#!/bin/sh\necho executed\nexec cat\n");
    let script = "import fcntl, signal, sys\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\nf = open(sys.argv[1])\n\
                  fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nprint('leased', flush=True)\nsys.stdin.read()";
    let program = site.path("bin").join(name);
    let lease = site.test().program("/usr/bin/python3").args(["-c", script]).args([program]);
    let mut lease = lease.background();
    assert_eq!(lease.read_line(), "leased\n");
    lease
}

/// Waits until the child of a supervisor has begun its exec.
#[track_caller]
pub(super) fn begins_exec(supervisor: i32) {
    let exec = libc::SYS_execve.to_string();
    eventually("the exec has begun", || {
        let children = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).ok()?;
        let call = fs::read_to_string(format!("/proc/{}/syscall", children.trim_end())).ok()?;
        (call.split(' ').next() == Some(&exec)).then_some(())
    });
}

/// An exec can take long. A signal that comes before its end ends the command and its parent.
#[test]
fn a_command_that_is_not_yet_executed_gets_signals() {
    for hold in SUPERVISED {
        let site = site();
        let lease = leased(&site, "missing");
        let mut running = site.test().args(["run", "--hold", hold, "--", "missing"]).background();
        begins_exec(running.pid());
        running.signal(Signal::SIGTERM);
        let outcome = running.end();
        assert_eq!((outcome.ending, outcome.stdout.as_str()), (Ending::Signal(15), ""), "{hold}");
        let still = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(site.path("bin/missing"));
        let still = still.map(drop).map_err(|error| error.kind());
        assert_eq!(still, Err(ErrorKind::WouldBlock), "the kernel has not yet ended the lease");
        assert_eq!(site.held("seats.lock"), [], "{hold}");
        lease.kill();
    }
}

/// A signal that the terminal sent to both of them is the command's business, also when the supervisor is
/// slow to see it: here it is stopped while the command deals with it.
#[test]
fn a_tree_does_not_die_of_what_its_command_has_dealt_with() {
    let site = site();
    let script = "trap 'exit 7' INT; echo $$; while read -r line || [ $? -gt 128 ]; do :; done; sleep 60";
    let mut running = run(&site, "tree", &["-c", script]).background();
    let trunk = Pid::from_raw(running.read_line().trim_end().parse().expect("a process id"));
    running.signal(Signal::SIGSTOP);
    eventually("the supervisor is stopped", || (running.state() == 'T').then_some(()));
    for pid in [Pid::from_raw(running.pid()), trunk] {
        kill(pid, Signal::SIGINT).expect("a process of ours");
    }
    running.close_stdin();
    eventually("the command has ended", || (state_of(trunk.as_raw()) == Some('Z')).then_some(()));
    running.signal(Signal::SIGCONT);
    assert_eq!(running.end().ending, Ending::Status(7));
}

/// `cargo test &` in a script: the shell has such a job ignore SIGINT and SIGQUIT, and the tests pass all the
/// same.
#[test]
fn the_tests_can_run_in_the_background_of_a_shell() {
    let tests = env::current_exe().expect("this program");
    let sensitive = [
        "launch::supervision::a_tree_does_not_die_of_what_its_command_has_dealt_with",
        "waiting::queue::a_signal_ends_the_wait_with_nothing_left_behind",
    ];
    let ignoring = "trap '' HUP INT QUIT; exec \"$@\"";
    let outcome = Site::new()
        .test()
        .program("/bin/sh")
        .args(["-c", ignoring, "sh"])
        .args([tests])
        .args(["--exact"])
        .args(sensitive)
        .outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stdout);
    assert!(outcome.stdout.contains(" 2 passed"), "{}", outcome.stdout);
}

/// A program that ends just when its supervisor has looked for ended ones and looks for stopped ones: its
/// status is not lost.
#[test]
fn a_program_that_ends_between_two_looks() {
    needs_strace!();
    for hold in ["supervisor", "tree"] {
        let site = Site::with_policy("rule = []");
        let delay = "inject=waitid:delay_exit=1s:when=1";
        let strace = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=waitid", "-e", delay];
        let ends = ["--", "sh", "-c", "sleep 0.2; exit 7"];
        let launch = site.test().args(["run", "--limit", "1", "--hold", hold]).args(ends);
        launch.through(strace).status(7);
    }
}

/// It ends as the command ended: a signal that the supervisor had for the command, and did not take before that ended,
/// ends or stops nobody.
#[test]
fn a_signal_that_comes_too_late_for_the_program() {
    needs_strace!();
    for (hold, signal) in
        [("supervisor", "INT"), ("supervisor", "TERM"), ("supervisor", "TSTP"), ("tree", "USR1")]
    {
        // The shell has to end within the delay.
        given_time(&["1s", "5s", "20s"], |delay| {
            let site = Site::with_policy("rule = []");
            let delay = format!("inject=waitid:delay_enter={delay}:when=1");
            let strace = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=waitid", "-e", &delay];
            let script = format!("kill -{signal} $PPID; exit 7");
            let launch = site.test().args(["run", "--limit", "1", "--hold", hold, "--", "sh", "-c", &script]);
            launch.through(strace).status(7);
        });
    }
}

/// 71: a system call … failed: where there can be no child, the program is not to blame.
#[test]
fn no_room_for_another_process() {
    needs_strace!();
    for (call, name) in [("clone,clone3,fork,vfork", "fork"), ("pipe2", "pipe")] {
        let site = site();
        let (trace, fails) = (format!("trace={call}"), format!("inject={call}:error=EAGAIN"));
        let strace = ["strace", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &fails];
        run(&site, "supervisor", &[])
            .through(strace)
            .stderr(&format!("rungate: matlab: the command could not be supervised: {name}: [..]\n"))
            .status(71);
        assert_eq!(site.held("seats.lock"), []);
    }
}
