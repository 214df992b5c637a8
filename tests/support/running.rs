//! A command in the background. It ends with its guard: no test leaves a process behind, however it fails.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::deadline::{DEADLINE, ends_within, readable_in_time};
use super::outcome::{Ending, Outcome};

/// The state of a process; none when it is gone.
pub(crate) fn state_of(pid: i32) -> Option<char> {
    fields_of(pid)?.chars().next()
}

/// What the kernel says of a process after its name.
fn fields_of(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.to_owned())
}

/// When a process started, as the kernel counts.
pub(crate) fn start_of(pid: i32) -> u64 {
    let fields = fields_of(pid).expect("a process that is not reaped");
    fields.split(' ').nth(19).expect("field 22").parse().expect("a number")
}

/// How often a process has gone to sleep.
pub(crate) fn sleeps_of(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).expect("a number")
}

/// The kernel's `PF_EXITING`.
const IS_ENDING: u64 = 4;

/// Whether a process is there, and has not begun to end: its locks become free before it is a zombie, by 20 ms
/// on a busy machine.
pub(crate) fn is_alive(pid: i32) -> bool {
    let flags = fields_of(pid).and_then(|fields| fields.split(' ').nth(6)?.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & IS_ENDING == 0)
}

/// The guard of a command in the background.
#[must_use = "the command is killed when its guard is dropped"]
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    command: String,
}

impl Running {
    pub(super) fn new(mut child: Child, command: String) -> Self {
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
        Self { child, stdin, stdout, command }
    }

    /// The process id: of the launcher, and after it of the program that it became.
    pub(crate) fn pid(&self) -> i32 {
        self.child.id().try_into().expect("process ids are positive")
    }

    /// Writes a line to its standard input.
    #[track_caller]
    pub(crate) fn write_line(&mut self, line: &str) {
        let pipe = self.stdin.as_mut().expect("standard input is open");
        pipe.write_all(format!("{line}\n").as_bytes())
            .unwrap_or_else(|error| panic!("{}: {error}", self.command));
    }

    /// Closes its standard input, at which a program that reads it ends.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Whether it comes to answer a line with the same line, and does not end before.
    #[track_caller]
    pub(crate) fn answers(&mut self) -> bool {
        let line = "are you there?\n";
        // Whoever has ended does not read.
        let _ = self.stdin.as_mut().expect("standard input is open").write_all(line.as_bytes());
        self.read_line() == line
    }

    /// Writes a line and waits until it comes back.
    #[track_caller]
    pub(crate) fn wait_for_echo(&mut self) {
        if let Err(outcome) = self.echoes() {
            self.did_not_run(&outcome);
        }
    }

    /// The same; or what has become of it. It no longer exists then.
    #[track_caller]
    pub(super) fn echoes(&mut self) -> Result<(), Outcome> {
        let line = "are you there?\n";
        // Whoever does not run any more does not answer either, and that tells more.
        let _ = self.stdin.as_mut().expect("standard input is open").write_all(line.as_bytes());
        let answer = self.read_line();
        if answer == line {
            return Ok(());
        }
        let _ = self.child.kill();
        let mut stderr = String::new();
        let _ = self.child.stderr.take().expect("standard error is a pipe").read_to_string(&mut stderr);
        let status = self.child.wait().expect("a child can be reaped");
        Err(Outcome { stdout: answer, stderr, ending: Ending::from(status) })
    }

    #[track_caller]
    pub(super) fn did_not_run(&self, Outcome { stdout, stderr, ending }: &Outcome) -> ! {
        panic!(
            "{} did not come to run: {ending:?}\n--- standard output\n{stdout}--- standard error\n{stderr}---",
            self.command
        );
    }

    /// The next line of its standard output; empty when there is none any more.
    #[track_caller]
    pub(crate) fn read_line(&mut self) -> String {
        if self.stdout.buffer().is_empty() {
            let in_time = readable_in_time(self.stdout.get_ref().as_fd());
            assert!(in_time, "{} printed nothing for {DEADLINE:?}", self.command);
        }
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("what programs print here is UTF-8");
        line
    }

    /// Sends a signal and does not wait for what comes of it.
    #[track_caller]
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("a child that was not reaped can be signalled");
    }

    /// Its state as the kernel has it: `R`, `S`, `T` when it is stopped, `Z` when it has ended.
    pub(crate) fn state(&self) -> char {
        state_of(self.pid()).expect("a child that was not reaped")
    }

    /// Whether it has ended and was not reaped yet.
    pub(crate) fn is_zombie(&self) -> bool {
        self.state() == 'Z'
    }

    /// Kills it, and returns when it is gone. What it printed is not read: a program that it had started may
    /// have the pipe too, and live for as long as its standard input does.
    #[track_caller]
    pub(crate) fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        assert!(ends_within(DEADLINE, &self.child), "{} still runs after {DEADLINE:?}", self.command);
        let ending = Ending::from(self.child.wait().expect("a child that ended can be reaped"));
        assert_eq!(ending, Ending::Signal(9), "{} ended before it was killed", self.command);
    }

    /// Waits for its end, and returns what it printed since it was last asked.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Outcome {
        assert!(ends_within(DEADLINE, &self.child), "{} still runs after {DEADLINE:?}", self.command);
        let mut stdout = String::new();
        let mut stderr = String::new();
        self.stdout.read_to_string(&mut stdout).expect("what programs print here is UTF-8");
        let pipe = self.child.stderr.as_mut().expect("standard error is a pipe");
        pipe.read_to_string(&mut stderr).expect("what programs print here is UTF-8");
        let status = self.child.wait().expect("a child that ended can be reaped");
        Outcome { stdout, stderr, ending: Ending::from(status) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that ended already is reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
