//! Locks ranges of a file in the order given, says `ready`, and holds them until its standard input is
//! closed.
//!
//! ```text
//! holder FILE (posix|ofd) (read|write) START:LENGTH…
//! ```
//!
//! It stands for whoever is not rungate: a peer that holds the mutex and stops, a program that locks many
//! slots at once or everything to the end of the file (a length of 0). A lock that somebody else has ends it
//! with status 1.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::AsFd;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

#[path = "../support/lock_range.rs"]
mod lock_range;

use lock_range::lock_range;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, owner, kind, ranges @ ..] = arguments.as_slice() else {
        return Err("usage: holder FILE (posix|ofd) (read|write) START:LENGTH…".into());
    };
    let write = kind == "write";
    let file = OpenOptions::new().read(true).write(write).open(path)?;
    for range in ranges {
        let (start, length) = range.split_once(':').ok_or("a range is START:LENGTH")?;
        let kind = if write { libc::F_WRLCK } else { libc::F_RDLCK };
        let lock = lock_range(kind, start.parse()?, length.parse()?);
        let call = if owner == "ofd" { FcntlArg::F_OFD_SETLK(&lock) } else { FcntlArg::F_SETLK(&lock) };
        fcntl(file.as_fd(), call)?;
    }
    writeln!(io::stdout(), "ready")?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
