//! Writes the name of each signal that it gets, and each line of its standard input, in the order in which
//! they come. It ends when its standard input does, or by a signal that nobody can catch.
//!
//! ```text
//! witness [FILE]
//! ```
//!
//! It stands for a program that does not end when it is asked to. With a file it writes the signals there,
//! for a test that cannot read its standard output.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

const WITNESSED: [Signal; 10] = [
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGCONT,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut witnessed: Box<dyn Write> = match std::env::args_os().nth(1) {
        Some(path) => Box::new(OpenOptions::new().create(true).append(true).open(path)?),
        None => Box::new(io::stdout()),
    };
    let set = SigSet::from_iter(WITNESSED);
    set.thread_block()?;
    let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let stdin = io::stdin();
    loop {
        let mut ready =
            [PollFd::new(signals.as_fd(), PollFlags::POLLIN), PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        poll(&mut ready, PollTimeout::NONE)?;
        while let Some(signal) = signals.read_signal()? {
            let signal = Signal::try_from(i32::try_from(signal.ssi_signo)?)?;
            writeln!(witnessed, "{signal}")?;
            witnessed.flush()?;
        }
        if ready[1].any() == Some(true) {
            let mut text = [0; 4096];
            let length = stdin.lock().read(&mut text)?;
            if length == 0 {
                return Ok(());
            }
            io::stdout().write_all(&text[..length])?;
            io::stdout().flush()?;
        }
    }
}
