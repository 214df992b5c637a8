//! Holds the first COUNT slots of a lock file, by that many processes as so many launches would, each with
//! its record; or, as many launches and ends would leave them, taken in a random order by peers that write
//! none. Says `ready`, and goes with all of them when its standard input is closed.
//!
//! ```text
//! crowd FILE COUNT [random]
//! ```
#![allow(unsafe_code, reason = "a process for each slot is a fork for each slot")]

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, fork, pause, pipe};

#[path = "../launch/admit.rs"]
mod admit;
#[path = "../../tests/support/lock_range.rs"]
mod lock_range;

/// The first byte whose lock is a slot.
const FIRST_BYTE: i64 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, count, order @ ..] = arguments.as_slice() else {
        return Err("usage: crowd FILE COUNT [random]".into());
    };
    let (path, count): (&Path, u64) = (Path::new(path), count.parse()?);
    let is_random = !order.is_empty();
    for slot in if is_random { shuffled(count) } else { (1..=count).collect() } {
        let (holds, says) = pipe()?;
        // SAFETY: there is one thread, so the child may do whatever it likes.
        if let ForkResult::Child = unsafe { fork() }? {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            drop(holds);
            if is_random {
                let file =
                    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
                let byte = FIRST_BYTE + i64::try_from(slot)? - 1;
                fcntl(file.as_fd(), FcntlArg::F_SETLK(&lock_range::lock_range(libc::F_WRLCK, byte, 1)))?;
                let highest = FIRST_BYTE + i64::try_from(count)? - 1;
                file.write_all_at(&highest.to_ne_bytes(), 0)?;
                hold(says, true);
            }
            let demands = admit::demands(path, slot);
            let held = admit::granted(&demands);
            hold(says, held.is_some());
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

/// The numbers from 1 in an order that is the same each time.
fn shuffled(count: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (1..=count).collect();
    let mut dice = 0x2545_f491_4f6c_dd1d_u64;
    for last in (1..numbers.len()).rev() {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        numbers.swap(last, usize::try_from(dice >> 33).unwrap_or(0) % (last + 1));
    }
    numbers
}

/// Says whether it has its slot, and keeps it for good.
fn hold(says: OwnedFd, has_slot: bool) -> ! {
    let _ = nix::unistd::write(says.as_fd(), if has_slot { b"1" } else { b"0" });
    drop(says);
    loop {
        pause();
    }
}
