//! What the registers of a process say of the system call that it is about to make.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use nix::libc;
use nix::unistd::Pid;

use super::system_calls::{Argument, COMMANDS_OF_FCNTL, SYSTEM_CALLS};

/// The call, as its manual page names it; for fcntl(2) with its command.
pub(crate) fn name_of(registers: &libc::user_regs_struct) -> String {
    let number = registers.orig_rax.cast_signed();
    let Some((name, ..)) = SYSTEM_CALLS.iter().find(|(_, known, _)| *known == number) else {
        return format!("call-number-{number}");
    };
    if *name != "fcntl" {
        return (*name).to_owned();
    }
    // The upper half of the register is nobody's.
    let command = registers.rsi & 0xffff_ffff;
    let known = COMMANDS_OF_FCNTL.iter().find(|(_, known)| u64::from(known.cast_unsigned()) == command);
    known.map_or_else(|| format!("fcntl({command})"), |(name, _)| format!("fcntl({name})"))
}

/// What the call is about: a path, or what a descriptor is open on.
pub(crate) fn about(pid: Pid, registers: &libc::user_regs_struct) -> String {
    let number = registers.orig_rax.cast_signed();
    let argument = SYSTEM_CALLS.iter().find(|(_, known, _)| *known == number).map(|(.., argument)| *argument);
    let about = match argument {
        Some(Argument::Path) => text_at(pid, registers.rdi),
        Some(Argument::PathBelow) => text_at(pid, registers.rsi),
        Some(Argument::Descriptor) => {
            let link = fs::read_link(format!("/proc/{pid}/fd/{}", registers.rdi));
            link.ok().map(|path| path.display().to_string())
        }
        _ => None,
    };
    about.unwrap_or_default()
}

/// The text that an argument points to.
fn text_at(pid: Pid, address: u64) -> Option<String> {
    let mut bytes = [0; 4096];
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    // What is left of its page is there for certain, and more where more is.
    let length = memory.read_at(&mut bytes, address).ok()?;
    let end = bytes[..length].iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}
