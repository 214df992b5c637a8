//! A peer in the manner of exectimes, to work on one lock file beside rungate.
//!
//! Written from the description in the article "Cooperative Limiting of Concurrent Process Instances" (Robert
//! Gamble, 2011). It shares no code with rungate, and it does what the article says where rungate would do
//! better: it asks about one byte after the other, and it believes the hint.
//!
//! ```text
//! peer LOCK-FILE MAXIMUM COMMAND [ARGUMENT…]    75 when MAXIMUM are held, else becomes the command
//! peer LOCK-FILE check                          prints how many are held
//! peer LOCK-FILE list                           prints the process id of each holder
//! ```

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;

#[path = "../support/lock_range.rs"]
mod lock_range;

use lock_range::lock_range;

/// The first byte whose lock is a slot.
const FIRST_BYTE: i64 = 8;

const FULL: u8 = 75;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, what, command @ ..] = arguments.as_slice() else {
        return Err("usage: peer LOCK-FILE (MAXIMUM COMMAND [ARGUMENT…] | check | list)".into());
    };
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o666).open(path)?;
    // The slot belongs to the process, and the kernel drops it when the process closes the file: the
    // descriptor has to live through exec.
    fcntl(file.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
    match what.as_str() {
        "check" => writeln!(io::stdout(), "{}", scan(&file)?.holders.len())?,
        "list" => {
            for pid in scan(&file)?.holders {
                writeln!(io::stdout(), "{pid}")?;
            }
        }
        maximum => {
            if !take_a_slot(&file, maximum.parse()?)? {
                return Ok(ExitCode::from(FULL));
            }
            let [program, arguments @ ..] = command else { return Err("no command".into()) };
            return Err(Command::new(program).args(arguments).exec().into());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What one look at every byte up to the hint, and the one above it, has shown.
struct Scan {
    hint: i64,
    holders: Vec<libc::pid_t>,
    first_free: Option<i64>,
    highest_used: i64,
}

fn scan(file: &File) -> Result<Scan, Box<dyn Error>> {
    let mut hint = [0; 8];
    let hint = if file.read_at(&mut hint, 0)? == hint.len() { i64::from_ne_bytes(hint) } else { FIRST_BYTE };
    let mut scan = Scan { hint, holders: Vec::new(), first_free: None, highest_used: FIRST_BYTE };
    for byte in FIRST_BYTE..=hint + 1 {
        let mut lock = lock_range(libc::F_WRLCK, byte, 1);
        fcntl(file.as_fd(), FcntlArg::F_GETLK(&mut lock))?;
        if i32::from(lock.l_type) == libc::F_UNLCK {
            scan.first_free.get_or_insert(byte);
        } else {
            scan.holders.push(lock.l_pid);
            scan.highest_used = byte;
        }
    }
    Ok(scan)
}

/// Takes the first free slot, with the mutex held from before the scan until after the hint is written.
fn take_a_slot(file: &File, maximum: usize) -> Result<bool, Box<dyn Error>> {
    fcntl(file.as_fd(), FcntlArg::F_SETLKW(&lock_range(libc::F_WRLCK, 0, FIRST_BYTE)))?;
    let scan = scan(file)?;
    let free = scan.first_free.filter(|_| scan.holders.len() < maximum);
    if let Some(byte) = free {
        fcntl(file.as_fd(), FcntlArg::F_SETLK(&lock_range(libc::F_WRLCK, byte, 1)))?;
        let highest = scan.highest_used.max(byte);
        if highest != scan.hint {
            file.write_all_at(&highest.to_ne_bytes(), 0)?;
        }
    }
    fcntl(file.as_fd(), FcntlArg::F_SETLK(&lock_range(libc::F_UNLCK, 0, FIRST_BYTE)))?;
    Ok(free.is_some())
}
