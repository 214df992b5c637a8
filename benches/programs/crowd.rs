//! Holds the first COUNT slots of a lock file, by that many processes as so many launches would, each with its record; says
//! `ready`, and goes with all of them when its standard input is closed.
//!
//! ```text
//! crowd FILE COUNT
//! ```
#![allow(unsafe_code, reason = "a process for each slot is a fork for each slot")]

use std::error::Error;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, fork, pause, pipe};

#[path = "../launch/admit.rs"]
mod admit;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, count] = arguments.as_slice() else { return Err("usage: crowd FILE COUNT".into()) };
    let (path, count): (&Path, u64) = (Path::new(path), count.parse()?);
    for slot in 1..=count {
        let (holds, says) = pipe()?;
        // SAFETY: there is one thread, so the child may do whatever it likes.
        if let ForkResult::Child = unsafe { fork() }? {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            drop(holds);
            let held = admit::admitted(path, slot);
            nix::unistd::write(says.as_fd(), if held.is_some() { b"1" } else { b"0" })?;
            drop(says);
            loop {
                pause();
            }
        }
        drop(says);
        let mut answer = [0];
        nix::unistd::read(holds.as_fd(), &mut answer)?;
        if answer != *b"1" {
            return Err(format!("slot {slot} could not be had ({})", holds.as_raw_fd()).into());
        }
    }
    writeln!(io::stdout(), "ready")?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
