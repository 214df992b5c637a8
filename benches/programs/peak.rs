//! Runs a command and prints its peak memory: the most that was resident at one moment, in KiB, by wait4(2).
//! It forks before it executes, because a child that shares the memory of its parent until then would be
//! charged for that.
//!
//! ```text
//! peak COMMAND [ARGUMENT…]
//! ```
#![allow(unsafe_code, reason = "a fork, and a call that no safe crate has")]

use std::error::Error;
use std::ffi::CString;
use std::io::{self, Write};
use std::mem::MaybeUninit;

use nix::libc;
use nix::unistd::{ForkResult, execvp, fork};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<CString> = std::env::args().skip(1).map(CString::new).collect::<Result<_, _>>()?;
    let Some(command) = words.first() else { return Err("usage: peak COMMAND [ARGUMENT…]".into()) };
    // SAFETY: there is one thread, so the child may do whatever it likes.
    let ForkResult::Parent { child } = (unsafe { fork() })? else {
        let Err(errno) = execvp(command, &words);
        return Err(errno.into());
    };
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure; all of its bytes are numbers, for which zero is a value.
    let usage = unsafe {
        libc::wait4(child.as_raw(), std::ptr::null_mut(), 0, usage.as_mut_ptr());
        usage.assume_init()
    };
    writeln!(io::stdout(), "{}", usage.ru_maxrss)?;
    Ok(())
}
