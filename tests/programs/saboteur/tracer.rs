//! Follows the command from call to call, and does to it what is planned.

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::process::Command;

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::Plan;
use super::errors_of_calls::errors_of;
use super::held_slots::held_slots;
use super::registers::{about, name_of};

/// Runs the command as planned.
pub(crate) fn sabotage(
    command: &[String],
    plan: Plan,
    files: &[String],
    report: &str,
) -> Result<(), Box<dyn Error>> {
    // It stops itself, so that it can be seized before it becomes the command.
    let mut shell = Command::new("/bin/sh");
    let main = shell.args(["-c", "kill -STOP $$; exec \"$@\"", "sh"]).args(command).spawn()?;
    let main = Pid::from_raw(main.id().try_into()?);
    waitpid(main, Some(WaitPidFlag::WUNTRACED))?;
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(main, options)?;
    kill(main, Signal::SIGCONT)?;
    let report = File::create(report)?;
    Saboteur { main, plan, files: files.to_vec(), report, calls: 0, target: None, traced: HashMap::new() }
        .watch()
}

/// A process that is traced.
#[derive(Default)]
struct Traced {
    /// Whether it has become the command; the calls of the shell before that are nobody's.
    counts: bool,
    /// Whether its next stop is the end of a call.
    is_in_call: bool,
    was_brk: bool,
    /// What the call that it is in has to answer.
    answer: Option<u64>,
    /// Where its heap ends: what brk(2), which knows no errors, answers when it fails.
    heap_end: Option<u64>,
}

struct Saboteur {
    main: Pid,
    plan: Plan,
    files: Vec<String>,
    report: File,
    calls: u64,
    /// The name of the call that keeps failing, once the first has.
    target: Option<String>,
    traced: HashMap<Pid, Traced>,
}

impl Saboteur {
    fn watch(&mut self) -> Result<(), Box<dyn Error>> {
        self.traced.insert(self.main, Traced::default());
        let mut has_ended = false;
        while !has_ended || !self.traced.is_empty() {
            let status = match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Err(Errno::ECHILD) => break,
                status => status?,
            };
            match status {
                WaitStatus::Exited(pid, code) => has_ended |= self.ended(pid, &format!("status {code}"))?,
                WaitStatus::Signaled(pid, signal, _) => {
                    has_ended |= self.ended(pid, &format!("signal {}", signal as i32))?;
                }
                WaitStatus::PtraceSyscall(pid) => {
                    self.system_call(pid)?;
                    self.go_on(pid, None);
                }
                WaitStatus::PtraceEvent(pid, _, libc::PTRACE_EVENT_EXEC) => self.executes(pid)?,
                WaitStatus::PtraceEvent(
                    pid,
                    _,
                    libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE,
                ) => {
                    let child = Pid::from_raw(i32::try_from(ptrace::getevent(pid)?)?);
                    self.traced.entry(child).or_default().counts = true;
                    self.go_on(pid, None);
                }
                // The first stop of a child, which may come before its parent's event.
                WaitStatus::PtraceEvent(pid, ..) => {
                    if pid != self.main {
                        self.traced.entry(pid).or_default().counts = true;
                    }
                    self.go_on(pid, None);
                }
                WaitStatus::Stopped(pid, Signal::SIGCONT) if !self.counts(pid) => self.go_on(pid, None),
                WaitStatus::Stopped(pid, signal) => self.go_on(pid, Some(signal)),
                _ => {}
            }
        }
        Ok(())
    }

    fn counts(&self, pid: Pid) -> bool {
        self.traced.get(&pid).is_some_and(|traced| traced.counts)
    }

    /// Goes on to the next call or, before the command was executed, to that. Who has been killed meanwhile
    /// cannot.
    fn go_on(&self, pid: Pid, signal: Option<Signal>) {
        let _ = if self.counts(pid) { ptrace::syscall(pid, signal) } else { ptrace::cont(pid, signal) };
    }

    fn ended(&mut self, pid: Pid, how: &str) -> Result<bool, Box<dyn Error>> {
        self.traced.remove(&pid);
        if pid == self.main {
            writeln!(self.report, "ended {how}")?;
        }
        Ok(pid == self.main)
    }

    fn executes(&mut self, pid: Pid) -> Result<(), Box<dyn Error>> {
        let traced = self.traced.entry(pid).or_default();
        if !traced.counts {
            *traced = Traced { counts: true, is_in_call: true, ..Traced::default() };
            self.go_on(pid, None);
            return Ok(());
        }
        let mut held = String::new();
        for path in &self.files {
            let Ok(file) = File::open(path) else { continue };
            for slot in held_slots(&file)? {
                held += &format!(" {path}={}:{}", slot.number, slot.pid);
            }
        }
        writeln!(self.report, "start {pid}{held}")?;
        self.traced.remove(&pid);
        ptrace::detach(pid, None)?;
        Ok(())
    }

    fn system_call(&mut self, pid: Pid) -> Result<(), Box<dyn Error>> {
        // Who has been killed meanwhile has no registers.
        let Ok(mut registers) = ptrace::getregs(pid) else { return Ok(()) };
        let traced = self.traced.entry(pid).or_default();
        traced.is_in_call = !traced.is_in_call;
        if !traced.is_in_call {
            if let Some(answer) = traced.answer.take() {
                registers.rax = answer;
                ptrace::setregs(pid, registers)?;
            } else if traced.was_brk {
                traced.heap_end = Some(registers.rax);
            }
            return Ok(());
        }
        self.calls += 1;
        let name = name_of(&registers);
        traced.was_brk = name == "brk";
        match &self.plan {
            Plan::List => {
                let about = about(pid, &registers);
                writeln!(self.report, "call {} {name} {about}", self.calls)?;
            }
            Plan::Kill { at } if *at == self.calls => {
                writeln!(self.report, "call {at} {name} {}", about(pid, &registers))?;
                kill(pid, Signal::SIGKILL)?;
            }
            Plan::Fail { at, name: error_name, error, persistent } if *at <= self.calls => {
                let about = about(pid, &registers);
                let is_meant = match &self.target {
                    Some(target) => *persistent && *target == name,
                    None => errors_of(&name, &about).contains(&error_name.as_str()),
                };
                if !is_meant {
                    return Ok(());
                }
                writeln!(self.report, "call {} {name} {about}", self.calls)?;
                self.target = Some(name.clone());
                let traced = self.traced.entry(pid).or_default();
                traced.answer = if name == "brk" { traced.heap_end } else { Some((-error).cast_unsigned()) };
                // A descriptor is closed, whatever close(2) answers.
                if traced.answer.is_some() && name != "close" {
                    registers.orig_rax = u64::MAX;
                    ptrace::setregs(pid, registers)?;
                }
            }
            Plan::Kill { .. } | Plan::Fail { .. } => {}
        }
        Ok(())
    }
}
